package models

import (
	"cmp"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"journeyman/runner/model"
)

// An outage is the time during which a model does not answer. Turns that need the model wait
// without a slot. Only one turn at a time, the probe, asks the model. Otherwise many turns
// could overload a recovering provider.
type outage struct {
	err      *model.Error
	gone     bool                // the provider refuses the key or lacks the model: chains skip it
	failures int                 // failed probes in a row
	until    time.Time           // no turn asks the model before this time
	probe    string              // id of the turn that asks it now; "" for none
	last     string              // id of the last turn that asked it
	waiting  map[string]struct{} // ids of turns that are suspended for the model, or soon will be
}

// Outages holds the models that this process has found not to answer. The zero value is ready to
// use. It is not stored: after a restart, the first calls detect the outages again.
type Outages struct {
	mu       sync.Mutex           // guards the maps and every outage in them; never held during a call
	down     map[string]*outage   // by the model and who pays for it
	answered map[string]time.Time // the time of each model's last answer
}

const (
	probeWait = 15 * time.Second // longest wait for the result of a probe
	goneTime  = 5 * time.Minute  // how long chains skip a model that is gone
	maxModels = 256              // models in a map, because users choose the names
)

// MinRetryAfter is the shortest pause requested by a provider that replaces the backoff.
const MinRetryAfter = 5 * time.Second

// A Block is the reason why a turn may not ask a model now.
type Block struct {
	Err   *model.Error // of the failed call; nil if the call was made before a restart
	Gone  bool         // the provider refuses the key or lacks the model
	Until time.Time    // no turn asks the model before this time
}

// Asked reports whether the provider requested the wait.
func (b Block) Asked() bool { return b.Err != nil && b.Err.RetryAfter >= MinRetryAfter }

// Blocked returns the reason why the turn may not ask the model now. ok is false if the turn may
// ask.
func (o *Outages) Blocked(name, turnID string, now time.Time) (b Block, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	d := o.down[name]
	switch {
	case d == nil:
		return b, false
	case now.Before(d.until):
		return Block{d.err, d.gone, d.until}, true
	// The probe's end is unknown. The wait is at most probeWait, and a success ends it early.
	case d.probe != "" && d.probe != turnID && !d.gone:
		return Block{d.err, false, now.Add(probeWait)}, true
	}
	return b, false
}

// Enter reports whether a turn may ask the model now. The first turn that asks a model after its
// failure is the probe. Other turns wait until Leave, Failed or Succeeded is called. failing means
// that this turn's calls have failed since its last success.
func (o *Outages) Enter(name, turnID string, failing bool, now time.Time) (may, probes bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	d := o.down[name]
	if d == nil && failing { // the outage began before this process started
		d = o.begin(name, now)
	}
	switch {
	case d == nil:
		return true, false
	case d.gone || d.probe == turnID: // a model that is gone fails fast, so many turns may ask it
		return true, true
	case now.Before(d.until) || d.probe != "":
		return false, false
	}
	// The check and this assignment hold the same lock, so that two turns never probe at once.
	d.probe = turnID
	return true, true
}

// begin records a new outage. The caller holds o.mu.
func (o *Outages) begin(name string, now time.Time) *outage {
	if o.down == nil {
		o.down = map[string]*outage{}
	}
	if len(o.down) >= maxModels {
		o.forgetOne()
	}
	d := &outage{waiting: map[string]struct{}{}, until: now}
	o.down[name] = d
	return d
}

// forgetOne drops the outage that matters least, or else the one that ends first. The next calls of its
// model detect it again. The caller holds o.mu.
func (o *Outages) forgetOne() {
	var least string
	for name, d := range o.down {
		other := o.down[least]
		if other == nil || cmp.Or(d.weight()-other.weight(), d.until.Compare(other.until)) < 0 {
			least = name
		}
	}
	delete(o.down, least)
}

// weight is higher for an outage that must be remembered longer. A success wakes only the waiting turns
// of a known outage. A model that is gone fails fast, and may be only a wrong name. The caller holds the
// lock of the outages.
func (d *outage) weight() int {
	switch {
	case len(d.waiting) > 0:
		return 2
	case d.gone:
		return 0
	}
	return 1
}

// Leave ends a probe that has no result.
func (o *Outages) Leave(name, turnID string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if d := o.down[name]; d != nil && d.probe == turnID {
		d.probe = ""
	}
}

// Failed records that all tries of a turn have failed. since is the time of the first failure.
// pause returns the wait after the n-th failure in a row.
func (o *Outages) Failed(name, turnID string, err *model.Error, since, now time.Time, pause func(n int) time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	d := o.down[name]
	if d == nil {
		if o.answered[name].After(since) {
			return // the model has answered other turns since: the cause is this turn
		}
		d = o.begin(name, now)
	}
	if d.probe != turnID && now.Before(d.until) {
		return // parallel turns report the same failure: only the first report lengthens the wait
	}
	d.failures++
	d.err, d.gone, d.probe, d.last = err, false, "", turnID
	d.until = now.Add(pause(d.failures))
}

// Lost records that the provider will not serve the model: see model.Error.Gone.
func (o *Outages) Lost(name string, err *model.Error, now time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	d := o.down[name]
	if d == nil {
		d = o.begin(name, now)
	}
	d.err, d.gone, d.probe, d.until = err, true, "", now.Add(goneTime)
}

// Succeeded ends the outage of a model, and returns the ids of the turns that wait for it.
func (o *Outages) Succeeded(name string, now time.Time) (waiting []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.answered == nil || len(o.answered) >= maxModels {
		o.answered = map[string]time.Time{} // a lost entry only makes the next outage begin sooner
	}
	o.answered[name] = now
	if d := o.down[name]; d != nil {
		waiting = slices.Collect(maps.Keys(d.waiting))
		delete(o.down, name)
	}
	return waiting
}

// AnsweredSince reports whether the model has answered a turn since the given time.
func (o *Outages) AnsweredSince(name string, since time.Time) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	at, ok := o.answered[name]
	return ok && !at.Before(since)
}

// Await records that a turn waits for the model. It returns the time at which the turn retries,
// which is at or later.
func (o *Outages) Await(name, turnID string, at time.Time) time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	d := o.down[name]
	if d == nil {
		return at
	}
	others := len(d.waiting)
	if _, already := d.waiting[turnID]; already {
		others--
	}
	d.waiting[turnID] = struct{}{}
	if at.Before(d.until) {
		at = d.until
	}
	// The turn that has just asked lets another turn ask next, because its own request may be the
	// cause. The waiting turns are spread over time.
	spread := min(time.Duration(others)*20*time.Millisecond, time.Minute)
	if d.last == turnID && others > 0 {
		at = at.Add(time.Second)
	}
	if spread > 0 {
		at = at.Add(rand.N(spread))
	}
	return at
}
