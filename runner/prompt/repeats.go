package prompt

import (
	"fmt"

	"journeyman/runner/model"
)

// hintEvery is the number of equal calls in a row after which the model gets a hint.
const hintEvery = 5

// repeats counts the equal tool calls in a row of a turn: calls of the same tool, with the
// same arguments and the same result.
type repeats struct {
	tool, input, result string
	n                   int
}

// count counts a call. It returns how many equal calls in a row there are now.
func (r *repeats) count(tool, input, result string) int {
	if r.n > 0 && r.tool == tool && r.input == input && r.result == result {
		r.n++
	} else {
		*r = repeats{tool, input, result, 1}
	}
	return r.n
}

// Repeats returns how many of the turn's newest tool calls in a row are equal.
func (p *Prompt) Repeats() int { return p.repeats.n }

// noteRepeats counts the calls of a step. With hints, the results of calls that bring
// nothing new say so. The same steps give the same messages, so that caches stay valid.
func (p *Prompt) noteRepeats(messages []model.Message) {
	// A result does not hold the arguments of its call, but its message follows the call.
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
