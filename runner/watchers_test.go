package runner_test

import (
	"context"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store"
)

// TestCancelledByLeavingClient cancels a suspended turn for a client that disconnects after the commit.
// A worker-wide stream still gets the end of the turn.
func TestCancelledByLeavingClient(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t, withModel(questions(`{"question":"When?"}`)))
	s, err := f.Streams.Worker(t.Context(), f.worker.ID, "")
	is.NoErr(err)
	defer s.Close()
	turn := f.accept("go")
	f.pending(turn, 1)
	_, _, err = f.store.AbortTask(t.Context(), f.owner, turn.TaskID)
	is.NoErr(err)

	left, leave := context.WithCancel(t.Context())
	leave()
	is.NoErr(f.NotifyAborted(left, turn, turn.Seq-1))
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	w := newWideReader(t)
	for w.done() < 1 {
		events, _, err := s.Next(ctx)
		is.NoErr(err) // the end of the turn arrives
		for _, e := range events {
			w.take(e)
		}
	}
	w.check(f, []store.Turn{turn})
}
