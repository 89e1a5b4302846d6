package runner_test

import (
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/runner"
	"journeyman/runner/model"
	"journeyman/runner/model/offline"
	"journeyman/runner/stream"
	"journeyman/store"
	"journeyman/store/ordertest"
	"journeyman/store/storetest"
	"journeyman/store/workers"
)

// overloaded is the error of a server that is temporarily down.
var overloaded = said{status: http.StatusServiceUnavailable, body: `{"error":{"message":"overloaded"}}`}

// overloadedFor is overloaded with the seconds that the server asks to wait.
func overloadedFor(seconds string) said {
	s := overloaded
	s.again = seconds
	return s
}

// mends returns the answers of a server that says first until it is well, and then text.
func mends(first said, text string) (answer func(asked) said, well *atomic.Bool) {
	well = &atomic.Bool{}
	return func(asked) said {
		if well.Load() {
			return said{text: text, in: 10, out: 5}
		}
		return first
	}, well
}

// A wireModels is the catalogue of one fake server. A worker may choose any of its models.
type wireModels struct{ open func(name string) model.Model }

func (wireModels) Check(string) error                                           { return nil }
func (m wireModels) Open(name string) (model.Model, error)                      { return m.open(name), nil }
func (wireModels) Connected(p model.Provider, name string) (model.Model, error) { return p.Open(name) }

// onClock returns a fixture whose store and runner use a clock that the test controls.
func onClock(t testing.TB, c *clock, setups ...setup) *fixture {
	t.Helper()
	setups = append([]setup{withClock(c.now), func(cfg *runner.Config) {
		cfg.Suspend = func(n int) time.Duration { return min(10*time.Second<<(n-1), 5*time.Minute) }
	}}, setups...)
	return startedOn(t, storetest.Open(t, store.Options{Now: c.now}), setups...)
}

// waiting waits until a turn is suspended and holds no slot, and returns it.
func (f *fixture) waiting(t store.Turn) store.Turn {
	f.t.Helper()
	storetest.Eventually(f.t, "turn "+t.ID+" to wait", func() bool {
		t = f.reload(t.ID)
		if t.Status.Ended() {
			f.t.Fatalf("turn %s does not wait: %s %v", t.ID, t.Status, t.Failure)
		}
		return t.Wait != nil && f.Running() == 0
	})
	return t
}

// pass advances the clock, and wakes the runner.
func (f *fixture) pass(c *clock, d time.Duration) {
	c.advance(d)
	f.Wake()
}

// TestTurnSurvivesRemovedProvider uses a provider that is down for three minutes.
func TestTurnSurvivesRemovedProvider(t *testing.T) {
	t.Parallel()
	for _, provider := range []string{"openai", "anthropic"} {
		t.Run(provider, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			c := newClock()
			back := c.now().Add(3 * time.Minute)
			w := newWire(t, func(asked) said {
				if c.now().Before(back) {
					return overloaded
				}
				return said{text: "fine", in: 10, out: 5}
			})
			f := onClock(t, c, withModel(w.openModel(t, provider+":m")))
			turn := f.accept("go")
			watched := make(chan []stream.Event, 1)
			go func() { watched <- f.events(f.Streams.Turn(turn)) }()
			turn = f.waiting(turn)
			begun := *turn.FailingSince
			is.Equal([]any{turn.Status, turn.Wait.For, turn.Wait.Reason, turn.FailedCalls}, []any{store.Running, store.WaitForModel, "503: overloaded", int64(5)})
			is.Equal(len(w.seen()), 5)
			is.Equal(turn.Wait.RetryAt.Sub(begun), 10*time.Second)
			is.Equal(turn.Wait.Until.Sub(begun), 30*time.Minute) // the time budget of the turn
			suspensions := 1
			for c.now().Before(back) {
				at := *turn.Wait.RetryAt
				f.pass(c, at.Sub(c.now()))
				if c.now().Before(back) {
					storetest.Eventually(t, "the turn to be resumed", func() bool {
						turn = f.waiting(turn)
						return !turn.Wait.RetryAt.Equal(at)
					})
					suspensions++
				}
			}
			turn = f.wait(turn)
			is.Equal([]any{turn.Status, turn.OutputText, turn.FailedCalls, turn.FailingSince}, []any{store.Completed, "fine", int64(0), (*time.Time)(nil)})
			is.Equal(suspensions, 5)                        // after 10, 30, 70, 150 and 310 seconds
			is.Equal(len(w.seen()), 5+5)                    // a turn that was suspended asks only once
			ordertest.Below(is, turn.Duration, time.Minute) // the time suspended does not count
			u, waits := newUIReader(t), 0
			for _, e := range until(t, watched, "the stream ends") {
				u.take(e)
				if strings.Contains(string(e.Data), `"data-waiting","data":{"for":"model","reason":"503: overloaded","retryAt":"2026-`) {
					waits++
				}
			}
			is.Equal(u.messages(), f.messages(turn)[1:])
			// A watcher gets each suspension, except very short ones.
			ordertest.Above(is, waits, 0)
			ordertest.AtMost(is, waits, suspensions)
			f.readsFromEverywhere(turn, f.messages(turn)[1:])
			f.checkSums()
		})
	}
}

// TestRetryAfterIsKept uses a provider that requests a pause of an hour, with a restart in between.
func TestRetryAfterIsKept(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	c := newClock()
	w := newWire(t, func(a asked) said {
		if a.number == 0 {
			return overloadedFor("3600")
		}
		return said{text: "fine", in: 10, out: 5}
	})
	f := onClock(t, c, withModel(w.openModel(t, "openai:m")), withPatience(2*time.Hour))
	turn := f.waiting(f.accept("go"))
	is.Equal(turn.Wait.RetryAt.Sub(c.now()), time.Hour)
	is.Equal(len(w.seen()), 1)
	d := f.die() // kill -9
	f.stop()
	g := f.after(d)
	g.start()
	g.pass(c, 3599*time.Second)
	turn = g.waiting(turn)
	is.Equal(len(w.seen()), 1) // not one second too early
	g.pass(c, time.Second)
	turn = g.wait(turn)
	is.Equal([]any{turn.Status, turn.OutputText, turn.Claims}, []any{store.Completed, "fine", int64(2)})
	is.Equal(len(w.seen()), 2)
}

// TestPatienceEnds uses providers that stay down.
func TestPatienceEnds(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		again   string
		message string
		calls   int
	}{
		"it stays down":             {"", "overloaded", 10},
		"it asks for more patience": {"7200", "overloaded (the provider asks to wait 2h0m0s, longer than the patience of 5m0s)", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			c := newClock()
			w := newWire(t, func(asked) said { return overloadedFor(tt.again) })
			f := onClock(t, c, withModel(w.openModel(t, "openai:m")), withPatience(5*time.Minute))
			turn := f.accept("go")
			for n := 0; n < 5 && tt.again == ""; n++ {
				turn = f.waiting(turn)
				at := *turn.Wait.RetryAt
				storetest.Eventually(t, "the turn to be resumed", func() bool {
					f.pass(c, max(at.Sub(c.now()), 0))
					turn = f.reload(turn.ID)
					return turn.Wait == nil || !turn.Wait.RetryAt.Equal(at) || turn.Status.Ended()
				})
			}
			turn = f.wait(turn)
			is.Equal(*turn.Failure, store.Failure{Code: "503", Message: tt.message, Retryable: true})
			is.Equal(len(w.seen()), tt.calls)
		})
	}
}

func TestCancelWhileItWaits(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	c := newClock()
	w := newWire(t, func(asked) said { return overloaded })
	f := onClock(t, c, withModel(w.openModel(t, "openai:m")))
	turn := f.waiting(f.accept("go"))
	is.Equal(f.abort(turn).Status, store.Aborted)
	f.pass(c, time.Hour)
	is.Equal(f.read(f.Streams.Turn(turn)).messages(), f.messages(turn)[1:])
	is.Equal(len(w.seen()), 5)
}

// TestUnreadableAnswers checks that malformed answers are retried a few times before the
// turn ends.
func TestUnreadableAnswers(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		bad  int
		code string
	}{"twice": {2, ""}, "always": {99, "bad_response"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			w := newWire(t, func(a asked) said {
				if a.number < tt.bad {
					return said{status: http.StatusOK, body: `{"id":"x"`}
				}
				return said{text: "fine", in: 10, out: 5}
			})
			f := newFixture(t, withModel(w.openModel(t, "openai:m")))
			turn := f.run("go")
			if tt.code == "" {
				is.Equal(turn.OutputText, "fine")
			} else {
				is.Equal([]any{turn.Failure.Code, turn.Failure.Retryable}, []any{tt.code, true})
			}
			is.Equal(len(w.seen()), 3)
		})
	}
}

// TestChain lets the models of a chain fail in every way.
func TestChain(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		first said
		calls int // of the first model, in two turns
	}{
		"down":          {overloaded, 3},
		"no such model": {said{status: 404, body: `{"error":{"message":"no such model","code":"model_not_found"}}`}, 1},
		"bad key":       {said{status: 401, body: `{"error":{"message":"bad key"}}`}, 1},
		"no quota":      {said{status: 429, body: `{"error":{"message":"pay","code":"insufficient_quota"}}`}, 1},
		"too small":     {tooLong(100, 200), 2},
		"unreadable":    {said{status: 200, body: `{"id":"x"`}, 6},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			c := newClock()
			answer, well := mends(tt.first, "from a")
			a := newWire(t, answer)
			b := newWire(t, func(asked) said { return said{text: "from b", in: 10, out: 5} })
			prices := `{"openai:a":{"input":1,"output":1,"contextWindow":20000,"maxOutput":100},"anthropic:b":{"input":2,"output":2,"contextWindow":90000,"maxOutput":100}}`
			f := onClock(t, c, withModel(a.openModel(t, "openai:a")), withPrices(t, prices), func(cfg *runner.Config) {
				cfg.Fallbacks = []model.Model{b.openModel(t, "anthropic:b")}
			})
			for range 2 {
				turn := f.run("go")
				is.Equal(turn.OutputText, "from b")
				is.Equal(turn.Usage.ModelCost, int64(30_000)) // at the price of b
			}
			is.Equal(len(a.seen()), tt.calls)
			well.Store(true)
			c.advance(5 * time.Minute) // the pause of the first model
			is.Equal(f.run("go").OutputText, "from a")
			f.checkSums()
		})
	}
}

// TestAllOfAChainAreDown checks that the turn is suspended until the first model may be asked.
func TestAllOfAChainAreDown(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	c := newClock()
	a := newWire(t, func(asked) said { return overloadedFor("600") })
	answer, well := mends(overloadedFor("60"), "from b")
	b := newWire(t, answer)
	f := onClock(t, c, withModel(a.openModel(t, "openai:a")), func(cfg *runner.Config) {
		cfg.Fallbacks = []model.Model{b.openModel(t, "anthropic:b")}
	})
	turn := f.waiting(f.accept("go"))
	is.Equal(turn.Wait.RetryAt.Sub(c.now()), time.Minute)
	well.Store(true)
	f.pass(c, time.Minute)
	is.Equal(f.wait(turn).OutputText, "from b")
	is.Equal(len(a.seen()), 1)
}

// TestFailingProviderHoldsNoSlot runs 64 turns of a dead provider with four slots.
func TestFailingProviderHoldsNoSlot(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	c := newClock()
	answer, well := mends(overloaded, "fine")
	w := newWire(t, answer)
	models := wireModels{func(name string) model.Model {
		if name == "offline" {
			return offline.New()
		}
		return w.openModel(t, name)
	}}
	f := onClock(t, c, func(cfg *runner.Config) { cfg.Models, cfg.Concurrency = models, 4 })
	dead := f.newWorker(workers.NewWorker{Title: "Dead", Instructions: "Help.",
		Settings: workers.Settings{Model: "openai:m"}})
	var turns []store.Turn
	for range 64 {
		turns = append(turns, f.acceptTurn(store.NewTurn{Caller: f.owner, WorkerID: dead.ID, Input: "go", Budget: store.BudgetStandard}))
	}
	is.Equal(f.run(script("say live")).OutputText, "live")
	for _, turn := range turns {
		f.waiting(turn)
	}
	n := len(w.seen())
	ordertest.AtMost(is, n, 4*5) // only turns that began before the outage was detected have asked
	waits, err := f.store.Suspended(t.Context())
	is.NoErr(err)
	is.Equal(waits[store.WaitForModel], int64(64))

	// One turn at a time tests whether the provider is available again.
	f.pass(c, time.Minute)
	is.Equal(f.run(script("say live")).OutputText, "live")
	for _, turn := range turns {
		f.waiting(turn)
	}
	ordertest.AtMost(is, len(w.seen())-n, 2)
	well.Store(true)
	f.pass(c, 2*time.Minute)
	for _, turn := range turns {
		is.Equal(f.wait(turn).OutputText, "fine")
	}
	f.checkSums()
	is.True(slices.Contains(f.Metrics().ListMetricNames(), `journeyman_model_failures_total{provider="openai",code="503"}`))
}

// TestScriptedOutage checks that "fail 503" in a script of the offline model has the effects of a provider
// that is down: several tries, a suspension without a slot, and the message. Turns of other scripts do not
// wait for it.
func TestScriptedOutage(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	c := newClock()
	f := onClock(t, c, withPatience(5*time.Minute))
	turn := f.waiting(f.accept(script("fail 503 overloaded")))
	is.Equal([]any{turn.Wait.For, turn.Wait.Reason, turn.FailedCalls}, []any{store.WaitForModel, "503: overloaded", int64(5)})
	is.Equal(f.run(script("say hello")).OutputText, "hello") // it does not wait
	is.Equal(f.reload(turn.ID).Status, store.Running)
	storetest.Eventually(t, "the end of its patience", func() bool {
		f.pass(c, time.Minute)
		return f.reload(turn.ID).Status.Ended()
	})
	turn = f.reload(turn.ID)
	is.Equal([]any{turn.Status, turn.Failure.Code, turn.Failure.Message, turn.Failure.Retryable}, []any{store.Failed, "503", "overloaded", true})
}
