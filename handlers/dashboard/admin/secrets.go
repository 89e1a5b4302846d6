package admin

import (
	"cmp"
	"net/http"
	"strings"

	"journeyman/handlers/dashboard/frame"
	"journeyman/store/people"
	"journeyman/store/workers"
)

// One page shows the secrets of a worker or those of the organization. An address without a
// worker means the organization.

// secretRoutes registers the pages of the secrets of workers and of the organization.
func (d *Pages) secretRoutes() {
	d.On("GET", "/workers/:workerId/secrets", frame.Blank(d.secretsPage))
	d.On("POST", "/workers/:workerId/secrets", frame.Submitted(d.setSecret, d.secretsPage))
	d.On("POST", "/workers/:workerId/secrets/:name/delete", frame.Button(d.deleteSecret))
	d.May(people.ManageSecrets, "GET", "/settings/secrets", frame.Blank(d.secretsPage))
	d.May(people.ManageSecrets, "POST", "/settings/secrets", frame.Submitted(d.setSecret, d.secretsPage))
	d.May(people.ManageSecrets, "POST", "/settings/secrets/:name/delete", frame.Button(d.deleteSecret))
}

// A secretsPage is the data of the page of secrets. It never holds a value.
type secretsPage struct {
	Base    string // address of the page
	Form    *frame.Form
	Secrets []workers.Secret
}

func (d *Pages) secretsPage(w http.ResponseWriter, r *frame.Request, status int, f *frame.Form) (err error) {
	p := secretsPage{Base: secretsAddress(r), Form: cmp.Or(f, frame.NewForm(nil))}
	title, workerID := r.T("Secrets"), r.Params.ByName("workerId")
	if workerID != "" {
		if r.Head, err = d.HeadOf(r, "secrets"); err != nil {
			return err
		}
		title = r.Head.PageTitle(r)
	}
	if p.Secrets, err = d.Store.Workers.Secrets(r.Context(), r.Who.Caller, workerID); err != nil {
		return err
	}
	return d.Render(w, r, status, "secrets.html", title, p)
}

// setSecret creates a secret or changes the existing one of that name. An empty value keeps the
// present one, and can only take hosts away.
func (d *Pages) setSecret(_ http.ResponseWriter, r *frame.Request, f *frame.Form) (string, error) {
	// People paste values with spaces and line ends around them, which the store refuses.
	n := workers.NewSecret{WorkerID: r.Params.ByName("workerId"), Name: strings.TrimSpace(f.Get("name")),
		Value: strings.TrimSpace(f.Text("value")), Hosts: strings.Fields(strings.ReplaceAll(f.Get("hosts"), ",", " "))}
	_, err := d.Store.Workers.SetSecret(r.Context(), r.Who.Caller, n)
	return frame.Done(secretsAddress(r), "secret-set"), err
}

func (d *Pages) deleteSecret(r *frame.Request) (string, error) {
	_, err := d.Store.Workers.DeleteSecret(r.Context(), r.Who.Caller, r.Params.ByName("workerId"), r.Params.ByName("name"))
	return frame.Done(secretsAddress(r), "secret-deleted"), err
}

// secretsAddress returns the address of the page that a request belongs to.
func secretsAddress(r *frame.Request) string {
	if id := r.Params.ByName("workerId"); id != "" {
		return "/workers/" + id + "/secrets"
	}
	return "/settings/secrets"
}
