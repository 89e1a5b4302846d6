package prompt

import (
	"fmt"

	"journeyman/runner/model"
)

// hintEvery is the number of equal consecutive rounds after which the model gets a hint.
const hintEvery = 5

// MaxRound is the largest number of tool calls in a round. A round is a sequence of calls that
// the model repeats.
const MaxRound = 3

// A madeCall is a tool call with its result. Equal calls have the same tool, arguments and
// result.
type madeCall struct {
	tool, input, result string
}

// repeats counts equal consecutive rounds of tool calls in a turn.
type repeats struct {
	made   int                // calls of the turn
	newest [MaxRound]madeCall // call number i at i modulo MaxRound
	equal  [MaxRound]int      // by size of the round - 1: how many of the newest calls repeat a round of that size
}

// count counts a call.
func (r *repeats) count(c madeCall) {
	for i := range r.equal {
		size := i + 1
		// The call one round earlier decides. The newest calls are a first round in any case.
		if r.made >= size && r.newest[(r.made-size)%MaxRound] == c {
			r.equal[i]++
		} else {
			r.equal[i] = min(size, r.made+1)
		}
	}
	r.newest[r.made%MaxRound] = c
	r.made++
}

// due returns the size and the number of the rounds for which the model gets a hint now, or 0, 0.
// Of several sizes the smallest counts: four equal calls are also two rounds of two.
func (r *repeats) due() (size, rounds int) {
	for i, calls := range r.equal {
		if size = i + 1; calls%(hintEvery*size) == 0 {
			return size, calls / size
		}
	}
	return 0, 0
}

// Repeats returns how often the turn's newest tool calls repeat the same round of the given size,
// from 1 to MaxRound. Equal calls are rounds of one, not of two or three.
func (p *Prompt) Repeats(size int) int {
	equal := &p.repeats.equal
	if size > 1 && equal[0] >= size {
		return 0
	}
	return equal[size-1] / size
}

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
	p.repeats.count(madeCall{result.ToolName, input, result.Text})
	size, rounds := p.repeats.due()
	if !p.Hints || rounds == 0 {
		return
	}
	calls := "The same call was"
	if size > 1 {
		calls = fmt.Sprintf("The same %d calls were", size)
	}
	result.Text += fmt.Sprintf("\n\n(%s made %d times in a row, with the same result. "+
		"Try something else, or answer with what you have.)", calls, rounds)
}
