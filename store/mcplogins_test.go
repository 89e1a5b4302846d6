package store_test

import (
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/store/db"
	"journeyman/store/storetest"
)

func TestSignInsToServersAreSealed(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	none, err := f.People.MCPLogin(f.ctx(), "web")
	is.NoErr(err)
	is.Equal(none, nil) // there is a sign-in before the first
	is.NoErr(f.People.SetMCPLogin(f.ctx(), "web", []byte(`{"access":"t0ken"}`)))
	is.NoErr(f.People.SetMCPLogin(f.ctx(), "web", []byte(`{"access":"t0ken-2"}`)))
	got, err := f.People.MCPLogin(f.ctx(), "web")
	is.NoErr(err)
	is.Equal(string(got), `{"access":"t0ken-2"}`)
	stored := f.texts(`SELECT sealed FROM mcp_logins`)
	is.True(len(stored) == 1 && !strings.Contains(stored[0], "t0ken")) // a token in plain text

	// A row that is copied to another server's name cannot be decrypted.
	storetest.Exec(t, f.Store, `INSERT INTO mcp_logins SELECT 'other', sealed, updated_at FROM mcp_logins`)
	is.True(db.IsKind(errOf(f.People.MCPLogin(f.ctx(), "other")), db.Conflict)) // another server gets the token
	err = f.People.SetMCPLogin(f.ctx(), "web", make([]byte, 1<<20))
	is.True(db.IsKind(err, db.TooLarge)) // a hostile answer could fill the database
	is.NoErr(f.People.SetMCPLogin(f.ctx(), "web", nil))
	none, err = f.People.MCPLogin(f.ctx(), "web")
	is.NoErr(err)
	is.Equal(none, nil) // the sign-in still exists

	is.NoErr(f.People.AuditMCPLogin(f.ctx(), f.owner.Caller, "web", true))
	is.True(f.Gate.BeginMaintenance()) // the audit entry of the sign-out must still be written
	is.NoErr(f.People.AuditMCPLogin(f.ctx(), f.owner.Caller, "web", false))
	log := f.texts(`SELECT action || ' ' || subject FROM audit_log WHERE action LIKE 'mcp.%' ORDER BY num`)
	is.Equal(log, []string{"mcp.signIn web", "mcp.signOut web"})
}
