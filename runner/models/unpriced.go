package models

import (
	"context"
	"log/slog"
	"sync"

	"journeyman/runner/model"
)

// An unpricedModels remembers the models without a price that the log has named. The zero value is ready to use.
type unpricedModels struct {
	mu    sync.Mutex      // guards named
	named map[string]bool // by the model's id
}

// warn logs, once for each model and start, that caps do not apply to a model without a price. A model in the private
// network is free on purpose, but its server may be a gateway to paid ones, so the log has it, too.
func (u *unpricedModels) warn(log *slog.Logger, m Priced) {
	level, message := slog.LevelWarn, "model without a price"
	switch m.Price.Basis {
	case model.BasisNone:
	case model.BasisLocal:
		level, message = slog.LevelInfo, "model that is free by its address"
	default:
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.named[m.ID] {
		return
	}
	// Users choose the names of models, so the set is limited: it then names them once more.
	if u.named == nil || len(u.named) >= maxBilledModels {
		u.named = map[string]bool{}
	}
	u.named[m.ID] = true
	log.Log(context.Background(), level, message, "model", m.Name(), "price", m.Price.Basis.String())
}
