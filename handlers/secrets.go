package handlers

import (
	"net/http"

	"journeyman/runner/view"
	"journeyman/store/workers"
)

// The handles below serve the secrets of a worker and those of the organization. A route
// without workerId means the organization.

// A secretView is a secret as the API shows it. It never holds the value.
type secretView struct {
	ID        string   `json:"id"`
	Name      string   `json:"name"`
	WorkerID  *string  `json:"workerId"`
	Hosts     []string `json:"hosts"`
	CreatedAt string   `json:"createdAt"`
	UpdatedAt string   `json:"updatedAt"`
}

func newSecretView(x workers.Secret) secretView {
	return secretView{ID: x.ID, Name: x.Name, WorkerID: view.Optional(x.WorkerID),
		Hosts:     append([]string{}, x.Hosts...),
		CreatedAt: view.Timestamp(x.CreatedAt), UpdatedAt: view.Timestamp(x.UpdatedAt)}
}

func (a *API) listSecrets(w http.ResponseWriter, r *request) error {
	list, err := a.store.Workers.Secrets(r.Context(), r.who.Caller, r.param("workerId"))
	return respondOK(w, map[string]any{"items": each(list, newSecretView)}, err)
}

// putSecret creates or changes a secret. A request without a value keeps the present one, and can
// only take hosts away.
func (a *API) putSecret(w http.ResponseWriter, r *request) error {
	b, err := readBody(w, r)
	if err != nil {
		return err
	}
	n := workers.NewSecret{WorkerID: r.param("workerId"), Name: r.param("name")}
	if value := b.text("value"); value != nil {
		// The store reads an empty value as an absent one, which the client did not mean.
		b.Invalid.Check(*value != "", "value", "must not be empty: leave it out to keep the value")
		n.Value = *value
	}
	if hosts := b.names("hosts"); hosts != nil {
		n.Hosts = *hosts
	}
	n.Check(&b.Invalid)
	if err := b.check(w, r); err != nil {
		return err
	}
	x, err := a.store.Workers.SetSecret(r.Context(), r.who.Caller, n)
	return respondOK(w, newSecretView(x), err)
}

// deleteSecret answers with the secret as it was.
func (a *API) deleteSecret(w http.ResponseWriter, r *request) error {
	x, err := a.store.Workers.DeleteSecret(r.Context(), r.who.Caller, r.param("workerId"), r.param("name"))
	return respondOK(w, newSecretView(x), err)
}
