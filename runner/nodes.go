package runner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"journeyman/store"
)

// This file keeps the lease of the runner, without which others may have its turns. Among nodes it also
// looks for what other nodes have stored.

const (
	leaseTime  = 60 * time.Second // without a renewal for this time, a runner loses its turns
	leaseRenew = 15 * time.Second // three renewals may fail before the lease expires

	// The same among nodes. There another runner takes the turns over as soon as the lease is over, so
	// this one stops them before.
	nodeLease = 20 * time.Second // unless Config.NodeLease has another one

	catchUpEvery = time.Second // pause between two looks for changes of other nodes
	fencedPoll   = 20 * time.Millisecond
	idlePlace    = time.Minute      // after this time without a turn, a worker may move to another node
	retryEvery   = 5 * catchUpEvery // pause between two looks for suspended turns of other nodes
	watchedEvery = 5 * catchUpEvery // pause between two looks whether watched workers are placed here
	countPauses  = 10               // a pause is so many times as long as the count of waiting turns before
)

// errLeaseLost is the cause of contexts that end because the lease may be over. It is not a failure:
// another runner continues the turn.
var errLeaseLost = errors.New("the runner has lost its lease")

// interrupted reports whether a turn ends here because its runner stops or has lost its lease. The turn
// returns to the queue.
func interrupted(ctx context.Context) bool {
	cause := context.Cause(ctx)
	return errors.Is(cause, errStopped) || errors.Is(cause, errLeaseLost)
}

// terms returns the length of a lease and the pause between two renewals.
func (r *Runner) terms() (lease, renew time.Duration) {
	if r.cfg.Store.Shared() {
		return r.cfg.NodeLease, r.cfg.NodeLease / 5
	}
	return leaseTime, leaseRenew
}

// fenceAfter returns how long after a renewal the turns of this node stop.
func (r *Runner) fenceAfter() time.Duration { return r.cfg.NodeLease * 2 / 3 }

// register gets a lease. The id of a runner is that of its lease, so that nothing that began under an
// older lease counts under a new one.
func (r *Runner) register(ctx context.Context) error {
	begun := time.Now()
	id := store.NewID("run", r.cfg.Now())
	lease, _ := r.terms()
	if err := r.cfg.Store.StartRunner(ctx, id, lease); err != nil {
		return err
	}
	r.renewed.Store(&begun) // before fenced is false: the timer of the old lease looks at it then
	r.mu.Lock()
	r.id, r.fenced = id, false
	r.mu.Unlock()
	r.cfg.Store.UseSlots(store.Slots{RunnerID: id, Take: func() bool { return r.takeSlots(1) == 1 },
		Release: func() { r.releaseSlots(1); r.Wake() }}) // a turn may wait for this slot
	return nil
}

// ID returns the id of the runner's lease.
func (r *Runner) ID() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.id
}

// A Lease is the state of the runner's lease.
type Lease struct {
	Age  time.Duration // since it was renewed
	Lost bool          // no turn runs here until the runner has a new one
}

// Lease returns the state of the lease.
func (r *Runner) Lease() Lease {
	var l Lease
	if renewed := r.renewed.Load(); renewed != nil {
		l.Age = time.Since(*renewed)
	}
	held := r.holdsLease()
	r.mu.Lock()
	defer r.mu.Unlock()
	l.Lost = r.fenced || !held
	return l
}

// maxClockAhead is the greatest difference between the clocks of a node and of the database at a start.
const maxClockAhead = 5 * time.Second

// checkClock returns an error if the clock of this machine is wrong: nodes compare times that other
// nodes have stored.
func (r *Runner) checkClock(ctx context.Context) error {
	ahead, err := r.cfg.Store.ClockAhead(ctx)
	if err == nil && ahead.Abs() > maxClockAhead {
		err = fmt.Errorf("the clock of this machine differs from that of the database by %s, and %s are allowed among "+
			"servers that share it: set the clocks by NTP", ahead.Abs().Round(time.Millisecond), maxClockAhead)
	}
	return err
}

// fence stops all executions without a further write, because the lease may soon be over.
func (r *Runner) fence() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fenced {
		return
	}
	r.fenced = true
	r.cfg.Store.Resign()
	for _, e := range r.executions {
		e.cancel(errLeaseLost)
	}
	r.Streams.LeaveAll() // the clients find their workers on other nodes
	r.cfg.Log.Error("the lease of this node was not renewed: its turns stop here and continue elsewhere",
		"turns", len(r.executions))
}

// holdsLease reports whether this runner certainly has its lease. After a pause of the process or of its
// machine, the timer of fence may be late. So whatever nothing else guards asks here just before it begins. The
// monotonic clock may stand still while a machine sleeps, so the wall clock counts, too.
func (r *Runner) holdsLease() bool {
	renewed := r.renewed.Load()
	if renewed == nil || !r.cfg.Store.Shared() {
		return true
	}
	now, limit := time.Now(), r.fenceAfter()
	return now.Sub(*renewed) < limit && now.Round(0).Sub(renewed.Round(0)) < limit
}

// keepLease renews the lease until the runner stops.
func (r *Runner) keepLease() {
	lease, renew := r.terms()
	tick := time.NewTicker(renew)
	defer tick.Stop()
	untilFence := func() time.Duration { return r.fenceAfter() - time.Since(*r.renewed.Load()) }
	fence := time.AfterFunc(untilFence(), func() {
		if !r.holdsLease() { // it may be a new one
			r.fence()
		}
	})
	defer fence.Stop()
	for {
		select {
		case <-tick.C:
			err := r.renew(lease)
			if err == nil {
				fence.Reset(untilFence())
			} else if r.ctx.Err() == nil {
				r.cfg.Log.Error("renew lease", "err", err) // the next tick tries again, well before the lease expires
			}
		case <-r.ctx.Done():
			return
		}
	}
}

// keepOrder does the regular work that no renewal of the lease may wait for, until the runner stops. It
// returns the turns of dead nodes to the queue, removes old stream data and ends turns that have waited
// too long.
func (r *Runner) keepOrder() {
	_, pause := r.terms()
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-r.ctx.Done():
			return
		}
		err := r.cfg.Store.EndLeases(r.ctx)
		if err = errors.Join(err, r.keepPlace(r.ID())); err != nil && r.ctx.Err() == nil {
			r.cfg.Log.Error("end the leases of dead nodes, and keep the own place", "err", err)
		}
		r.ledger.storeAgain()
		r.Streams.Prune()
		r.expireSuspended()
	}
}

// renew renews the lease. After a lease was lost, it gets a new one.
func (r *Runner) renew(lease time.Duration) error {
	r.mu.Lock()
	id, fenced := r.id, r.fenced
	r.mu.Unlock()
	st := r.cfg.Store
	if !fenced {
		begun := time.Now()
		err := st.RenewLease(r.ctx, id, lease)
		if err == nil {
			r.renewed.Store(&begun)
		}
		if !errors.Is(err, store.ErrLeaseLost) {
			return err
		}
		r.fence()
	}
	r.awaitFenced(lease)
	// The turns of the old lease go back to the queue, unless other runners have them already.
	if err := st.StopRunner(r.ctx, id); err != nil {
		return err
	}
	if err := r.register(r.ctx); err != nil {
		return err
	}
	r.cfg.Log.Info("this node has a lease again")
	r.Wake()
	return nil
}

// awaitFenced waits until the executions of the old lease have ended, because other runners would work
// in the same folders. They may do so anyway when the lease is over.
func (r *Runner) awaitFenced(lease time.Duration) {
	over := time.NewTimer(lease - r.fenceAfter())
	defer over.Stop()
	tick := time.NewTicker(fencedPoll)
	defer tick.Stop()
	for {
		r.mu.Lock()
		taken := r.taken
		r.mu.Unlock()
		if taken == 0 {
			return
		}
		select {
		case <-tick.C:
		case <-over.C:
			return
		case <-r.ctx.Done():
			return
		}
	}
}

// keepPlace becomes the leader of the nodes if there is none, and gives up idle workers. In maintenance
// it leaves both to nodes that start work.
func (r *Runner) keepPlace(id string) error {
	st := r.cfg.Store
	if !st.Shared() {
		return nil
	}
	if st.Maintenance() != nil {
		return st.GiveUp(r.ctx, id)
	}
	begins, err := st.Lead(r.ctx, id)
	r.mu.Lock()
	if r.fenced || r.id != id { // the lease ended while Lead was under way
		st.Resign()
	}
	r.mu.Unlock()
	if begins {
		r.cfg.Log.Info("this node is the leader: it runs schedules, webhooks, replies by mail and pruning")
	}
	return errors.Join(err, st.ReleasePlacements(r.ctx, id, idlePlace))
}

// LookNow makes the runner look at once for what other nodes have stored.
func (r *Runner) LookNow() {
	select {
	case r.lookNow <- struct{}{}:
	default:
	}
}

// followNodes looks for the changes of other nodes until the runner stops. News make it look sooner for
// cancelled turns, and then for waiting ones.
func (r *Runner) followNodes() {
	tick := time.NewTicker(catchUpEvery)
	defer tick.Stop()
	count := time.NewTimer(catchUpEvery)
	defer count.Stop()
	next := time.Now() // news count the waiting turns at this time at the earliest
	for retried := next; ; {
		look := r.cfg.Store.CatchUp
		select {
		case <-tick.C:
			r.stopRequested()
		case <-r.lookNow:
			r.stopRequested()
			count.Reset(time.Until(next))
			continue
		case <-count.C:
			look = r.cfg.Store.CountQueued
		case <-r.ctx.Done():
			return
		}
		begun := time.Now()
		if err := look(r.ctx); err != nil && r.ctx.Err() == nil {
			r.cfg.Log.Error("look for the changes of other nodes", "err", err)
		}
		next = time.Now().Add(countPauses * time.Since(begun))
		if time.Since(retried) >= retryEvery {
			retried = time.Now()
			r.nextRetry.Store(0) // the turns that a dead node has suspended, too
		}
		if r.cfg.Store.Queued() > 0 {
			r.Wake()
		}
	}
}

// stopRequested stops the turns that were cancelled on other nodes.
func (r *Runner) stopRequested() {
	ids, err := r.cfg.Store.RequestedAborts(r.ctx, r.ID())
	if err != nil && r.ctx.Err() == nil {
		r.cfg.Log.Error("look for turns that were cancelled on other nodes", "err", err) // the next tick tries again
	}
	for _, id := range ids {
		r.stopExecution(id)
	}
}

// followWatchers calls keepWatched until the runner stops. It is apart from followNodes, because many
// watched workers take a while, and cancelled turns must not wait for them.
func (r *Runner) followWatchers() {
	tick := time.NewTicker(watchedEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			r.keepWatched()
		case <-r.ctx.Done():
			return
		}
	}
}

// keepWatched keeps the workers here whose worker-wide streams are read here. It ends the streams of those
// that are not here: their clients ask again, and find or choose the node of the worker. In maintenance this
// node keeps none, and serves the streams of workers that no other node has.
func (r *Runner) keepWatched() {
	st := r.cfg.Store
	maintenance := st.Maintenance() != nil
	if !maintenance {
		r.Streams.LeaveGuests()
	}
	others, err := st.KeepPlaced(r.ctx, r.Streams.WatchedWorkers(), r.ID())
	for _, workerID := range others {
		if maintenance {
			place, failed := st.PlaceOf(r.ctx, workerID, r.ID())
			if err = errors.Join(err, failed); place.URL == "" {
				continue
			}
		}
		r.Streams.Leave(workerID)
	}
	if err != nil && r.ctx.Err() == nil {
		r.cfg.Log.Warn("keep the watched workers", "err", err)
	}
}
