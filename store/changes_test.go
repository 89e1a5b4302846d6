package store_test

import (
	"slices"
	"sync"
	"testing"

	"github.com/matryer/is"

	"journeyman/store/db"
	"journeyman/store/workers"
)

// TestChangesAreAnnounced checks that each write reports, after its commit, the kinds of changed records
// and their organization.
func TestChangesAreAnnounced(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	ctx, c := t.Context(), f.owner.Caller
	var mu sync.Mutex
	var told []db.Change
	f.OnChange(func(organizationID string, what db.Change) {
		mu.Lock()
		defer mu.Unlock()
		is.Equal(organizationID, c.OrganizationID)
		if !slices.Contains(told, what) {
			told = append(told, what)
		}
	})
	tells := func(what ...db.Change) {
		t.Helper()
		mu.Lock()
		defer mu.Unlock()
		is.Equal(told, what)
		told = nil
	}
	w := f.newWorker(f.owner, workers.NewWorker{Title: "Reader"})
	tells(db.ChangedWorkers)
	is.NoErr(f.Workers.PinWorker(ctx, c, w.ID))
	tells(db.ChangedWorkers)
	turn := f.accept(f.turn())
	tells(db.ChangedTasks)
	f.startRunner("run_a")
	claim := f.claimOne("run_a")
	tells(db.ChangedTasks)
	f.finish(claim)
	tells(db.ChangedTasks)
	is.NoErr(errOf(f.ArchiveTask(ctx, c, turn.TaskID, "")))
	tells(db.ChangedTasks)
	is.True(f.DeleteWorker(ctx, c, "wrk_none") != nil)
	tells() // a failed write changes nothing
	is.NoErr(f.DeleteWorker(ctx, c, w.ID))
	tells(db.ChangedWorkers)
}
