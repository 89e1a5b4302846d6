package dashboard_test

import (
	"testing"

	"github.com/chromedp/chromedp/kb"
	"github.com/matryer/is"

	"journeyman/handlers/dashboard/dashboardtest"
)

func TestBrowserSignIn(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	w := newWindow(dashboardtest.New(t))

	w.open("/usage?days=30") // signed out: the sign-in returns to this page
	w.arrives("/sign-in")
	w.look("sign-in")
	w.fill("Email", "ann@example.com")
	w.fill("Password", "wrong")
	w.click("Sign in")
	w.until("the refusal", "document.querySelector('.error')")
	is.Equal(w.text("document.querySelector('input[name=email]').value"), "ann@example.com") // the typed text stays
	is.Equal(w.text("document.querySelector('input[name=password]').value"), "")
	w.look("sign-in-refused")

	// With the keyboard only.
	w.fill("Password", dashboardtest.Password)
	w.press(kb.Enter)
	w.arrives("/usage")
	is.Equal(w.text("location.search"), "?days=30")
	w.text("document.querySelector('.side .menu > summary').click()") // the menu of the account
	w.click("Sign out")
	w.arrives("/sign-in")
	w.sees("You are signed out.")
}
