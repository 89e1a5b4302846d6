package dashboard_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/store"
	"journeyman/store/ordertest"
	"journeyman/store/workers"
)

// TestStarters tries every starter of the gallery without a model: the steps run, and the answer
// contains a note about the demonstration.
func TestStarters(t *testing.T) {
	_, s, b := asOwner(t)
	is := is.New(t)
	page := b.get("/workers/new")
	files, err := filepath.Glob("starters/*.yaml")
	is.NoErr(err)
	is.Equal(len(files), 8)
	for _, file := range files {
		id := strings.TrimSuffix(filepath.Base(file), ".yaml")
		t.Run(id, func(t *testing.T) {
			is := is.New(t)
			page.shows(`action="/starters/` + id + `/try"`) // the gallery shows the starter
			p := b.post("/starters/"+id+"/try", "token", "one")
			is.Equal(p.status, 303)
			is.Equal(b.post("/starters/"+id+"/try", "token", "one").location(), p.location()) // a second click
			turn := s.ended(strings.TrimPrefix(p.location(), "/tasks/"))
			is.Equal(turn.Status, store.Completed)
			is.True(strings.Contains(turn.Input+turn.OutputText, "This is a demonstration. No model is connected"))
			task, _, err := s.store.Task(t.Context(), s.owner.Caller, turn.TaskID)
			is.NoErr(err)
			conv, err := s.store.Conversation(t.Context(), task)
			is.NoErr(err)
			calls := 0
			for _, step := range conv.Steps[turn.Num] {
				for _, c := range step.Calls {
					calls++
					is.Equal(c.State, store.CallCompleted) // each step of the demonstration works
				}
			}
			ordertest.Above(is, calls, 0)
			wrk, err := s.store.Workers.Worker(t.Context(), s.owner.Caller, turn.WorkerID)
			is.NoErr(err)
			ordertest.Above(is, len(wrk.Instructions), 300)
			is.True(wrk.Summary != "")
			is.Equal(b.post("/starters/"+id, "token", "one").location(), "/workers/"+wrk.ID+"?done=worker-made")
		})
	}
	is.Equal(b.post("/starters/none", "token", "one").status, 404)
	is.Equal(b.post("/starters/none/try").status, 404)
}

// TestImportPage exports a worker on its page, and imports it as a file and as text.
func TestImportPage(t *testing.T) {
	is, s, b := asOwner(t)
	wrk := s.worker(s.owner, workers.NewWorker{Title: "Clerk", Instructions: "Be brief.\nBe kind."})
	file := b.get("/workers/" + wrk.ID + "/export")
	is.Equal(file.status, 200)
	is.True(strings.Contains(file.header.Get("Content-Disposition"), "attachment"))
	made := s.madeWorker(b.send(b.form("/import", []string{"token", "one"}, "worker.yaml", file.body)))
	is.True(made.ID != wrk.ID)
	is.Equal(made.Instructions, wrk.Instructions)
	made = s.madeWorker(b.send(b.form("/import", []string{"token", "two", "file", strings.ReplaceAll(file.body, "\n", "\r\n")})))
	is.Equal(made.Instructions, wrk.Instructions)
	p := b.send(b.form("/import", []string{"token", "three", "file", "journeyman: 1\ntitel: " + hostile}))
	p.answers(422).shows("titel: is not a field") // the field and the rule
	is.True(p.harmless())
	is.Equal(b.send(b.form("/import", []string{"file", "a: &a [*a]"})).status, 422)
}
