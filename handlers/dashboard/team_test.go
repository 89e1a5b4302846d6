package dashboard_test

import (
	"testing"

	"journeyman/store"
	"journeyman/store/storetest"
	"journeyman/store/workers"
)

// TestTeamOnPages checks that the page of a task links to the workers that it has run, and that
// their pages link back.
func TestTeamOnPages(t *testing.T) {
	is, s, b := asOwner(t)
	w := s.worker(s.owner, workers.NewWorker{Title: "Scribe"})
	s.worker(s.owner, workers.NewWorker{Title: "Reader"})
	turn := s.carryOut(s.owner, store.NewTurn{WorkerID: w.ID, TaskID: "team", Input: scripted(
		calling("run_worker", "worker", "Reader", "input", "Read this <b>."), "say done")})
	is.Equal(turn.Status, store.Completed)
	children, err := s.store.Children(t.Context(), turn)
	is.NoErr(err)
	is.Equal(len(children), 1)
	b.get("/tasks/team").
		shows(`<a class="link" href="/tasks/`+children[0].TaskID+`">Reader</a>`, "Read this &lt;b&gt;.")
	b.get("/tasks/" + children[0].TaskID).shows(`<a class="link" href="/tasks/team">by another worker`)
	// A turn that has used up a budget with others says so: its own figures are smaller.
	alone := s.carryOut(s.owner, store.NewTurn{WorkerID: w.ID, TaskID: "alone", Input: scripted("say done")})
	is.Equal(alone.Status, store.Completed)
	storetest.Exec(t, s.store, `UPDATE turns SET incomplete_reason = 'budget_exhausted', incomplete_limit = 'credits'`)
	b.get("/tasks/team").shows("has used up its credits. Other workers used it, too.")
	b.get("/tasks/" + children[0].TaskID).shows("has used up its credits. Other workers used it, too.")
	b.get("/tasks/team").shows("Workers that share this budget are not counted here.")
	b.get("/tasks/alone").shows("has used up its credits. A follow-up")
	b.get("/tasks/alone").lacks("not counted here")
}
