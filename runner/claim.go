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
	r.cfg.Store.OnClaimed(r.begin)
	r.cfg.Store.UseEnvelopes(store.Envelopes{Look: r.lookAt, Compose: r.envelope})
	if err := r.cfg.Store.StartRunner(ctx, r.id, leaseTime); err != nil {
		return fmt.Errorf("start runner: %w", err)
	}
	r.noteAlive() // a health check must not fail before the first round
	r.cfg.Store.UseSlots(store.Slots{RunnerID: r.id, Take: func() bool { return r.takeSlots(1) == 1 },
		Release: func() { r.releaseSlots(1); r.Wake() }}) // a turn may have found no slot meanwhile
	r.claimer.Go(r.dispatch)
	r.leaser.Go(r.keepLease)
	return nil
}

// Stop claims no more turns and waits for the running ones until ctx ends. It interrupts
// those that still run then, and puts them back into the queue.
func (r *Runner) Stop(ctx context.Context) error {
	r.mu.Lock()
	r.unclaim() // with mu locked: from here on begin adds nothing to r.turns, on which the code below waits
	r.mu.Unlock()
	r.Streams.Close() // clients come back to the next process, and continue where they were
	r.claimer.Wait()
	done := make(chan struct{})
	go func() { r.turns.Wait(); close(done) }() // ends soon after cancel
	select {
	case <-done:
	case <-ctx.Done():
	}
	r.cancel(errStopped) // ends keepLease too
	<-done               // a step that has been paid for still reaches the journal
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

// dispatch claims the turns of the queue while there are free slots. CreateTurn has already claimed
// most turns that found a free slot.
func (r *Runner) dispatch() {
	for {
		r.noteAlive()
		due := time.NewTimer(r.resumeDue()) // before the claim, so that the claim finds the resumed turns
		if r.claimQueued() {
			continue // slots may be free, and more turns may have been accepted during the claim
		}
		select {
		case <-r.wake:
		case <-due.C:
		case <-r.claims.Done():
			return
		}
	}
}

// claimQueued claims as many turns of the queue as there are free slots, and reports whether it has
// claimed any. One claim takes all of them, so that they share its transaction.
func (r *Runner) claimQueued() bool {
	free := r.takeSlots(r.cfg.Store.Queued()) // no more: CreateTurn may need the others
	if free == 0 {
		return false
	}
	claims, err := r.cfg.Store.ClaimTurns(r.claims, r.id, free)
	r.releaseSlots(free - len(claims)) // each execution has one of the others
	if err != nil && r.claims.Err() == nil {
		r.cfg.Log.Error("claim turns", "err", err) // the next poll is the retry
	}
	return len(claims) > 0
}

// takeSlots takes up to limit free slots and returns how many it has taken. It takes none once the
// runner stops.
func (r *Runner) takeSlots(limit int64) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.claims.Err() != nil {
		return 0
	}
	n := min(r.cfg.Concurrency-r.taken, int(limit))
	r.taken += n
	return n
}

func (r *Runner) releaseSlots(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.taken -= n
}

// begin executes a claimed turn in its own goroutine. The turn has a slot, which the end of the
// execution releases. AbortTask may run between the commit of the claim and begin: see stopExecutions.
func (r *Runner) begin(c store.Claim) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c.RunnerID != r.id || r.claims.Err() != nil {
		return // Stop puts its turns back into the queue
	}
	e := &execution{claim: c}
	e.ctx, e.cancel = context.WithCancelCause(r.ctx)
	// A suspended turn may be claimed again before its last execution has left: it loses the entry.
	r.executions[c.ID] = e
	r.turns.Go(func() { r.execute(e) })
}

// execute carries a claimed turn out.
func (r *Runner) execute(e *execution) {
	c := e.claim
	e.live, e.startedAt = r.Streams.Begin(c.Turn), r.cfg.Now()
	traced, span := r.cfg.Trace.Claim(e.ctx, tracedTurn(c.Turn), c.Claims)
	r.carryOut(traced, e)
	span.End("")
	e.cancel(nil) // releases e.ctx
	r.mu.Lock()
	if r.executions[c.ID] == e { // otherwise the turn is executed again already
		delete(r.executions, c.ID)
	}
	r.taken--
	r.mu.Unlock()
	e.live.Close()
	r.Wake() // a slot is free
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
