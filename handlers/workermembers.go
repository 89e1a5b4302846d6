package handlers

import (
	"net/http"

	"journeyman/runner/view"
	"journeyman/store/workers"
)

// A member is a user who may use a private worker, as the API shows it.
type member struct {
	UserID    string `json:"userId"`
	Email     string `json:"email"`
	Name      string `json:"name"`
	CreatedAt string `json:"createdAt"`
}

func memberView(m workers.Member) member {
	return member{m.UserID, m.Email, m.Name, view.Timestamp(m.CreatedAt)}
}

func (a *API) listMembers(w http.ResponseWriter, r *request) error {
	members, err := a.store.Workers.WorkerMembers(r.Context(), r.who.Caller, r.param("workerId"))
	return respondOK(w, map[string]any{"items": each(members, memberView)}, err)
}

func (a *API) getMember(w http.ResponseWriter, r *request) error {
	m, err := a.store.Workers.WorkerMember(r.Context(), r.who.Caller, r.param("workerId"), r.param("userId"))
	return respondOK(w, memberView(m), err)
}

func (a *API) addMember(w http.ResponseWriter, r *request) error {
	m, err := a.store.Workers.AddWorkerMember(r.Context(), r.who.Caller, r.param("workerId"), r.param("userId"))
	return respondOK(w, memberView(m), err)
}

func (a *API) removeMember(w http.ResponseWriter, r *request) error {
	removed, err := a.store.Workers.RemoveWorkerMember(r.Context(), r.who.Caller, r.param("workerId"), r.param("userId"))
	return respondOK(w, map[string]bool{"removed": removed}, err)
}
