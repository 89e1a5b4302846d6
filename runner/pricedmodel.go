package runner

import (
	"cmp"
	"strings"

	"journeyman/runner/model"
	"journeyman/runner/prompt"
	"journeyman/store"
)

// A pricedModel is a model with its price and, after describe, its stated capabilities.
type pricedModel struct {
	model.Model
	id    string // unique, because two organizations may use the same name
	kind  string // of the provider, for metrics; "" for the prefix of the name
	price model.Price

	can         model.Capabilities
	isDescribed bool // the model's server has stated its abilities in can
	windowSet   bool // the operator has set the context window
}

func priced(m model.Model, prices *model.Prices) pricedModel {
	return pricedModel{Model: m, id: m.Name(), price: prices.Of(m)}
}

// passes reports whether a failure of the model may disappear while the turn waits. Malformed answers are
// a defect of the server, so waiting does not help.
func (m pricedModel) passes(me *model.Error) bool { return me.Retryable && !me.Malformed() }

// alone reports whether a failure of the model concerns only the turn that asked. A model in this process
// fails because the turn's script says so. Other turns must not wait for that.
func (m pricedModel) alone() bool { return model.Local(m.Model) }

// providerKind returns the kind of a model's provider for metrics, such as openai. It contains no
// names of models or connected providers, because users choose those.
func (m pricedModel) providerKind() string {
	kind, _, _ := strings.Cut(cmp.Or(m.kind, m.Name()), ":")
	return kind
}

// defaultMaxOutput is the maximum output of one call, in tokens. It applies to models without an
// output limit in the price table.
const defaultMaxOutput = 32_000

// maxOutput returns the maximum output of one call, in tokens.
func (m pricedModel) maxOutput() int { return cmp.Or(int(m.price.MaxOutput), defaultMaxOutput) }

// usage returns the usage of a call, with its cost.
func (m pricedModel) usage(u model.Usage) store.Usage {
	cost := m.price.Cost(u)
	if u.Billed {
		cost = u.Cost // the provider's bill is more precise than the table
	}
	return store.Usage{InputTokens: u.InputTokens, OutputTokens: u.OutputTokens, CacheReadTokens: u.CacheReadTokens,
		CacheWriteTokens: u.CacheWriteTokens, ReasoningTokens: u.ReasoningTokens, ModelCost: cost}
}

// A candidate is a model of a turn's chain, with the state that the turn keeps for it.
type candidate struct {
	pricedModel
	chosen  string        // name in the chain of the worker or organization; "" for a server model
	window  prompt.Window // narrower than in the price table after a refusal
	failure *model.Error  // of its calls for the step in progress, or nil
}
