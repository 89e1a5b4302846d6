package stream

import (
	"context"

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

// EndedElsewhere notifies the watchers of turns whose ends other nodes have committed.
func (h *Hub) EndedElsewhere(ctx context.Context, turns []EndedTurn) error {
	for _, t := range turns {
		h.changed.fire(t.ID)
		h.ended.fire(t.ID)
		// The ring of the worker is here if the turn was cancelled before this node has executed it.
		if err := h.feedStored(ctx, t.WorkerID, t.ID, h.feedEnded); err != nil && !store.IsNotFound(err) {
			return err
		}
	}
	return nil
}

// AllChanged makes all watchers read the store again, and all pages of all organizations. Those that
// wait for an end look by themselves: see PollEvery.
func (h *Hub) AllChanged() {
	for _, id := range h.changed.ids() {
		h.changed.fire(id)
	}
	h.changes.forget()
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

// Leave ends the worker-wide streams of a worker, because another node executes its turns. The
// clients open them again, and get them from that node.
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
