package postgres

import (
	"context"
	"slices"
	"sync"
)

// A limiter bounds the serializable writes that run at the same time. Writes that meet one another
// have to run again: the more of them run at once, the more work is lost. So each conflict lowers
// the limit, and each success raises it a little.
type limiter struct {
	most float64 // the highest limit

	mu      sync.Mutex      // held for moments; guards what follows
	limit   float64         // of running, rounded down
	running int             // writes that have entered
	waiting []chan struct{} // of writes that wait to enter, the longest first; closed when they may
}

const (
	// fewer is the part of the limit that a conflict leaves.
	fewer = 0.8
	// more is what a success adds. With it, the limit stays where one write in five meets another
	// while two run, and one in thirty while sixteen do.
	more = 0.1
)

func newLimiter(most int) *limiter { return &limiter{most: float64(most), limit: float64(most)} }

// enter waits until a write may run, or until ctx ends.
func (l *limiter) enter(ctx context.Context) error {
	l.mu.Lock()
	if l.running < int(l.limit) && len(l.waiting) == 0 {
		l.running++
		l.mu.Unlock()
		return nil
	}
	ready := make(chan struct{})
	l.waiting = append(l.waiting, ready)
	l.mu.Unlock()
	select {
	case <-ready:
		return nil
	case <-ctx.Done():
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.Index(l.waiting, ready); i >= 0 {
		l.waiting = slices.Delete(l.waiting, i, i+1)
	} else { // it has entered meanwhile
		l.running--
		l.admit()
	}
	return ctx.Err()
}

// leave ends the run of a write. It learns from the result.
func (l *limiter) leave(conflict, committed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case conflict:
		l.limit = max(1, l.limit*fewer)
	case committed:
		l.limit = min(l.most, l.limit+more)
	}
	l.running--
	l.admit()
}

// admit lets writes enter, the one that has waited longest first.
func (l *limiter) admit() {
	for len(l.waiting) > 0 && l.running < int(l.limit) {
		l.running++
		close(l.waiting[0])
		l.waiting = l.waiting[1:]
	}
}

// length returns the number of writes that wait to enter.
func (l *limiter) length() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.waiting)
}
