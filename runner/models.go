package runner

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

// CheckModel returns the reason why a worker of the organization may not choose a model, or nil.
// name may also be a chain: names separated by commas.
func (r *Runner) CheckModel(ctx context.Context, organizationID, name string) error {
	models, err := r.modelsOf(ctx, organizationID)
	if err != nil {
		return err
	}
	names := model.Chain(name)
	for i, one := range names {
		err := r.checkOne(models, one)
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
func (r *Runner) checkOne(models workers.OrganizationModels, name string) error {
	if p, rest, ok := providerOf(models, name); ok {
		_, err := r.provider(p, models.First).Open(rest)
		return err
	}
	setup := r.setup
	if setup.models == nil {
		return errNoModels
	}
	err := setup.models.Check(name)
	if err != nil && len(models.Providers) > 0 {
		var own []string
		for _, p := range models.Providers {
			own = append(own, p.Name+":NAME")
		}
		return fmt.Errorf("%w; connected providers are %s", err, strings.Join(own, ", "))
	}
	return err
}

// chainOf returns the models of a worker: its own choice, else those of its organization, else the
// runner's. Models may have been removed since the choice, so names without a model are left out.
// chainOf may ask the models' servers for their window sizes.
func (r *Runner) chainOf(ctx context.Context, organizationID, name string) (chain []candidate, err error) {
	models, err := r.modelsOf(ctx, organizationID)
	if err != nil {
		return nil, err
	}
	owner := "worker's"
	if name == "" && !r.replays() { // recordings replace every default model
		name, owner = models.Chain, "organization's"
	}
	if name == "" {
		for _, m := range r.setup.own {
			chain = append(chain, candidate{pricedModel: r.ready(ctx, m)})
		}
		return chain, nil
	}
	for _, one := range model.Chain(name) {
		m, missing := r.openModel(models, one)
		if missing == nil {
			chain = append(chain, candidate{pricedModel: r.ready(ctx, m), chosen: one})
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

// windowOf returns the context window of a model, in tokens.
func (r *Runner) windowOf(m pricedModel) int64 {
	return cmp.Or(m.price.ContextWindow, r.cfg.ContextWindow)
}

// ready returns m with all that is known about it, before a turn asks it.
func (r *Runner) ready(ctx context.Context, m pricedModel) pricedModel {
	r.unpriced.warn(r.cfg.Log, m)
	return r.billed.apply(r.described(ctx, m))
}

// described returns m with the capabilities that its server states.
func (r *Runner) described(ctx context.Context, m pricedModel) pricedModel {
	return r.capabilities.describe(ctx, m, r.cfg.Now())
}

// replays reports whether the server answers from recordings.
func (r *Runner) replays() bool {
	_, ok := r.setup.own[0].Model.(interface{ Recorded() string })
	return ok
}

// refreshModels replaces the turn's models if their providers have changed since the turn opened
// them. So a new key applies from the next model call on. The chain keeps its order and length,
// because the prompt refers to its indexes.
func (r *Runner) refreshModels(ctx context.Context, e *execution) {
	changes := r.cfg.Store.Workers.ModelChanges() // read before the rows, so that later changes are noticed
	if changes == e.modelChanges {
		return
	}
	models, err := r.modelsOf(ctx, e.claim.OrganizationID)
	if err != nil {
		return // keep the present models; the next call tries again
	}
	e.modelChanges = changes
	e.chain[e.asking].pricedModel, e.chain[e.asking].window = e.model, e.window
	for i := range e.chain {
		c := &e.chain[i]
		if c.chosen == "" { // a model of the server
			continue
		}
		m, err := r.openModel(models, c.chosen)
		if err != nil {
			m = priced(model.Unavailable(c.chosen, "the model is no longer available: "+err.Error()), r.setup.prices)
			m.id = "unavailable " + c.id
		}
		if m.id != c.id {
			c.pricedModel, c.failure = r.ready(ctx, m), nil
			c.window = prompt.Window{Size: r.windowOf(c.pricedModel), MaxOutput: int64(c.maxOutput())}
		}
	}
	e.model, e.window = e.chain[e.asking].pricedModel, e.chain[e.asking].window
}
