package runner_test

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/runner"
	"journeyman/runner/stream"
	"journeyman/store"
	"journeyman/store/storetest"
	"journeyman/store/workers"
)

// newNodes starts n runners on one database, each with a store of its own.
func newNodes(t *testing.T, n int, setups ...setup) []*fixture {
	t.Helper()
	if !storetest.OnServer() {
		t.Skip("several nodes need a database on a server: .ci/postgres runs a command with one")
	}
	var nodes []*fixture
	for i := range n {
		opt := store.Options{Node: &store.Node{URL: fmt.Sprintf("http://node%d.test:8080", i), Version: "test"}}
		var st *store.Store
		if i == 0 {
			st = storetest.Open(t, opt)
		} else {
			st = storetest.Reopen(t, nodes[0].store.Dir(), opt)
		}
		f := fixtureOn(t, st, setups...)
		if i == 0 {
			f.found()
		} else {
			f.owner, f.worker = nodes[0].owner, nodes[0].worker
		}
		f.start()
		nodes = append(nodes, f)
	}
	return nodes
}

// state returns the nodes as one of them sees them.
func (f *fixture) nodes() []store.NodeState {
	f.t.Helper()
	list, err := f.store.Nodes(f.ctx())
	is.New(f.t).NoErr(err)
	return list
}

// TestNodesShareWork accepts turns of several workers on each of three nodes. Every turn runs once,
// and all turns of a worker run on one node.
func TestNodesShareWork(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	nodes := newNodes(t, 3)
	var made []workers.Worker
	for range 9 {
		made = append(made, nodes[0].newWorker(workers.NewWorker{Title: "One"}))
	}
	var group sync.WaitGroup
	var mu sync.Mutex
	var failed []string
	for i := range 90 {
		group.Go(func() {
			f, w := nodes[i%3], made[i%len(made)]
			a, err := f.store.CreateTurn(t.Context(), store.NewTurn{Caller: f.owner, WorkerID: w.ID,
				Input: script(fmt.Sprintf(`tool write_file {"path":"n%d","content":"x"}`, i), "say done"), Budget: store.BudgetStandard})
			if err == nil {
				f.Wake()
				err = nodes[(i+1)%3].Wait(t.Context(), a.Turn.ID)
			}
			if err != nil {
				mu.Lock()
				defer mu.Unlock()
				failed = append(failed, err.Error())
			}
		})
	}
	group.Wait()
	is.Equal(failed, nil)
	rows := storetest.Rows(t, nodes[0].store.Dir(), `SELECT claims, count(*) FROM turns GROUP BY claims`)
	is.Equal(rows, [][]string{{"1", "90"}})
	list := nodes[1].nodes()
	is.Equal(len(list), 3)
	leaders := slices.DeleteFunc(slices.Clone(list), func(n store.NodeState) bool { return !n.Leader })
	is.Equal(len(leaders), 1)
	placed := int64(0)
	for _, n := range list {
		placed += n.Workers
	}
	is.Equal(placed, int64(len(made)))
}

// TestCancelOnAnotherNode cancels a turn that another node executes.
func TestCancelOnAnotherNode(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	nodes := newNodes(t, 2)
	turn := nodes[0].accept(script("wait 1h", "say done"))
	is.Equal(nodes[1].abort(turn).Status, store.Aborted)
	is.Equal(nodes[1].wait(turn).Status, store.Aborted)
}

// TestLeaseIsLost ends the lease of a node, as another node does when the lease is over, while a turn
// runs. Another node continues the turn, and the first one gets a new lease. It keeps no ring, which would
// lack the events of the other node. No tool of the old lease begins under the new one.
func TestLeaseIsLost(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	nodes := newNodes(t, 2)
	nodes[0].workerStream(nodes[0].worker.ID, "").Close()
	turn := nodes[0].accept(script(`tool write_file {"path":"a","content":"x"}`, "wait 8s", "say done"))
	old := nodes[0].ID()
	storetest.Eventually(t, "the first call", func() bool { return len(nodes[0].journal(turn)) > 0 })
	storetest.Exec(t, nodes[0].store, `DELETE FROM runners WHERE id = ?`, old)
	end := nodes[1].wait(turn)
	is.Equal(end.Status, store.Completed)
	is.Equal(end.Claims, int64(2))
	storetest.Eventually(t, "a new lease", func() bool {
		return nodes[0].ID() != old && len(nodes[0].nodes()) == 2
	})
	is.True(strings.HasPrefix(nodes[0].ID(), "run_"))
	rings, _, _, _ := nodes[0].Kept()
	is.Equal(rings, 0)
	is.NoErr(nodes[0].MayAct(t.Context(), nodes[0].ID()))
	is.True(nodes[0].MayAct(t.Context(), old) != nil)
	is.Equal(nodes[0].run("Hello").Status, store.Completed)
}

// TestWatchedInMaintenance watches a worker on a node that goes into maintenance. The node gives the worker up.
// When another node has it, the stream ends, so that the client finds that node.
func TestWatchedInMaintenance(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	nodes := newNodes(t, 2)
	a, b := nodes[0], nodes[1]
	s := a.workerStream(a.worker.ID, "")
	defer s.Close()
	place := func() string {
		n, err := b.store.PlaceOf(t.Context(), a.worker.ID, "")
		is.NoErr(err)
		return n.RunnerID
	}
	_, err := a.store.PlaceHere(t.Context(), a.worker.ID, a.ID())
	is.NoErr(err)
	a.KeepWatched()
	is.Equal(place(), a.ID())
	is.True(a.store.Gate.BeginMaintenance())
	defer a.store.Gate.EndMaintenance()
	is.NoErr(a.KeepPlace(a.ID()))
	is.Equal(place(), "")
	a.KeepWatched()
	is.Equal(place(), "")
	is.Equal(a.Streams.WatchedWorkers(), []string{a.worker.ID}) // no other node has it
	is.Equal(b.run("Hello").Status, store.Completed)
	a.KeepWatched()
	is.Equal(len(a.Streams.WatchedWorkers()), 0)
}

// TestWatchedGuest watches a worker on a node that does not have it. Another node executes a turn, and the
// first node hears nothing of its end, but gets the worker afterwards. The stream ends, and the client gets
// the turn when it continues.
func TestWatchedGuest(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	nodes := newNodes(t, 2)
	a, b := nodes[0], nodes[1]
	is.Equal(b.run("Hello").Status, store.Completed)
	before := a.workerStream(a.worker.ID, "")
	a.Streams.Guest(a.worker.ID)
	missed := b.run("Hello again")
	storetest.Exec(t, a.store, `UPDATE placements SET runner_id = ?`, a.ID())
	a.KeepWatched()
	is.Equal(len(a.Streams.WatchedWorkers()), 0)
	_, done, err := before.Next(t.Context())
	is.True(done || err != nil)
	before.Close()

	after := a.workerStream(a.worker.ID, "unknown")
	defer after.Close()
	a.KeepWatched()
	is.Equal(a.Streams.WatchedWorkers(), []string{a.worker.ID}) // the worker is here now
	for told := false; !told; {
		told = slices.ContainsFunc(a.next(after), func(e stream.Event) bool {
			return strings.Contains(string(e.Data), missed.ID) && strings.Contains(string(e.Data), `"finish"`)
		})
	}
}

// TestSlowNewLease takes the lease of a node away, and then lets the database answer so late that the node
// would have to stop its turns under the old lease. It keeps the new lease.
func TestSlowNewLease(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	log := &storetest.Log{}
	f := newNodes(t, 1, func(c *runner.Config) {
		c.NodeLease, c.Log = 3*time.Second, slog.New(slog.NewTextHandler(log, nil))
	})[0]
	old := f.ID()
	storetest.Exec(t, f.store, `DELETE FROM runners`)
	storetest.Exec(t, f.store, `DO LANGUAGE plpgsql 'BEGIN
		LOCK TABLE leaders;
		PERFORM pg_sleep(3);
	END'`)
	storetest.Eventually(t, "a new lease", func() bool { return f.ID() != old && f.Lease().Age < time.Second })
	read := func() [][]string {
		return storetest.RowsAt(t, storetest.DatabaseOf(f.store.Dir()), `SELECT id, expires_at FROM runners`)
	}
	first := read()
	row := first
	storetest.Eventually(t, "a renewal", func() bool {
		row = read()
		return len(row) > 0 && !slices.Equal(row[0], first[0])
	})
	is.Equal(row[0][0], f.ID())
	is.Equal(strings.Count(log.String(), "was not renewed"), 1)
}

// TestWrongClock starts a node whose clock differs from that of the database.
func TestWrongClock(t *testing.T) {
	t.Parallel()
	if !storetest.OnServer() {
		t.Skip("several nodes need a database on a server: .ci/postgres runs a command with one")
	}
	for name, tt := range map[string]struct {
		ahead time.Duration
		says  string
	}{
		"right":       {0, ""},
		"a bit wrong": {3 * time.Second, ""},
		"ahead":       {time.Minute, "the clock of this machine differs"},
		"behind":      {-time.Minute, "the clock of this machine differs"},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			st := storetest.Open(t, store.Options{Node: &store.Node{URL: "http://node.test", Version: "test"},
				Now: func() time.Time { return time.Now().Add(tt.ahead) }})
			f := fixtureOn(t, st)
			err := f.Start(t.Context())
			t.Cleanup(f.stop)
			if tt.says == "" {
				is.NoErr(err)
				is.Equal(f.Lease().Lost, false)
				return
			}
			is.True(err != nil && strings.Contains(err.Error(), tt.says))
		})
	}
}
