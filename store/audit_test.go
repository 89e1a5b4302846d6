package store_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store/db"
	"journeyman/store/ordertest"
	"journeyman/store/people"
	"journeyman/store/workers"
)

// auditLog reads the whole log in pages of n entries.
func (f *fixture) auditLog(q people.AuditQuery, n int) (list []people.AuditEntry) {
	f.t.Helper()
	q.Limit = n
	for {
		page, next, err := f.People.AuditLog(f.ctx(), f.owner.Caller, q)
		is.New(f.t).NoErr(err)
		if list = append(list, page...); next == "" {
			return list
		}
		q.Cursor = next
	}
}

// TestAuditLog filters the audit log and reads it in pages.
func TestAuditLog(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	admin := f.caller("Acme", "ada@acme.test", people.RoleAdmin)
	admin.RemoteAddr = "10.0.0.9"
	f.caller("Globex", "sam@globex.test", people.RoleOwner)
	begun := f.clock.now().Add(time.Second)
	for range 10 {
		f.clock.advance(time.Second)
		is.NoErr(errOf(f.People.CreateKey(f.ctx(), admin.Caller, people.NewKey{Name: "a key"})))
		is.NoErr(errOf(f.People.CreateInvitation(f.ctx(), f.owner.Caller, "new@acme.test", people.RoleMember)))
	}
	for _, n := range []int{1, 3, 100} {
		is.Equal(len(f.auditLog(people.AuditQuery{After: begun}, n)), 20)
		is.Equal(len(f.auditLog(people.AuditQuery{After: begun, Before: begun.Add(2 * time.Second)}, n)), 4)
		is.Equal(len(f.auditLog(people.AuditQuery{Action: "invitation.create"}, n)), 10)
		is.Equal(len(f.auditLog(people.AuditQuery{Email: "ADA@acme.test"}, n)), 10)
		is.Equal(len(f.auditLog(people.AuditQuery{Email: "ada@acme.test", Action: "invitation.create"}, n)), 0)
		is.Equal(len(f.auditLog(people.AuditQuery{Email: "sam@globex.test"}, n)), 0)
		is.Equal(len(f.auditLog(people.AuditQuery{Email: "nobody@acme.test"}, n)), 0)
	}
	all := f.auditLog(people.AuditQuery{}, 7)
	is.Equal(len(all), 24) // with the entries for the membership and the first key of both members
	is.True(slices.IsSortedFunc(all, func(a, b people.AuditEntry) int { return b.CreatedAt.Compare(a.CreatedAt) }))
	e := all[1]
	is.Equal([]string{e.Email, e.KeyName, e.Action, e.Detail["name"].(string), e.RemoteAddr}, []string{"ada@acme.test", "test", "key.create", "a key", "10.0.0.9"})
	_, _, err := f.People.AuditLog(f.ctx(), f.caller("Acme", "mo@acme.test", people.RoleMember).Caller,
		people.AuditQuery{})
	is.True(db.IsKind(err, db.Forbidden))
	is.True(db.IsKind(errOf(f.People.AuditLog(f.ctx(), f.owner.Caller, people.AuditQuery{Cursor: "x"})), db.Invalid))
}

// TestEveryActionIsKnown makes every audited change, and compares the actions with the list of
// actions for filters.
func TestEveryActionIsKnown(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	callEverything(t, f)
	done := f.texts(`SELECT DISTINCT action FROM audit_log ORDER BY action`)
	for _, action := range done {
		if !slices.Contains(people.Actions(), action) {
			t.Errorf("%q is in the log and not in the list of actions", action)
		}
	}
	is.True(slices.IsSorted(people.Actions())) // the list of actions is not sorted
	ordertest.Above(is, len(done), 20)         // too few actions were audited
	secrets := f.texts(`SELECT detail FROM audit_log`)
	is.True(!strings.Contains(strings.Join(secrets, ""), "argon2")) // a leaked password hash
}

// TestAuditOfTools checks the audit entries for changes of a worker's tools.
func TestAuditOfTools(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	change := func(p workers.Patch) {
		is.NoErr(errOf(f.Workers.UpdateWorker(f.ctx(), f.owner.Caller, f.worker.ID, p)))
	}
	change(workers.Patch{Tools: &workers.ToolRules{{Tool: "read_file"}, {Tool: "web_fetch", Hosts: []string{"a.test",
		"*.b.test"}}}})
	change(workers.Patch{Tools: &workers.ToolRules{{Tool: "web_fetch", Hosts: []string{"a.test", "*.b.test"}},
		{Tool: "read_file"}}}) // the same rules
	change(workers.Patch{Tools: new(workers.ToolRules), StrangerTools: &workers.ToolRules{}})
	var got []string
	for _, action := range []string{"worker.tools", "worker.strangerTools"} {
		entries, _, err := f.People.AuditLog(f.ctx(), f.owner.Caller, people.AuditQuery{Action: action, Limit: 10})
		is.NoErr(err)
		for _, e := range entries {
			got = append(got, fmt.Sprint(e.Action, " ", e.Detail["from"], " -> ", e.Detail["to"]))
		}
	}
	is.Equal(strings.Join(got, "\n"), `worker.tools [read_file web_fetch: a.test *.b.test] -> default
worker.tools default -> [read_file web_fetch: a.test *.b.test]
worker.strangerTools default -> []`)
}
