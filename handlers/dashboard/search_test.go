package dashboard_test

import (
	"net/http"
	"strings"
	"testing"

	"journeyman/store"
	"journeyman/store/ordertest"
	"journeyman/store/people"
	"journeyman/store/workers"
)

// TestSearch checks that a search finds workers, tasks, files, pages and commands, but only those
// that the user may see.
func TestSearch(t *testing.T) {
	is, s := onSite(t)
	s.join("mo@example.com", people.RoleMember)
	ann, mo := s.signIn("ann@example.com"), s.signIn("mo@example.com")
	w := s.worker(s.owner, workers.NewWorker{Title: "Quarterly reporter"})
	hidden := s.worker(s.owner, workers.NewWorker{Title: "Quarterly secret", Visibility: workers.Private})
	write := scripted(calling("write_file", "path", "quart a.txt", "content", "A"), calling("publish_file", "path", "quart a.txt"), "say Done")
	s.carryOut(s.owner, store.NewTurn{WorkerID: w.ID, Title: "Compare quarters", Input: write})
	s.carryOut(s.owner, store.NewTurn{WorkerID: hidden.ID, Title: "Hidden quarters", Input: strings.ReplaceAll(write, "quart a", "quart b")})

	p := ann.get("/search?q=QUART")
	p.answers(http.StatusOK).shows("<mark>Quart</mark>erly reporter", "<mark>Quart</mark>erly secret", "Compare <mark>quart</mark>ers",
		"/workers/"+w.ID+"/preview/quart%20a.txt", "/workers/"+w.ID+"#f-input", "/tasks?q=QUART")
	member := mo.get("/search?q=quart")
	is.True(member.has("reporter", "Compare ") && !member.has("secret") && !member.has("Hidden") && !member.has("quart%20b"))
	ann.get("/search?q=audit").shows("/settings/audit")
	mo.get("/search?q=audit").shows("No name matches.") // a Member may not open the page
	ann.get("/search").shows("New worker", "<kbd>C</kbd>")
	part := ann.get("/search?part=1&q=quart")
	is.True(part.has("<mark>") && !part.has("<html"))
	ordertest.Below(is, len(part.body), 8<<10)
	is.Equal(ann.get("/search?q="+strings.Repeat("x", 201)).status, http.StatusUnprocessableEntity)
	ann.get("/search?q=%25").shows("No name matches.") // % is no wildcard
}
