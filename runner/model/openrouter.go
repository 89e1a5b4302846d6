package model

import (
	"math"
	"math/big"
	"regexp"
	"strconv"
	"strings"
)

// OpenRouter stands between this program and many providers. It offers the chat completions
// API, and states what each call costs. It keeps the calls of a session at one provider, and
// passes cache marks on to models that use them.

// An openRouterUsage asks for the cost of a call in its usage.
type openRouterUsage struct {
	Include bool `json:"include"`
}

// A cacheMark asks the provider to cache the conversation up to a text.
type cacheMark struct {
	Type string `json:"type"`
}

// route adds to a request what only OpenRouter understands.
func (o *openAI) route(out *chatRequest, req *Request, q quirks) {
	out.Usage = &openRouterUsage{Include: true}
	// A session stays with one provider, which alone has its cache.
	out.SessionID = cacheKey(req.Place)
	if q.noCacheMarks {
		return
	}
	switch author, _, _ := strings.Cut(strings.TrimPrefix(o.model, "~"), "/"); author {
	case "anthropic", "qwen":
		markMessages(out.Messages, 3)
	case "google":
		// Only the last mark counts there, and each new one is paid for. What follows the
		// system prompt is found in the implicit cache.
		markMessages(out.Messages, 0)
	}
}

// markMessages puts cache marks on the system prompt, and on the last few messages that are
// not the model's own: the next call finds the conversation up to there. Providers take
// four marks in all.
func markMessages(messages []chatMessage, last int) {
	for i := len(messages) - 1; i >= 0; i-- {
		m := &messages[i]
		if m.Role == "assistant" || m.Role != "system" && last == 0 {
			continue
		}
		if m.Role != "system" {
			last--
		}
		list := contentList(m.Content)
		// A message that ends with a file gets no mark.
		if n := len(list) - 1; n >= 0 && list[n].Type == "text" {
			list[n].CacheControl = &cacheMark{"ephemeral"}
			m.Content = list
		}
	}
}

// bill sets the cost of the call in u, if the usage of the answer states it.
func (c *chatUsage) bill(u *Usage) {
	cost, ok := nanoDollars(string(c.Cost))
	if !ok {
		return
	}
	if c.OwnAccount {
		// The cost is then only OpenRouter's fee.
		upstream, _ := nanoDollars(string(c.CostDetails.Upstream))
		cost += min(upstream, math.MaxInt64-cost)
	}
	u.Cost, u.Billed = cost, true
}

// amountPattern matches a JSON number that is not below zero.
var amountPattern = regexp.MustCompile(`^\d+(\.\d+)?([eE][+-]?\d+)?$`)

// Limits of an amount of money as a provider writes it.
const (
	maxAmount   = 64 // bytes
	maxExponent = 30
)

// nanoDollars converts an amount in US$, a JSON number, to nano-dollars. It is exact, and
// rounds up. It reports false for amounts below zero and for other texts.
func nanoDollars(amount string) (int64, bool) {
	if !amountPattern.MatchString(amount) || len(amount) > maxAmount {
		return 0, false
	}
	if i := strings.IndexAny(amount, "eE"); i >= 0 {
		// A large exponent would make a number of that many digits.
		exp, err := strconv.Atoi(amount[i+1:])
		if err != nil || exp < -maxExponent || exp > maxExponent {
			return 0, false
		}
	}
	r, ok := new(big.Rat).SetString(amount)
	if !ok {
		return 0, false
	}
	r.Mul(r, big.NewRat(1e9, 1))
	nano, rest := new(big.Int).QuoRem(r.Num(), r.Denom(), new(big.Int))
	// Rounded down, a cost below one nano-dollar would be free.
	if rest.Sign() > 0 {
		nano.Add(nano, big.NewInt(1))
	}
	if !nano.IsInt64() {
		return math.MaxInt64, true
	}
	return nano.Int64(), true
}
