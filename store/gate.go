package store

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A gate refuses writes while it is closed, for one or more reasons: a full disk at the start, or
// maintenance. The end of one reason does not end another.
type gate struct {
	closed atomic.Pointer[Error] // the newest reason; nil while the gate is open
	strict atomic.Pointer[Error] // the newest reason besides maintenance; nil for none

	mu      sync.Mutex // guards the fields below, and every change of closed and strict
	reasons []*Error
	changed chan struct{} // closed at the next change; nil until somebody waits
}

func (g *gate) release(why *Error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.reasons = slices.DeleteFunc(g.reasons, func(e *Error) bool { return e == why })
	g.publish()
}

// publish updates closed and strict from the reasons. g.mu is held.
func (g *gate) publish() {
	var newest, strict *Error
	for _, e := range g.reasons {
		newest = e
		if e.Code != CodeMaintenance {
			strict = e
		}
	}
	g.strict.Store(strict) // strict is stored first, because a permitted writer reads closed before strict
	g.closed.Store(newest)
	if g.changed != nil {
		close(g.changed)
		g.changed = nil
	}
}

// change returns a channel that is closed at the next change of the reasons.
func (g *gate) change() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.changed == nil {
		g.changed = make(chan struct{})
	}
	return g.changed
}

// CodeMaintenance is the code of the errors with which a server in maintenance refuses changes.
const CodeMaintenance = "maintenance"

// A maintenance is a time in which the store refuses changes, at the operator's request. It is not
// stored, so a restart ends it.
type maintenance struct {
	mu    sync.Mutex // guards the fields below
	since time.Time
	end   func() // opens the gate; nil without maintenance
}

// duringMaintenance is the key of contexts of DuringMaintenance.
type duringMaintenance struct{}

// DuringMaintenance returns a context whose writes the store takes in maintenance, too: the ends of
// earlier work, sessions of people, and actions of the operator.
func DuringMaintenance(ctx context.Context) context.Context {
	return context.WithValue(ctx, duringMaintenance{}, true)
}

func isDuringMaintenance(ctx context.Context) bool { return ctx.Value(duringMaintenance{}) != nil }
