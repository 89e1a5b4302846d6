package store_test

import (
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store/db"
	"journeyman/store/people"
	"journeyman/store/workers"
)

// TestPins checks that a user sees only pinned workers that exist and that the user may see.
func TestPins(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	ctx := t.Context()
	mo := f.caller("Acme", "mo@acme.test", people.RoleMember)
	titles := func(c people.Caller) (list []string) {
		pins, err := f.Workers.Pins(ctx, c)
		is.NoErr(err)
		for _, p := range pins {
			list = append(list, p.Title)
		}
		return list
	}
	first := f.newWorker(f.owner, workers.NewWorker{Title: "First"})
	second := f.newWorker(f.owner, workers.NewWorker{Title: "Second"})
	is.NoErr(f.Workers.PinWorker(ctx, mo.Caller, second.ID))
	f.clock.advance(time.Second)
	is.NoErr(f.Workers.PinWorker(ctx, mo.Caller, first.ID))
	is.NoErr(f.Workers.PinWorker(ctx, mo.Caller, second.ID)) // no change
	is.Equal(titles(mo.Caller), []string{"Second", "First"})
	is.Equal(titles(f.owner.Caller), nil) // the pins of others

	hidden := f.newWorker(f.owner, workers.NewWorker{Title: "Hidden", Visibility: workers.Private})
	// A member must not pin a worker that they may not see.
	is.True(db.IsKind(f.Workers.PinWorker(ctx, mo.Caller, hidden.ID), db.Forbidden))
	is.NoErr(errOf(f.Workers.UpdateWorker(ctx, f.owner.Caller, first.ID, workers.Patch{Visibility: new(workers.Private)})))
	is.Equal(titles(mo.Caller), []string{"Second"}) // the other worker is now private
	is.NoErr(f.Workers.UnpinWorker(ctx, mo.Caller, second.ID))
	is.NoErr(f.Workers.UnpinWorker(ctx, mo.Caller, second.ID)) // again
	is.Equal(titles(mo.Caller), nil)
}

// TestPinsAreFew checks the limit on pins. Deleted workers do not count.
func TestPinsAreFew(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	ctx, c := t.Context(), f.owner.Caller
	var last workers.Worker
	for range workers.MaxPins {
		last = f.newWorker(f.owner, workers.NewWorker{Title: "One of many"})
		is.NoErr(f.Workers.PinWorker(ctx, c, last.ID))
	}
	more := f.newWorker(f.owner, workers.NewWorker{Title: "One more"})
	is.True(db.IsKind(f.Workers.PinWorker(ctx, c, more.ID), db.Conflict)) // beyond the limit
	is.NoErr(f.DeleteWorker(ctx, c, last.ID))
	is.NoErr(f.Workers.PinWorker(ctx, c, more.ID))
	pins, err := f.Workers.Pins(ctx, c)
	is.NoErr(err)
	is.Equal(len(pins), workers.MaxPins)
}
