package dashboard

import (
	"errors"
	"net/http"
	"strings"

	"journeyman/store"
)

// accountRoutes are the pages of everybody's own account.
func (d *Dashboard) accountRoutes() {
	d.on("GET", "/account", d.showAccount)
	d.on("POST", "/account/name", d.changeName)
	d.on("POST", "/account/password", d.changePassword)
	d.on("POST", "/account/sessions", d.endOtherSessions)
	d.on("POST", "/account/sessions/:sessionId/end", d.endSession)
}

// An accountPage shows who is signed in, and where.
type accountPage struct {
	Name     *form
	Password *form
	Sessions []sessionRow
}

type sessionRow struct {
	store.Session
	Here bool
}

// Browser names the browser and its system, as far as it tells.
func (s sessionRow) Browser() string { return browserName(s.UserAgent) }

// browserName is short for what a browser calls itself.
func browserName(agent string) string {
	find := func(names ...string) string {
		for i := 0; i < len(names); i += 2 {
			if strings.Contains(agent, names[i]) {
				return names[i+1]
			}
		}
		return ""
	}
	// Most claim to be others, too; the ones that do come first.
	browser := find("Edg", "Edge", "OPR", "Opera", "Firefox", "Firefox", "Chrom", "Chrome", "Safari", "Safari")
	system := find("Android", "Android", "iPhone", "iPhone", "iPad", "iPad", "Windows", "Windows", "Mac OS", "macOS", "CrOS", "ChromeOS", "Linux", "Linux")
	switch {
	case browser != "" && system != "":
		return browser + " on " + system
	case browser != "":
		return browser
	case agent == "":
		return "Unknown browser"
	}
	const most = 40
	if r := []rune(agent); len(r) > most {
		return string(r[:most]) + "…"
	}
	return agent
}

func (d *Dashboard) showAccount(w http.ResponseWriter, r *request) error {
	return d.accountPage(w, r, http.StatusOK, nil, nil)
}

// accountPage shows the page with the form that was refused, if any.
func (d *Dashboard) accountPage(w http.ResponseWriter, r *request, status int, name, password *form) error {
	sessions, err := d.store.Sessions(r.Context(), r.who.UserID)
	if err != nil {
		return err
	}
	if name == nil {
		name = newForm(map[string]string{"name": r.who.UserName})
	}
	if password == nil {
		password = newForm(nil)
	}
	p := accountPage{Name: name, Password: password}
	for _, s := range sessions {
		p.Sessions = append(p.Sessions, sessionRow{s, s.ID == r.sessionID})
	}
	return d.render(w, r, status, "account.html", "Your account", p)
}

func (d *Dashboard) changeName(w http.ResponseWriter, r *request) error {
	f, err := readForm(w, r)
	if err != nil {
		return err
	}
	if err := d.store.RenameUser(r.Context(), r.who.Caller, f.Get("name")); err != nil {
		if !f.refused(err) {
			return err
		}
		return d.accountPage(w, r, http.StatusUnprocessableEntity, f, nil)
	}
	return done(w, r, "/account", "saved")
}

// changePassword takes the old password as sign-in does: a browser left alone for a
// moment is no licence to guess it.
func (d *Dashboard) changePassword(w http.ResponseWriter, r *request) error {
	f, err := readForm(w, r)
	if err != nil {
		return err
	}
	err = d.throttle.begin(r.who.Email, r.who.RemoteAddr)
	if err == nil {
		err = d.store.ChangePassword(r.Context(), r.who, r.sessionID, f.Get("old"), f.Get("password"))
		if !wrongField(err, "old") {
			d.throttle.forgive(r.who.Email, r.who.RemoteAddr, err == nil)
		}
	}
	if err != nil {
		status, ok := refusedForm(w, f, err)
		if !ok {
			return err
		}
		return d.accountPage(w, r, status, nil, f)
	}
	return done(w, r, "/account", "password-changed")
}

// wrongField reports whether err says that the field is wrong.
func wrongField(err error, path string) bool {
	var e *store.Error
	if !errors.As(err, &e) {
		return false
	}
	for _, detail := range e.Details {
		if detail.Path == path {
			return true
		}
	}
	return false
}

func (d *Dashboard) endOtherSessions(w http.ResponseWriter, r *request) error {
	if err := d.store.EndOtherSessions(r.Context(), r.who.Caller, r.sessionID); err != nil {
		return err
	}
	return done(w, r, "/account", "sessions-ended")
}

func (d *Dashboard) endSession(w http.ResponseWriter, r *request) error {
	if err := d.store.EndSession(r.Context(), r.who.Caller, r.params.ByName("sessionId")); err != nil {
		return err
	}
	return done(w, r, "/account", "session-ended")
}
