package store_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/ordertest"
	"journeyman/store/people"
	"journeyman/store/storetest"
	"journeyman/store/workers"
)

func TestTurnsOfATaskRunInOrder(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	first := f.accept(f.turn())
	queue := []store.Turn{first, f.follow(first), f.follow(first)}
	f.startRunner("r")
	for i, want := range queue {
		c := f.claimOne("r")
		is.Equal(c.ID, want.ID)
		is.Equal(c.Seq, int64(i))
		is.Equal(f.task(first.TaskID).Status, store.Running) // independent of queued turns
		ended, left := f.finish(c), store.Pending
		if i == 2 {
			left = store.Completed
		}
		is.Equal(f.task(first.TaskID).Status, left)
		is.Equal(ended.TaskStatus, left)
		is.Equal(f.reread(want).TaskStatus, left)
		is.Equal(f.task(first.TaskID).CompletedAt == nil, i < 2)
		f.checkCounters()
	}
	is.Equal(len(f.claim("r", 1)), 0)
	late := f.follow(first)
	is.Equal(f.task(first.TaskID).Status, store.Pending)
	is.Equal(f.task(first.TaskID).CompletedAt, nil) // an unfinished task has no completion time
	is.Equal(f.claimOne("r").ID, late.ID)
	task := f.task(first.TaskID)
	is.Equal([]int64{task.TurnCount, task.Unfinished}, []int64{4, 1})
}

// TestFailedClaimClaimsNothing makes the write of the second of two claims fail.
func TestFailedClaimClaimsNothing(t *testing.T) {
	t.Parallel()
	storetest.Embedded(t)
	is := is.New(t)
	f := newFixture(t)
	f.accept(f.turn())
	f.accept(f.turn())
	f.startRunner("r")
	f.exec(`CREATE TRIGGER full BEFORE UPDATE OF runner_id ON turns WHEN OLD.num = (SELECT max(num) FROM turns)
		BEGIN SELECT RAISE(ABORT, 'no'); END`)
	claims, err := f.ClaimTurns(t.Context(), "r", 2, 2)
	is.True(err != nil)
	is.Equal(len(claims), 0) // no turn is claimed
	is.Equal(f.Queued(), int64(2))
	f.exec(`DROP TRIGGER full`)
	is.Equal(len(f.claim("r", 2)), 2)
	f.checkCounters()
}

// TestFairness queues thousands of turns for some workers and one for others. No worker may wait
// longer than one round.
func TestFairness(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	crowd(t, f, f.owner, f.worker, 3000)
	busyToo := f.newWorker(f.owner, workers.NewWorker{})
	crowd(t, f, f.owner, busyToo, 2000)
	small := f.newWorker(f.owner, workers.NewWorker{})
	n := f.turn()
	n.WorkerID = small.ID
	f.accept(n)
	sam := f.caller("Globex", "sam@globex.test", people.RoleOwner)
	theirs := store.NewTurn{Caller: sam.Caller, NewWorker: &workers.NewWorker{}, Input: "Go", Budget: store.BudgetLow}
	f.accept(theirs)
	f.accept(theirs)

	f.startRunner("r")
	place := map[string][]int{}
	for i, c := range f.claim("r", 12) {
		place[c.OrganizationID] = append(place[c.OrganizationID], i)
		place[c.WorkerID] = append(place[c.WorkerID], i)
	}
	is.Equal(len(place[sam.OrganizationID]), 2)
	ordertest.AtMost(is, place[sam.OrganizationID][1], 3) // every other claim is for the other organization
	is.Equal(len(place[small.ID]), 1)
	ordertest.AtMost(is, place[small.ID][0], 6)       // every third of ours is the small worker's
	ordertest.AtLeast(is, len(place[f.worker.ID]), 4) // too few turns of the first busy worker
	ordertest.AtLeast(is, len(place[busyToo.ID]), 4)  // too few turns of the second busy worker
	claims := f.claim("r", 100)
	last := map[string]int64{}
	for _, c := range claims {
		ordertest.Above(is, c.Num, last[c.WorkerID]) // within a worker: in the order of acceptance
		last[c.WorkerID] = c.Num
	}
	f.checkCounters()
}

// crowd queues n turns, each in its own task, in one transaction.
func crowd(t testing.TB, f *fixture, who people.Identity, w workers.Worker, n int) {
	t.Helper()
	first := f.accept(store.NewTurn{Caller: who.Caller, WorkerID: w.ID, Input: "Go", Budget: store.BudgetLow})
	f.copyTask(first, n-1)
	is.New(t).NoErr(f.Recount(t.Context()))
}

func TestClaimsAreLost(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	turn := f.accept(f.turn())
	f.startRunner("old")
	old := f.claimOne("old")
	f.startRunner("new") // the old process is dead
	step := store.Step{Parts: []store.Part{{Type: store.PartText, Text: "late"}}, Finish: "stop"}
	lost := func() {
		t.Helper()
		_, err := f.FinishTurn(t.Context(), old, &step, store.Outcome{Status: store.Completed})
		is.True(errors.Is(err, store.ErrClaimLost))
		is.True(errors.Is(f.JournalStep(t.Context(), old, step), store.ErrClaimLost))
		is.True(errors.Is(f.JournalCall(t.Context(), old, store.Call{State: store.CallCompleted, Output: []byte("1")}, nil, nil), store.ErrClaimLost))
	}
	lost() // the turn is queued again
	c := f.claimOne("new")
	is.Equal(c.Claims, int64(2))
	lost()                                        // another runner has the turn
	is.NoErr(f.JournalStep(t.Context(), c, step)) // and has written
	lost()                                        // not only a constraint prevents the second write
	is.Equal(f.finish(c).ID, turn.ID)
	lost() // the turn has ended
	_, err := f.FinishTurn(t.Context(), c, nil, store.Outcome{Status: store.Failed})
	is.True(errors.Is(err, store.ErrClaimLost)) // only once
	f.checkCounters()
}

func TestInterruptions(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	var told []string
	f.OnInterrupted(func(t store.Turn) { told = append(told, t.ID+" "+t.Failure.Code) })
	turn := f.accept(f.turn())
	die := func(n int) (c store.Claim) {
		f.startRunner(fmt.Sprintf("r%d", n))
		c = f.claimOne(fmt.Sprintf("r%d", n))
		f.checkCounters()
		return c
	}
	die(1)
	die(2)
	c := die(3)
	is.NoErr(f.JournalStep(t.Context(), c, store.Step{Parts: []store.Part{}, Finish: "tool-calls"})) // progress
	die(4)
	die(5)
	f.startRunner("r6") // the third death since the step was finished
	is.Equal(len(f.claim("r6", 1)), 0)
	ended := f.reread(turn)
	is.Equal(ended.Status, store.Failed)
	is.Equal(ended.Failure.Code, "interrupted")
	is.True(ended.Failure.Retryable)
	is.Equal(ended.Claims, int64(5))
	is.Equal(f.Counters().TurnsTakenOver.Load(), int64(5))
	is.Equal(told, []string{turn.ID + " interrupted"})
	is.Equal(f.task(turn.TaskID).Status, store.Failed)
	f.checkCounters()
}

func TestInterruptedTurnDoesNotBlockNext(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	first := f.accept(f.turn())
	next := f.follow(first)
	for i := range 3 {
		f.startRunner(fmt.Sprintf("r%d", i))
		is.Equal(f.claimOne(fmt.Sprintf("r%d", i)).ID, first.ID)
		is.Equal(f.task(first.TaskID).Status, store.Running)
	}
	f.startRunner("last")
	is.Equal(f.claimOne("last").ID, next.ID)
	f.checkCounters()
}

func TestAbortSurvivesRestart(t *testing.T) {
	t.Parallel()
	for name, leave := range map[string]func(f *fixture) error{
		"dead":    func(f *fixture) error { return f.StartRunner(f.ctx(), "next", time.Minute) },
		"stopped": func(f *fixture) error { return f.StopRunner(f.ctx(), "r") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			f := newFixture(t)
			turn := running(f).Turn
			_, running, err := f.AbortTask(t.Context(), f.owner.Caller, turn.TaskID)
			is.NoErr(err)
			is.Equal(running, []string{turn.ID})
			is.NoErr(leave(f))
			is.Equal(f.reread(turn).Status, store.Aborted)
			f.checkCounters()
		})
	}
}

func TestStopRunnerGivesTurnsBack(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	turn := f.accept(f.turn())
	for i := range 5 { // a regular stop is not an interruption
		r := fmt.Sprintf("r%d", i)
		f.startRunner(r)
		is.Equal(f.claimOne(r).ID, turn.ID)
		is.NoErr(f.StopRunner(t.Context(), r))
		is.Equal(f.reread(turn).Status, store.Pending)
		is.Equal(f.task(turn.TaskID).Status, store.Pending)
		f.checkCounters()
	}
	started := f.reread(turn).StartedAt
	f.clock.advance(time.Minute)
	f.startRunner("r")
	is.Equal(f.claimOne("r").StartedAt, started) // of the first claim
}

func TestLeases(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	f.accept(f.turn())
	f.startRunner("a")
	f.claimOne("a")
	is.NoErr(f.RenewLease(t.Context(), "b", time.Hour))
	is.Equal(len(f.claim("b", 1)), 0) // a's lease is still valid
	f.clock.advance(time.Minute - time.Millisecond)
	is.NoErr(f.RenewLease(t.Context(), "a", time.Minute))
	f.clock.advance(time.Minute - time.Millisecond)
	is.NoErr(f.RenewLease(t.Context(), "b", time.Hour))
	is.Equal(len(f.claim("b", 1)), 0) // the lease was renewed
	f.clock.advance(time.Millisecond)
	is.NoErr(f.RenewLease(t.Context(), "b", time.Hour))
	is.Equal(len(f.claim("b", 1)), 1)
	f.checkCounters()
}

// TestNoTurnIsOrphaned claims after the runner has stopped, as may happen in a shutdown.
func TestNoTurnIsOrphaned(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	turn := f.accept(f.turn())
	f.startRunner("gone")
	is.NoErr(f.StopRunner(t.Context(), "gone"))
	is.Equal(f.claimOne("gone").ID, turn.ID)
	f.startRunner("next")
	is.Equal(f.claimOne("next").ID, turn.ID)
	f.checkCounters()
}

func TestQueueLimit(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixtureWith(t, store.Options{QueueLimit: 50})
	var wg sync.WaitGroup
	var mu sync.Mutex
	accepted, busy := 0, 0
	for range 200 { // many of them share a transaction
		wg.Go(func() {
			_, err := f.CreateTurn(context.Background(), f.turn())
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				accepted++
			} else if db.IsKind(err, db.Busy) {
				busy++
			}
		})
	}
	wg.Wait()
	is.Equal([]int{accepted, busy}, []int{50, 150})
	f.checkCounters()
	f.startRunner("r")
	f.finish(f.claim("r", 1)[0])
	f.accept(f.turn()) // there is room for one again
	is.True(db.IsKind(errOf(f.CreateTurn(t.Context(), f.turn())), db.Busy))
	f.checkCounters()
}

// TestOrganizationAtLimitDelaysNoOther fills the queue of one organization, and then the
// queue of all organizations together.
func TestOrganizationAtLimitDelaysNoOther(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixtureWith(t, store.Options{QueueLimit: 5, QueueTotal: 12})
	turn := func(organization string) error {
		who := f.caller(organization, "owner@"+organization+".test", people.RoleOwner)
		_, err := f.CreateTurn(t.Context(), store.NewTurn{Caller: who.Caller, NewWorker: &workers.NewWorker{}, Input: "Go",
			Budget: store.BudgetLow})
		return err
	}
	for range 5 {
		is.NoErr(turn("flood"))
	}
	err := turn("flood")
	is.True(db.IsKind(err, db.Busy))
	is.True(strings.Contains(err.Error(), "the organization's queue is full: 5 of its turns are waiting"))
	for range 5 {
		is.NoErr(turn("calm"))
	}
	is.NoErr(turn("third"))
	is.NoErr(turn("third"))
	err = turn("third")
	is.True(db.IsKind(err, db.Busy))
	is.True(strings.Contains(err.Error(), "the server's queue is full: 12 turns are waiting"))
	f.checkCounters()
	f.startRunner("r")
	is.Equal(len(f.claim("r", 3)), 3) // one of each
	is.NoErr(turn("flood"))
	is.NoErr(turn("third"))
	f.checkCounters()
	f.startRunner("s") // the other process is dead: its turns are queued again
	f.checkCounters()
	is.Equal(f.Queued(), int64(14)) // none is lost, even beyond the limit
	is.True(db.IsKind(turn("calm"), db.Busy))
}

func TestQueueSurvivesRestart(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	dir := t.TempDir()
	c := newClock()
	open := func() *fixture {
		return &fixture{Store: storetest.Reopen(t, dir, store.Options{Now: c.now}), t: t, clock: c}
	}
	f := open()
	f.owner = f.caller("Acme", "ann@acme.test", people.RoleOwner)
	f.worker = f.newWorker(f.owner, workers.NewWorker{})
	first := f.accept(f.turn())
	f.follow(first) // queued but not ready
	f.accept(f.turn())
	is.NoErr(f.Close())
	again := open()
	is.Equal(again.Queued(), int64(3))
	again.checkCounters()
}

func TestAbort(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	c := running(f)
	first := c.Turn
	waiting := []store.Turn{f.follow(first), f.follow(first)}
	task, running, err := f.AbortTask(t.Context(), f.owner.Caller, first.TaskID)
	is.NoErr(err)
	is.Equal(running, []string{first.ID})
	is.Equal(task.Status, store.Running) // until its runner has stopped
	is.Equal(task.Unfinished, int64(3))
	is.Equal(task, f.task(first.TaskID))
	for _, w := range append(waiting, first) {
		is.True(f.reread(w).AbortRequested)
	}
	f.checkCounters()
	again := f.follow(first) // sent after the cancellation
	is.NoErr(errOf(f.FinishTurn(t.Context(), c, nil, store.AbortedOutcome())))
	for _, w := range waiting { // they end with the running turn
		w = f.reread(w)
		is.Equal(w.Status, store.Aborted)
		is.Equal(w.Failure.Code, "aborted")
		is.Equal(w.IncompleteReason, store.ReasonAborted)
	}
	is.Equal(f.task(first.TaskID).Status, store.Pending)
	f.checkCounters()
	is.Equal(f.claimOne("r").ID, again.ID)
	f.finish(store.Claim{Turn: again, RunnerID: "r"})
	task, running, err = f.AbortTask(t.Context(), f.owner.Caller, first.TaskID)
	is.NoErr(err)
	is.Equal(len(running), 0)
	is.Equal(task.Status, store.Completed) // ended turns keep their status
	f.checkCounters()
}

// TestManyRunnersAtOnce moves turns through all states concurrently. In the end the counters must
// be right, and no turn may have run twice.
func TestManyRunnersAtOnce(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	f.startRunner("r")
	var wg sync.WaitGroup
	var mu sync.Mutex
	seen := map[string]bool{}
	for g := range 8 {
		wg.Go(func() {
			n := f.turn()
			n.TaskID = fmt.Sprintf("shared-%d", g%3) // eight callers share three tasks
			for range 20 {
				if _, err := f.CreateTurn(context.Background(), n); err != nil {
					t.Error(err)
				}
				claims, err := f.ClaimTurns(context.Background(), "r", 2, 2)
				if err != nil {
					t.Error(err)
				}
				for i, c := range claims {
					mu.Lock()
					if seen[c.ID] {
						t.Errorf("%s was claimed twice", c.ID)
					}
					seen[c.ID] = true
					mu.Unlock()
					out := store.Outcome{Status: store.Completed, Duration: time.Duration(i) * time.Millisecond}
					if _, err := f.FinishTurn(context.Background(), c, nil, out); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
	f.checkCounters()
	for claims := f.claim("r", 10); len(claims) > 0; claims = f.claim("r", 10) {
		for _, c := range claims {
			f.finish(c)
		}
	}
	is.Equal(f.Queued(), int64(0))
	is.Equal(f.count(`SELECT count(*) FROM turns WHERE status = 'completed'`), int64(160))
	f.checkCounters()
}
