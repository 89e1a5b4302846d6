package people_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/people"
	"journeyman/store/storetest"
)

func TestPassword(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	s := storetest.Open(t, store.Options{})
	who, _ := storetest.Caller(t, s, "Acme", "ann@acme.test", people.RoleOwner)
	storetest.Caller(t, s, "Acme", "bob@acme.test", people.RoleMember)

	is.NoErr(s.People.SetPassword(t.Context(), "Ann@Acme.Test", "old horse battery"))
	is.NoErr(s.People.SetPassword(t.Context(), "ann@acme.test", "correct horse"))
	id, err := s.People.CheckPassword(t.Context(), "ANN@acme.test", "correct horse")
	is.NoErr(err)
	is.Equal(id.UserID, who.UserID)
	for name, tt := range map[string]struct{ email, password string }{
		"the one before":          {"ann@acme.test", "old horse battery"},
		"another case":            {"ann@acme.test", "Correct horse"},
		"nothing":                 {"ann@acme.test", ""},
		"too long":                {"ann@acme.test", strings.Repeat("x", people.MaxPassword+1)},
		"a user without password": {"bob@acme.test", ""},
		"nobody":                  {"eve@acme.test", "correct horse"},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			is.True(db.IsKind(fails(s.People.CheckPassword(t.Context(), tt.email, tt.password)), db.Unauthorized))
		})
	}
	for _, wrong := range []string{"", "1234567", "ééééééé", strings.Repeat("x", people.MaxPassword+1)} {
		is.True(db.IsKind(s.People.SetPassword(t.Context(), "ann@acme.test", wrong), db.Invalid))
	}
	is.True(db.IsKind(s.People.SetPassword(t.Context(), "eve@acme.test", "words of my own"), db.NotFound))
}

// TestHashingIsBounded checks that a password waits while others are hashed, and that the wait ends
// with its request.
func TestHashingIsBounded(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	s := storetest.Open(t, store.Options{})
	storetest.Caller(t, s, "Acme", "ann@acme.test", people.RoleOwner)
	is.NoErr(s.People.SetPassword(t.Context(), "ann@acme.test", "correct horse"))
	free := s.People.FillHashing()
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	is.True(errors.Is(fails(s.People.CheckPassword(ctx, "ann@acme.test", "correct horse")), context.DeadlineExceeded))
	checked := make(chan error)
	go func() {
		checked <- fails(s.People.CheckPassword(t.Context(), "ann@acme.test", "correct horse"))
	}()
	free()
	is.NoErr(<-checked)
}

// TestPasswordCost checks that the program hashes passwords at full cost. Only the stores of tests
// use a lower cost.
func TestPasswordCost(t *testing.T) {
	t.Parallel()
	storetest.Embedded(t)
	is := is.New(t)
	s, err := store.Open(t.Context(), t.TempDir(), storetest.Schema(t), store.Options{})
	is.NoErr(err)
	_, _, err = s.People.CreateKey(t.Context(), people.Operator(),
		people.NewKey{Name: "test", Email: "ann@acme.test", Role: people.RoleOwner, OrganizationName: "Acme"})
	is.NoErr(err)
	is.NoErr(s.People.SetPassword(t.Context(), "ann@acme.test", "correct horse"))
	is.NoErr(s.Close())
	hash := storetest.Rows(t, s.Dir(), `SELECT password_hash FROM users`)[0][0]
	cost, _, _ := strings.Cut(strings.TrimPrefix(hash, "$argon2id$v=19$"), "$")
	is.Equal(cost, "m=19456,t=2,p=1")
}

func TestCommonPasswords(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, store.Options{})
	storetest.Caller(t, s, "Acme", "ann@acme.test", people.RoleOwner)
	for password, refused := range map[string]bool{
		"12345678": true, "PASSWORD": true, "Qwertyuiop": true, "aaaaaaaaaaaa": true, "abababababab": true, "ßßßßßßßß": true,
		"correct horse battery": false, "password\n12345678": false, "words of my own": false,
		// A line of the file header is not a password in the list.
		"# They are from the list of zxcvbn 4.4.2, under this license:": false,
	} {
		t.Run(password, func(t *testing.T) {
			is := is.New(t)
			err := s.People.SetPassword(t.Context(), "ann@acme.test", password)
			is.Equal(db.IsKind(err, db.Invalid), refused)
		})
	}
}

// fails returns the error of a call that returns a value, too.
func fails[T any](_ T, err error) error { return err }
