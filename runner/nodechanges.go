package runner

import (
	"context"
	"slices"

	"journeyman/runner/stream"
	"journeyman/store/db"
)

// This file implements the messages in which nodes send their changes to each other. Without them, a node finds
// the changes of other nodes later, when it next reads the store.

// Changes holds the changes on one node that concern other nodes.
type Changes struct {
	Ended   []stream.EndedTurn     `json:"ended,omitempty"`
	Changed map[string][]db.Change `json:"changed,omitempty"` // kinds of records, by organization
	All     bool                   `json:"all,omitempty"`     // changes were lost, so any others may have happened
	Turns   int                    `json:"turns,omitempty"`   // that were queued, or cancelled
}

// maxChanges is the maximum number of turns, and of organizations, in Changes.
const maxChanges = 500

// Add adds later changes.
func (n *Changes) Add(more Changes) {
	if n.All = n.All || more.All || len(n.Ended)+len(more.Ended) > maxChanges; n.All {
		*n = Changes{All: true}
		return
	}
	n.Turns += more.Turns
	n.Ended = append(n.Ended, more.Ended...)
	for organizationID, kinds := range more.Changed {
		for _, kind := range kinds {
			n.addChange(organizationID, kind)
		}
	}
}

func (n *Changes) addChange(organizationID string, kind db.Change) {
	switch {
	case n.All || slices.Contains(n.Changed[organizationID], kind):
		return
	case n.Changed == nil:
		n.Changed = map[string][]db.Change{}
	case len(n.Changed) >= maxChanges && n.Changed[organizationID] == nil:
		*n = Changes{All: true}
		return
	}
	n.Changed[organizationID] = append(n.Changed[organizationID], kind)
}

// HasChanges returns a channel that receives a value when the result of DrainChanges should be sent to the other
// nodes.
func (r *Runner) HasChanges() <-chan struct{} { return r.hasChanges }

// DrainChanges returns the changes since the last call.
func (r *Runner) DrainChanges() Changes {
	r.changesMu.Lock()
	defer r.changesMu.Unlock()
	n := r.changes
	r.changes = Changes{}
	return n
}

// notifyNodes notifies the other nodes that a turn was queued or cancelled. Without it they read the store up to a
// second later.
func (r *Runner) notifyNodes() { r.addChanges(func(n *Changes) { n.Turns++ }) }

// WakeAll wakes the runners of all nodes: see Wake.
func (r *Runner) WakeAll() {
	r.Wake()
	r.notifyNodes()
}

// broadcastEnd notifies the other nodes that this node has committed the end of a turn.
func (r *Runner) broadcastEnd(t stream.EndedTurn) {
	r.addChanges(func(n *Changes) { n.Add(Changes{Ended: []stream.EndedTurn{t}}) })
}

// recordsChanged notifies the pages on all nodes that records of an organization have changed.
func (r *Runner) recordsChanged(organizationID string, what db.Change) {
	r.Streams.RecordsChanged(organizationID, what)
	r.addChanges(func(n *Changes) { n.addChange(organizationID, what) })
}

func (r *Runner) addChanges(add func(*Changes)) {
	if !r.cfg.Store.Shared() {
		return
	}
	r.changesMu.Lock()
	add(&r.changes)
	r.changesMu.Unlock()
	signal(r.hasChanges)
}

// ApplyChanges handles the changes of another node. It notifies the watchers on this node. The runner claims queued
// turns at once, and stops cancelled ones. Changes without turns do not make it read the store, because each turn that
// runs there causes several of them. An empty message does make it read the
// store, and so does one that says that changes were lost.
func (r *Runner) ApplyChanges(ctx context.Context, n Changes) error {
	if n.Turns > 0 {
		r.cfg.Store.Announce(min(n.Turns, maxChanges))
		r.Wake()
	}
	if n.Turns > 0 || n.All || len(n.Ended) == 0 && len(n.Changed) == 0 {
		r.LookNow()
	}
	if n.All {
		r.Streams.AllChanged()
		return nil
	}
	for organizationID, kinds := range n.Changed {
		for _, kind := range kinds {
			if slices.Contains(db.Changes(), kind) {
				r.Streams.RecordsChanged(organizationID, kind)
			}
		}
	}
	return r.Streams.NotifyEnded(ctx, n.Ended)
}
