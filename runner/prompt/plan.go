package prompt

import (
	"encoding/json"
	"slices"
	"strings"

	"journeyman/runner/model"
	"journeyman/store"
)

// Limits of a plan in the prompt.
const (
	maxPlanItems = 50
	maxPlanItem  = 120  // characters
	maxPlan      = 2000 // bytes
)

// plan returns the newest plan in the part of an unfinished turn that a summary covers, "" if
// there is none. The plan has one line for each item. It depends only on the covered part, so
// that the message with the summary does not change during the turn.
func (c *conversation) plan(m store.Compaction) string {
	for _, p := range slices.Backward(c.passages) {
		if p.turn != m.BeforeTurn || p.step < 0 || p.step >= m.BeforeStep {
			continue
		}
		// The newest passage comes first, and each plan replaces the earlier plans.
		if result, ok := p.planResult(); ok {
			return planLines(result)
		}
	}
	return ""
}

// planResult returns the result of the newest call of update_plan in a passage.
func (p passage) planResult() (text string, ok bool) {
	for _, message := range p.messages {
		for _, part := range message.Parts {
			if part.Type == model.PartToolResult && part.ToolName == "update_plan" && !part.IsError {
				text, ok = part.Text, true
			}
		}
	}
	return text, ok
}

// planLines returns the result of update_plan as a list of lines.
func planLines(result string) string {
	var plan struct {
		Items []struct {
			Text, State string
		}
	}
	if json.Unmarshal([]byte(result), &plan) != nil {
		return "" // the result of another tool with that name
	}
	var b strings.Builder
	for _, item := range plan.Items[:min(len(plan.Items), maxPlanItems)] {
		mark := "[ ] "
		switch {
		case item.State == "done":
			mark = "[x] "
		case item.State == "in_progress":
			mark = "[in progress] "
		}
		line := "- " + mark + plain(item.Text, maxPlanItem) + "\n"
		if b.Len()+len(line) > maxPlan {
			b.WriteString("- ...\n")
			break
		}
		b.WriteString(line)
	}
	return strings.TrimSuffix(b.String(), "\n")
}
