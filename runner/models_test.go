package runner_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/runner"
	"journeyman/runner/model"
	"journeyman/store"
	"journeyman/store/workers"
)

// shelf is a catalogue of models by name.
type shelf map[string]model.Model

func (s shelf) Check(name string) error {
	if s[name] == nil {
		return errors.New("must be one of the shelf")
	}
	return nil
}

func (s shelf) Open(name string) (model.Model, error) { return s[name], s.Check(name) }

func (s shelf) Connected(p model.Provider, name string) (model.Model, error) { return p.Open(name) }

func withModels(s shelf) setup { return func(c *runner.Config) { c.Models = s } }

// named returns a model that answers with its name.
func named(name string) *fakeModel {
	return &fakeModel{name: name, fn: func(_ context.Context, _ model.Request, emit func(model.Delta)) (model.Response, error) {
		r := answer(emit, "I am "+name)
		r.Model = name + "-2026-11"
		r.Usage = model.Usage{InputTokens: 1e6}
		return r, nil
	}}
}

// TestWorkersModel runs workers with the server's model and with their own.
func TestWorkersModel(t *testing.T) {
	t.Parallel()
	f := newFixture(t, withModel(named("own")), withModels(shelf{"dear": named("dear"), "cheap": named("cheap")}),
		withPrices(t, `{"own":{"input":1,"output":1},"dear":{"input":5,"output":1},"cheap":{"input":0.1,"output":1}}`))
	for choice, want := range map[string]struct {
		name string
		cost int64 // nano-dollars
	}{
		"":      {"own", 1e9},
		"dear":  {"dear", 5e9},
		"cheap": {"cheap", 1e8},
	} {
		t.Run(want.name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			w := f.newWorker(workers.NewWorker{Title: "W", Settings: workers.Settings{Model: choice}})
			for range 2 { // a later turn uses the same model
				turn := f.acceptTurn(store.NewTurn{Caller: f.owner, WorkerID: w.ID, Input: "who?", Budget: store.BudgetUnlimited})
				turn = f.wait(turn)
				is.Equal(turn.OutputText, "I am "+want.name)
				is.Equal(turn.Model, want.name+"-2026-11") // the name in the provider's response
				is.Equal(turn.Usage.ModelCost, want.cost)  // at that model's price
			}
		})
	}
}

// TestModelUnavailable removes a model after a turn was accepted with it.
func TestModelUnavailable(t *testing.T) {
	t.Parallel()
	for name, setups := range map[string][]setup{
		"another configuration": {withModels(shelf{})},
		"no models at all":      nil,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			own := named("own")
			f := newFixture(t, append(setups, withModel(own))...)
			w := f.newWorker(workers.NewWorker{Title: "W", Settings: workers.Settings{Model: "gone"}})
			turn := f.acceptTurn(store.NewTurn{Caller: f.owner, WorkerID: w.ID, Input: "who?", Budget: store.BudgetStandard})
			u := f.read(f.Streams.Turn(turn))
			turn = f.wait(turn)
			is.Equal(turn.Status, store.Failed)
			is.Equal(turn.Failure.Code, "model_unavailable")
			is.True(strings.Contains(turn.Failure.Message, "gone is not available: must be"))
			is.Equal(len(own.seen()), 0) // no other model is asked instead
			is.True(strings.Contains(fmt.Sprint(u.errors), "gone is not available"))
			// The worker can run again with another model.
			none := ""
			_, err := f.store.Workers.UpdateWorker(t.Context(), f.owner, w.ID, workers.Patch{Model: &none})
			is.NoErr(err)
			turn = f.acceptTurn(store.NewTurn{Caller: f.owner, WorkerID: w.ID, TaskID: turn.TaskID, Input: "and now?", Budget: store.BudgetStandard})
			is.Equal(f.wait(turn).OutputText, "I am own")
		})
	}
}
