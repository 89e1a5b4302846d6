// Package stream tells watchers what turns do, as chunks of the AI SDK's UI message
// stream, version 1.
//
// The loop tells each event once, to the Live of the turn that it executes: a step
// begins, the model produces text, a call ends. A Live holds a snapshot of the turn. A
// turn that nobody executes has its snapshot in the store. An encoder turns a snapshot
// into the events that follow a position, so that a client continues exactly where its
// connection broke, whether the rest is still in memory or only in the journal.
//
// There are two classes of watchers. A Stream follows one turn or one task, with an
// encoder of its own. A WorkerStream follows all turns of a worker. Its events come from
// a ring that all watchers of the worker share, so that they all see the same order.
//
// Nothing here changes a record, and no watcher ever slows the loop. This package
// imports store, model and view.
package stream

import (
	"context"
	"errors"
	"sync"
	"time"

	"journeyman/runner/view"
	"journeyman/store"
)

// ErrClosed ends a stream because the service stops.
var ErrClosed = errors.New("the service stops")

// A Hub connects the loop with the watchers of its turns. Its methods are safe for
// concurrent use.
type Hub struct {
	store *store.Store
	views view.Builder
	now   func() time.Time

	changes *changeLog // of the records of each organization

	wakeUp  alarm   // of all watchers
	changed signals // of turns, by id: watchers would see the turn in another state
	ended   signals // of turns, by id: the end of the turn is committed

	mu    sync.Mutex       // guards live and rings; the order of locks: Hub, ring, Live
	live  map[string]*Live // by turn id: the turns that this process executes
	rings map[string]*ring // by worker id

	open  context.Context // ends when the streams have to end
	close context.CancelFunc
}

// New returns a Hub for the turns of a store.
func New(st *store.Store, views view.Builder, now func() time.Time) *Hub {
	h := &Hub{store: st, views: views, now: now, live: map[string]*Live{}, rings: map[string]*ring{},
		changes: newChangeLog(now())}
	h.changed.wakeUp, h.ended.wakeUp, h.changes.changed.wakeUp = &h.wakeUp, &h.wakeUp, &h.wakeUp
	h.open, h.close = context.WithCancel(context.Background())
	return h
}

// Held returns how many rings, unfinished turns in rings, and watched turns the Hub holds
// in memory. All of them are 0 again after the last watcher has left and the last turn has
// ended, but rings stay for a while.
func (h *Hub) Held() (rings, turns, watched int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	// The rings cannot change meanwhile, because h.mu stays locked.
	for _, rg := range h.rings {
		rg.mu.RLock()
		turns += len(rg.turns)
		rg.mu.RUnlock()
	}
	return len(h.rings), turns, h.changed.watched() + h.ended.watched() + h.changes.changed.watched()
}

// Close ends every stream, so that a server with open streams can shut down.
func (h *Hub) Close() { h.close() }

// Changed notifies the watchers of a turn that its row has changed while nobody executed it.
func (h *Hub) Changed(turnID string) { h.changed.fire(turnID) }

// TurnEnded notifies the watchers of a turn that it ended while nobody executed it.
func (h *Hub) TurnEnded(ctx context.Context, t store.Turn) error {
	h.changed.fire(t.ID)
	h.ended.fire(t.ID)
	return h.feedStored(ctx, t.WorkerID, t.ID, h.feedEnded)
}

// ApprovalDecided notifies the watchers of a suspended turn that a person has decided on one
// of its tool calls.
func (h *Hub) ApprovalDecided(ctx context.Context, a store.Approval) error {
	h.changed.fire(a.TurnID)
	return h.feedStored(ctx, a.WorkerID, a.TurnID, h.feedSuspended)
}

// ChildChanged notifies the watchers of a turn that a turn which it has started has begun or
// ended.
func (h *Hub) ChildChanged(ctx context.Context, parent store.Turn) error {
	h.mu.Lock()
	l := h.live[parent.ID]
	h.mu.Unlock()
	if l == nil {
		// Nobody executes the parent here, so its watchers read the store again.
		h.changed.fire(parent.ID)
		return h.feedStored(ctx, parent.WorkerID, parent.ID, h.feedSuspended)
	}
	// The Live keeps the children in memory, so that its watchers need not read them.
	children, err := h.store.Children(ctx, parent)
	if err == nil {
		l.childrenChanged(children)
	}
	return err
}

// feedStored reads a turn and feeds it to the ring of its worker.
func (h *Hub) feedStored(ctx context.Context, workerID, turnID string, feed func(snapshot)) error {
	if h.ring(workerID) == nil {
		return nil // nobody watches: the turn need not be read
	}
	s, err := h.stored(ctx, turnID)
	if err == nil {
		feed(s)
	}
	return err
}

// WatchEnd returns an End whose channel closes when the end of a turn is committed. The
// caller looks at the turn after this call, since the end may have come before it, and calls
// leave when it no longer waits.
func (h *Hub) WatchEnd(turnID string) (end End, leave func()) {
	w, leave := h.ended.watcher(turnID)
	return End{w}, leave
}

// look returns a turn as it is now: from memory while it is executed here, else from the
// store. The channel closes when the turn changes. The caller calls leave when it no
// longer waits for a change.
func (h *Hub) look(ctx context.Context, turnID string) (s snapshot, changed <-chan struct{}, leave func(), err error) {
	changed, leave = h.changed.watch(turnID) // before the look, so that no change is missed
	h.mu.Lock()
	l := h.live[turnID]
	h.mu.Unlock()
	if l != nil {
		if s, ok := l.look(); ok {
			return s, changed, leave, nil
		}
	}
	if s, err = h.stored(ctx, turnID); err != nil {
		leave() // the caller gets an error, and so waits for nothing
	}
	return s, changed, leave, err
}

// stored returns a turn as the store has it. It reads the row of the turn first: if that
// says that the turn has ended, all other rows were written before.
func (h *Hub) stored(ctx context.Context, turnID string) (s snapshot, err error) {
	if s.turn, err = h.store.Turn(ctx, turnID); err != nil {
		return s, err
	}
	if s.steps, err = h.store.Journal(ctx, s.turn); err != nil {
		return s, err
	}
	if len(s.steps) > 0 { // otherwise it has made no call
		if s.children, err = h.store.Children(ctx, s.turn); err != nil {
			return s, err
		}
	}
	return s, h.readFiles(ctx, &s)
}

// readFiles reads the files attached to a turn and, once it has ended, what it published
// and the sources that it used.
func (h *Hub) readFiles(ctx context.Context, s *snapshot) error {
	files, err := h.store.FilesByTurn(ctx, s.turn)
	if err != nil {
		return err
	}
	s.attached = store.TurnFiles(files, s.turn.Num, store.Attached)
	if !s.turn.Status.Ended() {
		return nil
	}
	s.files = store.TurnFiles(files, s.turn.Num, store.Published)
	s.sources, err = h.store.SourcesByTurn(ctx, s.turn)
	return err
}

// pollEvery is the time after which a watcher looks at a turn although no change was
// signalled: another process may have changed the store.
const pollEvery = 30 * time.Second

// await waits for a change, at most for pollEvery. It returns ErrClosed when the service
// stops.
func (h *Hub) await(ctx context.Context, changed <-chan struct{}) error {
	poll := time.NewTimer(pollEvery)
	defer poll.Stop()
	select {
	case <-changed:
		return nil
	case <-poll.C:
		return nil
	case <-h.open.Done():
		return ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
}
