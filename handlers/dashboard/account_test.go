package dashboard_test

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/handlers/dashboard"
	"journeyman/store/people"
)

func TestAccountPage(t *testing.T) {
	is, s := onSite(t)
	b, other := s.signIn("ann@example.com"), s.signIn("ann@example.com")
	sessions := func() []string {
		return regexp.MustCompile(`/account/sessions/ses_\w+/end`).FindAllString(b.get("/account").body, -1)
	}
	earlier := sessions()
	third := s.signIn("ann@example.com")
	b.get("/account").shows("Acme, as Owner", "this browser", "Go-http-client", "Sign out everywhere else")

	is.Equal(b.post("/account/name", "name", "Ann <i>").location(), "/account?done=saved")
	b.get("/account?done=saved").shows("Ann &lt;i&gt;", "Saved.")
	b.post("/account/name", "name", " ").answers(http.StatusUnprocessableEntity).shows("Must not be blank")

	is.Equal(len(sessions()), 2)
	// Sessions of the same millisecond have no order, so the newest one need not be the first.
	endThird := slices.DeleteFunc(sessions(), func(path string) bool { return slices.Contains(earlier, path) })
	is.Equal(len(endThird), 1)
	s.join("bob@example.com", people.RoleMember)
	bob := s.signIn("bob@example.com")
	for _, path := range sessions() {
		is.Equal(bob.post(path).status, http.StatusSeeOther) // no session of others ends
	}
	is.Equal(third.get("/account").status, http.StatusOK)
	is.Equal(b.post(endThird[0]).location(), "/account?done=session-ended")
	is.Equal(third.get("/account").status, http.StatusSeeOther)
	is.Equal(other.get("/account").status, http.StatusOK)
	is.Equal(b.post("/account/sessions").location(), "/account?done=sessions-ended")
	is.Equal(other.get("/account").status, http.StatusSeeOther)
	b.get("/account").lacks("everywhere else")
}

func TestPasswordChange(t *testing.T) {
	is, s := onSite(t)
	b, other := s.signIn("ann@example.com"), s.signIn("ann@example.com")
	b.post("/account/password", "old", "wrong", "password", "another password").
		answers(http.StatusUnprocessableEntity).shows("Is not your password.")
	b.post("/account/password", "old", password, "password", "short").
		answers(http.StatusUnprocessableEntity).shows("Must have 8 characters or more")
	is.Equal(other.get("/account").status, http.StatusOK)
	is.Equal(b.post("/account/password", "old", password, "password", "another password").location(), "/account?done=password-changed")
	is.Equal(b.get("/account").status, http.StatusOK)
	is.Equal(other.get("/account").status, http.StatusSeeOther)
	is.Equal(s.visitor().post("/sign-in", "email", "ann@example.com", "password", "another password").status, http.StatusSeeOther)
}

// TestThrottledSignIn checks that every page with a password shows how long to wait.
func TestThrottledSignIn(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	var later atomic.Int64
	begun := time.Now()
	s := newSite(t, func(c *dashboard.Config) {
		c.Now = func() time.Time { return begun.Add(time.Duration(later.Load())) }
	})
	b := s.signIn("ann@example.com")
	s.join("bob@example.com", people.RoleMember)
	v := s.visitor()
	for range 10 {
		is.Equal(v.post("/sign-in", "email", "ann@example.com", "password", "wrong").status, http.StatusUnprocessableEntity)
	}
	p := v.post("/sign-in", "email", "ann@example.com", "password", password) // the right password is refused, too
	p.answers(http.StatusTooManyRequests).shows("There were too many wrong passwords. Try again in 15 minutes.", `value="ann@example.com"`)
	is.Equal(p.header.Get("Retry-After"), "901")
	p = b.post("/account/password", "old", password, "password", "another password")
	is.Equal(p.status, http.StatusTooManyRequests)
	is.Equal(v.post("/sign-in", "email", "nobody@example.com", "password", "wrong").status, http.StatusUnprocessableEntity)
	is.Equal(v.post("/sign-in", "email", "bob@example.com", "password", password).status, http.StatusSeeOther)
	later.Store(int64(15 * time.Minute))
	is.Equal(v.post("/sign-out").status, http.StatusSeeOther)
	is.Equal(v.post("/sign-in", "email", "ann@example.com", "password", password).status, http.StatusSeeOther)
}

// TestPreferences checks that theme, language and shortcuts belong to the account.
func TestPreferences(t *testing.T) {
	is, _, b := asOwner(t)
	b.get("/account").shows(`<html lang="en">`, `name="theme" value="" checked`) // the defaults
	p := b.post("/account/preferences", "theme", "pink")
	is.Equal(p.status, http.StatusUnprocessableEntity)
	is.Equal(b.post("/account/preferences", "theme", "dark", "language", "de").location(), "/account?done=saved")
	b.get("/account").shows(`<html lang="de" data-theme="dark">`, `content="dark"`, `data-shortcuts="off"`)
	is.Equal(b.post("/account/preferences", "theme", "", "language", "xx", "shortcuts", "1").status, http.StatusSeeOther)
	b.get("/account").shows(`<html lang="en">`) // an unknown language counts as not chosen
}

// TestErrorsAreTranslated checks errors of the store on German pages: of a form, of an address, and of a
// filter.
func TestErrorsAreTranslated(t *testing.T) {
	_, s, b := asOwner(t)
	b.post("/account/preferences", "theme", "dark", "language", "de")
	b.post("/settings/keys", "name", strings.Repeat("x", 1001)).shows("Diese Angabe ist ungültig: must have 1 to ")
	b.get("/tasks/tsk_none").answers(http.StatusNotFound).shows("Das gibt es hier nicht: no task has that id.")
	b.get("/mail?cursor=x").shows("Diese Angabe ist ungültig: is not a nextCursor of this list")
	b.get("/nowhere").shows("Das gibt es hier nicht: there is no page at this address.")
	s.visitor().post("/sign-in", "email", "ann@example.com", "password", "wrong").shows("The email address or the password is wrong.")
}
