package dashboard

import (
	"net/http"
	"net/url"
	"strings"

	"journeyman/handlers"
	"journeyman/store"
)

// A signInPage is what the sign-in page shows.
type signInPage struct {
	Form *form
	Next string // the page to go on to
}

// toSignIn sends a browser to the sign-in page, and on from there to where it
// wanted. What a form held is lost with it: nobody was signed in to send it.
func (d *Dashboard) toSignIn(w http.ResponseWriter, r *request) error {
	to := "/sign-in"
	if r.Method == http.MethodGet && r.URL.Path != "/" {
		to += "?next=" + url.QueryEscape(r.URL.RequestURI())
	}
	return redirect(w, r, to)
}

// localPage is the page of ours that next names, and the first one where it names
// none: a link must not lead from our sign-in to another site.
func localPage(next string) string {
	u, err := url.Parse(next)
	if err != nil || u.Scheme != "" || u.Host != "" || u.User != nil || !strings.HasPrefix(next, "/") ||
		strings.HasPrefix(next, "//") || strings.ContainsAny(next, "\\\r\n\t") {
		return "/"
	}
	return next
}

func (d *Dashboard) showSignIn(w http.ResponseWriter, r *request) error {
	next := r.URL.Query().Get("next")
	if r.who.UserID != "" {
		return redirect(w, r, localPage(next))
	}
	return d.page(w, r, "signin.html", "Sign in", signInPage{newForm(nil), next})
}

func (d *Dashboard) signIn(w http.ResponseWriter, r *request) error {
	f, err := readForm(w, r)
	if err != nil {
		return err
	}
	userID, err := d.checkPassword(r, strings.TrimSpace(f.Get("email")), f.Get("password"))
	if err == nil {
		err = d.startSession(w, r, userID)
	}
	if err != nil {
		status, ok := refusedForm(w, f, err)
		if !ok {
			return err
		}
		return d.render(w, r, status, "signin.html", "Sign in", signInPage{f, f.Get("next")})
	}
	return redirect(w, r, localPage(f.Get("next")))
}

// startSession signs the browser in. It always gets a new token: one that was set
// before must not become somebody's.
func (d *Dashboard) startSession(w http.ResponseWriter, r *request, userID string) error {
	token, err := d.store.CreateSession(r.Context(), userID, r.UserAgent(), remoteAddr(r.Request))
	if err == nil {
		http.SetCookie(w, d.sessionCookie(token, int(store.SessionLifetime.Seconds())))
	}
	return err
}

func (d *Dashboard) sessionCookie(token string, maxAge int) *http.Cookie {
	return &http.Cookie{Name: handlers.SessionCookie, Value: token, Path: "/", MaxAge: maxAge, HttpOnly: true, Secure: d.secure,
		SameSite: http.SameSiteLaxMode}
}

func (d *Dashboard) signOut(w http.ResponseWriter, r *request) error {
	if err := d.store.EndSession(r.Context(), r.who.Caller, r.sessionID); err != nil {
		return err
	}
	http.SetCookie(w, d.sessionCookie("", -1))
	return done(w, r, "/sign-in", "signed-out")
}

func (d *Dashboard) switchOrganization(w http.ResponseWriter, r *request) error {
	f, err := readForm(w, r)
	if err != nil {
		return err
	}
	if err := d.store.SwitchOrganization(r.Context(), r.who.Caller, r.sessionID, f.Get("organization")); err != nil {
		return err
	}
	return redirect(w, r, "/workers")
}
