package runner_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/matryer/is"

	"journeyman/runner"
	"journeyman/runner/model"
	"journeyman/store"
	"journeyman/store/ordertest"
	"journeyman/store/people"
	"journeyman/store/storetest"
)

// TestConcurrencyIsExact accepts turns from many clients at once. Some turns are claimed at
// acceptance, and the others wait in the queue. All of them share the same slots.
func TestConcurrencyIsExact(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	const concurrency, clients, each = 3, 8, 25
	var running, most, atOnce atomic.Int64
	full := make(chan struct{}) // closed once all slots are taken
	fill := sync.OnceFunc(func() { close(full) })
	m := &fakeModel{fn: func(ctx context.Context, _ model.Request, emit func(model.Delta)) (model.Response, error) {
		n := running.Add(1)
		defer running.Add(-1)
		if n == concurrency {
			fill()
		}
		select { // a turn that ends too early would release its slot
		case <-full:
		case <-ctx.Done():
			return model.Response{}, ctx.Err()
		}
		for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
		}
		for range 50 {
			runtime.Gosched()
		}
		return answer(emit, "done"), nil
	}}
	f := newFixture(t, withModel(m), func(c *runner.Config) { c.Concurrency = concurrency })
	var all sync.WaitGroup
	var mu sync.Mutex
	var turns []store.Turn
	for range clients {
		all.Go(func() {
			for range each {
				a, err := f.store.CreateTurn(context.Background(), store.NewTurn{Caller: f.owner, WorkerID: f.worker.ID, Input: "go", Budget: store.BudgetStandard})
				if err != nil {
					t.Error(err)
					return
				}
				f.Wake()
				if a.Turn.Status == store.Running {
					atOnce.Add(1)
				}
				mu.Lock()
				turns = append(turns, a.Turn)
				mu.Unlock()
			}
		})
	}
	all.Wait()
	for _, turn := range turns {
		turn = f.wait(turn)
		is.Equal(turn.OutputText, "done")
		is.Equal(turn.Claims, int64(1))
	}
	is.Equal(len(turns), clients*each)
	is.Equal(most.Load(), int64(concurrency))
	ordertest.AtLeast(is, atOnce.Load(), concurrency)     // the first turns find free slots
	ordertest.Below(is, atOnce.Load(), int64(len(turns))) // and the others must queue
	is.Equal(f.store.Queued(), int64(0))
}

// TestSlotIsReleased runs more turns than there are slots, one after the other. Each turn is
// claimed at acceptance.
func TestSlotIsReleased(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t, withModel(says("done")), func(c *runner.Config) { c.Concurrency = 1 })
	var task string
	for i := range 10 {
		storetest.Eventually(t, "the slot to be free", func() bool { return f.Running() == 0 })
		n := store.NewTurn{Caller: f.owner, WorkerID: f.worker.ID, Input: "go", Budget: store.BudgetStandard}
		if i%2 == 1 { // every other turn is the next of its task
			n.WorkerID, n.TaskID = "", task
		}
		turn := f.acceptTurn(n)
		is.Equal(turn.Status, store.Running)
		task = turn.TaskID
		is.Equal(f.wait(turn).OutputText, "done")
	}
	f.stop()
	is.Equal(f.accept("go").Status, store.Pending) // a stopped runner claims nothing
}

// TestStopWhileAccepting stops runners while clients keep creating turns. No turn is lost, and a
// stop does not count as an interruption: three interruptions would end a turn.
func TestStopWhileAccepting(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	m := &fakeModel{fn: func(ctx context.Context, _ model.Request, _ func(model.Delta)) (model.Response, error) {
		<-ctx.Done()
		return model.Response{}, ctx.Err()
	}}
	f := newFixture(t, withModel(m))
	f.stop()
	var mu sync.Mutex
	var turns []store.Turn
	count := func() int {
		mu.Lock()
		defer mu.Unlock()
		return len(turns)
	}
	accept := func() {
		for range 15 {
			a, err := f.store.CreateTurn(context.Background(), store.NewTurn{Caller: f.owner, WorkerID: f.worker.ID, Input: "go", Budget: store.BudgetStandard})
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			turns = append(turns, a.Turn)
			mu.Unlock()
		}
	}
	for round := range 6 {
		// There are more slots than turns, so the queue becomes empty, and turns are claimed at
		// acceptance.
		r := f.successor(withModel(m), func(c *runner.Config) { c.Concurrency = 1000 })
		storetest.Eventually(t, "the queue to be empty", func() bool { return f.store.Queued() == 0 })
		var accepting sync.WaitGroup
		for range 4 {
			accepting.Go(accept)
		}
		storetest.Eventually(t, "turns to be accepted", func() bool { return count() >= 60*round+30 })
		r.stop()
		accepting.Wait()
		is.Equal(r.Running(), 0)
		left, err := f.store.RunningTurns(t.Context())
		is.NoErr(err)
		is.Equal(left, int64(0)) // turns without a runner
	}
	atOnce := slices.IndexFunc(turns, func(turn store.Turn) bool { return turn.Status == store.Running })
	ordertest.AtLeast(is, atOnce, 0) // no turn was claimed at acceptance
	last := f.successor(withModel(says("done")))
	for _, turn := range turns {
		is.Equal(last.wait(turn).OutputText, "done")
	}
}

// TestKillAfterAcceptance ends the process after a turn was claimed at acceptance.
func TestKillAfterAcceptance(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	m, begun := blocked()
	f := newFixture(t, withModel(m))
	turn := f.accept("go")
	is.Equal(turn.Status, store.Running)
	g := f.crash(withModel(says("done"))) // the client has its answer, independent of the runner
	until(t, begun, "the model is asked")
	g.start()
	turn = g.wait(turn)
	is.Equal(turn.OutputText, "done")
	is.Equal(turn.Claims, int64(2))
	is.Equal(g.read(g.taskStream(turn, "")).messages(), g.messages(turn)[1:])
}

// TestStrangersLeaveSlotsToMembers lets more turns of strangers wait than there are slots. They get a
// quarter of the slots, and members' turns run at once.
func TestStrangersLeaveSlotsToMembers(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	var strangers, most atomic.Int64
	hold := make(chan struct{})
	m := &fakeModel{fn: func(ctx context.Context, req model.Request, emit func(model.Delta)) (model.Response, error) {
		if strings.Contains(fmt.Sprint(req.Messages), "slowly") {
			if n := strangers.Add(1); n > most.Load() {
				most.Store(n)
			}
			defer strangers.Add(-1)
			select {
			case <-hold:
			case <-ctx.Done():
				return model.Response{}, ctx.Err()
			}
		}
		return answer(emit, "done"), nil
	}}
	f := newFixture(t, withModel(m), func(c *runner.Config) { c.Concurrency = 8 })
	var slow []store.Turn
	for range 20 {
		slow = append(slow, f.acceptTurn(store.NewTurn{Caller: people.Caller{OrganizationID: f.owner.OrganizationID,
			Trigger: people.TriggerEmail}, WorkerID: f.worker.ID, Input: "slowly", Budget: store.BudgetStandard}))
	}
	storetest.Eventually(t, "strangers' turns to run", func() bool { return strangers.Load() == 2 })
	for range 20 { // more than the other slots
		is.Equal(f.wait(f.accept("go")).OutputText, "done")
	}
	is.Equal(strangers.Load(), int64(2))
	close(hold)
	for _, turn := range slow {
		is.Equal(f.wait(turn).OutputText, "done")
	}
	is.Equal(most.Load(), int64(2))
	storetest.Eventually(t, "all slots to be free", func() bool { return f.Running() == 0 })
}
