package dashboard

import (
	"cmp"
	"net/http"
	"strings"

	"journeyman/handlers/serve"
	"journeyman/store"
)

// linkRoutes registers the pages of links. Opening a page does not use up its link, because mail
// scanners open each link in a mail.
func (d *Dashboard) linkRoutes() {
	for _, kind := range []store.LinkKind{store.LinkWelcome, store.LinkReset} {
		p := passwordLink{d, kind}
		d.open("GET", "/"+string(kind)+"/:token", blank(p.show))
		d.open("POST", "/"+string(kind)+"/:token", submitted(p.choose, p.show))
	}
	d.open("GET", "/invitation/:token", blank(d.showInvitation))
	d.open("POST", "/invitation/:token", submitted(d.acceptInvitation, d.showInvitation))
}

// A linkPage asks for the values that a link needs.
type linkPage struct {
	Form    *form
	Link    store.Link
	Known   bool // the invited person has a password already and signs in with it
	Already bool // the invited person is signed in here
}

// Welcome reports whether the link is the first owner's.
func (p linkPage) Welcome() bool { return p.Link.Kind == store.LinkWelcome }

// A passwordLink serves links of one kind with which users choose a password.
type passwordLink struct {
	*Dashboard
	kind store.LinkKind
}

func (d passwordLink) show(w http.ResponseWriter, r *request, status int, f *form) error {
	l, err := d.store.Link(r.Context(), d.kind, r.params.ByName("token"))
	if err != nil {
		return err
	}
	if f == nil {
		f = newForm(map[string]string{"email": l.Email})
	}
	title := r.t("Choose a password")
	if d.kind == store.LinkWelcome {
		title = r.t("Welcome to Journeyman")
	}
	return d.render(w, r, status, "choose.html", title, linkPage{Form: f, Link: l})
}

// choose sets the password and signs the user in.
func (d passwordLink) choose(w http.ResponseWriter, r *request, f *form) (string, error) {
	token := r.params.ByName("token")
	l, err := d.store.Link(r.Context(), d.kind, token)
	if err != nil {
		return "", err
	}
	var c store.Caller
	err = d.hashing(r, l.OrganizationID, func() error {
		c, err = d.store.ChoosePassword(r.Context(), d.kind, token,
			store.NewUser{Name: f.Get("name"), Password: f.Get("password"), Email: f.Get("email")},
			serve.ClientAddr(r.Request))
		return err
	})
	if err != nil {
		return "", err
	}
	first := "/workers"
	if d.kind == store.LinkWelcome {
		first = "/workers/new" // the organization is new and has no workers
	}
	return done(first, "password-chosen"), d.startSession(w, r, c)
}

// invitation returns the page of an invitation.
func (d *Dashboard) invitation(r *request, f *form) (p linkPage, err error) {
	p.Form = f
	p.Link, err = d.store.Link(r.Context(), store.LinkInvitation, r.params.ByName("token"))
	p.Known = p.Link.HasPassword
	p.Already = p.Known && p.Link.UserID == r.who.UserID
	return p, err
}

func (d *Dashboard) showInvitation(w http.ResponseWriter, r *request, status int, f *form) error {
	p, err := d.invitation(r, cmp.Or(f, newForm(nil)))
	if err != nil {
		return err
	}
	return d.render(w, r, status, "invitation.html", r.t("Join %s", p.Link.OrganizationName), p)
}

func (d *Dashboard) acceptInvitation(w http.ResponseWriter, r *request, f *form) (string, error) {
	p, err := d.invitation(r, f)
	if err != nil {
		return "", err
	}
	joined, err := d.join(r, p)
	if err != nil {
		return "", later(err)
	}
	return done("/workers", "joined"), later(d.enter(w, r, joined))
}

// join makes the invited person a member. A person with a password must enter it; a new person
// chooses a name and a password.
func (d *Dashboard) join(r *request, p linkPage) (joined store.Caller, err error) {
	token, c := r.params.ByName("token"), store.Caller{RemoteAddr: serve.ClientAddr(r.Request)}
	switch {
	case p.Already:
		return d.store.AcceptInvitation(r.Context(), r.who.Caller, token, store.NewUser{})
	case p.Known:
		if c, err = d.checkPassword(r, p.Link.Email, p.Form.Get("password")); err != nil {
			return store.Caller{}, err
		}
		return d.store.AcceptInvitation(r.Context(), c, token, store.NewUser{})
	}
	err = d.hashing(r, p.Link.OrganizationID, func() error {
		joined, err = d.store.AcceptInvitation(r.Context(), c, token,
			store.NewUser{Name: strings.TrimSpace(p.Form.Get("name")), Password: p.Form.Get("password")})
		return err
	})
	return joined, err
}

// enter switches the browser to the organization that its user has just joined, and
// signs the user in if the browser is not.
func (d *Dashboard) enter(w http.ResponseWriter, r *request, joined store.Caller) error {
	if r.who.UserID == joined.UserID {
		return d.store.SwitchOrganization(r.Context(), joined, r.sessionID, joined.OrganizationID)
	}
	token, err := d.store.CreateSession(r.Context(), joined, r.UserAgent())
	if err != nil {
		return err
	}
	// A new session begins in the user's last organization: switch to the joined one.
	_, sessionID, err := d.store.SessionIdentity(r.Context(), token)
	if err != nil {
		return err
	}
	if err := d.store.SwitchOrganization(r.Context(), joined, sessionID, joined.OrganizationID); err != nil {
		return err
	}
	d.setSession(w, token)
	return nil
}
