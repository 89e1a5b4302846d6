package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"journeyman/runner/budget"
	"journeyman/runner/model"
	"journeyman/runner/prompt"
	"journeyman/runner/schema"
	"journeyman/store"
)

// step makes one model call and acts on the response. It chooses a model, makes room for the request, calls the model
// and responds to its answer. If a model does not answer, step asks the next model of the chain.
func (r *Runner) step(ctx context.Context, e *execution) (outcome, error) {
	e.renderSteps()
	r.beginStep(ctx, e)
	if out, err := r.endRepeats(ctx, e); err != nil || out != next {
		return out, err
	}
	// A model that failed for an earlier step may be able to answer this one.
	for i := range e.chain {
		e.chain[i].Failure = nil
	}
	var refusal error // the chosen model has refused the request as too long: it is compacted and sent once more
	// This loop ends, because passOn records each failure and chooseModel skips failed models.
	for {
		if refusal == nil {
			if out, err := r.chooseModel(ctx, e); err != nil || out != next {
				return out, err
			}
		}
		var a answer
		err := r.makeRoom(ctx, e, refusal)
		if err == nil {
			c := modelCall{req: e.prompt.Request(), estimate: e.estimate}
			err = r.retry(ctx, e, func() (err error) { a, err = r.call(ctx, e, c); return err })
		}
		if err == nil {
			defer r.Models.Outages.Leave(e.model.ID, e.claim.ID)
			defer a.Reserved.Settle() // respond has committed the cost: until then the credits stay reserved
			return r.respond(e, a)
		}
		// Only once: a provider that refuses every size would otherwise get endless requests.
		if refusal == nil && isTooLong(err) && !e.largerFollows() {
			refusal = err
			continue
		}
		refusal = nil
		if !r.passOn(ctx, e, err) {
			return next, err
		}
	}
}

// isTooLong reports whether a provider has refused a request for its length.
func isTooLong(err error) bool {
	me, ok := errors.AsType[*model.Error](err)
	return ok && me.TooLong()
}

// The limits of equal rounds of tool calls in a row. A round has 1 to prompt.MaxRound calls.
const (
	maxEqualRounds   = 50 // after which every turn ends
	leastEqualRounds = 8  // which every turn may make, because the model first gets a hint
)

// equalRounds returns the number of equal rounds of a size after which a turn ends. Their calls are at
// most four fifths of the steps of its budget, so that a turn with few steps ends before it has wasted
// all of them.
func (r *Runner) equalRounds(e *execution, size int) int {
	steps := r.cfg.Budgets[e.claim.Budget].Steps
	if steps == 0 {
		return maxEqualRounds
	}
	return min(maxEqualRounds, max(leastEqualRounds, int(steps*4/5)/size))
}

// endRepeats ends a turn that has repeated the same round of tool calls too often. At a limit of its budget, the turn
// makes its last call instead, so that it ends with an answer.
func (r *Runner) endRepeats(ctx context.Context, e *execution) (outcome, error) {
	for size := 1; size <= prompt.MaxRound; size++ {
		n := e.prompt.Repeats(size)
		if n < r.equalRounds(e, size) {
			continue
		}
		limit, err := r.reachedByTeam(ctx, e)
		if err != nil {
			return next, fmt.Errorf("read team: %w", err)
		}
		if limit == "" {
			return ended, r.endLoop(e, size, n)
		}
	}
	return next, nil
}

// endLoop ends a turn whose model has repeated the same round of tool calls n times.
func (r *Runner) endLoop(e *execution, size, n int) error {
	calls := "tool call"
	if size > 1 {
		calls = fmt.Sprintf("%d tool calls", size)
	}
	return r.finish(e, nil, store.Outcome{Status: store.Failed, OutputText: store.AnswerText(e.steps),
		Failure: &store.Failure{Code: "loop",
			Message: fmt.Sprintf("the model made the same %s %d times in a row, with the same result", calls, n)}})
}

// respond acts on the answer of a model call. It either ends the turn, or journals the step so
// that the loop continues.
func (r *Runner) respond(e *execution, a answer) (outcome, error) {
	if !a.made {
		return ended, r.conclude(e, nil, budgetEnd(a.Limit))
	}
	r.completeStep(e, &a)
	st, resp := a.step, a.resp
	// Check the reasons to end the turn first. After a refusal or at a limit no tool may run, even
	// if the response contains calls.
	switch {
	case resp.Finish == model.FinishRefused:
		e.logCall("the model refused to answer", nil, "step", st.Seq)
		return ended, r.fail(e, st, store.Failure{Code: model.CodeRefused, Message: model.RefusalText(resp.Refusal)})
	case a.Limit != "":
		// A call is no answer, but the words before it may be one, and so may those of the steps that it continues.
		if resp.Mistake != "" && store.AnswerText(withLast(e.unfinished(), &st)) == "" {
			st.Finish = store.FinishMistake
		}
		return ended, r.conclude(e, &st, budgetEnd(a.Limit))
	case resp.Finish == model.FinishContentFilter:
		e.logCall("the provider withheld a part of the answer", nil, "step", st.Seq)
		return ended, r.conclude(e, &st, store.Outcome{IncompleteReason: store.ReasonFilter})
	case resp.Mistake != "":
		return r.returnMistake(e, st, resp)
	case wantsTools(st):
		st.Approvals = r.approvals(e, st)
		return next, r.journal(e, st)
	case resp.Finish == model.FinishLength && a.Spent(st.Usage.OutputTokens):
		// Text without calls is already an answer. Otherwise the reserved credits pay for one last
		// call.
		if store.AnswerText([]store.Step{st}) != "" && !hasCalls(st) {
			return ended, r.conclude(e, &st, budgetEnd(budget.LimitCredits))
		}
		e.limit = budget.LimitCredits
		return next, r.journal(e, st)
	case resp.Finish == model.FinishLength:
		return r.continueStep(e, st)
	}
	// The model has finished: accept its answer only if it is usable.
	if e.schema != nil {
		if _, mismatch := structuredOutput(e.schema, withLast(e.steps, &st)); mismatch != nil {
			return r.repair(e, st, mismatch)
		}
	} else if !hasText(st) && !resp.Closed {
		return r.askAgain(e, st)
	}
	return ended, r.conclude(e, &st, store.Outcome{})
}

// wantsTools reports whether the tool calls of a step must run. If the output limit has truncated a
// step, its complete calls run.
func wantsTools(st store.Step) bool {
	return (st.Finish == string(model.FinishToolCalls) || st.Finish == store.FinishContinued) && hasCalls(st)
}

func hasCalls(st store.Step) bool { return slices.ContainsFunc(st.Parts, store.Part.IsCall) }

// maxContinuations limits how often in a row a model continues after its output limit.
const maxContinuations = 3

// Instructions to a model that has reached its output limit.
const (
	askRest = "Your answer was cut off at the output limit. Go on exactly where it stopped, even in the middle of a " +
		"word: repeat nothing, and write nothing before or after the rest."
	askLess    = "You reached the output limit before you answered. Think less, and answer now."
	callCutOff = "the call was cut off at the output limit and was not made: its arguments are not complete. " +
		"Write less at once: a long text in several smaller pieces, each with a call of its own"
)

// continueStep lets the model continue after its output limit, with the remaining text or with a
// smaller tool call. After maxContinuations the turn ends with the text so far.
func (r *Runner) continueStep(e *execution, st store.Step) (outcome, error) {
	if e.continuations() >= maxContinuations {
		return ended, r.conclude(e, &st, store.Outcome{IncompleteReason: store.ReasonMaxTokens})
	}
	st.Finish = store.FinishContinued
	switch {
	case hasCalls(st):
		st.Approvals = r.approvals(e, st)
	case hasText(st):
		st.Feedback = askRest
	default: // the model has only reasoned, perhaps after an earlier truncated text
		if st.Feedback = askLess; store.AnswerText(e.unfinished()) != "" {
			st.Feedback = askRest
		}
	}
	return next, r.journal(e, st)
}

// continuations returns the number of newest steps in a row that were truncated.
func (e *execution) continuations() (n int) {
	for n < len(e.steps) && e.steps[len(e.steps)-1-n].Finish == store.FinishContinued {
		n++
	}
	return n
}

// unfinished returns the newest steps whose text the next step will continue.
func (e *execution) unfinished() []store.Step {
	return e.steps[store.ContinuedFrom(e.steps, len(e.steps)):]
}

// askAnswer is the feedback to the model after an empty answer.
const askAnswer = "You ended without an answer. Answer the user now: what you did, and what came of it."

// askAgain asks once more after an empty answer. At the second empty answer the turn fails.
func (r *Runner) askAgain(e *execution, st store.Step) (outcome, error) {
	if e.retriedEmpty {
		return ended, r.fail(e, st, store.Failure{Code: "empty_answer", Retryable: true,
			Message: "the model ended without an answer, and so did the retry"})
	}
	e.retriedEmpty, st.Feedback = true, askAnswer
	return next, r.journal(e, st)
}

// hasText reports whether a step has text.
func hasText(st store.Step) bool {
	return slices.ContainsFunc(st.Parts, func(p store.Part) bool {
		return p.Type == store.PartText && strings.TrimSpace(p.Text) != ""
	})
}

// maxRepairs limits how often an answer is sent back because it does not match the output schema.
const maxRepairs = 3

// repair sends the errors of an answer back to the model. After maxRepairs the turn fails.
func (r *Runner) repair(e *execution, st store.Step, mismatch *schema.Mismatch) (outcome, error) {
	if e.repairs == maxRepairs {
		return ended, r.fail(e, st, store.Failure{Code: "schema_mismatch", Message: mismatch.Error()})
	}
	e.repairs++
	st.Feedback = "Your answer does not fit the output schema: " + mismatch.Error() +
		"\nAnswer again with only the corrected JSON."
	return next, r.journal(e, st)
}

// completeStep makes the step of an answer from its response.
func (r *Runner) completeStep(e *execution, a *answer) {
	a.resp = r.takeTextCalls(e, &a.req, a.resp)
	a.step = r.asStep(a.step, a.resp, e.model)
	if e.prompt.Calibrate(a.step) {
		r.reportCut(e, a.step)
	}
	if !e.live.Matches(a.step.Parts) {
		// Watchers saw a different output. A new attempt number makes them discard it.
		e.logCall("the model's stream differs from its response", nil, "step", a.step.Seq)
		a.step.Attempt = e.attempt()
	}
}
