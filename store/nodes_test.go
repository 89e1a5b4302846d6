package store_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/ordertest"
	"journeyman/store/storetest"
	"journeyman/store/workers"
)

// newNodes opens one database as n nodes. Each fixture has the same owner and the same worker.
func newNodes(t *testing.T, n int, opt store.Options) []*fixture {
	t.Helper()
	storetest.NeedServer(t)
	opt.Node = &store.Node{URL: "http://node0.test:8080", Version: "test"}
	nodes := []*fixture{newFixtureWith(t, opt)}
	for i := 1; i < n; i++ {
		f := *nodes[0]
		f.clock = newClock()
		again := opt
		again.Now, again.Node = f.clock.now, &store.Node{URL: fmt.Sprintf("http://node%d.test:8080", i), Version: "test"}
		f.Store = storetest.Reopen(t, nodes[0].Dir(), again)
		nodes = append(nodes, &f)
	}
	return nodes
}

// newPair opens one database as two nodes. Their runners are "a" and "b".
func newPair(t *testing.T) (a, b *fixture) {
	t.Helper()
	nodes := newNodes(t, 2, store.Options{})
	nodes[0].startRunner("a")
	nodes[1].startRunner("b")
	return nodes[0], nodes[1]
}

// endLease ends the lease of a runner, as the next renewal of another runner does after its time.
func (f *fixture) endLease(runner, other string) {
	f.t.Helper()
	is := is.New(f.t)
	is.Helper()
	storetest.Exec(f.t, f.Store, `UPDATE runners SET expires_at = 1 WHERE id = ?`, runner)
	is.NoErr(f.RenewLease(f.ctx(), other, time.Minute))
	is.NoErr(f.EndLeases(f.ctx()))
}

func (f *fixture) catchUp() {
	f.t.Helper()
	is.New(f.t).NoErr(f.CatchUp(f.ctx()))
}

// TestLeasesByTheServersClock sets the clock of a node to a wrong time. That node neither ends the leases
// of the others nor loses its own.
func TestLeasesByTheServersClock(t *testing.T) {
	t.Parallel()
	for name, wrong := range map[string]time.Duration{"ahead": 1000 * 24 * time.Hour, "behind": -1000 * 24 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			nodes := newNodes(t, 2, store.Options{})
			nodes[1].clock.advance(wrong)
			nodes[0].startRunner("a")
			nodes[1].startRunner("b")
			for range 2 {
				is.NoErr(nodes[0].RenewLease(t.Context(), "a", time.Minute))
				is.NoErr(nodes[1].RenewLease(t.Context(), "b", time.Minute))
				is.NoErr(errors.Join(nodes[0].EndLeases(t.Context()), nodes[1].EndLeases(t.Context())))
			}
			list, err := nodes[0].Nodes(t.Context())
			is.NoErr(err)
			is.Equal(len(list), 2)
			names := []string{list[0].URL, list[1].URL}
			slices.Sort(names)
			is.Equal(names, []string{"http://node0.test:8080", "http://node1.test:8080"})
		})
	}
}

// TestLostLease lets the lease of a runner end while it has a turn. Another runner continues the turn,
// and the first one learns of it.
func TestLostLease(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	a, b := newPair(t)
	turn := a.accept(a.turn())
	lost := a.claimOne("a")
	is.NoErr(b.RenewLease(t.Context(), "b", time.Minute))
	is.NoErr(b.EndLeases(t.Context())) // the lease of a has its time
	is.Equal(b.reread(turn).Status, store.Running)

	b.endLease("a", "b")
	is.Equal(b.reread(turn).Status, store.Pending)
	is.True(errors.Is(a.RenewLease(t.Context(), "a", time.Minute), store.ErrLeaseLost))
	is.Equal(len(a.claim("a", 1)), 0) // without a lease, it gets no turn
	b.catchUp()
	c := b.claimOne("b")
	is.Equal(c.Claims, int64(2))
	_, err := a.FinishTurn(t.Context(), lost, nil, store.Outcome{Status: store.Completed})
	is.True(errors.Is(err, store.ErrClaimLost))
	is.Equal(b.finish(c).Status, store.Completed)
}

// TestOneLeader lets two runners be the leader, one after the other.
func TestOneLeader(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	nodes := newNodes(t, 2, store.Options{})
	lead := func(f *fixture, runner string) (begins, leads bool) {
		begins, err := f.Lead(t.Context(), runner)
		is.NoErr(err)
		return begins, f.Leads()
	}
	begins, leads := lead(nodes[0], "a")
	is.True(!begins && !leads) // it has no lease
	nodes[0].startRunner("a")
	nodes[1].startRunner("b")
	begins, leads = lead(nodes[0], "a")
	is.True(begins && leads)
	begins, leads = lead(nodes[1], "b")
	is.True(!begins && !leads)
	begins, leads = lead(nodes[0], "a")
	is.True(!begins && leads) // it is the leader already
	nodes[0].Resign()
	is.True(!nodes[0].Leads())

	nodes[1].endLease("a", "b")
	begins, leads = lead(nodes[1], "b")
	is.True(begins && leads)
	is.NoErr(nodes[1].StopRunner(t.Context(), "b"))
	nodes[0].startRunner("c")
	begins, leads = lead(nodes[0], "c")
	is.True(begins && leads)
	alone := newFixture(t)
	is.True(alone.Leads()) // a server that has the database alone needs no election
}

// TestLeadersMeet lets runners become the leader at once.
func TestLeadersMeet(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	nodes := newNodes(t, 3, store.Options{})
	for round := range 20 {
		begun := make(chan bool, len(nodes))
		for i, f := range nodes {
			id := fmt.Sprint("r", i, "-", round)
			f.startRunner(id)
			go func() {
				begins, err := f.Lead(context.Background(), id)
				f.check(err)
				begun <- begins
			}()
		}
		first := 0
		for range nodes {
			if <-begun {
				first++
			}
		}
		is.Equal(first, 1)
		for i, f := range nodes {
			is.NoErr(f.StopRunner(t.Context(), fmt.Sprint("r", i, "-", round)))
		}
	}
}

// TestPlaces places a worker on a runner. Only that one claims the worker's turns, in the queue and at
// their acceptance, until the placement ends.
func TestPlaces(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	a, b := newPair(t)
	placeOf := func(f *fixture, runner string) string {
		place, err := f.PlaceOf(t.Context(), f.worker.ID, runner)
		is.NoErr(err)
		return place.URL
	}
	is.Equal(placeOf(b, "b"), "") // nowhere yet
	a.accept(a.turn())
	c := a.claimOne("a")
	is.Equal(placeOf(b, "b"), "http://node0.test:8080")
	is.Equal(placeOf(a, "a"), "") // here

	b.UseSlots(slots("b", 1))
	turn := b.accept(b.turn())
	is.Equal(turn.Status, store.Pending) // b has a slot, but the worker is elsewhere
	is.Equal(len(b.claim("b", 1)), 0)
	other := b.newWorker(b.owner, workers.NewWorker{Title: "Other"})
	n := b.turn()
	n.WorkerID = other.ID
	is.Equal(b.accept(n).Status, store.Running) // a worker without a place

	is.NoErr(a.ReleasePlacements(t.Context(), "a", -time.Second))
	is.Equal(placeOf(b, "b"), "http://node0.test:8080") // it has a running turn
	a.finish(c)
	is.NoErr(a.ReleasePlacements(t.Context(), "a", time.Minute))
	is.Equal(placeOf(b, "b"), "http://node0.test:8080") // it had one just now
	is.NoErr(b.ReleasePlacements(t.Context(), "b", -time.Second))
	is.Equal(placeOf(b, "b"), "http://node0.test:8080") // it is not the placement of b
	is.NoErr(a.ReleasePlacements(t.Context(), "a", -time.Second))
	is.Equal(placeOf(b, "b"), "")
	is.Equal(b.claimOne("b").ID, turn.ID)
	is.Equal(placeOf(a, "a"), "http://node1.test:8080")
}

// TestRestartWithoutStop starts a node again that was killed. Its turn continues at once, although the lease
// of the earlier runner is not over. The other node keeps its own.
func TestRestartWithoutStop(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	a, b := newPair(t)
	turn := a.accept(a.turn())
	a.claimOne("a")
	is.NoErr(b.Close())
	again := *b
	again.Store = storetest.Reopen(t, a.Dir(), store.Options{Node: &store.Node{URL: b.NodeURL(), Version: "test"}})
	again.startRunner("b2")
	is.Equal(again.texts(`SELECT id FROM runners ORDER BY id`), []string{"a", "b2"})
	is.Equal(len(again.claim("b2", 1)), 0) // a has the turn

	is.NoErr(a.Close())
	first := *a
	first.Store = storetest.Reopen(t, a.Dir(), store.Options{Node: &store.Node{URL: a.NodeURL(), Version: "test"}})
	first.startRunner("a2")
	is.Equal(first.texts(`SELECT id FROM runners ORDER BY id`), []string{"a2", "b2"})
	is.Equal(first.claimOne("a2").ID, turn.ID)
	is.Equal(first.count(`SELECT interruptions FROM turns`), int64(1))
}

// TestPlaceOfADeadRunner claims the turns of a worker whose runner has no lease any more.
func TestPlaceOfADeadRunner(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	a, b := newPair(t)
	a.accept(a.turn())
	a.claimOne("a")
	second := b.accept(b.turn())
	is.Equal(len(b.claim("b", 1)), 0)
	storetest.Exec(t, b.Store, `DELETE FROM runners WHERE id = 'a'`)
	is.Equal(b.claimOne("b").ID, second.ID)
	is.Equal(b.texts(`SELECT runner_id FROM placements`), []string{"b"})
	storetest.Exec(t, b.Store, `INSERT INTO placements (worker_num, runner_id, used_at) VALUES (99, 'a', 0)`)
	storetest.Exec(t, b.Store, `INSERT INTO reservations (account, runner_id, cost) VALUES ('x', 'a', 1), ('x', 'b', 1)`)
	is.NoErr(b.ReleasePlacements(t.Context(), "b", time.Minute))
	is.Equal(b.texts(`SELECT runner_id FROM placements`), []string{"b"})
	is.Equal(b.texts(`SELECT runner_id FROM reservations`), []string{"b"})
}

// texts returns one column of text.
func (f *fixture) texts(query string, args ...any) []string {
	f.t.Helper()
	list, err := f.Strings(f.ctx(), query, args...)
	is.New(f.t).NoErr(err)
	return list
}

// TestStoppedRunner stops a runner in good order. It leaves nothing behind, and its turn continues at
// once elsewhere.
func TestStoppedRunner(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	a, b := newPair(t)
	is.NoErr(errOf(a.Lead(t.Context(), "a")))
	turn := a.accept(a.turn())
	a.claimOne("a")
	storetest.Exec(t, a.Store, `INSERT INTO reservations (account, runner_id, cost) VALUES ('x', 'a', 1)`)
	is.NoErr(a.StopRunner(t.Context(), "a"))
	for _, table := range []string{"placements", "leaders", "reservations"} {
		is.Equal(a.count(`SELECT count(*) FROM `+table), int64(0)) // rows of the stopped runner
	}
	is.Equal(len(b.claim("b", 1)), 0) // b has not yet counted the queue
	b.catchUp()
	c := b.claimOne("b")
	is.Equal(c.ID, turn.ID)
	is.Equal(b.count(`SELECT interruptions FROM turns`), int64(0))
}

// TestGiveUp gives up the part of the leader and the workers without running turns, but no others.
func TestGiveUp(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	a, b := newPair(t)
	begins, err := a.Lead(t.Context(), "a")
	is.NoErr(err)
	is.True(begins && a.Leads())
	a.accept(a.turn())
	c := a.claimOne("a")
	is.NoErr(a.GiveUp(t.Context(), "a"))
	is.True(!a.Leads())
	begins, err = b.Lead(t.Context(), "b")
	is.NoErr(err)
	is.True(begins)
	is.Equal(a.count(`SELECT count(*) FROM placements`), int64(1))
	a.finish(c)
	is.NoErr(a.GiveUp(t.Context(), "a"))
	is.Equal(a.count(`SELECT count(*) FROM placements`), int64(0))
}

// TestLeaseEndsDuringAClaim ends the lease of a runner whose claim is not yet committed. The claim comes
// first, so the turn is found and goes back to the queue.
func TestLeaseEndsDuringAClaim(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	a, b := newPair(t)
	turn := a.accept(a.turn())
	storetest.Exec(t, a.Store, `UPDATE runners SET expires_at = 1 WHERE id = 'a'`)
	c := connectTo(t, storetest.DatabaseOf(a.Dir()))
	waiting := func(n int) {
		t.Helper()
		storetest.Eventually(t, "writes that wait", func() bool {
			var waits int
			is.NoErr(c.QueryRow(t.Context(), `SELECT count(DISTINCT pid) FROM pg_locks WHERE NOT granted AND database =
				(SELECT oid FROM pg_database WHERE datname = current_database()) OR NOT granted AND locktype = 'transactionid'
				AND pid IN (SELECT pid FROM pg_stat_activity WHERE datname = current_database())`).Scan(&waits))
			return waits >= n
		})
	}
	is.NoErr(errOf(c.Exec(t.Context(), `BEGIN; SELECT 1 FROM tasks FOR UPDATE`))) // the claim changes this row last
	claims, ended := make(chan []store.Claim, 1), make(chan error, 1)
	go func() {
		list, err := a.ClaimTurns(context.Background(), "a", 1, 1)
		a.check(err)
		claims <- list
	}()
	waiting(1)
	is.NoErr(b.RenewLease(t.Context(), "b", time.Minute)) // it does not wait for the turns of a
	go func() { ended <- b.EndLeases(context.Background()) }()
	waiting(2)
	is.NoErr(errOf(c.Exec(t.Context(), `COMMIT`)))
	is.Equal(len(<-claims), 1)
	is.NoErr(<-ended)
	is.NoErr(b.EndLeases(t.Context()))
	is.Equal(b.reread(turn).Status, store.Pending)
	b.catchUp()
	is.Equal(b.claimOne("b").ID, turn.ID)
}

// TestQueueAmongNodes counts the turns that other nodes add and claim. The limit of the queue holds for
// all nodes together, a count later.
func TestQueueAmongNodes(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	nodes := newNodes(t, 2, store.Options{QueueLimit: 3})
	a, b := nodes[0], nodes[1]
	a.startRunner("a")
	for range 3 {
		a.accept(a.turn())
	}
	is.True(says(errOf(a.CreateTurn(t.Context(), a.turn())), "queue is full"))
	is.Equal(b.Queued(), int64(0))
	models := b.Workers.ModelChanges()
	is.NoErr(b.CountQueued(t.Context()))
	is.Equal(b.Queued(), int64(3))
	is.Equal(b.Workers.ModelChanges(), models) // news come often: they forget nothing
	b.catchUp()
	is.Equal(b.Queued(), int64(3))
	ordertest.Above(is, b.Workers.ModelChanges(), models)
	is.True(says(errOf(b.CreateTurn(t.Context(), b.turn())), "queue is full"))
	is.Equal(len(a.claim("a", 1)), 1)
	b.catchUp()
	b.accept(b.turn())
	a.catchUp()
	a.checkCounters()
	b.checkCounters()
}

// TestCountDuringAnAddition counts the queue while a turn is added. The turn can be claimed at once when
// it is committed.
func TestCountDuringAnAddition(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	a := newNodes(t, 1, store.Options{})[0]
	a.startRunner("a")
	c := connectTo(t, storetest.DatabaseOf(a.Dir()))
	is.NoErr(errOf(c.Exec(t.Context(), `BEGIN; LOCK TABLE idempotency IN SHARE MODE`))) // it stops inserts
	n := a.turn()
	n.IdempotencyKey = db.IdempotencyKey{KeyID: a.owner.KeyID, Key: "k", Hash: hash("k")}
	added := make(chan error, 1)
	go func() {
		added <- errOf(a.CreateTurn(context.Background(), n))
	}()
	storetest.Eventually(t, "the addition", func() bool { return a.Queued() == 1 })
	a.catchUp()
	a.catchUp()
	is.Equal(a.Queued(), int64(1)) // although no row is committed
	is.NoErr(errOf(c.Exec(t.Context(), `COMMIT`)))
	is.NoErr(<-added)
	a.claimOne("a")
	is.Equal(a.Queued(), int64(0))
	a.catchUp()
	a.checkCounters()
}

// TestClaimsPassWorkersOfOtherNodes lets two nodes claim turns of five workers, two of which are placed
// on the first. Each node goes around its own workers.
func TestClaimsPassWorkersOfOtherNodes(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	a, b := newPair(t)
	names := map[string]string{}
	for i := range 5 {
		w, _, err := a.Workers.CreateWorker(t.Context(), a.owner.Caller, workers.NewWorker{Instructions: "Help."},
			db.IdempotencyKey{})
		is.NoErr(err)
		names[w.ID] = fmt.Sprint(i)
		for range 2 {
			n := a.turn()
			n.WorkerID = w.ID
			a.accept(n)
		}
	}
	claimed := func(f *fixture, runner string, n int) (list []string) {
		t.Helper()
		f.catchUp()
		for _, c := range f.claim(runner, n) {
			list = append(list, names[c.WorkerID])
		}
		return list
	}
	is.Equal(claimed(a, "a", 2), []string{"0", "1"})
	is.Equal(claimed(b, "b", 2), []string{"2", "3"})
	is.Equal(claimed(b, "b", 10), []string{"4", "2", "3", "4"}) // it passes 0 and 1
	is.Equal(claimed(a, "a", 10), []string{"0", "1"})
	b.UseSlots(slots("b", 1))
	n := b.turn()
	n.WorkerID = b.worker.ID
	is.Equal(b.accept(n).Status, store.Running) // no turn that b may claim comes first
}

// TestTurnOfAWorkerElsewhere accepts turns on a node with free slots. It claims none of a worker that is placed
// on another node, and keeps its slot.
func TestTurnOfAWorkerElsewhere(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	a, b := newPair(t)
	a.UseSlots(slots("a", 1))
	is.Equal(a.accept(a.turn()).Status, store.Running) // places the worker
	free := 1
	b.UseSlots(store.Slots{RunnerID: "b", Release: func(bool) { free++ }, Take: func(bool) bool {
		if free == 0 {
			return false
		}
		free--
		return true
	}})
	n := b.turn()
	n.WorkerID = a.worker.ID
	is.Equal(b.accept(n).Status, store.Pending)
	is.Equal(free, 1)
	a.catchUp()
	is.Equal(len(a.claim("a", 2)), 1)
	w, _, err := b.Workers.CreateWorker(t.Context(), b.owner.Caller, workers.NewWorker{Instructions: "Help."},
		db.IdempotencyKey{})
	is.NoErr(err)
	n.WorkerID = w.ID
	b.catchUp()
	is.Equal(b.accept(n).Status, store.Running)
	is.Equal(free, 0)
}
