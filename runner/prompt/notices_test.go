package prompt

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/runner/model"
	"journeyman/store"
)

// TestBudgetNotices checks after which steps the model gets which notice.
func TestBudgetNotices(t *testing.T) {
	t.Parallel()
	// of returns what a turn has used after each of its ten steps, if they use equal parts.
	of := func(s store.Spent) (list []store.Spent) {
		for n := int64(1); n <= 10; n++ {
			list = append(list, store.Spent{Steps: min(n*s.Steps, 100), Time: min(n*s.Time, 100), Credits: min(n*s.Credits, 100), ByTeam: s.ByTeam})
		}
		return list
	}
	for name, tt := range map[string]struct {
		used    []store.Spent
		notices map[int]string // by the number of steps
		child   bool
		silent  bool
	}{
		"no limits":    {of(store.Spent{}), nil, false, false},
		"steps":        {of(store.Spent{Steps: 10}), map[int]string{5: "half of the steps is used.", 8: "80% of the steps is used: *"}, false, false},
		"one step":     {of(store.Spent{Steps: 100}), nil, false, false},
		"three":        {of(store.Spent{Steps: 33}), map[int]string{2: "half of the steps is used.", 3: "80% of the steps is used: *"}, false, false},
		"credits":      {of(store.Spent{Credits: 30}), map[int]string{2: "half of the credits is used.", 3: "80% of the credits is used: *"}, false, false},
		"most at once": {of(store.Spent{Credits: 90}), map[int]string{1: "80% of the credits is used: *"}, false, false},
		"time":         {of(store.Spent{Time: 26}), map[int]string{2: "half of the time is used."}, false, false},
		"together": {of(store.Spent{Steps: 10, Credits: 10, Time: 1}), map[int]string{5: "half of the steps and of the credits is used.",
			8: "80% of the steps and of the credits is used: *"}, false, false},
		"apart": {of(store.Spent{Steps: 10, Credits: 16}), map[int]string{4: "half of the credits is used.",
			5: "half of the steps is used. 80% of the credits is used: *", 8: "80% of the steps is used: *"}, false, false},
		"a team": {of(store.Spent{Steps: 10, ByTeam: true}), map[int]string{5: "half of the steps is used. It was used by you and the workers you started.",
			8: "* and keep the rest for your answer. It was used by you and the workers you started."}, false, false},
		"time of a team": {of(store.Spent{Time: 10, ByTeam: true}), map[int]string{5: "half of the time is used.", 8: "80% of the time is used: *"}, false, false},
		"a child": {of(store.Spent{Credits: 10, ByTeam: true}), map[int]string{5: "half of the credits is used. It was used by you and the workers you share it with.",
			8: "80% of the credits is used: *"}, true, false},
		"a child with limits of its own": {of(store.Spent{Credits: 10}), map[int]string{5: "half of the credits is used.", 8: "80% of the credits is used: *"}, true, false},
		"less again":                     {[]store.Spent{{Steps: 81}, {Steps: 40}, {Steps: 55}, {Steps: 85}, {Steps: 99}}, map[int]string{1: "80% of the steps is used: *"}, false, false},
		"a model that reads data":        {of(store.Spent{Steps: 10}), nil, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			p := New(store.Claim{}, Files{})
			p.Hints = !tt.silent
			turn := store.Turn{Input: "go"}
			if tt.child {
				turn.Depth = 1
			}
			p.AddInstruction(turn, nil)
			for i, used := range tt.used {
				addCall(p, used, i+1)
				messages := p.Request().Messages
				_, got, found := strings.Cut(messages[len(messages)-1].Parts[0].Text, "\n\n(Budget of this task: ")
				is.Equal(found, tt.notices[i+1] != "")
				begin, end, part := strings.Cut(tt.notices[i+1], "*")
				if found && !part {
					is.Equal(got, begin+")")
				} else if found {
					is.True(strings.HasPrefix(got, begin) && strings.HasSuffix(got, end+")")) // the text
				}
			}
		})
	}
}

// addCall adds a step with two tool calls. The first one ended last, and the budget was used then.
func addCall(p *Prompt, used store.Spent, n int) {
	st := store.Step{Seq: int64(n)}
	for i := range 2 {
		st.Parts = append(st.Parts, store.Part{Type: store.PartToolCall, CallID: fmt.Sprint(n, i), ToolName: "it",
			Input: json.RawMessage(fmt.Sprintf(`{"n":%d}`, n))})
		st.Calls = append(st.Calls, store.Call{Seq: int64(i), State: store.CallCompleted, Output: json.RawMessage(`"done"`)})
	}
	st.Calls[0].Spent = used
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
	notices := func() int {
		raw, err := json.Marshal(p.Request().Messages)
		is.NoErr(err)
		return strings.Count(string(raw), "(Budget of this task: ")
	}
	p.AddInstruction(store.Turn{Input: "go"}, nil)
	addCall(p, store.Spent{Steps: 25}, 1)
	p.AddStep(store.Step{Seq: 2, Parts: []store.Part{{Type: store.PartText, Text: "so"}}, Feedback: "Go on.", Finish: store.FinishContinued})
	is.Equal(notices(), 0)
	addCall(p, store.Spent{Steps: 75}, 3)
	is.Equal(notices(), 1)
	last := p.Request().Messages
	is.Equal(last[len(last)-1].Role, model.RoleTool)
	p.AddInstruction(store.Turn{Seq: 1, Input: "again"}, nil)
	addCall(p, store.Spent{Steps: 25}, 1)
	is.Equal(notices(), 1)
	addCall(p, store.Spent{Steps: 50}, 2)
	is.Equal(notices(), 2)
}
