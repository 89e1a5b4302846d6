package model

import (
	"math"
	"math/big"
)

// Rates are the prices of tokens, in millionths of a US$ per million tokens. The same
// number is the price in pico-dollars per token: 3.00 US$ per million is 3,000,000.
type Rates struct {
	Input      int64
	Output     int64
	CacheRead  int64 // input tokens found in the provider's cache
	CacheWrite int64 // input tokens added to the cache
}

// A Basis says where the price of a model comes from.
type Basis int

const (
	// BasisNone is that of a model without a price: its calls cost nothing, so caps do not apply to it.
	BasisNone     Basis = iota
	BasisTable          // the price table has a line for the model
	BasisDefault        // the operator's price for all models without a line
	BasisProvider       // the provider states the cost of each call
	BasisLocal          // free: the model is on this machine or in its private network
	BasisReplay         // free: recordings, or a model that cannot be asked
)

// Code returns the basis as a word that is stored.
func (b Basis) Code() string {
	return [...]string{BasisNone: "none", BasisTable: "table", BasisDefault: "default", BasisProvider: "provider",
		BasisLocal: "local", BasisReplay: "replay"}[b]
}

// BasisOf returns the basis with a code. Any other code is BasisNone.
func BasisOf(code string) Basis {
	for b := BasisNone; b <= BasisReplay; b++ {
		if b.Code() == code {
			return b
		}
	}
	return BasisNone
}

// String returns the basis in words for operators.
func (b Basis) String() string {
	switch b {
	case BasisTable:
		return "by the price table"
	case BasisDefault:
		return "by --default-price"
	case BasisProvider:
		return "stated by the provider with each call"
	case BasisLocal:
		return "free: its server is on this machine or in its private network; caps do not apply, also if it forwards to " +
			"paid models, unless --prices has them"
	case BasisReplay:
		return "free: nothing is sent"
	}
	return "no price: caps do not apply; --prices or --default-price sets one"
}

// A Price holds the prices and limits of a model. The zero Price is that of an unknown model:
// it is free, and its limits are unknown.
type Price struct {
	Known bool // false if neither the table nor the default price has rates for the model
	Basis Basis
	Rates
	Long []LongRates // ascending; some providers charge more for the whole of a call with a long prompt

	ContextWindow int64 // maximum tokens of input and output together, 0 if unknown
	MaxOutput     int64 // maximum tokens of output, 0 if unknown
}

// LongRates are the rates of a call with more than Above input tokens.
type LongRates struct {
	Above int64
	Rates
}

// rates returns the rates of a call with that many input tokens.
func (p Price) rates(input int64) Rates {
	rates := p.Rates
	for _, long := range p.Long {
		if input > long.Above {
			rates = long.Rates
		}
	}
	return rates
}

// Cost returns the cost of u in nano-dollars (1e-9 US$). It rounds up, so that no call with a
// price is free. Negative counts cost nothing. If the cost exceeds an int64, Cost returns the
// maximum.
func (p Price) Cost(u Usage) int64 {
	rates := p.rates(u.InputTokens)
	read := max(u.CacheReadTokens, 0)
	write := max(u.CacheWriteTokens, 0)
	fresh := max(u.InputTokens, 0) - min(read, max(u.InputTokens, 0))
	fresh -= min(write, fresh)

	var pico big.Int // wrong counts of a provider may overflow 64 bits
	for _, item := range [...][2]int64{
		{fresh, rates.Input},
		{read, rates.CacheRead},
		{write, rates.CacheWrite},
		{max(u.OutputTokens, 0), rates.Output},
	} {
		pico.Add(&pico, new(big.Int).Mul(big.NewInt(item[0]), big.NewInt(max(item[1], 0))))
	}
	return roundUp(&pico, big.NewInt(1000))
}

// roundUp divides two positive numbers and rounds up: if rounded down, a cost below one
// nano-dollar would be free. The result is at most the maximum int64.
func roundUp(number, by *big.Int) int64 {
	result, rest := new(big.Int).QuoRem(number, by, new(big.Int))
	if rest.Sign() > 0 {
		result.Add(result, big.NewInt(1))
	}
	if !result.IsInt64() {
		return math.MaxInt64
	}
	return result.Int64()
}
