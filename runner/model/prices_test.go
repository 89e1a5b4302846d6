package model

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/store/ordertest"
)

// pricesOf loads the table with the given text as override.
func pricesOf(t *testing.T, override string) (*Prices, error) {
	t.Helper()
	name := ""
	if override != "" {
		name = filepath.Join(t.TempDir(), "prices.json")
		is.New(t).NoErr(os.WriteFile(name, []byte(override), 0o600))
	}
	return LoadPrices(name)
}

func TestLookup(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	p, err := pricesOf(t, `{
		"openai:local-*": {"input": 0, "output": 0},
		"openai:*":       {"input": 7, "output": 7},
		"openai:gpt-5-mini": {"input": 0.3, "output": 2.5, "cacheRead": 0.03, "contextWindow": 1000, "maxOutput": 10},
		"star*": {"input": 1, "output": 1}, "star": {"input": 2, "output": 2}
	}`)
	is.NoErr(err)
	for name, input := range map[string]int64{
		"offline":                              500_000,
		"openai:gpt-5":                         1_250_000,
		"openai:gpt-5-2025-08-07":              1_250_000,
		"openai:gpt-5-mini":                    300_000, // overridden
		"openai:gpt-5-mini-2025-08-07":         300_000,
		"openai:gpt-5.9":                       7_000_000, // not a version of gpt-5
		"openai:gpt-50":                        7_000_000,
		"openai:local-llama":                   0,
		"anthropic:claude-opus-4-5@20251101":   5_000_000,
		"anthropic:claude-opus-4-1-20250805":   15_000_000,
		"anthropic:claude-haiku-4-5":           1_000_000,
		"star":                                 2_000_000, // the exact key has priority over the open one
		"starling":                             1_000_000,
		"anthropic:claude-sonnet-5-5-20260901": 2_000_000,
	} {
		got := p.Lookup(name)
		is.True(got.Known)
		if got.Input != input {
			t.Errorf("%s: input %d, want %d", name, got.Input, input)
		}
	}
	is.Equal(p.Lookup("mistral:large"), Price{}) // unknown
	is.Equal(p.Lookup(""), Price{})
	mini := p.Lookup("openai:gpt-5-mini")
	is.Equal(mini.CacheRead, int64(30_000))
	is.Equal(mini.CacheWrite, int64(300_000)) // the same as input
	is.Equal(mini.ContextWindow, int64(1000))
	is.Equal(mini.MaxOutput, int64(10))
}

// TestBuiltinPrices checks rules for every line of the built-in table. Lines of hosts may lack the sizes, which
// the servers state.
func TestBuiltinPrices(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	p, err := pricesOf(t, "")
	is.NoErr(err)
	ordertest.Above(is, len(p.lines), 90) // prices are missing
	for name, line := range p.lines {
		x := line.price
		provider, _, _ := strings.Cut(name, ":")
		sized := strings.Contains(provider, ".") || x.ContextWindow >= x.MaxOutput && x.MaxOutput > 0
		ok := x.Known && x.Basis == BasisTable && !line.own && x.Input > 0 && x.Output >= x.Input &&
			x.CacheRead > 0 && x.CacheRead <= x.Input && x.CacheWrite >= x.Input && sized
		before := LongRates{0, x.Rates}
		for _, long := range x.Long {
			ok = ok && long.Above > before.Above && long.Input > before.Input && long.Output > before.Output &&
				long.CacheRead > before.CacheRead && long.CacheWrite > before.CacheWrite
			before = long
		}
		if !ok {
			t.Errorf("%s: %+v", name, x)
		}
	}
}

func TestCost(t *testing.T) {
	t.Parallel()
	price := Price{Known: true, Rates: Rates{Input: 3_000_000, Output: 15_000_000, CacheRead: 300_000, CacheWrite: 3_750_000}}
	long := price
	long.Long = []LongRates{{1000, Rates{Input: 6_000_000, Output: 30_000_000}}}
	for name, tt := range map[string]struct {
		price Price
		usage Usage
		nano  int64
	}{
		"a million of each":     {price, Usage{InputTokens: 1_000_000, OutputTokens: 1_000_000}, 18_000_000_000},
		"cached apart":          {price, Usage{InputTokens: 1000, CacheReadTokens: 600, CacheWriteTokens: 100}, 300*3000 + 600*300 + 100*3750},
		"reasoning is output":   {price, Usage{OutputTokens: 10, ReasoningTokens: 8}, 150_000},
		"nothing":               {price, Usage{}, 0},
		"no price":              {Price{}, Usage{InputTokens: 1_000_000, OutputTokens: 1}, 0},
		"rounded up":            {Price{Rates: Rates{Input: 1}}, Usage{InputTokens: 1}, 1},
		"rounded up once":       {Price{Rates: Rates{Input: 500, Output: 500}}, Usage{InputTokens: 1, OutputTokens: 1}, 1},
		"just over":             {Price{Rates: Rates{Input: 1001}}, Usage{InputTokens: 1}, 2},
		"negative counts":       {price, Usage{InputTokens: -5, OutputTokens: -5, CacheReadTokens: -5, CacheWriteTokens: -1}, 0},
		"more cached than sent": {price, Usage{InputTokens: 10, CacheReadTokens: 20}, 20 * 300},
		"beyond int64":          {price, Usage{InputTokens: math.MaxInt64, OutputTokens: math.MaxInt64}, math.MaxInt64},
		"at the long price":     {long, Usage{InputTokens: 1001, OutputTokens: 1}, 1001*6000 + 30000},
		"not yet long":          {long, Usage{InputTokens: 1000, OutputTokens: 1}, 1000*3000 + 15000},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is.New(t).Equal(tt.price.Cost(tt.usage), tt.nano)
		})
	}
}

func TestPriceFileFaults(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ text, says string }{
		"not JSON":        {`{"a"`, "not a JSON object of prices by model"},
		"a list":          {`[]`, "not a JSON object of prices by model"},
		"missing":         {`{"m": {"input": 1}}`, `model "m": input and output are needed`},
		"null":            {`{"m": null}`, `model "m": input and output are needed`},
		"unknown field":   {`{"m": {"input": 1, "output": 1, "cached": 2}}`, `model "m": json: unknown field "cached"`},
		"text":            {`{"m": {"input": "1", "output": 1}}`, `model "m": json: cannot unmarshal string`},
		"negative":        {`{"m": {"input": -1, "output": 1}}`, `model "m": a price is 0 to 1000000 US$ per million tokens, not -1`},
		"negative window": {`{"m": {"input": 1, "output": 1, "contextWindow": -1}}`, `model "m": contextWindow and maxOutput must not be negative`},
		"star inside":     {`{"a*b": {"input": 1, "output": 1}}`, `model "a*b": a key is a model's name`},
		"no name":         {`{"": {"input": 1, "output": 1}}`, `model "": a key is a model's name`},
		"long without":    {`{"m": {"input": 1, "output": 1, "longPrompt": {"input": 2, "output": 2}}}`, `model "m": longPrompt: above must be greater than 0`},
		"long half":       {`{"m": {"input": 1, "output": 1, "longPrompt": {"above": 5, "input": 2}}}`, `model "m": longPrompt: input and output are needed`},
		"every fault":     {`{"b": {}, "a": {}}`, "model \"a\": input and output are needed, in US$ per million tokens\nmodel \"b\""},
		"too large":       {strings.Repeat(" ", maxPriceFile+1), "is larger than 16777216 bytes"},
		"long no number":  {`{"m": {"input": 1, "output": 1, "longPrompt": [{"above": 5, "input": 2, "output": 2}, {"above": -1, "input": 2, "output": 2}]}}`, `model "m": longPrompt: above must be greater than 0`},
		"long unknown":    {`{"m": {"input": 1, "output": 1, "longPrompt": {"above": 5, "input": 2, "outputs": 2}}}`, `model "m": json: unknown field "outputs"`},
		"long key":        {`{"` + strings.Repeat("m", maxPriceName+1) + `": {"input": 1, "output": 1}}`, `a key has at most 300 bytes`},
		"LiteLLM, less":   {`{"m": {"litellm_provider": "x", "input_cost_per_token": -1, "output_cost_per_token": 1}}`, `model "m": a price is 0 to 1000000`},
		"LiteLLM, more":   {`{"m": {"litellm_provider": "x", "input_cost_per_token": 1, "output_cost_per_token": 1e300}}`, `model "m": a price is 0 to 1000000`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := pricesOf(t, tt.text)
			if err == nil || !strings.Contains(err.Error(), tt.says) || !strings.Contains(err.Error(), "prices.json") {
				t.Errorf("error %v, want %q and the file's name", err, tt.says)
			}
		})
	}
	_, err := LoadPrices(filepath.Join(t.TempDir(), "absent.json"))
	is.New(t).True(err != nil && strings.Contains(err.Error(), "absent.json"))
}

func FuzzPriceFile(f *testing.F) {
	f.Add([]byte(`{"m": {"input": 1e300, "output": 1}, "x*": {"input": 0.00000001, "output": 2, "longPrompt": {"above": 1, "input": 1, "output": 1}}}`))
	f.Add([]byte(`{"sample_spec": {}, "groq/m": {"litellm_provider": "groq", "mode": "chat", "input_cost_per_token": 1e-6, "output_cost_per_token": "2e-6", "input_cost_per_token_above_200k_tokens": 1, "max_tokens": 1e99}}`))
	f.Add([]byte(`{"q": {"tiered_pricing": [{"range": [0, 1e3], "input_cost_per_token": 1e-6, "output_cost_per_token": 1e-6}, {"range": [1e3]}]}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		table, err := parsePrices(raw)
		if err != nil {
			return
		}
		for key, price := range table {
			if price.Cost(Usage{InputTokens: math.MaxInt64, OutputTokens: 1}) < 0 {
				t.Fatalf("%q costs less than nothing", key)
			}
		}
	})
}

// TestLatePrices checks figures of the built-in table that providers changed late in 2026: OpenAI charges cache
// writes at 1.25 times the input since gpt-5.6, and twice the input beyond 272,000 tokens.
func TestLatePrices(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	p, err := pricesOf(t, "")
	is.NoErr(err)
	for name, want := range map[string]Rates{
		"openai:gpt-6.2-astra":            {8_000_000, 40_000_000, 400_000, 10_000_000},
		"openai:gpt-6.2-sol":              {2_000_000, 10_000_000, 100_000, 2_500_000},
		"openai:gpt-6.1-terra":            {1_000_000, 5_000_000, 50_000, 1_250_000},
		"openai:gpt-5.6":                  {5_000_000, 30_000_000, 500_000, 6_250_000}, // an alias of gpt-5.6-sol
		"openai:gpt-5.6-sol":              {5_000_000, 30_000_000, 500_000, 6_250_000},
		"openai:gpt-5.6-terra-2026-07-09": {2_000_000, 12_000_000, 200_000, 2_500_000},
		"openai:gpt-5.6-luna":             {200_000, 1_200_000, 20_000, 250_000},
		"openai:gpt-5.3-codex":            {1_750_000, 14_000_000, 175_000, 1_750_000},
	} {
		got := p.Lookup(name)
		is.True(got.Known)
		if got.Rates != want {
			t.Errorf("%s: %+v, want %+v", name, got.Rates, want)
		}
		long := Rates{2 * want.Input, want.Output * 3 / 2, 2 * want.CacheRead, 2 * want.CacheWrite}
		if flat := strings.HasPrefix(name, "openai:gpt-5.3"); !flat && (len(got.Long) != 1 || got.Long[0] != LongRates{272_000, long}) {
			t.Errorf("%s: %+v, want %+v", name, got.Long, long)
		}
	}
	is.Equal(p.Lookup("openai:gpt-5.6-luna").ContextWindow, int64(1_050_000))
	is.Equal(p.Lookup("anthropic:claude-haiku-5-5").MaxOutput, int64(128_000))
}
