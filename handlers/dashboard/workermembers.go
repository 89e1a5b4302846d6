package dashboard

import (
	"cmp"
	"net/http"
	"strings"

	"journeyman/store"
)

// A workerMembersPage is the data of the page of a worker's members.
type workerMembersPage struct {
	Form       *form
	Members    []store.WorkerMember // at most membersShown
	More       int                  // members that the page does not list
	Candidates []store.Member       // suggestions for an invitation
}

// membersShown bounds the list. Only a worker of a large organization has more members.
const membersShown = 200

func (d *Dashboard) workerMembersPage(w http.ResponseWriter, r *request, status int, f *form) (err error) {
	p := workerMembersPage{Form: cmp.Or(f, newForm(nil))}
	if p.Members, err = d.store.WorkerMembers(r.Context(), r.who.Caller, r.head.ID); err != nil {
		return err
	}
	p.More = max(0, len(p.Members)-membersShown)
	p.Members = p.Members[:len(p.Members)-p.More]
	if p.Candidates, _, err = d.store.Members(r.Context(), r.who.Caller, "", 100); err != nil {
		return err
	}
	return d.render(w, r, status, "worker-members.html", r.head.title(r), p)
}

func (d *Dashboard) inviteWorkerMember(_ http.ResponseWriter, r *request, f *form) (string, error) {
	id := r.params.ByName("workerId")
	_, err := d.store.InviteWorkerMember(r.Context(), r.who.Caller, id, strings.TrimSpace(f.Get("email")))
	return done("/workers/"+id+"/members", "worker-member-invited"), err
}

func (d *Dashboard) removeWorkerMember(r *request) (string, error) {
	id := r.params.ByName("workerId")
	_, err := d.store.RemoveWorkerMember(r.Context(), r.who.Caller, id, r.params.ByName("userId"))
	return done("/workers/"+id+"/members", "worker-member-removed"), err
}
