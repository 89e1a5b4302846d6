package store_test

import (
	"crypto/sha256"
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store/db"
	"journeyman/store/people"
	"journeyman/store/storetest"
)

const verifier = "a-verifier-of-at-least-43-characters-0123456789"

// challenge returns the S256 challenge of verifier.
func challenge() string {
	sum := sha256.Sum256([]byte(verifier))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

const callback = "https://client.example/back"

// consent registers a client and grants it access for who. It returns the client and its code.
func (f *fixture) consent(who people.Identity) (people.OAuthClient, string) {
	f.t.Helper()
	is := is.New(f.t)
	client, err := f.People.RegisterOAuthClient(f.ctx(), "Assistant", []string{callback})
	is.NoErr(err)
	code, err := f.People.Consent(f.ctx(), who.Caller, people.Consent{ClientID: client.ID, RedirectURI: callback,
		CodeChallenge: challenge()})
	is.NoErr(err)
	return client, code
}

// tokens exchanges a code of the client for tokens.
func (f *fixture) tokens(client people.OAuthClient, code string) people.OAuthTokens {
	f.t.Helper()
	t, err := f.People.ExchangeCode(f.ctx(), people.OAuthExchange{ClientID: client.ID, Code: code, RedirectURI: callback,
		Verifier: verifier}, "10.0.0.1")
	is.New(f.t).NoErr(err)
	return t
}

func TestOAuthFromConsentToRevocation(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	c := f.clock
	ann := f.caller("Acme", "bob@acme.test", people.RoleMember)
	client, code := f.consent(ann)
	first := f.tokens(client, code)
	who, err := f.People.AuthenticateMCP(f.ctx(), first.Access)
	is.NoErr(err)
	is.Equal([]string{who.UserID, who.OrganizationID, string(who.Role), who.KeyName}, []string{ann.UserID, ann.OrganizationID, "member", "Assistant"})
	_, err = f.People.Authenticate(f.ctx(), first.Access)
	is.True(db.IsKind(err, db.Unauthorized)) // the token is valid for the whole API

	c.advance(people.OAuthTokenLifetime)
	is.True(db.IsKind(errOf(f.People.AuthenticateMCP(f.ctx(), first.Access)), db.Unauthorized)) // an hour has passed
	second, err := f.People.RefreshTokens(f.ctx(), client.ID, first.Refresh, "10.0.0.1")
	is.NoErr(err)
	again, err := f.People.AuthenticateMCP(f.ctx(), second.Access)
	is.NoErr(err)
	is.Equal(again.KeyID, who.KeyID) // usage and audit entries contain the same key
	grants, err := f.People.OAuthGrants(f.ctx(), ann.Caller)
	is.NoErr(err)
	is.Equal(len(grants), 1)
	is.Equal(grants[0].ClientName, "Assistant")

	// The first refresh token is used again, so it was stolen. The thief is unknown: either use may
	// be the legitimate one.
	is.True(errOf(f.People.RefreshTokens(f.ctx(), client.ID, first.Refresh,
		"10.6.6.6")) != nil) // a used refresh token works
	_, err = f.People.AuthenticateMCP(f.ctx(), second.Access)
	is.True(db.IsKind(err, db.Unauthorized)) // the newer access token still works
	_, err = f.People.RefreshTokens(f.ctx(), client.ID, second.Refresh, "10.0.0.1")
	is.True(err != nil) // the grant remains valid after the theft
	log := f.texts(`SELECT action || ' ' || remote_addr || ' ' || detail FROM audit_log WHERE action LIKE 'oauth%' ORDER BY num`)
	is.Equal(len(log), 2)
	is.True(strings.Contains(log[1], `oauth.revoke 10.6.6.6`) && strings.Contains(log[1], "reused"))
	secrets := f.texts(`SELECT count(refresh_hash) + count(code_hash) FROM oauth_grants`)
	is.Equal(secrets, []string{"0"}) // no valid token remains
}

func TestCodesThatDoNotWork(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(f *fixture, c *clock, x *people.OAuthExchange){
		"another client":   func(_ *fixture, _ *clock, x *people.OAuthExchange) { x.ClientID = "ocl_other" },
		"another address":  func(_ *fixture, _ *clock, x *people.OAuthExchange) { x.RedirectURI = "https://evil.example/" },
		"another verifier": func(_ *fixture, _ *clock, x *people.OAuthExchange) { x.Verifier += "x" },
		"no verifier":      func(_ *fixture, _ *clock, x *people.OAuthExchange) { x.Verifier = "" },
		"no code":          func(_ *fixture, _ *clock, x *people.OAuthExchange) { x.Code = "" },
		"a changed code":   func(_ *fixture, _ *clock, x *people.OAuthExchange) { x.Code += "x" },
		"too late":         func(_ *fixture, c *clock, _ *people.OAuthExchange) { c.advance(time.Minute) },
		"used": func(f *fixture, _ *clock, x *people.OAuthExchange) {
			_, _ = f.People.ExchangeCode(f.ctx(), *x,
				"")
		},
		"the member is gone": func(f *fixture, _ *clock, _ *people.OAuthExchange) { f.leave("bob@acme.test") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			f := newFixture(t)
			c := f.clock
			client, code := f.consent(f.caller("Acme", "bob@acme.test", people.RoleMember))
			x := people.OAuthExchange{ClientID: client.ID, Code: code, RedirectURI: callback, Verifier: verifier}
			change(f, c, &x)
			is.True(db.IsKind(errOf(f.People.ExchangeCode(f.ctx(), x, "")), db.Invalid)) // the code works
			is.Equal(f.count(`SELECT count(*) FROM api_keys WHERE oauth_grant_id IS NOT NULL AND revoked_at IS NULL`), int64(0))
			if name != "a changed code" && name != "no code" { // these belong to no grant
				x = people.OAuthExchange{ClientID: client.ID, Code: code, RedirectURI: callback, Verifier: verifier}
				_, err := f.People.ExchangeCode(f.ctx(), x, "")
				is.True(db.IsKind(err, db.Invalid)) // the code works after it was misused
			}
		})
	}
}

// leave removes a member from Acme.
func (f *fixture) leave(email string) {
	f.t.Helper()
	ids, err := f.Strings(f.ctx(), `SELECT id FROM users WHERE email = '`+email+`'`)
	if err != nil || len(ids) != 1 {
		f.t.Fatal(ids, err)
	}
	if _, err := f.People.RemoveMember(f.ctx(), f.owner.Caller, ids[0]); err != nil {
		f.t.Fatal(err)
	}
}

func TestGrantsEnd(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(f *fixture, owner, ann people.Identity, client people.OAuthClient,
		t people.OAuthTokens) error{
		"with the membership": func(f *fixture, _, _ people.Identity, _ people.OAuthClient, _ people.OAuthTokens) error {
			f.leave("bob@acme.test")
			return nil
		},
		"by their person": func(f *fixture, _, ann people.Identity, _ people.OAuthClient, _ people.OAuthTokens) error {
			grants, err := f.People.OAuthGrants(f.ctx(), ann.Caller)
			if err != nil || len(grants) != 1 {
				return err
			}
			return f.People.RevokeOAuthGrant(f.ctx(), ann.Caller, grants[0].ID)
		},
		"by an owner": func(f *fixture, owner, _ people.Identity, _ people.OAuthClient, t people.OAuthTokens) error {
			who, err := f.People.AuthenticateMCP(f.ctx(), t.Access)
			if err != nil {
				return err
			}
			if _, _, err := f.People.RollKey(f.ctx(), owner.Caller, who.KeyID); !db.IsKind(err, db.Conflict) {
				f.t.Error("an access token can be rolled:", err)
			}
			_, err = f.People.RevokeKey(f.ctx(), owner.Caller, who.KeyID)
			return err
		},
		"by the client": func(f *fixture, _, _ people.Identity, client people.OAuthClient, t people.OAuthTokens) error {
			return f.People.RevokeToken(f.ctx(), client.ID, t.Access, "")
		},
		"by the client's refresh token": func(f *fixture, _, _ people.Identity, client people.OAuthClient,
			t people.OAuthTokens) error {
			return f.People.RevokeToken(f.ctx(), client.ID, t.Refresh, "")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			f := newFixture(t)
			owner, ann := f.owner, f.caller("Acme", "bob@acme.test", people.RoleMember)
			client, code := f.consent(ann)
			tokens := f.tokens(client, code)
			is.NoErr(f.People.RevokeToken(f.ctx(), "ocl_other", tokens.Access, ""))    // another client's
			is.NoErr(f.People.RevokeToken(f.ctx(), client.ID, "jm_refresh_no.t.", "")) // no token
			err := f.People.RevokeOAuthGrant(f.ctx(), owner.Caller, "ogr_none")
			is.True(db.IsKind(err, db.NotFound))
			is.NoErr(errOf(f.People.AuthenticateMCP(f.ctx(), tokens.Access)))

			is.NoErr(end(f, owner, ann, client, tokens))
			_, err = f.People.AuthenticateMCP(f.ctx(), tokens.Access)
			is.True(db.IsKind(err, db.Unauthorized)) // the access token works
			_, err = f.People.RefreshTokens(f.ctx(), client.ID, tokens.Refresh, "")
			is.True(db.IsKind(err, db.Invalid)) // the refresh token works
			grants, err := f.People.OAuthGrants(f.ctx(), ann.Caller)
			is.NoErr(err)
			is.Equal(len(grants), 0)
		})
	}
}

func TestRedirectAddresses(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for uri, valid := range map[string]bool{
		"https://client.example/cb?x=1": true, "http://127.0.0.1/cb": true, "http://localhost:3334/cb": true,
		"http://[::1]:9/": true, "com.example.app:/oauth": true, "cursor://anysphere.mcp/oauth": true,
		"http://client.example/": false, "http://localhost.evil.example/": false, "https://user@client.example/": false,
		"https://client.example/#f": false, "https://client.example/#": false, "javascript:alert(1)": false,
		"data:text/html,x": false, "file:///etc/passwd": false, "https://": false, "/relative": false, "": false,
		"https://a.example;script-src *": false, "https://a.example/\nX: y": false, "https://a,b.example/": false,
		"https://client.example/" + strings.Repeat("a", 2000): false, "ftp://client.example/": false, "x.y": false,
	} {
		t.Run(uri, func(t *testing.T) {
			is := is.New(t)
			_, err := f.People.RegisterOAuthClient(t.Context(), "x", []string{uri})
			is.Equal(err == nil, valid)
		})
	}
	is := is.New(t)
	c := people.OAuthClient{RedirectURIs: []string{"http://127.0.0.1/cb", "https://client.example/cb"}}
	is.True(c.Redirects("http://127.0.0.1:4711/cb")) // the client may choose the port
	for _, uri := range []string{"http://127.0.0.1:4711/other", "https://client.example:8443/cb", "https://client.example/cb/", "http://localhost/cb", ""} {
		is.True(!c.Redirects(uri)) // the browser would be sent to an unregistered address
	}
}

func TestUnusedProgramsArePruned(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	c := f.clock
	ann := f.caller("Acme", "bob@acme.test", people.RoleMember)
	kept, code := f.consent(ann)
	f.tokens(kept, code)
	unused, _ := f.consent(ann) // its code is never used
	c.advance(31 * 24 * time.Hour)
	n, err := f.People.PruneOAuth(f.ctx(), 10)
	is.NoErr(err)
	is.Equal(n, int64(1))
	is.True(db.IsKind(errOf(f.People.OAuthClient(f.ctx(), unused.ID)), db.NotFound)) // the unused client remains
	is.NoErr(errOf(f.People.OAuthClient(f.ctx(), kept.ID)))

	// A flood fills the table: only an old client may be deleted for a new one.
	storetest.Exec(t, f.Store, `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 9999)
		INSERT INTO oauth_clients SELECT 'ocl_' || i, 'x', '[]', ?1, ?1 FROM n`, c.now().UnixMilli())
	_, err = f.People.RegisterOAuthClient(f.ctx(), "late", []string{callback})
	is.True(db.IsKind(err, db.Limited)) // every client is new
	c.advance(2 * time.Hour)
	is.NoErr(errOf(f.People.RegisterOAuthClient(f.ctx(), "late", []string{callback})))
}
