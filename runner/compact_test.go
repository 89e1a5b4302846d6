package runner_test

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/matryer/is"

	"journeyman/runner"
	"journeyman/runner/model"
	"journeyman/store"
	"journeyman/store/ordertest"
	"journeyman/store/storetest"
)

// smallWindow is the window of the fake model, in tokens of three bytes each. The provider counts
// more tokens than the runner estimates, so the runner must calibrate.
const (
	smallWindow = 8000
	smallPrices = `{"openai:small":{"input":1,"output":2,"contextWindow":8000,"maxOutput":1000},` +
		`"anthropic:small":{"input":1,"output":2,"contextWindow":8000,"maxOutput":1000}}`
)

var fact = regexp.MustCompile(`fact-\d+`)

// small is a model server with a small window. It refuses longer requests. Its summaries contain
// the facts of the request, and its answers repeat the newest instruction.
type small struct {
	window int
	reply  func(asked) said // nil for the default answer; never called concurrently

	mu sync.Mutex
	tally
}

// A tally contains the requests that a small has received.
type tally struct {
	refused            int
	summaries, answers []asked
}

// last returns the newest request for an answer.
func (t tally) last() asked { return t.answers[len(t.answers)-1] }

func (s *small) so() tally {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tally
	t.summaries, t.answers = slices.Clone(t.summaries), slices.Clone(t.answers)
	return t
}

func (s *small) think(a asked) said {
	s.mu.Lock()
	defer s.mu.Unlock()
	if tokens := a.bytes/3 + a.maxTokens; tokens > s.window {
		s.refused++
		return tooLong(s.window, tokens)
	}
	in := int64(a.bytes / 3)
	if strings.HasPrefix(a.system, "You keep the record") {
		s.summaries = append(s.summaries, a)
		facts := slices.Compact(slices.Sorted(slices.Values(fact.FindAllString(a.last().text, -1))))
		return said{text: "Record. Known: " + strings.Join(facts, " "), in: in, out: 100}
	}
	s.answers = append(s.answers, a)
	r := said{text: "Noted. " + strings.Repeat("That is so. ", 30)}
	if s.reply != nil {
		r = s.reply(a)
	}
	r.in, r.out = in, 100
	return r
}

// newSmall returns a fixture with the model s.
func newSmall(t *testing.T, s *small, setups ...setup) *fixture {
	s.window = cmp.Or(s.window, smallWindow)
	p := newWire(t, s.think)
	return newFixture(t, append([]setup{withModel(p.openModel(t, "openai:small")), withPrices(t, smallPrices)}, setups...)...)
}

func (f *fixture) compactions(t store.Turn) []store.Compaction {
	f.t.Helper()
	made, err := f.store.Compactions(f.ctx(), t)
	is.New(f.t).NoErr(err)
	return made
}

// kinds returns the kinds of compactions in order, without consecutive duplicates.
func kinds(made []store.Compaction) (list []store.CompactionKind) {
	for _, m := range made {
		list = append(list, m.Kind)
	}
	return slices.Compact(list)
}

// TestTwoHundredTurns runs a conversation that is many times longer than the window.
func TestTwoHundredTurns(t *testing.T) {
	storetest.Long(t)
	t.Parallel()
	is := is.New(t)
	const turns = 200
	s := &small{}
	s.reply = func(a asked) said {
		if a.last().role == "user" && strings.Contains(a.last().text, "look it up") {
			return said{calls: []saidCall{{fmt.Sprintf("call_%d", a.number), "it", `{"what":"` + strings.Repeat("x", 500) + `"}`}}}
		}
		return said{text: "Noted. " + strings.Repeat("That is so. ", 30)}
	}
	f := newSmall(t, s, withTools(gives("it", `"`+strings.Repeat("page ", 1200)+`"`)))
	var last store.Turn
	for i := range turns {
		input := fmt.Sprintf("Remember fact-%d. %s", i, strings.Repeat("Some more words. ", 10))
		if i%4 == 3 {
			input += "look it up"
		}
		if i == 0 {
			last = f.run(input)
		} else {
			last = f.run(input, last.TaskID)
		}
		is.Equal(last.Status, store.Completed)
		newest := s.so().last()
		is.True(newest.has(input))    // the instruction is never truncated
		is.True(newest.has("fact-0")) // a summary still contains the first fact
		is.Equal(newest.has("fact-17"), i >= 17)
	}
	is.Equal(s.so().refused, 0) // the provider refused no request
	made := f.compactions(last)
	paid, total := 0, store.Usage{}
	at := int64(0)
	for _, m := range made {
		is.Equal(m.Model, "openai:small")
		is.True(m.TokensBefore > m.Room || at == m.TurnNum) // no compaction before it is needed
		ordertest.Below(is, m.TokensAfter, m.TokensBefore)  // the compaction saves tokens
		is.Equal(m.Summary != "", m.Kind == store.CompactionSummary)
		is.Equal(m.Usage.ModelCost > 0, m.Kind == store.CompactionSummary) // only summaries have a cost
		total = total.Add(m.Usage)
		if m.Kind == store.CompactionSummary {
			paid++
		}
		at = m.TurnNum
	}
	is.Equal(paid, len(s.so().summaries))
	ordertest.Between(is, paid, 5, turns/5) // not in every turn
	is.True(slices.Contains(kinds(made), store.CompactionCut))
	t.Logf("%d compactions, %d of them summaries, %d model calls", len(made), paid, len(s.so().answers))

	conv := f.conversation(last)
	steps := store.Usage{}
	for _, turn := range conv.Turns {
		total = total.Add(store.Usage{})
		steps = steps.Add(turn.Usage)
	}
	var own store.Usage
	for _, list := range conv.Steps {
		for _, st := range list {
			ordertest.Above(is, st.Estimated, 0) // the page shows the estimate beside the provider's count
			own = own.Add(st.Usage)
		}
	}
	is.Equal(steps.ModelCost, own.ModelCost+total.ModelCost) // of steps and summaries
	is.Equal(steps.InputTokens, own.InputTokens+total.InputTokens)
	is.Equal(len(f.messages(last)), 2*turns) // users still see the whole conversation
}

// TestLongTurn runs one turn whose steps outgrow the window.
func TestLongTurn(t *testing.T) {
	t.Parallel()
	for _, provider := range []string{"openai", "anthropic"} {
		t.Run(provider, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			steps := storetest.Rounds(60, 25)
			s := &small{window: smallWindow}
			n := 0
			s.reply = func(a asked) said {
				if n++; n > steps {
					return said{text: "all done"}
				}
				return said{text: strings.Repeat("I look further. ", 20), calls: []saidCall{
					{fmt.Sprintf("call_%d", n), "it", fmt.Sprintf(`{"n":%d,"why":%q}`, n, strings.Repeat("y", 3000))},
					{fmt.Sprintf("more_%d", n), "it", `{}`}}}
			}
			p := newWire(t, s.think)
			f := newFixture(t, withModel(p.openModel(t, provider+":small")), withPrices(t, smallPrices),
				withTools(gives("it", `"fact-5 `+strings.Repeat("row ", 2000)+`"`)))
			turn := f.acceptTurn(store.NewTurn{Caller: f.owner, WorkerID: f.worker.ID, Input: "Look many times, and be careful with fact-1.", Budget: store.BudgetUnlimited})
			turn = f.wait(turn)
			is.Equal(turn.Failure, nil)
			is.Equal(turn.OutputText, "all done")
			is.Equal(len(f.journal(turn)), steps+1)
			ordertest.AtMost(is, s.so().refused, 1) // before the runner has calibrated its estimates
			for _, a := range s.so().answers {
				is.True(a.has("Look many times, and be careful with fact-1.")) // the instruction is complete
				is.Equal(a.messages[0].role, "user")
				for i, m := range a.messages { // each output follows its call
					is.True(m.role != "tool" || slices.Contains([]string{"assistant", "tool"}, a.messages[i-1].role))
				}
			}
			made := f.compactions(turn)
			is.True(slices.Contains(kinds(made), store.CompactionCut))
			is.True(slices.Contains(kinds(made), store.CompactionSummary))
			for _, st := range f.journal(turn)[:steps] {
				is.Equal(len(st.Calls[0].Output), 8009) // the journal contains the complete output
			}
		})
	}
}

// TestKillAfterSummary ends the process between a summary and the next call. The summary is not
// paid for again.
func TestKillAfterSummary(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	s := &small{}
	copied := make(chan death, 1)
	var f *fixture
	dies := false
	s.reply = func(asked) said {
		if !dies && len(s.summaries) > 0 {
			dies = true
			copied <- f.die()
		}
		return said{text: "Noted. " + strings.Repeat("That is so. ", 30)}
	}
	f = newSmall(t, s)
	last := f.run("Remember fact-0.")
	for i := 1; len(copied) == 0; i++ {
		last = f.run(fmt.Sprintf("Remember fact-%d. %s", i, strings.Repeat("Some more words. ", 10)), last.TaskID)
	}
	g := f.after(until(t, copied, "the process dies"))
	paid := len(s.so().summaries)
	ordertest.AtLeast(is, paid, 1)
	before := g.compactions(last)
	is.Equal(before[len(before)-1].Kind, store.CompactionSummary)
	g.start()
	again := g.wait(last) // the same turn
	is.Equal(again.Status, store.Completed)
	is.Equal(again.Claims, int64(2))
	is.Equal(len(s.so().summaries), paid)
	is.Equal(g.compactions(last), before)
	is.True(s.so().last().has("Record. Known: fact-0"))
	ordertest.Above(is, again.Usage.InputTokens, before[len(before)-1].Usage.InputTokens) // the summary is charged
	next := g.run("And fact-1000?", last.TaskID)
	is.Equal(next.Status, store.Completed)
	is.Equal(len(s.so().summaries), paid) // the next turn does not pay for it again
	is.True(s.so().last().has("Record. Known: fact-0"))
}

// TestRefusedOnce uses a provider whose window is smaller than in the price table.
func TestRefusedOnce(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	s := &small{window: 4000}
	f := newSmall(t, s)
	last := f.run("Remember fact-0.")
	for i := 1; s.so().refused == 0; i++ {
		last = f.run(fmt.Sprintf("Remember fact-%d. %s", i, strings.Repeat("Some more words. ", 10)), last.TaskID)
	}
	is.Equal(last.Status, store.Completed) // one retry was enough
	is.Equal(s.so().refused, 1)
	made := f.compactions(last)
	ordertest.Above(is, len(made), 0)
	for _, m := range made {
		is.True(m.Refused)
		ordertest.Below(is, m.Room, 4000)
	}
	for i := range 40 {
		last = f.run(fmt.Sprintf("Remember fact-%d. %s", 100+i, strings.Repeat("Some more words. ", 10)), last.TaskID)
		is.Equal(last.Status, store.Completed)
	}
	is.Equal(s.so().refused, 1) // the next turn uses the stored refusal
	is.True(s.so().last().has("fact-0"))
}

// TestRefusedTwice uses a provider that refuses every request as too long.
func TestRefusedTwice(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		turns    int
		requests int // of the last turn
	}{
		"nothing to leave out":   {0, 1},
		"something to leave out": {5, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			s := &small{}
			f := newSmall(t, s)
			first := f.accept("Remember fact-0.")
			for i := range tt.turns {
				f.wait(first)
				f.run(fmt.Sprintf("Remember fact-%d. %s", i, strings.Repeat("Some more words. ", 10)), first.TaskID)
			}
			f.wait(first)
			s.reply = func(asked) said { s.refused++; return tooLong(10, 20) }
			input := "Now this."
			turn := store.Turn{}
			if tt.turns == 0 {
				turn = f.run(input)
			} else {
				turn = f.run(input, first.TaskID)
			}
			is.Equal(turn.Status, store.Failed)
			is.Equal(turn.Failure.Code, "context_length")
			is.True(strings.Contains(turn.Failure.Message, "maximum context length")) // the provider's message
			is.Equal(s.so().refused, tt.requests)
		})
	}
}

// TestHugeOutput sends the model a tool output that is larger than its window.
func TestHugeOutput(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	s := &small{}
	s.reply = func(a asked) said {
		if a.last().role == "tool" {
			return said{text: "it ends with " + a.last().text[len(a.last().text)-20:]}
		}
		return said{calls: []saidCall{{"call_1", "it", `{}`}}}
	}
	f := newSmall(t, s, withTools(gives("it", `"BEGIN`+strings.Repeat("0123456789 ", 20_000)+`END"`)))
	turn := f.run("Get it.")
	is.Equal(turn.Failure, nil)
	is.True(strings.Contains(turn.OutputText, "END")) // the head and the tail are kept
	is.True(s.so().answers[1].has("BEGIN0123456789"))
	is.True(s.so().answers[1].has("bytes were left out here"))
	is.Equal(s.so().refused, 0)
	is.Equal(kinds(f.compactions(turn)), []store.CompactionKind{store.CompactionCut}) // no summary: it would save almost nothing
}

// TestNoCreditsForSummary runs a turn with few credits left. A note replaces the older turns, and
// the turn stays within its budget.
func TestNoCreditsForSummary(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	s := &small{}
	f := newSmall(t, s, func(c *runner.Config) {
		c.Budgets = map[store.Budget]runner.Limits{store.BudgetLow: {Credits: 0.9}, store.BudgetStandard: {}}
	})
	last := f.run("Remember fact-0.")
	var low store.Turn
	for i := 1; len(f.compactions(last)) == 0; i++ {
		n := store.NewTurn{Caller: f.owner, WorkerID: f.worker.ID, TaskID: last.TaskID, Budget: store.BudgetLow,
			Input: fmt.Sprintf("Remember fact-%d. %s", i, strings.Repeat("Some more words. ", 10))}
		low = f.wait(f.acceptTurn(n))
		is.Equal(low.Status, store.Completed)
	}
	is.Equal(kinds(f.compactions(last)), []store.CompactionKind{store.CompactionOmission})
	is.Equal(len(s.so().summaries), 0)
	is.Equal(s.so().refused, 0)
	ordertest.AtMost(is, low.Usage.Cost(), 9_000_000)
	is.True(s.so().last().has("earlier steps of this task were left out"))

	is.Equal(f.run("And now, with enough credits?", last.TaskID).Status, store.Completed)
	ordertest.Above(is, len(s.so().summaries), 0)
	is.True(s.so().last().has("fact-0")) // a later turn gets the facts again
}

// TestUnknownWindow uses a model that the price table does not list.
func TestUnknownWindow(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	s := &small{window: 4000}
	p := newWire(t, s.think)
	f := newFixture(t, withModel(p.openModel(t, "openai:nobody-knows")), func(c *runner.Config) { c.ContextWindow = 4000 })
	last := f.run("Remember fact-0.")
	for i := range 60 {
		last = f.run(fmt.Sprintf("Remember fact-%d. %s", i, strings.Repeat("Some more words. ", 10)), last.TaskID)
		is.Equal(last.Status, store.Completed)
	}
	is.Equal(s.so().refused, 0)
	ordertest.Above(is, len(s.so().summaries), 0)
	is.Equal(last.Usage.ModelCost, int64(0)) // a model without a price is free
}

// TestReplayOfALongConversation records a conversation with summaries and replays it. The requests
// must be identical, byte for byte.
func TestReplayOfALongConversation(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	s := &small{window: smallWindow}
	dir := t.TempDir()
	run := func(m model.Model) (outputs []string, kept []store.CompactionKind) {
		f := newFixture(t, withModel(m), withPrices(t, smallPrices))
		var last store.Turn
		for i := range 40 {
			input := fmt.Sprintf("Remember fact-%d. %s", i, strings.Repeat("Some more words. ", 20))
			if i == 0 {
				last = f.run(input)
			} else {
				last = f.run(input, last.TaskID)
			}
			is.Equal(last.Failure, nil)
			outputs = append(outputs, last.OutputText, fmt.Sprint(last.Usage.InputTokens, last.Usage.Steps))
		}
		return outputs, kinds(f.compactions(last))
	}
	outputs, kept := run(model.NewRecorder(newWire(t, s.think).openModel(t, "openai:small"), dir))
	is.True(slices.Contains(kept, store.CompactionSummary))
	replay, err := model.Open(model.Config{Model: "replay:" + dir})
	is.NoErr(err)
	again, keptAgain := run(replay)
	is.Equal(again, outputs)
	is.Equal(keptAgain, kept)
}

// TestOfflineIsDeterministic runs the same long script twice with the offline model. Both runs make
// the same compactions. The script continues at the correct step after each compaction.
func TestOfflineIsDeterministic(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	run := func() (outputs []string, made []store.Compaction) {
		f := newFixture(t, withPrices(t, `{"offline":{"input":0.5,"output":2,"contextWindow":6000,"maxOutput":1000}}`),
			withTools(gives("it", `"`+strings.Repeat("row ", 1000)+`"`)))
		var lines []string
		for i := range 40 {
			lines = append(lines, fmt.Sprintf("say step %d", i), fmt.Sprintf(`tool it {"n":%d}`, i))
		}
		var last store.Turn
		for i := range 3 {
			n := store.NewTurn{Caller: f.owner, WorkerID: f.worker.ID, TaskID: last.TaskID, Budget: store.BudgetUnlimited,
				Input: script(append(lines, fmt.Sprintf("say done %d", i))...)}
			last = f.wait(f.acceptTurn(n))
			is.Equal(last.Failure, nil)
			is.Equal(last.OutputText, fmt.Sprintf("done %d", i))
			steps := f.journal(last)
			is.Equal(len(steps), 41) // no step is repeated or left out
			for k, st := range steps[:40] {
				is.Equal(st.Parts[0].Text, fmt.Sprintf("step %d", k))
			}
			outputs = append(outputs, fmt.Sprint(last.Usage))
		}
		for _, m := range f.compactions(last) {
			m.StartedAt, m.CompletedAt = last.CreatedAt.UTC(), last.CreatedAt.UTC()
			made = append(made, m)
		}
		return outputs, made
	}
	outputs, made := run()
	again, madeAgain := run()
	is.Equal(outputs, again)
	for i := range made {
		made[i].StartedAt, made[i].CompletedAt = madeAgain[i].StartedAt, madeAgain[i].CompletedAt
	}
	is.Equal(made, madeAgain)
	is.True(slices.Contains(kinds(made), store.CompactionSummary))
}
