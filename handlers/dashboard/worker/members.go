package worker

import (
	"cmp"
	"net/http"
	"strings"

	"journeyman/handlers/dashboard/frame"
	"journeyman/store/people"
	"journeyman/store/workers"
)

// A workerMembersPage is the data of the page of a worker's members.
type workerMembersPage struct {
	Form       *frame.Form
	Members    []workers.Member // at most membersShown
	More       int              // members that the page does not list
	Candidates []people.Member  // suggestions for an invitation
}

// membersShown bounds the list. Only a worker of a large organization has more members.
const membersShown = 200

func (d *Pages) workerMembersPage(w http.ResponseWriter, r *frame.Request, status int, f *frame.Form) (err error) {
	p := workerMembersPage{Form: cmp.Or(f, frame.NewForm(nil))}
	if p.Members, err = d.Store.Workers.WorkerMembers(r.Context(), r.Who.Caller, r.Head.ID); err != nil {
		return err
	}
	p.More = max(0, len(p.Members)-membersShown)
	p.Members = p.Members[:len(p.Members)-p.More]
	if p.Candidates, _, err = d.Store.People.Members(r.Context(), r.Who.Caller, "", 100); err != nil {
		return err
	}
	return d.Render(w, r, status, "worker-members.html", r.Head.PageTitle(r), p)
}

func (d *Pages) inviteWorkerMember(_ http.ResponseWriter, r *frame.Request, f *frame.Form) (string, error) {
	id := r.Params.ByName("workerId")
	_, err := d.Store.Workers.InviteWorkerMember(r.Context(), r.Who.Caller, id, strings.TrimSpace(f.Get("email")))
	return frame.Done("/workers/"+id+"/members", "worker-member-invited"), err
}

func (d *Pages) removeWorkerMember(r *frame.Request) (string, error) {
	id := r.Params.ByName("workerId")
	_, err := d.Store.Workers.RemoveWorkerMember(r.Context(), r.Who.Caller, id, r.Params.ByName("userId"))
	return frame.Done("/workers/"+id+"/members", "worker-member-removed"), err
}
