package dashboard

import (
	"net/http"
	"net/url"

	"journeyman/handlers"
	"journeyman/store"
)

// colleagueRoutes are the pages of who is in the organization.
func (d *Dashboard) colleagueRoutes() {
	d.may(store.ManageMembers, "GET", "/settings/members", d.showColleagues)
	d.may(store.ManageMembers, "POST", "/settings/members", d.invite)
	d.may(store.ManageMembers, "POST", "/settings/members/:userId/role", d.changeRole)
	d.may(store.ManageMembers, "POST", "/settings/members/:userId/reset", d.createReset)
	d.may(store.ManageMembers, "POST", "/settings/members/:userId/remove", d.removeColleague)
	d.may(store.ManageMembers, "POST", "/settings/invitations/:linkId/revoke", d.revokeInvitation)
}

// A colleaguesPage lists members and open invitations, and shows a link that was just
// made. That is in the answer to the form and nowhere else.
type colleaguesPage struct {
	Form        *form // of an invitation
	Members     []colleagueRow
	Invitations []store.Link
	Next        string // address of the next page; '' after the last
	First       bool
	Made        store.Link
	Address     string // of the link; '' where none was made
	Roles       []option
}

type colleagueRow struct {
	store.Colleague
	Self  bool
	May   bool     // be changed by who looks at the page
	Roles []option // that they may be given
}

// rolesFor are the roles that somebody may give.
func rolesFor(giver store.Role) []option {
	roles := []option{{string(store.RoleMember), "Member"}, {string(store.RoleAdmin), "Admin"}}
	if giver.May(store.ManageOwners) {
		roles = append(roles, option{string(store.RoleOwner), "Owner"})
	}
	return roles
}

func (d *Dashboard) showColleagues(w http.ResponseWriter, r *request) error {
	return d.colleaguesPage(w, r, http.StatusOK, colleaguesPage{Form: newForm(nil)})
}

func (d *Dashboard) colleaguesPage(w http.ResponseWriter, r *request, status int, p colleaguesPage) error {
	cursor := r.URL.Query().Get("cursor")
	members, next, err := d.store.Colleagues(r.Context(), r.who.Caller, cursor, pageSize)
	if err != nil {
		return err
	}
	p.Roles = rolesFor(r.who.Role)
	for _, m := range members {
		may := m.Role != store.RoleOwner || r.who.Role.May(store.ManageOwners)
		p.Members = append(p.Members, colleagueRow{m, m.UserID == r.who.UserID, may, p.Roles})
	}
	if p.First = cursor == ""; p.First {
		if p.Invitations, err = d.store.Invitations(r.Context(), r.who.Caller); err != nil {
			return err
		}
	}
	if next != "" {
		p.Next = "/settings/members?cursor=" + url.QueryEscape(next)
	}
	return d.render(w, r, status, "colleagues.html", "Members", p)
}

func (d *Dashboard) invite(w http.ResponseWriter, r *request) error {
	f, err := readForm(w, r)
	if err != nil {
		return err
	}
	l, token, err := d.store.CreateInvitation(r.Context(), r.who.Caller, f.Get("email"), store.Role(f.Get("role")))
	if err != nil {
		if !f.refused(err) {
			return err
		}
		return d.colleaguesPage(w, r, http.StatusUnprocessableEntity, colleaguesPage{Form: f})
	}
	return d.colleaguesPage(w, r, http.StatusOK, colleaguesPage{Form: newForm(nil), Made: l, Address: handlers.LinkAddress(d.cfg.BaseURL, store.LinkInvitation, token)})
}

func (d *Dashboard) changeRole(w http.ResponseWriter, r *request) error {
	f, err := readForm(w, r)
	if err != nil {
		return err
	}
	if _, err := d.store.ChangeRole(r.Context(), r.who.Caller, r.params.ByName("userId"), store.Role(f.Get("role"))); err != nil {
		return err
	}
	if r.params.ByName("userId") == r.who.UserID {
		return redirect(w, r, "/settings") // what may still be seen of them
	}
	return done(w, r, "/settings/members", "role-changed")
}

func (d *Dashboard) createReset(w http.ResponseWriter, r *request) error {
	l, token, err := d.store.CreateResetAs(r.Context(), r.who.Caller, r.params.ByName("userId"))
	if err != nil {
		return err
	}
	return d.colleaguesPage(w, r, http.StatusOK, colleaguesPage{Form: newForm(nil), Made: l, Address: handlers.LinkAddress(d.cfg.BaseURL, store.LinkReset, token)})
}

func (d *Dashboard) removeColleague(w http.ResponseWriter, r *request) error {
	if _, err := d.store.RemoveMember(r.Context(), r.who.Caller, r.params.ByName("userId")); err != nil {
		return err
	}
	return done(w, r, "/settings/members", "member-removed")
}

func (d *Dashboard) revokeInvitation(w http.ResponseWriter, r *request) error {
	if err := d.store.RevokeInvitation(r.Context(), r.who.Caller, r.params.ByName("linkId")); err != nil {
		return err
	}
	return done(w, r, "/settings/members", "invitation-revoked")
}
