package admin_test

import (
	"net/http"
	"testing"

	"github.com/matryer/is"

	"journeyman/handlers/dashboard/dashboardtest"
	"journeyman/store/workers"
)

// TestSecretPages sets, changes and deletes the secrets of a worker and of the
// organization. No page shows a value, not even the one of a refused form.
func TestSecretPages(t *testing.T) {
	_, s, b := dashboardtest.AsOwner(t)
	w := s.Worker(s.Owner, workers.NewWorker{Title: "W"})
	for _, path := range []string{"/workers/" + w.ID + "/secrets", "/settings/secrets"} {
		is := is.New(t)
		b.Get(path).Shows("There are no secrets yet")
		set := b.Post(path, "name", " CRM_KEY ", "value", "the value of it", "hosts", "api.example.com, *.example.org")
		is.Equal(set.Location(), path+"?done=secret-set")
		p := b.Get(path)
		p.Shows("CRM_KEY", "api.example.com", "*.example.org", path+"/CRM_KEY/delete")
		p.Lacks("the value of it") // the page shows a value
		is.Equal(b.Post(path, "name", "CRM_KEY", "value", "", "hosts", "").Location(), path+"?done=secret-set")
		b.Get(path).Shows("no host")
		p = b.Post(path, "name", "CRM_KEY", "value", "", "hosts", "evil.example")
		p.Answers(http.StatusUnprocessableEntity).Shows(`id="e-value"`, "Must be entered again")
		for _, name := range []string{"", "a b", dashboardtest.Hostile} {
			p = b.Post(path, "name", name, "value", "the value of it")
			is.Equal(p.Status, http.StatusUnprocessableEntity)
			is.True(p.Has(`id="e-name"`) && p.Harmless() && !p.Has("the value of it"))
		}
		b.Post(path, "name", "B", "value", "short").Answers(http.StatusUnprocessableEntity).Shows(`id="e-value"`)
		is.Equal(b.Post(path+"/CRM_KEY/delete").Location(), path+"?done=secret-deleted")
		is.Equal(b.Post(path+"/CRM_KEY/delete").Status, http.StatusNotFound)
	}
}
