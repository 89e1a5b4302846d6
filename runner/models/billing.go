package models

import (
	"sync"

	"journeyman/runner/model"
)

// billedRates holds the rates of models that the price table does not list. They are derived from
// the providers' bills. Without them, calls of such a model would reserve nothing, and parallel
// turns could exceed a cap together. The first call of a model reserves nothing, because its price
// is still unknown.
type billedRates struct {
	mu    sync.Mutex             // guards rates
	rates map[string]model.Rates // by the model's name
}

const (
	// outputWeight is the assumed price of an output token, in input tokens. Providers charge three
	// to eight times the price of an input token.
	outputWeight = 5

	// maxBilledTokens limits the token counts of a provider, so that record cannot overflow.
	maxBilledTokens = 1 << 40

	maxBilledModels = 1000 // users choose the names of models
)

// record derives the rates of m from the bill of one call. The highest rate is kept, because cached
// tokens cost less than others.
func (b *billedRates) record(m *Priced, u model.Usage) {
	tokens := min(max(u.InputTokens, 0), maxBilledTokens) + outputWeight*min(max(u.OutputTokens, 0), maxBilledTokens)
	if m.Price.Known || !u.Billed || u.Cost <= 0 || tokens == 0 {
		return
	}
	// Rates are in pico-dollars, and the bill is in nano-dollars. The limit of 1e15 and the
	// division in two parts prevent an overflow. The 1 at the end rounds up.
	input := min(u.Cost, 1e15)/tokens*1000 + min(u.Cost, 1e15)%tokens*1000/tokens + 1
	b.mu.Lock()
	defer b.mu.Unlock()
	input = max(input, b.rates[m.ID].Input)
	// Dropped rates are derived again from the next bill of each model.
	if b.rates == nil || len(b.rates) >= maxBilledModels {
		b.rates = map[string]model.Rates{}
	}
	b.rates[m.ID] = model.Rates{Input: input, Output: outputWeight * input, CacheRead: input, CacheWrite: input}
	m.Price.Rates = b.rates[m.ID]
}

// apply returns m with the rates derived from bills, unless the price table lists m.
func (b *billedRates) apply(m Priced) Priced {
	b.mu.Lock()
	defer b.mu.Unlock()
	if rates, ok := b.rates[m.ID]; ok && !m.Price.Known {
		m.Price.Rates = rates
	}
	return m
}
