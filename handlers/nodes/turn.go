package nodes

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"sync"
	"time"
)

// This file forwards requests that create turns to the node on which the worker is placed. That node claims the turn
// when it accepts it. Otherwise the turn would wait in the queue until that node has learned of it, and this node would
// have to learn of its end.
//
// The request has the id of the turn. So it creates the turn once, although this node accepts it itself after a
// failure: if the other node has accepted it before, this node finds the turn.

const (
	placeLife   = 5 * time.Second // how long the node of a worker is remembered; an older one only makes a turn slower
	mostPlaces  = 10_000          // remembered workers
	eventStream = "text/event-stream"
)

// A newTurn is what a forwarded request has in addition if it creates a turn.
type newTurn struct {
	id   string
	body []byte // JSON
}

// addTo adds the body and the id to a request to another node. The signature covers the id.
func (t *newTurn) addTo(r *http.Request) {
	if t == nil {
		return
	}
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(t.body)), int64(len(t.body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Del("Content-Encoding")
	r.Header.Add(clientHeader, t.id)
}

// ForwardTurn forwards a request that creates a turn, with the given id and body, to the node on which the worker is
// placed. answered is false if this node must answer. tried reports that the other node may have created the turn
// nevertheless.
func (n *Nodes) ForwardTurn(w http.ResponseWriter, r *http.Request, workerID, turnID string, body []byte) (
	answered, tried bool) {
	if claimsForwarded(r) || !n.cfg.Store.Shared() {
		return false, false
	}
	runnerID := n.runnerOf(r.Context(), workerID)
	if runnerID == "" || runnerID == n.cfg.Runner.ID() {
		return false, false
	}
	return n.forwardTo(w, r, runnerID, &newTurn{turnID, body}), true
}

// runnerOf returns the runner of the node on which a worker is placed, or "". A worker that is not placed is not
// remembered, because a turn places it at once.
func (n *Nodes) runnerOf(ctx context.Context, workerID string) string {
	now := n.cfg.Now()
	if p, ok := n.places.find(workerID, now); ok {
		return p
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	const none = "" // no runner has this id, so the result can also be this node
	place, err := n.cfg.Store.PlaceOf(ctx, workerID, none)
	if err != nil {
		return "" // accepting the turn reports it
	}
	if place.RunnerID != "" {
		n.places.add(workerID, place.RunnerID, now)
	}
	return place.RunnerID
}

// places remembers where workers are placed.
type places struct {
	mu sync.Mutex // guards by
	by map[string]rememberedPlace
}

type rememberedPlace struct {
	runnerID string
	until    time.Time
}

func (p *places) find(workerID string, now time.Time) (runnerID string, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	known, ok := p.by[workerID]
	return known.runnerID, ok && now.Before(known.until)
}

func (p *places) add(workerID, runnerID string, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.by == nil || len(p.by) >= mostPlaces {
		p.by = map[string]rememberedPlace{}
	}
	p.by[workerID] = rememberedPlace{runnerID, now.Add(placeLife)}
}
