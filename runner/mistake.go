package runner

import (
	"cmp"
	"fmt"
	"slices"

	"journeyman/runner/model"
	"journeyman/store"
)

// maxMistakes limits how often in a row a model is told that its tool call could not be read.
const maxMistakes = 3

// returnMistake lets the model read that its tool call could not be read: by the server, or by takeTextCalls. After
// maxMistakes the turn fails.
func (r *Runner) returnMistake(e *execution, st store.Step, resp model.Response) (outcome, error) {
	st.Finish = store.FinishMistake
	if n := e.mistakes(); n >= maxMistakes {
		// Neither Mistake, which is for the model, nor the text of the call: users see this message.
		return ended, r.fail(e, st, store.Failure{Code: "tool_call_as_text",
			Message: fmt.Sprintf("the model's tool call could not be made, %d times in a row: %s", n+1,
				cmp.Or(resp.Reason, "the server could not read it"))})
	}
	e.logCall("the model's tool call could not be read", nil, "step", st.Seq)
	st.Feedback = resp.Mistake
	return next, r.journal(e, st)
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
