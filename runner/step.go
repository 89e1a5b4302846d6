package runner

import (
	"cmp"
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

// step makes one model call and acts on the response. If a model does not answer, step asks the next
// model of the chain.
func (r *Runner) step(ctx context.Context, e *execution) (outcome, error) {
	e.renderSteps()
	r.beginStep(ctx, e)
	// At a limit of its budget the turn makes its last call instead, so that it ends with an
	// answer.
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
	// A model that failed for an earlier step may be able to answer this one.
	for i := range e.chain {
		e.chain[i].failure = nil
	}
	// This loop ends, because passOn records each failure and chooseModel skips failed models.
	for {
		if out, err := r.chooseModel(ctx, e); err != nil || out != next {
			return out, err
		}
		out, err := r.askModel(ctx, e)
		if !r.passOn(ctx, e, err) {
			return out, err
		}
	}
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

// askModel makes one call of the chosen model and acts on the response. If the provider refuses the
// request as too long, it is compacted and sent once more. Instead, a later model of the chain with
// a larger window is asked, if there is one.
func (r *Runner) askModel(ctx context.Context, e *execution) (outcome, error) {
	if _, err := r.makeRoom(ctx, e, nil); err != nil {
		return next, err
	}
	out, err := r.tryStep(ctx, e)
	refusal, ok := errors.AsType[*model.Error](err)
	if !ok || !refusal.TooLong() || e.largerFollows() {
		return out, err
	}
	// Try this only once: a provider that refuses every size would otherwise get endless requests.
	if made, failed := r.makeRoom(ctx, e, refusal); failed != nil || !made {
		return next, cmp.Or(failed, err)
	}
	return r.tryStep(ctx, e)
}

// tryStep makes one model call, with retries, and acts on the response. A failed try is charged
// before the next try reserves the remaining credits.
func (r *Runner) tryStep(ctx context.Context, e *execution) (out outcome, err error) {
	req := e.prompt.Request()
	err = r.retry(ctx, e, func() error {
		a, err := r.allow(ctx, e)
		if err != nil {
			return err
		}
		// Settle after respond has committed the cost. Until then the credits must stay reserved.
		defer a.Reserved.Settle()
		if a.MaxTokens == 0 {
			out = ended
			return r.conclude(e, nil, budgetEnd(a.Limit))
		}
		asked := req // a copy: the next try may afford fewer tokens
		asked.MaxTokens = a.MaxTokens
		call := ctx
		if a.Limit != "" {
			asked = prompt.Final(asked)
			// From the whole turn: ctx may end with the time budget, and cut a call off that has just begun.
			var cancel context.CancelFunc
			call, cancel = r.beginLast(e.ctx, e, a.Limit)
			defer cancel()
		}
		st, resp, err := r.callModel(call, e, asked)
		if err != nil {
			return err
		}
		out, err = r.respond(e, st, resp, a)
		return err
	})
	return out, err
}

// callModel makes a model call. It returns the result as a step, which is not in the journal yet.
func (r *Runner) callModel(ctx context.Context, e *execution, req model.Request) (store.Step, model.Response, error) {
	st := store.Step{Seq: int64(len(e.steps)), Attempt: e.attempt(), StartedAt: r.cfg.Now(), Estimated: e.estimate}
	e.live.BeginStep(st)
	resp, err := r.generate(ctx, e, req, e.estimate, func(d model.Delta) {
		if d.Restart { // a new attempt number makes watchers discard the output so far
			st.Attempt = e.attempt()
			e.live.BeginStep(st)
			return
		}
		e.live.Delta(d)
	})
	if err != nil {
		return st, resp, err
	}
	resp = r.takeTextCalls(e, &req, resp)
	st = r.asStep(st, resp, e.model)
	if e.prompt.Calibrate(st) {
		r.reportCut(e, st)
	}
	if !e.live.Matches(st.Parts) {
		// Watchers saw a different output. A new attempt number makes them discard it.
		e.logCall("the model's stream differs from its response", nil, "step", st.Seq)
		st.Attempt = e.attempt()
	}
	return st, resp, nil
}

// reportCut warns the operator that a provider seems to truncate prompts without an error. It warns
// once per model.
func (r *Runner) reportCut(e *execution, st store.Step) {
	low := lowCount{counted: st.Usage.InputTokens, estimated: st.Estimated}
	entry := r.capabilities.entry(e.model.id)
	entry.mu.Lock()
	known := entry.low != lowCount{}
	entry.low = low
	entry.mu.Unlock() // unlock before logging, which may block on its output
	if !known {
		e.logCall(low.warning(e.model.Name()), nil, "step", st.Seq)
	}
}

// attempt returns a new number for an attempt at a step. Streams distinguish attempts by this
// number, so it differs from the numbers of earlier claims too.
func (e *execution) attempt() int64 {
	e.attempts++
	// The high bits contain the claim, because the count starts at 0 again in each claim.
	return e.claim.Claims<<8 | e.attempts // a claim makes far fewer than 256 attempts at a step
}

// respond acts on the response of a model call. It either ends the turn, or journals the step so
// that the loop continues.
func (r *Runner) respond(e *execution, st store.Step, resp model.Response, a budget.Allowance) (outcome, error) {
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
