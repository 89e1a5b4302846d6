package store_test

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store/db"
	"journeyman/store/people"
)

const goodPassword = "correct horse battery"

// refused reports whether err has the given kind. The kind 0 means no error.
func refused(err error, kind db.Kind) bool {
	if kind == 0 {
		return err == nil
	}
	return db.IsKind(err, kind)
}

// TestInvitation lets a new and an existing user join.
func TestInvitation(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	l, token, err := f.People.CreateInvitation(f.ctx(), f.owner.Caller, " new@acme.test ", people.RoleAdmin)
	is.NoErr(err)
	is.Equal([]any{l.Email, l.Role, l.OrganizationName, l.UserID, l.InvitedBy}, []any{"new@acme.test", people.RoleAdmin,
		"Acme", "", "ann@acme.test"})
	hashes := f.texts(`SELECT hash FROM links`)
	is.True(len(hashes) == 1 && !strings.Contains(hashes[0], token)) // the token is not stored

	_, err = f.People.AcceptInvitation(f.ctx(), people.Caller{}, token, people.NewUser{Name: " ", Password: "short"})
	is.True(strings.Contains(err.Error(), "name: ") && strings.Contains(err.Error(), "1 more")) // the link still works
	c, err := f.People.AcceptInvitation(f.ctx(), people.Caller{RemoteAddr: "10.0.0.1"}, token, people.NewUser{Name: "New",
		Password: goodPassword})
	is.NoErr(err)
	is.Equal(c.Role, people.RoleAdmin)
	id, err := f.People.CheckPassword(f.ctx(), "NEW@acme.test", goodPassword)
	is.NoErr(err)
	is.Equal(id.UserID, c.UserID)
	_, err = f.People.AcceptInvitation(f.ctx(), people.Caller{}, token, people.NewUser{Name: "Eve",
		Password: goodPassword})
	is.True(db.IsNotFound(err)) // only once

	_, _, err = f.People.CreateInvitation(f.ctx(), f.owner.Caller, "New@Acme.test", people.RoleMember)
	is.True(db.IsKind(err, db.Invalid)) // already a member

	stranger := f.caller("Globex", "sam@globex.test", people.RoleOwner)
	_, token, err = f.People.CreateInvitation(f.ctx(), f.owner.Caller, "sam@globex.test", people.RoleMember)
	is.NoErr(err)
	_, err = f.People.AcceptInvitation(f.ctx(), people.Caller{}, token, people.NewUser{Name: "Eve",
		Password: goodPassword})
	is.True(db.IsKind(err, db.Forbidden)) // it would give access to Globex
	is.NoErr(f.People.SetPassword(f.ctx(), "sam@globex.test", goodPassword))
	_, err = f.People.AcceptInvitation(f.ctx(), people.Caller{}, token, people.NewUser{Name: "Eve",
		Password: "another password"})
	is.True(db.IsKind(err, db.Conflict))
	_, err = f.People.AcceptInvitation(f.ctx(), people.Caller{UserID: f.owner.UserID}, token, people.NewUser{})
	is.True(db.IsKind(err, db.Forbidden)) // another user
	is.NoErr(errOf(f.People.AcceptInvitation(f.ctx(), people.Caller{UserID: stranger.UserID}, token, people.NewUser{})))
	list, err := f.People.Organizations(f.ctx(), stranger.Caller)
	is.NoErr(err)
	is.Equal(len(list), 2)
	is.NoErr(errOf(f.People.CheckPassword(f.ctx(), "sam@globex.test", goodPassword))) // their password is unchanged
}

// TestInvitationsEnd ends invitations by time, by revocation, by a newer invitation, and by changes
// of their creator's role.
func TestInvitationsEnd(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(f *fixture, l people.Link, admin people.Identity) error{
		"time": func(f *fixture, _ people.Link, _ people.Identity) error {
			f.clock.advance(people.InvitationLifetime)
			return nil
		},
		"revoked": func(f *fixture, l people.Link, _ people.Identity) error {
			return f.People.RevokeInvitation(f.ctx(), f.owner.Caller, l.ID)
		},
		"replaced": func(f *fixture, _ people.Link, _ people.Identity) error {
			return errOf(f.People.CreateInvitation(f.ctx(), f.owner.Caller, "New@acme.test", people.RoleMember))
		},
		"maker removed": func(f *fixture, _ people.Link, admin people.Identity) error {
			return errOf(f.People.RemoveMember(f.ctx(), f.owner.Caller, admin.UserID))
		},
		"maker demoted": func(f *fixture, _ people.Link, admin people.Identity) error {
			return errOf(f.People.ChangeRole(f.ctx(), f.owner.Caller, admin.UserID, people.RoleMember))
		},
		"maker demoted by command": func(f *fixture, _ people.Link, _ people.Identity) error {
			_, _, err := f.People.CreateKey(f.ctx(), people.Operator(), people.NewKey{Name: "k", Email: "ada@acme.test",
				Role: people.RoleMember, OrganizationName: "Acme"})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			f := newFixture(t)
			admin := f.caller("Acme", "ada@acme.test", people.RoleAdmin)
			l, token, err := f.People.CreateInvitation(f.ctx(), admin.Caller, "new@acme.test", people.RoleMember)
			is.NoErr(err)
			is.NoErr(errOf(f.People.Link(f.ctx(), people.LinkInvitation, token)))
			is.True(db.IsNotFound(errOf(f.People.Link(f.ctx(), people.LinkReset, token)))) // another kind
			is.NoErr(end(f, l, admin))
			is.True(db.IsNotFound(errOf(f.People.Link(f.ctx(), people.LinkInvitation, token))))
			_, err = f.People.AcceptInvitation(f.ctx(), people.Caller{}, token, people.NewUser{Name: "New",
				Password: goodPassword})
			is.True(db.IsNotFound(err))
			list, err := f.People.Invitations(f.ctx(), f.owner.Caller)
			is.NoErr(err)
			is.True(!slices.ContainsFunc(list, func(o people.Link) bool { return o.ID == l.ID }))
		})
	}
}

// TestLinkUsedTwiceConcurrently checks that exactly one of many concurrent uses of a link succeeds.
func TestLinkUsedTwiceConcurrently(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	_, token, err := f.People.CreatePasswordLink(f.ctx(), people.Operator(), people.LinkReset, "ann@acme.test")
	is.NoErr(err)
	var wg sync.WaitGroup
	errs := make([]error, 4)
	for i := range errs {
		wg.Go(func() {
			_, errs[i] = f.People.ChoosePassword(f.ctx(), people.LinkReset, token, people.NewUser{Password: goodPassword}, "")
		})
	}
	wg.Wait()
	let := 0
	for _, err := range errs {
		if err == nil {
			let++
		} else {
			is.True(db.IsNotFound(err))
		}
	}
	is.Equal(let, 1)
}

// TestReset checks that a reset ends all access through the old password.
func TestReset(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	is.NoErr(f.People.SetPassword(f.ctx(), "ann@acme.test", goodPassword))
	session, err := f.People.CreateSession(f.ctx(), f.owner.Caller, "")
	is.NoErr(err)
	_, first, err := f.People.CreatePasswordLink(f.ctx(), people.Operator(), people.LinkReset, "ann@acme.test")
	is.NoErr(err)
	_, second, err := f.People.CreatePasswordLink(f.ctx(), people.Operator(), people.LinkReset, "ANN@acme.test")
	is.NoErr(err)
	_, err = f.People.ChoosePassword(f.ctx(), people.LinkReset, first, people.NewUser{Password: "another password"}, "")
	is.True(db.IsNotFound(err)) // the newer link has replaced it
	_, err = f.People.ChoosePassword(f.ctx(), people.LinkWelcome, second, people.NewUser{Name: "Ann",
		Password: "another password", Email: "eve@acme.test"}, "")
	is.True(db.IsNotFound(err)) // another kind
	_, err = f.People.ChoosePassword(f.ctx(), people.LinkReset, second, people.NewUser{Password: "another password",
		Email: "eve@acme.test"}, "")
	is.NoErr(err)
	is.NoErr(errOf(f.People.CheckPassword(f.ctx(), "ann@acme.test", "another password"))) // the same address
	is.True(db.IsKind(errOf(f.People.CheckPassword(f.ctx(), "ann@acme.test", goodPassword)), db.Unauthorized))
	is.True(db.IsKind(errOf(f.People.SessionIdentity(f.ctx(), session)), db.Unauthorized))
	_, _, err = f.People.CreatePasswordLink(f.ctx(), people.Operator(), people.LinkReset, "nobody@acme.test")
	is.True(db.IsNotFound(err))

	_, token, err := f.People.CreatePasswordLink(f.ctx(), people.Operator(), people.LinkReset, "ann@acme.test")
	is.NoErr(err)
	f.clock.advance(people.ResetLifetime - time.Millisecond)
	is.NoErr(errOf(f.People.Link(f.ctx(), people.LinkReset, token)))
	f.clock.advance(time.Millisecond)
	is.True(db.IsNotFound(errOf(f.People.Link(f.ctx(), people.LinkReset, token))))
	n, err := f.People.PruneLinks(f.ctx(), 10)
	is.NoErr(err)
	is.Equal(n, int64(1))
}

// TestWelcome checks that a welcome link sets the first owner's address, but never to the address
// of another user.
func TestWelcome(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	f.caller("Acme", "mo@acme.test", people.RoleMember)
	_, token, err := f.People.CreatePasswordLink(f.ctx(), people.Operator(), people.LinkWelcome, "ann@acme.test")
	is.NoErr(err)
	for _, email := range []string{"", "no address", "MO@acme.test"} {
		_, err = f.People.ChoosePassword(f.ctx(), people.LinkWelcome, token, people.NewUser{Name: "Ann",
			Password: goodPassword, Email: email}, "")
		is.True(db.IsKind(err, db.Invalid))
	}
	id, err := f.People.ChoosePassword(f.ctx(), people.LinkWelcome, token, people.NewUser{Name: "Ann",
		Password: goodPassword, Email: "ann@new.test"}, "")
	is.NoErr(err)
	is.Equal(id.UserID, f.owner.UserID)
	id, err = f.People.CheckPassword(f.ctx(), "ann@new.test", goodPassword)
	is.NoErr(err)
	is.Equal(id.UserID, f.owner.UserID)
}

// TestConfiguredKeyCreatesNoUser starts again with a configured key whose owner has changed the address.
// No second user may be created.
func TestConfiguredKeyCreatesNoUser(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	given := people.NewKey{Name: "First key", Email: "owner@localhost", Role: people.RoleOwner,
		Secret: "a-given-secret-of-some-length"}
	for range 2 {
		is.NoErr(errOf(f.People.CreateKey(f.ctx(), people.Operator(), given)))
		_, token, err := f.People.CreatePasswordLink(f.ctx(), people.Operator(), people.LinkWelcome, "owner@localhost")
		if err == nil {
			_, err = f.People.ChoosePassword(f.ctx(), people.LinkWelcome, token, people.NewUser{Name: "Ann",
				Password: goodPassword, Email: "me@new.test"}, "")
			is.NoErr(err)
		}
	}
	users := f.texts(`SELECT email FROM users ORDER BY email`)
	is.Equal(users, []string{"ann@acme.test", "me@new.test"})
}

// TestWhoMakesLinks tries to create a link as every role for a member of every role.
func TestWhoMakesLinks(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	callers := map[string]people.Identity{"owner": f.owner, "admin": f.caller("Acme", "ada@acme.test", people.RoleAdmin),
		"member": f.caller("Acme", "mo@acme.test", people.RoleMember), "stranger": f.caller("Globex", "sam@globex.test",
			people.RoleOwner)}
	may := map[string][]people.Role{"owner": {people.RoleOwner, people.RoleAdmin, people.RoleMember},
		"admin": {people.RoleAdmin, people.RoleMember}}
	for _, role := range []people.Role{people.RoleOwner, people.RoleAdmin, people.RoleMember} {
		target := f.caller("Acme", string(role)+"@target.test", role)
		for name, who := range callers {
			want := db.Forbidden
			if slices.Contains(may[name], role) {
				want = 0
			}
			if name != "stranger" {
				_, _, err := f.People.CreateInvitation(f.ctx(), who.Caller, name+string(role)+"@new.test", role)
				is.True(refused(err, want))
			}
			if name == "stranger" {
				want = db.NotFound
			}
			_, _, err := f.People.CreatePasswordLink(f.ctx(), who.Caller, people.LinkReset, target.UserID)
			is.True(refused(err, want))
		}
	}
	_, _, err := f.People.CreatePasswordLink(f.ctx(), f.owner.Caller, people.LinkReset, f.owner.UserID)
	is.True(db.IsKind(err, db.Conflict)) // callers change their own password instead

	// A link for a member of two organizations must not give access to the other organization.
	both := f.caller("Acme", "both@acme.test", people.RoleMember)
	_, token, err := f.People.CreatePasswordLink(f.ctx(), callers["admin"].Caller, people.LinkReset, both.UserID)
	is.NoErr(err)
	f.caller("Globex", "both@acme.test", people.RoleMember)
	_, err = f.People.Link(f.ctx(), people.LinkReset, token)
	is.True(db.IsNotFound(err)) // the link ended when they joined the other organization
	_, _, err = f.People.CreatePasswordLink(f.ctx(), callers["admin"].Caller, people.LinkReset, both.UserID)
	is.True(db.IsKind(err, db.Forbidden))
	asked := f.caller("Acme", "asked@acme.test", people.RoleMember)
	_, token, err = f.People.CreatePasswordLink(f.ctx(), callers["admin"].Caller, people.LinkReset, asked.UserID)
	is.NoErr(err)
	_, invitation, err := f.People.CreateInvitation(f.ctx(), callers["stranger"].Caller, "asked@acme.test",
		people.RoleOwner)
	is.NoErr(err)
	is.NoErr(errOf(f.People.AcceptInvitation(f.ctx(), people.Caller{UserID: asked.UserID}, invitation, people.NewUser{})))
	is.True(db.IsNotFound(errOf(f.People.Link(f.ctx(), people.LinkReset, token))))

	// An Admin must not replace an Owner's invitation of an Owner.
	l, _, err := f.People.CreateInvitation(f.ctx(), f.owner.Caller, "boss@new.test", people.RoleOwner)
	is.NoErr(err)
	_, _, err = f.People.CreateInvitation(f.ctx(), callers["admin"].Caller, "boss@new.test", people.RoleMember)
	is.True(db.IsKind(err, db.Forbidden))
	is.True(db.IsKind(f.People.RevokeInvitation(f.ctx(), callers["admin"].Caller, l.ID), db.Forbidden))
	is.True(db.IsNotFound(f.People.RevokeInvitation(f.ctx(), callers["stranger"].Caller, l.ID)))
	is.True(db.IsKind(errOf(f.People.Invitations(f.ctx(), callers["member"].Caller)), db.Forbidden))
}
