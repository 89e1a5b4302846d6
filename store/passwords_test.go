package store_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store"
	"journeyman/store/storetest"
)

func TestPassword(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	s := storetest.Open(t, store.Options{})
	who, _ := storetest.Caller(t, s, "Acme", "ann@acme.test", store.RoleOwner)
	storetest.Caller(t, s, "Acme", "bob@acme.test", store.RoleMember)

	is.NoErr(s.SetPassword(t.Context(), "Ann@Acme.Test", "old horse battery"))
	is.NoErr(s.SetPassword(t.Context(), "ann@acme.test", "correct horse"))
	id, err := s.CheckPassword(t.Context(), "ANN@acme.test", "correct horse")
	is.NoErr(err)
	is.Equal(id, who.UserID)
	for name, tt := range map[string]struct{ email, password string }{
		"the one before":          {"ann@acme.test", "old horse battery"},
		"another case":            {"ann@acme.test", "Correct horse"},
		"nothing":                 {"ann@acme.test", ""},
		"too long":                {"ann@acme.test", strings.Repeat("x", store.MaxPassword+1)},
		"a user without password": {"bob@acme.test", ""},
		"nobody":                  {"eve@acme.test", "correct horse"},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			_, err := s.CheckPassword(t.Context(), tt.email, tt.password)
			is.True(store.IsKind(err, store.Unauthorized))
		})
	}
	for _, wrong := range []string{"", "1234567", "ééééééé", strings.Repeat("x", store.MaxPassword+1)} {
		is.True(store.IsKind(s.SetPassword(t.Context(), "ann@acme.test", wrong), store.Invalid))
	}
	is.True(store.IsKind(s.SetPassword(t.Context(), "eve@acme.test", "12345678"), store.NotFound))
}

// TestHashingIsBounded has a password wait for its turn, and give up with its request.
func TestHashingIsBounded(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	s := storetest.Open(t, store.Options{})
	storetest.Caller(t, s, "Acme", "ann@acme.test", store.RoleOwner)
	is.NoErr(s.SetPassword(t.Context(), "ann@acme.test", "correct horse"))
	free := s.FillHashing()
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	_, err := s.CheckPassword(ctx, "ann@acme.test", "correct horse")
	is.True(errors.Is(err, context.DeadlineExceeded))
	checked := make(chan error)
	go func() {
		_, err := s.CheckPassword(t.Context(), "ann@acme.test", "correct horse")
		checked <- err
	}()
	free()
	is.NoErr(<-checked)
}
