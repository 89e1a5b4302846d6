package store_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/storetest"
)

// TestWritesOfATaskMeet runs many operations on few tasks at once. Callers add turns, cancel and
// archive, while runners claim, journal and end turns. Afterwards the sums, the queue and the order
// of turns must be right, and each request must have one turn.
func TestWritesOfATaskMeet(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	f.webhook("https://hooks.example.com/tasks")
	f.setCap(1e6)
	f.startRunner("r")
	var tasks []string
	for range 3 {
		tasks = append(tasks, f.accept(f.turn()).TaskID)
	}
	rounds := storetest.Rounds(40, 15)
	var all sync.WaitGroup
	for i := range 6 {
		all.Go(func() {
			for n := range rounds {
				f.check(f.addTurns(tasks, fmt.Sprint(i/2, " ", n))) // equal requests in pairs
				if n%8 == i {
					f.check(errOf(f.AbortTask(context.Background(), f.owner.Caller, tasks[rand.N(len(tasks))])))
				}
			}
		})
		all.Go(func() {
			for range rounds * 2 {
				f.check(f.carryOut("r"))
			}
		})
	}
	all.Wait()
	f.checkCounters()
	is.Equal(f.count(`SELECT count(*) FROM idempotency`), int64(3*rounds)) // one result per request
	is.Equal(f.count(`SELECT count(*) FROM turns`), int64(3*rounds+3))     // and one turn

	for f.Queued() > 0 { // no turn waits behind an ended turn
		is.NoErr(f.carryOut("r"))
	}
	f.checkCounters()
	is.Equal(f.count(`SELECT count(*) FROM turns WHERE completed_at IS NULL`), int64(0))
}

// addTurns adds a turn to one of the tasks, once for each key.
func (f *fixture) addTurns(tasks []string, key string) error {
	n := f.turn()
	n.WorkerID, n.TaskID = "", tasks[len(key)*int(key[len(key)-1])%len(tasks)]
	n.IdempotencyKey = db.IdempotencyKey{KeyID: f.owner.KeyID, Key: key, Hash: hash(key)}
	return errOf(f.CreateTurn(context.Background(), n))
}

// carryOut claims up to two turns and ends them, as a runner does.
func (f *fixture) carryOut(runner string) error {
	ctx := context.Background()
	claims, err := f.ClaimTurns(ctx, runner, 2, 2)
	for _, c := range claims {
		if err != nil {
			break
		}
		now := f.clock.now()
		step := store.Step{Parts: []store.Part{{Type: store.PartText, Text: "Hello"}}, Finish: "stop", Model: "offline",
			StartedAt: now, CompletedAt: now, Usage: store.Usage{InputTokens: 3, OutputTokens: 2, ModelCost: 7}}
		last := step
		last.Seq = 1
		err = errors.Join(f.RenewLease(ctx, runner, time.Hour), f.BeginCall(ctx, c, 3, 7), f.JournalStep(ctx, c, step),
			f.JournalCall(ctx, c, store.Call{State: store.CallCompleted, Output: []byte(`"ok"`), Cost: 11, StartedAt: now,
				CompletedAt: now}, nil, []store.Source{{ID: db.NewID("src", now), URL: "https://example.com"}}))
		if err == nil {
			out := store.Outcome{Status: store.Completed, OutputText: "Hello", Duration: time.Second}
			if c.Num%4 == 0 {
				out.Status, out.Failure = store.Failed, &store.Failure{Code: "refused", Message: "No."}
			}
			_, err = f.FinishTurn(ctx, c, &last, out)
		}
	}
	return err
}

// TestClaimWithLostResponse commits a claim but returns an error to the runner. When the commit
// is detected, no runner executes the turn. So EndLeases puts it back into the queue.
func TestClaimWithLostResponse(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	begun := 0
	f.OnClaimed(func(store.Claim) { begun++ })
	turn := f.accept(f.turn())
	f.startRunner("r")
	settle := f.LoseAnswers()
	claims, err := f.ClaimTurns(t.Context(), "r", 1, 1)
	is.True(err != nil)
	is.Equal(len(claims), 0)
	settle()
	is.Equal(begun, 0) // the runner has given its slot to another turn
	is.Equal(f.reread(turn).Status, store.Running)
	is.NoErr(f.EndLeases(t.Context()))
	is.Equal(f.reread(turn).Status, store.Pending)
	f.checkCounters()
	f.finish(f.claimOne("r"))
	is.Equal(begun, 1)
	f.checkCounters()
}

// TestRepeatedWrites commits writes of a turn but returns an error to the runner, which makes them
// again. Each must count once.
func TestRepeatedWrites(t *testing.T) {
	t.Parallel()
	storetest.NeedServer(t)
	is := is.New(t)
	f := newFixture(t)
	c := running(f)
	turn := c.Turn
	now := f.clock.now()
	step := store.Step{Parts: []store.Part{{Type: store.PartText, Text: "Hello"}}, Finish: "stop", Model: "m",
		StartedAt: now, CompletedAt: now.Add(time.Second), Usage: store.Usage{InputTokens: 3, ModelCost: 7}}
	last := step
	last.Seq = 1
	call := store.Call{State: store.CallCompleted, Output: []byte(`"ok"`), Cost: 11, StartedAt: now, CompletedAt: now}
	var ended store.Turn
	f.isRepeatable(func() error { return f.JournalStep(t.Context(), c, step) })
	f.isRepeatable(func() error { return f.JournalCall(t.Context(), c, call, nil, nil) })
	f.isRepeatable(func() (err error) {
		ended, err = f.FinishTurn(t.Context(), c, &last, store.Outcome{Status: store.Completed, OutputText: "Hello",
			Duration: time.Second})
		return err
	})
	is.Equal(ended, f.reread(turn))
	is.Equal(ended.Usage.Cost(), int64(25))
	f.checkCounters()
	other := step
	other.StartedAt = now.Add(time.Minute)
	is.True(f.JournalStep(t.Context(), c, other) != nil)
	is.Equal(errOf(f.FinishTurn(t.Context(), c, nil, store.Outcome{Status: store.Failed})), store.ErrClaimLost)
}

// isRepeatable loses the answer of a write, and makes the write again.
func (f *fixture) isRepeatable(write func() error) {
	f.t.Helper()
	is := is.New(f.t)
	settle := f.LoseAnswers()
	is.True(write() != nil)
	settle()
	is.NoErr(write())
}

// TestLateReturn returns a turn that its runner has claimed again since. The newer claim stays.
func TestLateReturn(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	first := running(f)
	turn := first.Turn
	is.NoErr(f.ReturnTurn(t.Context(), first))
	is.Equal(f.reread(turn).Status, store.Pending)
	again := f.claimOne("r")
	is.NoErr(f.ReturnTurn(t.Context(), first)) // late
	is.Equal(f.reread(turn).Status, store.Running)
	f.finish(again)
	f.checkCounters()
}
