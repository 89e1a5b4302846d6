package model

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/store/ordertest"
)

// TestToolRefusals checks the words of servers that take no tools, and those about something else.
func TestToolRefusals(t *testing.T) {
	t.Parallel()
	for message, refuses := range map[string]bool{
		"registry.ollama.ai/library/gemma3 does not support tools":                                             true,
		"tools param requires --jinja flag":                                                                    true,
		"\"auto\" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set":             true,
		"No endpoints found that support tool use. To learn more about provider routing, visit the docs":       true,
		"`tool calling` is not supported with this model":                                                      true,
		"This model doesn't support tool use.":                                                                 true,
		"This model doesn't support tool use in streaming mode.":                                               true,
		"Function calling is not enabled for models/gemma-3-27b-it":                                            true,
		"Unsupported parameter: 'tools' is not supported with this model.":                                     true,
		"Unrecognized request argument supplied: tools":                                                        true,
		"Extra inputs are not permitted, field: 'tools'":                                                       true,
		"groq does not support parameters: ['tools'], for model=x":                                             true,
		"deepseek-reasoner does not support Function Calling":                                                  true,
		"The model `m` does not support tool calling.":                                                         true,
		"Tools are not supported for this model":                                                               true,
		"function calling is unsupported":                                                                      true,
		"Tool use is currently not available for this deployment":                                              true,
		"Function tools with reasoning_effort are not supported for gpt-6-sol in /v1/chat/completions.":        false,
		"Invalid schema for function 'f': keyword 'x' is not permitted":                                        false,
		"tools.0.function.strict: Extra inputs are not permitted":                                              false,
		"tools[0].function.parameters: 'oneOf' is not supported":                                               false,
		"the tool call id toolu_1 is unknown":                                                                  false,
		"image input is not supported":                                                                         false,
		"Not the same number of function calls and responses":                                                  false,
		"This model does not support assistant message prefill. The conversation must end with a user message": false,
	} {
		r := &apiError{status: 400, message: message}
		if r.refusesTools() != refuses {
			t.Errorf("%q: %v", message, !refuses)
		}
	}
}

// TestToolsAreNeverDropped checks on every wire that a call with tools fails when the server refuses them, with the
// remedy, and that a call without tools goes on.
func TestToolsAreNeverDropped(t *testing.T) {
	t.Parallel()
	refusal := answers(400, "application/json", `{"error":{"type":"invalid_request_error","message":"registry.ollama.ai/library/m does not support tools"}}`)
	tooled := Request{Messages: []Message{user("hi")}, Tools: []Tool{{Name: "f", InputSchema: json.RawMessage(`{"type":"object"}`)}}}
	for _, provider := range []string{"openai", "responses", "anthropic", "ollama", "ollama by its list"} {
		t.Run(provider, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			var m Model
			asked := func() int { return 0 }
			switch provider {
			case "ollama":
				p := newOllama(t, show(40960, "", allAbilities...), refusal, ndjson(lines("stop", `"content":"ok"`)))
				m, asked = ollamaAt(t, p.URL, quick()), p.count
			case "ollama by its list":
				p := newOllama(t, show(40960, "", "completion"), ndjson(lines("stop", `"content":"ok"`)))
				m = ollamaAt(t, p.URL, quick())
			default:
				p := newProvider(t, refusal)
				m, asked = wires()[provider].at(t, p.URL, quick()), p.count
			}
			_, err := m.Generate(t.Context(), tooled, func(Delta) {})
			e, ok := err.(*Error)
			is.True(ok && e.ToolsRefused() && !e.Retryable && !e.Gone())
			for _, words := range []string{m.Name(), "cannot call tools", "Choose a model that calls tools", "--jinja", "empty list of tools"} {
				is.True(strings.Contains(e.Message, words))
			}
			ordertest.AtMost(is, asked(), 1) // it was not asked again without tools
			if strings.HasPrefix(provider, "ollama") {
				is.Equal(answered(t, m, Request{Messages: []Message{user("hi")}}).Parts[0].Text, "ok")
			}
		})
	}
	is.New(t).Equal(KnownCode(CodeToolsRefused), CodeToolsRefused)
}

// TestRefusalsInStreams checks on every wire that an error as the first event of an answer is a refusal like that of an
// HTTP status: the request is adapted, or its tools are refused. A later error ends the call.
func TestRefusalsInStreams(t *testing.T) {
	t.Parallel()
	events := func(provider, message string) string {
		switch failed := `{"error":{"type":"invalid_request_error","message":"` + message + `"}}`; provider {
		case "anthropic":
			return claudeEvent(`{"type":"error",` + failed[1:])
		case "ollama":
			return failed + "\n"
		default:
			return sse(failed)
		}
	}
	for provider, w := range wires() {
		answer := func(body string) http.HandlerFunc { return answers(200, w.kind, body) }
		t.Run(provider, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			schema := Request{Messages: []Message{user("hi")}, OutputSchema: json.RawMessage(simple)}
			refused := answer(events(provider, "Invalid schema for the structured output"))
			p := newProvider(t, refused, answer(w.hello+w.end))
			answered(t, w.at(t, p.URL, quick()), schema)
			is.Equal(p.count(), 2)

			late := newProvider(t, answer(w.hello+events(provider, "Invalid schema for the structured output")))
			failure(t, w.at(t, late.URL, quick()), schema)
			is.Equal(late.count(), 1)

			tooled := Request{Messages: []Message{user("hi")}, Tools: []Tool{{Name: "f", InputSchema: json.RawMessage(`{"type":"object"}`)}}}
			for _, hello := range []string{"", w.hello} {
				p := newOllama(t, show(40960, "", allAbilities...), answer(hello+events(provider, "this model does not support tools")))
				is.True(failure(t, w.at(t, p.URL, quick()), tooled).ToolsRefused())
				is.Equal(p.count(), 1)
			}
		})
	}
}
