package model

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/matryer/is"
)

// routerAt opens a model of a server that is treated as OpenRouter.
func routerAt(t *testing.T, url, model string) *openAI {
	t.Helper()
	m, err := openOpenAI(model, Config{Getenv: environment("OPENAI_BASE_URL", url, "OPENAI_API_KEY", testKey, openAIVariable, "openrouter")}, quick())
	is.New(t).NoErr(err)
	o := m.(*openAI)
	t.Cleanup(o.client.CloseIdleConnections)
	return o
}

func TestOpenRouterCost(t *testing.T) {
	t.Parallel()
	used := func(more string) string {
		return sse(chunk(`{"content":"x"}`), finished("stop"), `{"choices":[],"usage":{"prompt_tokens":30,"completion_tokens":12`+more+`}}`, done)
	}
	for name, tt := range map[string]struct {
		stream string
		cost   int64
		billed bool
	}{
		"a cost":                {used(`,"cost":0.00014,"is_byok":false,"cost_details":{"upstream_inference_cost":0.00014}`), 140_000, true},
		"free":                  {used(`,"cost":0`), 0, true},
		"with an exponent":      {used(`,"cost":1.45e-06`), 1_450, true},
		"less than a nano":      {used(`,"cost":1e-12`), 1, true},
		"on the user's account": {used(`,"cost":0.0001,"is_byok":true,"cost_details":{"upstream_inference_cost":0.002}`), 2_100_000, true},
		"none":                  {used(``), 0, false},
		"null":                  {used(`,"cost":null`), 0, false},
		"below zero":            {used(`,"cost":-1`), 0, false},
		"no number":             {used(`,"cost":{"total":1}`), 0, false},
		"a hostile exponent":    {used(`,"cost":1e999999999`), 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			p := newProvider(t, streams(tt.stream))
			resp := answered(t, routerAt(t, p.URL, "some/model"), Request{Messages: []Message{user("hi")}})
			is.Equal(resp.Usage, Usage{InputTokens: 30, OutputTokens: 12, Cost: tt.cost, Billed: tt.billed})
			is.True(strings.Contains(p.got(t, 0).raw, `"usage":{"include":true}`)) // the request asks for the cost
			resp = answered(t, openAIAt(t, p.URL, quick()), Request{Messages: []Message{user("hi")}})
			is.True(!resp.Usage.Billed) // other servers use the field cost differently
			is.True(!strings.Contains(p.got(t, 1).raw, `"usage"`))
		})
	}
	t.Run("a failed try", func(t *testing.T) {
		t.Parallel()
		is := is.New(t)
		p := newProvider(t, streams(sse(chunk(`{"content":"x"}`), `{"error":{"code":502,"message":"gone"},"choices":[],"usage":{"prompt_tokens":30,"completion_tokens":1,"cost":0.25}}`)))
		resp, err := routerAt(t, p.URL, "some/model").Generate(t.Context(), Request{Messages: []Message{user("hi")}}, nil)
		is.Equal(asFailure(t, err).Code, "502")
		is.Equal(resp.Usage, Usage{InputTokens: 30, OutputTokens: 1, Cost: 250_000_000, Billed: true})
	})
}

func TestNanoDollars(t *testing.T) {
	t.Parallel()
	for amount, want := range map[string]int64{
		"0": 0, "1": 1e9, "0.1": 1e8, "0.123456789": 123456789, "0.1234567891": 123456790, "19.99": 19_990_000_000,
		"1E+2": 1e11, "5e-10": 1, "1e30": math.MaxInt64, "99999999999": math.MaxInt64,
		"": -1, "-0.1": -1, "1/3": -1, "0x10": -1, "Inf": -1, "1e31": -1, ".5": -1, "1_000": -1, strings.Repeat("1", 65): -1,
	} {
		got, ok := nanoDollars(amount)
		if !ok {
			got = -1
		}
		if got != want {
			t.Errorf("nanoDollars(%q) = %d, want %d", amount, got, want)
		}
	}
}

// TestOpenRouterCacheMarks checks that requests have cache marks where the models behind
// OpenRouter need them.
func TestOpenRouterCacheMarks(t *testing.T) {
	t.Parallel()
	const mark = `"cache_control":{"type":"ephemeral"}`
	for model, marks := range map[string]int{"anthropic/claude-sonnet-5-5": 4, "~anthropic/claude-latest": 4, "qwen/qwen4-max": 4, "google/gemini-3-pro": 1, "openai/gpt-6-sol": 0, "deepseek/v4": 0} {
		t.Run(model, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			p := newProvider(t, fine)
			req := callAnd("x")
			req.Instructions, req.Place = "I", Place{Worker: "w", Task: "t"}
			req.Messages = append(req.Messages, callAnd("y").Messages...)
			answered(t, routerAt(t, p.URL, model), req)
			raw := p.got(t, 0).raw
			is.Equal(strings.Count(raw, mark), marks)
			is.Equal(strings.Count(raw, `{"type":"text","text":"y",`+mark+`}`), marks/4) // the newest result
			is.Equal(strings.Contains(raw, `"role":"system","content":[{"type":"text","text":"I",`+mark), marks > 0)
			is.Equal(p.got(t, 0).body["session_id"], cacheKey(req.Place))
		})
	}
	t.Run("refused", func(t *testing.T) {
		t.Parallel()
		is := is.New(t)
		p := newProvider(t, refuses(400, "cache_control is not permitted here", ""), fine)
		answered(t, routerAt(t, p.URL, "anthropic/x"), Request{Instructions: "I", Messages: []Message{user("hi")}})
		is.True(!strings.Contains(p.got(t, 1).raw, "cache_control"))
	})
}

// TestReasoningIsNotLostSilently checks that the result mentions if a model was called without
// reasoning.
func TestReasoningIsNotLostSilently(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	p := newProvider(t, refuses(400, "Function tools with reasoning_effort are not supported for m in /v1/chat/completions.", "reasoning_effort"), fine)
	m := openAIAt(t, p.URL, quick())
	for range 2 {
		resp := answered(t, m, Request{Messages: []Message{user("hi")}, Tools: []Tool{{Name: "f", InputSchema: json.RawMessage(`{"type":"object"}`)}}})
		is.Equal(resp.Model, "m-1 (without reasoning)") // users see the model's name
		is.Equal(resp.Warnings, []string{reasoningRefused})
	}
}
