package postgres

import (
	"context"
	"slices"
	"sync"
)

// A limiter limits the number of concurrent serializable writes. Conflicting writes must run again,
// so more concurrency means more lost work. Each conflict lowers the limit, and each success raises
// it slightly.
type limiter struct {
	most float64 // the maximum of limit

	mu      sync.Mutex      // guards the fields below; held only briefly
	limit   float64         // maximum of running, rounded down
	running int             // number of admitted writes
	waiting []chan struct{} // channels of waiting writes, oldest first; closed to admit the write
}

const (
	// limitFactor is the factor by which a conflict lowers the limit.
	limitFactor = 0.8
	// limitIncrease is added to the limit after a success. At a limit of two, the limit is stable if one
	// write in five conflicts. At sixteen, it is stable if one in thirty conflicts.
	limitIncrease = 0.1
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
	} else { // the write was admitted meanwhile
		l.running--
		l.admit()
	}
	return ctx.Err()
}

// leave ends a write and adjusts the limit to the result.
func (l *limiter) leave(conflict, committed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case conflict:
		l.limit = max(1, l.limit*limitFactor)
	case committed:
		l.limit = min(l.most, l.limit+limitIncrease)
	}
	l.running--
	l.admit()
}

// admit admits waiting writes, oldest first.
func (l *limiter) admit() {
	for len(l.waiting) > 0 && l.running < int(l.limit) {
		l.running++
		close(l.waiting[0])
		l.waiting = l.waiting[1:]
	}
}

// length returns the number of waiting writes.
func (l *limiter) length() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.waiting)
}
