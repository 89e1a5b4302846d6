package dashboard_test

import (
	"net/http"
	"testing"

	"github.com/matryer/is"

	"journeyman/store/workers"
)

// TestSecretPages sets, changes and deletes the secrets of a worker and of the
// organization. No page shows a value, not even the one of a refused form.
func TestSecretPages(t *testing.T) {
	_, s, b := asOwner(t)
	w := s.worker(s.owner, workers.NewWorker{Title: "W"})
	for _, path := range []string{"/workers/" + w.ID + "/secrets", "/settings/secrets"} {
		is := is.New(t)
		b.get(path).shows("There are no secrets yet")
		set := b.post(path, "name", " CRM_KEY ", "value", "the value of it", "hosts", "api.example.com, *.example.org")
		is.Equal(set.location(), path+"?done=secret-set")
		p := b.get(path)
		p.shows("CRM_KEY", "api.example.com", "*.example.org", path+"/CRM_KEY/delete")
		p.lacks("the value of it") // the page shows a value
		is.Equal(b.post(path, "name", "CRM_KEY", "value", "", "hosts", "").location(), path+"?done=secret-set")
		b.get(path).shows("no host")
		p = b.post(path, "name", "CRM_KEY", "value", "", "hosts", "evil.example")
		p.answers(http.StatusUnprocessableEntity).shows(`id="e-value"`, "Must be entered again")
		for _, name := range []string{"", "a b", hostile} {
			p = b.post(path, "name", name, "value", "the value of it")
			is.Equal(p.status, http.StatusUnprocessableEntity)
			is.True(p.has(`id="e-name"`) && p.harmless() && !p.has("the value of it"))
		}
		b.post(path, "name", "B", "value", "short").answers(http.StatusUnprocessableEntity).shows(`id="e-value"`)
		is.Equal(b.post(path+"/CRM_KEY/delete").location(), path+"?done=secret-deleted")
		is.Equal(b.post(path+"/CRM_KEY/delete").status, http.StatusNotFound)
	}
}
