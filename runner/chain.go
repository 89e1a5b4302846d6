package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"journeyman/runner/model"
	"journeyman/store"
)

// use makes a candidate the model that is asked next.
func (e *execution) use(i int) {
	if e.model.Model != nil {
		// Save the changes of this turn: a refusal may have narrowed the window, and a bill may
		// have shown the price.
		e.chain[e.asking].pricedModel, e.chain[e.asking].window = e.model, e.window
	}
	e.asking, e.model, e.window = i, e.chain[i].pricedModel, e.chain[i].window
	e.prompt.Asking = i
}

// chooseModel chooses the model that is asked next: the first of the chain that answers
// and has room for the request. If there is none, the turn is suspended or fails.
func (r *Runner) chooseModel(ctx context.Context, e *execution) error {
	r.refreshModels(ctx, e)
	for {
		i := r.nextModel(e)
		if i < 0 {
			return r.awaitModel(ctx, e)
		}
		e.use(i)
		if r.isLastTry(e) { // without enter: this turn cannot wait behind the probe of another one
			e.probes = true
			return nil
		}
		var may bool
		may, e.probes = r.outages.enter(e.model.id, e.claim.ID, e.failingSince != nil, r.cfg.Now())
		if may {
			return nil
		}
		// Another turn has begun to probe it meanwhile, so nextModel now skips it.
	}
}

// isLastTry reports whether the patience of a turn is about to end. The turn then asks its
// model once more, even if other turns have found that the model is down.
func (r *Runner) isLastTry(e *execution) bool {
	return e.failingSince != nil && !r.cfg.Now().Add(lastTry).Before(e.failingSince.Add(r.patience(e.claim.Budget)))
}

// nextModel returns the index of the model to ask, or -1 if all are down or have failed.
func (r *Runner) nextModel(e *execution) int {
	// One time for all models, so that they are judged alike.
	largest, gone, now, last := -1, -1, r.cfg.Now(), r.isLastTry(e)
	for i := range e.chain {
		c := &e.chain[i]
		if c.failure != nil { // it has failed for this step
			continue
		}
		b, blocked := r.outages.blocked(c.id, e.claim.ID, now)
		switch {
		case blocked && b.gone:
			if gone < 0 {
				gone = i
			}
		case blocked && !(last && !b.asked()): // a pause that the provider asked for holds to the end
		case len(e.chain) == 1 || e.prompt.CalibratedFor(i, e.estimate) <= c.window.Room():
			return i
		case largest < 0 || c.window.Room() > e.chain[largest].window.Room():
			largest = i // if the request fits nowhere, it is shortened for the largest window
		}
	}
	if largest < 0 {
		return gone // it may be available again, and no other model is left; -1 for none
	}
	return largest
}

// passOn records how the call of a step ended with the model that was asked. It reports
// whether the step continues: with another model, or later with the same one.
func (r *Runner) passOn(ctx context.Context, e *execution, err error) bool {
	name, now := e.model.id, r.cfg.Now()
	defer r.outages.leave(name, e.claim.ID) // on every path: a probe that is not left blocks all other turns
	me, ok := errors.AsType[*model.Error](err)
	if !ok || ctx.Err() != nil {
		return false // the turn was interrupted, or its own work failed: the model is not the cause
	}
	switch {
	case e.model.passes(me):
		// generate has set failingSince, because the failure is retryable.
		r.outages.failed(name, e.claim.ID, me, *e.failingSince, now, func(n int) time.Duration {
			return r.pause(me, n)
		})
	case me.Retryable: // a model in this process, or answers that nobody can read
	case me.TooLong() && e.largerFollows():
	case me.Gone():
		// Only a chain skips a model that is gone. With one model, each turn gets the model's error.
		if len(e.chain) > 1 {
			r.outages.lost(name, me, now)
		}
	default:
		return false
	}
	e.chain[e.asking].failure = me
	return true
}

// largerFollows reports whether a model that has not failed follows in the chain, and has
// a larger window than the one that is asked.
func (e *execution) largerFollows() bool {
	return slices.ContainsFunc(e.chain[e.asking+1:], func(c candidate) bool {
		return c.failure == nil && c.window.Room() > e.window.Room()
	})
}

// lastTry is how long before the end of its patience a turn asks its model once more.
const lastTry = 10 * time.Second

// pause returns how long no turn asks a model after its n-th failure in a row. It is the
// pause that the provider asks for, if that is long enough. Otherwise it grows with n.
func (r *Runner) pause(me *model.Error, n int) time.Duration {
	if me.RetryAfter >= minRetryAfter {
		return me.RetryAfter
	}
	return r.cfg.Suspend(n)
}

// patience returns how long a turn waits for its models.
func (r *Runner) patience(b store.Budget) time.Duration {
	if r.cfg.ModelPatience > 0 {
		return r.cfg.ModelPatience
	}
	if limit := r.cfg.Budgets[b].Time; limit > 0 {
		return limit
	}
	return 24 * time.Hour
}

// An outlook says when a turn may ask again, if none of its models answers now.
type outlook struct {
	at    time.Time    // when one of them may be asked again; zero if a wait helps with none
	asked bool         // the provider has asked for that time
	err   *model.Error // of that model; of the first one if at is zero
}

// outlookOf returns when a turn may ask one of its models again, and the error that forbids
// it now. It enters the turn in the list of each model whose answer would resume it.
func (r *Runner) outlookOf(e *execution) (x outlook) {
	now := r.cfg.Now()
	// The earliest time of all models counts: the turn needs only one of them.
	for i := range e.chain {
		c := &e.chain[i]
		var at time.Time
		why, asked := c.failure, false
		b, blocked := r.outages.blocked(c.id, e.claim.ID, now)
		switch {
		case why != nil && c.passes(why):
			at, asked = now.Add(r.pause(why, e.suspensions())), why.RetryAfter >= minRetryAfter
		case why == nil && blocked && !b.gone:
			at, why, asked = b.until, b.err, b.asked()
		default: // it is gone, or refuses this request
			if x.err == nil && x.at.IsZero() {
				x.err = why
			}
			continue
		}
		at = r.outages.await(c.id, e.claim.ID, at)
		if x.at.IsZero() || at.Before(x.at) {
			x = outlook{at, asked, why}
		}
	}
	return x
}

// suspensions returns how often in a row the turn has been suspended, this time included.
func (e *execution) suspensions() int {
	return max(int(e.claim.FailedCalls+e.failedCalls)-quickTries, 0) + 1
}

// awaitModel suspends a turn whose models are all down, until one of them may be asked
// again. It returns errSuspended, or the error of a model if no wait would help.
func (r *Runner) awaitModel(ctx context.Context, e *execution) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	// The turn is in the lists of its models before its row is suspended. A model that answers
	// between the two does not resume it: resumeIfAnswered does.
	now, x := r.cfg.Now(), r.outlookOf(e)
	why := x.err
	if why == nil { // another turn asks a model that was down before this process began
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
		return fmt.Errorf("model call: %w", why)
	case x.asked && !x.at.Before(until):
		longer := *why
		longer.Message += fmt.Sprintf(" (the provider asks to wait %s, longer than the patience of %s)",
			why.RetryAfter, patience)
		return fmt.Errorf("model call: %w", &longer)
	case !x.at.Before(until):
		x.at = until.Add(-lastTry)
	}
	w := store.Wait{For: store.WaitForModel, Reason: why.Error(), Until: until, RetryAt: &x.at}
	err := r.suspendForModel(e, w, store.Outage{Since: since, Calls: e.failedCalls})
	if errors.Is(err, errSuspended) {
		r.resumeIfAnswered(e, now)
	}
	return err
}

// suspendForModel returns the turn to the store until its model is asked again.
func (r *Runner) suspendForModel(e *execution, w store.Wait, o store.Outage) error {
	_, err := r.suspend(e, func(ctx context.Context) (bool, error) {
		return true, r.cfg.Store.SuspendForModel(ctx, e.claim, w, o)
	})
	if err != nil {
		return err
	}
	r.expectRetry(*w.RetryAt) // after the commit: a dispatcher that looks earlier would not find the row
	e.live.Waiting(w)
	r.logCall(e, "the turn waits for its model", nil, "retry", *w.RetryAt, "until", w.Until)
	return errSuspended
}
