package models

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"journeyman/runner/model"
	"journeyman/runner/prompt"
	"journeyman/store/workers"
)

// maxChain limits the number of models in a chain.
const maxChain = 8

// Check returns the reason why a worker of the organization may not choose a model, or nil.
// name may also be a chain: names separated by commas.
func (d *Directory) Check(ctx context.Context, organizationID, name string) error {
	models, err := d.modelsOf(ctx, organizationID)
	if err != nil {
		return err
	}
	names := model.Chain(name)
	for i, one := range names {
		err := d.checkOne(models, one)
		if err != nil && len(names) > 1 {
			err = fmt.Errorf("model %d of the chain, %q: %w", i+1, one, err)
		}
		if err != nil {
			return err
		}
	}
	return CheckChain(names)
}

// Chain splits a chain of models into its names, which are separated by commas.
func Chain(names string) []string { return model.Chain(names) }

// CheckChain returns an error for a chain that is too long or names a model twice.
func CheckChain(names []string) error {
	if len(names) > maxChain {
		return fmt.Errorf("must name at most %d models, not %d", maxChain, len(names))
	}
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			return fmt.Errorf("names %s twice", name)
		}
	}
	return nil
}

// checkOne returns the reason why one model may not be chosen, or nil. The organization's own
// providers have precedence.
func (d *Directory) checkOne(models workers.OrganizationModels, name string) error {
	if p, rest, ok := providerOf(models, name); ok {
		_, err := d.provider(p, models.First).Open(rest)
		return err
	}
	if d.cfg.Models == nil {
		return errNoModels
	}
	err := d.cfg.Models.Check(name)
	if err != nil && len(models.Providers) > 0 {
		var own []string
		for _, p := range models.Providers {
			own = append(own, p.Name+":NAME")
		}
		return fmt.Errorf("%w; connected providers are %s", err, strings.Join(own, ", "))
	}
	return err
}

// Chain returns the models of a worker: its own choice, else those of its organization, else the
// runner's. Models may have been removed since the choice, so names without a model are left out.
// Chain may ask the models' servers for their window sizes.
func (d *Directory) Chain(ctx context.Context, organizationID, name string) (chain []Candidate, err error) {
	models, err := d.modelsOf(ctx, organizationID)
	if err != nil {
		return nil, err
	}
	owner := "worker's"
	if name == "" && !d.replays() { // recordings replace every default model
		name, owner = models.Chain, "organization's"
	}
	if name == "" {
		for _, m := range d.own {
			chain = append(chain, Candidate{Priced: d.ready(ctx, m)})
		}
		return chain, nil
	}
	for _, one := range model.Chain(name) {
		m, missing := d.openModel(models, one)
		if missing == nil {
			chain = append(chain, Candidate{Priced: d.ready(ctx, m), chosen: one})
			continue
		}
		// Report the first missing model, and only if no model of the chain is left.
		err = cmp.Or(err, error(&model.Error{Code: model.CodeUnavailable,
			Message: fmt.Sprintf("the %s model %s is not available: %s", owner, one, missing)}))
	}
	if len(chain) > 0 {
		return chain, nil
	}
	return nil, err
}

// ContextWindow returns the context window of a model, in tokens.
func (d *Directory) ContextWindow(m Priced) int64 {
	return cmp.Or(m.Price.ContextWindow, d.cfg.ContextWindow)
}

// ready returns m with all that is known about it, before a turn asks it.
func (d *Directory) ready(ctx context.Context, m Priced) Priced {
	d.unpriced.warn(d.cfg.Log, m)
	return d.billed.apply(d.described(ctx, m))
}

// described returns m with the capabilities that its server states.
func (d *Directory) described(ctx context.Context, m Priced) Priced {
	return d.capabilities.describe(ctx, m, d.cfg.Now())
}

// replays reports whether the server answers from recordings.
func (d *Directory) replays() bool {
	_, ok := d.own[0].Model.(interface{ Recorded() string })
	return ok
}

// Refresh replaces the models of a chain whose providers have changed since the store's number of changes was since.
// It returns the present number. The chain keeps its order and length, because prompts refer to its indexes.
func (d *Directory) Refresh(ctx context.Context, organizationID string, since int64, chain []Candidate) int64 {
	changes := d.Changes() // read before the rows, so that later changes are noticed
	if changes == since {
		return since
	}
	models, err := d.modelsOf(ctx, organizationID)
	if err != nil {
		return since // keep the present models; the next call tries again
	}
	for i := range chain {
		c := &chain[i]
		if c.chosen == "" { // a model of the server
			continue
		}
		m, err := d.openModel(models, c.chosen)
		if err != nil {
			m = priced(model.Unavailable(c.chosen, "the model is no longer available: "+err.Error()), d.cfg.Prices)
			m.ID = "unavailable " + c.ID
		}
		if m.ID != c.ID {
			c.Priced, c.Failure = d.ready(ctx, m), nil
			c.Window = prompt.Window{Size: d.ContextWindow(c.Priced), MaxOutput: int64(c.MaxOutput())}
		}
	}
	return changes
}

// Changes returns the store's number of changes of models. It is read before a chain is opened, so that no change is
// missed.
func (d *Directory) Changes() int64 { return d.cfg.Store.Workers.ModelChanges() }
