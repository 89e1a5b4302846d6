package runner

import (
	"errors"
	"fmt"

	"journeyman/runner/model"
)

// Models are those that a worker may choose in place of the runner's own.
// Implementations are safe for concurrent use; model.Catalogue is one.
type Models interface {
	// Check says, for its creator, why a worker may not choose the model.
	Check(name string) error
	// Open gives the model. It is asked for each turn, and makes no request.
	Open(name string) (model.Model, error)
}

var errNoModels = errors.New("must be null: this server has its own model only")

// A pricedModel is a model with its line of the price table.
type pricedModel struct {
	model.Model
	price model.Price
}

func (r *Runner) priced(m model.Model) pricedModel {
	p := pricedModel{m, r.cfg.Prices.Lookup(m.Name())}
	if rec, ok := m.(interface{ Recorded() string }); ok && !p.price.Known {
		// It costs nothing, and has room for what the recorded model has.
		sizes := r.cfg.Prices.Lookup(rec.Recorded())
		p.price.ContextWindow, p.price.MaxOutput = sizes.ContextWindow, sizes.MaxOutput
	}
	return p
}

// modelOf gives the model of a worker: by the name it has chosen, or the runner's
// own. What may be chosen can have changed since then.
func (r *Runner) modelOf(name string) (pricedModel, error) {
	if name == "" {
		return r.own, nil
	}
	err := errNoModels
	if r.cfg.Models != nil {
		var m model.Model
		if m, err = r.cfg.Models.Open(name); err == nil {
			return r.priced(m), nil
		}
	}
	return pricedModel{}, &model.Error{Code: "model_unavailable", Message: fmt.Sprintf("the worker's model %s is not available: %s", name, err)}
}

// CheckModel says why a worker may not choose the model of that name.
func (r *Runner) CheckModel(name string) error {
	if r.cfg.Models == nil {
		return errNoModels
	}
	return r.cfg.Models.Check(name)
}
