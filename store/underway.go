package store

import (
	"context"
	"sync"
	"time"
)

// Writes of a database on a server run side by side, and each does what follows its commit in its
// caller's goroutine. This file lets a caller wait until all earlier writes have come to that end.

// writesUnderWay counts the writes that have begun and have not returned. Its zero value is ready.
type writesUnderWay struct {
	mu      sync.Mutex // guards what follows
	newest  *writesBegun
	earlier []*writesBegun // those before newest for which somebody has waited
	waiters int
}

// writesBegun are the writes that have begun between two calls of wait.
type writesBegun struct {
	left    int           // number of them that have not returned
	waited  bool          // no more are added
	drained chan struct{} // closed once waited is true and none is left
}

// begin counts a write that begins. The caller calls end when the write returns.
func (u *writesUnderWay) begin() *writesBegun {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.newest == nil {
		u.newest = &writesBegun{drained: make(chan struct{})}
	}
	u.newest.left++
	return u.newest
}

func (u *writesUnderWay) end(b *writesBegun) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if b.left--; b.waited && b.left == 0 {
		close(b.drained)
	}
}

// before returns the writes that have begun and have not returned. Later ones are counted apart.
func (u *writesUnderWay) before() []*writesBegun {
	u.mu.Lock()
	defer u.mu.Unlock()
	var list []*writesBegun
	for _, b := range u.earlier {
		if b.left > 0 {
			list = append(list, b)
		}
	}
	if b := u.newest; b != nil && b.left > 0 {
		b.waited = true
		list, u.newest = append(list, b), nil
	}
	u.earlier = list
	return list
}

// awaitTime is longer than most writes take even while the server restarts.
const awaitTime = 30 * time.Second

// AwaitWrites waits until the writes that have already begun are committed or undone, and until the
// store has reported the claims among them. It returns the error of ctx if that ends first. For a
// server that does not answer, it does not wait longer than awaitTime.
func (s *Store) AwaitWrites(ctx context.Context) error {
	if s.OnServer() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, awaitTime)
		defer cancel()
	}
	u := &s.underWay
	u.count(1)
	defer u.count(-1)
	for _, b := range u.before() {
		select {
		case <-b.drained:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func (u *writesUnderWay) count(waiters int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.waiters += waiters
}
