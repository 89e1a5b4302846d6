package store_test

import (
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/ordertest"
	"journeyman/store/people"
	"journeyman/store/storetest"
)

func TestKeysFromMadeToRevoked(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	c := newClock()
	s := storetest.Open(t, store.Options{Now: c.now})
	has, err := s.People.HasKeys(t.Context())
	is.NoErr(err)
	is.True(!has)
	_, secret, err := s.People.CreateKey(t.Context(), people.Operator(), people.NewKey{Name: "ci", Email: "Ann@Acme.test",
		OrganizationName: "Acme"})
	is.NoErr(err)
	is.True(strings.HasPrefix(secret, "jm_live_")) // the secret has another prefix
	is.Equal(len(secret), len("jm_live_")+43)
	has, err = s.People.HasKeys(t.Context())
	is.NoErr(err)
	is.True(has)

	id, err := s.People.Authenticate(t.Context(), secret)
	is.NoErr(err)
	is.Equal(id.Role, people.RoleOwner) // the first user of a new organization
	is.Equal([]string{id.OrganizationName, id.Email, id.KeyName, id.KeyPrefix}, []string{"Acme", "Ann@Acme.test", "ci", secret[:12]})
	is.Equal(id.Trigger, people.TriggerAPI)
	for _, columns := range []string{"hash", "prefix || name"} {
		stored, err := s.Strings(t.Context(), `SELECT `+columns+` FROM api_keys`)
		is.NoErr(err)
		is.True(!strings.Contains(stored[0], secret[12:])) // only a hash is stored
	}

	operator := people.Operator()
	operator.RemoteAddr = "10.0.0.1"
	k, err := s.People.RevokeKey(t.Context(), operator, secret[:12])
	is.NoErr(err)
	is.Equal(k.Email, "Ann@Acme.test")
	is.True(k.RevokedAt.Equal(c.now()))
	is.True(db.IsKind(errOf(s.People.Authenticate(t.Context(), secret)), db.Unauthorized))
	c.advance(time.Minute)
	again, err := s.People.RevokeKey(t.Context(), people.Operator(), k.ID)
	is.NoErr(err)
	is.Equal(again.RevokedAt, k.RevokedAt) // a second revocation changes nothing
	log, err := s.Strings(t.Context(), `SELECT action || ' ' || subject || ' ' || remote_addr FROM audit_log WHERE action <> 'member.add' ORDER BY num`)
	is.NoErr(err)
	is.Equal(log, []string{"key.create " + k.ID + " ", "key.revoke " + k.ID + " 10.0.0.1"})
	is.True(db.IsKind(errOf(s.People.RevokeKey(t.Context(), people.Operator(), "jm_live_none")), db.NotFound))
}

func TestUnknownKeys(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for _, secret := range []string{"", "jm_live_", "'; DROP TABLE api_keys; --", strings.Repeat("k", 1<<20), "\x00"} {
		_, err := f.People.Authenticate(t.Context(), secret)
		is.New(t).True(db.IsKind(err, db.Unauthorized))
	}
}

func TestKeysExpire(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	_, secret, err := f.People.CreateKey(t.Context(), people.Operator(), people.NewKey{Name: "rolled",
		Email: "ann@acme.test", OrganizationName: "Acme"})
	is.NoErr(err)
	f.exec(`UPDATE api_keys SET expires_at = ? WHERE prefix = ?`, f.clock.now().Add(24*time.Hour).UnixMilli(), secret[:12])
	f.clock.advance(24*time.Hour - time.Millisecond)
	is.NoErr(errOf(f.People.Authenticate(t.Context(), secret)))
	f.clock.advance(time.Millisecond)
	is.True(db.IsKind(errOf(f.People.Authenticate(t.Context(), secret)), db.Unauthorized))
}

func TestUseOfAKeyIsNotedOnceAMinute(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	c := newClock()
	c.advance(time.Second)
	s := storetest.Open(t, store.Options{Now: c.now})
	key, secret, err := s.People.CreateKey(t.Context(), people.Operator(), people.NewKey{Name: "ci", Email: "a@b.test",
		OrganizationName: "Acme"})
	is.NoErr(err)
	used := func() int64 {
		is.NoErr(s.Ping(t.Context())) // earlier uses are written by now
		n, err := s.Ints(t.Context(), `SELECT coalesce(last_used_at, 0) FROM api_keys`)
		is.NoErr(err)
		return n[0]
	}
	authenticate := func() {
		is.NoErr(errOf(s.People.Authenticate(t.Context(), secret)))
	}
	is.Equal(used(), int64(0))
	c.advance(10 * time.Second)
	authenticate()
	first := c.now().Truncate(time.Minute).UnixMilli()
	// The minute of the use began before the key was created.
	storetest.Eventually(t, "the use to be noted", func() bool { return used() == key.CreatedAt.UnixMilli() })
	storetest.Exec(t, s, `UPDATE api_keys SET last_used_at = 7`)
	c.advance(48 * time.Second)
	authenticate()
	is.Equal(used(), int64(7)) // at most once a minute
	c.advance(time.Second)
	authenticate()
	storetest.Eventually(t, "the use to be noted again", func() bool { return used() == first+60_000 })
	keys, err := s.People.Keys(t.Context(), "")
	is.NoErr(err)
	is.Equal(keys[0].LastUsedAt.UnixMilli(), first+60_000)
}

func TestKeysNameUsersAndOrganizations(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	bob := f.caller("Acme", "bob@acme.test", "")
	is.Equal(bob.Role, people.RoleMember) // the organization already has an owner
	is.Equal(bob.OrganizationID, f.owner.OrganizationID)
	same := f.caller("Acme", "BOB@acme.TEST", people.RoleAdmin)
	is.Equal(same.UserID, bob.UserID) // addresses ignore case
	is.Equal(same.Role, people.RoleAdmin)
	is.Equal(f.caller("Acme", "bob@acme.test", "").Role, people.RoleAdmin) // it stays
	is.Equal(f.caller("Acme", "bob@acme.test", people.RoleMember).Role, people.RoleMember)
	elsewhere := f.caller("Globex", "bob@acme.test", "")
	is.Equal(elsewhere.UserID, bob.UserID)
	is.Equal(elsewhere.Role, people.RoleOwner)

	_, secret, err := f.People.CreateKey(t.Context(), people.Operator(), people.NewKey{Name: "first owner's"})
	is.NoErr(err)
	who, err := f.People.Authenticate(t.Context(), secret)
	is.NoErr(err)
	is.Equal(who.UserID, f.owner.UserID)

	keys, err := f.People.Keys(t.Context(), "Globex")
	is.NoErr(err)
	is.Equal(len(keys), 1)
	keys, err = f.People.Keys(t.Context(), "")
	is.NoErr(err)
	is.Equal(len(keys), 7)
	_, err = f.People.RevokeKey(t.Context(), people.Operator(), "jm_live_") // not the prefix of a key
	is.True(db.IsKind(err, db.NotFound))
}

func TestConfiguredSecretIsUsedUnchanged(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	s := storetest.Open(t, store.Options{})
	n := people.NewKey{Name: "start", Email: "owner@localhost", Secret: "sixteen-letters!"}
	for range 2 { // the second start uses the same key
		_, secret, err := s.People.CreateKey(t.Context(), people.Operator(), n)
		is.NoErr(err)
		is.Equal(secret, n.Secret)
	}
	keys, err := s.People.Keys(t.Context(), people.DefaultOrganization)
	is.NoErr(err)
	is.Equal(len(keys), 1)
	n.Secret = "sixteen-letters?" // another secret with the same prefix
	is.NoErr(errOf(s.People.CreateKey(t.Context(), people.Operator(), n)))
	is.True(db.IsKind(errOf(s.People.RevokeKey(t.Context(), people.Operator(), n.Secret[:12])), db.Conflict))
	k, err := s.People.RevokeKey(t.Context(), people.Operator(), n.Secret)
	is.NoErr(err)
	is.True(k.RevokedAt != nil)
	is.NoErr(errOf(s.People.Authenticate(t.Context(), "sixteen-letters!"))) // the other key stays valid
}

func TestNewKeysAreChecked(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, store.Options{})
	good := people.NewKey{Name: strings.Repeat("ä", 200), Email: "a@b.test", OrganizationName: "Acme"}
	for name, tt := range map[string]struct {
		change func(*people.NewKey)
		path   string
	}{
		"no name":             {func(n *people.NewKey) { n.Name = "" }, "name"},
		"long name":           {func(n *people.NewKey) { n.Name += "x" }, "name"},
		"long organization":   {func(n *people.NewKey) { n.OrganizationName = strings.Repeat("x", 201) }, "organization"},
		"unknown role":        {func(n *people.NewKey) { n.Role = "god" }, "role"},
		"short secret":        {func(n *people.NewKey) { n.Secret = "fifteen-letters" }, "secret"},
		"secret with spaces":  {func(n *people.NewKey) { n.Secret = "a secret with spaces" }, "secret"},
		"secret beyond ASCII": {func(n *people.NewKey) { n.Secret = "schlüssel-schlüssel" }, "secret"},
		"no address":          {func(n *people.NewKey) { n.Email = "ann" }, "user"},
		"a header in it":      {func(n *people.NewKey) { n.Email = "a@b.test\r\nBcc: x@y.test" }, "user"},
		"a display name":      {func(n *people.NewKey) { n.Email = "Ann <a@b.test>" }, "user"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			n := good
			tt.change(&n)
			_, _, err := s.People.CreateKey(t.Context(), people.Operator(), n)
			is.True(db.IsKind(err, db.Invalid))
			is.Equal(err.(*db.Error).Details[0].Path, tt.path)
		})
	}
	_, _, err := s.People.CreateKey(t.Context(), people.Operator(), good)
	is.New(t).NoErr(err)
	_, _, err = storetest.Open(t, store.Options{}).People.CreateKey(t.Context(), people.Operator(),
		people.NewKey{Name: "nobody's"})
	is.New(t).True(db.IsKind(err, db.Invalid)) // there is no owner yet
}

// TestRolledKeys checks that the old key remains valid for one day after it was rolled.
func TestRolledKeys(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	old, secret, err := f.People.CreateKey(t.Context(), f.owner.Caller, people.NewKey{Name: "ci"})
	is.NoErr(err)
	works := func(secret string, want bool) {
		t.Helper()
		_, err := f.People.Authenticate(t.Context(), secret)
		is.Equal(err == nil, want)
	}
	next, successor, err := f.People.RollKey(t.Context(), f.owner.Caller, old.ID)
	is.NoErr(err)
	is.Equal([]string{next.Name, next.UserID, next.Prefix}, []string{"ci", f.owner.UserID, successor[:12]})
	is.True(next.ID != old.ID && next.ExpiresAt == nil) // the rolled key is the old one, or expires
	_, _, err = f.People.RollKey(t.Context(), f.owner.Caller, old.ID)
	is.True(db.IsKind(err, db.Conflict)) // a key is rolled only once
	f.clock.advance(people.RollGrace - time.Millisecond)
	works(secret, true)
	works(successor, true)
	f.clock.advance(time.Millisecond)
	works(secret, false)
	works(successor, true)

	again, third, err := f.People.RollKey(t.Context(), people.Operator(), successor) // through the command line
	is.NoErr(err)
	works(third, true)
	is.NoErr(errOf(f.People.RevokeKey(t.Context(), f.owner.Caller, next.ID))) // before its day has passed
	works(successor, false)
	_, _, err = f.People.RollKey(t.Context(), people.Operator(), successor)
	is.True(db.IsKind(err, db.Conflict)) // revoked keys cannot be rolled
	is.True(db.IsNotFound(errOf(f.People.RollKey(t.Context(), people.Operator(), "jm_live_none"))))

	log := f.texts(`SELECT action || ' ' || subject || ' ' || iif(user_id = ?, '1', 'nobody') FROM audit_log WHERE num > 2 ORDER BY num`, f.owner.UserID)
	is.Equal(log, []string{"key.create " + old.ID + " 1", "key.roll " + old.ID + " 1", "key.roll " + next.ID + " nobody", "key.revoke " + next.ID + " 1"})
	details := f.texts(`SELECT detail FROM audit_log WHERE action = 'key.roll' ORDER BY num`)
	is.True(strings.Contains(details[0], next.ID) && strings.Contains(details[1], again.ID)) // the successors
	for _, s := range []string{secret, successor, third} {
		is.True(!strings.Contains(strings.Join(details, ""), s[12:])) // no secrets
	}
}

// TestKeysAfterDemotion sends requests that were authenticated before the caller's role was changed
// or removed.
func TestKeysAfterDemotion(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	owners, _, err := f.People.CreateKey(t.Context(), f.owner.Caller, people.NewKey{Name: "owner's"})
	is.NoErr(err)
	was := f.caller("Acme", "ada@acme.test", people.RoleOwner).Caller
	refused := func() {
		t.Helper()
		is.True(db.IsKind(errOf(f.People.CreateKey(t.Context(), was, people.NewKey{Name: "late"})), db.Forbidden))
		is.True(db.IsKind(errOf(f.People.RollKey(t.Context(), was, owners.ID)), db.Forbidden))
		is.True(db.IsKind(errOf(f.People.RevokeKey(t.Context(), was, owners.ID)), db.Forbidden))
	}
	is.NoErr(errOf(f.People.ChangeRole(t.Context(), f.owner.Caller, was.UserID, people.RoleMember)))
	refused()
	is.NoErr(errOf(f.People.RemoveMember(t.Context(), f.owner.Caller, was.UserID)))
	refused()
}

// TestWhoManagesKeys tries every role, and the keys of another organization.
func TestWhoManagesKeys(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	stranger := f.caller("Globex", "sam@globex.test", people.RoleOwner)
	for name, tt := range map[string]struct {
		who             people.Caller
		create, owner   db.Kind // kind of the refusal; 0 for none
		rollOwn, listed db.Kind
	}{
		"owner": {who: f.owner.Caller},
		"admin": {who: f.caller("Acme", "ada@acme.test", people.RoleAdmin).Caller, owner: db.Forbidden},
		"member": {who: f.caller("Acme", "mo@acme.test", people.RoleMember).Caller, create: db.Forbidden,
			owner: db.Forbidden, rollOwn: db.Forbidden, listed: db.Forbidden},
		"stranger": {who: stranger.Caller, owner: db.NotFound, rollOwn: db.NotFound},
		"nobody":   {create: db.Forbidden, owner: db.Forbidden, rollOwn: db.Forbidden, listed: db.Forbidden},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			check := func(what string, want db.Kind, err error) {
				t.Helper()
				if want == 0 && err != nil || want != 0 && !db.IsKind(err, want) {
					t.Errorf("%s: %v", what, err)
				}
			}
			owners, _, err := f.People.CreateKey(t.Context(), f.owner.Caller, people.NewKey{Name: "owner's"})
			is.NoErr(err)
			_, secret, err := f.People.CreateKey(t.Context(), people.Operator(), people.NewKey{Name: "robot's",
				Email: "robot@acme.test", OrganizationName: "Acme"})
			is.NoErr(err)
			robot, err := f.People.Authenticate(t.Context(), secret)
			is.NoErr(err)

			_, _, err = f.People.CreateKey(t.Context(), tt.who, people.NewKey{Name: "a robot's", Email: "robot@acme.test",
				OrganizationName: "Acme"})
			is.True(db.IsKind(err, db.Forbidden)) // no caller creates a key for another user
			_, _, err = f.People.CreateKey(t.Context(), tt.who, people.NewKey{Name: "own"})
			check("create", tt.create, err)
			_, shown, err := f.People.RollKey(t.Context(), tt.who, owners.ID)
			check("roll an Owner's", tt.owner, err)
			is.Equal(shown == "", tt.owner != 0) // a refusal returns no secret
			_, _, err = f.People.RollKey(t.Context(), tt.who, robot.KeyID)
			check("roll a Member's", tt.rollOwn, err)
			_, err = f.People.RevokeKey(t.Context(), tt.who, robot.KeyID)
			check("revoke", tt.rollOwn, err)
			keys, _, err := f.People.OrganizationKeys(t.Context(), tt.who, "", 100)
			check("list", tt.listed, err)
			for _, k := range keys {
				is.Equal(k.ID == robot.KeyID && tt.who.OrganizationID != f.owner.OrganizationID, false) // of another organization
			}
		})
	}
}

// TestPagesOfKeys reads the list in pages, newest first.
func TestPagesOfKeys(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	f.caller("Globex", "sam@globex.test", people.RoleOwner) // with a key that is not listed
	want := []string{f.owner.KeyID}
	for range 4 {
		f.clock.advance(time.Second)
		k, _, err := f.People.CreateKey(t.Context(), f.owner.Caller, people.NewKey{Name: "ci"})
		is.NoErr(err)
		want = append([]string{k.ID}, want...)
	}
	for limit := range 7 {
		got := walk(t, func(k people.Key) string { return k.ID }, func(cursor string) ([]people.Key, string, error) {
			keys, next, err := f.People.OrganizationKeys(t.Context(), f.owner.Caller, cursor, limit)
			ordertest.AtMost(is, len(keys), max(limit, 1)) // the page is longer than its limit
			return keys, next, err
		})
		is.Equal(got, want)
	}
	for _, cursor := range []string{"?", "bm9uZQ", strings.Repeat("A", 1<<16)} {
		_, _, err := f.People.OrganizationKeys(t.Context(), f.owner.Caller, cursor, 5)
		is.True(db.IsKind(err, db.Invalid)) // the cursor belongs to no list
	}
	for _, name := range []string{"", strings.Repeat("x", 201)} {
		is.True(db.IsKind(errOf(f.People.CreateKey(t.Context(), f.owner.Caller, people.NewKey{Name: name})), db.Invalid))
	}
}
