package store_test

import (
	"context"
	"errors"
	neturl "net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store"
	"journeyman/store/postgres/pgtest"
	"journeyman/store/storetest"
)

// TestTreesAreCancelledWithoutDeadlock cancels turns that wait for children, while the children end
// and journal. No write waits for another one in a circle, which PostgreSQL resolves only after a second.
func TestTreesAreCancelledWithoutDeadlock(t *testing.T) {
	t.Parallel()
	storetest.NeedServer(t)
	is := is.New(t)
	url := pgtest.URL(t)
	f := newFixtureWith(t, store.Options{Database: url})
	f.setCap(1e6)
	f.startRunner("r")
	for range 15 {
		root := f.accept(f.turn())
		children := f.delegate(f.claimOne("r"), 3)
		var all sync.WaitGroup
		all.Go(func() {
			f.check(errOf(f.AbortTask(context.Background(), f.owner.Caller, root.TaskID)))
		})
		for _, c := range children {
			all.Go(func() { f.check(f.endChild(c)) })
		}
		all.Wait()
		is.Equal(f.reread(root).Status, store.Aborted)
	}
	f.checkCounters()
	is.NoErr(f.Close()) // the server then adds the figures of all connections to its statistics
	u, err := neturl.Parse(url)
	is.NoErr(err)
	var deadlocks int64
	is.NoErr(pgtest.Open(t, "postgres").QueryRow(`SELECT deadlocks FROM pg_stat_database WHERE datname = $1`,
		strings.TrimPrefix(u.Path, "/")).Scan(&deadlocks))
	is.Equal(deadlocks, int64(0))
}

// delegate starts children of a claimed turn, and suspends the turn. It returns the claims of the
// children.
func (f *fixture) delegate(c store.Claim, n int) (children []store.Claim) {
	f.t.Helper()
	step := store.Step{Finish: "tool-calls", Model: "m", StartedAt: f.clock.now(), CompletedAt: f.clock.now()}
	for range n {
		step.Parts = append(step.Parts, store.Part{Type: store.PartToolCall, CallID: "c", ToolName: "run_worker",
			Input: []byte(`{}`)})
	}
	f.check(f.JournalStep(f.ctx(), c, step))
	caller, err := f.TurnCaller(f.ctx(), c.Turn)
	f.check(err)
	for i := range n {
		_, err := f.StartChild(f.ctx(), store.CallPlace{Turn: c.Turn, RunnerID: "r", Call: int64(i)},
			store.NewTurn{Caller: caller, WorkerID: f.worker.ID, Input: "part", Budget: store.BudgetLow})
		f.check(err)
	}
	started, err := f.Children(f.ctx(), c.Turn)
	f.check(err)
	_, err = f.SuspendForChildren(f.ctx(), c, started)
	f.check(err)
	return f.claim("r", n)
}

// endChild journals a step of a child and ends it, unless its parent was cancelled before.
func (f *fixture) endChild(c store.Claim) error {
	ctx, now := context.Background(), f.clock.now()
	step := store.Step{Parts: []store.Part{{Type: store.PartText, Text: "Hello"}}, Finish: "stop", Model: "m",
		StartedAt: now, CompletedAt: now, Usage: store.Usage{InputTokens: 3, ModelCost: 7}}
	last := step
	last.Seq = 1
	err := f.JournalStep(ctx, c, step)
	if err == nil {
		_, err = f.FinishTurn(ctx, c, &last, store.Outcome{Status: store.Completed, OutputText: "Hello",
			Duration: time.Second})
	}
	if errors.Is(err, store.ErrClaimLost) {
		return nil
	}
	return err
}
