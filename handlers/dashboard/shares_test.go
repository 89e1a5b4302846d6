package dashboard_test

import (
	"net"
	"net/http"
	"testing"

	"journeyman/handlers/dashboard/dashboardtest"
	"journeyman/store/people"
)

// TestPasswordsAreShared checks as many passwords at once as one address may. Other addresses need
// not wait.
func TestPasswordsAreShared(t *testing.T) {
	is, s := dashboardtest.OnSite(t)
	invitation := s.Invitation("new@example.com", people.RoleMember)
	var releases []func()
	for {
		release, err := s.API.HoldPassword("127.0.0.1", "", "")
		if err != nil {
			break
		}
		releases = append(releases, release)
	}
	is.Equal(len(releases), 32) // half of all
	ann := s.Visitor()
	p := ann.Post("/sign-in", "email", "ann@example.com", "password", dashboardtest.Password)
	is.Equal(p.Status, http.StatusTooManyRequests)
	is.Equal(p.Header.Get("Retry-After"), "5")
	p.Shows("Your address has 32 passwords being checked, the most it may have")
	p = ann.Post(invitation, "name", "New", "password", dashboardtest.Password)
	is.Equal(p.Status, http.StatusTooManyRequests)

	elsewhere := s.Visitor()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP("127.0.0.2")}}
	elsewhere.Client.Transport = &http.Transport{DialContext: dialer.DialContext}
	is.Equal(elsewhere.Post("/sign-in", "email", "ann@example.com", "password", dashboardtest.Password).Status,
		http.StatusSeeOther)
	for _, release := range releases {
		release()
	}
	is.Equal(ann.Post("/sign-in", "email", "ann@example.com", "password", dashboardtest.Password).Status,
		http.StatusSeeOther)
}

// TestPagesAreShared holds as many requests as one user may.
func TestPagesAreShared(t *testing.T) {
	is, s := dashboardtest.OnSite(t)
	s.Join("mo@example.com", people.RoleMember)
	ann, mo := s.SignIn("ann@example.com"), s.SignIn("mo@example.com")
	who := s.Owner
	who.KeyID = "" // in a browser
	for {
		release, err := s.API.HoldPage(who)
		if err != nil {
			break
		}
		t.Cleanup(release)
	}
	p := ann.Get("/workers")
	is.Equal(p.Status, http.StatusTooManyRequests)
	is.Equal(p.Header.Get("Retry-After"), "5")
	p.Shows("This user has 4096 requests under way")
	is.Equal(mo.Get("/workers").Status, http.StatusOK)
}
