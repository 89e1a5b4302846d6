package store_test

import (
	"testing"

	"github.com/matryer/is"

	"journeyman/store"
)

// TestSettingsOfATurn changes a worker's settings while a turn is queued.
func TestSettingsOfATurn(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	chosen := store.WorkerSettings{Model: "openai:a", ApprovalTools: []string{"shell"}, MCPTools: []string{"notes", "web.get"},
		Tools: store.ToolRules{{Tool: "web_fetch", Hosts: []string{"*.example.com"}}, {Tool: "notes.add"}}, StrangerTools: store.ToolRules{}}
	w := f.newWorker(f.owner, store.NewWorker{Title: "Careful", Settings: chosen})
	is.Equal(w.Settings, chosen)
	read, err := f.Workers.Worker(t.Context(), f.owner.Caller, w.ID)
	is.NoErr(err)
	is.Equal(read, w)

	n := f.turn()
	n.WorkerID = w.ID
	f.accept(n)
	none := []string{}
	model := ""
	w, err = f.Workers.UpdateWorker(t.Context(), f.owner.Caller, w.ID, store.WorkerPatch{Model: &model, ApprovalTools: &none, Tools: new(store.ToolRules)})
	is.NoErr(err)
	is.Equal(w.Version, int64(2))
	// Fields that the patch does not contain are unchanged.
	is.Equal(w.Settings, store.WorkerSettings{ApprovalTools: none, MCPTools: chosen.MCPTools, StrangerTools: chosen.StrangerTools})
	f.accept(n)

	f.startRunner("r")
	claims, err := f.ClaimTurns(t.Context(), "r", 2, 2)
	is.NoErr(err)
	is.Equal(claims[0].Settings, chosen) // fixed when the turn was accepted
	is.Equal(claims[1].Settings, w.Settings)
}
