package store_test

import (
	"testing"

	"github.com/matryer/is"

	"journeyman/store/workers"
)

// TestSettingsOfATurn changes a worker's settings while a turn is queued.
func TestSettingsOfATurn(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	chosen := workers.Settings{Model: "openai:a", ApprovalTools: []string{"shell"}, MCPTools: []string{"notes", "web.get"},
		Tools: workers.ToolRules{{Tool: "web_fetch", Hosts: []string{"*.example.com"}},
			{Tool: "notes.add"}}, StrangerTools: workers.ToolRules{}}
	w := f.newWorker(f.owner, workers.NewWorker{Title: "Careful", Settings: chosen})
	is.Equal(w.Settings, chosen)
	read, err := f.Workers.Worker(t.Context(), f.owner.Caller, w.ID)
	is.NoErr(err)
	is.Equal(read, w)

	n := f.turn()
	n.WorkerID = w.ID
	f.accept(n)
	none := []string{}
	model := ""
	w, err = f.Workers.UpdateWorker(t.Context(), f.owner.Caller, w.ID, workers.Patch{Model: &model, ApprovalTools: &none,
		Tools: new(workers.ToolRules)})
	is.NoErr(err)
	is.Equal(w.Version, int64(2))
	// Fields that the patch does not contain are unchanged.
	is.Equal(w.Settings, workers.Settings{ApprovalTools: none, MCPTools: chosen.MCPTools,
		StrangerTools: chosen.StrangerTools})
	f.accept(n)

	f.startRunner("r")
	claims, err := f.ClaimTurns(t.Context(), "r", 2, 2)
	is.NoErr(err)
	is.Equal(claims[0].Settings, chosen) // fixed when the turn was accepted
	is.Equal(claims[1].Settings, w.Settings)
}
