package account_test

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
	"journeyman/handlers/dashboard/dashboardtest"
	"journeyman/store/people"
)

func TestAccountPage(t *testing.T) {
	is, s := dashboardtest.OnSite(t)
	b, other := s.SignIn("ann@example.com"), s.SignIn("ann@example.com")
	sessions := func() []string {
		return regexp.MustCompile(`/account/sessions/ses_\w+/end`).FindAllString(b.Get("/account").Body, -1)
	}
	earlier := sessions()
	third := s.SignIn("ann@example.com")
	b.Get("/account").Shows("Acme, as Owner", "this browser", "Go-http-client", "Sign out everywhere else")

	is.Equal(b.Post("/account/name", "name", "Ann <i>").Location(), "/account?done=saved")
	b.Get("/account?done=saved").Shows("Ann &lt;i&gt;", "Saved.")
	b.Post("/account/name", "name", " ").Answers(http.StatusUnprocessableEntity).Shows("Must not be blank")

	is.Equal(len(sessions()), 2)
	// Sessions of the same millisecond have no order, so the newest one need not be the first.
	endThird := slices.DeleteFunc(sessions(), func(path string) bool { return slices.Contains(earlier, path) })
	is.Equal(len(endThird), 1)
	s.Join("bob@example.com", people.RoleMember)
	bob := s.SignIn("bob@example.com")
	for _, path := range sessions() {
		is.Equal(bob.Post(path).Status, http.StatusSeeOther) // no session of others ends
	}
	is.Equal(third.Get("/account").Status, http.StatusOK)
	is.Equal(b.Post(endThird[0]).Location(), "/account?done=session-ended")
	is.Equal(third.Get("/account").Status, http.StatusSeeOther)
	is.Equal(other.Get("/account").Status, http.StatusOK)
	is.Equal(b.Post("/account/sessions").Location(), "/account?done=sessions-ended")
	is.Equal(other.Get("/account").Status, http.StatusSeeOther)
	b.Get("/account").Lacks("everywhere else")
}

func TestPasswordChange(t *testing.T) {
	is, s := dashboardtest.OnSite(t)
	b, other := s.SignIn("ann@example.com"), s.SignIn("ann@example.com")
	b.Post("/account/password", "old", "wrong", "password", "another password").
		Answers(http.StatusUnprocessableEntity).Shows("Is not your password.")
	b.Post("/account/password", "old", dashboardtest.Password, "password", "short").
		Answers(http.StatusUnprocessableEntity).Shows("Must have 8 characters or more")
	is.Equal(other.Get("/account").Status, http.StatusOK)
	is.Equal(b.Post("/account/password", "old", dashboardtest.Password, "password", "another password").Location(),
		"/account?done=password-changed")
	is.Equal(b.Get("/account").Status, http.StatusOK)
	is.Equal(other.Get("/account").Status, http.StatusSeeOther)
	is.Equal(s.Visitor().Post("/sign-in", "email", "ann@example.com", "password", "another password").Status,
		http.StatusSeeOther)
}

// TestThrottledSignIn checks that every page with a password shows how long to wait.
func TestThrottledSignIn(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	var later atomic.Int64
	begun := time.Now()
	s := dashboardtest.New(t, func(c *dashboard.Config) {
		c.Now = func() time.Time { return begun.Add(time.Duration(later.Load())) }
	})
	b := s.SignIn("ann@example.com")
	s.Join("bob@example.com", people.RoleMember)
	v := s.Visitor()
	for range 10 {
		is.Equal(v.Post("/sign-in", "email", "ann@example.com", "password", "wrong").Status, http.StatusUnprocessableEntity)
	}
	p := v.Post("/sign-in", "email", "ann@example.com", "password",
		dashboardtest.Password) // the right password is refused, too
	p.Answers(http.StatusTooManyRequests).Shows("There were too many wrong passwords. Try again in 15 minutes.",
		`value="ann@example.com"`)
	is.Equal(p.Header.Get("Retry-After"), "901")
	p = b.Post("/account/password", "old", dashboardtest.Password, "password", "another password")
	is.Equal(p.Status, http.StatusTooManyRequests)
	is.Equal(v.Post("/sign-in", "email", "nobody@example.com", "password", "wrong").Status, http.StatusUnprocessableEntity)
	is.Equal(v.Post("/sign-in", "email", "bob@example.com", "password", dashboardtest.Password).Status,
		http.StatusSeeOther)
	later.Store(int64(15 * time.Minute))
	is.Equal(v.Post("/sign-out").Status, http.StatusSeeOther)
	is.Equal(v.Post("/sign-in", "email", "ann@example.com", "password", dashboardtest.Password).Status,
		http.StatusSeeOther)
}

// TestPreferences checks that theme, language and shortcuts belong to the account.
func TestPreferences(t *testing.T) {
	is, _, b := dashboardtest.AsOwner(t)
	b.Get("/account").Shows(`<html lang="en">`, `name="theme" value="" checked`) // the defaults
	p := b.Post("/account/preferences", "theme", "pink")
	is.Equal(p.Status, http.StatusUnprocessableEntity)
	is.Equal(b.Post("/account/preferences", "theme", "dark", "language", "de").Location(), "/account?done=saved")
	b.Get("/account").Shows(`<html lang="de" data-theme="dark">`, `content="dark"`, `data-shortcuts="off"`)
	is.Equal(b.Post("/account/preferences", "theme", "", "language", "xx", "shortcuts", "1").Status, http.StatusSeeOther)
	b.Get("/account").Shows(`<html lang="en">`) // an unknown language counts as not chosen
}

// TestErrorsAreTranslated checks errors of the store on German pages: of a form, of an address, and of a
// filter.
func TestErrorsAreTranslated(t *testing.T) {
	_, s, b := dashboardtest.AsOwner(t)
	b.Post("/account/preferences", "theme", "dark", "language", "de")
	b.Post("/settings/keys", "name", strings.Repeat("x", 1001)).Shows("Diese Angabe ist ungültig: must have 1 to ")
	b.Get("/tasks/tsk_none").Answers(http.StatusNotFound).Shows("Das gibt es hier nicht: no task has that id.")
	b.Get("/mail?cursor=x").Shows("Diese Angabe ist ungültig: is not a nextCursor of this list")
	b.Get("/nowhere").Shows("Das gibt es hier nicht: there is no page at this address.")
	s.Visitor().Post("/sign-in", "email", "ann@example.com", "password",
		"wrong").Shows("The email address or the password is wrong.")
}
