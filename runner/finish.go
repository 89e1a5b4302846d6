package runner

import (
	"context"
	"errors"
	"fmt"

	"journeyman/runner/model"
	"journeyman/store"
)

// leave closes the workspace of a turn after run, which has returned err. If err ends the turn, leave writes the end
// into the database. It does not, if the turn returns to the queue, or if the store refuses the end.
func (r *Runner) leave(ctx context.Context, e *execution, err error) {
	c := e.claim
	defer func() {
		if e.ws != nil {
			r.closeWorkspace(c.Folder())
		}
	}()
	// Check this before the cause of ctx: an end in the database has precedence over a later
	// cancellation or stop.
	if err == nil || e.finished || errors.Is(err, store.ErrClaimLost) {
		if err != nil {
			e.log.Warn("execution stopped: its end cannot be stored", "err", err)
		}
		return
	}
	if exhausted(err) && r.putBack(ctx, e, err) {
		return
	}
	if interrupted(ctx) {
		return // the turn returns to the queue
	}
	// From here on the turn ends as cancelled or failed, and its output so far is kept.
	last, out := r.partialStep(e), store.AbortedOutcome()
	if !errors.Is(context.Cause(ctx), errAborted) {
		f := r.failure(e, err)
		out = store.Outcome{Status: store.Failed, Failure: &f, Model: e.refusing(f)}
	}
	out.OutputText = store.AnswerText(withLast(e.steps, last))
	err = r.finish(e, last, out)
	if err != nil && !e.finished && !errors.Is(err, store.ErrClaimLost) && r.ctx.Err() == nil {
		// The store has refused this outcome, but clients must not wait forever. So the turn fails
		// without its partial step and output.
		f := r.failure(e, err)
		err = r.finish(e, nil, store.Outcome{Status: store.Failed, Failure: &f})
	}
	if err != nil {
		// The row still has the status running and this runner's id: only the next start claims the
		// turn again.
		e.log.Error("finish turn", "err", err)
	}
}

// budgetEnd returns the outcome of a turn that has reached a limit of its budget.
func budgetEnd(limit string) store.Outcome {
	return store.Outcome{IncompleteReason: store.ReasonBudget, IncompleteLimit: limit}
}

// conclude ends the turn with an answer. st is the last step, or nil if the budget allows no last
// call. out contains the reason if the answer is incomplete.
func (r *Runner) conclude(e *execution, st *store.Step, out store.Outcome) error {
	steps := withLast(e.steps, st)
	out.Status, out.OutputText = store.Completed, store.AnswerText(steps)
	if e.schema != nil {
		// At a limit, no call is left to repair an answer that does not match the schema.
		out.StructuredOutput, _ = structuredOutput(e.schema, steps)
	}
	return r.finish(e, st, out)
}

// fail ends the turn as failed after a step without a usable answer. The text of the step is kept.
func (r *Runner) fail(e *execution, st store.Step, f store.Failure) error {
	text := store.AnswerText(withLast(e.steps, &st))
	return r.finish(e, &st, store.Outcome{Status: store.Failed, OutputText: text, Failure: &f})
}

// finish ends the turn in the database, and then notifies its watchers.
func (r *Runner) finish(e *execution, last *store.Step, out store.Outcome) error {
	// Read before the end: it also ends suspended children, which would then not be found.
	var below []store.Turn // turns that the end of this turn may cancel
	if e.team != nil {
		var err error
		if below, err = r.cfg.Store.UnfinishedBelow(context.WithoutCancel(r.ctx), e.claim.Turn); err != nil {
			return fmt.Errorf("read children: %w", err)
		}
	}
	out.Duration = e.worked + max(r.cfg.Now().Sub(e.startedAt), 0)
	var t store.Turn
	err := r.persist("finish turn", func(ctx context.Context) (err error) {
		t, err = r.cfg.Store.FinishTurn(ctx, e.claim, last, out)
		return err
	})
	if err != nil {
		return err
	}
	// The end is committed. Later errors do not undo it, and leave must not end the turn again.
	e.finished = true
	r.logEnd(t)
	ctx := context.WithoutCancel(r.ctx) // clients must receive the end even while the runner stops
	// Call each function even if another one fails: running children would continue to spend
	// credits.
	err = e.live.Ended(ctx, t, last, e.published)
	return errors.Join(err, r.stopBelow(ctx, below), r.notifyParent(ctx, t), r.notifyLaterTurns(ctx, t))
}

// failure returns the failure that clients see for err. It logs an internal error.
func (r *Runner) failure(e *execution, err error) store.Failure {
	if me, ok := errors.AsType[*model.Error](err); ok {
		return store.Failure{Code: me.Code, Message: me.Message, Retryable: me.Retryable}
	}
	// The text of an internal error may contain paths or SQL, so it is only logged.
	e.log.Error("turn failed by an internal error", "err", err)
	return store.Failure{Code: "internal", Message: "an internal error ended the turn", Retryable: true}
}

// refusing returns the name for metadata.model of a turn whose model takes no tools, "" for other failures.
func (e *execution) refusing(f store.Failure) string {
	if f.Code != model.CodeToolsRefused {
		return ""
	}
	return e.model.Name() + " (refuses tools)"
}

// partialStep returns the output of an interrupted model call as a step, or nil. The tool calls of
// this step did not run.
func (r *Runner) partialStep(e *execution) *store.Step {
	st, ok := e.live.Partial()
	if !ok || len(st.Parts) == 0 {
		return nil
	}
	st.Finish, st.CompletedAt = "aborted", r.cfg.Now()
	st.Usage, st.Charged = e.lostUsage, true // charged by callEnded: the sums must not count it twice
	return &st
}

// notifyLaterTurns notifies the watchers of later turns of the task about the end of t. Those turns
// were cancelled with t, or the next of them may run now.
func (r *Runner) notifyLaterTurns(ctx context.Context, t store.Turn) error {
	if t.AbortRequested { // the same transaction has ended the turns behind t
		return r.notifyAborted(ctx, t.WorkerID, t, t.Seq)
	}
	if t.TaskStatus.Ended() {
		return nil
	}
	next, err := r.cfg.Store.NextTurn(ctx, t)
	if err == nil {
		r.Streams.Changed(next.ID)
	}
	return err
}
