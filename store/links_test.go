package store_test

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store"
	"journeyman/store/db"
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
	l, token, err := f.People.CreateInvitation(f.ctx(), f.owner.Caller, " new@acme.test ", store.RoleAdmin)
	is.NoErr(err)
	is.Equal([]any{l.Email, l.Role, l.OrganizationName, l.UserID, l.InvitedBy}, []any{"new@acme.test", store.RoleAdmin, "Acme", "", "ann@acme.test"})
	hashes := f.texts(`SELECT hash FROM links`)
	is.True(len(hashes) == 1 && !strings.Contains(hashes[0], token)) // the token is not stored

	_, err = f.People.AcceptInvitation(f.ctx(), store.Caller{}, token, store.NewUser{Name: " ", Password: "short"})
	is.True(strings.Contains(err.Error(), "name: ") && strings.Contains(err.Error(), "1 more")) // the link still works
	c, err := f.People.AcceptInvitation(f.ctx(), store.Caller{RemoteAddr: "10.0.0.1"}, token, store.NewUser{Name: "New", Password: goodPassword})
	is.NoErr(err)
	is.Equal(c.Role, store.RoleAdmin)
	id, err := f.People.CheckPassword(f.ctx(), "NEW@acme.test", goodPassword)
	is.NoErr(err)
	is.Equal(id.UserID, c.UserID)
	_, err = f.People.AcceptInvitation(f.ctx(), store.Caller{}, token, store.NewUser{Name: "Eve", Password: goodPassword})
	is.True(db.IsNotFound(err)) // only once

	_, _, err = f.People.CreateInvitation(f.ctx(), f.owner.Caller, "New@Acme.test", store.RoleMember)
	is.True(db.IsKind(err, db.Invalid)) // already a member

	stranger := f.caller("Globex", "sam@globex.test", store.RoleOwner)
	_, token, err = f.People.CreateInvitation(f.ctx(), f.owner.Caller, "sam@globex.test", store.RoleMember)
	is.NoErr(err)
	_, err = f.People.AcceptInvitation(f.ctx(), store.Caller{}, token, store.NewUser{Name: "Eve", Password: goodPassword})
	is.True(db.IsKind(err, db.Forbidden)) // it would give access to Globex
	is.NoErr(f.People.SetPassword(f.ctx(), "sam@globex.test", goodPassword))
	_, err = f.People.AcceptInvitation(f.ctx(), store.Caller{}, token, store.NewUser{Name: "Eve", Password: "another password"})
	is.True(db.IsKind(err, db.Conflict))
	_, err = f.People.AcceptInvitation(f.ctx(), store.Caller{UserID: f.owner.UserID}, token, store.NewUser{})
	is.True(db.IsKind(err, db.Forbidden)) // another user
	is.NoErr(errOf(f.People.AcceptInvitation(f.ctx(), store.Caller{UserID: stranger.UserID}, token, store.NewUser{})))
	list, err := f.People.Organizations(f.ctx(), stranger.Caller)
	is.NoErr(err)
	is.Equal(len(list), 2)
	is.NoErr(errOf(f.People.CheckPassword(f.ctx(), "sam@globex.test", goodPassword))) // their password is unchanged
}

// TestInvitationsEnd ends invitations by time, by revocation, by a newer invitation, and by changes
// of their creator's role.
func TestInvitationsEnd(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(f *fixture, l store.Link, admin store.Identity) error{
		"time": func(f *fixture, _ store.Link, _ store.Identity) error {
			f.clock.advance(store.InvitationLifetime)
			return nil
		},
		"revoked": func(f *fixture, l store.Link, _ store.Identity) error {
			return f.People.RevokeInvitation(f.ctx(), f.owner.Caller, l.ID)
		},
		"replaced": func(f *fixture, _ store.Link, _ store.Identity) error {
			return errOf(f.People.CreateInvitation(f.ctx(), f.owner.Caller, "New@acme.test", store.RoleMember))
		},
		"maker removed": func(f *fixture, _ store.Link, admin store.Identity) error {
			return errOf(f.People.RemoveMember(f.ctx(), f.owner.Caller, admin.UserID))
		},
		"maker demoted": func(f *fixture, _ store.Link, admin store.Identity) error {
			return errOf(f.People.ChangeRole(f.ctx(), f.owner.Caller, admin.UserID, store.RoleMember))
		},
		"maker demoted by command": func(f *fixture, _ store.Link, _ store.Identity) error {
			_, _, err := f.People.CreateKey(f.ctx(), store.Operator(), store.NewKey{Name: "k", Email: "ada@acme.test", Role: store.RoleMember, OrganizationName: "Acme"})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			f := newFixture(t)
			admin := f.caller("Acme", "ada@acme.test", store.RoleAdmin)
			l, token, err := f.People.CreateInvitation(f.ctx(), admin.Caller, "new@acme.test", store.RoleMember)
			is.NoErr(err)
			is.NoErr(errOf(f.People.Link(f.ctx(), store.LinkInvitation, token)))
			is.True(db.IsNotFound(errOf(f.People.Link(f.ctx(), store.LinkReset, token)))) // another kind
			is.NoErr(end(f, l, admin))
			is.True(db.IsNotFound(errOf(f.People.Link(f.ctx(), store.LinkInvitation, token))))
			_, err = f.People.AcceptInvitation(f.ctx(), store.Caller{}, token, store.NewUser{Name: "New", Password: goodPassword})
			is.True(db.IsNotFound(err))
			list, err := f.People.Invitations(f.ctx(), f.owner.Caller)
			is.NoErr(err)
			is.True(!slices.ContainsFunc(list, func(o store.Link) bool { return o.ID == l.ID }))
		})
	}
}

// TestLinkUsedTwiceConcurrently checks that exactly one of many concurrent uses of a link succeeds.
func TestLinkUsedTwiceConcurrently(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	_, token, err := f.People.CreatePasswordLink(f.ctx(), store.Operator(), store.LinkReset, "ann@acme.test")
	is.NoErr(err)
	var wg sync.WaitGroup
	errs := make([]error, 4)
	for i := range errs {
		wg.Go(func() {
			_, errs[i] = f.People.ChoosePassword(f.ctx(), store.LinkReset, token, store.NewUser{Password: goodPassword}, "")
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
	_, first, err := f.People.CreatePasswordLink(f.ctx(), store.Operator(), store.LinkReset, "ann@acme.test")
	is.NoErr(err)
	_, second, err := f.People.CreatePasswordLink(f.ctx(), store.Operator(), store.LinkReset, "ANN@acme.test")
	is.NoErr(err)
	_, err = f.People.ChoosePassword(f.ctx(), store.LinkReset, first, store.NewUser{Password: "another password"}, "")
	is.True(db.IsNotFound(err)) // the newer link has replaced it
	_, err = f.People.ChoosePassword(f.ctx(), store.LinkWelcome, second, store.NewUser{Name: "Ann", Password: "another password", Email: "eve@acme.test"}, "")
	is.True(db.IsNotFound(err)) // another kind
	_, err = f.People.ChoosePassword(f.ctx(), store.LinkReset, second, store.NewUser{Password: "another password", Email: "eve@acme.test"}, "")
	is.NoErr(err)
	is.NoErr(errOf(f.People.CheckPassword(f.ctx(), "ann@acme.test", "another password"))) // the same address
	is.True(db.IsKind(errOf(f.People.CheckPassword(f.ctx(), "ann@acme.test", goodPassword)), db.Unauthorized))
	is.True(db.IsKind(errOf(f.People.SessionIdentity(f.ctx(), session)), db.Unauthorized))
	_, _, err = f.People.CreatePasswordLink(f.ctx(), store.Operator(), store.LinkReset, "nobody@acme.test")
	is.True(db.IsNotFound(err))

	_, token, err := f.People.CreatePasswordLink(f.ctx(), store.Operator(), store.LinkReset, "ann@acme.test")
	is.NoErr(err)
	f.clock.advance(store.ResetLifetime - time.Millisecond)
	is.NoErr(errOf(f.People.Link(f.ctx(), store.LinkReset, token)))
	f.clock.advance(time.Millisecond)
	is.True(db.IsNotFound(errOf(f.People.Link(f.ctx(), store.LinkReset, token))))
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
	f.caller("Acme", "mo@acme.test", store.RoleMember)
	_, token, err := f.People.CreatePasswordLink(f.ctx(), store.Operator(), store.LinkWelcome, "ann@acme.test")
	is.NoErr(err)
	for _, email := range []string{"", "no address", "MO@acme.test"} {
		_, err = f.People.ChoosePassword(f.ctx(), store.LinkWelcome, token, store.NewUser{Name: "Ann", Password: goodPassword, Email: email}, "")
		is.True(db.IsKind(err, db.Invalid))
	}
	id, err := f.People.ChoosePassword(f.ctx(), store.LinkWelcome, token, store.NewUser{Name: "Ann", Password: goodPassword, Email: "ann@new.test"}, "")
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
	given := store.NewKey{Name: "First key", Email: "owner@localhost", Role: store.RoleOwner, Secret: "a-given-secret-of-some-length"}
	for range 2 {
		is.NoErr(errOf(f.People.CreateKey(f.ctx(), store.Operator(), given)))
		_, token, err := f.People.CreatePasswordLink(f.ctx(), store.Operator(), store.LinkWelcome, "owner@localhost")
		if err == nil {
			_, err = f.People.ChoosePassword(f.ctx(), store.LinkWelcome, token, store.NewUser{Name: "Ann", Password: goodPassword, Email: "me@new.test"}, "")
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
	people := map[string]store.Identity{"owner": f.owner, "admin": f.caller("Acme", "ada@acme.test", store.RoleAdmin),
		"member": f.caller("Acme", "mo@acme.test", store.RoleMember), "stranger": f.caller("Globex", "sam@globex.test", store.RoleOwner)}
	may := map[string][]store.Role{"owner": {store.RoleOwner, store.RoleAdmin, store.RoleMember}, "admin": {store.RoleAdmin, store.RoleMember}}
	for _, role := range []store.Role{store.RoleOwner, store.RoleAdmin, store.RoleMember} {
		target := f.caller("Acme", string(role)+"@target.test", role)
		for name, who := range people {
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
			_, _, err := f.People.CreatePasswordLink(f.ctx(), who.Caller, store.LinkReset, target.UserID)
			is.True(refused(err, want))
		}
	}
	_, _, err := f.People.CreatePasswordLink(f.ctx(), f.owner.Caller, store.LinkReset, f.owner.UserID)
	is.True(db.IsKind(err, db.Conflict)) // callers change their own password instead

	// A link for a member of two organizations must not give access to the other organization.
	both := f.caller("Acme", "both@acme.test", store.RoleMember)
	_, token, err := f.People.CreatePasswordLink(f.ctx(), people["admin"].Caller, store.LinkReset, both.UserID)
	is.NoErr(err)
	f.caller("Globex", "both@acme.test", store.RoleMember)
	_, err = f.People.Link(f.ctx(), store.LinkReset, token)
	is.True(db.IsNotFound(err)) // the link ended when they joined the other organization
	_, _, err = f.People.CreatePasswordLink(f.ctx(), people["admin"].Caller, store.LinkReset, both.UserID)
	is.True(db.IsKind(err, db.Forbidden))
	asked := f.caller("Acme", "asked@acme.test", store.RoleMember)
	_, token, err = f.People.CreatePasswordLink(f.ctx(), people["admin"].Caller, store.LinkReset, asked.UserID)
	is.NoErr(err)
	_, invitation, err := f.People.CreateInvitation(f.ctx(), people["stranger"].Caller, "asked@acme.test", store.RoleOwner)
	is.NoErr(err)
	is.NoErr(errOf(f.People.AcceptInvitation(f.ctx(), store.Caller{UserID: asked.UserID}, invitation, store.NewUser{})))
	is.True(db.IsNotFound(errOf(f.People.Link(f.ctx(), store.LinkReset, token))))

	// An Admin must not replace an Owner's invitation of an Owner.
	l, _, err := f.People.CreateInvitation(f.ctx(), f.owner.Caller, "boss@new.test", store.RoleOwner)
	is.NoErr(err)
	_, _, err = f.People.CreateInvitation(f.ctx(), people["admin"].Caller, "boss@new.test", store.RoleMember)
	is.True(db.IsKind(err, db.Forbidden))
	is.True(db.IsKind(f.People.RevokeInvitation(f.ctx(), people["admin"].Caller, l.ID), db.Forbidden))
	is.True(db.IsNotFound(f.People.RevokeInvitation(f.ctx(), people["stranger"].Caller, l.ID)))
	is.True(db.IsKind(errOf(f.People.Invitations(f.ctx(), people["member"].Caller)), db.Forbidden))
}
