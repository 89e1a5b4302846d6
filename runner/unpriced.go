package runner

import (
	"log/slog"
	"sync"

	"journeyman/runner/model"
)

// An unpricedModels remembers the models without a price that the log has named. The zero value is ready to use.
type unpricedModels struct {
	mu    sync.Mutex      // guards named
	named map[string]bool // by the model's id
}

// warn logs, once for each model and start, that caps do not apply to a model without a price.
func (u *unpricedModels) warn(log *slog.Logger, m pricedModel) {
	if m.price.Basis != model.BasisNone {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.named[m.id] {
		return
	}
	// Users choose the names of models, so the set is limited: it then names them once more.
	if u.named == nil || len(u.named) >= maxBilledModels {
		u.named = map[string]bool{}
	}
	u.named[m.id] = true
	log.Warn("model without a price", "model", m.Name(), "price", m.price.Basis.String())
}
