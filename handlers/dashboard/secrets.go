package dashboard

import (
	"cmp"
	"net/http"
	"strings"

	"journeyman/store"
)

// One page shows the secrets of a worker or those of the organization. An address without a
// worker means the organization.

// A secretsPage is the data of the page of secrets. It never holds a value.
type secretsPage struct {
	Base    string // address of the page
	Form    *form
	Secrets []store.Secret
}

func (d *Dashboard) secretsPage(w http.ResponseWriter, r *request, status int, f *form) (err error) {
	p := secretsPage{Base: secretsAddress(r), Form: cmp.Or(f, newForm(nil))}
	title, workerID := r.t("Secrets"), r.params.ByName("workerId")
	if workerID != "" {
		if r.head, err = d.head(r, "secrets"); err != nil {
			return err
		}
		title = r.head.title(r)
	}
	if p.Secrets, err = d.store.Secrets(r.Context(), r.who.Caller, workerID); err != nil {
		return err
	}
	return d.render(w, r, status, "secrets.html", title, p)
}

// setSecret creates a secret or changes the existing one of that name. An empty value keeps the
// present one, and can only take hosts away.
func (d *Dashboard) setSecret(_ http.ResponseWriter, r *request, f *form) (string, error) {
	// People paste values with spaces and line ends around them, which the store refuses.
	n := store.NewSecret{WorkerID: r.params.ByName("workerId"), Name: strings.TrimSpace(f.Get("name")),
		Value: strings.TrimSpace(f.text("value")), Hosts: strings.Fields(strings.ReplaceAll(f.Get("hosts"), ",", " "))}
	_, err := d.store.SetSecret(r.Context(), r.who.Caller, n)
	return done(secretsAddress(r), "secret-set"), err
}

func (d *Dashboard) deleteSecret(r *request) (string, error) {
	_, err := d.store.DeleteSecret(r.Context(), r.who.Caller, r.params.ByName("workerId"), r.params.ByName("name"))
	return done(secretsAddress(r), "secret-deleted"), err
}

// secretsAddress returns the address of the page that a request belongs to.
func secretsAddress(r *request) string {
	if id := r.params.ByName("workerId"); id != "" {
		return "/workers/" + id + "/secrets"
	}
	return "/settings/secrets"
}
