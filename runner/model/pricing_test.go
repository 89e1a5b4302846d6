package model

import (
	"fmt"
	"strings"
	"testing"

	"github.com/matryer/is"
)

// openedAt opens a model of a connected provider.
func openedAt(t *testing.T, kind, address, name string) Model {
	t.Helper()
	m, err := Provider{Name: "mine", Kind: kind, BaseURL: address}.Open(name)
	is.New(t).NoErr(err)
	return m
}

// TestPriceOfHost checks that the same open model has the price of its host, and where a price comes from.
func TestPriceOfHost(t *testing.T) {
	t.Parallel()
	const own = `{"mine:house": {"input": 7, "output": 7}, "groq.com:openai/gpt-oss-20b": {"input": 9, "output": 9},
		"mine:qwen/*": {"input": 8, "output": 8}, "mine:zero": {"input": 0, "output": 0}}`
	for name, tt := range map[string]struct {
		kind, address, model string
		basis                Basis
		input                int64
	}{
		"Groq":                      {ProviderCompatible, "https://api.groq.com/openai/v1", "openai/gpt-oss-120b", BasisTable, 150_000},
		"Cerebras":                  {ProviderCompatible, "https://api.cerebras.ai/v1", "gpt-oss-120b", BasisTable, 350_000},
		"Fireworks":                 {ProviderCompatible, "https://api.fireworks.ai/inference/v1", "accounts/fireworks/models/gpt-oss-120b", BasisTable, 150_000},
		"Together's old domain":     {ProviderCompatible, "https://api.together.xyz/v1", "moonshotai/Kimi-K2.6", BasisTable, 1_200_000},
		"Together's new domain":     {ProviderCompatible, "https://api.together.ai/v1", "moonshotai/Kimi-K2.6", BasisTable, 1_200_000},
		"Moonshot":                  {ProviderCompatible, "https://api.moonshot.ai/v1", "kimi-k2.6", BasisTable, 950_000},
		"DeepSeek":                  {ProviderCompatible, "https://api.deepseek.com", "deepseek-flash", BasisTable, 300_000},
		"DeepSeek's other API":      {ProviderAnthropic, "https://api.deepseek.com/anthropic", "deepseek-v4-pro", BasisTable, 1_320_000},
		"Mistral":                   {ProviderCompatible, "https://api.mistral.ai/v1", "mistral-large-4", BasisTable, 680_000},
		"xAI":                       {ProviderCompatible, "https://us-east-1.api.x.ai/v1", "grok-4.7", BasisTable, 2_000_000},
		"Gemini's door":             {ProviderCompatible, "https://generativelanguage.googleapis.com/v1beta/openai/", "gemini-2.5-pro", BasisTable, 1_250_000},
		"DashScope":                 {ProviderCompatible, "https://dashscope-intl.aliyuncs.com/compatible-mode/v1", "qwen-flash", BasisTable, 50_000},
		"capitals":                  {ProviderCompatible, "https://API.Groq.com/openai/v1", "openai/gpt-oss-120b", BasisTable, 150_000},
		"a host that ends like it":  {ProviderCompatible, "https://notgroq.com/v1", "openai/gpt-oss-120b", BasisNone, 0},
		"a host that begins so":     {ProviderCompatible, "https://api.groq.com.evil.test/v1", "openai/gpt-oss-120b", BasisNone, 0},
		"another model there":       {ProviderCompatible, "https://api.groq.com/openai/v1", "new", BasisNone, 0},
		"a later model there":       {ProviderCompatible, "https://api.x.ai/v1", "grok-4.75", BasisNone, 0},
		"the operator's own name":   {ProviderCompatible, "https://api.groq.com/openai/v1", "house", BasisTable, 7_000_000},
		"the operator's host":       {ProviderCompatible, "https://api.groq.com/openai/v1", "openai/gpt-oss-20b", BasisTable, 9_000_000},
		"a host before a star":      {ProviderCompatible, "https://api.groq.com/openai/v1", "qwen/qwen3.8-27b", BasisTable, 800_000},
		"a star":                    {ProviderCompatible, "https://models.test/v1", "qwen/x", BasisTable, 8_000_000},
		"the operator's zero":       {ProviderCompatible, "https://models.test/v1", "zero", BasisTable, 0},
		"OpenAI":                    {ProviderOpenAI, "", "gpt-6-sol", BasisTable, 2_000_000},
		"OpenAI, unknown":           {ProviderOpenAI, "", "gpt-9", BasisNone, 0},
		"Anthropic":                 {ProviderAnthropic, "", "claude-sonnet-5-5", BasisTable, 2_000_000},
		"OpenRouter":                {ProviderOpenRouter, "", "openai/gpt-oss-120b", BasisProvider, 0},
		"this machine":              {ProviderCompatible, "http://127.0.0.1:8080/v1", "qwen3", BasisLocal, 0},
		"this machine, IPv6":        {ProviderCompatible, "http://[::1]:8080/v1", "qwen3", BasisLocal, 0},
		"this machine, mapped":      {ProviderCompatible, "http://[::ffff:127.0.0.1]:8080/v1", "qwen3", BasisLocal, 0},
		"this machine by name":      {ProviderCompatible, "http://localhost:8080/v1", "qwen3", BasisLocal, 0},
		"the private network":       {ProviderCompatible, "http://10.0.0.7:8000/v1", "qwen3", BasisLocal, 0},
		"the private network, IPv6": {ProviderCompatible, "http://[fd00::7]:8000/v1", "qwen3", BasisLocal, 0},
		"an overlay network":        {ProviderCompatible, "http://100.101.102.103:8000/v1", "qwen3", BasisLocal, 0},
		"a neighbour":               {ProviderCompatible, "http://vllm:8000/v1", "qwen3", BasisLocal, 0},
		"a container's host":        {ProviderCompatible, "http://host.docker.internal:8000/v1", "qwen3", BasisLocal, 0},
		"a name of the LAN":         {ProviderCompatible, "http://box.local:8000/v1", "qwen3", BasisLocal, 0},
		"a public address":          {ProviderCompatible, "http://8.8.8.8:8000/v1", "qwen3", BasisNone, 0},
		"a name that looks local":   {ProviderCompatible, "https://localhost.example.com/v1", "qwen3", BasisNone, 0},
		"a priced private server":   {ProviderCompatible, "http://10.0.0.7:8000/v1", "house", BasisTable, 7_000_000},
		"Ollama":                    {ProviderOllama, "", "qwen3:8b", BasisLocal, 0},
		"Ollama's cloud through it": {ProviderOllama, "", "gpt-oss:120b-cloud", BasisNone, 0},
		"Ollama's cloud":            {ProviderOllama, "https://ollama.com", "gpt-oss:120b", BasisNone, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			p, err := pricesOf(t, own)
			is.NoErr(err)
			got := p.Of(openedAt(t, tt.kind, tt.address, tt.model))
			is.Equal(got.Basis, tt.basis)
			is.Equal(got.Input, tt.input)
			is.Equal(got.Known, tt.basis == BasisTable)
		})
	}
}

// TestDefaultPrice checks which models have the operator's default price, and its form.
func TestDefaultPrice(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	builtin, err := pricesOf(t, "")
	is.NoErr(err)
	p, err := builtin.WithDefault(" 3 , 15.5")
	is.NoErr(err)
	got := p.Of(openedAt(t, ProviderCompatible, "https://models.test/v1", "m"))
	is.Equal(got, Price{Known: true, Basis: BasisDefault,
		Rates: Rates{Input: 3_000_000, Output: 15_500_000, CacheRead: 3_000_000, CacheWrite: 3_000_000}})
	is.Equal(p.Of(openedAt(t, ProviderOpenAI, "", "gpt-6-sol")).Basis, BasisTable)
	is.Equal(p.Of(openedAt(t, ProviderOllama, "", "qwen3")).Basis, BasisLocal) // free by rule
	routed := p.Of(openedAt(t, ProviderOpenRouter, "", "a/b"))
	is.Equal(routed.Basis, BasisProvider) // its bill counts; the default only reserves for the first call
	is.True(!routed.Known && routed.Output == 15_500_000)
	is.Equal(builtin.Of(openedAt(t, ProviderOpenAI, "", "gpt-9")).Basis, BasisNone) // WithDefault changes a copy
	for _, text := range []string{"3", "3,", ",15", "a,b", "-1,2", "1,2000000", "1,2,3", "NaN,1", "Inf,1"} {
		if _, err := builtin.WithDefault(text); err == nil {
			t.Errorf("%q is a default price", text)
		}
	}
	same, err := builtin.WithDefault("")
	is.NoErr(err)
	is.Equal(same, builtin)
}

// TestLiteLLM loads lines in the form of LiteLLM's model_prices_and_context_window.json.
func TestLiteLLM(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	p, err := pricesOf(t, `{
		"sample_spec": {"input_cost_per_token": 0.0, "litellm_provider": "one of the docs", "max_tokens": "LEGACY parameter", "mode": "one of: chat, embedding"},
		"gpt-9": {"cache_creation_input_token_cost": 6.25e-06, "cache_creation_input_token_cost_above_1hr": 1e-05, "cache_read_input_token_cost": 5e-07,
			"cache_read_input_token_cost_above_272k_tokens": 1e-06, "cache_read_input_token_cost_above_272k_tokens_priority": 2e-06,
			"input_cost_per_token": 5e-06, "input_cost_per_token_above_272k_tokens": 1e-05, "input_cost_per_token_flex": 2.5e-06, "input_cost_per_token_batches": 1e-6,
			"output_cost_per_token": 3e-05, "output_cost_per_token_above_272k_tokens": 4.5e-05, "litellm_provider": "openai", "max_input_tokens": 922000,
			"max_output_tokens": 128000, "max_tokens": 128000, "mode": "responses", "supports_vision": true, "supported_regions": ["global"], "search_context_cost_per_query": {"search_context_size_low": 0.01}},
		"groq/openai/new-120b": {"input_cost_per_token": 1.5e-07, "output_cost_per_token": 6e-07, "litellm_provider": "groq", "max_tokens": 32766, "mode": "chat"},
		"xai/grok-9": {"input_cost_per_token": "2e-06", "output_cost_per_token": "6e-06", "litellm_provider": "xai", "mode": "chat", "max_tokens": "unknown"},
		"dashscope/qwen9": {"litellm_provider": "dashscope", "mode": "chat", "tiered_pricing": [
			{"range": [0, 32000.0], "input_cost_per_token": 1.2e-06, "output_cost_per_token": 6e-06, "cache_read_input_token_cost": 2.4e-07},
			{"range": [32000.0, 128000.0], "input_cost_per_token": 2.4e-06, "output_cost_per_token": 1.2e-05},
			{"range": [128000.0, 252000.0], "input_cost_per_token": 3e-06}]},
		"gemini/gemini-9": {"input_cost_per_token": 1e-06, "output_cost_per_token": 2e-06, "input_cost_per_token_above_200k_tokens": 2e-06,
			"output_cost_per_token_above_200k_tokens": 4e-06, "input_cost_per_token_above_128k_tokens": 1.5e-06, "litellm_provider": "gemini", "mode": "chat"},
		"openai/gpt-8": {"input_cost_per_token": 1e-06, "output_cost_per_token": 2e-06, "litellm_provider": "openai", "mode": "chat"},
		"whisper": {"input_cost_per_second": 0.0001, "litellm_provider": "openai", "mode": "audio_transcription"},
		"pixels": {"input_cost_per_pixel": 1e-08, "output_cost_per_pixel": 0.0, "litellm_provider": "openai", "mode": "image_generation"},
		"embed": {"input_cost_per_token": 1e-07, "output_cost_per_token": 0.0, "litellm_provider": "openai", "mode": "embedding"},
		"per-second-chat": {"input_cost_per_second": 0.02, "output_cost_per_second": 0.02, "litellm_provider": "sagemaker", "mode": "chat"},
		"cerebras/unknown": {"input_cost_per_token": 0.0, "output_cost_per_token": 0.0, "litellm_provider": "cerebras", "mode": "chat"},
		"half": {"input_cost_per_token": 1e-06, "litellm_provider": "openai", "mode": "chat"},
		"mine:own-form": {"input": 1, "output": 2, "longPrompt": [{"above": 20, "input": 3, "output": 4}, {"above": 10, "input": 2, "output": 3}]}
	}`)
	is.NoErr(err)
	gpt := Price{Known: true, Basis: BasisTable, Rates: Rates{5_000_000, 30_000_000, 500_000, 6_250_000}, ContextWindow: 922_000,
		MaxOutput: 128_000, Long: []LongRates{{272_000, Rates{10_000_000, 45_000_000, 1_000_000, 6_250_000}}}}
	is.Equal(p.Of(openedAt(t, ProviderOpenAI, "", "gpt-9-2026-12-24")), gpt)
	at := func(address, name string) Price { return p.Of(openedAt(t, ProviderCompatible, address, name)) }
	is.Equal(at("https://api.groq.com/openai/v1", "openai/new-120b").Rates, Rates{150_000, 600_000, 150_000, 150_000})
	is.Equal(at("https://api.groq.com/openai/v1", "openai/new-120b").MaxOutput, int64(32_766))
	is.Equal(at("https://api.x.ai/v1", "grok-9").Rates, Rates{2_000_000, 6_000_000, 2_000_000, 2_000_000})
	qwen := at("https://dashscope-intl.aliyuncs.com/compatible-mode/v1", "qwen9")
	is.Equal(qwen.Cost(Usage{InputTokens: 32_000}), int64(32_000*1200))
	is.Equal(qwen.Cost(Usage{InputTokens: 32_001, OutputTokens: 10}), int64(32_001*2400+10*12_000))
	is.Equal(qwen.Cost(Usage{InputTokens: 200_000, OutputTokens: 10}), int64(200_000*3000+10*6000)) // its output is the model's
	gemini := at("https://generativelanguage.googleapis.com/v1beta/openai", "gemini-9")
	for tokens, rate := range map[int64]int64{128_000: 1000, 150_000: 1500, 200_000: 1500, 200_001: 2000} {
		is.Equal(gemini.Cost(Usage{InputTokens: tokens}), tokens*rate)
	}
	is.Equal(p.Lookup("openai:gpt-8").Output, int64(2_000_000))
	is.Equal(p.Lookup("mine:own-form").Long[0].Above, int64(10)) // in order
	for _, name := range []string{"openai:whisper", "openai:pixels", "openai:embed", "sagemaker:per-second-chat", "openai:half",
		"cerebras.ai:unknown", "sample_spec"} {
		is.Equal(p.Lookup(name), Price{}) // no price, so it is called so
	}
	is.Equal(p.Lookup("openai:gpt-6-sol").Input, int64(2_000_000)) // the built-in lines stay
}

// TestHostilePrices checks that no file of prices takes long or fails without a reason.
func TestHostilePrices(t *testing.T) {
	t.Parallel()
	lines := func(n int, line string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `,"k%d": %s`, i, line)
		}
		return "{" + b.String()[1:] + "}"
	}
	for name, tt := range map[string]struct{ text, says string }{
		"too many":  {lines(maxPriceLines+1, `1`), "more than 50000 models"},
		"faults":    {lines(1000, `{"input": -1, "output": 1}`), "and 980 more faults"},
		"deep":      {`{"m": {"litellm_provider": ` + strings.Repeat("[", 20_000), "not a JSON object"},
		"more long": {`{"m": {"mode": "chat", "input_cost_per_token": 1e-6, "output_cost_per_token": 1e-6, "tiered_pricing": [` + strings.Repeat(`{"range": [1, 2]},`, 30) + `{"range": [3]}]}}`, "more than 20 rates"},
		"no fields": {`{"m": {"litellm_provider": 7, "mode": {}}, "n": {"input_cost_per_token": [], "mode": "chat"}}`, ""},
		"many":      {lines(20_000, `{"input_cost_per_token": 1e-6, "output_cost_per_token": 1e-6, "mode": "chat"}`), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, err := pricesOf(t, tt.text)
			if tt.says == "" {
				is.New(t).NoErr(err)
				is.New(t).Equal(p.Lookup("k19999").Known, name == "many")
			} else if err == nil || !strings.Contains(err.Error(), tt.says) || len(err.Error()) > 5000 {
				t.Errorf("error %.300v, want %q", err, tt.says)
			}
		})
	}
}
