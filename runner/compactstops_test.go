package runner_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/runner"
	"journeyman/runner/model"
	"journeyman/store"
)

// TestAttachedFiles checks that a full window replaces attached files by their names. First the
// files of earlier turns are replaced. The newest files follow only if necessary.
func TestAttachedFiles(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	s := &small{}
	f := newSmall(t, s, withTools(gives("it", `1`)))
	attached := func(task, name string, size int) store.Turn {
		kept, err := f.Keep(t.Context(), f.owner.OrganizationID, name, strings.NewReader("fact-7 "+strings.Repeat("line of a file\n", size/15)), 1<<20)
		is.NoErr(err)
		n := store.NewTurn{Caller: f.owner, WorkerID: f.worker.ID, TaskID: task, Input: "Read " + name, Budget: store.BudgetStandard}
		is.NoErr(f.Attach(f.ctx(), &n, []store.File{kept}))
		turn := f.wait(f.acceptTurn(n))
		is.Equal(turn.Failure, nil)
		return turn
	}
	first := attached("", "one.txt", 16_000)
	is.True(s.so().last().has("fact-7 line of a file"))
	is.Equal(len(f.compactions(first)), 0)
	second := attached(first.TaskID, "two.txt", 16_000)
	is.Equal(kinds(f.compactions(second)), []store.CompactionKind{store.CompactionFiles})
	newest := s.so().last()
	is.True(strings.Contains(newest.last().text, "fact-7 line of a file")) // the new file is sent
	is.True(newest.has("one.txt"))                                         // the old file is named
	is.Equal(strings.Count(newest.messages[0].text, "line of a file"), 0)
	attached(second.TaskID, "three.txt", 60_000) // larger than the whole window
	newest = s.so().last()
	is.True(newest.has("Read three.txt"))
	is.True(!newest.has("line of a file"))
	is.Equal(s.so().refused, 0)
}

// TestStoppedWhileSummarising interrupts a turn while the model writes its summary.
func TestStoppedWhileSummarising(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		limits runner.Limits
		abort  bool
		status store.Status
		kinds  []store.CompactionKind
	}{
		"cancelled":   {abort: true, status: store.Aborted},
		"out of time": {limits: runner.Limits{Time: 1500 * time.Millisecond}, status: store.Completed, kinds: []store.CompactionKind{store.CompactionOmission}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			writing := make(chan struct{}, 1)
			s := &small{window: smallWindow}
			p := newWire(t, func(a asked) said {
				if strings.HasPrefix(a.system, "You keep the record") {
					writing <- struct{}{}
					<-t.Context().Done() // the client closes the connection before this returns
				}
				return s.think(a)
			})
			f := newFixture(t, withModel(p.openModel(t, "openai:small")), withPrices(t, smallPrices),
				func(c *runner.Config) {
					c.Budgets = map[store.Budget]runner.Limits{store.BudgetStandard: {}, store.BudgetLow: tt.limits}
				})
			last := f.run("Remember fact-0. " + strings.Repeat("Some more words. ", 900))
			turn := f.acceptTurn(store.NewTurn{Caller: f.owner, WorkerID: f.worker.ID, TaskID: last.TaskID, Budget: store.BudgetLow,
				Input: "Remember fact-1. " + strings.Repeat("Some more words. ", 700)})
			until(t, writing, "the summary is asked for")
			if tt.abort {
				f.abort(turn)
			}
			turn = f.wait(turn)
			is.Equal(turn.Status, tt.status)
			is.Equal(kinds(f.compactions(turn)), tt.kinds)
			if !tt.abort {
				is.Equal(turn.IncompleteLimit, "time")
				is.True(s.so().last().has("earlier steps of this task were left out"))
			}
			f.nothingReserved()
		})
	}
}

// TestNoSummaryForAFailingProvider checks that a turn ends with the provider's error if the model
// answers no request.
func TestNoSummaryForAFailingProvider(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	s := &small{window: smallWindow}
	var tries atomic.Int64
	p := newWire(t, func(a asked) said {
		if strings.HasPrefix(a.system, "You keep the record") {
			tries.Add(1)
			return said{status: 503, body: `{"error":{"message":"come back later"}}`}
		}
		return s.think(a)
	})
	f := newFixture(t, withModel(p.openModel(t, "openai:small")), withPrices(t, smallPrices), withPatience(1))
	last := f.run("Remember fact-0. " + strings.Repeat("Some more words. ", 900))
	turn := f.run("Remember fact-1. "+strings.Repeat("Some more words. ", 700), last.TaskID)
	is.Equal(turn.Status, store.Failed)
	is.Equal(turn.Failure.Code, "503")
	is.True(turn.Failure.Retryable)
	is.Equal(tries.Load(), int64(5))
	is.Equal(len(f.compactions(turn)), 0)
}

// TestPanicWhileSummarising uses a model that panics during a summary. The turn fails, and no
// reservation remains.
func TestPanicWhileSummarising(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	m := &fakeModel{fn: func(_ context.Context, req model.Request, emit func(model.Delta)) (model.Response, error) {
		if strings.HasPrefix(req.Instructions, "You keep the record") {
			panic("no summary")
		}
		return answer(emit, "noted"), nil
	}}
	f := newFixture(t, withModel(m), withPrices(t, `{"fake":{"input":1,"output":2,"contextWindow":8000,"maxOutput":1000}}`))
	first := f.run("Remember fact-0. " + strings.Repeat("Some more words. ", 900))
	turn := f.run("Remember fact-1. "+strings.Repeat("Some more words. ", 2500), first.TaskID)
	is.Equal(turn.Status, store.Failed)
	_, _, _, reserved := f.Kept()
	is.Equal(reserved, 0)
}
