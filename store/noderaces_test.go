package store_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/storetest"
	"journeyman/store/workers"
)

// A placeWatch records which runner has turns of which worker.
type placeWatch struct {
	mu      sync.Mutex
	running map[string]map[string]int // turns by worker and runner
	claims  map[string]int            // by turn
	faults  []string
}

// begin records a claim, after its commit.
func (w *placeWatch) begin(c store.Claim) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.claims[c.ID]++
	if w.running[c.WorkerID] == nil {
		w.running[c.WorkerID] = map[string]int{}
	}
	runners := w.running[c.WorkerID]
	runners[c.RunnerID]++
	if len(runners) > 1 {
		w.faults = append(w.faults, fmt.Sprintf("the worker %s runs on %v", c.WorkerID, runners))
	}
}

// end records the end of a turn, before its commit.
func (w *placeWatch) end(c store.Claim) {
	w.mu.Lock()
	defer w.mu.Unlock()
	runners := w.running[c.WorkerID]
	if runners[c.RunnerID]--; runners[c.RunnerID] == 0 {
		delete(runners, c.RunnerID)
	}
}

// TestNodesRaceForWorkers lets three nodes accept, claim and end turns of a few workers at once. They give
// up idle workers all the time. Each turn is claimed once, and no worker runs on two nodes at once.
func TestNodesRaceForWorkers(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	nodes := newNodes(t, 3, store.Options{})
	var ids []string
	for range 5 {
		ids = append(ids, nodes[0].newWorker(nodes[0].owner, workers.NewWorker{Title: "One"}).ID)
	}
	w := &placeWatch{running: map[string]map[string]int{}, claims: map[string]int{}}
	const rounds = 40
	ctx, done := context.WithCancel(t.Context())
	var adding, others sync.WaitGroup
	for i, f := range nodes {
		id := fmt.Sprint("r", i)
		f.startRunner(id)
		begun := make(chan store.Claim, 10_000)
		f.OnClaimed(func(c store.Claim) { w.begin(c); begun <- c })
		f.UseSlots(slots(id, 1_000_000))
		for range 2 {
			adding.Go(func() {
				for range rounds {
					n := f.turn()
					n.WorkerID = ids[rand.N(len(ids))]
					f.check(errOf(f.CreateTurn(context.Background(), n)))
				}
			})
			others.Go(func() { f.endBegun(ctx, w, begun) })
		}
		others.Go(func() {
			for ctx.Err() == nil {
				f.check(f.CatchUp(context.Background()))
				_, err := f.ClaimTurns(context.Background(), id, 3, 3)
				f.check(err)
				f.check(f.ReleasePlacements(context.Background(), id, -time.Second))
			}
		})
	}
	adding.Wait()
	storetest.Eventually(t, "the end of all turns", func() bool {
		return nodes[0].count(`SELECT count(*) FROM turns WHERE completed_at IS NULL`) == 0
	})
	done()
	others.Wait()
	is.Equal(w.faults, nil)
	is.Equal(len(w.claims), 6*rounds)
	for id, n := range w.claims {
		if n != 1 {
			t.Errorf("the turn %s was claimed %d times", id, n)
		}
	}
	nodes[0].catchUp()
	nodes[0].checkCounters()
	places := nodes[0].texts(`SELECT DISTINCT runner_id FROM placements`)
	is.True(!slices.ContainsFunc(places, func(id string) bool { return id[0] != 'r' }))
}

// endBegun ends claimed turns until ctx ends.
func (f *fixture) endBegun(ctx context.Context, w *placeWatch, begun <-chan store.Claim) {
	for {
		select {
		case c := <-begun:
			w.end(c)
			_, err := f.FinishTurn(context.Background(), c, nil, store.Outcome{Status: store.Completed, OutputText: "Done"})
			f.check(err)
		case <-ctx.Done():
			return
		}
	}
}

// waitForLocks selects the number of statements on the database that wait for a lock.
const waitForLocks = `SELECT count(*) FROM pg_stat_activity
	WHERE datname = current_database() AND wait_event_type = 'Lock'`

// TestAcceptanceBesideADeletion deletes a worker on one node while the acceptance of a turn on another one has read
// the worker. The deletion waits, so that its caller finds the turn, and no turn is accepted afterwards.
func TestAcceptanceBesideADeletion(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	a, b := newPair(t)
	a.UseSlots(slots("a", 10))
	other := a.turn()
	other.WorkerID = a.newWorker(a.owner, workers.NewWorker{Title: "Other"}).ID
	c := connectTo(t, storetest.DatabaseOf(a.Dir()))
	// The acceptance waits for this write, which gives a task the same id.
	is.NoErr(errOf(c.Exec(t.Context(), `BEGIN; UPDATE tasks SET id = 'held' WHERE id = '`+a.accept(other).TaskID+`'`)))
	held := func(n int64) func() bool { return func() bool { return b.count(waitForLocks) == n } }
	accepted, deleted := make(chan error, 1), make(chan error, 1)
	go func() {
		n := a.turn()
		n.TaskID = "held"
		accepted <- errOf(a.CreateTurn(context.Background(), n))
	}()
	storetest.Eventually(t, "the acceptance waits", held(1))
	go func() { deleted <- b.DeleteWorker(context.Background(), b.owner.Caller, b.worker.ID) }()
	storetest.Eventually(t, "the deletion waits for it", held(2))
	is.NoErr(errOf(c.Exec(t.Context(), `ROLLBACK`)))
	is.NoErr(<-accepted)
	is.NoErr(<-deleted)
	tasks, err := b.UnfinishedTasks(t.Context(), b.worker.ID)
	is.NoErr(err)
	is.Equal(tasks, []string{"held"})
	is.True(db.IsNotFound(errOf(a.CreateTurn(t.Context(), a.turn()))))
	follow := a.turn()
	follow.TaskID = "held"
	is.True(db.IsNotFound(errOf(a.CreateTurn(t.Context(), follow))))
}

// TestDeletionBesideAnAcceptance accepts a turn on one node while another one has begun to delete the worker. The
// acceptance waits, and is refused.
func TestDeletionBesideAnAcceptance(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	a, _ := newPair(t)
	c := connectTo(t, storetest.DatabaseOf(a.Dir()))
	is.NoErr(errOf(c.Exec(t.Context(), `BEGIN; SELECT 1 FROM workers WHERE id = '`+a.worker.ID+`' FOR UPDATE;
		UPDATE workers SET deleted_at = 1 WHERE id = '`+a.worker.ID+`'`)))
	accepted := make(chan error, 1)
	go func() { accepted <- errOf(a.CreateTurn(context.Background(), a.turn())) }()
	storetest.Eventually(t, "the acceptance waits", func() bool { return a.count(waitForLocks) == 1 })
	is.NoErr(errOf(c.Exec(t.Context(), `COMMIT`)))
	is.True(db.IsNotFound(<-accepted))
	is.Equal(a.count(`SELECT count(*) FROM turns`), int64(0))
}

// TestManyTurnsOfADeadNode ends the lease of a node with many turns. No write returns all of them, so none
// holds their locks for long.
func TestManyTurnsOfADeadNode(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	a, b := newPair(t)
	const turns = 250
	for range turns {
		a.accept(a.turn())
	}
	is.Equal(len(a.claim("a", turns)), turns)
	b.endLease("a", "b")
	is.Equal(a.count(`SELECT count(*) FROM turns WHERE status = 'pending'`), int64(turns))
	is.Equal(a.count(`SELECT max(n) FROM (SELECT count(*) AS n FROM turns GROUP BY CAST(xmin AS TEXT)) AS writes`), int64(100))
	is.Equal(b.Queued(), int64(turns))
}

// TestPingAlone locks the lease of another node. The node still finds that it can write.
func TestPingAlone(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	a, _ := newPair(t)
	c := connectTo(t, storetest.DatabaseOf(a.Dir()))
	is.NoErr(errOf(c.Exec(t.Context(), `BEGIN; SELECT 1 FROM runners WHERE id = 'b' FOR UPDATE`)))
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	is.NoErr(a.Ping(ctx))
	is.NoErr(errOf(c.Exec(t.Context(), `COMMIT`)))
}

// TestKeepPlaced keeps several watched workers on a node. That is one write, and only when it is time.
func TestKeepPlaced(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	a, b := newPair(t)
	ids := []string{a.worker.ID, a.newWorker(a.owner, workers.NewWorker{Title: "Two"}).ID, "wrk_missing"}
	for _, id := range ids[:2] {
		placed, err := a.PlaceHere(t.Context(), id, "a")
		is.NoErr(err)
		is.True(placed)
	}
	kept := func(f *fixture, runner string) (others []string, later int64) {
		t.Helper()
		before := a.count(`SELECT sum(used_at) FROM placements`)
		others, err := f.KeepPlaced(t.Context(), ids, runner)
		is.NoErr(err)
		return others, a.count(`SELECT sum(used_at) FROM placements`) - before
	}
	a.clock.advance(5 * time.Second)
	others, later := kept(a, "a")
	is.Equal(others, []string{"wrk_missing"})
	is.Equal(later, int64(0)) // they are new
	a.clock.advance(10 * time.Second)
	b.clock.advance(time.Minute)
	others, later = kept(b, "b")
	is.Equal(others, ids)
	is.Equal(later, int64(0))
	_, later = kept(a, "a")
	is.Equal(later, 2*15*time.Second.Milliseconds())
	is.Equal(a.count(`SELECT count(DISTINCT CAST(xmin AS TEXT)) FROM placements`), int64(1))
}
