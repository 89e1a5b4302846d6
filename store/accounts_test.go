package store_test

import (
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store"
	"journeyman/store/storetest"
)

func TestKeysFromMadeToRevoked(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	c := newClock()
	s := storetest.Open(t, store.Options{Now: c.now})
	has, err := s.HasKeys(t.Context())
	is.NoErr(err)
	is.True(!has)
	secret, err := s.CreateKey(t.Context(), store.NewKey{Name: "ci", Email: "Ann@Acme.test", OrganizationName: "Acme"})
	is.NoErr(err)
	is.True(strings.HasPrefix(secret, "jm_live_"))
	is.Equal(len(secret), len("jm_live_")+43)
	has, err = s.HasKeys(t.Context())
	is.NoErr(err)
	is.True(has)

	id, err := s.Authenticate(t.Context(), secret)
	is.NoErr(err)
	is.Equal(id.Role, store.RoleOwner) // the first of a new organization
	is.Equal([]string{id.OrganizationName, id.Email, id.KeyName, id.KeyPrefix}, []string{"Acme", "Ann@Acme.test", "ci", secret[:12]})
	is.Equal(id.Trigger, store.TriggerAPI)
	stored, err := s.Strings(t.Context(), `SELECT hex(hash) || prefix || name FROM api_keys`)
	is.NoErr(err)
	is.True(!strings.Contains(stored[0], secret[12:])) // only a hash is kept

	k, err := s.RevokeKey(t.Context(), secret[:12], "10.0.0.1")
	is.NoErr(err)
	is.Equal(k.Email, "Ann@Acme.test")
	is.True(k.RevokedAt.Equal(c.now()))
	_, err = s.Authenticate(t.Context(), secret)
	is.True(store.IsKind(err, store.Unauthorized))
	c.advance(time.Minute)
	again, err := s.RevokeKey(t.Context(), k.ID, "")
	is.NoErr(err)
	is.Equal(again.RevokedAt, k.RevokedAt) // changes nothing
	log, err := s.Strings(t.Context(), `SELECT action || ' ' || subject || ' ' || remote_addr FROM audit_log WHERE action <> 'member.add' ORDER BY num`)
	is.NoErr(err)
	is.Equal(log, []string{"key.create " + k.ID + " ", "key.revoke " + k.ID + " 10.0.0.1"})
	_, err = s.RevokeKey(t.Context(), "jm_live_none", "")
	is.True(store.IsKind(err, store.NotFound))
}

func TestUnknownKeys(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for _, secret := range []string{"", "jm_live_", "'; DROP TABLE api_keys; --", strings.Repeat("k", 1<<20), "\x00"} {
		_, err := f.Authenticate(t.Context(), secret)
		is.New(t).True(store.IsKind(err, store.Unauthorized))
	}
}

func TestKeysExpire(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	secret, err := f.CreateKey(t.Context(), store.NewKey{Name: "rolled", Email: "ann@acme.test", OrganizationName: "Acme"})
	is.NoErr(err)
	is.NoErr(f.Write(t.Context(), func(tx *store.Tx) error {
		_, err := tx.Exec(`UPDATE api_keys SET expires_at = ? WHERE prefix = ?`, f.clock.now().Add(24*time.Hour).UnixMilli(), secret[:12])
		return err
	}))
	f.clock.advance(24*time.Hour - time.Millisecond)
	_, err = f.Authenticate(t.Context(), secret)
	is.NoErr(err)
	f.clock.advance(time.Millisecond)
	_, err = f.Authenticate(t.Context(), secret)
	is.True(store.IsKind(err, store.Unauthorized))
}

func TestUseOfAKeyIsNotedOnceAMinute(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	c := newClock()
	s := storetest.Open(t, store.Options{Now: c.now})
	secret, err := s.CreateKey(t.Context(), store.NewKey{Name: "ci", Email: "a@b.test", OrganizationName: "Acme"})
	is.NoErr(err)
	used := func() int64 {
		is.NoErr(s.Ping(t.Context())) // what was offered before is written by now
		n, err := s.Ints(t.Context(), `SELECT coalesce(last_used_at, 0) FROM api_keys`)
		is.NoErr(err)
		return n[0]
	}
	authenticate := func() {
		_, err := s.Authenticate(t.Context(), secret)
		is.NoErr(err)
	}
	is.Equal(used(), int64(0))
	c.advance(10 * time.Second)
	authenticate()
	first := c.now().Truncate(time.Minute).UnixMilli()
	is.Equal(used(), first)
	is.NoErr(s.Write(t.Context(), func(tx *store.Tx) error {
		_, err := tx.Exec(`UPDATE api_keys SET last_used_at = 7`)
		return err
	}))
	c.advance(49 * time.Second)
	authenticate()
	is.Equal(used(), int64(7)) // not again in that minute
	c.advance(time.Second)
	authenticate()
	is.Equal(used(), first+60_000)
	keys, err := s.Keys(t.Context(), "")
	is.NoErr(err)
	is.Equal(keys[0].LastUsedAt.UnixMilli(), first+60_000)
}

func TestKeysNameUsersAndOrganizations(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	bob := f.caller("Acme", "bob@acme.test", "")
	is.Equal(bob.Role, store.RoleMember) // of an organization that has an owner
	is.Equal(bob.OrganizationID, f.owner.OrganizationID)
	same := f.caller("Acme", "BOB@acme.TEST", store.RoleAdmin)
	is.Equal(same.UserID, bob.UserID) // whatever the case
	is.Equal(same.Role, store.RoleAdmin)
	is.Equal(f.caller("Acme", "bob@acme.test", "").Role, store.RoleAdmin) // no role leaves it
	is.Equal(f.caller("Acme", "bob@acme.test", store.RoleMember).Role, store.RoleMember)
	elsewhere := f.caller("Globex", "bob@acme.test", "")
	is.Equal(elsewhere.UserID, bob.UserID)
	is.Equal(elsewhere.Role, store.RoleOwner)

	secret, err := f.CreateKey(t.Context(), store.NewKey{Name: "first owner's"})
	is.NoErr(err)
	who, err := f.Authenticate(t.Context(), secret)
	is.NoErr(err)
	is.Equal(who.UserID, f.owner.UserID)

	keys, err := f.Keys(t.Context(), "Globex")
	is.NoErr(err)
	is.Equal(len(keys), 1)
	keys, err = f.Keys(t.Context(), "")
	is.NoErr(err)
	is.Equal(len(keys), 7)
	_, err = f.RevokeKey(t.Context(), "jm_live_", "") // no prefix of any
	is.True(store.IsKind(err, store.NotFound))
}

func TestAGivenSecretIsUsedAsItIs(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	s := storetest.Open(t, store.Options{})
	n := store.NewKey{Name: "start", Email: "owner@localhost", Secret: "sixteen-letters!"}
	for range 2 { // a second start with the same key
		secret, err := s.CreateKey(t.Context(), n)
		is.NoErr(err)
		is.Equal(secret, n.Secret)
	}
	keys, err := s.Keys(t.Context(), store.DefaultOrganization)
	is.NoErr(err)
	is.Equal(len(keys), 1)
	n.Secret = "sixteen-letters?" // another with the same prefix
	_, err = s.CreateKey(t.Context(), n)
	is.NoErr(err)
	_, err = s.RevokeKey(t.Context(), n.Secret[:12], "")
	is.True(store.IsKind(err, store.Conflict))
	k, err := s.RevokeKey(t.Context(), n.Secret, "")
	is.NoErr(err)
	is.True(k.RevokedAt != nil)
	_, err = s.Authenticate(t.Context(), "sixteen-letters!")
	is.NoErr(err) // the other one stays
}

func TestNewKeysAreChecked(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, store.Options{})
	good := store.NewKey{Name: strings.Repeat("ä", 200), Email: "a@b.test", OrganizationName: "Acme"}
	for name, tt := range map[string]struct {
		change func(*store.NewKey)
		path   string
	}{
		"no name":             {func(n *store.NewKey) { n.Name = "" }, "name"},
		"long name":           {func(n *store.NewKey) { n.Name += "x" }, "name"},
		"long organization":   {func(n *store.NewKey) { n.OrganizationName = strings.Repeat("x", 201) }, "organization"},
		"unknown role":        {func(n *store.NewKey) { n.Role = "god" }, "role"},
		"short secret":        {func(n *store.NewKey) { n.Secret = "fifteen-letters" }, "secret"},
		"secret with spaces":  {func(n *store.NewKey) { n.Secret = "a secret with spaces" }, "secret"},
		"secret beyond ASCII": {func(n *store.NewKey) { n.Secret = "schlüssel-schlüssel" }, "secret"},
		"no address":          {func(n *store.NewKey) { n.Email = "ann" }, "user"},
		"a header in it":      {func(n *store.NewKey) { n.Email = "a@b.test\r\nBcc: x@y.test" }, "user"},
		"a display name":      {func(n *store.NewKey) { n.Email = "Ann <a@b.test>" }, "user"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			n := good
			tt.change(&n)
			_, err := s.CreateKey(t.Context(), n)
			is.True(store.IsKind(err, store.Invalid))
			is.Equal(err.(*store.Error).Details[0].Path, tt.path)
		})
	}
	_, err := s.CreateKey(t.Context(), good)
	is.New(t).NoErr(err)
	_, err = storetest.Open(t, store.Options{}).CreateKey(t.Context(), store.NewKey{Name: "nobody's"})
	is.New(t).True(store.IsKind(err, store.Invalid)) // no owner yet
}
