package mcp

import (
	"context"
	"errors"
	"sync"
	"time"
)

// The causes of a context that a limit has ended.
var (
	errTimeout = errors.New("the call takes too long")
	errTooLong = errors.New("the call takes too long, although it reports progress")
)

// A limit ends a call that takes too long. Each report of progress restarts the time-out, as
// the MCP specification permits. A maximum remains, as it recommends.
type limit struct {
	cancel context.CancelCauseFunc
	each   time.Duration // longest time between two reports
	end    time.Time     // latest end of the call; no report moves it

	mu    sync.Mutex // guards timer
	timer *time.Timer
}

// withLimit returns a context that ends when a call of the server takes too long. Its cause
// distinguishes a slow server from a cancelled turn. The caller must call stop.
func (s *server) withLimit(ctx context.Context) (context.Context, *limit) {
	l := &limit{each: s.Timeout, end: time.Now().Add(max(s.Timeout, s.pool.cfg.Timing.Longest))}
	ctx, l.cancel = context.WithCancelCause(ctx)
	l.timer = time.AfterFunc(l.each, func() { l.cancel(errTimeout) })
	return ctx, l
}

// extend restarts the time-out of the call. The call still ends at l.end.
func (l *limit) extend() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.timer.Stop() {
		return // the timer has fired, or stop was called: a report that comes late revives no call
	}
	// The cause says which bound ends the call, so that the model learns it.
	cause, left := errTimeout, l.each
	if rest := time.Until(l.end); rest < left {
		cause, left = errTooLong, max(0, rest)
	}
	l.timer = time.AfterFunc(left, func() { l.cancel(cause) })
}

// stop releases the timer and the context of a call that has ended.
func (l *limit) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.timer.Stop()
	l.cancel(nil)
}
