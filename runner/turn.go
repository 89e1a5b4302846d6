package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"journeyman/runner/model"
	"journeyman/runner/sandbox"
	"journeyman/runner/tool"
	"journeyman/store"
)

// work is a claimed turn being carried out. It belongs to one goroutine; what
// others may see of it is in live.
type work struct {
	claim store.Claim
	live  *liveTurn
	model pricedModel

	offered  tool.Offer   // of other people's servers
	tools    []model.Tool // all that the model is shown
	preamble string

	steps   []store.Step  // the journal
	talk    *conversation // with the first told steps
	told    int
	raw     int64   // tokens of the next request, counted from its text
	ratio   float64 // of what the provider counted to that, in the newest call; 0 unknown
	narrow  int64   // the model's window, where the provider finds it narrower than the price table; 0 unknown
	used    store.Usage
	before  time.Duration // worked in earlier claims
	begun   time.Time     // this claim
	tries   int64         // of the step in progress
	repairs int           // answers sent back because they broke the schema
	ws      *sandbox.Workspace
	checker *outputSchema // nil without an output schema
	resumed bool          // the last step is from the journal: its next tool call may have been cut off

	limit     string // that has been reached: only the last call is left
	published bool   // a tool may have published a file
	finished  bool   // the turn's end is in the database
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
	if errors.Is(err, errRests) {
		return // whoever decides last queues it again
	}
	if err == nil || w.finished || errors.Is(err, store.ErrClaimLost) {
		if err != nil {
			r.cfg.Log.Warn("turn", "turn", c.ID, "err", err)
		}
		return
	}
	if errors.Is(context.Cause(ctx), errStopped) {
		return // back to the queue: Stop does that for all
	}
	last, out := r.partialStep(w), store.AbortedOutcome
	if !errors.Is(context.Cause(ctx), errAborted) {
		f := r.failure(w, err)
		out = store.Outcome{Status: store.Failed, Failure: &f}
	}
	out.OutputText = store.AnswerText(withLast(w.steps, last))
	err = r.finish(w, last, out)
	if err != nil && !w.finished && !errors.Is(err, store.ErrClaimLost) && r.ctx.Err() == nil {
		// What cannot be kept must not keep its clients waiting for ever.
		f := r.failure(w, err)
		err = r.finish(w, nil, store.Outcome{Status: store.Failed, Failure: &f})
	}
	if err != nil {
		// Where the row still says running, the next start takes it back.
		r.cfg.Log.Error("finish turn", "turn", c.ID, "err", err)
	}
}

// work loads the turn and runs it. A panic is the failure of this turn only.
func (r *Runner) work(ctx context.Context, w *work) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	if err := r.load(ctx, w); err != nil {
		return err
	}
	if w.model, err = r.modelOf(w.claim.Settings.Model); err != nil {
		return err
	}
	if err := r.remember(ctx, w); err != nil {
		return err
	}
	if err := r.offer(ctx, w); err != nil {
		return err
	}
	w.tellAsking()
	return r.loop(ctx, w)
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
	// Whoever cancelled the turn since it was claimed may not have found it here.
	if t, err := r.cfg.Store.Turn(ctx, c.ID); err != nil {
		return fmt.Errorf("read turn: %w", err)
	} else if t.AbortRequested {
		w.live.cancel(errAborted)
	}
	if w.checker, err = r.schemas.get(c.OutputSchema); err != nil {
		return err
	}
	if c.Claims > 1 {
		if w.steps, err = r.cfg.Store.Journal(ctx, c.Num); err != nil {
			return fmt.Errorf("read journal: %w", err)
		}
		w.used, w.before = c.Usage, store.Worked(w.steps)
		for _, st := range w.steps {
			if st.Feedback != "" {
				w.repairs++
			}
			w.published = w.published || len(st.Calls) > 0
		}
		w.resumed = len(w.steps) > 0
	}
	var attached []store.File
	if attached, err = r.history(ctx, w); err != nil {
		return fmt.Errorf("read conversation: %w", err)
	}
	for _, st := range w.steps {
		w.learn(st)
	}
	w.live.begin(w.steps, attached)
	r.ended.fire(c.ID)
	r.feedRing(w.live)
	return nil
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
		case w.limit == limitTime: // not even the last call came back in time
			return r.conclude(w, r.partialStep(w), limitTime)
		default:
			w.limit = limitTime
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeoutCause(turn, wrapUpTime, errOutOfTime)
			defer cancel()
		}
	}
}

// round finishes the tool calls of the last step and makes the next.
func (r *Runner) round(ctx context.Context, w *work) (done bool, err error) {
	if w.limit != limitTime {
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
// ended, with its row written. A request that the provider finds too long is made
// shorter and sent once more.
func (r *Runner) step(ctx context.Context, w *work) (done bool, err error) {
	if _, err := r.makeRoom(ctx, w, nil); err != nil {
		return false, err
	}
	done, err = r.tryStep(ctx, w)
	var refusal *model.Error
	if !errors.As(err, &refusal) || !refusal.TooLong() {
		return done, err
	}
	if made, failed := r.makeRoom(ctx, w, refusal); failed != nil || !made {
		return false, cmp.Or(failed, err)
	}
	return r.tryStep(ctx, w)
}

func (r *Runner) tryStep(ctx context.Context, w *work) (done bool, err error) {
	req := r.request(w)
	a, err := r.allow(ctx, w)
	if err != nil {
		return false, err
	}
	defer r.ledger.settle(w.claim.OrganizationID, a.reserved)
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
	switch {
	case a.limit != "":
		return true, r.conclude(w, &st, a.limit)
	case wantsTools(st):
		st.Approvals = r.approvals(w, st)
		return false, r.journal(w, st)
	case a.squeezed && st.Finish == string(model.FinishLength):
		// Cut off for want of credits. What was kept back pays the last call, unless
		// there is an answer.
		if store.AnswerText([]store.Step{st}) != "" && !hasCalls(st) {
			return true, r.conclude(w, &st, limitCredits)
		}
		w.limit = limitCredits
		return false, r.journal(w, st)
	}
	if w.checker != nil {
		if _, mismatch := w.checker.structured(withLast(w.steps, &st)); mismatch != nil {
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
		out := store.Outcome{Status: store.Failed, OutputText: store.AnswerText(withLast(w.steps, &st)),
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
	steps := withLast(w.steps, st)
	out := store.Outcome{Status: store.Completed, OutputText: store.AnswerText(steps)}
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
	w.steps, w.tries = append(w.steps, st), 0
	w.used = w.used.Add(st.Usage).Add(store.Usage{Steps: 1})
	w.learn(st)
	w.live.journaled(st)
	r.feedRing(w.live)
	return nil
}

// finish ends the turn in the database, and then for those who watch it.
func (r *Runner) finish(w *work, last *store.Step, out store.Outcome) error {
	out.Duration = w.before + max(r.cfg.Now().Sub(w.begun), 0)
	var v view
	err := r.persist(func(ctx context.Context) (err error) {
		v.turn, err = r.cfg.Store.FinishTurn(ctx, w.claim, last, out)
		return err
	})
	if err != nil {
		return fmt.Errorf("finish turn: %w", err)
	}
	w.finished = true
	r.final.fire(w.claim.ID)
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
	for try := 0; ; try++ {
		err := write(context.WithoutCancel(r.ctx))
		if !store.IsKind(err, store.Busy) || r.ctx.Err() != nil {
			return err
		}
		if try%60 == 0 {
			r.cfg.Log.Error("the store takes no writes, trying again", "err", err)
		}
		select {
		case <-time.After(persistAgain):
		case <-r.ctx.Done():
		}
	}
}

// persistAgain is the pause before a write that found no room is tried again.
const persistAgain = time.Second

// partialStep is what a model call that was cut off had produced, to be kept. Its
// tool calls did not run. The provider is paid for it and has not said how much, so
// that is estimated: else whoever cancels in time would work for nothing.
func (r *Runner) partialStep(w *work) *store.Step {
	st, ok := w.live.partial()
	if !ok || len(st.Parts) == 0 {
		return nil
	}
	st.Finish, st.CompletedAt = "aborted", r.cfg.Now()
	u := model.Usage{InputTokens: w.gauge(w.raw)}
	for _, p := range st.Parts {
		u.OutputTokens += textTokens(p.Text) + textTokens(string(p.Input))
	}
	st.Usage = store.Usage{InputTokens: u.InputTokens, OutputTokens: u.OutputTokens, ModelCost: w.model.price.Cost(u)}
	return &st
}

// wantsTools reports whether tools are to be run after a step. Calls of a step that
// ended otherwise may be cut off, and are not run.
func wantsTools(st store.Step) bool {
	return st.Finish == string(model.FinishToolCalls) && hasCalls(st)
}

func hasCalls(st store.Step) bool { return slices.ContainsFunc(st.Parts, isCall) }

// withLast gives steps and, where there is one, the step after them.
func withLast(steps []store.Step, last *store.Step) []store.Step {
	if last == nil {
		return steps
	}
	return append(slices.Clip(steps), *last)
}
