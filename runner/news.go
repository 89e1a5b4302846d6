package runner

import (
	"context"
	"slices"

	"journeyman/runner/stream"
	"journeyman/store"
)

// This file holds what a node tells the other nodes, so that they need not wait until they look by
// themselves.

// News is what has happened on a node and matters to the others.
type News struct {
	Ended   []stream.EndedTurn        `json:"ended,omitempty"`
	Changed map[string][]store.Change `json:"changed,omitempty"` // kinds of records, by organization
	All     bool                      `json:"all,omitempty"`     // news were lost, so anything may have happened
}

// maxNews is the greatest number of turns, and of organizations, in News.
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

// HasNews returns a channel that receives a value when TakeNews has something for the other nodes.
// Even empty news make them look for changes.
func (r *Runner) HasNews() <-chan struct{} { return r.hasNews }

// TakeNews returns the news since the last call.
func (r *Runner) TakeNews() News {
	r.newsMu.Lock()
	defer r.newsMu.Unlock()
	n := r.news
	r.news = News{}
	return n
}

// tellNodes makes the other nodes look for changes. Without it they find them a second later.
func (r *Runner) tellNodes() { r.addNews(func(*News) {}) }

// WakeAll makes the runners of all nodes look for new turns at once.
func (r *Runner) WakeAll() {
	r.Wake()
	r.tellNodes()
}

// tellEnded tells the other nodes that this one has committed the end of a turn.
func (r *Runner) tellEnded(t stream.EndedTurn) {
	r.addNews(func(n *News) { n.Add(News{Ended: []stream.EndedTurn{t}}) })
}

// recordsChanged notifies the pages of this node and of the others.
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
	select {
	case r.hasNews <- struct{}{}:
	default:
	}
}

// Hear takes the news of another node: it notifies the watchers on this one, and looks for new work.
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
