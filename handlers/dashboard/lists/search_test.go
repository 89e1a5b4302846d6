package lists_test

import (
	"net/http"
	"strings"
	"testing"

	"journeyman/handlers/dashboard/dashboardtest"
	"journeyman/store"
	"journeyman/store/ordertest"
	"journeyman/store/people"
	"journeyman/store/workers"
)

// TestSearch checks that a search finds workers, tasks, files, pages and commands, but only those
// that the user may see.
func TestSearch(t *testing.T) {
	is, s := dashboardtest.OnSite(t)
	s.Join("mo@example.com", people.RoleMember)
	ann, mo := s.SignIn("ann@example.com"), s.SignIn("mo@example.com")
	w := s.Worker(s.Owner, workers.NewWorker{Title: "Quarterly reporter"})
	hidden := s.Worker(s.Owner, workers.NewWorker{Title: "Quarterly secret", Visibility: workers.Private})
	write := dashboardtest.Scripted(dashboardtest.Calling("write_file", "path", "quart a.txt", "content", "A"),
		dashboardtest.Calling("publish_file", "path", "quart a.txt"), "say Done")
	s.CarryOut(s.Owner, store.NewTurn{WorkerID: w.ID, Title: "Compare quarters", Input: write})
	s.CarryOut(s.Owner, store.NewTurn{WorkerID: hidden.ID, Title: "Hidden quarters", Input: strings.ReplaceAll(write,
		"quart a", "quart b")})

	p := ann.Get("/search?q=QUART")
	p.Answers(http.StatusOK).Shows("<mark>Quart</mark>erly reporter", "<mark>Quart</mark>erly secret",
		"Compare <mark>quart</mark>ers",
		"/workers/"+w.ID+"/preview/quart%20a.txt", "/workers/"+w.ID+"#f-input", "/tasks?q=QUART")
	member := mo.Get("/search?q=quart")
	is.True(member.Has("reporter",
		"Compare ") && !member.Has("secret") && !member.Has("Hidden") && !member.Has("quart%20b"))
	ann.Get("/search?q=audit").Shows("/settings/audit")
	mo.Get("/search?q=audit").Shows("No name matches.") // a Member may not open the page
	ann.Get("/search").Shows("New worker", "<kbd>C</kbd>")
	part := ann.Get("/search?part=1&q=quart")
	is.True(part.Has("<mark>") && !part.Has("<html"))
	ordertest.Below(is, len(part.Body), 8<<10)
	is.Equal(ann.Get("/search?q="+strings.Repeat("x", 201)).Status, http.StatusUnprocessableEntity)
	ann.Get("/search?q=%25").Shows("No name matches.") // % is no wildcard
}
