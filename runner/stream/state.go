package stream

import (
	"context"

	"journeyman/store"
)

// A State is a turn at one moment, for pages that render it themselves. Its slices are shared:
// the caller must not change their elements.
type State struct {
	Turn     store.Turn
	Steps    []store.Step  // the journal
	Current  *store.Step   // the step in progress; nil without one
	Children []store.Child // turns that its calls have started, in the order of their starts
}

// State returns the current state of a turn, including the step in progress. The channel closes
// when the turn changes. The caller calls leave when it no longer waits for a change.
func (h *Hub) State(ctx context.Context, turnID string) (s State, changed <-chan struct{}, leave func(), err error) {
	snap, changed, leave, err := h.look(ctx, turnID)
	return State{Turn: snap.turn, Steps: snap.steps, Current: snap.current, Children: snap.children}, changed, leave, err
}

// Await waits for a change, but at most PollEvery, because another node may have changed the turn.
// It returns ErrClosed when the service stops.
func (h *Hub) Await(ctx context.Context, changed <-chan struct{}) error { return h.await(ctx, changed) }
