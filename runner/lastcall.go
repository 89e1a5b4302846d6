package runner

import (
	"context"
	"errors"
	"time"
)

const (
	wrapUpTime   = 60 * time.Second // longest time of the last call of a turn that is out of time
	leastWrapUp  = 5 * time.Second  // for that call, however small the time budget is
	lastCallTime = 5 * time.Minute  // longest time of the last call of a turn that has time left
)

// wrapUp returns the time for the last call of a turn whose time budget is used up: a fifth of the budget,
// so that a small budget does not end long after its time.
func wrapUp(budget time.Duration) time.Duration { return min(wrapUpTime, max(leastWrapUp, budget/5)) }

// errLastCall is the cause of contexts that end with the time of the last call.
var errLastCall = errors.New("the last call took too long")

// beginLast returns a context for the last call of a turn, or for another try of it. It has a fifth of the time
// budget, or less where that would exceed the budget by more than wrapUp. So a slow model cannot use up the time of
// a turn that has reached another limit.
func (r *Runner) beginLast(ctx context.Context, e *execution, limit string) (context.Context, context.CancelFunc) {
	if e.last.end.IsZero() {
		e.last.end = lastEnd(time.Now(), r.timeLimit(e), e.outOfTime)
	}
	e.last.limit = limit
	return context.WithDeadlineCause(ctx, e.last.end, errLastCall)
}

// lastEnd returns the end of a last call that begins now. budget is the time budget, 0 for none, which ends at
// outOfTime.
func lastEnd(now time.Time, budget time.Duration, outOfTime time.Time) time.Time {
	if budget == 0 {
		return now.Add(lastCallTime)
	}
	end, latest := now.Add(min(lastCallTime, max(leastWrapUp, budget/5))), outOfTime.Add(wrapUp(budget))
	if latest.Before(end) {
		return latest
	}
	return end
}
