package store_test

import (
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/people"
	"journeyman/store/workers"
)

// TestRoles tries every change of every role by a caller of every role.
func TestRoles(t *testing.T) {
	t.Parallel()
	roles := []people.Role{people.RoleOwner, people.RoleAdmin, people.RoleMember}
	for _, by := range roles {
		t.Run(string(by), func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			f := newFixture(t)
			who := f.caller("Acme", "by@acme.test", by)
			for _, from := range roles {
				for _, to := range append(roles, "") { // "" means removal
					target := f.caller("Acme", "target@acme.test", from)
					var err error
					if to == "" {
						_, err = f.People.RemoveMember(f.ctx(), who.Caller, target.UserID)
					} else {
						_, err = f.People.ChangeRole(f.ctx(), who.Caller, target.UserID, to)
					}
					allowed := by == people.RoleOwner || by == people.RoleAdmin && from != people.RoleOwner && to != people.RoleOwner
					if allowed != (err == nil) || err != nil && !db.IsKind(err, db.Forbidden) {
						t.Errorf("%s changes %s to %q: %v", by, from, to, err)
					}
					now, err := f.People.Member(f.ctx(), f.owner.Caller, target.UserID)
					switch {
					case allowed && to == "":
						is.True(db.IsNotFound(err))
					case allowed:
						is.Equal(now.Role, to)
					default:
						is.Equal(now.Role, from)
					}
				}
			}
		})
	}
}

// TestLastOwner checks that an organization keeps at least one Owner.
func TestLastOwner(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	f.caller("Globex", "ann@acme.test", people.RoleOwner) // does not count here
	is.True(db.IsKind(errOf(f.People.ChangeRole(f.ctx(), f.owner.Caller, f.owner.UserID, people.RoleAdmin)), db.Conflict))
	is.True(db.IsKind(errOf(f.People.RemoveMember(f.ctx(), f.owner.Caller, f.owner.UserID)), db.Conflict))
	other := f.caller("Acme", "other@acme.test", people.RoleOwner)
	is.NoErr(errOf(f.People.ChangeRole(f.ctx(), other.Caller, f.owner.UserID, people.RoleMember)))
	// The other owner sends a change at the same time.
	is.True(db.IsKind(errOf(f.People.ChangeRole(f.ctx(), f.owner.Caller, other.UserID, people.RoleMember)), db.Forbidden))
	is.True(db.IsNotFound(errOf(f.People.RemoveMember(f.ctx(), other.Caller, "usr_none"))))
	is.True(db.IsKind(errOf(f.People.ChangeRole(f.ctx(), other.Caller, f.owner.UserID, "king")), db.Invalid))
}

// TestRemoval checks that the end of a membership immediately ends everything that depends on it.
// Other organizations must not be affected.
func TestRemoval(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	// The member joins through the command line, before using this invitation.
	_, invitation, err := f.People.CreateInvitation(f.ctx(), f.owner.Caller, "Mo@acme.test", people.RoleAdmin)
	is.NoErr(err)
	mo := f.caller("Acme", "mo@acme.test", people.RoleMember)
	_, key, err := f.People.CreateKey(f.ctx(), f.caller("Acme", "mo@acme.test", people.RoleAdmin).Caller,
		people.NewKey{Name: "mine"})
	is.NoErr(err)
	session, err := f.People.CreateSession(f.ctx(), mo.Caller, "")
	is.NoErr(err)
	there := f.caller("Globex", "mo@acme.test", people.RoleMember)
	away, err := f.People.CreateSession(f.ctx(), mo.Caller, "")
	is.NoErr(err)
	_, id, err := f.People.SessionIdentity(f.ctx(), away)
	is.NoErr(err)
	is.NoErr(f.People.SwitchOrganization(f.ctx(), there.Caller, id, there.OrganizationID))
	own := f.newWorker(mo, workers.NewWorker{Visibility: workers.Private})
	private := f.newWorker(f.owner, workers.NewWorker{Visibility: workers.Private})
	is.NoErr(errOf(f.Workers.AddWorkerMember(f.ctx(), f.owner.Caller, private.ID, mo.UserID)))
	sch, _, err := f.CreateSchedule(f.ctx(), mo.Caller, store.NewSchedule{WorkerID: own.ID, Input: "x",
		Budget: store.BudgetLow, When: everySeconds(60)}, db.IdempotencyKey{})
	is.NoErr(err)

	is.NoErr(errOf(f.People.RemoveMember(f.ctx(), f.owner.Caller, mo.UserID)))
	is.True(db.IsNotFound(errOf(f.People.Link(f.ctx(), people.LinkInvitation, invitation))))
	is.True(db.IsKind(errOf(f.People.Authenticate(f.ctx(), key)), db.Unauthorized))
	is.True(db.IsKind(errOf(f.People.SessionIdentity(f.ctx(), session)), db.Unauthorized))
	who, _, err := f.People.SessionIdentity(f.ctx(), away)
	is.NoErr(err)
	is.Equal(who.OrganizationName, "Globex")
	is.True(db.IsKind(f.People.SwitchOrganization(f.ctx(), who.Caller, id, f.owner.OrganizationID), db.Forbidden))
	_, member, err := f.MailCaller(f.ctx(), f.owner.OrganizationID, "mo@acme.test")
	is.NoErr(err)
	is.True(!member)
	w, err := f.Workers.Worker(f.ctx(), f.owner.Caller, own.ID)
	is.NoErr(err)
	is.Equal(w.UserID, f.owner.UserID) // another member can now change the worker
	got, err := f.Schedule(f.ctx(), f.owner.Caller, own.ID, sch.ID)
	is.NoErr(err)
	is.True(got.Paused)
	detail := f.texts(`SELECT detail FROM audit_log WHERE action = 'member.remove'`)
	is.Equal(len(detail), 1)
	is.True(strings.Contains(detail[0], `"user":"mo@acme.test"`) && strings.Contains(detail[0], `"workers":1`))

	keys, _, err := f.People.OrganizationKeys(f.ctx(), f.owner.Caller, "", 100)
	is.NoErr(err)
	is.Equal(len(keys), 4) // the keys remain in the list

	// A member who is added again gets none of the old rights.
	back := f.caller("Acme", "mo@acme.test", people.RoleMember)
	is.True(db.IsKind(errOf(f.People.Authenticate(f.ctx(), key)), db.Unauthorized))
	is.True(db.IsKind(errOf(f.Workers.Worker(f.ctx(), back.Caller, private.ID)), db.Forbidden))
}

// TestMembers reads the members of one organization in pages.
func TestMembers(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	f.caller("Globex", "sam@globex.test", people.RoleOwner)
	for _, name := range []string{"a", "b", "c"} {
		f.clock.advance(time.Second)
		f.caller("Acme", name+"@acme.test", people.RoleMember)
	}
	emails := walk(t, func(m people.Member) string { return m.Email }, func(cursor string) ([]people.Member, string,
		error) {
		return f.People.Members(f.ctx(), f.owner.Caller, cursor, 3)
	})
	is.Equal(emails, []string{"ann@acme.test", "a@acme.test", "b@acme.test", "c@acme.test"})
	is.True(db.IsKind(errOf(f.People.Members(f.ctx(), f.owner.Caller, "x", 3)), db.Invalid))
	users, err := f.People.Users(f.ctx())
	is.NoErr(err)
	is.Equal(len(users), 5)
}

// TestOrganizationSettings checks that only an Owner can read and change the settings.
func TestOrganizationSettings(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	f.caller("Globex", "sam@globex.test", people.RoleOwner)
	admin := f.caller("Acme", "ada@acme.test", people.RoleAdmin)
	cap := 12.5
	set := people.OrganizationSettings{Name: " Acme & Sons ", MonthlyCreditCap: &cap}
	is.True(db.IsKind(f.People.UpdateOrganization(f.ctx(), admin.Caller, set), db.Forbidden))
	is.True(db.IsKind(errOf(f.People.OrganizationSettings(f.ctx(), admin.Caller)), db.Forbidden))
	is.NoErr(f.People.UpdateOrganization(f.ctx(), f.owner.Caller, set))
	is.NoErr(f.People.UpdateOrganization(f.ctx(), f.owner.Caller, set)) // no change, so no audit entry
	is.NoErr(f.Effects.MeterCaller(f.ctx(), f.owner.Caller, store.Usage{ModelCost: 7}))
	got, spent, err := f.People.OrganizationSettings(f.ctx(), f.owner.Caller)
	is.NoErr(err)
	is.Equal([]any{got.Name, *got.MonthlyCreditCap, spent}, []any{"Acme & Sons", 12.5, int64(7)})
	left, limited, err := f.People.Allowance(f.ctx(), f.owner.OrganizationID)
	is.NoErr(err)
	is.True(limited)
	is.Equal(left, int64(12.5*db.NanosPerCredit)-7)
	less := -1.0
	for _, wrong := range []people.OrganizationSettings{{Name: " "}, {Name: "Globex"}, {Name: strings.Repeat("x", 201)},
		{Name: "Acme", MonthlyCreditCap: &less}} {
		is.True(db.IsKind(f.People.UpdateOrganization(f.ctx(), f.owner.Caller, wrong), db.Invalid))
	}
	is.NoErr(f.People.UpdateOrganization(f.ctx(), f.owner.Caller, people.OrganizationSettings{Name: "Acme & Sons"}))
	log := f.texts(`SELECT action || ' ' || detail FROM audit_log WHERE action LIKE 'organization.%' ORDER BY num`)
	is.Equal(log, []string{`organization.name {"from":"Acme","to":"Acme \u0026 Sons"}`, `organization.cap {"from":null,"to":12.5}`, `organization.cap {"from":12.5,"to":null}`})
}

// TestChangePassword checks that a change of the password keeps only the session of the change.
func TestChangePassword(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	is.NoErr(f.People.SetPassword(f.ctx(), "ann@acme.test", goodPassword))
	here, err := f.People.CreateSession(f.ctx(), f.owner.Caller, "")
	is.NoErr(err)
	there, err := f.People.CreateSession(f.ctx(), f.owner.Caller, "")
	is.NoErr(err)
	who, id, err := f.People.SessionIdentity(f.ctx(), here)
	is.NoErr(err)
	is.True(db.IsKind(f.People.ChangePassword(f.ctx(), who, id, "wrong", "another password"), db.Invalid))
	is.True(db.IsKind(f.People.ChangePassword(f.ctx(), who, id, goodPassword, "short"), db.Invalid))
	is.NoErr(f.People.ChangePassword(f.ctx(), who, id, goodPassword, "another password"))
	is.NoErr(errOf(f.People.SessionIdentity(f.ctx(), here)))
	is.True(db.IsKind(errOf(f.People.SessionIdentity(f.ctx(), there)), db.Unauthorized))
	is.NoErr(f.People.RenameUser(f.ctx(), who.Caller, " Ann "))
	is.True(db.IsKind(f.People.RenameUser(f.ctx(), who.Caller, ""), db.Invalid))
	who, _, err = f.People.SessionIdentity(f.ctx(), here)
	is.NoErr(err)
	is.Equal(who.UserName, "Ann")
}

func TestPreferences(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	session, err := f.People.CreateSession(f.ctx(), f.owner.Caller, "")
	is.NoErr(err)
	who, _, err := f.People.SessionIdentity(f.ctx(), session)
	is.NoErr(err)
	is.Equal(who.Preferences, people.Preferences{Shortcuts: true}) // the defaults
	set := people.Preferences{Theme: "dark", Language: "de"}
	is.NoErr(f.People.SetPreferences(f.ctx(), f.owner.Caller, set))
	is.True(db.IsKind(f.People.SetPreferences(f.ctx(), f.owner.Caller, people.Preferences{Theme: "pink"}), db.Invalid))
	is.True(db.IsKind(f.People.SetPreferences(f.ctx(), f.owner.Caller,
		people.Preferences{Language: "a-very-long-language"}), db.Invalid)) // too long
	who, _, err = f.People.SessionIdentity(f.ctx(), session)
	is.NoErr(err)
	is.Equal(who.Preferences, set)
}
