package runner

import (
	"cmp"
	"strings"

	"journeyman/runner/model"
	"journeyman/runner/prompt"
	"journeyman/store"
)

// A pricedModel is a model with its line of the price table and, once it is described,
// its own capabilities.
type pricedModel struct {
	model.Model
	id    string // tells models apart: two organizations may use the same name
	kind  string // of the provider, for monitoring; "" for the prefix of the name
	price model.Price

	can         model.Capabilities
	isDescribed bool // the model's server has stated can
}

func priced(m model.Model, prices *model.Prices) pricedModel {
	p := pricedModel{Model: m, id: m.Name(), price: prices.Lookup(m.Name())}
	if name := model.PriceName(m); name != "" && !p.price.Known {
		p.price = prices.Lookup(name)
	}
	if rec, ok := m.(interface{ Recorded() string }); ok && !p.price.Known {
		// A replay costs nothing, and has the sizes of the model that was recorded.
		sizes := prices.Lookup(rec.Recorded())
		p.price.ContextWindow, p.price.MaxOutput = sizes.ContextWindow, sizes.MaxOutput
	}
	return p
}

// passes reports whether a failure of the model may disappear while the turn waits. The
// answers of a model in this process do not change with time. Malformed answers are a fault
// of the server, which a wait does not repair.
func (m pricedModel) passes(me *model.Error) bool {
	return me.Retryable && !me.Malformed() && !model.Local(m.Model)
}

// providerKind returns the kind of a model's provider, such as openai, for monitoring. Users
// choose names of models and of connected providers, so these are no part of it.
func (m pricedModel) providerKind() string {
	kind, _, _ := strings.Cut(cmp.Or(m.kind, m.Name()), ":")
	return kind
}

// defaultMaxOutput is the most tokens that a model produces in one call, where the price
// table does not say.
const defaultMaxOutput = 32_000

// maxOutput returns the most tokens that the model produces in one call.
func (m pricedModel) maxOutput() int { return cmp.Or(int(m.price.MaxOutput), defaultMaxOutput) }

// usage returns the usage of a call, with its cost.
func (m pricedModel) usage(u model.Usage) store.Usage {
	cost := m.price.Cost(u)
	if u.Billed {
		cost = u.Cost // the provider knows its own prices better than the table
	}
	return store.Usage{InputTokens: u.InputTokens, OutputTokens: u.OutputTokens, CacheReadTokens: u.CacheReadTokens,
		CacheWriteTokens: u.CacheWriteTokens, ReasoningTokens: u.ReasoningTokens, ModelCost: cost}
}

// A candidate is a model of a turn's chain, with the state that the turn keeps for it.
type candidate struct {
	pricedModel
	chosen  string        // the name in the worker's or the organization's chain; "" for the server's own
	window  prompt.Window // narrower than the price table says after a refusal
	failure *model.Error  // of its calls for the step in progress; nil without one
}
