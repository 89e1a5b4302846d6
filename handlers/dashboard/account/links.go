package account

import (
	"cmp"
	"net/http"
	"strings"

	"journeyman/handlers/dashboard/frame"
	"journeyman/handlers/serve"
	"journeyman/store/people"
)

// linkRoutes registers the pages of links. Opening a page does not use up its link, because mail
// scanners open each link in a mail.
func (d *Pages) linkRoutes() {
	for _, kind := range []people.LinkKind{people.LinkWelcome, people.LinkReset} {
		p := passwordLink{d, kind}
		d.Open("GET", "/"+string(kind)+"/:token", frame.Blank(p.show))
		d.Open("POST", "/"+string(kind)+"/:token", frame.Submitted(p.choose, p.show))
	}
	d.Open("GET", "/invitation/:token", frame.Blank(d.showInvitation))
	d.Open("POST", "/invitation/:token", frame.Submitted(d.acceptInvitation, d.showInvitation))
}

// A linkPage asks for the values that a link needs.
type linkPage struct {
	Form    *frame.Form
	Link    people.Link
	Known   bool // the invited person has a password already and signs in with it
	Already bool // the invited person is signed in here
}

// Welcome reports whether the link is the first owner's.
func (p linkPage) Welcome() bool { return p.Link.Kind == people.LinkWelcome }

// A passwordLink serves links of one kind with which users choose a password.
type passwordLink struct {
	*Pages
	kind people.LinkKind
}

func (d passwordLink) show(w http.ResponseWriter, r *frame.Request, status int, f *frame.Form) error {
	l, err := d.Store.People.Link(r.Context(), d.kind, r.Params.ByName("token"))
	if err != nil {
		return err
	}
	if f == nil {
		f = frame.NewForm(map[string]string{"email": l.Email})
	}
	title := r.T("Choose a password")
	if d.kind == people.LinkWelcome {
		title = r.T("Welcome to Journeyman")
	}
	return d.Render(w, r, status, "choose.html", title, linkPage{Form: f, Link: l})
}

// choose sets the password and signs the user in.
func (d passwordLink) choose(w http.ResponseWriter, r *frame.Request, f *frame.Form) (string, error) {
	token := r.Params.ByName("token")
	l, err := d.Store.People.Link(r.Context(), d.kind, token)
	if err != nil {
		return "", err
	}
	var c people.Caller
	err = d.hashing(r, l.OrganizationID, func() error {
		c, err = d.Store.People.ChoosePassword(r.Context(), d.kind, token,
			people.NewUser{Name: f.Get("name"), Password: f.Get("password"), Email: f.Get("email")},
			serve.ClientAddr(r.Request))
		return err
	})
	if err != nil {
		return "", err
	}
	first := "/workers"
	if d.kind == people.LinkWelcome {
		first = "/workers/new" // the organization is new and has no workers
	}
	return frame.Done(first, "password-chosen"), d.startSession(w, r, c)
}

// invitation returns the page of an invitation.
func (d *Pages) invitation(r *frame.Request, f *frame.Form) (p linkPage, err error) {
	p.Form = f
	p.Link, err = d.Store.People.Link(r.Context(), people.LinkInvitation, r.Params.ByName("token"))
	p.Known = p.Link.HasPassword
	p.Already = p.Known && p.Link.UserID == r.Who.UserID
	return p, err
}

func (d *Pages) showInvitation(w http.ResponseWriter, r *frame.Request, status int, f *frame.Form) error {
	p, err := d.invitation(r, cmp.Or(f, frame.NewForm(nil)))
	if err != nil {
		return err
	}
	return d.Render(w, r, status, "invitation.html", r.T("Join %s", p.Link.OrganizationName), p)
}

func (d *Pages) acceptInvitation(w http.ResponseWriter, r *frame.Request, f *frame.Form) (string, error) {
	p, err := d.invitation(r, f)
	if err != nil {
		return "", err
	}
	joined, err := d.join(r, p)
	if err != nil {
		return "", frame.Later(err)
	}
	return frame.Done("/workers", "joined"), frame.Later(d.enter(w, r, joined))
}

// join makes the invited person a member. A person with a password must enter it; a new person
// chooses a name and a password.
func (d *Pages) join(r *frame.Request, p linkPage) (joined people.Caller, err error) {
	token, c := r.Params.ByName("token"), people.Caller{RemoteAddr: serve.ClientAddr(r.Request)}
	switch {
	case p.Already:
		return d.Store.People.AcceptInvitation(r.Context(), r.Who.Caller, token, people.NewUser{})
	case p.Known:
		if c, err = d.checkPassword(r, p.Link.Email, p.Form.Get("password")); err != nil {
			return people.Caller{}, err
		}
		return d.Store.People.AcceptInvitation(r.Context(), c, token, people.NewUser{})
	}
	err = d.hashing(r, p.Link.OrganizationID, func() error {
		joined, err = d.Store.People.AcceptInvitation(r.Context(), c, token,
			people.NewUser{Name: strings.TrimSpace(p.Form.Get("name")), Password: p.Form.Get("password")})
		return err
	})
	return joined, err
}

// enter switches the browser to the organization that its user has just joined, and
// signs the user in if the browser is not.
func (d *Pages) enter(w http.ResponseWriter, r *frame.Request, joined people.Caller) error {
	if r.Who.UserID == joined.UserID {
		return d.Store.People.SwitchOrganization(r.Context(), joined, r.SessionID, joined.OrganizationID)
	}
	token, err := d.Store.People.CreateSession(r.Context(), joined, r.UserAgent())
	if err != nil {
		return err
	}
	// A new session begins in the user's last organization: switch to the joined one.
	_, sessionID, err := d.Store.People.SessionIdentity(r.Context(), token)
	if err != nil {
		return err
	}
	if err := d.Store.People.SwitchOrganization(r.Context(), joined, sessionID, joined.OrganizationID); err != nil {
		return err
	}
	d.setSession(w, token)
	return nil
}
