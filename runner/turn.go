package runner

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"journeyman/runner/model"
	"journeyman/runner/sandbox"
	"journeyman/store"
)

// work is a claimed turn being carried out. It belongs to one goroutine; what
// others may see of it is in live.
type work struct {
	claim   store.Claim
	live    *liveTurn
	steps   []store.Step    // the journal
	history []model.Message // of the turns before, and this one's instruction
	start   int             // index in history of that instruction
	used    store.Usage
	before  time.Duration // worked in earlier claims
	begun   time.Time     // this claim
	repairs int           // answers sent back because they broke the schema
	ws      *sandbox.Workspace
	checker *outputSchema // nil without an output schema
	resumed bool          // the last step is from the journal: its next tool call may have been cut off

	outOfTime bool // only the last call is left
	published bool // a tool has published a file
	finished  bool // the turn's end is in the database
}

// carryOut runs a claimed turn to its end, or until the runner stops. The turn's
// end is in the database when it returns, except when the runner stops.
func (r *Runner) carryOut(ctx context.Context, c store.Claim, lt *liveTurn) {
	w := &work{claim: c, live: lt, begun: r.cfg.Now()}
	defer func() {
		if w.ws != nil {
			r.closeWorkspace(c.WorkerID)
		}
	}()
	err := r.work(ctx, w)
	switch {
	case err == nil, errors.Is(err, store.ErrClaimLost):
		return
	case errors.Is(context.Cause(ctx), errStopped):
		return // back to the queue: Stop does that for all
	case errors.Is(context.Cause(ctx), errAborted):
		err = r.breakOff(w, store.AbortedOutcome)
	default:
		f := r.failure(w, err)
		err = r.breakOff(w, store.Outcome{Status: store.Failed, Failure: &f})
	}
	if err != nil && !errors.Is(err, store.ErrClaimLost) {
		// The row still says running; the next start takes it back.
		r.cfg.Log.Error("finish turn", "turn", c.ID, "err", err)
	}
}

// work does a turn's work. A panic in it, of a model's or a tool's code, ends this
// turn and no other.
func (r *Runner) work(ctx context.Context, w *work) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	if err := r.load(ctx, w); err != nil {
		return err
	}
	return r.loop(ctx, w)
}

// breakOff ends a turn before its work is done. What it has produced is kept.
func (r *Runner) breakOff(w *work, out store.Outcome) error {
	if w.finished {
		return nil
	}
	partial := r.partialStep(w)
	steps := w.steps
	if partial != nil {
		steps = append(steps, *partial)
	}
	out.OutputText = answerText(steps)
	return r.finish(w, partial, out)
}

// failure says what a client may know of err, and logs the rest.
func (r *Runner) failure(w *work, err error) store.Failure {
	var me *model.Error
	if errors.As(err, &me) {
		return store.Failure{Code: me.Code, Message: me.Message, Retryable: me.Retryable}
	}
	var se *schemaMismatch
	if errors.As(err, &se) {
		return store.Failure{Code: "schema_mismatch", Message: se.Error()}
	}
	r.cfg.Log.Error("turn failed", "turn", w.claim.ID, "err", err)
	return store.Failure{Code: "internal", Message: "an internal error ended the turn", Retryable: true}
}

// load reads what the turn builds on: the journal of earlier claims, and the
// task's earlier turns.
func (r *Runner) load(ctx context.Context, w *work) (err error) {
	c := w.claim
	if w.checker, err = r.schemas.get(c.OutputSchema); err != nil {
		return err
	}
	if c.Claims > 1 {
		if w.steps, err = r.cfg.Store.Journal(ctx, c.Num); err != nil {
			return fmt.Errorf("read journal: %w", err)
		}
		w.used, w.before = c.Usage, worked(w.steps)
		for _, st := range w.steps {
			if st.Feedback != "" {
				w.repairs++
			}
		}
		w.resumed = len(w.steps) > 0
	}
	var attached []store.File
	if w.history, w.start, attached, err = r.history(ctx, c); err != nil {
		return fmt.Errorf("read conversation: %w", err)
	}
	w.live.begin(w.steps, attached)
	r.ended.fire(c.ID)
	r.feedRing(w.live)
	return nil
}

// worked is how long the journaled calls took.
func worked(steps []store.Step) time.Duration {
	var d time.Duration
	for _, st := range steps {
		end := st.CompletedAt
		for _, c := range st.Calls {
			end = c.CompletedAt
		}
		d += end.Sub(st.StartedAt)
	}
	return d
}

// loop is the agent loop: model, tools, model, until an answer, a limit or a
// failure.
func (r *Runner) loop(turn context.Context, w *work) error {
	ctx, stop := r.limitTime(turn, w)
	defer stop()
	for {
		done, err := r.round(ctx, w)
		switch {
		case err == nil && done:
			return nil
		case err == nil:
		case !errors.Is(context.Cause(ctx), errOutOfTime) || errors.Is(err, store.ErrClaimLost):
			return err
		case w.outOfTime:
			return r.conclude(w, nil, limitTime) // not even the last call came back in time
		default:
			w.outOfTime = true
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeoutCause(turn, wrapUpTime, errOutOfTime)
			defer cancel()
		}
	}
}

// round finishes the tool calls of the last step and makes the next.
func (r *Runner) round(ctx context.Context, w *work) (done bool, err error) {
	if !w.outOfTime {
		if err := r.openWorkspace(w); err != nil {
			return false, err
		}
		if err := r.finishCalls(ctx, w); err != nil {
			return false, err
		}
	}
	return r.step(ctx, w)
}

var errOutOfTime = errors.New("the time budget is used up")

func (r *Runner) limitTime(ctx context.Context, w *work) (context.Context, context.CancelFunc) {
	limit := r.cfg.Budgets[w.claim.Budget].Time
	if limit == 0 {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, limit-w.before, errOutOfTime)
}

// step makes one model call and what follows from it. done says that the turn has
// ended, with its row written.
func (r *Runner) step(ctx context.Context, w *work) (done bool, err error) {
	req := r.request(w)
	a, err := r.allow(ctx, w, req)
	if err != nil {
		return false, err
	}
	defer r.settle(w.claim.OrganizationID, a)
	if a.none {
		return true, r.conclude(w, nil, a.limit)
	}
	req.MaxTokens = a.maxTokens
	if a.limit != "" {
		req = finalRequest(req)
	}
	st, err := r.callModel(ctx, w, req)
	if err != nil {
		return false, err
	}
	if st.Finish == string(model.FinishToolCalls) && a.limit == "" && hasCalls(st) {
		return false, r.journal(w, st)
	}
	dropCalls(&st)
	if a.limit != "" {
		return true, r.conclude(w, &st, a.limit)
	}
	if w.checker != nil {
		if _, mismatch := w.checker.structured(append(w.steps, st)); mismatch != nil {
			return r.repair(w, st, mismatch)
		}
	}
	return true, r.conclude(w, &st, "")
}

// maxRepairs is how often an answer that breaks the output schema is sent back.
const maxRepairs = 3

// repair sends the schema's objections back to the model, or gives up.
func (r *Runner) repair(w *work, st store.Step, mismatch *schemaMismatch) (done bool, err error) {
	if w.repairs == maxRepairs {
		out := store.Outcome{Status: store.Failed, OutputText: answerText(append(w.steps, st)),
			Failure: &store.Failure{Code: "schema_mismatch", Message: mismatch.Error()}}
		return true, r.finish(w, &st, out)
	}
	w.repairs++
	st.Feedback = "Your answer does not fit the output schema: " + mismatch.Error() +
		"\nAnswer again with only the corrected JSON."
	return false, r.journal(w, st)
}

// conclude ends the turn with its answer: that of st, or where the budget allowed
// no last call, of the steps so far.
func (r *Runner) conclude(w *work, st *store.Step, limit string) error {
	steps := w.steps
	if st != nil {
		steps = append(steps, *st)
	}
	out := store.Outcome{Status: store.Completed, OutputText: answerText(steps)}
	if limit != "" {
		out.IncompleteReason, out.IncompleteLimit = store.ReasonBudget, limit
	}
	if w.checker != nil {
		// At a limit there is no call left to repair an answer that does not fit.
		out.StructuredOutput, _ = w.checker.structured(steps)
	}
	return r.finish(w, st, out)
}

// journal writes a step down and makes it part of the turn.
func (r *Runner) journal(w *work, st store.Step) error {
	// A call that is paid goes into the journal whatever has been cancelled since.
	err := r.persist(func(ctx context.Context) error { return r.cfg.Store.JournalStep(ctx, w.claim, st) })
	if err != nil {
		return fmt.Errorf("journal step: %w", err)
	}
	w.steps = append(w.steps, st)
	w.used = w.used.Add(st.Usage).Add(store.Usage{Steps: 1})
	w.live.journaled(st)
	r.feedRing(w.live)
	return nil
}

// finish ends the turn in the database, and then for those who watch it.
func (r *Runner) finish(w *work, last *store.Step, out store.Outcome) error {
	out.Duration = w.before + r.cfg.Now().Sub(w.begun)
	var v view
	err := r.persist(func(ctx context.Context) (err error) {
		v.turn, err = r.cfg.Store.FinishTurn(ctx, w.claim, last, out)
		return err
	})
	if err != nil {
		return fmt.Errorf("finish turn: %w", err)
	}
	w.finished = true
	if last != nil {
		w.live.journaled(*last)
	}
	if w.published {
		if err := r.complete(context.WithoutCancel(r.ctx), &v); err != nil {
			return fmt.Errorf("read published files: %w", err)
		}
	}
	w.live.end(v)
	r.feedRing(w.live)
	return nil
}

// persist writes to the store, and waits while its disk is full: what has been
// paid for is not given up.
func (r *Runner) persist(write func(ctx context.Context) error) error {
	for {
		err := write(context.WithoutCancel(r.ctx))
		if !store.IsKind(err, store.Busy) || r.ctx.Err() != nil {
			return err
		}
		r.cfg.Log.Error("the store takes no writes, trying again", "err", err)
		select {
		case <-time.After(time.Second):
		case <-r.ctx.Done():
		}
	}
}

// partialStep is what a cancelled model call had produced, to be kept.
func (r *Runner) partialStep(w *work) *store.Step {
	st, ok := w.live.partial()
	if !ok {
		return nil
	}
	dropCalls(&st)
	st.Finish, st.CompletedAt = "aborted", r.cfg.Now()
	if len(st.Parts) == 0 {
		return nil
	}
	return &st
}

func hasCalls(st store.Step) bool {
	for _, p := range st.Parts {
		if p.Type == store.PartToolCall {
			return true
		}
	}
	return false
}

// dropCalls takes the tool calls out of a step after which no tool will run.
func dropCalls(st *store.Step) {
	if !hasCalls(*st) {
		return
	}
	var kept []store.Part
	for _, p := range st.Parts {
		if p.Type != store.PartToolCall {
			kept = append(kept, p)
		}
	}
	st.Parts = kept
}

// answerText is the answer that steps give: the text after the last tool call, or
// if there is none, the last text.
func answerText(steps []store.Step) string {
	for i := len(steps) - 1; i >= 0; i-- {
		var text []string
		for _, p := range steps[i].Parts {
			switch {
			case p.Type == store.PartText && p.Text != "":
				text = append(text, p.Text)
			case p.Type == store.PartToolCall && i == len(steps)-1:
				text = nil
			}
		}
		if len(text) > 0 {
			return strings.Join(text, "\n\n")
		}
	}
	return ""
}

// openWorkspace opens the worker's folder before the first tool call.
func (r *Runner) openWorkspace(w *work) (err error) {
	if w.ws == nil && len(w.steps) > 0 {
		w.ws, err = r.workspace(w.claim.WorkerID)
	}
	return err
}
