package postgres

import (
	"context"
	"sync"
	"time"

	"journeyman/store/engine"
)

// unsettled holds writes with an unknown commit result: see ErrUnknown. Their effects in memory
// wait until the server reports the result. So the counters in memory become correct as soon as the
// server is reachable.
type unsettled struct {
	stop context.CancelFunc
	ctx  context.Context
	done chan struct{} // closed when run returns
	wake chan struct{} // has a buffer of one

	mu     sync.Mutex // guards writes
	writes []unsettledWrite
}

type unsettledWrite struct {
	transaction
	effects *engine.Effects
}

// settleAgain is the interval between requests to the server.
const settleAgain = time.Second

func newUnsettled() *unsettled {
	u := &unsettled{done: make(chan struct{}), wake: make(chan struct{}, 1)}
	u.ctx, u.stop = context.WithCancel(context.Background())
	return u
}

func (u *unsettled) add(t *tx) {
	u.mu.Lock()
	u.writes = append(u.writes, unsettledWrite{transaction{t.id, t.conn.since}, &t.Effects})
	u.mu.Unlock()
	select {
	case u.wake <- struct{}{}:
	default: // run has already been woken
	}
}

// close ends run. Unknown results stay unknown: the next process counts again from the database.
func (u *unsettled) close() {
	u.stop()
	<-u.done
}

func (u *unsettled) run(db *DB) {
	defer close(u.done)
	for {
		select {
		case <-u.wake:
		case <-u.ctx.Done():
			return
		}
		for u.ask(db) {
			select {
			case <-time.After(settleAgain):
			case <-u.ctx.Done():
				return
			}
		}
	}
}

// ask requests the status of each write from the server, and reports whether some are still
// unknown.
func (u *unsettled) ask(db *DB) (left bool) {
	u.mu.Lock()
	writes := u.writes
	u.writes = nil
	u.mu.Unlock()
	for i, w := range writes {
		status, err := db.statusOf(u.ctx, w.transaction)
		switch {
		case err != nil: // the server is unreachable, so do not ask about the others
			u.mu.Lock()
			u.writes = append(u.writes, writes[i:]...)
			u.mu.Unlock()
			return true
		case status == statusInProgress:
			u.mu.Lock()
			u.writes = append(u.writes, w)
			u.mu.Unlock()
			left = true
		case status == statusCommitted:
			w.effects.Committed()
		default: // aborted, or the server will never know more
			w.effects.Undone()
		}
	}
	return left
}
