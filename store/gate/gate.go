// Package gate decides whether anything may be written now: writes are refused in maintenance and on a full disk,
// and new work already while the disk has little room.
//
// It imports no other package of this module. What it needs of the store are arguments: how a refusal is made, and what
// to do when the level of the disk changes. It must not write to the database.
package gate

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A Gate answers whether anything may be written now. It refuses writes while it is closed, for one
// or more reasons: a full disk at the start, or maintenance. The end of one reason does not end
// another. It refuses new work also while the disk is full. Its methods are safe for concurrent use.
type Gate struct {
	refuse func(code, message string) error
	full   error // refuses new work on a full disk
	now    func() time.Time

	closed atomic.Pointer[refusal] // the newest reason; nil while the gate is open
	strict atomic.Pointer[refusal] // the newest reason besides maintenance; nil for none

	mu      sync.Mutex // guards the fields below, and every change of closed and strict
	reasons []*refusal
	changed chan struct{} // closed at the next change; nil until somebody waits

	maintenance maintenance
	disk        diskWatch
}

// A refusal is why writes are refused.
type refusal struct {
	code string
	err  error
}

// A Config has what New needs.
type Config struct {
	Dir    string                              // the data folder, whose disk is watched
	Now    func() time.Time                    // the clock
	Log    *slog.Logger                        // of the level of the disk
	Statfs func(dir string) (DiskSpace, error) // measures the file system of a folder

	DiskReserve DiskLimit // below it, new work is refused
	DiskWarning DiskLimit // below it, the level of the disk is DiskLow

	Refuse func(code, message string) error // makes the errors with which writes are refused
	Full   error                            // refuses new work on a full disk
}

// New returns an open gate.
func New(c Config) *Gate {
	g := &Gate{refuse: c.Refuse, full: c.Full, now: c.Now}
	g.disk = diskWatch{dir: c.Dir, statfs: c.Statfs, reserve: c.DiskReserve, warning: c.DiskWarning, now: c.Now,
		log: c.Log}
	g.disk.loadReported()
	return g
}

// ReadOnly makes the gate refuse every write with an error of that code and message, until release is called. If
// there are several reasons, writers get the newest one. release may be called more than once.
func (g *Gate) ReadOnly(code, message string) (release func()) {
	own := &refusal{code, g.refuse(code, message)}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.reasons = append(g.reasons, own)
	g.publish()
	return func() { g.release(own) }
}

func (g *Gate) release(why *refusal) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.reasons = slices.DeleteFunc(g.reasons, func(r *refusal) bool { return r == why })
	g.publish()
}

// publish updates closed and strict from the reasons. g.mu is held.
func (g *Gate) publish() {
	var newest, strict *refusal
	for _, r := range g.reasons {
		newest = r
		if r.code != CodeMaintenance {
			strict = r
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
func (g *Gate) change() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.changed == nil {
		g.changed = make(chan struct{})
	}
	return g.changed
}

// Writable returns nil, or the error with which writes are refused now: see ReadOnly.
func (g *Gate) Writable() error { return g.WritableIn(context.Background()) }

// WritableIn returns nil, or the error with which a write with this context is refused now.
// In maintenance, the result depends on the context: see DuringMaintenance.
func (g *Gate) WritableIn(ctx context.Context) error {
	why := g.closed.Load()
	if why != nil && isDuringMaintenance(ctx) {
		why = g.strict.Load()
	}
	if why == nil {
		return nil
	}
	return why.err
}

// AwaitWritable waits until writes with this context are taken. It returns the error of ctx
// if that ends before.
func (g *Gate) AwaitWritable(ctx context.Context) error {
	for {
		changed := g.change() // before the check, so that no change is missed
		if g.WritableIn(ctx) == nil {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Room returns nil, or the error with which new work is refused now. Work that was
// accepted before goes on as long as its writes are taken: see WritableIn.
func (g *Gate) Room() error { return g.RoomIn(context.Background()) }

// RoomIn is Room for new work with that context. In maintenance, a running turn may still start
// work of other workers: see DuringMaintenance.
func (g *Gate) RoomIn(ctx context.Context) error {
	if err := g.WritableIn(ctx); err != nil {
		return err
	}
	if _, level := g.Disk(); level == DiskFull {
		return g.full
	}
	return nil
}

// ReadOnlyCodes returns the codes of all reasons why no writes are taken now, and none if they
// are taken.
func (g *Gate) ReadOnlyCodes() (codes []string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, why := range g.reasons {
		codes = append(codes, why.code)
	}
	return codes
}
