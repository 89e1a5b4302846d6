package admin

import (
	"cmp"
	"net/http"

	"journeyman/handlers"
	"journeyman/handlers/dashboard/frame"
	"journeyman/handlers/dashboard/show"
	"journeyman/store/people"
)

// memberRoutes registers the pages of the organization's members.
func (d *Pages) memberRoutes() {
	d.May(people.ManageMembers, "GET", "/settings/members", frame.Blank(d.membersPage))
	d.May(people.ManageMembers, "POST", "/settings/members", frame.Submitted(d.invite, d.membersPage))
	d.May(people.ManageMembers, "POST", "/settings/members/:userId/role", frame.Submitted(d.changeRole, nil))
	d.May(people.ManageMembers, "POST", "/settings/members/:userId/reset", frame.Button(d.createReset))
	d.May(people.ManageMembers, "POST", "/settings/members/:userId/remove", frame.Button(d.removeMember))
	d.May(people.ManageMembers, "POST", "/settings/invitations/:linkId/revoke",
		frame.Changing("linkId", d.Store.People.RevokeInvitation, frame.Done("/settings/members", "invitation-revoked")))
}

// A membersPage lists members and open invitations. It also shows a link that was just
// created, once.
type membersPage struct {
	Form        *frame.Form // of an invitation
	Members     []memberRow
	Invitations []people.Link
	Next        string // address of the next page; "" after the last
	First       bool
	justMade[madeLink]
	Roles []frame.Option
}

// A madeLink is a link that was just created.
type madeLink struct {
	people.Link
	Address string // "" without a new link
}

// linkMade is the address of the page that shows a new link. linkKind is the kind of the link in
// oneTime.
const (
	linkMade = "/settings/members?made=1"
	linkKind = "link"
)

type memberRow struct {
	people.Member
	Self  bool           // the member is the user who looks at the page
	May   bool           // the user may change this member
	Roles []frame.Option // that the user may give
}

// Initials returns the sign of the member.
func (m memberRow) Initials() string { return frame.Initials(m.Name, m.Email) }

// rolesFor returns the roles that a user may give.
func rolesFor(r *frame.Request) (roles []frame.Option) {
	list := []people.Role{people.RoleMember, people.RoleAdmin}
	if r.Who.May(people.ManageOwners) {
		list = append(list, people.RoleOwner)
	}
	for _, role := range list {
		roles = append(roles, frame.Option{Value: string(role), Label: r.T(show.Role(role))})
	}
	return roles
}

func (d *Pages) membersPage(w http.ResponseWriter, r *frame.Request, status int, f *frame.Form) error {
	p := membersPage{Form: cmp.Or(f, frame.NewForm(nil))}
	if p.read(d, w, r, linkKind) {
		return nil
	}
	cursor := r.URL.Query().Get("cursor")
	members, next, err := d.Store.People.Members(r.Context(), r.Who.Caller, cursor, pageSize)
	if err != nil {
		return err
	}
	p.Roles = rolesFor(r)
	for _, m := range members {
		may := m.Role != people.RoleOwner || r.Who.May(people.ManageOwners)
		p.Members = append(p.Members, memberRow{m, m.UserID == r.Who.UserID, may, p.Roles})
	}
	if p.First = cursor == ""; p.First {
		if p.Invitations, err = d.Store.People.Invitations(r.Context(), r.Who.Caller); err != nil {
			return err
		}
	}
	p.Next = frame.ListPage("/settings/members", nil, next)
	return d.Render(w, r, status, "members.html", r.T("Members"), p)
}

// keepLink stores a new link for the page that shows it, unless err has kept it from being made. It returns the
// address of the page, and err.
func (d *Pages) keepLink(r *frame.Request, l people.Link, token string, err error) (string, error) {
	if err == nil {
		d.once.put(r.SessionID, linkKind, madeLink{l, handlers.LinkAddress(d.BaseURL, l.Kind, token)})
	}
	return d.hereOnly(linkMade), err
}

func (d *Pages) invite(_ http.ResponseWriter, r *frame.Request, f *frame.Form) (string, error) {
	l, token, err := d.Store.People.CreateInvitation(r.Context(), r.Who.Caller, f.Get("email"), people.Role(f.Get("role")))
	return d.keepLink(r, l, token, err)
}

func (d *Pages) createReset(r *frame.Request) (string, error) {
	l, token, err := d.Store.People.CreatePasswordLink(r.Context(), r.Who.Caller, people.LinkReset,
		r.Params.ByName("userId"))
	return d.keepLink(r, l, token, err)
}

func (d *Pages) changeRole(_ http.ResponseWriter, r *frame.Request, f *frame.Form) (string, error) {
	userID := r.Params.ByName("userId")
	_, err := d.Store.People.ChangeRole(r.Context(), r.Who.Caller, userID, people.Role(f.Get("role")))
	if userID == r.Who.UserID {
		return "/settings", err // the new role may not see this page
	}
	return frame.Done("/settings/members", "role-changed"), err
}

func (d *Pages) removeMember(r *frame.Request) (string, error) {
	_, err := d.Store.People.RemoveMember(r.Context(), r.Who.Caller, r.Params.ByName("userId"))
	return frame.Done("/settings/members", "member-removed"), err
}
