package runner_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/runner"
	"journeyman/runner/model"
	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/ordertest"
	"journeyman/store/storetest"
)

// checkSums compares the organization's charges with the usage of its turns.
func (f *fixture) checkSums() {
	f.t.Helper()
	storetest.Sound(f.t, f.store.Dir())
	f.nothingReserved()
}

const wirePrices = `{"openai:m":{"input":3,"output":15,"maxOutput":4000},"anthropic:m":{"input":3,"output":15,"maxOutput":4000}}`

// TestFailedTriesAreCharged makes model calls fail in every way, over both wire formats. Either the
// provider's token counts or estimates are charged, exactly once, and in all sums.
func TestFailedTriesAreCharged(t *testing.T) {
	storetest.Slow(t)
	t.Parallel()
	fine := said{text: "fine", in: 1000, out: 5}
	half := said{text: strings.Repeat("half ", 8), in: 1000, out: 70, counted: true}
	broken, hangs := half, half
	broken.broken, hangs.hangs = true, true
	uncounted := func(s said) said { s.counted = false; return s }
	for name, tt := range map[string]struct {
		says    []said
		end     func(f *fixture, turn store.Turn, begun <-chan struct{}) *fixture // makes the turn end
		in, out int64                                                             // of the turn; estimated unless counted
		counted bool
	}{
		"it breaks off":         {[]said{broken, broken, fine}, nil, 3000, 145, true},
		"it breaks off at last": {[]said{broken}, nil, 5000, 350, true},
		"uncounted":             {[]said{uncounted(broken), fine}, nil, 2000, 15, false},
		"it is refused":         {[]said{{status: 429, body: `{"error":{"message":"slow down"}}`}, {status: 500, body: `{}`}, fine}, nil, 1000, 5, true},
		"it is cancelled": {[]said{hangs}, func(f *fixture, turn store.Turn, begun <-chan struct{}) *fixture {
			until(f.t, begun, "the model is asked")
			f.abort(turn)
			return f
		}, 1000, 70, true},
		"uncounted, it is cancelled": {[]said{uncounted(hangs)}, func(f *fixture, turn store.Turn, begun <-chan struct{}) *fixture {
			until(f.t, begun, "the model is asked")
			f.abort(turn)
			return f
		}, 1000, 10, false},
		"it is out of time": {[]said{hangs, fine}, func(f *fixture, turn store.Turn, begun <-chan struct{}) *fixture {
			until(f.t, begun, "the model is asked")
			return f
		}, 2000, 75, true},
		"the process dies": {[]said{hangs, fine}, func(f *fixture, turn store.Turn, begun <-chan struct{}) *fixture {
			until(f.t, begun, "the model is asked")
			return f.crash()
		}, 2000, 5, false},
		"the process dies twice": {[]said{hangs, hangs, fine}, func(f *fixture, turn store.Turn, begun <-chan struct{}) *fixture {
			until(f.t, begun, "the model is asked")
			g := f.crash()
			g.start()
			until(f.t, begun, "the model is asked again")
			return g.crash()
		}, 3000, 5, false},
		"the runner stops": {[]said{hangs, fine}, func(f *fixture, turn store.Turn, begun <-chan struct{}) *fixture {
			until(f.t, begun, "the model is asked")
			f.stop()
			return f.crash()
		}, 2000, 75, true},
	} {
		for _, provider := range []string{"openai", "anthropic"} {
			t.Run(name+", "+provider, func(t *testing.T) {
				t.Parallel()
				is := is.New(t)
				w := newWire(t, func(a asked) said { return tt.says[min(a.number, len(tt.says)-1)] })
				limits := runner.Limits{}
				if strings.Contains(name, "time") {
					limits.Time = 300 * time.Millisecond
				}
				seen := make(chan struct{}, 9)
				f := newFixture(t, withModel(&heardModel{w.openModel(t, provider+":m"), seen}), withPrices(t, wirePrices), withBudget(limits), withPatience(1))
				turn := f.accept("go")
				if tt.end != nil {
					if g := tt.end(f, turn, seen); g != f {
						g.start()
						f = g
					}
				}
				turn = f.wait(turn)
				u := turn.Usage
				if tt.counted {
					is.Equal([]int64{u.InputTokens, u.OutputTokens}, []int64{tt.in, tt.out})
				} else {
					ordertest.Above(is, u.InputTokens, tt.in-500)   // an estimate, because the provider counted nothing
					ordertest.Below(is, u.InputTokens, tt.in*4)     // an estimate, because the provider counted nothing
					ordertest.AtLeast(is, u.OutputTokens, tt.out-3) // far from the sent output
					ordertest.Below(is, u.OutputTokens, tt.out+20)  // far from the sent output
				}
				price := f.cfg.Prices.Lookup(provider + ":m")
				is.Equal(u.ModelCost, price.Cost(model.Usage{InputTokens: u.InputTokens, OutputTokens: u.OutputTokens}))
				f.checkSums()
			})
		}
	}
}

// A heardModel signals when the model has produced output.
type heardModel struct {
	model.Model
	count chan<- struct{}
}

func (m *heardModel) Generate(ctx context.Context, req model.Request, emit func(model.Delta)) (model.Response, error) {
	text := ""
	return m.Model.Generate(ctx, req, func(d model.Delta) {
		emit(d)
		if text += d.Text; strings.HasSuffix(text, strings.Repeat("half ", 8)) {
			m.count <- struct{}{}
		}
	})
}

// TestFailedTriesKeepTheBudget checks that charged failed tries cannot exceed a budget: each try
// reserves from the remaining credits.
func TestFailedTriesKeepTheBudget(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	m := &fakeModel{fn: func(_ context.Context, req model.Request, emit func(model.Delta)) (model.Response, error) {
		used := model.Response{Usage: model.Usage{InputTokens: int64(bytesOf(req) / 4), OutputTokens: int64(req.MaxTokens)}}
		return used, &model.Error{Code: "503", Message: "overloaded", Retryable: true}
	}}
	f := newFixture(t, withModel(m), withBudget(runner.Limits{Credits: 10}), withPrices(t, `{"fake":{"input":3,"output":15,"maxOutput":64000}}`))
	turn := f.run("go")
	ordertest.AtMost(is, turn.Usage.Cost(), 10*db.NanosPerCredit) // the turn cost more than its budget
	ordertest.Above(is, turn.Usage.Cost(), 5*db.NanosPerCredit)   // the tries were not charged
	ordertest.Above(is, len(m.seen()), 1)                         // the call was not retried
	f.checkSums()
}

// TestFailedDescriptionsAreCharged checks that a failed description of a worker is charged like a
// failed call of a turn.
func TestFailedDescriptionsAreCharged(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	for _, provider := range []string{"openai", "anthropic"} {
		w := newWire(t, func(asked) said { return said{text: "half a", in: 1000, out: 70, counted: true, broken: true} })
		f := newFixture(t, withModel(w.openModel(t, provider+":m")), withPrices(t, wirePrices))
		storetest.CapCredits(t, f.store, f.owner, new(1000.0))
		before, _, err := f.store.People.Allowance(t.Context(), f.owner.OrganizationID)
		is.NoErr(err)
		_, err = f.DescribeWorker(t.Context(), f.owner, "one who writes")
		is.True(err != nil)
		after, _, err := f.store.People.Allowance(t.Context(), f.owner.OrganizationID)
		is.NoErr(err)
		is.Equal(before-after, f.cfg.Prices.Lookup(provider+":m").Cost(model.Usage{InputTokens: 1000, OutputTokens: 70}))
	}
}

// TestFailedProviderTestsAreCharged checks that a failed test of a provider is charged like a failed
// call of a turn: with the provider's counts, or else with estimates.
func TestFailedProviderTestsAreCharged(t *testing.T) {
	t.Parallel()
	const prices = `{"box:m":{"input":3,"output":15}}`
	half := said{text: strings.Repeat("half ", 8), in: 1000, out: 70, broken: true}
	counted := half
	counted.counted = true
	for name, tt := range map[string]struct {
		says        said
		least, most model.Usage
	}{
		"counted":   {counted, model.Usage{InputTokens: 1000, OutputTokens: 70}, model.Usage{InputTokens: 1000, OutputTokens: 70}},
		"uncounted": {half, model.Usage{InputTokens: 5, OutputTokens: 7}, model.Usage{InputTokens: 100, OutputTokens: 20}},
		"refused":   {said{status: 500, body: `{}`}, model.Usage{}, model.Usage{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			w := newWire(t, func(asked) said { return tt.says })
			f := newFixture(t, withCatalogue(nil), withPrices(t, prices))
			f.connect("box", w.URL+"/v1", "")
			storetest.CapCredits(t, f.store, f.owner, new(1000.0))
			before, _, err := f.store.People.Allowance(t.Context(), f.owner.OrganizationID)
			is.NoErr(err)
			got, err := f.Models.TestProvider(f.ctx(), f.owner, "box", "m")
			is.NoErr(err)
			is.True(got.Error != "")
			after, _, err := f.store.People.Allowance(t.Context(), f.owner.OrganizationID)
			is.NoErr(err)
			price := f.cfg.Prices.Lookup("box:m")
			ordertest.Between(is, before-after, price.Cost(tt.least), price.Cost(tt.most))
		})
	}
}

// TestAbandonedProviderTest ends the context of a test, as a user does who closes the page. Such a test
// has no result, and it costs nothing if the model was not asked.
func TestAbandonedProviderTest(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		hangs string // the method of the request without an answer
		costs bool
	}{
		"list": {http.MethodGet, false},
		"call": {http.MethodPost, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			ctx, leave := context.WithCancel(t.Context())
			p := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body) // net/http notices a closed connection only after the body
				if r.Method == tt.hangs {
					leave()
					<-r.Context().Done()
				}
				_, _ = io.WriteString(w, `{"data":[]}`)
			}))
			t.Cleanup(p.Close)
			f := newFixture(t, withCatalogue(nil), withPrices(t, `{"box:m":{"input":3,"output":15}}`))
			f.connect("box", p.URL+"/v1", "")
			_, err := f.Models.TestProvider(ctx, f.owner, "box", "m")
			is.True(errors.Is(err, context.Canceled))
			spent, _, err := f.store.People.MonthSpending(f.ctx(), f.owner)
			is.NoErr(err)
			is.Equal(spent > 0, tt.costs)
			list, err := f.store.Workers.Providers(f.ctx(), f.owner)
			is.NoErr(err)
			is.Equal(list[0].Test, nil) // the page shows no failure of the provider
		})
	}
}

// TestChargesAsMaintenanceBegins begins maintenance during a model call that does not belong to a
// turn.
func TestChargesAsMaintenanceBegins(t *testing.T) {
	t.Parallel()
	const costs = `{"fake":{"input":1,"output":1},"box:m":{"input":0.5,"output":0.5}}`
	for name, ask := range map[string]func(f *fixture) error{
		"describe": func(f *fixture) error {
			_, err := f.DescribeWorker(f.ctx(), f.owner, "one who writes")
			return err
		},
		"test": func(f *fixture) error {
			_, err := f.Models.TestProvider(f.ctx(), f.owner, "box", "")
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			asked, goOn := make(chan struct{}, 8), make(chan struct{})
			m := &fakeModel{fn: func(_ context.Context, _ model.Request, emit func(model.Delta)) (model.Response, error) {
				asked <- struct{}{}
				<-goOn
				return answer(emit, `{"instructions":"x"}`), nil
			}}
			f := newFixture(t, withModel(m), withPrices(t, costs), func(c *runner.Config) { c.Dialer.AllowPrivate = true })
			p := newConnectable(t, "box", connectedKey)
			p.wait, p.asked = goOn, asked
			f.connect("box", p.URL+"/v1", connectedKey)
			ended := make(chan error, 1)
			go func() { ended <- ask(f) }()
			until(t, asked, "the model is asked")
			is.True(f.store.Gate.BeginMaintenance())
			close(goOn)
			is.NoErr(until(t, ended, "the answer"))
			spent, _, err := f.store.People.MonthSpending(f.ctx(), f.owner)
			is.NoErr(err)
			ordertest.Above(is, spent, 0) // the call was paid but not charged
		})
	}
}
