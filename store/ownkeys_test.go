package store_test

import (
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store"
)

// TestRolledKeys has the old key work for a day beside the new one.
func TestRolledKeys(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	old, secret, err := f.CreateKeyAs(t.Context(), f.owner.Caller, "ci")
	is.NoErr(err)
	works := func(secret string, want bool) {
		t.Helper()
		_, err := f.Authenticate(t.Context(), secret)
		is.Equal(err == nil, want)
	}
	next, successor, err := f.RollKeyAs(t.Context(), f.owner.Caller, old.ID)
	is.NoErr(err)
	is.Equal([]string{next.Name, next.UserID, next.Prefix}, []string{"ci", f.owner.UserID, successor[:12]})
	is.True(next.ID != old.ID && next.ExpiresAt == nil)
	_, _, err = f.RollKeyAs(t.Context(), f.owner.Caller, old.ID)
	is.True(store.IsKind(err, store.Conflict)) // once
	f.clock.advance(store.RollGrace - time.Millisecond)
	works(secret, true)
	works(successor, true)
	f.clock.advance(time.Millisecond)
	works(secret, false)
	works(successor, true)

	again, third, err := f.RollKey(t.Context(), successor, "") // by the command line
	is.NoErr(err)
	works(third, true)
	_, err = f.RevokeKeyAs(t.Context(), f.owner.Caller, next.ID) // before its day is over
	is.NoErr(err)
	works(successor, false)
	_, _, err = f.RollKey(t.Context(), successor, "")
	is.True(store.IsKind(err, store.Conflict)) // nothing is left to succeed
	_, _, err = f.RollKey(t.Context(), "jm_live_none", "")
	is.True(store.IsNotFound(err))

	log, err := f.Strings(t.Context(), `SELECT action || ' ' || subject || ' ' || coalesce(user_id = ?, 'nobody') FROM audit_log WHERE num > 2 ORDER BY num`, f.owner.UserID)
	is.NoErr(err)
	is.Equal(log, []string{"key.create " + old.ID + " 1", "key.roll " + old.ID + " 1", "key.roll " + next.ID + " nobody", "key.revoke " + next.ID + " 1"})
	details, err := f.Strings(t.Context(), `SELECT detail FROM audit_log WHERE action = 'key.roll' ORDER BY num`)
	is.NoErr(err)
	is.True(strings.Contains(details[0], next.ID) && strings.Contains(details[1], again.ID)) // what succeeds it
	for _, s := range []string{secret, successor, third} {
		is.True(!strings.Contains(strings.Join(details, ""), s[12:])) // and no secret
	}
}

// TestKeysAfterDemotion has requests arrive that were on their way when the caller's
// role was changed, or ended.
func TestKeysAfterDemotion(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	owners, _, err := f.CreateKeyAs(t.Context(), f.owner.Caller, "owner's")
	is.NoErr(err)
	was := f.caller("Acme", "ada@acme.test", store.RoleOwner).Caller
	refused := func() {
		t.Helper()
		_, _, err := f.CreateKeyAs(t.Context(), was, "late")
		is.True(store.IsKind(err, store.Forbidden))
		_, _, err = f.RollKeyAs(t.Context(), was, owners.ID)
		is.True(store.IsKind(err, store.Forbidden))
		_, err = f.RevokeKeyAs(t.Context(), was, owners.ID)
		is.True(store.IsKind(err, store.Forbidden))
	}
	_, err = f.ChangeRole(t.Context(), f.owner.Caller, was.UserID, store.RoleMember)
	is.NoErr(err)
	refused()
	_, err = f.RemoveMember(t.Context(), f.owner.Caller, was.UserID)
	is.NoErr(err)
	refused()
}

// TestWhoManagesKeys tries every role, and the keys of another organization.
func TestWhoManagesKeys(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	stranger := f.caller("Globex", "sam@globex.test", store.RoleOwner)
	for name, tt := range map[string]struct {
		who             store.Caller
		create, owner   store.Kind // of the refusal; 0 for none
		rollOwn, listed store.Kind
	}{
		"owner":    {who: f.owner.Caller},
		"admin":    {who: f.caller("Acme", "ada@acme.test", store.RoleAdmin).Caller, owner: store.Forbidden},
		"member":   {who: f.caller("Acme", "mo@acme.test", store.RoleMember).Caller, create: store.Forbidden, owner: store.Forbidden, rollOwn: store.Forbidden, listed: store.Forbidden},
		"stranger": {who: stranger.Caller, owner: store.NotFound, rollOwn: store.NotFound},
		"nobody":   {create: store.Forbidden, owner: store.Forbidden, rollOwn: store.Forbidden, listed: store.Forbidden},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			check := func(what string, want store.Kind, err error) {
				t.Helper()
				if want == 0 && err != nil || want != 0 && !store.IsKind(err, want) {
					t.Errorf("%s: %v", what, err)
				}
			}
			owners, _, err := f.CreateKeyAs(t.Context(), f.owner.Caller, "owner's")
			is.NoErr(err)
			secret, err := f.CreateKey(t.Context(), store.NewKey{Name: "robot's", Email: "robot@acme.test", OrganizationName: "Acme"})
			is.NoErr(err)
			robot, err := f.Authenticate(t.Context(), secret)
			is.NoErr(err)

			_, _, err = f.CreateKeyAs(t.Context(), tt.who, "own")
			check("create", tt.create, err)
			_, shown, err := f.RollKeyAs(t.Context(), tt.who, owners.ID)
			check("roll an Owner's", tt.owner, err)
			is.Equal(shown == "", tt.owner != 0) // no secret with a refusal
			_, _, err = f.RollKeyAs(t.Context(), tt.who, robot.KeyID)
			check("roll a Member's", tt.rollOwn, err)
			_, err = f.RevokeKeyAs(t.Context(), tt.who, robot.KeyID)
			check("revoke", tt.rollOwn, err)
			keys, _, err := f.OrganizationKeys(t.Context(), tt.who, "", 100)
			check("list", tt.listed, err)
			for _, k := range keys {
				is.Equal(k.ID == robot.KeyID && tt.who.OrganizationID != f.owner.OrganizationID, false) // another organization's
			}
		})
	}
}

// TestPagesOfKeys walks the list, newest first.
func TestPagesOfKeys(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	f.caller("Globex", "sam@globex.test", store.RoleOwner) // whose key is not listed
	want := []string{f.owner.KeyID}
	for range 4 {
		f.clock.advance(time.Second)
		k, _, err := f.CreateKeyAs(t.Context(), f.owner.Caller, "ci")
		is.NoErr(err)
		want = append([]string{k.ID}, want...)
	}
	for limit := range 7 {
		var got []string
		cursor := ""
		for pages := 0; pages == 0 || cursor != ""; pages++ {
			is.True(pages < 6) // it ends
			keys, next, err := f.OrganizationKeys(t.Context(), f.owner.Caller, cursor, limit)
			is.NoErr(err)
			is.True(len(keys) <= max(limit, 1))
			for _, k := range keys {
				got = append(got, k.ID)
			}
			cursor = next
		}
		is.Equal(got, want)
	}
	for _, cursor := range []string{"?", "bm9uZQ", strings.Repeat("A", 1<<16)} {
		_, _, err := f.OrganizationKeys(t.Context(), f.owner.Caller, cursor, 5)
		is.True(store.IsKind(err, store.Invalid)) // of no list
	}
	for _, name := range []string{"", strings.Repeat("x", 201)} {
		_, _, err := f.CreateKeyAs(t.Context(), f.owner.Caller, name)
		is.True(store.IsKind(err, store.Invalid))
	}
}
