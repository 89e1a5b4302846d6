package store_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store"
)

// auditLog reads the whole log by pages of n.
func (f *fixture) auditLog(q store.AuditQuery, n int) (list []store.AuditEntry) {
	f.t.Helper()
	q.Limit = n
	for {
		page, next, err := f.AuditLog(f.ctx(), f.owner.Caller, q)
		if err != nil {
			f.t.Fatal(err)
		}
		if list = append(list, page...); next == "" {
			return list
		}
		q.Cursor = next
	}
}

// TestAuditLog filters and pages.
func TestAuditLog(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	admin := f.caller("Acme", "ada@acme.test", store.RoleAdmin)
	admin.RemoteAddr = "10.0.0.9"
	f.caller("Globex", "sam@globex.test", store.RoleOwner)
	begun := f.clock.now().Add(time.Second)
	for range 10 {
		f.clock.advance(time.Second)
		_, _, err := f.CreateKeyAs(f.ctx(), admin.Caller, "a key")
		is.NoErr(err)
		_, _, err = f.CreateInvitation(f.ctx(), f.owner.Caller, "new@acme.test", store.RoleMember)
		is.NoErr(err)
	}
	for _, n := range []int{1, 3, 100} {
		is.Equal(len(f.auditLog(store.AuditQuery{After: begun}, n)), 20)
		is.Equal(len(f.auditLog(store.AuditQuery{After: begun, Before: begun.Add(2 * time.Second)}, n)), 4)
		is.Equal(len(f.auditLog(store.AuditQuery{Action: "invitation.create"}, n)), 10)
		is.Equal(len(f.auditLog(store.AuditQuery{Email: "ADA@acme.test"}, n)), 10)
		is.Equal(len(f.auditLog(store.AuditQuery{Email: "ada@acme.test", Action: "invitation.create"}, n)), 0)
		is.Equal(len(f.auditLog(store.AuditQuery{Email: "sam@globex.test"}, n)), 0)
		is.Equal(len(f.auditLog(store.AuditQuery{Email: "nobody@acme.test"}, n)), 0)
	}
	all := f.auditLog(store.AuditQuery{}, 7)
	is.Equal(len(all), 24) // with both members' adding and first key
	is.True(slices.IsSortedFunc(all, func(a, b store.AuditEntry) int { return b.CreatedAt.Compare(a.CreatedAt) }))
	e := all[1]
	is.Equal([]string{e.Email, e.KeyName, e.Action, e.Detail["name"].(string), e.RemoteAddr}, []string{"ada@acme.test", "test", "key.create", "a key", "10.0.0.9"})
	_, _, err := f.AuditLog(f.ctx(), f.caller("Acme", "mo@acme.test", store.RoleMember).Caller, store.AuditQuery{})
	is.True(store.IsKind(err, store.Forbidden))
	_, _, err = f.AuditLog(f.ctx(), f.owner.Caller, store.AuditQuery{Cursor: "x"})
	is.True(store.IsKind(err, store.Invalid))
}

// TestEveryActionIsKnown does everything that is logged, and compares with the list
// that the log can be filtered by.
func TestEveryActionIsKnown(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	callEverything(t, f)
	done, err := f.Strings(f.ctx(), `SELECT DISTINCT action FROM audit_log ORDER BY action`)
	is.NoErr(err)
	for _, action := range done {
		if !slices.Contains(store.Actions(), action) {
			t.Errorf("%q is in the log and not in the list of actions", action)
		}
	}
	is.True(slices.IsSorted(store.Actions()))
	is.True(len(done) > 20)
	secrets, err := f.Strings(f.ctx(), `SELECT detail FROM audit_log`)
	is.NoErr(err)
	is.True(!strings.Contains(strings.Join(secrets, ""), "argon2")) // and no secret is
}
