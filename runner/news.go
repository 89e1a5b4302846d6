package runner

import (
	"context"
	"slices"

	"journeyman/runner/stream"
	"journeyman/store"
)

// This file implements the news that nodes send to each other. Without news, a node finds the changes of
// other nodes later, when it next reads the store.

// News holds the changes on one node that concern other nodes.
type News struct {
	Ended   []stream.EndedTurn        `json:"ended,omitempty"`
	Changed map[string][]store.Change `json:"changed,omitempty"` // kinds of records, by organization
	All     bool                      `json:"all,omitempty"`     // news was lost, so other changes may have happened
}

// maxNews is the maximum number of turns, and of organizations, in News.
const maxNews = 500

// Add adds later news.
func (n *News) Add(more News) {
	if n.All = n.All || more.All || len(n.Ended)+len(more.Ended) > maxNews; n.All {
		*n = News{All: true}
		return
	}
	n.Ended = append(n.Ended, more.Ended...)
	for organizationID, kinds := range more.Changed {
		for _, kind := range kinds {
			n.addChange(organizationID, kind)
		}
	}
}

func (n *News) addChange(organizationID string, kind store.Change) {
	switch {
	case n.All || slices.Contains(n.Changed[organizationID], kind):
		return
	case n.Changed == nil:
		n.Changed = map[string][]store.Change{}
	case len(n.Changed) >= maxNews && n.Changed[organizationID] == nil:
		*n = News{All: true}
		return
	}
	n.Changed[organizationID] = append(n.Changed[organizationID], kind)
}

// HasNews returns a channel that receives a value when the result of TakeNews should be sent to the other
// nodes. Even empty News makes them read the store.
func (r *Runner) HasNews() <-chan struct{} { return r.hasNews }

// TakeNews returns the news since the last call.
func (r *Runner) TakeNews() News {
	r.newsMu.Lock()
	defer r.newsMu.Unlock()
	n := r.news
	r.news = News{}
	return n
}

// tellNodes makes the other nodes read the store at once. Without it they read the store up to a second
// later.
func (r *Runner) tellNodes() { r.addNews(func(*News) {}) }

// WakeAll wakes the runners of all nodes: see Wake.
func (r *Runner) WakeAll() {
	r.Wake()
	r.tellNodes()
}

// tellEnded notifies the other nodes that this node has committed the end of a turn.
func (r *Runner) tellEnded(t stream.EndedTurn) {
	r.addNews(func(n *News) { n.Add(News{Ended: []stream.EndedTurn{t}}) })
}

// recordsChanged notifies the pages on all nodes that records of an organization have changed.
func (r *Runner) recordsChanged(organizationID string, what store.Change) {
	r.Streams.RecordsChanged(organizationID, what)
	r.addNews(func(n *News) { n.addChange(organizationID, what) })
}

func (r *Runner) addNews(add func(*News)) {
	if !r.cfg.Store.Shared() {
		return
	}
	r.newsMu.Lock()
	add(&r.news)
	r.newsMu.Unlock()
	signal(r.hasNews)
}

// Hear handles the news of another node. It notifies the watchers on this node, and makes the runner read
// the store.
func (r *Runner) Hear(ctx context.Context, n News) error {
	r.LookNow()
	if n.All {
		r.Streams.AllChanged()
		return nil
	}
	for organizationID, kinds := range n.Changed {
		for _, kind := range kinds {
			if slices.Contains(store.Changes(), kind) {
				r.Streams.RecordsChanged(organizationID, kind)
			}
		}
	}
	return r.Streams.EndedElsewhere(ctx, n.Ended)
}
