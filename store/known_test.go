package store_test

import (
	"context"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store/db"
	"journeyman/store/ordertest"
	"journeyman/store/people"
)

// A callerChange changes data of the caller ben that the store caches.
type callerChange struct {
	change func(f *fixture, ben people.Identity) error
	sees   func(ben *people.Identity) // applies the change to an identity
	ends   bool                       // the key is refused after the change
}

var callerChanges = map[string]callerChange{
	"revoked": {change: func(f *fixture, ben people.Identity) error {
		return errOf(f.People.RevokeKey(f.ctx(), f.owner.Caller, ben.KeyID))
	}, ends: true},
	"expired": {change: func(f *fixture, ben people.Identity) error {
		_, _, err := f.People.RollKey(f.ctx(), f.owner.Caller, ben.KeyID)
		f.clock.advance(people.RollGrace - time.Second)
		for range 2 { // while the identity is cached
			if _, again := f.People.Authenticate(f.ctx(), benSecret); again != nil {
				return again
			}
			f.clock.advance(time.Second / 2)
		}
		return err
	}, ends: true},
	"removed": {change: func(f *fixture, ben people.Identity) error {
		return errOf(f.People.RemoveMember(f.ctx(), f.owner.Caller, ben.UserID))
	}, ends: true},
	"role": {change: func(f *fixture, ben people.Identity) error {
		return errOf(f.People.ChangeRole(f.ctx(), f.owner.Caller, ben.UserID, people.RoleMember))
	}, sees: func(ben *people.Identity) { ben.Role = people.RoleMember }},
	"user's name": {change: func(f *fixture, ben people.Identity) error {
		return f.People.RenameUser(f.ctx(), ben.Caller, "Benjamin")
	}, sees: func(ben *people.Identity) { ben.UserName = "Benjamin" }},
	"organization's name": {change: func(f *fixture, _ people.Identity) error {
		return f.People.UpdateOrganization(f.ctx(), f.owner.Caller, people.OrganizationSettings{Name: "Acme Ltd"})
	}, sees: func(ben *people.Identity) { ben.OrganizationName = "Acme Ltd" }},
	"undone": {change: func(f *fixture, _ people.Identity) error {
		undone := errors.New("undone")
		err := f.Write(f.ctx(), func(tx db.Tx) error {
			f.People.ForgetKnown(tx)
			return undone
		})
		if !errors.Is(err, undone) {
			return errors.Join(err, errors.New("the write was not undone"))
		}
		return nil
	}, sees: func(*people.Identity) {}},
	"changed by hand": {change: func(f *fixture, ben people.Identity) error {
		f.exec(`UPDATE users SET name = 'B' WHERE id = ?`, ben.UserID)
		f.clock.advance(10 * time.Second)
		return nil
	}, sees: func(ben *people.Identity) { ben.UserName = "B" }},
}

// TestKnownCallers changes cached data of a caller. The next request must see each change.
func TestKnownCallers(t *testing.T) {
	t.Parallel()
	for name, tt := range callerChanges {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			f := newFixture(t)
			ben := f.ben()
			reads := f.EngineStats().Reads.Load()
			again, err := f.People.Authenticate(f.ctx(), benSecret)
			is.NoErr(err)
			is.Equal(again, ben)
			is.Equal(f.EngineStats().Reads.Load(), reads) // from the cache

			is.NoErr(tt.change(f, ben))
			for range 2 { // first from the database, then from the cache
				now, err := f.People.Authenticate(f.ctx(), benSecret)
				if tt.ends {
					is.True(db.IsKind(err, db.Unauthorized))
					continue
				}
				is.NoErr(err)
				tt.sees(&ben)
				is.Equal(now, ben)
			}
		})
	}
}

const benSecret = "jm_live_secret_of_ben"

// ben creates an Admin with a key, and returns the cached identity.
func (f *fixture) ben() people.Identity {
	f.t.Helper()
	is := is.New(f.t)
	_, _, err := f.People.CreateKey(f.ctx(), people.Operator(), people.NewKey{Name: "ci", Email: "ben@acme.test",
		OrganizationName: "Acme", Role: people.RoleAdmin, Secret: benSecret})
	is.NoErr(err)
	ben, err := f.People.Authenticate(f.ctx(), benSecret)
	is.NoErr(err)
	return ben
}

// TestKnownDuringAChange reads an identity during a write that changes it. The identity from before
// the commit must not be cached afterwards.
func TestKnownDuringAChange(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	f.ben()
	is.NoErr(f.Write(context.Background(), func(tx db.Tx) error {
		f.People.ForgetKnown(tx)
		_, err := tx.Exec(`UPDATE users SET name = 'B' WHERE email = 'ben@acme.test'`)
		if err != nil {
			return err
		}
		old, err := f.People.Authenticate(context.Background(), benSecret)
		is.NoErr(err)
		is.Equal(old.UserName, "ben") // not committed yet
		return nil
	}))
	ben, err := f.People.Authenticate(f.ctx(), benSecret)
	is.NoErr(err)
	is.Equal(ben.UserName, "B")
}

// TestKnownCap changes the cap of an organization. The new cap must apply to the next turn.
func TestKnownCap(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	f.accept(f.turn())
	none := 0.0
	settings := people.OrganizationSettings{Name: "Acme", MonthlyCreditCap: &none}
	is.NoErr(f.People.UpdateOrganization(f.ctx(), f.owner.Caller, settings))
	is.True(db.IsKind(errOf(f.CreateTurn(f.ctx(), f.turn())), db.PaymentRequired))
	left, limited, err := f.People.Allowance(f.ctx(), f.owner.OrganizationID)
	is.NoErr(err)
	is.True(limited)
	ordertest.AtMost(is, left, 0)
	settings.MonthlyCreditCap = nil
	is.NoErr(f.People.UpdateOrganization(f.ctx(), f.owner.Caller, settings))
	f.accept(f.turn())
}

// changeOfKnown matches a statement that may change cached data, and captures its table and its SET
// clause.
var changeOfKnown = regexp.MustCompile(
	`(?s)(?:UPDATE|DELETE FROM|REPLACE INTO) +(api_keys|organizations|users|memberships)\b(?: SET (.*?)(?: WHERE |$))?`)

// insertOfKnown matches an INSERT that changes an existing row with cached data, and captures like
// changeOfKnown.
var insertOfKnown = regexp.MustCompile(
	`(?s)INSERT INTO +(api_keys|organizations|users|memberships)\b.*?\bDO UPDATE SET (.*?)(?: WHERE |$)`)

// knownColumns matches assignments to cached columns, by table.
var knownColumns = map[string]*regexp.Regexp{
	"api_keys": regexp.MustCompile(
		`\b(id|name|prefix|organization_id|user_id|hash|revoked_at|expires_at|oauth_grant_id) = `),
	"organizations": regexp.MustCompile(`\b(id|name|monthly_credit_cap) = `),
	"users":         regexp.MustCompile(`\b(id|name|email) = `),
	"memberships":   regexp.MustCompile(`\b(organization_id|user_id|role) = `),
}

// TestChangesOfKnownColumns finds the statements that change cached data. Each must be in a
// function that calls ForgetKnown.
func TestChangesOfKnownColumns(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	files, err := filepath.Glob("*.go")
	is.NoErr(err)
	inRooms, err := filepath.Glob("*/*.go")
	is.NoErr(err)
	files = append(files, inRooms...)
	found, set := 0, token.NewFileSet()
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(set, file, nil, parser.SkipObjectResolution)
		is.NoErr(err)
		for _, d := range parsed.Decls {
			changes, forgets := changesKnown(d)
			if changes {
				found++
			}
			if changes && !forgets {
				t.Errorf("%v: a statement changes identities or caps, and nothing calls ForgetKnown", set.Position(d.Pos()))
			}
		}
	}
	is.Equal(found, 11)
}

// TestChangesKnown checks which statements TestChangesOfKnownColumns finds.
func TestChangesKnown(t *testing.T) {
	t.Parallel()
	for statement, want := range map[string]bool{
		"SELECT name FROM users":                                        false,
		"UPDATE users SET name = ? WHERE id = ?":                        true,
		"UPDATE users SET seen_at = ? WHERE name = ?":                   false,
		"DELETE FROM memberships WHERE user_id = ?":                     true,
		"INSERT OR REPLACE INTO users (id) VALUES (?)":                  true,
		"INSERT INTO users (id, name) VALUES (?, ?)":                    false,
		"INSERT INTO users (id) VALUES (?) ON CONFLICT (id) DO NOTHING": false,
		"INSERT INTO memberships (role) VALUES (?)\n\t\tON CONFLICT (user_id)\n\t\tDO UPDATE SET role = excluded.role": true,
		"INSERT INTO api_keys (id) VALUES (?) ON CONFLICT (id) DO UPDATE SET used_at = ? WHERE id = ?":                 false,
	} {
		is := is.New(t)
		parsed, err := parser.ParseFile(token.NewFileSet(), "", "package p\nconst q = `"+statement+"`", parser.SkipObjectResolution)
		is.NoErr(err)
		changes, _ := changesKnown(parsed.Decls[0])
		is.Equal(changes, want)
	}
}

// changesKnown reports whether a declaration contains a statement that changes cached data, and
// whether it calls ForgetKnown.
func changesKnown(d ast.Decl) (changes, forgets bool) {
	ast.Inspect(d, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			forgets = forgets || n.Sel.Name == "ForgetKnown"
		case *ast.BasicLit:
			for _, form := range []*regexp.Regexp{changeOfKnown, insertOfKnown} {
				m := form.FindStringSubmatch(strings.Trim(n.Value, "`\""))
				changes = changes || m != nil && (m[2] == "" || knownColumns[m[1]].MatchString(m[2]))
			}
		}
		return true
	})
	return changes, forgets
}
