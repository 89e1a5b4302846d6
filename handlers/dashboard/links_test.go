package dashboard_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/store/people"
)

// link creates a link of a kind for a user, as the command line does.
func (s *site) link(kind people.LinkKind, email string) string {
	s.t.Helper()
	_, token, err := s.store.People.CreatePasswordLink(s.t.Context(), people.Operator(), kind, email)
	s.ok(err)
	return "/" + string(kind) + "/" + token
}

// invite invites a person and returns the page with the link.
func (b *browser) invite(email string, role people.Role) page {
	b.t.Helper()
	return b.get(b.post("/settings/members", "email", email, "role", string(role)).location())
}

// invitation invites a person on the page as the owner. It returns the path of the link.
func (s *site) invitation(email string, role people.Role) string {
	s.t.Helper()
	p := s.signIn("ann@example.com").invite(email, role)
	found := regexp.MustCompile(`data-copy="` + regexp.QuoteMeta(s.url) + `(/invitation/[^"]+)"`).FindStringSubmatch(p.body)
	if p.status != http.StatusOK || len(found) != 2 {
		s.t.Fatalf("%d: no link on the page:\n%s", p.status, p.body)
	}
	return found[1]
}

// TestWelcomePage signs the first owner in for the first time.
func TestWelcomePage(t *testing.T) {
	is, s := onSite(t)
	path := s.link(people.LinkWelcome, "ann@example.com")
	v := s.visitor()
	v.get(path).shows("Welcome to Journeyman", `value="ann@example.com"`)
	is.Equal(v.get(strings.Replace(path, "welcome", "reset", 1)).status, http.StatusNotFound) // each kind has its own page
	p := v.post(path, "name", "Ann Arbor", "email", "no address", "password", "short")
	p.answers(http.StatusUnprocessableEntity).shows("Must be an email address.", "Must have 8 characters or more.", `value="no address"`)
	p = v.post(path, "name", "", "email", "me@example.com", "password", "password1")
	p.shows("Must have 1 to 200 characters.", "Must not be a password that many people choose")
	p = v.post(path, "name", "Ann Arbor", "email", "me@example.com", "password", "my own password")
	is.Equal(p.location(), "/workers/new?done=password-chosen")
	v.get("/account").shows("me@example.com", "Acme, as Owner", `value="Ann Arbor"`)
	s.visitor().post(path, "name", "Eve", "email", "eve@example.com", "password", "her own password").
		answers(http.StatusNotFound).shows("has been used")
	is.Equal(s.visitor().post("/sign-in", "email", "me@example.com", "password", "my own password").status, http.StatusSeeOther)
}

// TestResetPage checks that a new password ends the user's sessions in other browsers, even if
// another user's browser opened the link.
func TestResetPage(t *testing.T) {
	is, s, before := asOwner(t)
	s.join("bob@example.com", people.RoleMember)
	v := s.signIn("bob@example.com")
	path := s.link(people.LinkReset, "ann@example.com")
	v.get(path).shows("For ann@example.com.")
	is.Equal(v.post(path, "email", "eve@example.com", "password", "my own password").location(), "/workers?done=password-chosen")
	v.get("/account").shows("ann@example.com")
	is.Equal(before.get("/account").location(), "/sign-in?next=%2Faccount")
	is.Equal(v.get(path).status, http.StatusNotFound)
	is.Equal(s.visitor().post("/sign-in", "email", "ann@example.com", "password", password).status, http.StatusUnprocessableEntity)
}

// TestSessionFixation sets a session before each way of signing in. It must never become the
// session of a user.
func TestSessionFixation(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.join("eve@example.com", people.RoleMember)
	invitation := s.invitation("new@example.com", people.RoleMember)
	for name, in := range map[string]func(b *browser) page{
		"sign in": func(b *browser) page { return b.post("/sign-in", "email", "ann@example.com", "password", password) },
		"reset": func(b *browser) page {
			s.join("carl@example.com", people.RoleMember)
			return b.post(s.link(people.LinkReset, "carl@example.com"), "password", password)
		},
		"invitation": func(b *browser) page { return b.post(invitation, "name", "New", "password", password) },
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			planted := s.signIn("eve@example.com") // the attacker's own session
			victim := s.visitor()
			r := s.request(http.MethodGet, "/sign-in", "")
			victim.client.Jar.SetCookies(r.URL, planted.client.Jar.Cookies(r.URL))
			p := in(victim)
			is.Equal(p.status, http.StatusSeeOther)
			is.True(victim.client.Jar.Cookies(r.URL)[0].Value != planted.client.Jar.Cookies(r.URL)[0].Value)
			victim.get("/account").lacks("eve@example.com")
			planted.get("/account").shows("eve@example.com") // it is still only the attacker's session
		})
	}
}

// TestInvitationPage lets a new person join, once.
func TestInvitationPage(t *testing.T) {
	is, s, owner := asOwner(t)
	path := s.invitation("new@example.com", people.RoleAdmin)
	v := s.visitor()
	v.get(path).shows("Join Acme", "ann@example.com has invited new@example.com to Acme", "as Admin", `name="name"`)
	v.get(path).shows("Join Acme") // opening the link does not use it up
	v.post(path, "name", "", "password", "short").
		answers(http.StatusUnprocessableEntity).shows("Must have 1 to 200 characters", "Must have 8 characters or more")
	is.Equal(v.post(path, "name", "New <b>", "password", password).location(), "/workers?done=joined")
	v.get("/account").shows("Acme, as Admin", "New &lt;b&gt;")
	is.Equal(s.visitor().post(path, "name", "Eve", "password", password).status, http.StatusNotFound)

	withdrawn := s.invitation("other@example.com", people.RoleMember)
	p := owner.get("/settings/members")
	id := regexp.MustCompile(`/settings/invitations/(lnk_\w+)/revoke`).FindStringSubmatch(p.body)
	is.Equal(owner.post(id[0]).location(), "/settings/members?done=invitation-revoked")
	is.Equal(s.visitor().get(withdrawn).status, http.StatusNotFound)
	is.Equal(owner.post(id[0]).status, http.StatusNotFound)
}

// TestInvitationOfExistingUser checks that the link of a person with a password requires that
// password.
func TestInvitationOfExistingUser(t *testing.T) {
	is, s := onSite(t)
	globex := func(email string) {
		_, _, err := s.store.People.CreateKey(t.Context(), people.Operator(), people.NewKey{Name: "k", Email: email,
			Role: people.RoleOwner, OrganizationName: "Globex"})
		is.NoErr(err)
		is.NoErr(s.store.People.SetPassword(t.Context(), email, password))
	}
	globex("sam@globex.test")
	path := s.invitation("sam@globex.test", people.RoleMember)
	v := s.visitor()
	v.get(path).lacks(`name="name"`)
	v.post(path, "name", "Eve", "password", "a new password").
		answers(http.StatusUnprocessableEntity).shows("The email address or the password is wrong.")
	is.Equal(v.get("/account").status, http.StatusSeeOther) // nobody is signed in
	is.Equal(v.post(path, "password", password).location(), "/workers?done=joined")
	v.get("/account").shows("Acme, as Member", `action="/organization"`) // now with a switcher

	globex("kim@globex.test")
	path = s.invitation("kim@globex.test", people.RoleMember)
	b := s.signIn("kim@globex.test")
	b.get(path).lacks("password")
	is.Equal(b.post(path).location(), "/workers?done=joined")
	b.get("/account").shows("Acme, as Member")

	path = s.invitation("new@example.com", people.RoleMember)
	b.get(path).shows("You are signed in here as kim@globex.test.")
	is.Equal(b.post(path, "name", "New", "password", password).location(), "/workers?done=joined")
	b.get("/account").shows("new@example.com")
}
