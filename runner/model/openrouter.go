package model

import (
	"math"
	"math/big"
	"regexp"
	"strconv"
	"strings"
)

// OpenRouter forwards requests to many providers. It offers the chat completions API, and
// reports the cost of each call. It sends all calls of a session to one provider, and forwards
// cache marks to models that support them.

// An openRouterUsage requests the cost of a call in the usage.
type openRouterUsage struct {
	Include bool `json:"include"`
}

// A cacheMark requests that the provider caches the conversation up to a text.
type cacheMark struct {
	Type string `json:"type"`
}

// route adds to a request the fields that only OpenRouter supports.
func (o *openAI) route(out *chatRequest, req *Request, q quirks) {
	if !q.noUsage {
		out.Usage = &openRouterUsage{Include: true}
	}
	// A session always uses the same provider, because only that provider has its cache.
	if !q.noSession {
		out.SessionID = cacheKey(req.Place)
	}
	if q.noCacheMarks || q.shape.plain { // marks need lists
		return
	}
	switch author, _, _ := strings.Cut(strings.TrimPrefix(o.model, "~"), "/"); author {
	case "anthropic", "qwen":
		markMessages(out.Messages, 3)
	case "google":
		// Only the last mark has an effect there, and each new one costs money. The implicit
		// cache covers the messages after the system prompt.
		markMessages(out.Messages, 0)
	}
}

// markMessages adds cache marks to the system prompt, and to the last few messages that are not
// from the model. The next call then finds the conversation in the cache. Providers accept at
// most four marks.
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

// bill sets the cost of the call in u, if the usage of the answer contains it.
func (c *chatUsage) bill(u *Usage) {
	cost, ok := nanoDollars(string(c.Cost))
	if !ok {
		return
	}
	if c.OwnAccount {
		// Then the cost is only OpenRouter's fee.
		upstream, _ := nanoDollars(string(c.CostDetails.Upstream))
		cost += min(upstream, math.MaxInt64-cost)
	}
	u.Cost, u.Billed = cost, true
}

// amountPattern matches a JSON number that is not negative.
var amountPattern = regexp.MustCompile(`^\d+(\.\d+)?([eE][+-]?\d+)?$`)

// Limits of an amount of money in a provider's response.
const (
	maxAmount   = 64 // bytes
	maxExponent = 30
)

// nanoDollars converts an amount in US$, a JSON number, to nano-dollars. It computes exactly,
// and rounds up. It returns false for negative amounts and for other texts.
func nanoDollars(amount string) (int64, bool) {
	if !amountPattern.MatchString(amount) || len(amount) > maxAmount {
		return 0, false
	}
	if i := strings.IndexAny(amount, "eE"); i >= 0 {
		// A large exponent would create a number with that many digits.
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
	return roundUp(r.Num(), r.Denom()), true
}
