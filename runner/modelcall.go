package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"journeyman/runner/budget"
	"journeyman/runner/model"
	"journeyman/runner/models"
	"journeyman/runner/prompt"
	"journeyman/runner/stream"
	"journeyman/store"
)

// A modelCall is a call of a turn's model before it is made.
type modelCall struct {
	req      model.Request
	estimate int64 // tokens of req, not calibrated
	summary  bool  // of the conversation: no watcher sees its output, and it needs credits beside those of the answer
}

// An answer is the result of a model call.
type answer struct {
	budget.Allowance               // for the call; Reserved is settled once the cost is in the database
	made             bool          // false if the budget allows no call
	req              model.Request // that was sent
	resp             model.Response
	step             store.Step // that is not in the journal yet: see completeStep
}

// call makes a model call of a turn. It reserves the maximum cost, and commits the minimum cost before the call
// begins, so that the call is charged even after a crash. A failed or interrupted call is charged at once, and
// its reservation ends. The cost of any other call is charged when its step is journaled.
func (r *Runner) call(ctx context.Context, e *execution, c modelCall) (a answer, err error) {
	answered := false
	defer func() {
		if !answered { // also after a panic
			a.Reserved.Settle()
		}
	}()
	if a, err = r.allow(ctx, e, c); err != nil || !a.made {
		answered = err == nil
		return a, err
	}
	a.req = c.req
	a.req.MaxTokens = a.MaxTokens
	if a.Limit != "" {
		a.req = prompt.Final(a.req)
		// From the whole turn: ctx may end with the time budget, and cut a call off that has just begun.
		var cancel context.CancelFunc
		ctx, cancel = r.beginLast(e.ctx, e, a.Limit)
		defer cancel()
	}
	a.req.Place = model.Place{Worker: e.claim.WorkerID, Task: e.claim.TaskID, Turn: e.claim.Seq,
		Step: int64(len(e.steps)), Summary: c.summary}
	a.req.ThinkingOpen = r.Models.ThinkingOpen(e.model.ID).Load()
	a.step = store.Step{Seq: int64(len(e.steps)), StartedAt: r.cfg.Now(), Estimated: c.estimate}
	show := func(model.Delta) {}
	if !c.summary {
		show = e.stream(&a.step)
	}
	cost := models.Cost{Input: e.prompt.Calibrated(c.estimate), Local: model.Local(e.model.Model)}
	if err = r.commitStart(e, cost); err != nil {
		return a, err
	}
	traced, ended := r.beginModel(ctx, e)
	a.resp, err = model.Ask(traced, e.model.Model, a.req, func(d model.Delta) { cost.Count(d); show(d) })
	ended(a.resp, err)
	err = r.callEnded(ctx, e, cost, a.resp, err)
	answered = err == nil
	return a, err
}

// allow decides whether a turn may make a call, and reserves its maximum cost.
func (r *Runner) allow(ctx context.Context, e *execution, c modelCall) (a answer, err error) {
	limit, input := r.reached(e), e.prompt.Calibrated(c.estimate)
	x := budget.Expense{Price: e.model.Price, Limit: limit, Left: r.creditsLeft(e), Input: input, Most: c.req.MaxTokens}
	if c.summary && limit != "" {
		return a, nil
	}
	if !c.summary {
		// Use the larger estimate: a calibration that is too low must not let a call exceed the cap.
		x.Input, x.Most = max(c.estimate, input), e.window.Output(input)
	}
	a.Allowance, err = r.reserveFor(ctx, e, x)
	// The turn can pay for a summary or for its answer, not for both.
	a.made = a.MaxTokens > 0 && !(c.summary && a.Limit != "")
	return a, err
}

// commitStart commits the minimum cost of a call that begins.
func (r *Runner) commitStart(e *execution, cost models.Cost) error {
	if cost.Local { // the call is free, so a crash during it leaves nothing to charge
		return nil
	}
	least := e.model.Price.Cost(model.Usage{InputTokens: cost.Input})
	return r.persist("begin model call", func(ctx context.Context) error {
		return r.cfg.Store.BeginCall(ctx, e.claim, cost.Input, least)
	})
}

// callEnded records what a model call has shown about its model. It charges a failed call, and returns its error.
func (r *Runner) callEnded(ctx context.Context, e *execution, cost models.Cost, resp model.Response, err error) error {
	if resp.KeptBack != "" {
		cost.Count(model.Delta{Text: resp.KeptBack})
	}
	e.begun = cost.Begun
	r.learnWindow(e, resp.Window)
	r.Models.RecordBill(&e.model, resp.Usage) // also for a failed call: its bill may be the first one
	if err == nil {
		for _, warning := range resp.Warnings {
			e.logCall("model call with a warning", nil, "warning", warning)
		}
		r.Models.ThinkingOpen(e.model.ID).Store(resp.ThinkingOpen)
		r.answered(e)
		return nil // the cost is charged when the step is journaled
	}
	// No step contains the usage of a failed call, so the turn is charged at once.
	e.lostUsage = e.model.Usage(cost.Used(resp.Usage, ctx.Err() != nil))
	if err := r.charge(e, e.lostUsage); err != nil {
		return err
	}
	// The error of a cancelled call does not show a problem of the provider, so it is not counted.
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	r.callFailed(e, err)
	return fmt.Errorf("model call: %w", err)
}

// stream begins a try of st for watchers. It returns a function that shows the model's output to them.
func (e *execution) stream(st *store.Step) func(model.Delta) {
	begin := func() { // a new attempt number makes watchers discard the output so far
		st.Attempt = e.attempt()
		e.live.BeginStep(*st)
	}
	begin()
	return func(d model.Delta) {
		if d.Restart {
			begin()
			return
		}
		e.live.Delta(d)
	}
}

// reportCut warns the operator that a provider seems to truncate prompts without an error. It warns
// once per model.
func (r *Runner) reportCut(e *execution, st store.Step) {
	if warning := r.Models.NoteCount(e.model, st.Usage.InputTokens, st.Estimated); warning != "" {
		e.logCall(warning, nil, "step", st.Seq)
	}
}

// learnWindow narrows the window of the turn's model to the size that its server has named in a refusal, 0 for none.
func (r *Runner) learnWindow(e *execution, size int64) {
	if size > 0 {
		// The turn's own window may be smaller, for reasons that concern no other turn.
		r.Models.LearnWindow(e.model.ID, e.window.Narrow(size))
	}
}

// attempt returns a new number for an attempt at a step. Streams distinguish attempts by this
// number, so it differs from the numbers of earlier claims too.
func (e *execution) attempt() int64 {
	e.attempts++
	// The high bits contain the claim, because the count starts at 0 again in each claim.
	return e.claim.Claims<<8 | e.attempts // a claim makes far fewer than 256 attempts at a step
}

// callFailed counts a failed model call, and records when the current series of failures began.
func (r *Runner) callFailed(e *execution, err error) {
	me, ok := errors.AsType[*model.Error](err)
	if !ok {
		return
	}
	r.countFailure(cmp.Or(e.model.Kind, e.model.Name()), me.Code)
	if me.Retryable {
		now := r.cfg.Now()
		e.failingSince = cmp.Or(e.failingSince, &now)
		e.failedCalls++
	}
}

// charge adds the usage of a failed call to the turn's figures.
func (r *Runner) charge(e *execution, u store.Usage) error {
	if u == (store.Usage{}) && model.Local(e.model.Model) {
		return nil // BeginCall has written no cost that must be removed
	}
	// Write even an empty usage, because ChargeCall removes the cost that BeginCall has written.
	e.used = e.used.Add(u)
	return r.persist("charge model call", func(ctx context.Context) error {
		return r.cfg.Store.ChargeCall(ctx, e.claim, u)
	})
}

const (
	quickTries = 5                // of a model call, before the turn is suspended
	chainTries = 3                // of a model call, before the next model of the chain is asked
	unreadable = 3                // malformed answers, before the call has failed
	quickTime  = 30 * time.Second // limit of all tries together, because the turn holds a slot
)

// retry makes a model call, and retries it after failures that may soon pass.
func (r *Runner) retry(ctx context.Context, e *execution, call func() error) error {
	tries, begun := e.tries(), r.cfg.Now()
	for try := 1; ; try++ {
		// The turn keeps its slot during the pauses, so quickTime limits all tries together.
		err := call()
		pause, retry := r.backoff(e, err, try, tries)
		late := r.cfg.Now().Sub(begun)+pause > quickTime
		if !retry || late || ctx.Err() != nil {
			// A call that a stop or a cancellation has interrupted is not a failure of the
			// provider. The same is true for a request that is too long: the caller compacts it.
			if me, ok := errors.AsType[*model.Error](err); ok && ctx.Err() == nil && !me.TooLong() {
				e.logCall("model call failed", err, "try", try)
			}
			return err
		}
		e.logCall("model call failed, trying again", err, "try", try, "pause", pause)
		r.retries.Inc()
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// tries returns how often a model is asked before the next model is asked or the turn is suspended.
// A model that has failed before is asked once.
func (e *execution) tries() int {
	switch {
	case e.probes:
		return 1
	case e.asking < len(e.chain)-1: // the next model can help sooner than more tries
		return chainTries
	}
	return quickTries
}

// backoff reports whether a failed call is retried soon, and returns the pause before the retry.
func (r *Runner) backoff(e *execution, err error, try, tries int) (pause time.Duration, retry bool) {
	me, ok := errors.AsType[*model.Error](err)
	if !ok || !me.Retryable || try >= tries || me.Malformed() && try >= unreadable {
		return 0, false
	}
	// If another turn has found the model down, more tries would only add to its load.
	if _, down := r.Models.Outages.Blocked(e.model.ID, e.claim.ID, r.cfg.Now()); down && e.model.Passes(me) {
		return 0, false
	}
	// The pause of the provider applies only if it is longer, so that it cannot defeat the backoff.
	return max(r.cfg.Retry(try), me.RetryAfter), true
}

// asStep returns st, completed with a response. It replaces invalid UTF-8 in the same way as
// streams do: the store rejects such text, and watchers must see the stored text.
func (r *Runner) asStep(st store.Step, resp model.Response, m models.Priced) store.Step {
	st.CompletedAt, st.Finish, st.Model = r.cfg.Now(), string(resp.Finish), r.cfg.Store.Storable(resp.Model)
	st.Parts = stream.Parts(st.Seq, resp)
	st.Usage = m.Usage(resp.Usage)
	return st
}
