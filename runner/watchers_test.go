package runner_test

import (
	"context"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/runner/stream"
	"journeyman/store"
	"journeyman/store/storetest"
	"journeyman/store/workers"
)

// TestUnreadEnd lets the read of a turn fail that has just ended. A worker-wide stream then ends, and its
// client gets the end of the turn when it continues.
func TestUnreadEnd(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(ctx context.Context, h *stream.Hub, before, turn store.Turn) error{
		"without an execution": func(ctx context.Context, h *stream.Hub, before, turn store.Turn) error {
			return h.TurnEnded(ctx, turn)
		},
		"of an execution": func(ctx context.Context, h *stream.Hub, before, turn store.Turn) error {
			live := h.Begin(before)
			defer live.Close()
			live.Loaded(nil, nil, nil)
			return live.Ended(ctx, turn, nil, true)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			f, s, before := abortedInStore(t)
			turn := f.wait(before)
			unreadable, cancel := context.WithCancel(t.Context())
			cancel()
			is.True(end(unreadable, f.Streams, before, turn) != nil)
			w := readToEnd(t, s)
			is.Equal(w.done(), 0)
			is.NoErr(w.follow(f, 1, 0, false, nil, nil))
			w.check(f, []store.Turn{turn})
		})
	}
}

// TestCancelledByLeavingClient cancels a suspended turn for a client that disconnects after the commit.
// A worker-wide stream still gets the end of the turn.
func TestCancelledByLeavingClient(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f, s, turn := abortedInStore(t)
	defer s.Close()
	left, leave := context.WithCancel(t.Context())
	leave()
	is.NoErr(f.NotifyAborted(left, turn))
	w := newWideReader(t)
	for w.done() < 1 { // until the end of the turn arrives
		feed(w, f.next(s))
	}
	w.check(f, []store.Turn{turn})
}

// TestUnreadAborted lets the read of a task's turns fail after they were cancelled. A worker-wide stream
// then ends, and its client gets the end of the turn when it continues.
func TestUnreadAborted(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f, s, turn := abortedInStore(t)
	storetest.Exec(t, f.store, `ALTER TABLE turns RENAME TO hidden`)
	err := f.NotifyAborted(t.Context(), turn)
	storetest.Exec(t, f.store, `ALTER TABLE hidden RENAME TO turns`)
	is.True(err != nil) // the turns could not be read
	w := readToEnd(t, s)
	is.NoErr(w.follow(f, 1, 0, false, nil, nil))
	w.check(f, []store.Turn{f.wait(turn)})
}

// TestUnreadBelow lets the reads fail of a cancelled task and of a turn below it. The worker-wide streams of
// both workers end.
func TestUnreadBelow(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t, withModel(questions(`{"question":"When?"}`)))
	other := f.newWorker(workers.NewWorker{Title: "Scribe"})
	turn := f.accept("go")
	child := f.acceptTurn(store.NewTurn{Caller: f.owner, WorkerID: other.ID, Input: "help", Budget: store.BudgetStandard})
	f.pending(turn, 1)
	f.pending(child, 1)
	var streams []*stream.WorkerStream
	for _, id := range []string{f.worker.ID, other.ID} {
		streams = append(streams, f.workerStream(id, ""))
	}
	task, _, err := f.store.AbortTask(t.Context(), f.owner, turn.TaskID)
	is.NoErr(err)

	storetest.Exec(t, f.store, `ALTER TABLE turns RENAME TO hidden`)
	err = f.StopAborted(t.Context(), task, []store.Turn{turn}, []store.Turn{child})
	storetest.Exec(t, f.store, `ALTER TABLE hidden RENAME TO turns`)
	is.True(err != nil) // no turn could be read
	for _, s := range streams {
		readToEnd(t, s)
	}
}

// abortedInStore cancels a suspended turn without a notification of its watchers. It returns the turn
// as it was before, and an open worker-wide stream.
func abortedInStore(t *testing.T) (*fixture, *stream.WorkerStream, store.Turn) {
	t.Helper()
	is := is.New(t)
	f := newFixture(t, withModel(questions(`{"question":"When?"}`)))
	s := f.workerStream(f.worker.ID, "")
	turn := f.accept("go")
	f.pending(turn, 1)
	turn = f.reload(turn.ID)
	_, _, err := f.store.AbortTask(t.Context(), f.owner, turn.TaskID)
	is.NoErr(err)
	return f, s, turn
}

// readToEnd reads a stream until the server ends it, and closes it.
func readToEnd(t *testing.T, s *stream.WorkerStream) *wideReader {
	t.Helper()
	is := is.New(t)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	w := newWideReader(t)
	for {
		events, _, err := s.Next(ctx)
		feed(w, events)
		if err != nil {
			is.Equal(err, stream.ErrClosed) // the server has ended the stream
			s.Close()
			return w
		}
	}
}
