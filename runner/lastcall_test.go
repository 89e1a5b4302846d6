package runner_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/runner"
	"journeyman/store"
	"journeyman/store/ordertest"
	"journeyman/store/workers"
)

// TestLastEnd checks the bounds of the last call with each time budget.
func TestLastEnd(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	for name, tt := range map[string]struct{ budget, left, bound time.Duration }{
		"no time budget":             {0, 0, 5 * time.Minute},
		"tiny":                       {6 * time.Second, 5 * time.Second, 5 * time.Second},
		"tiny, nearly out of time":   {6 * time.Second, time.Second, 5 * time.Second},
		"tiny, out of time":          {6 * time.Second, 0, 5 * time.Second},
		"low":                        {5 * time.Minute, 4 * time.Minute, time.Minute},
		"standard":                   {30 * time.Minute, 20 * time.Minute, 5 * time.Minute},
		"standard, near its end":     {30 * time.Minute, time.Minute, 2 * time.Minute},
		"standard, out of time":      {30 * time.Minute, 0, time.Minute},
		"a day":                      {24 * time.Hour, 23 * time.Hour, 5 * time.Minute},
		"a day, out of time":         {24 * time.Hour, 0, time.Minute},
		"past its end for a while":   {30 * time.Minute, -30 * time.Second, 30 * time.Second},
		"past the time of that call": {30 * time.Minute, -2 * time.Minute, -time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			is.Equal(runner.LastEnd(now, tt.budget, now.Add(tt.left)).Sub(now), tt.bound)
		})
	}
}

// TestSlowLastCalls lets a model server hang in each kind of call that can be the last one. The turn ends within its
// time budget and the bound of the last call, with the text so far.
func TestSlowLastCalls(t *testing.T) {
	t.Parallel()
	calling := func(n int) said {
		return said{calls: []saidCall{{fmt.Sprint("c", n), "it", fmt.Sprintf(`{"n":%d}`, n)}}, in: 10, out: 5}
	}
	slow := said{text: "so far", hangs: true}
	prices := func(t *testing.T) setup {
		return withPrices(t, `{"openai:m":{"input":1,"output":10,"maxOutput":8000}}`)
	}
	free := func(*testing.T) setup { return func(*runner.Config) {} }
	for name, tt := range map[string]struct {
		limits runner.Limits
		prices func(*testing.T) setup
		think  func(a asked) said
		limit  string
		most   time.Duration
	}{
		"steps of a small time budget": {runner.Limits{Steps: 2, Time: 20 * time.Second}, free, func(a asked) said {
			if a.number < 2 {
				return calling(a.number)
			}
			return slow
		}, "steps", 5 * time.Second},
		"credits": {runner.Limits{Credits: 2, Time: 25 * time.Second}, prices, func(a asked) said {
			if a.number == 0 {
				s := calling(0)
				s.in, s.out = 100, 900
				return s
			}
			return slow
		}, "credits", 5 * time.Second},
		"time": {runner.Limits{Time: time.Second}, free, func(asked) said { return slow }, "time", 6 * time.Second},
		"told text calls": {runner.Limits{Time: 2 * time.Second}, free, func(a asked) said {
			if a.number < 2 {
				return said{text: badCall, in: 10, out: 5}
			}
			return slow
		}, "time", 7 * time.Second},
		"told text calls at the limit of steps": {runner.Limits{Steps: 1, Time: 20 * time.Second}, free, func(a asked) said {
			if a.number < 1 {
				return said{text: badCall, in: 10, out: 5}
			}
			return slow
		}, "steps", 5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			w := newWire(t, tt.think)
			f := newFixture(t, withModel(w.openModel(t, "openai:m")), withTools(gives("it", `1`)), tt.prices(t), withBudget(tt.limits))
			begun := time.Now()
			turn := f.wait(f.accept("go"))
			took := time.Since(begun)
			is.Equal([]any{turn.Status, turn.IncompleteLimit, turn.OutputText}, []any{store.Completed, tt.limit, "so far"})
			if took > tt.most+4*time.Second { // the machine may be busy
				t.Errorf("ended after %v, the bound is %v", took, tt.most)
			}
		})
	}
}

// TestSlowRepairs lets the model hang when it is told, in its last call, that its answer does not match the schema.
func TestSlowRepairs(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	w := newWire(t, func(a asked) said {
		if a.number == 0 {
			return said{text: `{"n":"x"}`, in: 10, out: 5}
		}
		return said{text: `{"n":1}`, hangs: true}
	})
	f := newFixture(t, withModel(w.openModel(t, "openai:m")), withBudget(runner.Limits{Steps: 1, Time: 20 * time.Second}))
	worker := f.newWorker(workers.NewWorker{OutputSchema: json.RawMessage(
		`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`)})
	begun := time.Now()
	turn := f.wait(f.acceptTurn(store.NewTurn{Caller: f.owner, WorkerID: worker.ID, Input: "go", Budget: store.BudgetStandard}))
	is.Equal([]any{turn.Status, turn.IncompleteLimit}, []any{store.Completed, "steps"})
	ordertest.Below(is, time.Since(begun), 10*time.Second) // it is 5 seconds; the machine may be busy
	is.True(strings.Contains(turn.OutputText, `"n"`))
}

// TestSlowSummaries lets the model hang when it writes a summary. At the end of the time budget a note replaces it,
// and the turn makes its last call.
func TestSlowSummaries(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	s := &small{window: smallWindow}
	p := newWire(t, func(a asked) said {
		r := s.think(a)
		r.hangs = strings.HasPrefix(a.system, "You keep the record")
		return r
	})
	f := newFixture(t, withModel(p.openModel(t, "openai:small")), withPrices(t, smallPrices), withBudget(runner.Limits{Time: 4 * time.Second}))
	turn, begun := f.run("Remember fact-0."), time.Now()
	for range 60 {
		begun = time.Now()
		if turn = f.run(strings.Repeat("Some more words. ", 60), turn.TaskID); turn.IncompleteLimit != "" {
			break
		}
	}
	is.Equal([]any{turn.Status, turn.IncompleteLimit}, []any{store.Completed, "time"})
	is.True(strings.HasPrefix(turn.OutputText, "Noted."))
	ordertest.Below(is, time.Since(begun), 14*time.Second) // it is little more than 4 seconds
	is.Equal(kinds(f.compactions(turn))[0], store.CompactionOmission)
}
