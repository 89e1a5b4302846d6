package runner

import (
	"context"
	"fmt"
	"time"

	"journeyman/store"
)

const (
	leaseTime  = 60 * time.Second // a runner that is silent for so long loses its turns
	leaseRenew = 15 * time.Second // three renewals may fail before the lease ends
)

// Start puts the turns of dead runners back into the queue and begins to claim turns.
func (r *Runner) Start(ctx context.Context) error {
	// The callbacks come first: StartRunner may end turns that were interrupted too often.
	r.cfg.Store.OnInterrupted(r.logEnd)
	r.cfg.Store.OnClaimed(func(c store.Claim) { r.register(c) })
	r.cfg.Store.UseEnvelopes(store.Envelopes{Look: r.lookAt, Compose: r.envelope})
	if err := r.cfg.Store.StartRunner(ctx, r.id, leaseTime); err != nil {
		return fmt.Errorf("start runner: %w", err)
	}
	r.noteAlive() // a health check must not fail before the first round
	r.claimer.Go(r.dispatch)
	r.leaser.Go(r.keepLease)
	return nil
}

// Stop claims no more turns and waits for the running ones until ctx ends. It interrupts
// those that still run then, and puts them back into the queue.
func (r *Runner) Stop(ctx context.Context) error {
	r.unclaim()
	r.Streams.Close() // clients come back to the next process, and continue where they were
	r.claimer.Wait()  // dispatch adds to r.turns, so Wait on r.turns must come later
	done := make(chan struct{})
	go func() { r.turns.Wait(); close(done) }() // ends soon after cancel
	select {
	case <-done:
	case <-ctx.Done():
	}
	r.cancel(errStopped) // ends keepLease too
	<-done               // a step that has been paid for still reaches the journal
	r.mu.Lock()
	clear(r.executions) // those that are left were claimed during the stop, and never began
	r.mu.Unlock()
	r.leaser.Wait()
	if r.alive.Load() == nil || r.cfg.Store.WritableIn(r.ctx) != nil {
		return nil // the runner never started, or the next start takes its turns over
	}
	// Only now: a turn in the queue must have no execution left. ctx may be over already.
	if err := r.cfg.Store.StopRunner(context.WithoutCancel(r.ctx), r.id); err != nil {
		return fmt.Errorf("stop runner: %w", err)
	}
	return nil
}

// dispatch claims turns while there are free slots. One claim takes as many turns as fit,
// so that they share its transaction.
func (r *Runner) dispatch() {
	for {
		r.noteAlive()
		due := time.NewTimer(r.resumeDue()) // before the claim, so that the claim finds the resumed turns
		free := r.cfg.Concurrency - r.Running()
		if free > 0 {
			claims, err := r.cfg.Store.ClaimTurns(r.claims, r.id, free)
			if r.claims.Err() != nil {
				return // the claim may have been committed: Stop puts its turns back
			}
			if err != nil {
				r.cfg.Log.Error("claim turns", "err", err) // the next poll is the retry
			}
			for _, c := range claims {
				r.execute(c)
			}
			if len(claims) > 0 && len(claims) < free {
				continue // slots are free, and more turns may have been accepted during the claim
			}
		}
		select {
		case <-r.wake:
		case <-due.C:
		case <-r.claims.Done():
			return
		}
	}
}

// register returns the execution of a claim. At the first call it makes the execution. The
// store makes that call before any later write, so AbortTask finds each turn that is claimed.
func (r *Runner) register(c store.Claim) *execution {
	r.mu.Lock()
	defer r.mu.Unlock()
	// A suspended turn may be claimed again before its last execution has left.
	if e := r.executions[c.ID]; e != nil && e.claim.Claims == c.Claims {
		return e
	}
	e := &execution{claim: c}
	e.ctx, e.cancel = context.WithCancelCause(r.ctx)
	r.executions[c.ID] = e
	return e
}

// execute runs a claimed turn in its own goroutine.
func (r *Runner) execute(c store.Claim) {
	e := r.register(c)
	e.live, e.startedAt = r.Streams.Begin(c.Turn), r.cfg.Now()
	r.turns.Go(func() {
		traced, span := r.cfg.Trace.Claim(e.ctx, tracedTurn(c.Turn), c.Claims)
		r.carryOut(traced, e)
		span.End("")
		e.cancel(nil) // releases e.ctx
		r.mu.Lock()
		// A suspended turn may be claimed again before this line: then the entry is not ours.
		if r.executions[c.ID] == e {
			delete(r.executions, c.ID)
		}
		r.mu.Unlock()
		e.live.Close()
		r.Wake() // a slot is free
	})
}

// keepLease renews the lease until the runner stops. On the same tick it removes old stream
// data and ends turns that have waited too long.
func (r *Runner) keepLease() {
	tick := time.NewTicker(leaseRenew)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			// After an error the next tick tries again, well before the lease ends.
			if err := r.cfg.Store.RenewLease(r.ctx, r.id, leaseTime); err != nil && r.ctx.Err() == nil {
				r.cfg.Log.Error("renew lease", "err", err)
			}
			r.Streams.Prune()
			r.expireSuspended()
		case <-r.ctx.Done():
			return
		}
	}
}
