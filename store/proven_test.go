package store_test

import (
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/store/db"
	"journeyman/store/people"
)

// TestUnprovenAddress checks that an account whose password a link of one organization set does not become
// a member of another by its address alone.
func TestUnprovenAddress(t *testing.T) {
	t.Parallel()
	const email, password = "vic@example.com", "a long password"
	user := people.NewUser{Name: "Vic", Password: password}
	byInvitation := func(f *fixture) {
		is := is.New(t)
		_, token, err := f.People.CreateInvitation(t.Context(), f.owner.Caller, email, people.RoleMember)
		is.NoErr(err)
		_, err = f.People.AcceptInvitation(t.Context(), people.Caller{}, token, user)
		is.NoErr(err)
	}
	choose := func(f *fixture, c people.Caller, who string) {
		is := is.New(t)
		_, token, err := f.People.CreatePasswordLink(t.Context(), c, people.LinkReset, who)
		is.NoErr(err)
		_, err = f.People.ChoosePassword(t.Context(), people.LinkReset, token, user, "")
		is.NoErr(err)
	}
	for name, tt := range map[string]struct {
		make   func(f *fixture)
		proven bool
	}{
		"by an invitation": {byInvitation, false},
		"by an organization's link": {func(f *fixture) {
			choose(f, f.owner.Caller, f.caller("Acme", email, people.RoleMember).UserID)
		}, false},
		"by the operator":        {func(f *fixture) { f.caller("Acme", email, people.RoleMember) }, true},
		"by the operator's link": {func(f *fixture) { byInvitation(f); choose(f, people.Operator(), email) }, true},
		"by the operator's password": {func(f *fixture) {
			byInvitation(f)
			is.New(t).NoErr(f.People.SetPassword(t.Context(), email, password))
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			f := newFixture(t)
			tt.make(f)
			n := people.NewKey{Name: "K", Email: "VIC@example.com", Role: people.RoleOwner, OrganizationName: "Three"}
			_, _, err := f.People.CreateKey(t.Context(), people.Operator(), n)
			is.Equal(db.IsKind(err, db.Conflict), !tt.proven)
			_, err = f.People.OperatorOf(t.Context(), "Three")
			is.Equal(err == nil, tt.proven) // a refused key makes no organization, either
			n.OrganizationName = "Acme"
			_, _, err = f.People.CreateKey(t.Context(), people.Operator(), n)
			is.NoErr(err) // the organization itself vouches for its members
			if tt.proven {
				return
			}
			// The error names the way out.
			n.OrganizationName = "Three"
			_, _, err = f.People.CreateKey(t.Context(), people.Operator(), n)
			is.True(strings.Contains(err.Error(), "run journeyman user reset "+n.Email+" on the server"))
			choose(f, people.Operator(), email)
			_, _, err = f.People.CreateKey(t.Context(), people.Operator(), n)
			is.NoErr(err)
		})
	}
}
