package runner

import (
	"sync"

	"journeyman/runner/model"
)

// billedRates holds rates of models that the price table does not list. They are learned from
// the bills of the providers. Without them nothing could be reserved for the calls of such a
// model, and parallel turns would overrun a cap together. The first call of a model is the
// exception: nobody knows its price yet, so nothing is reserved for it.
type billedRates struct {
	mu    sync.Mutex             // guards rates
	rates map[string]model.Rates // by the model's name
}

const (
	// outputWeight is the assumed price of an output token, in input tokens. It is between three
	// and eight in the price lists of the providers.
	outputWeight = 5

	// maxBilledTokens bounds counts that a provider claims, so that sums stay in range.
	maxBilledTokens = 1 << 40

	maxBilledModels = 1000 // users choose the names of models
)

// record derives the rates of m from the bill of one call. The most expensive call counts,
// because tokens from a provider's cache are cheaper than others.
func (b *billedRates) record(m *pricedModel, u model.Usage) {
	tokens := min(max(u.InputTokens, 0), maxBilledTokens) + outputWeight*min(max(u.OutputTokens, 0), maxBilledTokens)
	if m.price.Known || !u.Billed || u.Cost <= 0 || tokens == 0 {
		return
	}
	// Rates are in pico-dollars, and the bill is in nano-dollars. The bound of 1e15 and the
	// division in two parts keep the product in range. The 1 at the end rounds up.
	input := min(u.Cost, 1e15)/tokens*1000 + min(u.Cost, 1e15)%tokens*1000/tokens + 1
	b.mu.Lock()
	defer b.mu.Unlock()
	input = max(input, b.rates[m.id].Input)
	// Forgotten rates are learned again from the next bill of each model.
	if b.rates == nil || len(b.rates) >= maxBilledModels {
		b.rates = map[string]model.Rates{}
	}
	b.rates[m.id] = model.Rates{Input: input, Output: outputWeight * input, CacheRead: input, CacheWrite: input}
	m.price.Rates = b.rates[m.id]
}

// apply returns m with the rates that were learned for it, unless the price table lists it.
func (b *billedRates) apply(m pricedModel) pricedModel {
	b.mu.Lock()
	defer b.mu.Unlock()
	if rates, ok := b.rates[m.id]; ok && !m.price.Known {
		m.price.Rates = rates
	}
	return m
}
