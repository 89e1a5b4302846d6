package runner

import (
	"slices"

	"journeyman/runner/model"
	"journeyman/store"
)

// maxMistakes limits how often in a row a model is told that the server could not read its tool call.
const maxMistakes = 3

// tellMistake tells the model that the server could not read its tool call. After maxMistakes the turn fails.
func (r *Runner) tellMistake(e *execution, st store.Step, mistake string) (done bool, err error) {
	if e.mistakes() >= maxMistakes {
		return true, r.fail(e, st, store.Failure{Code: "tool_call_as_text",
			Message: "the server could not read the tool calls of the model, again and again. " + mistake})
	}
	r.logCall(e, "the server could not read the model's tool call", nil, "step", st.Seq)
	st.Feedback = mistake
	return false, r.journal(e, st)
}

// mistakes returns the number of newest steps in a row whose tool call the server could not read.
func (e *execution) mistakes() (n int) {
	for _, st := range slices.Backward(e.steps) {
		if !isMistake(st) {
			break
		}
		n++
	}
	return n
}

// isMistake reports whether a step only told the model that the server could not read its tool call.
func isMistake(st store.Step) bool {
	return st.Feedback != "" && st.Finish == string(model.FinishOther) && len(st.Parts) == 0
}
