package model

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A liteLLM is a model in LiteLLM's model_prices_and_context_window.json. Its costs are in US$ per token. Only
// these fields matter here; there are some hundred others.
type liteLLM struct {
	Provider string `json:"litellm_provider"`
	Mode     string `json:"mode"`

	Tiers []struct {
		Range []liteNumber `json:"range"` // input tokens
		liteRates
	} `json:"tiered_pricing"`
	liteRates

	MaxInput  liteNumber `json:"max_input_tokens"`
	MaxOutput liteNumber `json:"max_output_tokens"`
	MaxTokens liteNumber `json:"max_tokens"` // the older field for both

	above map[int64]map[string]liteNumber // costs by threshold in tokens and by field
}

type liteRates struct {
	Input      *liteNumber `json:"input_cost_per_token"`
	Output     *liteNumber `json:"output_cost_per_token"`
	CacheRead  *liteNumber `json:"cache_read_input_token_cost"`
	CacheWrite *liteNumber `json:"cache_creation_input_token_cost"`
}

// A liteNumber is a number or a text with a number. Others are 0: sample_spec has sentences there.
type liteNumber float64

// UnmarshalJSON accepts any value.
func (n *liteNumber) UnmarshalJSON(raw []byte) error {
	f, err := strconv.ParseFloat(strings.Trim(string(raw), `" `), 64)
	if err != nil || math.IsNaN(f) {
		f = 0
	}
	*n = liteNumber(f)
	return nil
}

// liteSample is the key of LiteLLM's description of the fields.
const liteSample = "sample_spec"

// liteAbove matches the costs of long prompts. The same names go on with the tiers of service, such as
// _priority and _flex, which this program does not ask for.
var liteAbove = regexp.MustCompile(`^((?:input|output)_cost_per_token|cache_(?:read|creation)_input_token_cost)` +
	`_above_(\d{1,6})k_tokens$`)

// liteMark matches fields that only LiteLLM's form has.
var liteMark = regexp.MustCompile(`^(litellm_provider|mode|tiered_pricing|max_(input_|output_)?tokens|` +
	`(input|output|cache)_.*cost.*)$`)

// asLiteLLM returns a line of LiteLLM's form, or nil for another form.
func asLiteLLM(key string, raw json.RawMessage) *liteLLM {
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil {
		return nil
	}
	is := key == liteSample
	l := &liteLLM{above: map[int64]map[string]liteNumber{}}
	for name, value := range fields {
		is = is || liteMark.MatchString(name)
		if m := liteAbove.FindStringSubmatch(name); m != nil {
			thousands, _ := strconv.ParseInt(m[2], 10, 64) // at most six digits
			var n liteNumber
			if json.Unmarshal(value, &n) == nil {
				l.threshold(thousands * 1000)[m[1]] = n
			}
		}
	}
	if !is {
		return nil
	}
	if json.Unmarshal(raw, l) != nil {
		l.Mode = "unreadable" // a field of another type: not a form that this program knows
	}
	return l
}

func (l *liteLLM) threshold(above int64) map[string]liteNumber {
	if l.above[above] == nil {
		l.above[above] = map[string]liteNumber{}
	}
	return l.above[above]
}

// price returns the line. name is "" for what is no price of a text model: pictures, seconds, pages, and models
// whose costs are missing or 0. LiteLLM writes 0 for prices that it does not know, and a model without a price
// must be called so.
func (l *liteLLM) price(key string) (name string, p Price, err error) {
	if key == liteSample || !slices.Contains([]string{"", "chat", "completion", "responses"}, l.Mode) {
		return "", p, nil
	}
	if l.Input == nil && len(l.Tiers) > 0 {
		l.Input = l.Tiers[0].Input
		l.Output = cmp.Or(l.Tiers[0].Output, l.Output)
		l.CacheRead = cmp.Or(l.Tiers[0].CacheRead, l.CacheRead)
		l.CacheWrite = cmp.Or(l.Tiers[0].CacheWrite, l.CacheWrite)
	}
	if l.Input == nil || l.Output == nil || *l.Input == 0 && *l.Output == 0 {
		return "", p, nil
	}
	p = Price{Known: true, Basis: BasisTable, ContextWindow: l.tokens(l.MaxInput), MaxOutput: l.tokens(l.MaxOutput)}
	if p.Rates, err = l.perMillion(liteRates{}); err != nil {
		return "", p, err
	}
	if p.Long, err = l.long(); err != nil {
		return "", p, err
	}
	p.sortLong()
	if p.ContextWindow > 0 {
		p.MaxOutput = min(p.MaxOutput, p.ContextWindow)
	}
	return liteName(l.Provider, key), p, nil
}

// maxTokensKnown limits the sizes of models.
const maxTokensKnown = 1 << 30

func (l *liteLLM) tokens(n liteNumber) int64 {
	n = cmp.Or(n, l.MaxTokens)
	if !(n > 0 && n <= maxTokensKnown) {
		return 0
	}
	return int64(n)
}

// long returns the rates of long prompts, of both forms. A missing cost is that of short prompts.
func (l *liteLLM) long() (list []LongRates, err error) {
	add := func(above int64, f liteRates) {
		rates, fault := l.perMillion(f)
		if err = cmp.Or(err, fault); fault == nil && above > 0 && above <= maxTokensKnown {
			list = append(list, LongRates{above, rates})
		}
	}
	for above, costs := range l.above {
		field := func(name string) *liteNumber {
			if n, ok := costs[name]; ok {
				return &n
			}
			return nil
		}
		add(above, liteRates{field("input_cost_per_token"), field("output_cost_per_token"),
			field("cache_read_input_token_cost"), field("cache_creation_input_token_cost")})
	}
	for _, tier := range l.Tiers {
		if len(tier.Range) > 0 && len(l.above) == 0 {
			add(l.tokensAt(tier.Range[0]), tier.liteRates)
		}
	}
	if len(list) > maxLong {
		return nil, fmt.Errorf("more than %d rates for long prompts", maxLong)
	}
	return list, err
}

// maxLong limits the rates for long prompts of a model.
const maxLong = 20

func (l *liteLLM) tokensAt(n liteNumber) int64 {
	return int64(max(0, min(n, maxTokensKnown)))
}

// perMillion converts costs per token to rates. Missing costs are those of short prompts.
func (l *liteLLM) perMillion(f liteRates) (Rates, error) {
	var fields rateFields
	for _, one := range [...]struct {
		into         **float64
		cost, normal *liteNumber
	}{{&fields.Input, f.Input, l.Input}, {&fields.Output, f.Output, l.Output},
		{&fields.CacheRead, f.CacheRead, l.CacheRead}, {&fields.CacheWrite, f.CacheWrite, l.CacheWrite}} {
		if cost := cmp.Or(one.cost, one.normal); cost != nil {
			dollars := float64(*cost) * 1e6
			*one.into = &dollars
		}
	}
	return fields.rates()
}

// liteName returns the key of this program's table for a key of LiteLLM's, which begins with its name of the
// provider or not: "groq/openai/gpt-oss-120b" and "gpt-5.6".
func liteName(provider, key string) string {
	host := map[string]string{
		"groq": "groq.com", "mistral": "mistral.ai", "deepseek": "deepseek.com", "together_ai": "together.xyz",
		"fireworks_ai": "fireworks.ai", "xai": "x.ai", "gemini": "generativelanguage.googleapis.com",
		"cerebras": "cerebras.ai", "moonshot": "moonshot.ai", "dashscope": "dashscope-intl.aliyuncs.com",
		"openrouter": "openrouter.ai", "perplexity": "perplexity.ai", "deepinfra": "deepinfra.com",
		"sambanova": "sambanova.ai", "nebius": "nebius.com", "novita": "novita.ai", "hyperbolic": "hyperbolic.xyz",
		"azure": "openai.azure.com", "azure_ai": "services.ai.azure.com", "nvidia_nim": "nvidia.com",
		"zai": "z.ai", "minimax": "minimax.io", "lambda_ai": "lambda.ai", "nscale": "nscale.com",
		"baseten": "baseten.co", "gradient_ai": "do-ai.run", "ovhcloud": "ovh.net", "cohere_chat": "cohere.com",
		"vercel_ai_gateway": "ai-gateway.vercel.sh", "text-completion-openai": "openai",
	}[provider]
	model := strings.TrimPrefix(key, provider+"/")
	switch {
	case provider == "":
		return key
	case host == "":
		return provider + ":" + model // such as openai, anthropic, or the name of a connected provider
	}
	return host + ":" + model
}
