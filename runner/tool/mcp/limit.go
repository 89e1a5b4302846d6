package mcp

import (
	"context"
	"errors"
	"sync"
	"time"
)

// Causes of a context that a limit has ended.
var (
	errTimeout = errors.New("the call takes too long")
	errTooLong = errors.New("the call takes too long, although it reports progress")
)

// A limit ends a call that takes too long. Each progress report restarts the timeout, as the
// MCP specification permits. The total time is limited, too, as it recommends.
type limit struct {
	cancel context.CancelCauseFunc
	each   time.Duration // maximum time between two reports
	end    time.Time     // latest end of the call, independent of reports

	mu    sync.Mutex // guards timer
	timer *time.Timer
}

// withLimit returns a context that ends when a call of the server takes too long. The cause
// distinguishes a slow server from a canceled turn. The caller must call stop.
func (s *server) withLimit(ctx context.Context) (context.Context, *limit) {
	l := &limit{each: s.Timeout, end: time.Now().Add(max(s.Timeout, s.pool.cfg.Timing.Longest))}
	ctx, l.cancel = context.WithCancelCause(ctx)
	l.timer = time.AfterFunc(l.each, func() { l.cancel(errTimeout) })
	return ctx, l
}

// extend restarts the timeout of the call, but the call still ends at l.end.
func (l *limit) extend() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.timer.Stop() {
		return // the timer has fired, or stop was called: a late report has no effect
	}
	// The cause contains the limit that ends the call, for the error message.
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
