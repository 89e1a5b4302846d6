package starters_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/handlers/dashboard/dashboardtest"
	"journeyman/store"
	"journeyman/store/ordertest"
)

// TestStarters tries every starter of the gallery without a model: the steps run, and the answer
// contains a note about the demonstration.
func TestStarters(t *testing.T) {
	_, s, b := dashboardtest.AsOwner(t)
	is := is.New(t)
	page := b.Get("/workers/new")
	files, err := filepath.Glob("*.yaml")
	is.NoErr(err)
	is.Equal(len(files), 8)
	for _, file := range files {
		id := strings.TrimSuffix(filepath.Base(file), ".yaml")
		t.Run(id, func(t *testing.T) {
			is := is.New(t)
			page.Shows(`action="/starters/` + id + `/try"`) // the gallery shows the starter
			p := b.Post("/starters/"+id+"/try", "token", "one")
			is.Equal(p.Status, 303)
			is.Equal(b.Post("/starters/"+id+"/try", "token", "one").Location(), p.Location()) // a second click
			turn := s.Ended(strings.TrimPrefix(p.Location(), "/tasks/"))
			is.Equal(turn.Status, store.Completed)
			is.True(strings.Contains(turn.Input+turn.OutputText, "This is a demonstration. No model is connected"))
			task, _, err := s.Store.Task(t.Context(), s.Owner.Caller, turn.TaskID)
			is.NoErr(err)
			conv, err := s.Store.Conversation(t.Context(), task)
			is.NoErr(err)
			calls := 0
			for _, step := range conv.Steps[turn.Num] {
				for _, c := range step.Calls {
					calls++
					is.Equal(c.State, store.CallCompleted) // each step of the demonstration works
				}
			}
			ordertest.Above(is, calls, 0)
			wrk, err := s.Store.Workers.Worker(t.Context(), s.Owner.Caller, turn.WorkerID)
			is.NoErr(err)
			ordertest.Above(is, len(wrk.Instructions), 300)
			is.True(wrk.Summary != "")
			is.Equal(b.Post("/starters/"+id, "token", "one").Location(), "/workers/"+wrk.ID+"?done=worker-made")
		})
	}
	is.Equal(b.Post("/starters/none", "token", "one").Status, 404)
	is.Equal(b.Post("/starters/none/try").Status, 404)
}
