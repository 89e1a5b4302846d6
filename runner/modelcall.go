package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"journeyman/runner/model"
	"journeyman/runner/prompt"
	"journeyman/runner/stream"
	"journeyman/store"
)

// generate makes a model call of a turn. First it commits the minimum cost of the call, so that the
// call is charged even after a crash. A failed or interrupted call is charged at once. estimate is
// the uncalibrated estimate of the request. show receives the model's output. It is nil for
// summaries, which are not streamed.
func (r *Runner) generate(ctx context.Context, e *execution, req model.Request, estimate int64,
	show func(model.Delta)) (model.Response, error) {
	req.Place = model.Place{Worker: e.claim.WorkerID, Task: e.claim.TaskID, Turn: e.claim.Seq,
		Step: int64(len(e.steps)), Summary: show == nil}
	known := r.capabilities.entry(e.model.id)
	req.ThinkingOpen = known.thinkingOpen.Load()
	cost := callCost{input: e.prompt.Calibrated(estimate), local: model.Local(e.model.Model)}
	// A local call is free, so a crash during it leaves nothing to charge.
	if !cost.local {
		least := e.model.price.Cost(model.Usage{InputTokens: cost.input})
		err := r.persist("begin model call", func(ctx context.Context) error {
			return r.cfg.Store.BeginCall(ctx, e.claim, cost.input, least)
		})
		if err != nil {
			return model.Response{}, err
		}
	}
	traced, ended := r.beginModel(ctx, e)
	resp, err := model.Ask(traced, e.model.Model, req, func(d model.Delta) {
		cost.count(d)
		if show != nil {
			show(d)
		}
	})
	ended(resp, err)
	if resp.KeptBack != "" {
		cost.count(model.Delta{Text: resp.KeptBack})
	}
	e.begun = cost.begun
	r.learnWindow(e, resp.Window)
	r.billed.record(&e.model, resp.Usage) // also for a failed call: its bill may be the first one
	if err == nil {
		for _, warning := range resp.Warnings {
			e.logCall("model call with a warning", nil, "warning", warning)
		}
		known.thinkingOpen.Store(resp.ThinkingOpen)
		r.answered(e)
		return resp, nil // the cost is charged when the step is journaled
	}
	// No step contains the usage of a failed call, so the turn is charged at once.
	e.lostUsage = e.model.usage(cost.used(resp.Usage, ctx.Err() != nil))
	if err := r.charge(e, e.lostUsage); err != nil {
		return resp, err
	}
	// The error of a cancelled call does not show a problem of the provider, so it is not counted.
	if ctx.Err() != nil {
		return resp, context.Cause(ctx)
	}
	r.callFailed(e, err)
	return resp, fmt.Errorf("model call: %w", err)
}

// callFailed counts a failed model call, and records when the current series of failures began.
func (r *Runner) callFailed(e *execution, err error) {
	me, ok := errors.AsType[*model.Error](err)
	if !ok {
		return
	}
	r.countFailure(cmp.Or(e.model.kind, e.model.Name()), me.Code)
	if me.Retryable {
		now := r.cfg.Now()
		e.failingSince = cmp.Or(e.failingSince, &now)
		e.failedCalls++
	}
}

// A callCost estimates the usage of a model call in progress.
type callCost struct {
	input, output int64 // tokens
	begun         bool  // the model has produced something
	local         bool  // the model runs in this process: only its output is charged
}

// count counts a piece of output.
func (c *callCost) count(d model.Delta) {
	if d.Restart {
		c.output = 0 // the same output follows once more
		return
	}
	c.begun = true
	c.output += prompt.EstimateText(d.Text)
}

// used returns the usage to charge for a failed call. It uses the provider's counts, and estimates
// the missing counts. cut means that the runner interrupted the call. Then the provider may still
// charge for it.
func (c *callCost) used(counted model.Usage, cut bool) model.Usage {
	if !c.begun && (!cut || c.local) {
		return counted
	}
	counted.InputTokens = cmp.Or(counted.InputTokens, c.input)
	counted.OutputTokens = max(counted.OutputTokens, c.output)
	return counted
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
	if _, down := r.outages.Blocked(e.model.id, e.claim.ID, r.cfg.Now()); down && e.model.passes(me) {
		return 0, false
	}
	// The pause of the provider applies only if it is longer, so that it cannot defeat the backoff.
	return max(r.cfg.Retry(try), me.RetryAfter), true
}

// asStep returns st, completed with a response. It replaces invalid UTF-8 in the same way as
// streams do: the store rejects such text, and watchers must see the stored text.
func (r *Runner) asStep(st store.Step, resp model.Response, m pricedModel) store.Step {
	st.CompletedAt, st.Finish, st.Model = r.cfg.Now(), string(resp.Finish), r.cfg.Store.Storable(resp.Model)
	st.Parts = stream.Parts(st.Seq, resp)
	st.Usage = m.usage(resp.Usage)
	return st
}
