package runner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"journeyman/store"
	"journeyman/store/db"
)

// This file renews the lease of the runner. After its lease has expired, other runners may execute its
// turns. Among nodes, this file also reads the changes of other nodes from the store.

const (
	leaseTime  = 60 * time.Second // without a renewal for this time, a runner loses its turns
	leaseRenew = 15 * time.Second // three renewals may fail before the lease expires

	// nodeLease replaces leaseTime among nodes. Another node takes over the turns as soon as the lease
	// expires, so this node stops them earlier: see fenceAfter.
	nodeLease = 20 * time.Second // default of Config.NodeLease

	catchUpEvery = time.Second           // pause between two reads of the changes of other nodes
	fencedPoll   = 20 * time.Millisecond // pause between two checks of awaitFenced
	idlePlace    = time.Minute           // after this time without a turn, a worker may move to another node
	retryEvery   = 5 * catchUpEvery      // pause between two searches for suspended turns of other nodes
	watchedEvery = 5 * catchUpEvery      // pause between two calls of keepWatched
	// Minimum pause between two counts of the waiting turns, as a multiple of the duration of a count.
	countPauseFactor = 10
)

// errLeaseLost is the cause of contexts that end because the lease may have expired. It is not a
// failure: another runner continues the turn.
var errLeaseLost = errors.New("the runner has lost its lease")

// interrupted reports whether ctx has ended because the runner stops or has lost its lease. The turn
// then returns to the queue.
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

// register gets a new lease. The runner takes the id of its lease, so it has another id after each loss.
// So an operation that began under an older lease cannot pass for one of the new lease.
func (r *Runner) register(ctx context.Context) error {
	begun := time.Now()
	id := db.NewID("run", r.cfg.Now())
	lease, _ := r.terms()
	if err := r.cfg.Store.StartRunner(ctx, id, lease); err != nil {
		return err
	}
	r.renewed.Store(&begun) // before fenced is false, because the timer of the old lease may fire then
	r.mu.Lock()
	r.id, r.fenced = id, false
	r.mu.Unlock()
	r.cfg.Store.UseSlots(store.Slots{RunnerID: id, Take: r.takeSlot,
		Release: func(stranger bool) { r.releaseSlot(stranger); r.Wake() }}) // a turn may wait for this slot
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
	Age  time.Duration // time since the last renewal
	Lost bool          // no turn runs here until the runner has a new lease
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

// MaxClockAhead is the maximum difference between the clocks of a node and of the database. With a larger one,
// a node does not start, and a running node names it in /readyz.
const MaxClockAhead = 5 * time.Second

// checkClock returns an error if the clock of this machine differs too much from that of the database.
// Nodes compare their own time with times that other nodes have stored.
func (r *Runner) checkClock(ctx context.Context) error {
	ahead, err := r.cfg.Store.ClockAhead(ctx)
	if err == nil && ahead.Abs() > MaxClockAhead {
		err = fmt.Errorf("the clock of this machine differs by %s from the clock of the database; servers that share "+
			"a database may differ by at most %s: synchronize the clocks with NTP",
			ahead.Abs().Round(time.Millisecond), MaxClockAhead)
	}
	return err
}

// fence stops all executions. They write nothing more, because the lease may soon expire.
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
	r.Streams.LeaveAll() // the clients connect again, to other nodes
	r.cfg.Log.Error("the lease of this node was not renewed: its turns continue on other nodes",
		"turns", len(r.executions))
}

// holdsLease reports whether this runner certainly has its lease. After a pause of the process or of its
// machine, the timer of fence may be late. So actions that no transaction protects call holdsLease just
// before they begin. The monotonic clock may stop while a machine sleeps, so the wall clock counts, too.
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
	untilFence := func() time.Duration { return r.fenceAfter() - time.Since(*r.renewed.Load()) }
	fence := time.AfterFunc(untilFence(), func() {
		if !r.holdsLease() { // otherwise the lease was renewed meanwhile
			r.fence()
		}
	})
	defer fence.Stop()
	r.every(renew, func() {
		err := r.renew(lease)
		if err == nil {
			fence.Reset(untilFence())
		} else if r.ctx.Err() == nil {
			r.cfg.Log.Error("renew lease", "err", err) // the next one comes well before the lease expires
		}
	})
}

// housekeep does periodic work until the runner stops. It returns the turns of dead nodes to the queue,
// removes old stream data, and ends turns that have waited too long. It is apart from keepLease, so that
// slow work never delays a renewal of the lease.
func (r *Runner) housekeep() {
	_, pause := r.terms()
	r.every(pause, func() {
		err := r.cfg.Store.EndLeases(r.ctx)
		if err = errors.Join(err, r.keepPlace(r.ID())); err != nil && r.ctx.Err() == nil {
			r.cfg.Log.Error("end the leases of dead nodes, and update the leader and the placed workers", "err", err)
		}
		r.ledger.StoreAgain()
		r.Streams.Prune()
		r.expireSuspended()
	})
}

// every calls do after each pause until the runner stops.
func (r *Runner) every(pause time.Duration, do func()) {
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			do()
		case <-r.ctx.Done():
			return
		}
	}
}

// renew renews the lease. After the lease was lost, renew gets a new one.
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
	r.WakeAll()
	return nil
}

// awaitFenced waits until the executions of the old lease have ended. Otherwise two executions of a turn
// could use the same folder. It waits at most until the old lease expires: then other runners may begin.
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

// keepPlace makes this node the leader if there is none, and releases the workers that are idle here.
// During maintenance, this node gives up both, so that a node that may start work takes them.
func (r *Runner) keepPlace(id string) error {
	st := r.cfg.Store
	if !st.Shared() {
		return nil
	}
	if st.Gate.Maintenance() != nil {
		return st.GiveUp(r.ctx, id)
	}
	begins, err := st.Lead(r.ctx, id)
	r.mu.Lock()
	if r.fenced || r.id != id { // the lease was lost during the call of Lead
		st.Resign()
	}
	r.mu.Unlock()
	if begins {
		r.cfg.Log.Info("this node is the leader: it runs schedules, webhooks, replies by mail and pruning")
	}
	return errors.Join(err, st.ReleasePlacements(r.ctx, id, idlePlace))
}

// LookNow makes the runner read the changes of other nodes at once.
func (r *Runner) LookNow() { signal(r.lookNow) }

// followNodes reads the changes of other nodes every catchUpEvery, until the runner stops. Changes from another
// node makes it stop cancelled turns at once, and then count the waiting turns.
func (r *Runner) followNodes() {
	tick := time.NewTicker(catchUpEvery)
	defer tick.Stop()
	count := time.NewTimer(catchUpEvery)
	defer count.Stop()
	next := time.Now() // earliest time of the next count of the waiting turns
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
			r.cfg.Log.Error("read the changes of other nodes", "err", err)
		}
		next = time.Now().Add(countPauseFactor * time.Since(begun))
		if time.Since(retried) >= retryEvery {
			retried = time.Now()
			r.nextRetry.Store(0) // find the turns that a dead node has suspended, too
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
		r.cfg.Log.Error("find the turns that were cancelled on other nodes", "err", err) // the next tick tries again
	}
	for _, id := range ids {
		r.stopExecution(id)
	}
}

// followWatchers calls keepWatched periodically until the runner stops. It is apart from followNodes: with
// many watched workers keepWatched takes long, and must not delay the stop of cancelled turns.
func (r *Runner) followWatchers() { r.every(watchedEvery, r.keepWatched) }

// keepWatched keeps the workers on this node whose worker-wide streams clients read here. It ends the
// streams of workers that another node has: their clients connect again, and reach that node. During
// maintenance, this node keeps no worker. It then serves only the streams of workers without a node.
func (r *Runner) keepWatched() {
	st := r.cfg.Store
	maintenance := st.Gate.Maintenance() != nil
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
