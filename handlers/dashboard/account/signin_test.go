package account_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"journeyman/handlers/dashboard/dashboardtest"
	"journeyman/store/people"
	"journeyman/store/storetest"
)

func TestSignIn(t *testing.T) {
	is, s := dashboardtest.OnSite(t)
	v := s.Visitor()
	p := v.Get("/tasks/tsk_1?x=y")
	is.Equal(p.Status, http.StatusSeeOther)
	is.Equal(p.Location(), "/sign-in?next="+url.QueryEscape("/tasks/tsk_1?x=y"))
	v.Get(p.Location()).Shows(`name="next" value="/tasks/tsk_1?x=y"`, "<code>journeyman user reset EMAIL</code>")

	p = v.Post("/sign-in", "email", "ann@example.com", "password", "wrong", "next", "/tasks")
	p.Answers(http.StatusUnprocessableEntity).Shows("The email address or the password is wrong.",
		`value="ann@example.com"`, `value="/tasks"`)
	p.Lacks("wrong\"") // passwords are not shown again

	p = v.Post("/sign-in", "email", " ann@example.com ", "password", dashboardtest.Password, "next", "/settings")
	is.Equal(p.Status, http.StatusSeeOther)
	is.Equal(p.Location(), "/settings")
	cookie := p.Header.Get("Set-Cookie")
	is.True(strings.Contains(cookie, "HttpOnly") && strings.Contains(cookie, "SameSite=Lax"))
	is.Equal(v.Get("/sign-in?next=%2Fsettings").Location(), "/settings") // already signed in

	is.Equal(v.Post("/sign-out").Location(), "/sign-in?done=signed-out")
	is.Equal(v.Get("/").Location(), "/sign-in")
}

func TestSignInLeadsNowhereElse(t *testing.T) {
	t.Parallel()
	s := dashboardtest.New(t)
	for _, next := range []string{"https://evil.example/", "//evil.example", `/\evil.example`, "/\t/evil.example",
		"javascript:alert(1)", "evil", "", "http:/evil.example", "/\n/evil.example"} {
		p := s.Visitor().Post("/sign-in", "email", "ann@example.com", "password", dashboardtest.Password, "next", next)
		if p.Status != http.StatusSeeOther || p.Location() != "/" {
			t.Errorf("next=%q leads to %q", next, p.Location())
		}
	}
}

// TestOrganizationSwitch switches between the organizations of a user. Other organizations are
// refused.
func TestOrganizationSwitch(t *testing.T) {
	is, s, b := dashboardtest.AsOwner(t)
	there, _ := storetest.Caller(t, s.Store, "Globex <b>", "ann@example.com", people.RoleMember)
	foreign, _ := storetest.Caller(t, s.Store, "Initech", "sam@initech.test", people.RoleOwner)
	b.Get("/account").Shows("Acme, as Owner", "Globex &lt;b&gt;")
	b.Get("/account").Lacks("Initech")
	is.Equal(b.Post("/organization", "organization", there.OrganizationID).Location(), "/workers")
	b.Get("/account").Shows("Globex &lt;b&gt;, as Member")
	is.Equal(b.Get("/settings/keys").Status, http.StatusForbidden) // a Member there
	is.Equal(b.Post("/organization", "organization", foreign.OrganizationID).Status, http.StatusForbidden)
	s.SignIn("ann@example.com").Get("/account").Shows("Globex &lt;b&gt;, as Member") // the last organization of the user
}
