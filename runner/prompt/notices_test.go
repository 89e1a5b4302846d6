package prompt

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/runner/model"
	"journeyman/store"
)

// TestBudgetNotices checks after which steps the model gets which notice.
func TestBudgetNotices(t *testing.T) {
	t.Parallel()
	const credit = int64(store.NanosPerCredit)
	for name, tt := range map[string]struct {
		budget  Budget
		step    store.Step       // made again and again
		notices map[int][]string // words by the number of steps
		silent  bool
	}{
		"no limits": {Budget{}, store.Step{Usage: store.Usage{ModelCost: credit}}, nil, false},
		"steps":     {Budget{Steps: 10}, store.Step{}, map[int][]string{5: {"half of the steps is"}, 8: {"80% of the steps is"}}, false},
		"one step":  {Budget{Steps: 1}, store.Step{}, nil, false},
		"three":     {Budget{Steps: 3}, store.Step{}, map[int][]string{2: {"half of the steps is"}}, false},
		"credits": {Budget{Credits: 10}, store.Step{Usage: store.Usage{ModelCost: 3 * credit}},
			map[int][]string{2: {"half of the credits is"}, 3: {"80% of the credits is"}}, false},
		"of a tool": {Budget{Credits: 10}, store.Step{Calls: []store.Call{{Cost: 5 * credit}}},
			map[int][]string{1: {"half of the credits is"}}, false},
		"most at once": {Budget{Credits: 10}, store.Step{Usage: store.Usage{ModelCost: 9 * credit}},
			map[int][]string{1: {"80% of the credits is"}}, false},
		"time": {Budget{Time: time.Minute}, store.Step{CompletedAt: time.Time{}.Add(16 * time.Second)},
			map[int][]string{2: {"half of the time is"}, 3: {"80% of the time is"}}, false},
		"together": {Budget{Steps: 10, Credits: 20, Time: time.Hour}, store.Step{Usage: store.Usage{ModelCost: 2 * credit}},
			map[int][]string{5: {"half of the steps and of the credits is"}, 8: {"80% of the steps and of the credits is"}}, false},
		"apart": {Budget{Steps: 10, Credits: 50}, store.Step{Usage: store.Usage{ModelCost: 8 * credit}},
			map[int][]string{4: {"half of the credits"}, 5: {"half of the steps is", "80% of the credits is"}, 8: {"80% of the steps"}}, false},
		"a model that reads data": {Budget{Steps: 10}, store.Step{}, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			p := New(store.Claim{}, Files{})
			p.Hints = !tt.silent
			p.Budget = func(store.Budget) Budget { return tt.budget }
			p.AddInstruction(store.Turn{Input: "go"}, nil)
			for n := 1; n <= 10; n++ {
				addCall(p, tt.step, n)
				messages := p.Request().Messages
				text := messages[len(messages)-1].Parts[0].Text
				is.Equal(strings.Contains(text, "(Budget of this task: "), len(tt.notices[n]) > 0)
				for _, words := range tt.notices[n] {
					is.True(strings.Contains(text, words))
				}
			}
		})
	}
}

// addCall adds a step with two tool calls.
func addCall(p *Prompt, st store.Step, n int) {
	st.Seq = int64(n)
	for i := range 2 {
		st.Parts = append(st.Parts, store.Part{Type: store.PartToolCall, CallID: fmt.Sprint(n, i), ToolName: "it",
			Input: json.RawMessage(fmt.Sprintf(`{"n":%d}`, n))})
		if i >= len(st.Calls) {
			st.Calls = append(st.Calls, store.Call{})
		}
		st.Calls[i].Seq, st.Calls[i].State, st.Calls[i].Output = int64(i), store.CallCompleted, json.RawMessage(`"done"`)
	}
	// The notice belongs to the last result, and the test reads the first part.
	st.Parts = st.Parts[len(st.Parts)-1:]
	p.AddStep(st)
}

// TestBudgetNoticeWaits checks that a step without results leaves the notice to the next step, and
// that a new instruction begins anew.
func TestBudgetNoticeWaits(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	p := New(store.Claim{}, Files{})
	p.Hints = true
	p.Budget = func(store.Budget) Budget { return Budget{Steps: 4} }
	notices := func() int {
		raw, err := json.Marshal(p.Request().Messages)
		is.NoErr(err)
		return strings.Count(string(raw), "(Budget of this task: ")
	}
	p.AddInstruction(store.Turn{Input: "go"}, nil)
	addCall(p, store.Step{}, 1)
	p.AddStep(store.Step{Seq: 2, Parts: []store.Part{{Type: store.PartText, Text: "so"}}, Feedback: "Go on.", Finish: store.FinishContinued})
	is.Equal(notices(), 0)
	addCall(p, store.Step{}, 3)
	is.Equal(notices(), 1)
	last := p.Request().Messages
	is.Equal(last[len(last)-1].Role, model.RoleTool)
	p.AddInstruction(store.Turn{Seq: 1, Input: "again"}, nil)
	addCall(p, store.Step{}, 1)
	is.Equal(notices(), 1)
	addCall(p, store.Step{}, 2)
	is.Equal(notices(), 2)
}
