package account_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/handlers/dashboard/dashboardtest"
	"journeyman/store/people"
)

// TestWelcomePage signs the first owner in for the first time.
func TestWelcomePage(t *testing.T) {
	is, s := dashboardtest.OnSite(t)
	path := s.Link(people.LinkWelcome, "ann@example.com")
	v := s.Visitor()
	v.Get(path).Shows("Welcome to Journeyman", `value="ann@example.com"`)
	is.Equal(v.Get(strings.Replace(path, "welcome", "reset", 1)).Status, http.StatusNotFound) // each kind has its own page
	p := v.Post(path, "name", "Ann Arbor", "email", "no address", "password", "short")
	p.Answers(http.StatusUnprocessableEntity).Shows("Must be an email address.", "Must have 8 characters or more.",
		`value="no address"`)
	p = v.Post(path, "name", "", "email", "me@example.com", "password", "password1")
	p.Shows("Must have 1 to 200 characters.", "Must not be a password that many people choose")
	p = v.Post(path, "name", "Ann Arbor", "email", "me@example.com", "password", "my own password")
	is.Equal(p.Location(), "/workers/new?done=password-chosen")
	v.Get("/account").Shows("me@example.com", "Acme, as Owner", `value="Ann Arbor"`)
	s.Visitor().Post(path, "name", "Eve", "email", "eve@example.com", "password", "her own password").
		Answers(http.StatusNotFound).Shows("has been used")
	is.Equal(s.Visitor().Post("/sign-in", "email", "me@example.com", "password", "my own password").Status,
		http.StatusSeeOther)
}

// TestResetPage checks that a new password ends the user's sessions in other browsers, even if
// another user's browser opened the link.
func TestResetPage(t *testing.T) {
	is, s, before := dashboardtest.AsOwner(t)
	s.Join("bob@example.com", people.RoleMember)
	v := s.SignIn("bob@example.com")
	path := s.Link(people.LinkReset, "ann@example.com")
	v.Get(path).Shows("For ann@example.com.")
	is.Equal(v.Post(path, "email", "eve@example.com", "password", "my own password").Location(),
		"/workers?done=password-chosen")
	v.Get("/account").Shows("ann@example.com")
	is.Equal(before.Get("/account").Location(), "/sign-in?next=%2Faccount")
	is.Equal(v.Get(path).Status, http.StatusNotFound)
	is.Equal(s.Visitor().Post("/sign-in", "email", "ann@example.com", "password", dashboardtest.Password).Status,
		http.StatusUnprocessableEntity)
}

// TestSessionFixation sets a session before each way of signing in. It must never become the
// session of a user.
func TestSessionFixation(t *testing.T) {
	t.Parallel()
	s := dashboardtest.New(t)
	s.Join("eve@example.com", people.RoleMember)
	invitation := s.Invitation("new@example.com", people.RoleMember)
	for name, in := range map[string]func(b *dashboardtest.Browser) dashboardtest.Page{
		"sign in": func(b *dashboardtest.Browser) dashboardtest.Page {
			return b.Post("/sign-in", "email", "ann@example.com", "password", dashboardtest.Password)
		},
		"reset": func(b *dashboardtest.Browser) dashboardtest.Page {
			s.Join("carl@example.com", people.RoleMember)
			return b.Post(s.Link(people.LinkReset, "carl@example.com"), "password", dashboardtest.Password)
		},
		"invitation": func(b *dashboardtest.Browser) dashboardtest.Page {
			return b.Post(invitation, "name", "New", "password", dashboardtest.Password)
		},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			planted := s.SignIn("eve@example.com") // the attacker's own session
			victim := s.Visitor()
			r := s.Request(http.MethodGet, "/sign-in", "")
			victim.Client.Jar.SetCookies(r.URL, planted.Client.Jar.Cookies(r.URL))
			p := in(victim)
			is.Equal(p.Status, http.StatusSeeOther)
			is.True(victim.Client.Jar.Cookies(r.URL)[0].Value != planted.Client.Jar.Cookies(r.URL)[0].Value)
			victim.Get("/account").Lacks("eve@example.com")
			planted.Get("/account").Shows("eve@example.com") // it is still only the attacker's session
		})
	}
}

// TestInvitationPage lets a new person join, once.
func TestInvitationPage(t *testing.T) {
	is, s, owner := dashboardtest.AsOwner(t)
	path := s.Invitation("new@example.com", people.RoleAdmin)
	v := s.Visitor()
	v.Get(path).Shows("Join Acme", "ann@example.com has invited new@example.com to Acme", "as Admin", `name="name"`)
	v.Get(path).Shows("Join Acme") // opening the link does not use it up
	v.Post(path, "name", "", "password", "short").
		Answers(http.StatusUnprocessableEntity).Shows("Must have 1 to 200 characters", "Must have 8 characters or more")
	is.Equal(v.Post(path, "name", "New <b>", "password", dashboardtest.Password).Location(), "/workers?done=joined")
	v.Get("/account").Shows("Acme, as Admin", "New &lt;b&gt;")
	is.Equal(s.Visitor().Post(path, "name", "Eve", "password", dashboardtest.Password).Status, http.StatusNotFound)

	withdrawn := s.Invitation("other@example.com", people.RoleMember)
	p := owner.Get("/settings/members")
	id := regexp.MustCompile(`/settings/invitations/(lnk_\w+)/revoke`).FindStringSubmatch(p.Body)
	is.Equal(owner.Post(id[0]).Location(), "/settings/members?done=invitation-revoked")
	is.Equal(s.Visitor().Get(withdrawn).Status, http.StatusNotFound)
	is.Equal(owner.Post(id[0]).Status, http.StatusNotFound)
}

// TestInvitationOfExistingUser checks that the link of a person with a password requires that
// password.
func TestInvitationOfExistingUser(t *testing.T) {
	is, s := dashboardtest.OnSite(t)
	globex := func(email string) {
		_, _, err := s.Store.People.CreateKey(t.Context(), people.Operator(), people.NewKey{Name: "k", Email: email,
			Role: people.RoleOwner, OrganizationName: "Globex"})
		is.NoErr(err)
		is.NoErr(s.Store.People.SetPassword(t.Context(), email, dashboardtest.Password))
	}
	globex("sam@globex.test")
	path := s.Invitation("sam@globex.test", people.RoleMember)
	v := s.Visitor()
	v.Get(path).Lacks(`name="name"`)
	v.Post(path, "name", "Eve", "password", "a new password").
		Answers(http.StatusUnprocessableEntity).Shows("The email address or the password is wrong.")
	is.Equal(v.Get("/account").Status, http.StatusSeeOther) // nobody is signed in
	is.Equal(v.Post(path, "password", dashboardtest.Password).Location(), "/workers?done=joined")
	v.Get("/account").Shows("Acme, as Member", `action="/organization"`) // now with a switcher

	globex("kim@globex.test")
	path = s.Invitation("kim@globex.test", people.RoleMember)
	b := s.SignIn("kim@globex.test")
	b.Get(path).Lacks("password")
	is.Equal(b.Post(path).Location(), "/workers?done=joined")
	b.Get("/account").Shows("Acme, as Member")

	path = s.Invitation("new@example.com", people.RoleMember)
	b.Get(path).Shows("You are signed in here as kim@globex.test.")
	is.Equal(b.Post(path, "name", "New", "password", dashboardtest.Password).Location(), "/workers?done=joined")
	b.Get("/account").Shows("new@example.com")
}
