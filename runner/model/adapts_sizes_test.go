package model

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"
)

// TestOutputIsLessened checks on every wire that a request for too many tokens is repeated with what the refusal names,
// in the words of each server, and that only the limit of the model is remembered.
func TestOutputIsLessened(t *testing.T) {
	t.Parallel()
	const asked = 20_000
	limit := map[string]string{"openai": "max_tokens", "responses": "max_output_tokens", "anthropic": "max_tokens", "ollama": "num_predict"}
	for name, tt := range map[string]struct {
		refusal string // NAME is the name of the limit
		most    float64
		window  int64 // that is named, 0 for a limit of the model
	}{
		"OpenAI":         {"NAME is too large: 20000. This model supports at most 2048 completion tokens, whereas you provided 20000.", 2048, 0},
		"OpenAI, new":    {"Invalid 'NAME': integer above maximum value. Expected a value <= 2048, but got 20000 instead.", 2048, 0},
		"Groq":           {"`NAME` must be less than or equal to `2048`, the maximum value for `NAME` is less than the `context_window` for this model", 2048, 0},
		"Groq, older":    {"NAME for `llama-3.1-8b-instant` must be less than or equal to 2048", 2048, 0},
		"DeepSeek":       {"Invalid NAME value, the valid range of NAME is [1, 2048]", 2048, 0},
		"DashScope":      {"<400> InternalError.Algo.InvalidParameter: Range of NAME should be [1, 2048]", 2048, 0},
		"MiniMax":        {"invalid params, NAME must be <= 2048", 2048, 0},
		"Ollama's cloud": {"NAME (20000) exceeds model's maximum output tokens (2048) for model m", 2048, 0},
		"Bedrock":        {"The maximum tokens you requested exceeds the model limit of 2048. Try again with a maximum tokens value that is lower than 2048.", 2048, 0},
		"Gemini":         {"Unable to submit request because it has a maxOutputTokens value of 20000 but the supported range is from 1 (inclusive) to 2049 (exclusive). Update the value and try again.", 2048, 0},
		"vLLM":           {"'NAME' is too large: 20000. This model's maximum context length is 8192 tokens and your request has 5000 input tokens (20000 > 8192 - 5000).", 3192, 8192},
		"vLLM, older":    {"This model's maximum context length is 8192 tokens. However, you requested 25000 tokens (5000 in the messages, 20000 in the completion). Please reduce the length of the messages or completion.", 3192, 8192},
		"TGI":            {"Input validation error: `inputs` tokens + `max_new_tokens` must be <= 8192. Given: 5000 `inputs` tokens and 20000 `max_new_tokens`", 3192, 8192},
		"OpenRouter":     {"This endpoint's maximum context length is 8192 tokens. However, you requested about 25000 tokens (5000 of text input, 20000 in the output).", 3192, 8192},
	} {
		for format, w := range wires() {
			t.Run(name+", "+format, func(t *testing.T) {
				t.Parallel()
				is := is.New(t)
				refusal := refuses(400, strings.ReplaceAll(tt.refusal, "NAME", limit[format]), "")
				if format == "ollama" {
					refusal = answers(400, "application/json", `{"error":`+string(rawJSON(strings.ReplaceAll(tt.refusal, "NAME", limit[format])))+`}`)
				}
				p := newOllama(t, show(40960, "", allAbilities...), refusal, answers(200, w.kind, w.hello+w.end))
				m := w.at(t, p.URL, quick())
				req := Request{MaxTokens: asked, Messages: []Message{user("hi")}}
				is.Equal(answered(t, m, req).Window, tt.window) // the runner narrows its window
				is.Equal(answered(t, m, req).Window, int64(0))
				is.Equal(p.count(), 3)
				for n, want := range []float64{asked, tt.most, map[bool]float64{true: asked, false: tt.most}[tt.window > 0]} {
					body := p.got(t, n).body
					if format == "ollama" {
						body = body["options"].(map[string]any)
					}
					is.Equal(body[limit[format]], want)
				}
			})
		}
	}
}

// TestOllamaLearnsSizes checks what Ollama's wire makes of refusals that name a window.
func TestOllamaLearnsSizes(t *testing.T) {
	t.Parallel()
	refused := func(status int, message string) http.HandlerFunc {
		return answers(status, "application/json", `{"error":`+string(rawJSON(message))+`}`)
	}
	fine := ndjson(lines("stop", `"content":"ok"`))
	options := func(t *testing.T, p *provider, n int) string { return jsonText(t, p.got(t, n).body["options"]) }
	for name, tt := range map[string]struct {
		status  int
		message string
		window  int64
	}{
		"a lower bound":    {400, "This model's maximum context length is 4096 tokens. However, you requested 2000 output tokens and your prompt contains at least 2097 input tokens, for a total of at least 4097 tokens.", 4096},
		"llama.cpp":        {400, `{"error":{"code":400,"message":"request (8889 tokens) exceeds the available context size (4096 tokens), try increasing it","type":"exceed_context_size_error","n_prompt_tokens":8889,"n_ctx":4096}}`, 4096},
		"llama.cpp, field": {500, `{"error":{"code":400,"message":"the request exceeds the available context size, try increasing it","type":"exceed_context_size_error","n_prompt_tokens":8889,"n_ctx":4096}}`, 4096},
		"a proxy":          {400, "the prompt is too long: 9000, model maximum context length: 4096", 4096},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			p := newOllama(t, show(40960, "", allAbilities...), refused(tt.status, tt.message), fine)
			m := ollamaAt(t, p.URL, quick())
			resp, err := m.Generate(t.Context(), Request{MaxTokens: 2000, Messages: []Message{user("hi")}}, nil)
			if name == "a lower bound" {
				is.NoErr(err)
				is.Equal(resp.Window, tt.window)
				is.Equal(options(t, p, 1), `{"num_ctx":32768,"num_predict":1000}`)
				return
			}
			e := asFailure(t, err)
			is.True(e.TooLong()) // the runner shortens the conversation
			is.Equal(e.Window, tt.window)
			is.Equal(p.count(), 1)
		})
	}
	for _, message := range []string{"num_ctx must be less than or equal to 8192", "num_ctx: 32768 > limit 8192", "num_ctx must be <= 8192",
		"the maximum num_ctx is 8192", "`num_ctx` may be at most 8192 for this model", "num_ctx=32768 is not allowed, max allowed value: 8192", "num_ctx (32768) exceeds the maximum of 8,192",
		"options.num_ctx: requested context size too large for model: num_ctx=32768 n_ctx_train=8192"} {
		t.Run(message, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			p := newOllama(t, show(40960, "", allAbilities...), refused(400, message), fine)
			m := ollamaAt(t, p.URL, quick())
			is.Equal(answered(t, m, Request{Messages: []Message{user("hi")}}).Window, int64(8192))
			answered(t, m, Request{Messages: []Message{user("hi")}})
			is.Equal(p.count(), 3)
			for _, n := range []int{1, 2} {
				is.Equal(options(t, p, n), `{"num_ctx":8192}`)
			}
		})
	}
	for _, message := range []string{"input exceeds num_ctx (32768) with 2048 tokens", "num_ctx 32768 exceeds your plan, see example.com/docs/2024",
		"num_ctx 32768 is above the limit of your plan, see example.com/docs/2024", "num_ctx failed (request 20260)",
		"the prompt is too long: it has 2048 tokens more than num_ctx, whose maximum is 4096"} {
		t.Run(message, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			p := newOllama(t, show(40960, "", allAbilities...), refused(400, message))
			m := ollamaAt(t, p.URL, quick())
			_, err := ask(t, m, Request{Messages: []Message{user("hi")}})
			is.True(err != nil)
			is.Equal(m.quirks.mostWindow, int64(0)) // no window is named
		})
	}
	t.Run("a window for an hour", func(t *testing.T) {
		t.Parallel()
		is := is.New(t)
		p := newOllama(t, show(40960, "", allAbilities...), refused(400, "num_ctx must be less than or equal to 8192"), fine)
		m := ollamaAt(t, p.URL, quick())
		answered(t, m, Request{Messages: []Message{user("hi")}})
		m.mostWindowAt = m.mostWindowAt.Add(-mostWindowFor - time.Second)
		answered(t, m, Request{Messages: []Message{user("hi")}})
		is.Equal(options(t, p, 1), `{"num_ctx":8192}`)
		is.Equal(options(t, p, 2), `{"num_ctx":32768}`) // the server may have been started with more
	})
	t.Run("a prompt that is never counted", func(t *testing.T) {
		t.Parallel()
		is := is.New(t)
		var all []http.HandlerFunc
		limits := []int{4096, 2048, 1024, 512, 256}
		for _, n := range limits {
			all = append(all, refused(400, fmt.Sprintf("This model's maximum context length is 8192 tokens. However, you requested %d output tokens and your prompt contains at least %d input tokens, for a total of at least 8193 tokens.", n, 8193-n)))
		}
		p := newOllama(t, show(40960, "", allAbilities...), all...)
		is.True(failure(t, ollamaAt(t, p.URL, quick()), Request{MaxTokens: 4096, Messages: []Message{user("hi")}}).TooLong())
		is.Equal(p.count(), len(limits))
	})
}

// TestOllamaFieldsAreLeftOut checks that each optional field is left out once a server refuses it, and stays out.
func TestOllamaFieldsAreLeftOut(t *testing.T) {
	t.Parallel()
	temperature := 0.5
	thought := callAnd("so")
	thought.Messages[1].Parts = append([]Part{{Type: PartReasoning, Text: "THOUGHT", Meta: sealMeta("ollama:m", struct{}{})}}, thought.Messages[1].Parts...)
	named := func(name string) []string {
		return []string{`json: unknown field "` + name + `"`, "Extra inputs are not permitted: " + name, "Unsupported parameter: '" + name + "'"}
	}
	hi := func(req Request) Request { req.Messages = []Message{user("hi")}; return req }
	for field, tt := range map[string]struct {
		req      Request
		refusals []string
	}{
		"think":       {hi(Request{}), append(named("think"), `"m" does not support thinking`, `think value "high" is not supported for this model`)},
		"thinking":    {thought, named("messages.1.thinking")},
		"temperature": {hi(Request{Temperature: &temperature}), append(named("temperature"), "temperature is not supported by this model")},
		"num_ctx":     {hi(Request{}), append(named("options.num_ctx"), "num_ctx cannot be set")},
		"num_predict": {hi(Request{MaxTokens: 9}), named("options.num_predict")},
		"keep_alive":  {hi(Request{}), named("keep_alive")},
		"truncate":    {hi(Request{}), named("truncate")},
		"shift":       {hi(Request{}), named("shift")},
		"format":      {hi(Request{OutputSchema: json.RawMessage(simple)}), append(named("format"), "structured output is not supported")},
		"images":      {seen(), append(named("messages.0.images"), "this model does not support image input")},
	} {
		for _, message := range tt.refusals {
			for _, status := range []int{400, 422} {
				t.Run(fmt.Sprint(message, status), func(t *testing.T) {
					t.Parallel()
					is := is.New(t)
					p := newOllama(t, show(40960, "", allAbilities...), answers(status, "application/json", `{"error":`+string(rawJSON(message))+`}`), ndjson(lines("stop", `"content":"ok"`)))
					m := ollamaAt(t, p.URL, quick(), "OLLAMA_KEEP_ALIVE", "30m")
					for range 2 {
						answered(t, m, tt.req)
					}
					is.Equal(p.count(), 3) // the second call omits the field
					for n, has := range []bool{true, false, false} {
						is.Equal(strings.Contains(p.got(t, n).raw, `"`+field+`":`), has)
					}
				})
			}
		}
	}
}

// TestResponsesFieldsAreLeftOut checks the same for the Responses API.
func TestResponsesFieldsAreLeftOut(t *testing.T) {
	t.Parallel()
	temperature := 0.5
	tools := []Tool{{Name: "f", InputSchema: json.RawMessage(`{"type":"object"}`)}}
	spoken := Request{Messages: []Message{user("hi"), {Role: RoleAssistant, Parts: []Part{{Type: PartText, Text: "a", Meta: sealMeta("openai:m", responsesMeta{Phase: "commentary"})}}}, user("more")}}
	hi := func(req Request) Request { req.Messages = []Message{user("hi")}; return req }
	for field, tt := range map[string]struct {
		at  string
		req Request
	}{
		"temperature":         {"", hi(Request{Temperature: &temperature})},
		"reasoning":           {"", hi(Request{Effort: "max"})},
		"include":             {"", hi(Request{})},
		"prompt_cache_key":    {"", hi(Request{Place: Place{Task: "t"}})},
		"parallel_tool_calls": {"", hi(Request{Tools: tools})},
		"tool_choice":         {"", hi(Request{Tools: tools, Final: true})},
		"store":               {"", hi(Request{})},
		"max_output_tokens":   {"", hi(Request{MaxTokens: 77})},
		"text":                {"", hi(Request{OutputSchema: json.RawMessage(simple)})},
		"phase":               {"input.1.", spoken},
	} {
		for dialect, refusal := range dialects() {
			t.Run(field+", "+dialect, func(t *testing.T) {
				t.Parallel()
				is := is.New(t)
				p := newProvider(t, refusal(tt.at, field), streams(responsesHello+sse(responsesDone(""))))
				m := responsesAt(t, p.URL, quick())
				for range 2 {
					answered(t, m, tt.req)
				}
				is.Equal(p.count(), 3)
				for n, has := range []bool{true, false, false} {
					got := p.got(t, n)
					is.Equal(got.body[field] != nil || tt.at != "" && strings.Contains(got.raw, `"`+field+`":`), has)
				}
			})
		}
	}
}
