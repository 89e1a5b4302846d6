package dashboard_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"journeyman/store/people"
	"journeyman/store/storetest"
)

func TestSignIn(t *testing.T) {
	is, s := onSite(t)
	v := s.visitor()
	p := v.get("/tasks/tsk_1?x=y")
	is.Equal(p.status, http.StatusSeeOther)
	is.Equal(p.location(), "/sign-in?next="+url.QueryEscape("/tasks/tsk_1?x=y"))
	v.get(p.location()).shows(`name="next" value="/tasks/tsk_1?x=y"`, "<code>journeyman user reset EMAIL</code>")

	p = v.post("/sign-in", "email", "ann@example.com", "password", "wrong", "next", "/tasks")
	p.answers(http.StatusUnprocessableEntity).shows("The email address or the password is wrong.", `value="ann@example.com"`, `value="/tasks"`)
	p.lacks("wrong\"") // passwords are not shown again

	p = v.post("/sign-in", "email", " ann@example.com ", "password", password, "next", "/settings")
	is.Equal(p.status, http.StatusSeeOther)
	is.Equal(p.location(), "/settings")
	cookie := p.header.Get("Set-Cookie")
	is.True(strings.Contains(cookie, "HttpOnly") && strings.Contains(cookie, "SameSite=Lax"))
	is.Equal(v.get("/sign-in?next=%2Fsettings").location(), "/settings") // already signed in

	is.Equal(v.post("/sign-out").location(), "/sign-in?done=signed-out")
	is.Equal(v.get("/").location(), "/sign-in")
}

func TestSignInLeadsNowhereElse(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for _, next := range []string{"https://evil.example/", "//evil.example", `/\evil.example`, "/\t/evil.example", "javascript:alert(1)", "evil", "", "http:/evil.example", "/\n/evil.example"} {
		p := s.visitor().post("/sign-in", "email", "ann@example.com", "password", password, "next", next)
		if p.status != http.StatusSeeOther || p.location() != "/" {
			t.Errorf("next=%q leads to %q", next, p.location())
		}
	}
}

// TestOrganizationSwitch switches between the organizations of a user. Other organizations are
// refused.
func TestOrganizationSwitch(t *testing.T) {
	is, s, b := asOwner(t)
	there, _ := storetest.Caller(t, s.store, "Globex <b>", "ann@example.com", people.RoleMember)
	foreign, _ := storetest.Caller(t, s.store, "Initech", "sam@initech.test", people.RoleOwner)
	b.get("/account").shows("Acme, as Owner", "Globex &lt;b&gt;")
	b.get("/account").lacks("Initech")
	is.Equal(b.post("/organization", "organization", there.OrganizationID).location(), "/workers")
	b.get("/account").shows("Globex &lt;b&gt;, as Member")
	is.Equal(b.get("/settings/keys").status, http.StatusForbidden) // a Member there
	is.Equal(b.post("/organization", "organization", foreign.OrganizationID).status, http.StatusForbidden)
	s.signIn("ann@example.com").get("/account").shows("Globex &lt;b&gt;, as Member") // the last organization of the user
}
