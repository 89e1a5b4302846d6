package runner_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/runner"
	"journeyman/runner/model"
	"journeyman/runner/tool"
	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/ordertest"
	"journeyman/store/storetest"
)

func TestStepBudget(t *testing.T) {
	t.Parallel()
	plan := `tool update_plan {"items":[]}`
	for name, tt := range map[string]struct {
		script []string
		limit  string
		steps  int64
	}{
		"just enough": {[]string{plan, plan, `say done`}, "", 3},
		"one short":   {[]string{plan, plan, plan, `say done`}, "steps", 4},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			f := newFixture(t, withBudget(runner.Limits{Steps: 3}))
			turn := f.run(script(tt.script...))
			is.Equal(turn.Status, store.Completed)
			is.Equal(turn.IncompleteLimit, tt.limit)
			is.Equal(turn.IncompleteReason != "", tt.limit != "")
			is.Equal(turn.Usage.Steps, tt.steps) // including the last call
			is.True(turn.OutputText != "")       // the turn has no answer
		})
	}
}

// TestLastCall checks that the request of the last call keeps its tools, but its tool calls do not
// run.
func TestLastCall(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	var ran atomic.Int64
	m := &fakeModel{fn: func(_ context.Context, req model.Request, emit func(model.Delta)) (model.Response, error) {
		r := calls(emit, stepOf(req), "it", `{}`)
		if req.Final {
			r.Parts = append(r.Parts, model.Part{Type: model.PartText, Text: "summary"})
			emit(model.Delta{Part: 1, Type: model.PartText, Text: "summary"})
		}
		return r, nil
	}}
	it := fakeTool{name: "it", fn: func(context.Context, tool.Host, json.RawMessage) (json.RawMessage, error) {
		ran.Add(1)
		return json.RawMessage(`1`), nil
	}}
	f := newFixture(t, withModel(m), withTools(it), withBudget(runner.Limits{Steps: 2}))
	turn := f.accept("go")
	u := f.read(f.Streams.Turn(turn))
	turn = f.wait(turn)
	is.Equal(turn.OutputText, "summary")
	is.Equal(ran.Load(), int64(2))
	last := m.seen()[2]
	is.True(last.Final)
	is.Equal(last.Tools, m.seen()[0].Tools) // a changed list would not match the cached prefix
	is.True(strings.Contains(last.Messages[len(last.Messages)-1].Parts[0].Text, "budget"))
	is.Equal(u.messages(), f.messages(turn)[1:])
	is.Equal(f.run("and", turn.TaskID).Status, store.Completed) // the history is valid
}

func TestTimeBudget(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		model, tool bool // which of them blocks until the time is over
	}{
		"model": {model: true},
		"tool":  {tool: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			m := &fakeModel{fn: func(ctx context.Context, req model.Request, emit func(model.Delta)) (model.Response, error) {
				switch {
				case req.Final:
					return answer(emit, "in short"), nil
				case tt.model:
					emit(model.Delta{Type: model.PartText, Text: "at great length "})
					<-ctx.Done()
					return model.Response{}, ctx.Err()
				}
				return calls(emit, 0, "it", `{}`), nil
			}}
			it, _ := hanging("it")
			f := newFixture(t, withModel(m), withTools(it), withBudget(runner.Limits{Time: time.Second}))
			turn := f.accept("go")
			u := f.read(f.Streams.Turn(turn))
			turn = f.wait(turn)
			is.Equal(turn.Status, store.Completed)
			is.Equal(turn.IncompleteLimit, "time")
			is.Equal(turn.OutputText, "in short")
			is.Equal(u.messages(), f.messages(turn)[1:])
			if tt.tool {
				is.Equal(f.journal(turn)[0].Calls[0].State, store.CallInterrupted)
			}
		})
	}
}

const prices = `{"fake":{"input":%g,"output":%g,"cacheWrite":%g,"maxOutput":%d},"free":{"input":0,"output":0}}`

// bytesOf returns the number of text bytes in a request. The fake model derives its token counts
// from it.
func bytesOf(req model.Request) (n int) {
	n = len(req.Preamble) + len(req.Instructions) + len(req.OutputSchema)
	for _, t := range req.Tools {
		n += len(t.Name) + len(t.Description) + len(t.InputSchema)
	}
	for _, m := range req.Messages {
		for _, p := range m.Parts {
			n += len(p.Text) + len(p.Input) + len(p.ToolName) + len(p.Path)
		}
	}
	return n
}

// spender returns a model that uses a random part of its allowance.
func spender(r *rand.Rand, steps int) *fakeModel {
	m := &fakeModel{}
	m.fn = func(_ context.Context, req model.Request, emit func(model.Delta)) (model.Response, error) {
		m.mu.Lock()
		defer m.mu.Unlock()
		out := int64(min(r.IntN(5000), req.MaxTokens))
		if r.IntN(3) == 0 {
			out = int64(req.MaxTokens)
		}
		in := int64(bytesOf(req) / 4)
		resp := answer(emit, strings.Repeat("word ", int(min(out, 2000))))
		if !req.Final && stepOf(req) < steps {
			resp = calls(emit, stepOf(req), "it", fmt.Sprintf(`{"n":%q}`, strings.Repeat("x", r.IntN(2000))))
		}
		resp.Usage = model.Usage{InputTokens: in, OutputTokens: out, CacheWriteTokens: r.Int64N(in + 1)}
		if out == int64(req.MaxTokens) {
			resp.Finish = model.FinishLength
		}
		return resp, nil
	}
	return m
}

func TestCreditBudgetHolds(t *testing.T) {
	t.Parallel()
	for seed := range storetest.Rounds(60, 12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			r := rand.New(rand.NewPCG(uint64(seed), 6))
			price := fmt.Sprintf(prices, r.Float64()*20, r.Float64()*80*float64(r.IntN(2)), r.Float64()*30, 1000+r.IntN(40000))
			credits := r.Float64() * 20
			if seed%5 == 0 {
				credits /= 1000
			}
			f := newFixture(t, withModel(spender(r, r.IntN(10))), withTools(gives("it", `"`+strings.Repeat("result ", r.IntN(2000))+`"`)),
				withPrices(t, price), withBudget(runner.Limits{Credits: credits}))
			turn := f.run("go")
			is.Equal(turn.Status, store.Completed)
			if spent := db.Credits(turn.Usage.Cost()); spent > credits {
				t.Errorf("spent %v of %v credits", spent, credits)
			}
			is.True(turn.IncompleteLimit == "" || turn.IncompleteLimit == "credits")
			f.nothingReserved()
		})
	}
}

func TestNoCreditsLeft(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	m := says("never said")
	f := newFixture(t, withModel(m), withPrices(t, fmt.Sprintf(prices, 10.0, 10.0, 10.0, 1000)), withBudget(runner.Limits{Credits: 0.0001}))
	turn := f.run("go")
	is.Equal(turn.Status, store.Completed)
	is.Equal(turn.IncompleteLimit, "credits")
	is.Equal(turn.OutputText, "")
	is.Equal(len(m.seen()), 0) // the credits do not even pay for the last call
	is.Equal(f.read(f.Streams.Turn(turn)).messages(), f.messages(turn)[1:])
}

func TestFreeModelAndUnlimited(t *testing.T) {
	t.Parallel()
	for name, limits := range map[string]runner.Limits{"free": {Credits: 0.0001}, "fake": {}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			m := spender(rand.New(rand.NewPCG(1, 7)), 20)
			m.name = name
			f := newFixture(t, withModel(m), withTools(gives("it", `1`)), withPrices(t, fmt.Sprintf(prices, 10.0, 10.0, 10.0, 100000)), withBudget(limits))
			turn := f.run("go")
			is.Equal(turn.IncompleteLimit, "")
			is.Equal(turn.Usage.Cost() == 0, name == "free")
		})
	}
}

// TestCutOffForCredits checks that an answer truncated by the credits is marked as incomplete. A
// turn whose answer has not begun gets its last call.
func TestCutOffForCredits(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{"an answer": "the beginning of", "thoughts only": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			m := &fakeModel{fn: func(_ context.Context, req model.Request, emit func(model.Delta)) (model.Response, error) {
				if req.Final {
					return answer(emit, "in short"), nil
				}
				resp := answer(emit, text)
				resp.Finish, resp.Usage = model.FinishLength, model.Usage{OutputTokens: int64(req.MaxTokens)}
				return resp, nil
			}}
			f := newFixture(t, withModel(m), withPrices(t, fmt.Sprintf(prices, 1.0, 10.0, 1.0, 100000)), withBudget(runner.Limits{Credits: 10}))
			turn := f.run("go")
			is.Equal(turn.IncompleteLimit, "credits")
			is.Equal(turn.OutputText, map[bool]string{true: "in short", false: text}[text == ""])
		})
	}
}

// TestCapHolds checks the cap of an organization with many turns at once. No affordable turn ends
// early, although the maximum costs of all turns together exceed the cap.
func TestCapHolds(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		cap  float64 // credits
		ends string
	}{
		"enough for all":  {200, ""},
		"enough for some": {5, "credits"},
		"nothing":         {0.001, "credits"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			const turns = 50
			r := rand.New(rand.NewPCG(1, 8))
			m := &fakeModel{}
			m.fn = func(_ context.Context, req model.Request, emit func(model.Delta)) (model.Response, error) {
				m.mu.Lock()
				defer m.mu.Unlock()
				resp := answer(emit, "done")
				if !req.Final && stepOf(req) < 3 {
					resp = calls(emit, stepOf(req), "it", `{}`)
				}
				resp.Usage = model.Usage{InputTokens: int64(bytesOf(req) / 4), OutputTokens: int64(min(r.IntN(1500), req.MaxTokens))}
				return resp, nil
			}
			f := newFixture(t, withModel(m), withTools(gives("it", `1`)), withBudget(runner.Limits{}),
				withPrices(t, fmt.Sprintf(prices, 1.0, 10.0, 1.0, 64000)))
			storetest.CapCredits(t, f.store, f.owner, &tt.cap)
			var accepted []store.Turn
			for range turns {
				accepted = append(accepted, f.accept("go"))
			}
			ends := map[string]int{}
			for _, turn := range accepted {
				ends[f.wait(turn).IncompleteLimit]++
			}
			left, capped, err := f.store.People.Allowance(f.ctx(), f.owner.OrganizationID)
			is.NoErr(err)
			is.True(capped)
			if left < 0 {
				t.Errorf("overspent by %d nano-dollars", -left)
			}
			if tt.ends == "" {
				is.Equal(ends[""], turns)
			} else {
				ordertest.Above(is, ends[tt.ends], 0)
			}
			f.nothingReserved()
		})
	}
}

func TestDescribeWorkerUnderCap(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t, withModel(says(`{"instructions":"x"}`)), withPrices(t, fmt.Sprintf(prices, 1.0, 10.0, 1.0, 64000)))
	tiny := 0.01
	storetest.CapCredits(t, f.store, f.owner, &tiny)
	_, err := f.DescribeWorker(f.ctx(), f.owner, "x")
	is.True(db.IsKind(err, db.PaymentRequired))
	storetest.CapCredits(t, f.store, f.owner, nil)
	_, err = f.DescribeWorker(f.ctx(), f.owner, "x")
	is.NoErr(err)
}

// TestCancelWhileWaitingForCredits cancels a turn that waits for other turns' reservations.
func TestCancelWhileWaitingForCredits(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	m, begun := blocked()
	f := newFixture(t, withModel(m), withPrices(t, fmt.Sprintf(prices, 1.0, 10.0, 1.0, 64000)), withBudget(runner.Limits{}))
	some := 30.0 // less than the maximum cost of two calls
	storetest.CapCredits(t, f.store, f.owner, &some)
	first := f.accept("one")
	until(t, begun, "the model is asked")
	second := f.accept("two")
	f.abort(second)
	is.Equal(len(m.seen()), 1)
	f.abort(first)
}

// TestTimeBudgetEndsLongSteps cuts a step of the offline model and one of a shell-like tool at the end of a
// short time budget. The turn ends soon after that, also if its last call takes too long.
func TestTimeBudgetEndsLongSteps(t *testing.T) {
	t.Parallel()
	slow := &fakeModel{fn: func(ctx context.Context, _ model.Request, emit func(model.Delta)) (model.Response, error) {
		emit(model.Delta{Type: model.PartText, Text: "so far"})
		<-ctx.Done()
		return model.Response{}, ctx.Err()
	}}
	for name, tt := range map[string]struct {
		model  model.Model
		input  string
		answer string
	}{
		"a slow answer":      {nil, script("wait 1h", "say done"), "done"},
		"a slow tool":        {nil, script("say so", "tool hangs {}", "say done"), "done"},
		"a slow model, last": {slow, "go", "so far"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			it, _ := hanging("hangs")
			f := newFixture(t, withTools(it), withBudget(runner.Limits{Time: time.Second}), func(c *runner.Config) {
				c.Model = cmp.Or(tt.model, c.Model)
			})
			begun := time.Now()
			turn := f.wait(f.accept(tt.input))
			is.Equal([]any{turn.Status, turn.IncompleteLimit, turn.OutputText}, []any{store.Completed, "time", tt.answer})
			ordertest.Below(is, time.Since(begun), 40*time.Second) // it is 6 seconds; the machine may be busy
		})
	}
}

// TestBudgetNoticesStay checks that later requests of a task contain the notices at the same places.
func TestBudgetNoticesStay(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	last := func(req model.Request) string {
		parts := req.Messages[len(req.Messages)-1].Parts
		return parts[len(parts)-1].Text
	}
	m := &fakeModel{fn: func(_ context.Context, req model.Request, emit func(model.Delta)) (model.Response, error) {
		if req.Final {
			return answer(emit, "the end"), nil
		}
		return calls(emit, stepOf(req), "it", fmt.Sprintf(`{"n":%d}`, stepOf(req))), nil
	}}
	f := newFixture(t, withModel(m), withTools(gives("it", `1`)), withBudget(runner.Limits{Steps: 4}))
	task := f.run("go").TaskID
	seen := m.seen()
	is.Equal(len(seen), 5)
	is.Equal(last(seen[1]), "1")
	is.True(strings.HasPrefix(last(seen[2]), "1\n\n(Budget of this task: half of the steps is used."))
	is.Equal(last(seen[3]), "1")
	// A follow-up repeats the earlier messages, for the cache.
	f.run("more", task)
	again := m.seen()[5]
	for i, msg := range seen[3].Messages {
		is.Equal(again.Messages[i].Parts[len(again.Messages[i].Parts)-1].Text, msg.Parts[len(msg.Parts)-1].Text)
	}
}
