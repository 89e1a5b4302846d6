package dashboard_test

import (
	"net"
	"net/http"
	"testing"

	"journeyman/store/people"
)

// TestPasswordsAreShared checks as many passwords at once as one address may. Other addresses need
// not wait.
func TestPasswordsAreShared(t *testing.T) {
	is, s := onSite(t)
	invitation := s.invitation("new@example.com", people.RoleMember)
	var releases []func()
	for {
		release, err := s.api.HoldPassword("127.0.0.1", "", "")
		if err != nil {
			break
		}
		releases = append(releases, release)
	}
	is.Equal(len(releases), 32) // half of all
	ann := s.visitor()
	p := ann.post("/sign-in", "email", "ann@example.com", "password", password)
	is.Equal(p.status, http.StatusTooManyRequests)
	is.Equal(p.header.Get("Retry-After"), "5")
	p.shows("Your address has 32 passwords being checked, the most it may have")
	p = ann.post(invitation, "name", "New", "password", password)
	is.Equal(p.status, http.StatusTooManyRequests)

	elsewhere := s.visitor()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP("127.0.0.2")}}
	elsewhere.client.Transport = &http.Transport{DialContext: dialer.DialContext}
	is.Equal(elsewhere.post("/sign-in", "email", "ann@example.com", "password", password).status, http.StatusSeeOther)
	for _, release := range releases {
		release()
	}
	is.Equal(ann.post("/sign-in", "email", "ann@example.com", "password", password).status, http.StatusSeeOther)
}

// TestPagesAreShared holds as many requests as one user may.
func TestPagesAreShared(t *testing.T) {
	is, s := onSite(t)
	s.join("mo@example.com", people.RoleMember)
	ann, mo := s.signIn("ann@example.com"), s.signIn("mo@example.com")
	who := s.owner
	who.KeyID = "" // in a browser
	for {
		release, err := s.api.HoldPage(who)
		if err != nil {
			break
		}
		t.Cleanup(release)
	}
	p := ann.get("/workers")
	is.Equal(p.status, http.StatusTooManyRequests)
	is.Equal(p.header.Get("Retry-After"), "5")
	p.shows("This user has 4096 requests under way")
	is.Equal(mo.get("/workers").status, http.StatusOK)
}
