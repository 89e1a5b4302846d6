package dashboard

import (
	"net/http"
	"strings"

	"journeyman/store"
)

// linkRoutes are the pages that a link leads to. Looking at one uses nothing up:
// programs that read mail look at each link in it.
func (d *Dashboard) linkRoutes() {
	for _, kind := range []store.LinkKind{store.LinkWelcome, store.LinkReset} {
		d.open("GET", "/"+string(kind)+"/:token", func(w http.ResponseWriter, r *request) error { return d.showChoose(w, r, kind) })
		d.open("POST", "/"+string(kind)+"/:token", func(w http.ResponseWriter, r *request) error { return d.choose(w, r, kind) })
	}
	d.open("GET", "/invitation/:token", d.showInvitation)
	d.open("POST", "/invitation/:token", d.acceptInvitation)
}

// A linkPage asks for what a link needs.
type linkPage struct {
	Form    *form
	Link    store.Link
	Known   bool // the invited signs in with the password they have
	Already bool // the invited is signed in here
}

// Welcome reports whether it is the first owner's.
func (p linkPage) Welcome() bool { return p.Link.Kind == store.LinkWelcome }

func (d *Dashboard) showChoose(w http.ResponseWriter, r *request, kind store.LinkKind) error {
	l, err := d.store.Link(r.Context(), kind, r.params.ByName("token"))
	if err != nil {
		return err
	}
	p := linkPage{Form: newForm(map[string]string{"email": l.Email}), Link: l}
	return d.page(w, r, "choose.html", p.title(), p)
}

func (p linkPage) title() string {
	if p.Welcome() {
		return "Welcome to Journeyman"
	}
	return "Choose a password"
}

// choose sets the password, and signs its owner in.
func (d *Dashboard) choose(w http.ResponseWriter, r *request, kind store.LinkKind) error {
	f, err := readForm(w, r)
	if err != nil {
		return err
	}
	l, err := d.store.Link(r.Context(), kind, r.params.ByName("token"))
	if err != nil {
		return err
	}
	userID, err := d.store.ChoosePassword(r.Context(), kind, r.params.ByName("token"),
		store.NewUser{Password: f.Get("password"), Email: f.Get("email")}, remoteAddr(r.Request))
	if err == nil {
		err = d.startSession(w, r, userID)
	}
	if err != nil {
		status, ok := refusedForm(w, f, err)
		if !ok {
			return err
		}
		p := linkPage{Form: f, Link: l}
		return d.render(w, r, status, "choose.html", p.title(), p)
	}
	first := "/workers"
	if kind == store.LinkWelcome {
		first = "/workers/new" // there is nothing to look at yet
	}
	return done(w, r, first, "password-chosen")
}

// invitation gives what an invitation's page shows.
func (d *Dashboard) invitation(r *request, f *form) (p linkPage, err error) {
	p.Form = f
	p.Link, err = d.store.Link(r.Context(), store.LinkInvitation, r.params.ByName("token"))
	p.Known = p.Link.HasPassword
	p.Already = p.Known && p.Link.UserID == r.who.UserID
	return p, err
}

func (d *Dashboard) showInvitation(w http.ResponseWriter, r *request) error {
	p, err := d.invitation(r, newForm(nil))
	if err != nil {
		return err
	}
	return d.page(w, r, "invitation.html", "Join "+p.Link.OrganizationName, p)
}

func (d *Dashboard) acceptInvitation(w http.ResponseWriter, r *request) error {
	f, err := readForm(w, r)
	if err != nil {
		return err
	}
	p, err := d.invitation(r, f)
	if err != nil {
		return err
	}
	joined, err := d.join(r, p)
	if err == nil {
		err = d.enter(w, r, joined)
	}
	if err != nil {
		status, ok := refusedForm(w, f, err)
		if !ok {
			return err
		}
		return d.render(w, r, status, "invitation.html", "Join "+p.Link.OrganizationName, p)
	}
	return done(w, r, "/workers", "joined")
}

// join makes who sent the form a member.
func (d *Dashboard) join(r *request, p linkPage) (store.Caller, error) {
	token, addr := r.params.ByName("token"), remoteAddr(r.Request)
	switch {
	case p.Already:
		return d.store.AcceptInvitationAs(r.Context(), token, r.who.UserID, addr)
	case p.Known:
		userID, err := d.checkPassword(r, p.Link.Email, p.Form.Get("password"))
		if err != nil {
			return store.Caller{}, err
		}
		return d.store.AcceptInvitationAs(r.Context(), token, userID, addr)
	}
	return d.store.AcceptInvitation(r.Context(), token,
		store.NewUser{Name: strings.TrimSpace(p.Form.Get("name")), Password: p.Form.Get("password")}, addr)
}

// enter has the browser look at the organization that its user has just joined.
func (d *Dashboard) enter(w http.ResponseWriter, r *request, joined store.Caller) error {
	if r.who.UserID == joined.UserID {
		return d.store.SwitchOrganization(r.Context(), joined, r.sessionID, joined.OrganizationID)
	}
	token, err := d.store.CreateSession(r.Context(), joined.UserID, r.UserAgent(), remoteAddr(r.Request))
	if err != nil {
		return err
	}
	_, sessionID, err := d.store.SessionIdentity(r.Context(), token)
	if err != nil {
		return err
	}
	if err := d.store.SwitchOrganization(r.Context(), joined, sessionID, joined.OrganizationID); err != nil {
		return err
	}
	http.SetCookie(w, d.sessionCookie(token, int(store.SessionLifetime.Seconds())))
	return nil
}
