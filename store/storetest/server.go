package storetest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"journeyman/store"
	"journeyman/store/postgres/pgtest"
)

// OnServer reports whether the databases of tests are on a PostgreSQL server: the environment names
// one in JOURNEYMAN_TEST_DATABASE.
func OnServer() bool { return os.Getenv(pgtest.Variable) != "" }

// Embedded skips the test if the databases are on a server. It is for tests that look into the
// database file, or that test what only the embedded engine does.
func Embedded(t testing.TB) {
	t.Helper()
	if OnServer() {
		t.Skip("it is about the database file")
	}
}

// NeedServer skips the test if the databases are files. It is for tests of what only a store with its
// database on a server does.
func NeedServer(t testing.TB) {
	t.Helper()
	if !OnServer() {
		t.Skip("it needs a database server: .ci/postgres runs a command with one")
	}
}

// DatabaseOf returns the URL of the database that Open has created for the data folder dir, or "" if
// the database is a file in the folder.
func DatabaseOf(dir string) string {
	name := databaseIn(dir)
	if !OnServer() || !pgtest.Exists(name) {
		return ""
	}
	return pgtest.Named(name)
}

// Cuttable returns the URL of the database of a data folder through a proxy. cut(true) makes the database
// unreachable there until cut(false). The test needs a database on a server.
func Cuttable(t testing.TB, dir string) (url string, cut func(down bool)) {
	t.Helper()
	NeedServer(t)
	return pgtest.Cuttable(t, DatabaseOf(dir))
}

// LockTables makes all queries of these tables wait until the test ends. It skips the test if the
// database is a file, whose readers never wait.
func LockTables(t testing.TB, s *store.Store, tables ...string) {
	t.Helper()
	NeedServer(t)
	tx, err := open(t, s.Dir(), "").BeginTx(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback() }) // it has changed nothing
	_, err = tx.ExecContext(t.Context(), `LOCK TABLE `+strings.Join(tables, ", ")+` IN ACCESS EXCLUSIVE MODE`)
	if err != nil {
		t.Fatal(err)
	}
}

// databaseIn returns the name of the database on the server that belongs to a folder, so that a test
// can open the folder again.
func databaseIn(dir string) string {
	sum := sha256.Sum256([]byte(dir))
	return "test_" + hex.EncodeToString(sum[:8])
}

// template returns the name of a database with the tables of the schema. All processes that test
// share it. It stays on the server, which lives as long as the tests do.
var template = sync.OnceValues(func() (name string, err error) {
	schema, err := readSchema()
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(schema))
	name = "template_" + hex.EncodeToString(sum[:8])
	return name, pgtest.Once(name, func(url string) error {
		dir, err := os.MkdirTemp("", "storetest")
		if err != nil {
			return err
		}
		defer func() { _ = os.RemoveAll(dir) }() // the system's folder for temporary files is emptied anyway
		s, err := store.Open(context.Background(), dir, schema, store.Options{Database: url})
		if err != nil {
			return err
		}
		return s.Close()
	})
})

// NewDatabase returns the URL of the database of a data folder that a program of the test opens. It
// creates the database with its tables if there is none. It returns "" if the databases of tests are
// files in their folders.
func NewDatabase(t testing.TB, dir string) string {
	t.Helper()
	if !OnServer() {
		return ""
	}
	name := databaseIn(dir)
	if !pgtest.Exists(name) {
		prepare(t, dir)
	}
	return pgtest.Named(name)
}

// Copy copies a data folder and its database, which a process may have open, to a folder that is empty.
// The copy is what the process would leave if it was killed now. Copy makes no assertion, so that any
// goroutine may call it.
func Copy(t testing.TB, from, to string) error {
	if OnServer() && pgtest.Exists(databaseIn(from)) {
		name, err := template()
		if err == nil {
			err = pgtest.CopyRows(t, name, databaseIn(from), databaseIn(to))
		}
		if err != nil {
			return err
		}
	}
	// Files are copied after the rows, so that the copy has every file that its rows name.
	return os.CopyFS(to, os.DirFS(from))
}

// prepare creates an empty database with its tables for a new data folder, so that Open has nothing
// to create.
func prepare(t testing.TB, dir string) {
	t.Helper()
	if OnServer() {
		name, err := template()
		if err != nil {
			t.Fatal(err)
		}
		pgtest.Clone(t, name, databaseIn(dir))
		return
	}
	database, err := emptyDatabase()
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, databaseName), database, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}
