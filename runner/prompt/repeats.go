package prompt

import (
	"fmt"

	"journeyman/runner/model"
)

// hintEvery is the number of equal consecutive calls after which the model gets a hint.
const hintEvery = 5

// repeats counts equal consecutive tool calls of a turn: the tool, the arguments and the result
// are the same.
type repeats struct {
	tool, input, result string
	n                   int
}

// count counts a call. It returns the number of equal consecutive calls so far.
func (r *repeats) count(tool, input, result string) int {
	if r.n > 0 && r.tool == tool && r.input == input && r.result == result {
		r.n++
	} else {
		*r = repeats{tool, input, result, 1}
	}
	return r.n
}

// Repeats returns how many of the turn's newest tool calls are equal.
func (p *Prompt) Repeats() int { return p.repeats.n }

// noteRepeats counts the calls of a step. If Hints is set, it adds a hint to the results of
// repeated calls. The same steps always get the same hints, so that caches stay valid.
func (p *Prompt) noteRepeats(messages []model.Message) {
	// A result does not contain the arguments of its call, but its message follows the call.
	inputs := map[string]string{}
	for _, m := range messages {
		for i := range m.Parts {
			part := &m.Parts[i]
			switch part.Type {
			case model.PartToolCall:
				inputs[part.CallID] = string(part.Input)
			case model.PartToolResult:
				p.noteRepeat(part, inputs[part.CallID])
			}
		}
	}
}

// noteRepeat counts a call with its result.
func (p *Prompt) noteRepeat(result *model.Part, input string) {
	n := p.repeats.count(result.ToolName, input, result.Text)
	if p.Hints && n%hintEvery == 0 {
		result.Text += fmt.Sprintf("\n\n(The same call was made %d times in a row, with the same result. "+
			"Try something else, or answer with what you have.)", n)
	}
}
