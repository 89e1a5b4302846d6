package dashboard

import (
	"cmp"
	"errors"
	"net/http"
	"slices"
	"strings"

	"journeyman/handlers/dashboard/show"
	"journeyman/store"
)

// accountRoutes registers the pages of the user's own account.
func (d *Dashboard) accountRoutes() {
	part := func(put func(p *accountPage, f *form)) formPage {
		return func(w http.ResponseWriter, r *request, status int, f *form) error {
			p := accountPage{}
			put(&p, f)
			return d.accountPage(w, r, status, p)
		}
	}
	namePage := part(func(p *accountPage, f *form) { p.Name = f })
	passwordPage := part(func(p *accountPage, f *form) { p.Password = f })
	looksPage := part(func(p *accountPage, f *form) { p.Looks = f })
	d.on("GET", "/account", blank(namePage))
	d.on("POST", "/account/name", submitted(d.changeName, namePage))
	d.on("POST", "/account/password", submitted(d.changePassword, passwordPage))
	d.on("POST", "/account/preferences", submitted(d.changePreferences, looksPage))
	d.on("POST", "/account/sessions", button(d.endOtherSessions))
	d.on("POST", "/account/sessions/:sessionId/end",
		changing("sessionId", d.store.EndSession, done("/account", "session-ended")))
}

// An accountPage shows the forms of an account and the browsers that are signed in.
type accountPage struct {
	Name      *form
	Password  *form
	Looks     *form // theme, language and shortcuts
	Themes    []option
	Languages []option
	Sessions  []sessionRow
	Programs  []store.OAuthGrant // the programs that act for the user
}

type sessionRow struct {
	store.Session
	Here bool // the session of this browser
}

// Browser names the browser and its system, as far as the user agent names them. It returns an
// empty string for a browser without a user agent.
func (s sessionRow) Browser() string { return browserName(s.UserAgent) }

// browserName returns a short name for a user agent.
func browserName(agent string) string {
	find := func(names ...string) string {
		for i := 0; i < len(names); i += 2 {
			if strings.Contains(agent, names[i]) {
				return names[i+1]
			}
		}
		return ""
	}
	// Most browsers also name others: Edge names Chrome and Safari, too. The order finds the real
	// name.
	browser := find("Edg", "Edge", "OPR", "Opera", "Firefox", "Firefox", "Chrom", "Chrome", "Safari", "Safari")
	system := find("Android", "Android", "iPhone", "iPhone", "iPad", "iPad", "Windows", "Windows",
		"Mac OS", "macOS", "CrOS", "ChromeOS", "Linux", "Linux")
	switch {
	case browser != "" && system != "":
		return browser + " on " + system
	case browser != "":
		return browser
	}
	return show.Ellipsis(agent, 40)
}

// accountPage writes the page. Each form of p is a refused form, or nil if it was not sent.
func (d *Dashboard) accountPage(w http.ResponseWriter, r *request, status int, p accountPage) (err error) {
	sessions, err := d.store.Sessions(r.Context(), r.who.Caller)
	if err != nil {
		return err
	}
	if p.Programs, err = d.store.OAuthGrants(r.Context(), r.who.Caller); err != nil {
		return err
	}
	p.Name = cmp.Or(p.Name, newForm(map[string]string{"name": r.who.UserName}))
	p.Password = cmp.Or(p.Password, newForm(nil))
	p.Looks = cmp.Or(p.Looks, newForm(map[string]string{"language": r.who.Language}))
	p.Themes = []option{{"", r.t("System setting")}, {"light", r.t("Light")}, {"dark", r.t("Dark")}}
	p.Languages = []option{{"", r.t("Browser setting")}}
	for _, l := range d.languages {
		p.Languages = append(p.Languages, option{l.Code, l.Name})
	}
	for _, s := range sessions {
		p.Sessions = append(p.Sessions, sessionRow{s, s.ID == r.sessionID})
	}
	return d.render(w, r, status, "account.html", r.t("Your account"), p)
}

func (d *Dashboard) changePreferences(_ http.ResponseWriter, r *request, f *form) (string, error) {
	return done("/account", "saved"), d.store.SetPreferences(r.Context(), r.who.Caller, store.Preferences{
		Theme: f.Get("theme"), Language: f.Get("language"), Shortcuts: f.Get("shortcuts") != ""})
}

func (d *Dashboard) changeName(_ http.ResponseWriter, r *request, f *form) (string, error) {
	return done("/account", "saved"), d.store.RenameUser(r.Context(), r.who.Caller, f.Get("name"))
}

// changePassword counts wrong old passwords as sign-in does. Otherwise somebody could guess the
// password in a browser that its user left open.
func (d *Dashboard) changePassword(_ http.ResponseWriter, r *request, f *form) (string, error) {
	if err := d.throttle.begin(r.who.Email, r.who.RemoteAddr); err != nil {
		return "", err
	}
	err := d.hashing(r, r.who.OrganizationID, func() error {
		return d.store.ChangePassword(r.Context(), r.who, r.sessionID, f.Get("old"), f.Get("password"))
	})
	// Only a wrong old password counts, not a new one that is too short.
	if !wrongField(err, "old") {
		d.throttle.forgive(r.who.Email, r.who.RemoteAddr, err == nil)
	}
	return done("/account", "password-changed"), err
}

// wrongField reports whether err is about the field.
func wrongField(err error, path string) bool {
	e, ok := errors.AsType[*store.Error](err)
	return ok && slices.ContainsFunc(e.Details, func(detail store.Detail) bool { return detail.Path == path })
}

func (d *Dashboard) endOtherSessions(r *request) (string, error) {
	return done("/account", "sessions-ended"), d.store.EndOtherSessions(r.Context(), r.who.Caller, r.sessionID)
}
