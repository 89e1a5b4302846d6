package runner_test

import (
	"context"
	"errors"
	"testing"

	"github.com/matryer/is"

	"journeyman/runner"
	"journeyman/runner/stream"
	"journeyman/store"
	"journeyman/store/workers"
)

// TestLostChanges tells a node that it may have missed the end of a turn. The client of the worker-wide
// stream then opens the stream again, and gets the turn.
func TestLostChanges(t *testing.T) {
	t.Parallel()
	over, cancel := context.WithCancel(t.Context())
	cancel() // the node cannot read the turn
	for name, tt := range map[string]struct {
		ctx     context.Context
		changes func(worker, other string) runner.Changes
	}{
		"all": {t.Context(), func(string, string) runner.Changes { return runner.Changes{All: true} }},
		"unreadable": {over, func(worker, other string) runner.Changes {
			return runner.Changes{Ended: []stream.EndedTurn{{ID: "a", WorkerID: other}, {ID: "b", WorkerID: worker}}}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			f := newFixture(t)
			other := f.newWorker(workers.NewWorker{Title: "Other"})
			f.workerStream(other.ID, "").Close()
			s := f.workerStream(f.worker.ID, "")
			defer s.Close()
			first := f.run(script("say one"))
			got := f.next(s)
			err := f.ApplyChanges(tt.ctx, tt.changes(f.worker.ID, other.ID))
			is.Equal(err != nil, tt.ctx == over)
			for err = nil; err == nil; { // what the stream already has still reaches the client
				_, _, err = s.Next(t.Context())
			}
			is.True(errors.Is(err, stream.ErrClosed))
			rings, _, _, _ := f.Kept()
			is.Equal(rings, 0) // also those that nobody watches
			w := f.readWide(string(got[0].ID), 1)
			is.Equal(w.restarts, 1)
			w.check(f, []store.Turn{first})
		})
	}
}
