package runner_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/runner"
	"journeyman/runner/model"
	"journeyman/runner/tool"
	"journeyman/store"
	"journeyman/store/storetest"
)

// A teamPlay says what each turn of a team does: its calls in each step, by its instruction. After them
// the turn answers, or fails with fails.
type teamPlay struct {
	steps map[string][][]string
	fails string // the instruction of a turn that fails at its end

	mu       sync.Mutex
	requests map[string][]string // the requests of each turn as text, in order
	before   func(input string, step int)
	after    func(input string, step int)
}

// model returns the model of a teamPlay. Each of its calls costs a credit.
func (p *teamPlay) model() *fakeModel {
	p.requests = map[string][]string{}
	return &fakeModel{name: "priced", fn: func(_ context.Context, req model.Request, emit func(model.Delta)) (model.Response, error) {
		input, step := instructionOf(req), stepOf(req)
		p.mu.Lock()
		p.requests[input] = append(p.requests[input], requestText(req))
		p.mu.Unlock()
		if p.before != nil {
			p.before(input, step)
			defer p.after(input, step)
		}
		resp := answer(emit, "answer to "+input)
		if steps := p.steps[input]; !req.Final && step < len(steps) {
			resp = calls(emit, step, steps[step]...)
		} else if input == p.fails {
			return resp, &model.Error{Code: "broken", Message: "it is broken"}
		}
		resp.Usage = model.Usage{InputTokens: 1000, OutputTokens: 0}
		return resp, nil
	}}
}

// instructionOf returns the instruction of the turn that makes a request.
func instructionOf(req model.Request) (input string) {
	for _, p := range req.Messages[req.TurnStart].Parts {
		if p.Type == model.PartText && !p.Aside {
			input += p.Text
		}
	}
	return input
}

// requestText returns all texts of a request.
func requestText(req model.Request) string {
	var b strings.Builder
	for _, m := range req.Messages {
		for _, p := range m.Parts {
			fmt.Fprintf(&b, "%s %s %s %s\n", m.Role, p.CallID, p.Text, p.Input)
		}
	}
	return b.String()
}

// noticeIn returns the budget notices of a request, joined.
func noticeIn(request string) string {
	var list []string
	for _, text := range strings.Split(request, "(Budget of this task: ")[1:] {
		text, _, _ = strings.Cut(text, ") \n")
		list = append(list, text)
	}
	return strings.Join(list, " | ")
}

// its returns n steps with a call of the tool it.
func its(n int) (steps [][]string) {
	for i := range n {
		steps = append(steps, []string{"it", fmt.Sprintf(`{"n":%d}`, i)})
	}
	return steps
}

func toRun(input string) []string {
	return []string{"run_worker", fmt.Sprintf(`{"worker":"Scribe","input":%q}`, input)}
}

const (
	tenPrices = `{"priced":{"input":10,"output":10,"maxOutput":100,"contextWindow":100000}}`
	byParent  = " It was used by you and the workers you started."
	byChild   = " It was used by you and the workers you share it with."
)

// TestTeamNotices checks what the turns of a team read about the budget that they share.
func TestTeamNotices(t *testing.T) {
	t.Parallel()
	half, most := "half of the steps is used.", "80% of the steps is used: finish what matters most"
	for name, tt := range map[string]struct {
		play    *teamPlay
		limits  runner.Limits
		notices map[string][]string // the beginnings of the notices in the requests of a turn
	}{
		"alone": {&teamPlay{steps: map[string][][]string{"root": its(6)}}, runner.Limits{Steps: 10},
			map[string][]string{"root": {"", "", "", "", "", half + "$", half}}},
		"a child": {&teamPlay{steps: map[string][][]string{"root": {toRun("leaf")}, "leaf": its(5)}}, runner.Limits{Steps: 10},
			map[string][]string{"root": {"", half + byParent + "$"}, "leaf": {"", "", "", "", half + byChild + "$", half}}},
		"most at once": {&teamPlay{steps: map[string][][]string{"root": {toRun("leaf"), its(1)[0]}, "leaf": its(7)}},
			runner.Limits{Steps: 10}, map[string][]string{"root": {"", most, most}}},
		"a child that knows what was used before": {&teamPlay{steps: map[string][][]string{
			"root": append(its(6), toRun("leaf")), "leaf": its(1)}}, runner.Limits{Steps: 10},
			map[string][]string{"leaf": {"", most}}},
		"a grandchild": {&teamPlay{steps: map[string][][]string{"root": {toRun("middle")}, "middle": {toRun("leaf")}, "leaf": its(4)}},
			runner.Limits{Steps: 10}, map[string][]string{"middle": {"", half + byChild + "$"}, "root": {"", most}}},
		"children beside each other": {&teamPlay{steps: map[string][][]string{
			"root": {append(toRun("a"), toRun("b")...)}, "a": its(2), "b": its(2)}},
			runner.Limits{Steps: 12}, map[string][]string{"root": {"", half + byParent + "$"}}},
		"a child that fails": {&teamPlay{steps: map[string][][]string{"root": {toRun("leaf")}, "leaf": its(5)}, fails: "leaf"},
			runner.Limits{Steps: 10}, map[string][]string{"root": {"", half + byParent + "$"}}},
		"credits": {&teamPlay{steps: map[string][][]string{"root": {toRun("leaf")}, "leaf": its(15)}}, runner.Limits{Credits: 30},
			map[string][]string{"root": {"", "half of the credits is used." + byParent + "$"}}},
		"steps and credits": {&teamPlay{steps: map[string][][]string{"root": {toRun("leaf")}, "leaf": its(14)}},
			runner.Limits{Credits: 30, Steps: 20},
			map[string][]string{"root": {"", "half of the credits is used. 80% of the steps is used: finish"}}},
		"no limits": {&teamPlay{steps: map[string][][]string{"root": {toRun("leaf")}, "leaf": its(5)}}, runner.Limits{},
			map[string][]string{"root": {"", ""}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			f := newFixture(t, withModel(tt.play.model()), withTools(gives("it", `1`)), withPrices(t, tenPrices), withBudget(tt.limits))
			turn := f.run("root")
			is.Equal(turn.Status, store.Completed)
			for input, want := range tt.notices {
				for i, begin := range want {
					got := noticeIn(tt.play.requests[input][i])
					begin, whole := strings.CutSuffix(begin, "$")
					if whole && got != begin || !strings.HasPrefix(got, begin) || begin == "" && got != "" {
						t.Errorf("request %d of %s says %q, not %q", i, input, got, begin)
					}
				}
			}
		})
	}
}

// TestTeamNoticesOfBackground checks that a child without a wait is counted while it works, and after its parent has
// asked for its answer only once.
func TestTeamNoticesOfBackground(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	root := append([][]string{{"run_worker", `{"worker":"Scribe","input":"leaf","wait":false}`}}, its(3)...)
	p := &teamPlay{steps: map[string][][]string{"root": root, "leaf": append(its(5), []string{"look", called("leaf")})}}
	g := newGate("look", true)
	wait := fakeTool{name: "it", fn: func(_ context.Context, h tool.Host, in json.RawMessage) (json.RawMessage, error) {
		if string(in) == `{"n":2}` { // the last call of the root
			until(t, g.begun, "the leaf has made six calls")
		}
		return json.RawMessage(`1`), nil
	}}
	leaf := gives("leafs", `1`)
	for i := range p.steps["leaf"][:5] {
		p.steps["leaf"][i][0] = "leafs"
	}
	f := newFixture(t, withModel(p.model()), withTools(wait, leaf, g), withBudget(runner.Limits{Steps: 20}))
	turn := f.wait(f.accept("root"))
	close(g.of("leaf"))
	is.Equal(turn.Status, store.Completed)
	is.Equal(noticeIn(p.requests["root"][4]), "half of the steps is used."+byParent) // 4 and 6 of 20
}

// TestTeamNoticesOfCancelled cancels a child: what it has used counts.
func TestTeamNoticesOfCancelled(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	p := &teamPlay{steps: map[string][][]string{"root": {toRun("leaf")}, "leaf": append(its(4), []string{"look", called("leaf")})}}
	g := newGate("look", true)
	f := newFixture(t, withModel(p.model()), withTools(gives("it", `1`), g), withBudget(runner.Limits{Steps: 10}))
	turn := f.accept("root")
	until(t, g.begun, "the leaf looks")
	f.abort(f.children(turn)[0].Turn)
	is.Equal(f.wait(turn).Status, store.Completed)
	is.Equal(noticeIn(p.requests["root"][1]), "half of the steps is used."+byParent)
}

// TestTeamNoticesAfterApproval lets a person decide on a call beside a child. Its result has the notice.
func TestTeamNoticesAfterApproval(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	p := &teamPlay{steps: map[string][][]string{"root": {append(toRun("leaf"), "danger", `{}`)}, "leaf": its(5)}}
	f, e := newAsking(t, p.model(), withTools(gives("it", `1`)), withBudget(runner.Limits{Steps: 10}))
	turn := f.accept("root")
	a := f.pending(turn, 1)[0]
	f.decide(a, true, "")
	is.Equal(f.wait(turn).Status, store.Completed)
	is.Equal(len(e.list()), 1)
	is.Equal(noticeIn(p.requests["root"][1]), "half of the steps is used."+byParent)
}

// TestTeamNoticesStay checks that the requests of a later turn contain the notices at the same places.
func TestTeamNoticesStay(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	p := &teamPlay{steps: map[string][][]string{"root": {toRun("leaf"), its(1)[0]}, "leaf": its(3)}}
	f := newFixture(t, withModel(p.model()), withTools(gives("it", `1`)), withBudget(runner.Limits{Steps: 7}))
	task := f.run("root").TaskID
	f.run("more", task)
	last, again := p.requests["root"][2], p.requests["more"][0]
	is.True(strings.Contains(noticeIn(last), " | ")) // two notices
	is.True(strings.HasPrefix(again, last))
}

// TestTeamNoticesAfterKill kills the process at each point of a team. The children have used more when it starts
// again. A request that is made again is the same all the same.
func TestTeamNoticesAfterKill(t *testing.T) {
	t.Parallel()
	team := map[string][][]string{"root": {append(toRun("leaf"), its(1)[0]...), its(1)[0]}, "leaf": its(9)}
	setups := []setup{withTools(repeats("it")), withPrices(t, tenPrices), withBudget(runner.Limits{Steps: 20, Credits: 200})}
	pass := func(string, int) {}
	for dies := range 2 * 13 {
		t.Run(fmt.Sprint(dies), func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			var points atomic.Int64
			first, second := &teamPlay{steps: team}, &teamPlay{steps: team, before: pass, after: pass}
			copied, made := make(chan death, 1), map[string][]string{}
			var f *fixture
			die := func(string, int) {
				if points.Add(1) == int64(dies)+1 {
					first.mu.Lock()
					maps.Copy(made, first.requests)
					first.mu.Unlock()
					copied <- f.die()
				}
			}
			first.before, first.after = die, die
			f = fixtureOn(t, storetest.Open(t, store.Options{}), append(setups, withModel(first.model()))...)
			f.found()
			f.start()
			turn := f.accept("root")
			g := f.after(until(t, copied, "the process dies"), withModel(second.model()))
			f.wait(turn)
			storetest.Exec(t, g.store, `UPDATE turns SET steps = steps + 5 WHERE parent_turn_num IS NOT NULL`)
			g.start()
			is.Equal(g.wait(turn).Status, store.Completed)
			for input, before := range made {
				n := len(before) - 1 // the last one is made again, or the one after it
				if again := second.requests[input]; len(again) > 0 && len(again[0]) == len(before[n]) {
					is.Equal(again[0], before[n])
				} else if len(again) > 0 {
					is.True(strings.HasPrefix(again[0], before[n]))
				}
			}
		})
	}
}

// repeats returns a tool that a resumed turn calls again.
func repeats(name string) fakeTool {
	t := gives(name, `1`)
	t.repeatable = true
	return t
}

// TestTeamStepsEndLoop lets a parent repeat a call until its team has used up the steps: like a turn alone, it makes
// its last call, and is not ended for the repetitions.
func TestTeamStepsEndLoop(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	root := [][]string{toRun("leaf")}
	for range 9 {
		root = append(root, its(1)[0])
	}
	p := &teamPlay{steps: map[string][][]string{"root": root}}
	f := newFixture(t, withModel(p.model()), withTools(gives("it", `1`)), withBudget(runner.Limits{Steps: 10}))
	turn := f.run("root")
	is.Equal([]any{turn.Status, turn.IncompleteLimit, turn.Usage.Steps}, []any{store.Completed, "steps", int64(10)}) // and one of the leaf
}

// TestTeamStepsEnd checks the end of a parent whose children have used its steps: it makes its last call at once.
func TestTeamStepsEnd(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	p := &teamPlay{steps: map[string][][]string{"root": append([][]string{toRun("leaf")}, its(5)...), "leaf": its(7)}}
	f := newFixture(t, withModel(p.model()), withTools(gives("it", `1`)), withBudget(runner.Limits{Steps: 10, Time: time.Hour}))
	turn := f.run("root")
	is.Equal([]any{turn.Status, turn.IncompleteReason, turn.IncompleteLimit}, []any{store.Completed, store.ReasonBudget, "steps"})
	requests := p.requests["root"]
	is.Equal(len(requests), 3) // 1 and 8 steps, then one more, and the last call
	is.True(strings.Contains(noticeIn(requests[1]), "80% of the steps is used"))
	is.True(strings.Contains(requests[2], "The budget of this task is used up."))
}
