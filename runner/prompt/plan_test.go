package prompt

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode"

	"github.com/matryer/is"

	"journeyman/runner/model"
	"journeyman/store"
)

// planning returns a prompt whose first turn has steps that each update the plan.
func planning(steps int) *Prompt {
	p := New(store.Claim{}, Files{Open: func(store.File) ([]byte, error) { return nil, nil }})
	p.AddInstruction(store.Turn{Input: "Do it."}, nil)
	for i := range steps {
		out := fmt.Sprintf(`{"items":[{"text":"plan %d","state":"done"},{"text":"go\non","state":"in_progress"},{"text":"end","state":"pending"}]}`, i)
		p.AddStep(store.Step{Seq: int64(i), Finish: "tool-calls",
			Parts: []store.Part{{Type: store.PartToolCall, CallID: "c", ToolName: "update_plan", Input: json.RawMessage(`{}`)}},
			Calls: []store.Call{{State: store.CallCompleted, Output: json.RawMessage(out)}}})
	}
	return p
}

func summaryText(p *Prompt) string {
	for _, m := range p.Request().Messages {
		if t := m.Parts[0].Text; m.Role == model.RoleUser && strings.Contains(t, "A record of it.") {
			return t
		}
	}
	return ""
}

// TestPlanIsRepeated checks that a summary message contains the plan that the summary covers.
func TestPlanIsRepeated(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	p := planning(3)
	p.Restore(store.Compaction{Kind: store.CompactionSummary, BeforeStep: 2, Summary: "A record of it."})
	told := summaryText(p)
	is.True(strings.HasSuffix(told, "\n\nYour plan as you last set it down:\n- [x] plan 1\n- [in progress] go on\n- [ ] end"))
	p.AddStep(store.Step{Seq: 3, Parts: []store.Part{{Type: store.PartText, Text: "So."}}})
	is.Equal(summaryText(p), told) // a later plan does not change the message

	p = planning(3)
	p.Restore(store.Compaction{Kind: store.CompactionSummary, BeforeTurn: 1, Summary: "A record of it."})
	p.AddInstruction(store.Turn{Seq: 1, Input: "Now this."}, nil)
	is.True(!strings.Contains(summaryText(p), "plan")) // the turn of the plan has ended
}

// FuzzPlan checks that a plan of any size stays small, with one line per item.
func FuzzPlan(f *testing.F) {
	f.Add("a", "done", 3)
	f.Add(strings.Repeat("é\n", 400), "x", 60)
	f.Add("\u2028\x00]", "in_progress", 500)
	f.Fuzz(func(t *testing.T, text, state string, n int) {
		list := make([]map[string]string, max(0, min(n, 1000)))
		for i := range list {
			list[i] = map[string]string{"text": text, "state": state}
		}
		raw, err := json.Marshal(map[string]any{"items": list})
		if err != nil {
			t.Skip()
		}
		plan := planLines(string(raw))
		if len(plan) > maxPlan+10 {
			t.Fatalf("%d bytes", len(plan))
		}
		for line := range strings.SplitSeq(plan, "\n") {
			if line != "" && !strings.HasPrefix(line, "- ") || strings.ContainsFunc(line, unicode.IsControl) {
				t.Fatalf("%q", line)
			}
		}
		_ = planLines(text) // no panic
	})
}
