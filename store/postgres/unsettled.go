package postgres

import (
	"context"
	"sync"
	"time"

	"journeyman/store/engine"
)

// unsettled are the writes of which nobody knew at their commit whether they were done: see ErrUnknown.
// What they do in memory waits until the server says what has become of them. So the counts in memory
// are right again as soon as it can be reached.
type unsettled struct {
	stop context.CancelFunc
	ctx  context.Context
	done chan struct{} // closed when run returns
	wake chan struct{} // has room for one

	mu     sync.Mutex // guards writes
	writes []unsettledWrite
}

type unsettledWrite struct {
	id      string // of its transaction
	effects *engine.Effects
}

// settleAgain is the time between two questions.
const settleAgain = time.Second

func newUnsettled() *unsettled {
	u := &unsettled{done: make(chan struct{}), wake: make(chan struct{}, 1)}
	u.ctx, u.stop = context.WithCancel(context.Background())
	return u
}

func (u *unsettled) add(t *tx) {
	u.mu.Lock()
	u.writes = append(u.writes, unsettledWrite{t.id, &t.Effects})
	u.mu.Unlock()
	select {
	case u.wake <- struct{}{}:
	default: // run has been told
	}
}

// close ends run. What is unknown then stays so: the next process counts anew.
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

// ask asks the server about each write, and reports whether some are left.
func (u *unsettled) ask(db *DB) (left bool) {
	u.mu.Lock()
	writes := u.writes
	u.writes = nil
	u.mu.Unlock()
	for i, w := range writes {
		status, err := db.statusOf(u.ctx, w.id)
		switch {
		case err != nil: // the server cannot be reached: neither for the others
			u.mu.Lock()
			u.writes = append(u.writes, writes[i:]...)
			u.mu.Unlock()
			return true
		case status == "in progress":
			u.mu.Lock()
			u.writes = append(u.writes, w)
			u.mu.Unlock()
			left = true
		case status == "committed":
			w.effects.Committed()
		default: // a server that has forgotten it would have kept it longer than any outage
			w.effects.Undone()
		}
	}
	return left
}
