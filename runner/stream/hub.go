// Package stream sends the progress of turns to watchers, as chunks of the AI SDK's UI message
// stream, version 1.
//
// The loop reports each event once, to the Live of the turn that it executes: a step begins,
// the model produces text, a call ends. A Live holds a snapshot of the turn. The snapshot of a
// turn that nobody executes is read from the store. An encoder converts a snapshot into the
// events that follow a position. So a client continues exactly at its last event, whether the
// rest is in memory or only in the journal.
//
// There are two kinds of streams. A Stream follows one turn or one task, with an encoder of its
// own. A WorkerStream follows all turns of a worker. Its events come from a ring that all
// watchers of the worker share, so that all receive the same order.
//
// This package never changes a record, and no watcher ever slows the loop. It imports store,
// model and view.
package stream

import (
	"context"
	"errors"
	"sync"
	"time"

	"journeyman/runner/view"
	"journeyman/store"
)

// ErrClosed is returned by streams when the service stops. A WorkerStream also returns it after Leave.
var ErrClosed = errors.New("the service stops")

// A Hub connects the loop with the watchers of its turns. Its methods are safe for concurrent
// use.
type Hub struct {
	store *store.Store
	views view.Builder
	now   func() time.Time

	changes *changeLog // changes of records, by organization

	wakeUp  alarm   // wakes all watchers
	changed signals // by turn id: the state of the turn has changed
	ended   signals // by turn id: the end of the turn is committed
	onEnd   func(EndedTurn)

	mu    sync.Mutex       // guards live and rings; lock order: Hub, ring, Live
	live  map[string]*Live // by turn id: the turns that this process executes
	rings map[string]*ring // by worker id

	open  context.Context // canceled by Close
	close context.CancelFunc
}

// New returns a Hub for the turns of a store.
func New(st *store.Store, views view.Builder, now func() time.Time) *Hub {
	h := &Hub{store: st, views: views, now: now, onEnd: func(EndedTurn) {}, live: map[string]*Live{}, rings: map[string]*ring{},
		changes: newChangeLog(now)}
	h.changed.wakeUp, h.ended.wakeUp, h.changes.changed.wakeUp = &h.wakeUp, &h.wakeUp, &h.wakeUp
	h.open, h.close = context.WithCancel(context.Background())
	return h
}

// Held returns how many rings, unfinished turns in rings, and watched turns the Hub holds in
// memory. All three return to 0 after the last watcher has left and the last turn has ended.
// Rings stay for RingAge after their last watcher.
func (h *Hub) Held() (rings, turns, watched int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	// h.mu stays locked, so no ring can be added or removed meanwhile.
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
	h.onEnd(EndedTurn{t.ID, t.WorkerID})
	err := h.feedStored(ctx, t.WorkerID, t.ID, h.feedEnded)
	if err != nil {
		h.Leave(t.WorkerID) // the ring lacks the end of the turn
	}
	return err
}

// ApprovalDecided notifies the watchers of a suspended turn that a person has decided on one of
// its tool calls.
func (h *Hub) ApprovalDecided(ctx context.Context, a store.Approval) error {
	h.changed.fire(a.TurnID)
	return h.feedStored(ctx, a.WorkerID, a.TurnID, h.feedSuspended)
}

// ChildChanged notifies the watchers of a turn that a child turn has begun or ended.
func (h *Hub) ChildChanged(ctx context.Context, parent store.Turn) error {
	h.mu.Lock()
	l := h.live[parent.ID]
	h.mu.Unlock()
	if l == nil {
		// This process does not execute the parent, so its watchers read the store again.
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
		return nil // nobody watches the worker: reading the turn is unnecessary
	}
	s, err := h.stored(ctx, turnID)
	if err == nil {
		feed(s)
	}
	return err
}

// WatchEnd returns an End whose channel closes when the end of a turn is committed. The turn
// may end before this call, so the caller must read the turn afterwards. The caller calls leave
// when it no longer waits.
func (h *Hub) WatchEnd(turnID string) (end End, leave func()) {
	w, leave := h.ended.watcher(turnID)
	return End{w}, leave
}

// Waited reports whether somebody waits for the end of a turn.
func (h *Hub) Waited(turnID string) bool { return h.ended.awaited(turnID) }

// look returns the current state of a turn: from memory if this process executes the turn, else
// from the store. The channel closes when the turn changes. The caller calls leave when it no
// longer waits for a change.
func (h *Hub) look(ctx context.Context, turnID string) (s snapshot, changed <-chan struct{}, leave func(), err error) {
	changed, leave = h.changed.watch(turnID) // before the state is read, so that no change is missed
	h.mu.Lock()
	l := h.live[turnID]
	h.mu.Unlock()
	if l != nil {
		if s, ok := l.look(); ok {
			return s, changed, leave, nil
		}
	}
	if s, err = h.stored(ctx, turnID); err != nil {
		leave() // the caller gets an error and will not wait
	}
	return s, changed, leave, err
}

// stored returns the state of a turn from the store. It reads the turn's row first: if the row
// has a final status, all other rows are already complete.
func (h *Hub) stored(ctx context.Context, turnID string) (s snapshot, err error) {
	if s.turn, err = h.store.Turn(ctx, turnID); err != nil {
		return s, err
	}
	if s.steps, err = h.store.Journal(ctx, s.turn); err != nil {
		return s, err
	}
	if len(s.steps) > 0 { // only a turn with steps can have made calls
		if s.children, err = h.store.Children(ctx, s.turn); err != nil {
			return s, err
		}
	}
	return s, h.readFiles(ctx, &s)
}

// readFiles reads the files attached to a turn. If the turn has ended, it also reads its
// published files and its sources.
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

const (
	pollEvery     = 30 * time.Second
	pollNodeEvery = 500 * time.Millisecond
)

// PollEvery returns the time after which a watcher reads a turn again although no change was
// signalled. It is short if another node may execute the turn.
func (h *Hub) PollEvery() time.Duration {
	if h.store.Shared() {
		return pollNodeEvery
	}
	return pollEvery
}

// await waits for a change, but at most PollEvery. It returns ErrClosed when the service stops.
func (h *Hub) await(ctx context.Context, changed <-chan struct{}) error {
	return h.awaitFor(ctx, changed, h.PollEvery())
}

// awaitFor waits for a change, but at most for most. It returns ErrClosed when the service stops.
func (h *Hub) awaitFor(ctx context.Context, changed <-chan struct{}, most time.Duration) error {
	select {
	case <-changed:
		return nil
	case <-time.After(most):
		return nil
	case <-h.open.Done():
		return ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
}
