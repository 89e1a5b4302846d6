package runner_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/runner"
	"journeyman/runner/model"
	"journeyman/store/storetest"
)

// TestModelsWithoutPriceAreNamed checks that the log names a model without a price once, that other models are not
// named, and that the findings of the page System and of doctor say it.
func TestModelsWithoutPriceAreNamed(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		prices, byDefault string
		warned            int
		finding           string
	}{
		"no price":      {`{}`, "", 1, "price: no price: caps do not apply; --prices or --default-price sets one (!)"},
		"a price":       {`{"fake": {"input": 1, "output": 1}}`, "", 0, "price: by the price table\n"},
		"a price of 0":  {`{"fake": {"input": 0, "output": 0}}`, "", 0, "price: by the price table\n"},
		"default price": {`{}`, "1,2", 0, "price: by --default-price\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			log := &storetest.Log{}
			m := &fakeModel{fn: func(_ context.Context, _ model.Request, emit func(model.Delta)) (model.Response, error) {
				r := answer(emit, "Done.")
				r.Usage = model.Usage{InputTokens: 1000, OutputTokens: 100}
				return r, nil
			}}
			f := newFixture(t, withModel(m), withPrices(t, tt.prices), func(c *runner.Config) {
				var err error
				c.Log = slog.New(slog.NewTextHandler(log, nil))
				c.Prices, err = c.Prices.WithDefault(tt.byDefault)
				is.NoErr(err)
			})
			turn := f.wait(f.accept("one"))
			f.wait(f.accept("two"))
			is.Equal(strings.Count(log.String(), `msg="model without a price" model=fake price="no price: caps do not apply`), tt.warned)
			is.True(strings.Contains(spellFindings(f.Models.Findings(t.Context(), f.owner.OrganizationID)), tt.finding))
			if tt.byDefault != "" {
				is.Equal(turn.Usage.ModelCost, int64(1000*1000+100*2000))
			}
		})
	}
}

// TestModelsFreeByAddressAreNamed checks that the log says once of a model in the private network that caps do not
// apply, because its server may forward to paid models, and says nothing if it has a line.
func TestModelsFreeByAddressAreNamed(t *testing.T) {
	t.Parallel()
	for prices, logged := range map[string]int{`{}`: 1, `{"127.0.0.1:gpt-9": {"input": 1, "output": 1}}`: 0} {
		is := is.New(t)
		log := &storetest.Log{}
		w := newWire(t, func(asked) said { return said{text: "fine", in: 10, out: 5} })
		f := newFixture(t, withModel(w.openModel(t, "openai:gpt-9")), withPrices(t, prices), func(c *runner.Config) {
			c.Log = slog.New(slog.NewTextHandler(log, nil))
		})
		f.run("one")
		f.run("two")
		is.Equal(strings.Count(log.String(), `level=INFO msg="model that is free by its address" model=openai:gpt-9 price="free: its server is on this `+
			`machine or in its private network; caps do not apply, also if it forwards to paid models, unless --prices has them"`), logged)
	}
}

// TestDefaultPriceHoldsTheBudget checks that the default price limits a turn as a line of the table does.
func TestDefaultPriceHoldsTheBudget(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	m := &fakeModel{fn: func(_ context.Context, req model.Request, emit func(model.Delta)) (model.Response, error) {
		if req.Final {
			return answer(emit, "enough"), nil
		}
		r := calls(emit, stepOf(req), "update_plan", `{"items":[]}`)
		r.Usage = model.Usage{InputTokens: 100_000, OutputTokens: 1000}
		return r, nil
	}}
	f := newFixture(t, withModel(m), withPrices(t, `{}`), withBudget(runner.Limits{Credits: 100}), func(c *runner.Config) {
		var err error
		c.Prices, err = c.Prices.WithDefault("1,1")
		is.NoErr(err)
	})
	turn := f.run("go")
	is.Equal(turn.IncompleteLimit, "credits")
}
