package model

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/matryer/is"
)

// TestEffort checks how an effort and a temperature reach each provider, and what follows a refusal:
// the next request of the call, and the first one of the next call.
func TestEffort(t *testing.T) {
	t.Parallel()
	tools := []Tool{{Name: "f", InputSchema: json.RawMessage(`{"type":"object"}`)}}
	warm, cold := new(1.5), new(0.0)
	const onlyDefault = "Unsupported value: 'temperature' does not support 1.5 with this model. Only the default (1) value is supported."
	for name, tt := range map[string]struct {
		format   string
		req      Request
		refusals []string // messages of refusals
		wants    []string // in each request of the first call; "-" before a text that must be missing
		warnings string   // "" for none
	}{
		"chat":             {"openai", Request{Effort: "low", Temperature: cold}, nil, []string{`"reasoning_effort":"low","temperature":0,`}, ""},
		"chat, default":    {"openai", Request{}, nil, []string{`-temperature`}, ""},
		"chat, no default": {"openai", Request{}, nil, []string{`-reasoning_effort`}, ""},
		"chat, all refused": {"openai", Request{Effort: "max", Temperature: warm}, []string{onlyDefault,
			"Unsupported value: 'reasoning_effort' does not support 'xhigh' with this model.", "Unrecognized request argument supplied: reasoning_effort"},
			[]string{`"temperature":1.5`, `-temperature`, `"reasoning_effort":"high"`, `-reasoning_effort`},
			`temperature of the worker, so the model was asked without it; the server refuses the effort "max" of the worker, so the model was asked without it`},
		"chat, tools": {"openai", Request{Effort: "high", Tools: tools},
			[]string{"Function tools with reasoning_effort are not supported for gpt-6-sol in /v1/chat/completions."},
			[]string{`"reasoning_effort":"high"`, `"reasoning_effort":"none"`}, reasoningRefused},
		"chat, no effort": {"openai", Request{Effort: "high", Tools: tools}, []string{"extra fields not permitted: reasoning_effort"},
			[]string{`"reasoning_effort":"high"`, `-reasoning_effort`}, `asked without it`},
		"chat, a value": {"openai", Request{Effort: "max"}, []string{"reasoning_effort: xhigh is not supported with this model"},
			[]string{`"reasoning_effort":"xhigh"`, `"reasoning_effort":"high"`}, `asked with high`},
		"claude, a value": {"anthropic", Request{Effort: "max"}, []string{"output_config.effort: max is not supported"},
			[]string{`"effort":"max"`, `"effort":"high"`}, `asked with high`},
		"responses, a value": {"responses", Request{Effort: "max"}, []string{"reasoning.effort: xhigh is not supported with this model"},
			[]string{`"effort":"xhigh"`, `"effort":"high"`}, `asked with high`},
		"responses": {"responses", Request{Effort: "medium", Temperature: warm}, nil, []string{`"reasoning":{"effort":"medium","summary":"auto"},"temperature":1.5`}, ""},
		"responses, refused": {"responses", Request{Effort: "none", Temperature: cold}, []string{
			"Unsupported value: 'none' is not supported for 'reasoning.effort' with this model.", "Unsupported parameter: 'temperature' is not supported with this model."},
			[]string{`"effort":"none"`, `"effort":"minimal"`, `-temperature`}, `asked with minimal`},
		"responses, no reasoning": {"responses", Request{Effort: "high"}, []string{
			"Unsupported parameter: 'reasoning' is not supported with this model."},
			[]string{`"summary":"auto"`, `-"reasoning":`}, `asked without it`},
		"claude":            {"anthropic", Request{Effort: "low", Temperature: warm}, nil, []string{`"output_config":{"effort":"low"},"temperature":1,`}, ""},
		"claude, silent":    {"anthropic", Request{Effort: "none"}, nil, []string{`-"thinking"`}, ""},
		"claude, default":   {"anthropic", Request{}, nil, []string{`-output_config`}, ""},
		"claude, a schema":  {"anthropic", Request{Effort: "max", OutputSchema: json.RawMessage(simple)}, nil, []string{`"effort":"max"`}, ""},
		"claude, with both": {"anthropic", Request{Effort: "max", OutputSchema: json.RawMessage(simple)}, []string{"output_config.effort: 'max' is not supported by this model"}, []string{`"effort":"max"`, `"effort":"high"`}, `asked with high`},
		"claude, thinking": {"anthropic", Request{Temperature: cold}, []string{"`temperature` may only be set to 1 when thinking is enabled."},
			[]string{`"temperature":0`, `-temperature`}, `temperature of the worker`},
		"claude 4": {"anthropic-old", Request{Effort: "medium"}, nil, []string{`"thinking":{"type":"enabled","budget_tokens":8192}`}, ""},
		"claude 4, no room": {"anthropic-old", Request{Effort: "max", MaxTokens: 3000}, nil,
			[]string{`"budget_tokens":1500`}, ""},
		"claude 4, little room": {"anthropic-old", Request{Effort: "max", MaxTokens: 1500}, nil, []string{`-"thinking"`}, ""},
		"claude 3":              {"anthropic-old", Request{Effort: "high"}, []string{"thinking is not supported on this model"}, []string{`"budget_tokens":16384`, `-"thinking"`}, `cannot think`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			format := strings.TrimSuffix(tt.format, "-old")
			w := wires()[format]
			var list []http.HandlerFunc
			for _, message := range tt.refusals {
				list = append(list, refuses(400, message, ""))
			}
			p := newProvider(t, append(list, answers(200, w.kind, w.hello+w.end))...)
			m := w.at(t, p.URL, quick())
			if format != tt.format {
				m.(*claude).quirks.noThinking = true
			}
			tt.req.Messages = []Message{user("hi")}
			resp := answered(t, m, tt.req)
			is.Equal(len(resp.Warnings) > 0, tt.warnings != "")
			is.True(strings.Contains(strings.Join(resp.Warnings, "; "), tt.warnings))
			is.Equal(p.count(), len(tt.wants))
			for i, want := range tt.wants {
				missing := strings.HasPrefix(want, "-")
				is.Equal(strings.Contains(p.got(t, i).raw, strings.TrimPrefix(want, "-")), !missing)
			}
			again := answered(t, m, tt.req)
			is.Equal(p.count(), len(tt.wants)+1) // the refusals are known
			is.Equal(len(again.Warnings) > 0, tt.warnings == reasoningRefused)
		})
	}
}

func TestOllamaEffort(t *testing.T) {
	t.Parallel()
	listed := strings.TrimSuffix(show(40960, "", allAbilities...), "}") + `,"thinking":{"values":[false,"low","high","xhigh"],"default":"low"}}`
	for name, tt := range map[string]struct {
		shown, effort, want string
		warns               bool
	}{
		"default":          {show(40960, "", allAbilities...), "", `"think":true`, false},
		"none":             {show(40960, "", allAbilities...), "none", `"think":false`, false},
		"high":             {show(40960, "", allAbilities...), "high", `"think":true`, false},
		"a level":          {listed, "max", `"think":"xhigh"`, false},
		"no such level":    {listed, "medium", `"think":"low"`, false},
		"the lowest level": {listed, "none", `"think":"low"`, false},
		"gpt-oss":          {strings.ReplaceAll(show(40960, "", allAbilities...), "qwen3", "gptoss"), "max", `"think":"high"`, false},
		"cannot":           {show(40960, "", "completion", "tools"), "high", `"options":{`, true},
		"need not":         {show(40960, "", "completion", "tools"), "none", `"options":{`, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			p := newOllama(t, tt.shown, ndjson(lines("stop", `"content":"ok"`)))
			m := ollamaAt(t, p.URL, quick())
			req := Request{Messages: []Message{user("hi")}, Effort: tt.effort, Temperature: new(0.5)}
			is.Equal(len(answered(t, m, req).Warnings) > 0, tt.warns)
			is.True(strings.Contains(p.got(t, 0).raw, tt.want))
			is.True(strings.Contains(p.got(t, 0).raw, `"temperature":0.5`))
			is.Equal(len(answered(t, m, req).Warnings), 0) // warned once
		})
	}
}
