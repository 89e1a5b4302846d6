package command_test

import (
	"net/http"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/store/storetest"
)

var (
	signInPrinted   = regexp.MustCompile(`dashboard +(http://\S+/) +sign in as (\S+) with password (\S+)\n`)
	invitationShown = regexp.MustCompile(`/invitation/[A-Za-z0-9_-]{20,}`)
	welcomePrinted  = regexp.MustCompile(`(http://\S+)(/welcome/\S+)`)
)

// form sends a form of a page and returns its redirect, and the session's cookie.
func (s *instance) form(t testing.TB, path, cookie string, values url.Values) (location, session string) {
	t.Helper()
	// Another client, because the usual one follows redirects.
	client := &http.Client{Transport: s.http.Transport, Timeout: patience,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+path, strings.NewReader(values.Encode()))
	is.New(t).NoErr(err)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Cookie", cookie)
	res, err := client.Do(r)
	is.New(t).NoErr(err)
	defer res.Body.Close()
	for _, c := range res.Cookies() {
		session = c.Name + "=" + c.Value
	}
	return res.Header.Get("Location"), session
}

// signIn signs in on the page. session is "" if the sign-in was refused.
func (s *instance) signIn(t testing.TB, email, password string) (session string) {
	t.Helper()
	_, session = s.form(t, "/sign-in", "", url.Values{"email": {email}, "password": {password}})
	return session
}

// signedIn reports whether a session works.
func (s *instance) signedIn(t *testing.T, session string) bool {
	t.Helper()
	location, _ := s.form(t, "/account/name", session, url.Values{"name": {"Ann"}})
	return strings.HasPrefix(location, "/account")
}

// TestFirstSignIn signs in with the printed password of the first start, and resets a forgotten
// password.
func TestFirstSignIn(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	dir := filepath.Join(t.TempDir(), "data")
	args := []string{"--data", dir, "--addr", "127.0.0.1:0"}
	s := invocation{}.serve(t, dir, "", args...)
	said := s.awaitWelcome(t)
	signIn, link := signInPrinted.FindStringSubmatch(said), welcomePrinted.FindStringSubmatch(said)
	is.Equal([]string{signIn[1], signIn[2], link[1]}, []string{s.url + "/", "owner@localhost", s.url})
	is.True(!strings.Contains(s.stderr.String(), signIn[3]) && !strings.Contains(s.stderr.String(), link[2])) // the log holds neither
	printed := s.signIn(t, "owner@localhost", signIn[3])
	is.True(s.signedIn(t, printed))
	location, own := s.form(t, link[2], "", url.Values{"name": {"Ann"}, "email": {"ann@example.com"}, "password": {"a password of my own"}})
	is.Equal(location, "/workers/new?done=password-chosen")
	is.True(s.signedIn(t, own))
	is.True(!s.signedIn(t, printed))
	is.Equal(s.signIn(t, "owner@localhost", signIn[3]), "") // another password is refused

	// A reset link from the running server has the server's own URL.
	list := invocation{}.run(t, "user", "list", "--data", dir)
	is.True(strings.Contains(list.stdout.String(), "ann@example.com"))
	reset := strings.TrimSpace(invocation{}.run(t, "user", "reset", "ann@example.com", "--data", dir).stdout.String())
	path, ours := strings.CutPrefix(reset, s.url)
	is.True(ours)
	_, next := s.form(t, path, "", url.Values{"password": {"yet another one"}})
	is.True(s.signedIn(t, next))
	is.True(!s.signedIn(t, own))
	s.stop(t)

	// A reset link from a stopped server has the URL of the flag.
	reset = strings.TrimSpace(invocation{}.run(t, "user", "reset", "ann@example.com", "--data", dir, "--base-url", "https://jm.example").stdout.String())
	path, ours = strings.CutPrefix(reset, "https://jm.example")
	is.True(ours)
	invocation{}.start(t, "user", "reset", "eve@example.com", "--data", dir).exitedWith(t, 1, "no user has that email address")
	s = invocation{}.serve(t, dir, s.key, args...)
	said = s.awaitWelcome(t)
	is.True(strings.Contains(said, s.url+"/\n") && !strings.Contains(said, "password") && !strings.Contains(said, "welcome")) // shown only once
	is.True(s.signedIn(t, next))                                                                                              // the session survives a restart
	_, last := s.form(t, path, "", url.Values{"password": {"the last one"}})
	is.True(s.signedIn(t, last))
}

// TestAddressTakenByAnotherOrganization has an organization choose the password of an account with somebody
// else's address. The holder of the address joins another organization in the way that the error names.
func TestAddressTakenByAnotherOrganization(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	dir := t.TempDir()
	s := serve(t, dir, "--admin-email", "ann@example.com", "--admin-password", "given on the line")
	owner := s.signIn(t, "ann@example.com", "given on the line")
	location, _ := s.form(t, "/settings/members", owner, url.Values{"email": {"vic@example.com"}, "role": {"member"}})
	page, err := s.send(t.Context(), http.MethodGet, location, nil, "Cookie", owner, "Authorization", "")
	is.NoErr(err)
	_, taken := s.form(t, invitationShown.FindString(string(page.body)), "", url.Values{"name": {"Not Vic"}, "password": {"chosen by Acme"}})
	is.True(s.signedIn(t, taken))

	create := []string{"key", "create", "--data", dir, "--user", "vic@example.com", "--role", "owner", "--org", "Three", "--name", "K"}
	p := invocation{}.start(t, create...)
	p.exitedWith(t, 1, "run journeyman user reset vic@example.com on the server")
	reset := strings.TrimSpace(invocation{}.run(t, "user", "reset", "vic@example.com", "--data", dir).stdout.String())
	_, own := s.form(t, strings.TrimPrefix(reset, s.url), "", url.Values{"password": {"chosen by the holder"}})
	is.True(s.signedIn(t, own))
	is.True(!s.signedIn(t, taken))
	is.Equal(s.signIn(t, "vic@example.com", "chosen by Acme"), "")
	key := strings.TrimSpace(invocation{}.run(t, create...).stdout.String())
	a, err := s.send(t.Context(), http.MethodGet, "/api/workers", nil, "Authorization", "Bearer "+key)
	is.NoErr(err)
	is.Equal(a.status, http.StatusOK)
}

// TestGivenPassword checks that a start with the same password keeps the sessions, and one with
// another password ends them.
func TestGivenPassword(t *testing.T) {
	storetest.Slow(t)
	t.Parallel()
	is := is.New(t)
	dir := t.TempDir()
	s := serve(t, dir, "--admin-email", "ann@example.com", "--admin-password", "given on the line")
	said := s.awaitWelcome(t)
	is.True(!strings.Contains(said, "given on") && !strings.Contains(said, "welcome")) // the operator knows the given password
	session := s.signIn(t, "ann@example.com", "given on the line")
	is.True(s.signedIn(t, session))
	s.stop(t)
	s = serve(t, dir, "--admin-email", "ann@example.com", "--admin-password", "given on the line")
	is.True(s.signedIn(t, session))
	s.stop(t)
	s = serve(t, dir, "--admin-email", "ann@example.com", "--admin-password", "given as another")
	is.True(!s.signedIn(t, session))
	is.True(s.signedIn(t, s.signIn(t, "ann@example.com", "given as another")))
}
