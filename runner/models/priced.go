package models

import (
	"cmp"
	"strings"

	"journeyman/runner/model"
	"journeyman/runner/prompt"
	"journeyman/store"
)

// A Priced is a model with its price and, after describe, its stated capabilities.
type Priced struct {
	model.Model
	ID    string // unique, because two organizations may use the same name
	Kind  string // of the provider, for metrics; "" for the prefix of the name
	Price model.Price

	can         model.Capabilities
	isDescribed bool // the model's server has stated its abilities in can
	windowSet   bool // the operator has set the context window
}

func priced(m model.Model, prices *model.Prices) Priced {
	return Priced{Model: m, ID: m.Name(), Price: prices.Of(m)}
}

// Passes reports whether a failure of the model may disappear while the turn waits. Malformed answers are
// a defect of the server, so waiting does not help.
func (m Priced) Passes(me *model.Error) bool { return me.Retryable && !me.Malformed() }

// Alone reports whether a failure of the model concerns only the turn that asked. A model in this process
// fails because the turn's script says so. Other turns must not wait for that.
func (m Priced) Alone() bool { return model.Local(m.Model) }

// ProviderKind returns the kind of a model's provider for metrics, such as openai. It contains no
// names of models or connected providers, because users choose those.
func (m Priced) ProviderKind() string {
	kind, _, _ := strings.Cut(cmp.Or(m.Kind, m.Name()), ":")
	return kind
}

// defaultMaxOutput is the maximum output of one call, in tokens. It applies to models without an
// output limit in the price table.
const defaultMaxOutput = 32_000

// MaxOutput returns the maximum output of one call, in tokens.
func (m Priced) MaxOutput() int { return cmp.Or(int(m.Price.MaxOutput), defaultMaxOutput) }

// Usage returns the usage of a call, with its cost.
func (m Priced) Usage(u model.Usage) store.Usage {
	cost := m.Price.Cost(u)
	if u.Billed {
		cost = u.Cost // the provider's bill is more precise than the table
	}
	return store.Usage{InputTokens: u.InputTokens, OutputTokens: u.OutputTokens, CacheReadTokens: u.CacheReadTokens,
		CacheWriteTokens: u.CacheWriteTokens, ReasoningTokens: u.ReasoningTokens, ModelCost: cost}
}

// A Candidate is a model of a turn's chain, with the state that the turn keeps for it.
type Candidate struct {
	Priced
	chosen  string        // name in the chain of the worker or organization; "" for a server model
	Window  prompt.Window // narrower than in the price table after a refusal
	Failure *model.Error  // of its calls for the step in progress, or nil
}
