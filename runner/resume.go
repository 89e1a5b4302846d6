package runner

import (
	"context"
	"math"
	"slices"
	"time"

	"journeyman/runner/models"
)

const (
	resumeBatch = 100             // limits the turns that are resumed in one write
	pollEvery   = 5 * time.Second // the dispatcher's longest pause, in case a call of Wake is missing

	noRetry = math.MaxInt64 // no turn waits for its model
)

// answered records that the turn's model has answered, and resumes the turns that wait for it.
func (r *Runner) answered(e *execution) {
	e.failingSince, e.failedCalls, e.claim.FailedCalls = nil, 0, 0
	waiting := r.Models.Outages.Succeeded(e.model.ID, r.cfg.Now())
	for batch := range slices.Chunk(waiting, resumeBatch) {
		// If this write fails, the turns resume at their RetryAt.
		if err := r.cfg.Store.RetryNow(context.WithoutCancel(r.ctx), batch); err != nil {
			r.cfg.Log.Error("resume turns whose model answers again", "err", err)
			return
		}
	}
	if len(waiting) > 0 {
		r.expectRetry(r.cfg.Now())
		r.WakeAll()
	}
}

// resumeIfAnswered resumes a turn that was just suspended if one of its models has answered another
// turn since then.
func (r *Runner) resumeIfAnswered(e *execution, since time.Time) {
	answered := func(c models.Candidate) bool { return r.Models.Outages.AnsweredSince(c.ID, since) }
	if !slices.ContainsFunc(e.chain, answered) {
		return
	}
	if err := r.cfg.Store.RetryNow(context.WithoutCancel(r.ctx), []string{e.claim.ID}); err != nil {
		r.cfg.Log.Error("resume a turn whose model answers again", "err", err) // RetryAt resumes it
		return
	}
	r.expectRetry(r.cfg.Now())
	r.WakeAll()
}

// expectRetry makes the dispatcher resume suspended turns at the given time or earlier. It never
// replaces an earlier time, because another turn relies on that time.
func (r *Runner) expectRetry(at time.Time) {
	for ms := at.UnixMilli(); ; {
		next := r.nextRetry.Load()
		if next <= ms || r.nextRetry.CompareAndSwap(next, ms) {
			return
		}
	}
}

// resumeDue puts suspended turns back into the queue when their next model call is due. It returns how long
// the dispatcher may wait.
func (r *Runner) resumeDue() time.Duration {
	if r.cfg.Store.Gate.Writable() != nil {
		return pollEvery // during maintenance, turns keep waiting
	}
	for r.cfg.Now().UnixMilli() >= r.nextRetry.Load() {
		// Reset before the read: a turn that the read does not find yet calls expectRetry later.
		r.nextRetry.Store(noRetry)
		n, next, err := r.cfg.Store.ResumeDue(r.claims, resumeBatch)
		if err != nil {
			if r.claims.Err() == nil {
				r.cfg.Log.Error("resume turns that wait for their model", "err", err)
			}
			r.expectRetry(r.cfg.Now().Add(pollEvery))
			break
		}
		if next != nil {
			r.expectRetry(*next)
		}
		if n < resumeBatch {
			break
		}
	}
	wait := time.UnixMilli(r.nextRetry.Load()).Sub(r.cfg.Now())
	return min(max(wait, time.Millisecond), pollEvery) // at least 1 ms: dispatch must not spin
}
