package runner

import (
	"slices"

	"journeyman/store"
)

// maxMistakes limits how often in a row a model is told that its tool call could not be read.
const maxMistakes = 3

// tellMistake tells the model that its tool call could not be read: by the server, or by takeTextCalls. After
// maxMistakes the turn fails.
func (r *Runner) tellMistake(e *execution, st store.Step, mistake string) (done bool, err error) {
	st.Finish = store.FinishMistake
	if e.mistakes() >= maxMistakes {
		return true, r.fail(e, st, store.Failure{Code: "tool_call_as_text",
			Message: "the tool calls of the model could not be read, again and again. " + mistake})
	}
	r.logCall(e, "the model's tool call could not be read", nil, "step", st.Seq)
	st.Feedback = mistake
	return false, r.journal(e, st)
}

// mistakes returns the number of newest steps in a row whose tool call could not be read.
func (e *execution) mistakes() (n int) {
	for _, st := range slices.Backward(e.steps) {
		if !isMistake(st) {
			break
		}
		n++
	}
	return n
}

// isMistake reports whether a step only told the model that its tool call could not be read.
func isMistake(st store.Step) bool { return st.Finish == store.FinishMistake }
