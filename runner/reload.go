package runner

import (
	"time"

	"journeyman/runner/model"
)

// Reload replaces the models, which have other keys, and the price table. own has the names and
// the order of the runner's present chain. Turns that run use the new models and prices from
// their next model call on. A call in progress ends as it began.
func (r *Runner) Reload(own []model.Model, models Models, prices *model.Prices) {
	next := newSetup(own, models, prices)
	next.number = r.setup.Load().number + 1
	r.setup.Store(next)
	// Only afterwards: a model that is opened in between must have the new prices, too.
	r.connected.forget()
	r.outages.retryGone()
}

// modelChanges returns a number that changes whenever a model may have to be opened again.
func (r *Runner) modelChanges() int64 {
	return r.cfg.Store.ModelChanges() + r.setup.Load().number
}

// forget drops the open models, because their prices have changed.
func (k *connectedModels) forget() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.open = nil
}

// retryGone lets the next turn ask each model whose provider refused the key: it may have
// another key now.
func (o *outages) retryGone() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, d := range o.down {
		if d.gone {
			d.until = time.Time{}
		}
	}
}
