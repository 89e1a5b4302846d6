package runner

import (
	"context"
	"fmt"
	"time"

	"journeyman/store"
)

// Start puts the turns of dead runners back into the queue and begins to claim turns.
func (r *Runner) Start(ctx context.Context) error {
	// Set the callbacks first: StartRunner may end turns that were interrupted too often.
	r.cfg.Store.OnInterrupted(r.logEnd)
	r.cfg.Store.OnClaimed(r.begin)
	r.cfg.Store.UseEnvelopes(store.Envelopes{Look: r.lookAt, Compose: r.envelope})
	r.Models.WarnUnpriced()
	err := r.checkClock(ctx)
	if err == nil {
		err = r.register(ctx)
	}
	if err == nil {
		err = r.keepPlace(r.ID())
	}
	if err != nil {
		return fmt.Errorf("start runner: %w", err)
	}
	r.noteAlive() // a health check must not fail before the dispatcher's first round
	r.claimer.Go(r.dispatch)
	r.leaser.Go(r.keepLease)
	r.leaser.Go(r.housekeep)
	r.startPrograms()
	if r.cfg.Store.Shared() {
		r.leaser.Go(r.followNodes)
		r.leaser.Go(r.followWatchers)
	}
	return nil
}

// Stop stops claiming turns and waits for running turns until ctx ends. Then it interrupts the
// remaining turns and puts them back into the queue.
func (r *Runner) Stop(ctx context.Context) error {
	r.mu.Lock()
	r.unclaim() // under the lock: begin adds nothing to r.turns any more
	r.mu.Unlock()
	r.Streams.Close() // clients reconnect to the next process, and continue at their last event
	r.claimer.Wait()
	done := make(chan struct{})
	go func() { r.turns.Wait(); close(done) }() // ends soon after the cancellation below
	select {
	case <-done:
	case <-ctx.Done():
	}
	r.cancel(errStopped) // also ends the goroutines of r.leaser
	<-done               // a paid step still reaches the journal
	r.leaser.Wait()
	r.cfg.Store.Resign() // before StopRunner deletes the leader's row: then another node may become leader
	if r.alive.Load() == nil || r.cfg.Store.Gate.WritableIn(r.ctx) != nil {
		return nil // the runner never started, or the next start claims its turns
	}
	// Only now: a queued turn must have no execution. ctx may have ended already.
	if err := r.cfg.Store.StopRunner(context.WithoutCancel(r.ctx), r.ID()); err != nil {
		return fmt.Errorf("stop runner: %w", err)
	}
	return nil
}

// dispatch claims queued turns while slots are free. CreateTurn itself claims a turn if a slot is
// free, so most turns never wait here.
func (r *Runner) dispatch() {
	for {
		r.noteAlive()
		due := time.NewTimer(r.resumeDue()) // before the claim, which must find the resumed turns
		if r.claimQueued() {
			continue // the claim took time: slots or turns may have been added
		}
		select {
		case <-r.wake:
		case <-due.C:
		case <-r.claims.Done():
			return
		}
	}
}

// claimQueued claims as many queued turns as there are free slots, and reports whether it claimed
// any. It makes one claim for all of them, so that they share one transaction.
func (r *Runner) claimQueued() bool {
	free, strangers := r.takeSlots(r.cfg.Store.Queued()) // no more: CreateTurn may need the others
	if free == 0 {
		return false
	}
	claims, err := r.cfg.Store.ClaimTurns(r.claims, r.ID(), free, strangers)
	for _, c := range claims { // the executions keep their slots
		free--
		if c.Stranger() {
			strangers--
		}
	}
	r.releaseSlots(free, strangers)
	if err != nil && r.claims.Err() == nil {
		r.cfg.Log.Error("claim turns", "err", err) // the next poll is the retry
	}
	return len(claims) > 0
}

// takeSlots takes up to limit free slots and returns how many it took, and how many of them turns of
// strangers may use: see forStrangers. It takes none after the runner has begun to stop or while it has
// no lease.
func (r *Runner) takeSlots(limit int64) (n, strangers int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.claims.Err() != nil || r.fenced {
		return 0, 0
	}
	n = min(r.cfg.Concurrency-r.taken, int(limit))
	strangers = min(r.forStrangers()-r.strangers, n)
	r.taken += n
	r.strangers += strangers
	return n, strangers
}

// forStrangers returns the number of slots that turns of strangers may use at once: a quarter, and at
// least one. The others are for members, whatever strangers send.
func (r *Runner) forStrangers() int { return max(1, r.cfg.Concurrency/4) }

// takeSlot takes a slot for one turn, and reports whether there was one that it may use.
func (r *Runner) takeSlot(stranger bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.claims.Err() != nil || r.fenced || r.taken >= r.cfg.Concurrency ||
		stranger && r.strangers >= r.forStrangers() {
		return false
	}
	if r.taken++; stranger {
		r.strangers++
	}
	return true
}

// releaseSlots releases n slots. The number of those that strangers could use is strangers.
func (r *Runner) releaseSlots(n, strangers int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.taken -= n
	r.strangers -= strangers
}

// releaseSlot releases the slot of one turn.
func (r *Runner) releaseSlot(stranger bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.giveSlot(stranger)
}

// giveSlot is releaseSlot for a caller that holds mu.
func (r *Runner) giveSlot(stranger bool) {
	if r.taken--; stranger {
		r.strangers--
	}
}

// begin executes a claimed turn in its own goroutine. The turn has a slot, which is released when
// the execution ends. AbortTask may run between the commit of the claim and begin: see
// stopExecutions.
func (r *Runner) begin(c store.Claim) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c.RunnerID != r.id || r.fenced || r.claims.Err() != nil {
		r.giveSlot(c.Stranger()) // Stop or the next lease puts the runner's turns back into the queue
		return
	}
	e := &execution{claim: c, log: r.turnLog(c.Turn)}
	e.ctx, e.cancel = context.WithCancelCause(r.ctx)
	// A resumed turn may be claimed before its last execution has ended. The new execution replaces
	// it.
	r.executions[c.ID] = e
	r.turns.Go(func() { r.execute(e) })
}

// execute runs a claimed turn and releases its slot.
func (r *Runner) execute(e *execution) {
	c := e.claim
	e.live, e.startedAt = r.Streams.Begin(c.Turn), r.cfg.Now()
	r.noteStart(e)
	traced, span := r.cfg.Trace.Claim(e.ctx, tracedTurn(c.Turn), c.Claims)
	r.leave(traced, e, r.run(traced, e))
	span.End("")
	e.cancel(nil) // releases e.ctx
	r.mu.Lock()
	if r.executions[c.ID] == e { // otherwise a newer execution of the turn exists
		delete(r.executions, c.ID)
	}
	r.giveSlot(c.Stranger())
	r.mu.Unlock()
	e.live.Close()
	r.Wake() // a slot is free
}

// startedCounters returns the names of the counters of noteStart: of turns that begin, and of those that resume.
func startedCounters() [2]string {
	const name = `journeyman_turns_started_total{resumed="%t"}`
	return [2]string{fmt.Sprintf(name, false), fmt.Sprintf(name, true)}
}

// noteStart counts and logs that the execution of a turn begins: for the first time, or again after an interruption
// or a wait.
func (r *Runner) noteStart(e *execution) {
	if e.claim.Claims > 1 {
		r.metrics.GetOrCreateCounter(startedCounters()[1]).Inc()
		e.log.Info("turn resumed", "claims", e.claim.Claims)
		return
	}
	r.metrics.GetOrCreateCounter(startedCounters()[0]).Inc()
	e.log.Debug("turn started")
}
