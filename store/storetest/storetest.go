// Package storetest opens real stores for tests: a database file in a temporary
// folder, closed when the test ends. It imports store alone.
package storetest

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"journeyman/store"
)

// Schema is the text of schema.sql.
func Schema(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	for err == nil {
		b, e := os.ReadFile(filepath.Join(dir, "schema.sql"))
		if e == nil {
			return string(b)
		}
		if parent := filepath.Dir(dir); parent == dir {
			err = errors.New("schema.sql is in no folder above the test")
		} else {
			dir = parent
		}
	}
	t.Fatal(err)
	return ""
}

// Open gives a store in a temporary folder.
func Open(t testing.TB, opt store.Options) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), t.TempDir(), Schema(t), opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// Caller makes a user with an API key in an organization, and gives both. Two
// calls with one email are the same user.
func Caller(t testing.TB, s *store.Store, organization, email string, role store.Role) (store.Identity, string) {
	t.Helper()
	secret, err := s.CreateKey(t.Context(), store.NewKey{Name: "test", Email: email, Role: role, OrganizationName: organization})
	if err != nil {
		t.Fatal(err)
	}
	id, err := s.Authenticate(t.Context(), secret)
	if err != nil {
		t.Fatal(err)
	}
	return id, secret
}

// Exec changes the database of an open store beside it, where a test needs what no
// method of the store does.
func Exec(t testing.TB, s *store.Store, query string, args ...any) {
	t.Helper()
	db := open(t, s.Dir(), "_pragma=busy_timeout(10000)")
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), query, args...); err != nil {
		t.Fatal(err)
	}
}
