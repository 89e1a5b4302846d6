package runner_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/runner"
	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/ordertest"
	"journeyman/store/storetest"
)

// TestLowBudgetAgainstAnEndlessModel runs many turns at once against a model that never ends a
// turn. Each response calls a tool and is as long as the request permits.
func TestLowBudgetAgainstAnEndlessModel(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		price string
		limit string
	}{
		"dear":                    {`{"input":3,"output":15,"cacheWrite":3.75,"contextWindow":200000,"maxOutput":8000}`, "credits"},
		"dear, in a small window": {`{"input":3,"output":15,"contextWindow":6000,"maxOutput":800}`, "credits"},
		"cheap":                   {`{"input":0.01,"output":0.01,"contextWindow":200000,"maxOutput":8000}`, "steps"},
		"cheap, in a small one":   {`{"input":0.01,"output":0.01,"contextWindow":6000,"maxOutput":800}`, "steps"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			turns := storetest.Rounds(50, 4)
			p := newWire(t, func(a asked) said {
				s := said{text: "more and more", in: int64(a.bytes / 4), out: int64(a.maxTokens)}
				if a.tools > 0 {
					s.calls = []saidCall{{fmt.Sprintf("call_%d", a.number), "it", fmt.Sprintf(`{"why":"%s%d"}`, strings.Repeat("because ", 100), a.number)}} // equal calls are a loop
				}
				return s
			})
			f := newFixture(t, withModel(p.openModel(t, "openai:endless")), withPrices(t, `{"openai:endless":`+tt.price+`}`),
				withTools(gives("it", `"`+strings.Repeat("result ", 400)+`"`)),
				func(c *runner.Config) { c.Concurrency, c.Budgets = turns, runner.DefaultBudgets() })
			var accepted []store.Turn
			for range turns {
				accepted = append(accepted, f.acceptTurn(store.NewTurn{Caller: f.owner, WorkerID: f.worker.ID, Input: "Go on for ever.", Budget: store.BudgetLow}))
			}
			limits := runner.DefaultBudgets()[store.BudgetLow]
			summaries := 0
			for _, turn := range accepted {
				turn = f.wait(turn)
				is.Equal(turn.Status, store.Completed)
				is.Equal(turn.IncompleteLimit, tt.limit)
				is.True(turn.OutputText != "") // the last call was made
				if spent := db.Credits(turn.Usage.Cost()); spent > limits.Credits {
					t.Errorf("spent %v credits", spent)
				}
				ordertest.AtMost(is, turn.Usage.Steps, limits.Steps+1) // the turn made too many steps
				for _, m := range f.compactions(turn) {
					if m.Kind == store.CompactionSummary {
						summaries++
					}
				}
			}
			t.Logf("%d requests, %d summaries", len(p.seen()), summaries)
			f.nothingReserved()
		})
	}
}

// nothingReserved waits until no reservation is left. A turn's last reservation is released shortly
// after the end of the turn becomes visible.
func (f *fixture) nothingReserved() {
	f.t.Helper()
	storetest.Eventually(f.t, "no credits are reserved", func() bool {
		_, _, _, reserved := f.Kept()
		return reserved == 0
	})
}
