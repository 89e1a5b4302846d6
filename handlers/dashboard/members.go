package dashboard

import (
	"cmp"
	"net/http"

	"journeyman/handlers"
	"journeyman/handlers/dashboard/show"
	"journeyman/store"
)

// memberRoutes registers the pages of the organization's members.
func (d *Dashboard) memberRoutes() {
	d.may(store.ManageMembers, "GET", "/settings/members", blank(d.membersPage))
	d.may(store.ManageMembers, "POST", "/settings/members", submitted(d.invite, d.membersPage))
	d.may(store.ManageMembers, "POST", "/settings/members/:userId/role", submitted(d.changeRole, nil))
	d.may(store.ManageMembers, "POST", "/settings/members/:userId/reset", button(d.createReset))
	d.may(store.ManageMembers, "POST", "/settings/members/:userId/remove", button(d.removeMember))
	d.may(store.ManageMembers, "POST", "/settings/invitations/:linkId/revoke",
		changing("linkId", d.store.RevokeInvitation, done("/settings/members", "invitation-revoked")))
}

// A membersPage lists members and open invitations. It also shows a link that was just
// created, once.
type membersPage struct {
	Form        *form // of an invitation
	Members     []memberRow
	Invitations []store.Link
	Next        string // address of the next page; "" after the last
	First       bool
	justMade[madeLink]
	Roles []option
}

// A madeLink is a link that was just created.
type madeLink struct {
	store.Link
	Address string // "" without a new link
}

// linkMade is the address of the page that shows a new link. linkKind is the kind of the link in
// oneTime.
const (
	linkMade = "/settings/members?made=1"
	linkKind = "link"
)

type memberRow struct {
	store.Member
	Self  bool     // the member is the user who looks at the page
	May   bool     // the user may change this member
	Roles []option // that the user may give
}

// Initials returns the sign of the member.
func (m memberRow) Initials() string { return initials(m.Name, m.Email) }

// rolesFor returns the roles that a user may give.
func rolesFor(r *request) (roles []option) {
	list := []store.Role{store.RoleMember, store.RoleAdmin}
	if r.who.May(store.ManageOwners) {
		list = append(list, store.RoleOwner)
	}
	for _, role := range list {
		roles = append(roles, option{string(role), r.t(show.Role(role))})
	}
	return roles
}

func (d *Dashboard) membersPage(w http.ResponseWriter, r *request, status int, f *form) error {
	p := membersPage{Form: cmp.Or(f, newForm(nil))}
	if p.read(d, w, r, linkKind) {
		return nil
	}
	cursor := r.URL.Query().Get("cursor")
	members, next, err := d.store.Members(r.Context(), r.who.Caller, cursor, pageSize)
	if err != nil {
		return err
	}
	p.Roles = rolesFor(r)
	for _, m := range members {
		may := m.Role != store.RoleOwner || r.who.May(store.ManageOwners)
		p.Members = append(p.Members, memberRow{m, m.UserID == r.who.UserID, may, p.Roles})
	}
	if p.First = cursor == ""; p.First {
		if p.Invitations, err = d.store.Invitations(r.Context(), r.who.Caller); err != nil {
			return err
		}
	}
	p.Next = listPage("/settings/members", nil, next)
	return d.render(w, r, status, "members.html", r.t("Members"), p)
}

// keepLink stores a new link for the page that shows it, unless err has kept it from being made. It returns the
// address of the page, and err.
func (d *Dashboard) keepLink(r *request, l store.Link, token string, err error) (string, error) {
	if err == nil {
		d.once.put(r.sessionID, linkKind, madeLink{l, handlers.LinkAddress(d.cfg.BaseURL, l.Kind, token)})
	}
	return d.hereOnly(linkMade), err
}

func (d *Dashboard) invite(_ http.ResponseWriter, r *request, f *form) (string, error) {
	l, token, err := d.store.CreateInvitation(r.Context(), r.who.Caller, f.Get("email"), store.Role(f.Get("role")))
	return d.keepLink(r, l, token, err)
}

func (d *Dashboard) createReset(r *request) (string, error) {
	l, token, err := d.store.CreatePasswordLink(r.Context(), r.who.Caller, store.LinkReset, r.params.ByName("userId"))
	return d.keepLink(r, l, token, err)
}

func (d *Dashboard) changeRole(_ http.ResponseWriter, r *request, f *form) (string, error) {
	userID := r.params.ByName("userId")
	_, err := d.store.ChangeRole(r.Context(), r.who.Caller, userID, store.Role(f.Get("role")))
	if userID == r.who.UserID {
		return "/settings", err // the new role may not see this page
	}
	return done("/settings/members", "role-changed"), err
}

func (d *Dashboard) removeMember(r *request) (string, error) {
	_, err := d.store.RemoveMember(r.Context(), r.who.Caller, r.params.ByName("userId"))
	return done("/settings/members", "member-removed"), err
}
