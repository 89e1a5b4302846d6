package runner_test

import (
	"testing"

	"github.com/matryer/is"

	"journeyman/runner/model"
	"journeyman/store/ordertest"
	"journeyman/store/workers"
)

// TestWindowOfTheServer checks which context window counts, by the tokens that a call may produce.
func TestWindowOfTheServer(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		table  string
		stated int64
		window int64
	}{
		"stated by the server":            {`{"own":{"input":0,"output":0,"maxOutput":100000}}`, 9000, 9000},
		"smaller than in the price table": {`{"own":{"input":0,"output":0,"maxOutput":100000,"contextWindow":200000}}`, 9000, 9000},
		"larger than in the price table":  {`{"own":{"input":0,"output":0,"maxOutput":100000,"contextWindow":9000}}`, 200000, 9000},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			m := &describing{fakeModel: named("own"), describe: describes(model.Capabilities{ContextWindow: tt.stated, LimitsOnly: true})}
			f := newFixture(t, withModel(m), withPrices(t, tt.table))
			f.run("hi")
			most := int64(m.seen()[0].MaxTokens)
			ordertest.Below(is, most, tt.window)
			ordertest.Above(is, most, tt.window/2)
		})
	}
}

// TestWindowOfAProvider checks that the window of a connected provider comes from its list of models, and that the
// operator's own setting has precedence.
func TestWindowOfAProvider(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ set, want int64 }{"its list": {0, 8192}, "the setting": {20_000, 20_000}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			w := newWire(t, func(asked) said { return said{text: "fine", in: 10, out: 5} })
			w.list = `{"data":[{"id":"m","object":"model","owned_by":"vllm","max_model_len":8192}]}`
			f := newFixture(t, withCatalogue(nil))
			_, err := f.Models.AddProvider(f.ctx(), f.owner, workers.NewProvider{Name: "box", Kind: workers.KindCompatible,
				BaseURL: w.URL + "/v1", ContextWindow: tt.set})
			is.NoErr(err)
			f.worker = f.newWorker(workers.NewWorker{Title: "W", Settings: workers.Settings{Model: "box:m"}})
			is.Equal(f.run("go").OutputText, "fine")
			most := int64(w.seen()[0].maxTokens)
			ordertest.Below(is, most, tt.want)
			ordertest.Above(is, most, tt.want/2)
		})
	}
}
