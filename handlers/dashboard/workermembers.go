package dashboard

import (
	"net/http"
	"strings"

	"journeyman/store"
)

// A membersPage is what the page of a worker's members shows.
type membersPage struct {
	Head       workerHead
	Form       *form
	Members    []store.Member
	Colleagues []store.Colleague // to choose from
}

// membersShown bounds the list: a worker has more members only in a large company.
const membersShown = 200

func (d *Dashboard) membersPage(r *request) (membersPage, error) {
	head, err := d.head(r, "members")
	if err != nil {
		return membersPage{}, err
	}
	p := membersPage{Head: head, Form: newForm(nil)}
	if p.Members, err = d.store.WorkerMembers(r.Context(), r.who.Caller, head.ID); err != nil {
		return p, err
	}
	p.Colleagues, _, err = d.store.Colleagues(r.Context(), r.who.Caller, "", 100)
	return p, err
}

// Listed are the members that the page lists.
func (p membersPage) Listed() []store.Member { return p.Members[:min(len(p.Members), membersShown)] }

// More is how many others there are.
func (p membersPage) More() int { return max(0, len(p.Members)-membersShown) }

func (d *Dashboard) showWorkerMembers(w http.ResponseWriter, r *request) error {
	p, err := d.membersPage(r)
	if err != nil {
		return err
	}
	return d.page(w, r, "worker-members.html", p.Head.PageTitle(), p)
}

func (d *Dashboard) inviteWorkerMember(w http.ResponseWriter, r *request) error {
	f, err := readForm(w, r)
	if err != nil {
		return err
	}
	p, err := d.membersPage(r)
	if err != nil {
		return err
	}
	if _, err = d.store.InviteWorkerMember(r.Context(), r.who.Caller, p.Head.ID, strings.TrimSpace(f.Get("email"))); err == nil {
		return done(w, r, p.Head.Base()+"/members", "worker-member-invited")
	}
	if !f.refused(err) {
		return err
	}
	p.Form = f
	return d.render(w, r, http.StatusUnprocessableEntity, "worker-members.html", p.Head.PageTitle(), p)
}

func (d *Dashboard) removeWorkerMember(w http.ResponseWriter, r *request) error {
	id := r.params.ByName("workerId")
	if _, err := d.store.RemoveWorkerMember(r.Context(), r.who.Caller, id, r.params.ByName("userId")); err != nil {
		return err
	}
	return done(w, r, "/workers/"+id+"/members", "worker-member-removed")
}
