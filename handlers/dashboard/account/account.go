package account

import (
	"cmp"
	"errors"
	"net/http"
	"slices"
	"strings"

	"journeyman/handlers/dashboard/frame"
	"journeyman/handlers/dashboard/show"
	"journeyman/store/db"
	"journeyman/store/people"
)

// accountRoutes registers the pages of the user's own account.
func (d *Pages) accountRoutes() {
	part := func(put func(p *accountPage, f *frame.Form)) frame.FormPage {
		return func(w http.ResponseWriter, r *frame.Request, status int, f *frame.Form) error {
			p := accountPage{}
			put(&p, f)
			return d.accountPage(w, r, status, p)
		}
	}
	namePage := part(func(p *accountPage, f *frame.Form) { p.Name = f })
	passwordPage := part(func(p *accountPage, f *frame.Form) { p.Password = f })
	looksPage := part(func(p *accountPage, f *frame.Form) { p.Looks = f })
	d.On("GET", "/account", frame.Blank(namePage))
	d.On("POST", "/account/name", frame.Submitted(d.changeName, namePage))
	d.On("POST", "/account/password", frame.Submitted(d.changePassword, passwordPage))
	d.On("POST", "/account/preferences", frame.Submitted(d.changePreferences, looksPage))
	d.On("POST", "/account/sessions", frame.Button(d.endOtherSessions))
	d.On("POST", "/account/sessions/:sessionId/end",
		frame.Changing("sessionId", d.Store.People.EndSession, frame.Done("/account", "session-ended")))
}

// An accountPage shows the forms of an account and the browsers that are signed in.
type accountPage struct {
	Name      *frame.Form
	Password  *frame.Form
	Looks     *frame.Form // theme, language and shortcuts
	Themes    []frame.Option
	Languages []frame.Option
	Sessions  []sessionRow
	Programs  []people.OAuthGrant // the programs that act for the user
}

type sessionRow struct {
	people.Session
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
func (d *Pages) accountPage(w http.ResponseWriter, r *frame.Request, status int, p accountPage) (err error) {
	sessions, err := d.Store.People.Sessions(r.Context(), r.Who.Caller)
	if err != nil {
		return err
	}
	if p.Programs, err = d.Store.People.OAuthGrants(r.Context(), r.Who.Caller); err != nil {
		return err
	}
	p.Name = cmp.Or(p.Name, frame.NewForm(map[string]string{"name": r.Who.UserName}))
	p.Password = cmp.Or(p.Password, frame.NewForm(nil))
	p.Looks = cmp.Or(p.Looks, frame.NewForm(map[string]string{"language": r.Who.Language}))
	p.Themes = []frame.Option{{Value: "", Label: r.T("System setting")},
		{Value: "light", Label: r.T("Light")}, {Value: "dark", Label: r.T("Dark")}}
	p.Languages = []frame.Option{{Value: "", Label: r.T("Browser setting")}}
	for _, l := range d.Languages {
		p.Languages = append(p.Languages, frame.Option{Value: l.Code, Label: l.Name})
	}
	for _, s := range sessions {
		p.Sessions = append(p.Sessions, sessionRow{s, s.ID == r.SessionID})
	}
	return d.Render(w, r, status, "account.html", r.T("Your account"), p)
}

func (d *Pages) changePreferences(_ http.ResponseWriter, r *frame.Request, f *frame.Form) (string, error) {
	return frame.Done("/account", "saved"), d.Store.People.SetPreferences(r.Context(), r.Who.Caller, people.Preferences{
		Theme: f.Get("theme"), Language: f.Get("language"), Shortcuts: f.Get("shortcuts") != ""})
}

func (d *Pages) changeName(_ http.ResponseWriter, r *frame.Request, f *frame.Form) (string, error) {
	return frame.Done("/account", "saved"), d.Store.People.RenameUser(r.Context(), r.Who.Caller, f.Get("name"))
}

// changePassword counts wrong old passwords as sign-in does. Otherwise somebody could guess the
// password in a browser that its user left open.
func (d *Pages) changePassword(_ http.ResponseWriter, r *frame.Request, f *frame.Form) (string, error) {
	if err := d.throttle.begin(r.Who.Email, r.Who.RemoteAddr); err != nil {
		return "", err
	}
	err := d.hashing(r, r.Who.OrganizationID, func() error {
		return d.Store.People.ChangePassword(r.Context(), r.Who, r.SessionID, f.Get("old"), f.Get("password"))
	})
	// Only a wrong old password counts, not a new one that is too short.
	if !wrongField(err, "old") {
		d.throttle.forgive(r.Who.Email, r.Who.RemoteAddr, err == nil)
	}
	return frame.Done("/account", "password-changed"), err
}

// wrongField reports whether err is about the field.
func wrongField(err error, path string) bool {
	e, ok := errors.AsType[*db.Error](err)
	return ok && slices.ContainsFunc(e.Details, func(detail db.Detail) bool { return detail.Path == path })
}

func (d *Pages) endOtherSessions(r *frame.Request) (string, error) {
	return frame.Done("/account", "sessions-ended"), d.Store.People.EndOtherSessions(r.Context(), r.Who.Caller,
		r.SessionID)
}
