package runner

import (
	"time"

	"journeyman/runner/model"
)

// Reload replaces the models, which may have other keys, and the price table. own must have the
// names and the order of the runner's present chain. Running turns use the new models and prices
// from their next model call on. A call in progress is not affected.
func (r *Runner) Reload(own []model.Model, models Models, prices *model.Prices) {
	next := newSetup(own, models, prices)
	next.number = r.setup.Load().number + 1
	r.setup.Store(next)
	// After the store: a model that is opened in between must get the new prices, too.
	r.connected.forget()
	r.outages.retryGone()
}

// modelChanges returns a number that changes whenever models may have to be opened again.
func (r *Runner) modelChanges() int64 {
	return r.cfg.Store.ModelChanges() + r.setup.Load().number
}

// forget drops the open models, because their prices have changed.
func (k *connectedModels) forget() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.open = nil
}

// retryGone lets the next turn ask each model whose provider refused the key, because the key may
// have changed.
func (o *outages) retryGone() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, d := range o.down {
		if d.gone {
			d.until = time.Time{}
		}
	}
}
