package task_test

import (
	"testing"

	"journeyman/handlers/dashboard/dashboardtest"
	"journeyman/store"
	"journeyman/store/storetest"
	"journeyman/store/workers"
)

// TestTeamOnPages checks that the page of a task links to the workers that it has run, and that
// their pages link back.
func TestTeamOnPages(t *testing.T) {
	is, s, b := dashboardtest.AsOwner(t)
	w := s.Worker(s.Owner, workers.NewWorker{Title: "Scribe"})
	s.Worker(s.Owner, workers.NewWorker{Title: "Reader"})
	turn := s.CarryOut(s.Owner, store.NewTurn{WorkerID: w.ID, TaskID: "team", Input: dashboardtest.Scripted(
		dashboardtest.Calling("run_worker", "worker", "Reader", "input", "Read this <b>."), "say done")})
	is.Equal(turn.Status, store.Completed)
	children, err := s.Store.Children(t.Context(), turn)
	is.NoErr(err)
	is.Equal(len(children), 1)
	b.Get("/tasks/team").
		Shows(`<a class="link" href="/tasks/`+children[0].TaskID+`">Reader</a>`, "Read this &lt;b&gt;.")
	b.Get("/tasks/" + children[0].TaskID).Shows(`<a class="link" href="/tasks/team">by another worker`)
	// A turn that has used up a budget with others says so: its own figures are smaller.
	alone := s.CarryOut(s.Owner, store.NewTurn{WorkerID: w.ID, TaskID: "alone", Input: dashboardtest.Scripted("say done")})
	is.Equal(alone.Status, store.Completed)
	storetest.Exec(t, s.Store, `UPDATE turns SET incomplete_reason = 'budget_exhausted', incomplete_limit = 'credits'`)
	b.Get("/tasks/team").Shows("has used up its credits. Other workers used it, too.")
	b.Get("/tasks/" + children[0].TaskID).Shows("has used up its credits. Other workers used it, too.")
	b.Get("/tasks/team").Shows("Workers that share this budget are not counted here.")
	b.Get("/tasks/alone").Shows("has used up its credits. A follow-up")
	b.Get("/tasks/alone").Lacks("not counted here")
}
