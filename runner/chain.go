package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"journeyman/runner/model"
	"journeyman/runner/models"
	"journeyman/store"
)

// use selects the candidate that is asked next.
func (e *execution) use(i int) {
	if e.model.Model != nil {
		// Save the state of the current candidate: a refusal may have narrowed the window, and a
		// bill may have added rates.
		e.chain[e.asking].Priced, e.chain[e.asking].Window = e.model, e.window
	}
	e.asking, e.model, e.window = i, e.chain[i].Priced, e.chain[i].Window
	e.prompt.Asking = i
}

// chooseModel selects the next model to ask: the first available model of the chain with room for
// the request. Without such a model, the turn is suspended or fails.
func (r *Runner) chooseModel(ctx context.Context, e *execution) (outcome, error) {
	r.refreshModels(ctx, e)
	for {
		i := r.nextModel(e)
		if i < 0 {
			return r.awaitModel(ctx, e)
		}
		e.use(i)
		if e.model.Alone() {
			e.probes = e.failingSince != nil
			return next, nil
		}
		if r.isLastTry(e) { // without Enter: this turn cannot wait for the probe of another turn
			e.probes = true
			return next, nil
		}
		var may bool
		may, e.probes = r.Models.Outages.Enter(e.model.ID, e.claim.ID, e.failingSince != nil, r.cfg.Now())
		if may {
			return next, nil
		}
		// Another turn has begun to probe this model, so nextModel now skips it.
	}
}

// refreshModels replaces the turn's models if their providers have changed since the turn opened
// them. So a new key applies from the next model call on.
func (r *Runner) refreshModels(ctx context.Context, e *execution) {
	now := &e.chain[e.asking]
	now.Priced, now.Window = e.model, e.window
	e.modelChanges = r.Models.Refresh(ctx, e.claim.OrganizationID, e.modelChanges, e.chain)
	e.model, e.window = now.Priced, now.Window
}

// isLastTry reports whether the turn's time to wait for its models is about to end. Then the turn
// asks its model once more, even if other turns have found the model down.
func (r *Runner) isLastTry(e *execution) bool {
	return e.failingSince != nil && !r.cfg.Now().Add(lastTry).Before(e.failingSince.Add(r.patience(e.claim.Budget)))
}

// nextModel returns the index of the model to ask, or -1 if every model is down or has failed.
func (r *Runner) nextModel(e *execution) int {
	// Read the clock once, so that all models are compared at the same time.
	largest, gone, now, last := -1, -1, r.cfg.Now(), r.isLastTry(e)
	for i := range e.chain {
		c := &e.chain[i]
		if c.Failure != nil { // this model has failed for this step
			continue
		}
		b, blocked := r.Models.Outages.Blocked(c.ID, e.claim.ID, now)
		switch {
		case blocked && b.Gone:
			if gone < 0 {
				gone = i
			}
		case blocked && !(last && !b.Asked()): // a pause that the provider requested stays
		case len(e.chain) == 1 || e.prompt.CalibratedFor(i, e.estimate) <= c.Window.Room():
			return i
		case largest < 0 || c.Window.Room() > e.chain[largest].Window.Room():
			largest = i // if the request fits no window, it is compacted for the largest one
		}
	}
	if largest < 0 {
		return gone // the only remaining model may be available again; -1 for none
	}
	return largest
}

// passOn records how the call of a step has failed. It reports whether the step continues, either
// with another model or later with the same model.
func (r *Runner) passOn(ctx context.Context, e *execution, err error) bool {
	name, now := e.model.ID, r.cfg.Now()
	defer r.Models.Outages.Leave(name, e.claim.ID) // on every path: a probe blocks all other turns
	me, ok := errors.AsType[*model.Error](err)
	if !ok || ctx.Err() != nil {
		return false // the turn was interrupted or failed by itself: the model is not the cause
	}
	switch {
	case e.model.Passes(me) && e.model.Alone():
	case e.model.Passes(me):
		// The failure is retryable, so callEnded has set failingSince.
		r.Models.Outages.Failed(name, e.claim.ID, me, *e.failingSince, now, func(n int) time.Duration {
			return r.pause(me, n)
		})
	case me.Retryable: // malformed answers
	case me.TooLong() && e.largerFollows():
	case me.Gone():
		// Only a chain skips a model that is gone. A turn with one model gets the error of its own
		// call.
		if len(e.chain) > 1 {
			r.Models.Outages.Lost(name, me, now)
		}
	case me.ToolsRefused() && len(e.chain) > 1: // only for this step: a worker without tools may still ask the model
	case e.nextMayAccept(me):
		e.logCall("the model's server rejected the request, so the next model of the chain is asked", err)
	default:
		return false
	}
	e.chain[e.asking].Failure = me
	return true
}

// largerFollows reports whether a later model of the chain has a larger window than the current
// one. Models that have failed do not count.
func (e *execution) largerFollows() bool {
	return slices.ContainsFunc(e.chain[e.asking+1:], func(c models.Candidate) bool {
		return c.Failure == nil && c.Window.Room() > e.window.Room()
	})
}

// nextMayAccept reports whether a later model of the chain is asked after a server has rejected a request before it
// answered: each server has its own rules. This is done once for a step, because the request may be the cause.
func (e *execution) nextMayAccept(me *model.Error) bool {
	if !me.Rejected() || e.begun {
		return false
	}
	rejected := func(c models.Candidate) bool {
		return c.Failure != nil && c.Failure.Rejected() && !c.Failure.Gone()
	}
	if slices.ContainsFunc(e.chain, rejected) {
		return false
	}
	return slices.ContainsFunc(e.chain[e.asking+1:], func(c models.Candidate) bool { return c.Failure == nil })
}

// lastTry is the time between the last call of a model and the end of the turn's patience.
const lastTry = 10 * time.Second

// pause returns how long no turn asks a model after its n-th failure in a row. It is the pause that
// the provider requested, if that is long enough. Otherwise it grows with n.
func (r *Runner) pause(me *model.Error, n int) time.Duration {
	if me.RetryAfter >= models.MinRetryAfter {
		return me.RetryAfter
	}
	return r.cfg.Suspend(n)
}

// patience returns the longest time that a turn waits for its models.
func (r *Runner) patience(b store.Budget) time.Duration {
	if r.cfg.ModelPatience > 0 {
		return r.cfg.ModelPatience
	}
	if limit := r.cfg.Budgets[b].Time; limit > 0 {
		return limit
	}
	return 24 * time.Hour
}

// An outlook is the time when a turn may ask again, if none of its models is available now.
type outlook struct {
	at    time.Time    // when one of the models may be asked again; zero if waiting does not help
	asked bool         // the provider requested that time
	err   *model.Error // of the model for that time; of the first model if at is zero
}

// outlookOf returns when a turn may ask one of its models again, and the error that prevents a call
// now. It adds the turn to the waiting list of each model whose success would resume it.
func (r *Runner) outlookOf(e *execution) (x outlook) {
	now := r.cfg.Now()
	// Use the earliest time, because the turn needs only one of the models.
	for i := range e.chain {
		c := &e.chain[i]
		var at time.Time
		why, asked := c.Failure, false
		b, blocked := r.Models.Outages.Blocked(c.ID, e.claim.ID, now)
		switch {
		case why != nil && c.Passes(why):
			at, asked = now.Add(r.pause(why, e.suspensions())), why.RetryAfter >= models.MinRetryAfter
		case why == nil && blocked && !b.Gone:
			at, why, asked = b.Until, b.Err, b.Asked()
		default: // the model is gone, or refuses this request
			if x.err == nil && x.at.IsZero() {
				x.err = why
			}
			continue
		}
		at = r.Models.Outages.Await(c.ID, e.claim.ID, at)
		if x.at.IsZero() || at.Before(x.at) {
			x = outlook{at, asked, why}
		}
	}
	return x
}

// suspensions returns how many times in a row the turn has been suspended, including this time.
func (e *execution) suspensions() int {
	return max(int(e.claim.FailedCalls+e.failedCalls)-quickTries, 0) + 1
}

// awaitModel suspends a turn whose models are all down, until one of them may be asked again. It
// returns a model's error if waiting would not help.
func (r *Runner) awaitModel(ctx context.Context, e *execution) (outcome, error) {
	if ctx.Err() != nil {
		return next, context.Cause(ctx)
	}
	// The turn joins the waiting lists of its models before the store suspends its row. A model
	// that answers in between cannot resume the turn, so resumeIfAnswered does.
	now, x := r.cfg.Now(), r.outlookOf(e)
	why := x.err
	if why == nil { // another turn tests a model that was already down before this process started
		why = &model.Error{Code: "model_unavailable", Retryable: true,
			Message: "the model did not answer earlier; another turn is testing it now"}
	}
	since := now
	if e.failingSince != nil {
		since = *e.failingSince
	}
	patience := r.patience(e.claim.Budget)
	until := since.Add(patience)
	// A turn fails early only if no wait can help. Otherwise it asks once more just before its
	// patience ends.
	switch {
	case x.at.IsZero() || !now.Add(lastTry).Before(until) && !x.at.Before(until):
		return next, fmt.Errorf("model call: %w", why)
	case x.asked && !x.at.Before(until):
		longer := *why
		longer.Message += fmt.Sprintf(" (the provider asks to wait %s, longer than the patience of %s)",
			why.RetryAfter, patience)
		return next, fmt.Errorf("model call: %w", &longer)
	case !x.at.Before(until):
		x.at = until.Add(-lastTry)
	}
	w := store.Wait{For: store.WaitForModel, Reason: why.Error(), Until: until, RetryAt: &x.at}
	if err := r.suspendForModel(e, w, store.Outage{Since: since, Calls: e.failedCalls}); err != nil {
		return next, err
	}
	r.resumeIfAnswered(e, now)
	return waits, nil
}

// suspendForModel returns the turn to the store until its model is asked again.
func (r *Runner) suspendForModel(e *execution, w store.Wait, o store.Outage) error {
	_, err := r.suspend(e, func(ctx context.Context) (bool, error) {
		return true, r.cfg.Store.SuspendForModel(ctx, e.claim, w, o)
	})
	if err != nil {
		return err
	}
	r.expectRetry(*w.RetryAt) // after the commit, so that the dispatcher finds the row
	e.live.Waiting(w)
	e.logCall("the turn waits for its model", nil, "retry", *w.RetryAt, "until", w.Until)
	return nil
}
