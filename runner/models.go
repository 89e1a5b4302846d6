package runner

import (
	"errors"

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

// CheckModel says why a worker may not choose the model of that name.
func (r *Runner) CheckModel(name string) error {
	if r.cfg.Models == nil {
		return errNoModels
	}
	return r.cfg.Models.Check(name)
}
