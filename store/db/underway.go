package db

import (
	"context"
	"sync"
	"time"
)

// Writes of a database on a server run side by side, and each does what follows its commit in its
// caller's goroutine. This file lets a caller wait until all earlier writes have come to that end.

// writesUnderWay counts the writes that have begun and have not returned. Its zero value is ready.
type writesUnderWay struct {
	mu      sync.Mutex      // guards the fields below
	newest  *sync.WaitGroup // of the writes since the last call of before; nil without one
	earlier <-chan struct{} // closed once all writes before newest have returned; nil without one
	waiters int
}

// begin counts a write that begins. The caller calls Done of the result when the write returns.
func (u *writesUnderWay) begin() *sync.WaitGroup {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.newest == nil {
		u.newest = &sync.WaitGroup{}
	}
	u.newest.Add(1)
	return u.newest
}

// before returns a channel that is closed once the writes that have already begun have returned.
func (u *writesUnderWay) before() <-chan struct{} {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.newest != nil {
		newest, earlier, returned := u.newest, u.earlier, make(chan struct{})
		go func() { // ends with these writes
			newest.Wait()
			if earlier != nil {
				<-earlier
			}
			close(returned)
		}()
		u.newest, u.earlier = nil, returned
	}
	return u.earlier
}

// awaitTime is longer than most writes take even while the server restarts.
const awaitTime = 30 * time.Second

// AwaitWrites waits until the writes that have already begun are committed or undone, and until the
// store has reported the claims among them. It returns the error of ctx if that ends first. For a
// server that does not answer, it does not wait longer than awaitTime.
func (d *DB) AwaitWrites(ctx context.Context) error {
	if d.OnServer() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, awaitTime)
		defer cancel()
	}
	u := &d.underWay
	u.count(1)
	defer u.count(-1)
	before := u.before()
	if before == nil {
		return nil // no write has ever begun
	}
	select {
	case <-before:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (u *writesUnderWay) count(waiters int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.waiters += waiters
}

// Waiters returns the number of callers that wait in AwaitWrites.
func (d *DB) Waiters() int {
	d.underWay.mu.Lock()
	defer d.underWay.mu.Unlock()
	return d.underWay.waiters
}
