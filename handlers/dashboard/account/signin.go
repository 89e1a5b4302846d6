package account

import (
	"cmp"
	"net/http"
	"strings"

	"journeyman/handlers"
	"journeyman/handlers/dashboard/frame"
	"journeyman/store/gate"
	"journeyman/store/people"
)

// signInRoutes registers the pages with which a session begins and ends.
func (d *Pages) signInRoutes() {
	d.Open("GET", "/sign-in", frame.Blank(d.showSignIn))
	d.Open("POST", "/sign-in", frame.Submitted(d.signIn, d.showSignIn))
	d.On("POST", "/sign-out", d.signOut)
	d.On("POST", "/organization", frame.Submitted(d.switchOrganization, nil))
}

// A signInPage is the data of the sign-in page.
type signInPage struct {
	Form *frame.Form
	Next string // the page to show after signing in
}

func (d *Pages) showSignIn(w http.ResponseWriter, r *frame.Request, status int, f *frame.Form) error {
	if f == nil {
		next := r.URL.Query().Get("next")
		if r.Who.UserID != "" {
			return frame.Redirect(w, r, frame.LocalPage(next))
		}
		f = frame.NewForm(map[string]string{"next": next})
	}
	return d.Render(w, r, status, "signin.html", r.T("Sign in"), signInPage{f, f.Get("next")})
}

func (d *Pages) signIn(w http.ResponseWriter, r *frame.Request, f *frame.Form) (string, error) {
	c, err := d.checkPassword(r, strings.TrimSpace(f.Get("email")), f.Get("password"))
	if err != nil {
		return "", err
	}
	return frame.LocalPage(f.Get("next")), d.startSession(w, r, c)
}

// startSession signs the caller in with a new token. It never keeps an earlier token of the
// browser, which another person may have set.
func (d *Pages) startSession(w http.ResponseWriter, r *frame.Request, c people.Caller) error {
	token, err := d.Store.People.CreateSession(gate.DuringMaintenance(r.Context()), c, r.UserAgent())
	if err == nil {
		d.setSession(w, token)
	}
	return frame.Later(err)
}

// setSession sets the session cookie; an empty token removes it.
func (d *Pages) setSession(w http.ResponseWriter, token string) {
	maxAge := int(people.SessionLifetime.Seconds())
	if token == "" {
		maxAge = -1
	}
	http.SetCookie(w, &http.Cookie{Name: handlers.SessionCookie, Value: token, Path: d.CookiePath(), MaxAge: maxAge,
		HttpOnly: true, Secure: d.Secure, SameSite: http.SameSiteLaxMode})
}

func (d *Pages) signOut(w http.ResponseWriter, r *frame.Request) error {
	if err := d.Store.People.EndSession(gate.DuringMaintenance(r.Context()), r.Who.Caller, r.SessionID); err != nil {
		return err
	}
	d.setSession(w, "")
	return frame.Redirect(w, r, frame.Done("/sign-in", "signed-out"))
}

func (d *Pages) switchOrganization(_ http.ResponseWriter, r *frame.Request, f *frame.Form) (string, error) {
	return frame.LocalPage(cmp.Or(f.Get("next"), "/workers")),
		d.Store.People.SwitchOrganization(r.Context(), r.Who.Caller, r.SessionID, f.Get("organization"))
}
