package stream

import (
	"context"
	"errors"

	"journeyman/store/db"
)

// This file handles turns that other nodes execute. Their watchers on this node read the store.

// An EndedTurn identifies a turn that has ended.
type EndedTurn struct {
	ID       string `json:"id"`
	WorkerID string `json:"workerId"`
}

// OnEnd sets the function that is called when the end of a turn is committed on this node. Set it
// before the Hub is used.
func (h *Hub) OnEnd(fn func(EndedTurn)) { h.onEnd = fn }

// OnClose calls fn when the Hub is closed, unless stop is called before.
func (h *Hub) OnClose(fn func()) (stop func() bool) { return context.AfterFunc(h.open, fn) }

// NotifyEnded notifies the watchers of turns whose ends other nodes have committed. If the store cannot
// be read, the worker-wide streams of that worker end. Their clients connect again, and then get the turn.
func (h *Hub) NotifyEnded(ctx context.Context, turns []EndedTurn) error {
	var failed []error
	for _, t := range turns {
		h.changed.fire(t.ID)
		h.ended.fire(t.ID)
		// This node has a ring of the worker if, for example, the turn was cancelled before it ran here.
		if err := h.feedStored(ctx, t.WorkerID, t.ID, h.feedEnded); err != nil && !db.IsNotFound(err) {
			h.Leave(t.WorkerID)
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}

// AllChanged makes all watchers and all pages of all organizations read the store again. It does not wake
// the callers of WatchEnd, which poll the store: see PollEvery. It ends all worker-wide streams, because
// any of them may lack the end of a turn.
func (h *Hub) AllChanged() {
	for _, id := range h.changed.ids() {
		h.changed.fire(id)
	}
	h.changes.forget()
	h.LeaveAll()
}

// WatchedWorkers returns the ids of the workers whose worker-wide streams have watchers on this node.
func (h *Hub) WatchedWorkers() []string {
	return h.workersWith(func(rg *ring) bool { return rg.watchers > 0 })
}

// workersWith returns the ids of the workers whose rings match.
func (h *Hub) workersWith(match func(*ring) bool) (ids []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for id, rg := range h.rings {
		if match(rg) {
			ids = append(ids, id)
		}
	}
	return ids
}

// Guest records that a worker has watchers on this node, but is not placed on this node. Another node may
// execute its turns. That node may die before it sends the ends of these turns: see LeaveGuests.
func (h *Hub) Guest(workerID string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if rg := h.rings[workerID]; rg != nil {
		rg.guest = true
	}
}

// LeaveGuests ends the worker-wide streams of all workers that Guest has recorded. A worker may have been
// placed on this node since then, but its ring lacks the earlier events.
func (h *Hub) LeaveGuests() { h.leaveAll(func(rg *ring) bool { return rg.guest }) }

// LeaveAll ends the worker-wide streams of all workers. It also drops the rings without watchers.
func (h *Hub) LeaveAll() { h.leaveAll(func(*ring) bool { return true }) }

func (h *Hub) leaveAll(match func(*ring) bool) {
	for _, id := range h.workersWith(match) {
		h.Leave(id)
	}
}

// Leave ends the worker-wide streams of a worker, because another node executes its turns, or because the
// ring may lack events. The clients connect again, and then get the missing events.
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
