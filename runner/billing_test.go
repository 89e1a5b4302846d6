package runner_test

import (
	"context"
	"testing"

	"github.com/matryer/is"

	"journeyman/runner"
	"journeyman/runner/model"
	"journeyman/store/db"
	"journeyman/store/ordertest"
)

// TestBilledCostHoldsTheBudget runs a model that the price table does not list. The provider's bill
// is charged, and limits the turn like a listed price.
func TestBilledCostHoldsTheBudget(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	const each = db.NanosPerCredit / 2
	m := &fakeModel{fn: func(_ context.Context, req model.Request, emit func(model.Delta)) (model.Response, error) {
		r := calls(emit, stepOf(req), "update_plan", `{"items":[]}`)
		if req.Final {
			r.Parts[0] = model.Part{Type: model.PartText, Text: "enough"}
			emit(model.Delta{Type: model.PartText, Text: "enough"})
			r.Finish = model.FinishStop
		}
		r.Usage = model.Usage{InputTokens: 1000, OutputTokens: 100, Cost: each, Billed: true}
		return r, nil
	}}
	f := newFixture(t, withModel(m), withBudget(runner.Limits{Credits: 15}))
	turn := f.run("go")
	is.Equal(turn.IncompleteLimit, "credits")
	is.Equal(turn.Usage.ModelCost, turn.Usage.Steps*each) // to the nano-dollar
	ordertest.Above(is, turn.Usage.Steps, 1)              // the rates are known after the first call
	ordertest.AtMost(is, turn.Usage.ModelCost, 15*db.NanosPerCredit)
	f.checkSums()
}
