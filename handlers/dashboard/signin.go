package dashboard

import (
	"cmp"
	"net/http"
	"strings"

	"journeyman/handlers"
	"journeyman/store"
	"journeyman/store/gate"
)

// A signInPage is the data of the sign-in page.
type signInPage struct {
	Form *form
	Next string // the page to show after signing in
}

func (d *Dashboard) showSignIn(w http.ResponseWriter, r *request, status int, f *form) error {
	if f == nil {
		next := r.URL.Query().Get("next")
		if r.who.UserID != "" {
			return redirect(w, r, localPage(next))
		}
		f = newForm(map[string]string{"next": next})
	}
	return d.render(w, r, status, "signin.html", r.t("Sign in"), signInPage{f, f.Get("next")})
}

func (d *Dashboard) signIn(w http.ResponseWriter, r *request, f *form) (string, error) {
	c, err := d.checkPassword(r, strings.TrimSpace(f.Get("email")), f.Get("password"))
	if err != nil {
		return "", err
	}
	return localPage(f.Get("next")), d.startSession(w, r, c)
}

// startSession signs the caller in with a new token. It never keeps an earlier token of the
// browser, which another person may have set.
func (d *Dashboard) startSession(w http.ResponseWriter, r *request, c store.Caller) error {
	token, err := d.store.CreateSession(gate.DuringMaintenance(r.Context()), c, r.UserAgent())
	if err == nil {
		d.setSession(w, token)
	}
	return later(err)
}

// setSession sets the session cookie; an empty token removes it.
func (d *Dashboard) setSession(w http.ResponseWriter, token string) {
	maxAge := int(store.SessionLifetime.Seconds())
	if token == "" {
		maxAge = -1
	}
	http.SetCookie(w, &http.Cookie{Name: handlers.SessionCookie, Value: token, Path: d.cookiePath(), MaxAge: maxAge,
		HttpOnly: true, Secure: d.secure, SameSite: http.SameSiteLaxMode})
}

func (d *Dashboard) signOut(w http.ResponseWriter, r *request) error {
	if err := d.store.EndSession(gate.DuringMaintenance(r.Context()), r.who.Caller, r.sessionID); err != nil {
		return err
	}
	d.setSession(w, "")
	return redirect(w, r, done("/sign-in", "signed-out"))
}

func (d *Dashboard) switchOrganization(_ http.ResponseWriter, r *request, f *form) (string, error) {
	return localPage(cmp.Or(f.Get("next"), "/workers")),
		d.store.SwitchOrganization(r.Context(), r.who.Caller, r.sessionID, f.Get("organization"))
}
