package stream

import (
	"context"
	"errors"
	"maps"
	"slices"

	"journeyman/store"
)

// This file is about turns that other nodes execute. Their watchers on this node read the store.

// An EndedTurn names a turn that has ended.
type EndedTurn struct {
	ID       string `json:"id"`
	WorkerID string `json:"workerId"`
}

// OnEnd sets the function that is called when the end of a turn is committed on this node. Set it
// before the Hub is used.
func (h *Hub) OnEnd(fn func(EndedTurn)) { h.onEnd = fn }

// OnClose calls fn when the Hub is closed, unless stop is called before.
func (h *Hub) OnClose(fn func()) (stop func() bool) { return context.AfterFunc(h.open, fn) }

// EndedElsewhere notifies the watchers of turns whose ends other nodes have committed. A worker-wide
// stream ends if it cannot get the end of a turn: its client opens it again, and gets the turn then.
func (h *Hub) EndedElsewhere(ctx context.Context, turns []EndedTurn) error {
	var failed []error
	for _, t := range turns {
		h.changed.fire(t.ID)
		h.ended.fire(t.ID)
		// The ring of the worker is here if the turn was cancelled before this node has executed it.
		if err := h.feedStored(ctx, t.WorkerID, t.ID, h.feedEnded); err != nil && !store.IsNotFound(err) {
			h.Leave(t.WorkerID)
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}

// AllChanged makes all watchers read the store again, and all pages of all organizations. Those that
// wait for an end look by themselves: see PollEvery. Worker-wide streams end, because any of them may
// lack the end of a turn.
func (h *Hub) AllChanged() {
	for _, id := range h.changed.ids() {
		h.changed.fire(id)
	}
	h.changes.forget()
	h.LeaveAll()
}

// WatchedWorkers returns the ids of the workers whose worker-wide streams are read here.
func (h *Hub) WatchedWorkers() (ids []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for id, rg := range h.rings {
		if rg.watchers > 0 {
			ids = append(ids, id)
		}
	}
	return ids
}

// Guest notes that a worker is watched here although this node does not have it. Another node may execute
// its turns, and may end before it has told the ends of them.
func (h *Hub) Guest(workerID string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if rg := h.rings[workerID]; rg != nil {
		rg.guest = true
	}
}

// LeaveGuests ends the worker-wide streams that Guest has noted. This node may have the worker by now, but
// the rings lack what happened before.
func (h *Hub) LeaveGuests() {
	h.mu.Lock()
	var ids []string
	for id, rg := range h.rings {
		if rg.guest {
			ids = append(ids, id)
		}
	}
	h.mu.Unlock()
	for _, id := range ids {
		h.Leave(id)
	}
}

// LeaveAll ends the worker-wide streams of all workers. It also drops the rings that nobody watches.
func (h *Hub) LeaveAll() {
	h.mu.Lock()
	ids := slices.Collect(maps.Keys(h.rings))
	h.mu.Unlock()
	for _, id := range ids {
		h.Leave(id)
	}
}

// Leave ends the worker-wide streams of a worker, because another node executes its turns, or the
// ring may lack events. The clients open them again, and get what they lack.
func (h *Hub) Leave(workerID string) {
	h.mu.Lock()
	rg := h.rings[workerID]
	delete(h.rings, workerID)
	h.mu.Unlock()
	if rg == nil {
		return
	}
	rg.mu.Lock()
	defer rg.mu.Unlock()
	rg.over = true
	rg.changed.fire(rg.wakeUp)
}
