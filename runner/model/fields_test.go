package model

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/matryer/is"
)

// TestOpenAIFieldsAreLeftOut checks that each optional field is left out once a server refuses it by its name, in the
// words of each server, and that everything else stays.
func TestOpenAIFieldsAreLeftOut(t *testing.T) {
	t.Parallel()
	temperature := 0.5
	tool := []Tool{{Name: "f", InputSchema: json.RawMessage(`{"type":"object","properties":{"temperature":{"type":"integer"}}}`)}}
	thought := func(field string) Request {
		meta := chatMeta{Field: field, Details: json.RawMessage(`[{"type":"reasoning.text","text":"Hm"}]`)}
		req := callAnd("so")
		req.Messages[1].Parts = append([]Part{{Type: PartReasoning, Text: "THOUGHT", Meta: sealMeta("openai:m", meta)}}, req.Messages[1].Parts...)
		return req
	}
	for field, tt := range map[string]struct {
		at  string
		req Request
	}{
		"reasoning_content": {"messages.1.assistant.", thought("reasoning_content")},
		"reasoning":         {"messages.1.assistant.", thought("reasoning")},
		"reasoning_details": {"messages.1.assistant.", thought("reasoning_content")},
		"temperature":       {"", Request{Temperature: &temperature, Tools: tool, Effort: "low"}},
		"reasoning_effort":  {"", Request{Effort: "max", Tools: tool, Temperature: &temperature}},
		"stream_options":    {"", Request{Tools: tool}},
		"max_tokens":        {"", Request{MaxTokens: 77, Tools: tool}},
		"response_format":   {"", Request{OutputSchema: json.RawMessage(simple), Tools: tool}},
		"tool_choice":       {"", Request{Final: true, Tools: tool}},
	} {
		for dialect, refusal := range dialects() {
			t.Run(field+", "+dialect, func(t *testing.T) {
				t.Parallel()
				is := is.New(t)
				p := newProvider(t, refusal(tt.at, field), fine)
				m := openAIAt(t, p.URL, quick())
				m.inspected.Do(func() {})
				req := tt.req
				if req.Messages == nil {
					req.Messages = []Message{user("hi")}
				}
				for range 2 {
					answered(t, m, req)
				}
				is.Equal(p.count(), 3) // it was repeated once, and remembered
				has := func(a asked) bool {
					return a.body[field] != nil || tt.at != "" && strings.Contains(a.raw, `"`+field+`":`)
				}
				before := p.got(t, 0)
				is.True(has(before))
				for _, n := range []int{1, 2} {
					after := p.got(t, n)
					is.True(!has(after))
					is.True(!strings.Contains(after.raw, "THOUGHT"))
					for name, value := range before.body {
						if name != field && name != "messages" && !(field == "tool_choice" && name == "tools") {
							is.Equal(jsonText(t, after.body[name]), jsonText(t, value))
						}
					}
				}
			})
		}
	}
}

// TestOpenAIThinkingIsKept checks refusals that mention thinking, but do not refuse it in the history.
func TestOpenAIThinkingIsKept(t *testing.T) {
	t.Parallel()
	for _, message := range []string{
		"The `reasoning_content` in the thinking mode must be passed back to the API.",
		"Missing `reasoning_content` field in the assistant message at message index 2",
		"Unsupported value: 'reasoning_effort' does not support 'low' with this model. Supported values are: 'high'.",
		"thinking is enabled but reasoning_content is missing in assistant tool call message at index 2",
		"Invalid request: 'messages' at index 2: reasoning_content must be a string",
	} {
		is := is.New(t)
		r := refusalOf(400, saying(message))
		q, _ := openAIAt(t, "http://127.0.0.1:1", quick()).adapt(quirks{}, r, &Request{})
		is.True(!q.noThoughts)
	}
}

// TestRefusedFields checks what is read of refusals that name a field, and of those that only look so.
func TestRefusedFields(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"property 'store' is unsupported, did you mean 'stop'?":                                                {"store"},
		`Unknown name "temperature" at 'tools[0].function.parameters.properties[0].value': Cannot find field.`: nil,
		"'tools.0.function' : property 'temperature' is unsupported":                                           nil,
		"messages.65.content.1.tool_use.text: Extra inputs are not permitted":                                  {"text"},
		"Function calling with a response mime type: 'application/json' is unsupported":                        nil,
		"messages[2].reasoning: reasoning is not supported with this model":                                    {"reasoning"},
		"reasoning_effort: xhigh is not supported with this model":                                             nil,
		"output_config.effort: max is not supported":                                                           nil,
		"effort: the values max and xhigh are not allowed":                                                     nil,
		"reasoning_effort: reasoning effort is not supported with this model":                                  {"reasoning_effort"},
		"reasoning_effort: this parameter is not supported":                                                    {"reasoning_effort"},
		"Unsupported value: 'temperature' does not support 0.5 with this model":                                nil,
		"Function tools with reasoning_effort are not supported for gpt-6-sol in /v1/chat/completions.":        nil,
		"Malformed input request: #: extraneous key [stop] is not permitted, please reformat":                  {"stop"},
		"Model grok-4 does not support parameter reasoningEffort.":                                             {"reasoningeffort"},
		"messages.2.assistant.reasoning_content: property 'messages.2.assistant.reasoning_content' is unsupported\nmessages.4.assistant.reasoning_content: property 'messages.4.assistant.reasoning_content' is unsupported": {"reasoning_content"},
		"Extra inputs are not permitted": nil,
		"":                               nil,
	} {
		got := refusalOf(400, saying(text)).refusedFields()
		if !slices.Equal(got, want) {
			t.Errorf("%q: %v", text, got)
		}
	}
	list := `{"detail":[{"type":"extra_forbidden","loc":["body","messages",1,"assistant","reasoning"],"msg":"Extra inputs are not permitted"},{"type":"missing","loc":["body","usage"],"msg":"Field required"},{"type":"extra_forbidden","loc":["body","n"],"msg":"Extra inputs are not permitted"}]}`
	is.New(t).Equal(refusalOf(422, list).refusedFields(), []string{"reasoning", "n"})
}

// TestOpenAIToolsRefusedByName checks that a server that does not know tools is not asked without them.
func TestOpenAIToolsRefusedByName(t *testing.T) {
	t.Parallel()
	for dialect, refusal := range dialects() {
		t.Run(dialect, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			p := newProvider(t, refusal("", "tools"))
			tools := []Tool{{Name: "f", InputSchema: json.RawMessage(`{"type":"object"}`)}}
			e := failure(t, openAIAt(t, p.URL, quick()), Request{Messages: []Message{user("hi")}, Tools: tools})
			is.True(e.ToolsRefused())
			for n := range p.count() {
				is.True(p.got(t, n).body["tools"] != nil)
			}
		})
	}
}

// TestOpenAIFormatBesideTools checks servers that take a format of the answer or tools, but not both: the tools stay,
// and later requests without tools have the format.
func TestOpenAIFormatBesideTools(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"Gemini":         `[{"error":{"code":400,"message":"Function calling with a response mime type: 'application/json' is unsupported","status":"INVALID_ARGUMENT"}}]`,
		"Gemini, tools":  `{"error":{"code":400,"message":"Tool use with a response mime type: 'application/json' is unsupported","status":"INVALID_ARGUMENT"}}`,
		"Gemini, forced": saying("Forced function calling (ANY mode) with a response mime type: 'application/json' is unsupported"),
		"Vertex":         saying("For controlled generation of only function calls (forced function calling), please set 'tool_config.function_calling_config.mode' field to ANY instead of populating 'response_mime_type', 'response_schema' and 'response_json_schema' fields."),
		"Groq":           saying("json mode cannot be combined with tool/function calling"),
		"Groq, older":    saying("response_format` json_object cannot be combined with tool/function calling"),
		"a gateway":      saying("`response_format` is not supported with tools"),
		"another":        saying("Structured output and tools cannot be used at the same time"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			p := newProvider(t, answers(400, "application/json", body), fine)
			m := openAIAt(t, p.URL, quick())
			m.inspected.Do(func() {})
			req := Request{Messages: []Message{user("hi")}, OutputSchema: json.RawMessage(simple), Tools: []Tool{{Name: "f", InputSchema: json.RawMessage(`{"type":"object","properties":{"a":{"type":"string","maxLength":9}}}`)}}}
			last := req
			last.Final = true
			for _, r := range []Request{req, req, last} {
				answered(t, m, r)
			}
			is.Equal(p.count(), 4)
			is.True(p.got(t, 0).body["response_format"] != nil)
			for n := 1; n < 4; n++ {
				is.Equal(p.got(t, n).body["response_format"], nil)
				is.Equal(jsonText(t, p.got(t, n).body["tools"]), jsonText(t, p.got(t, 0).body["tools"]))
				is.True(strings.Contains(p.got(t, n).raw, "meets the following JSON Schema"))
			}
			req.Tools = nil
			answered(t, m, req)
			is.True(p.got(t, 4).body["response_format"] != nil)
		})
	}
	t.Run("without streaming", func(t *testing.T) {
		t.Parallel()
		is := is.New(t)
		p := newProvider(t, refuses(400, "response_format` does not support streaming", ""), fine)
		m := openAIAt(t, p.URL, quick())
		for range 2 {
			answered(t, m, Request{Messages: []Message{user("hi")}, OutputSchema: json.RawMessage(simple)})
		}
		is.Equal(p.count(), 3)
		is.Equal(p.got(t, 2).body["response_format"], nil)
	})
}

// TestOpenAIEmptyObjects checks the repeated request of a server that refuses objects without properties.
func TestOpenAIEmptyObjects(t *testing.T) {
	t.Parallel()
	const refusal = `[{"error":{"code":400,"message":"* GenerateContentRequest.tools[0].function_declarations[2].parameters.properties: should be non-empty for OBJECT type\n","status":"INVALID_ARGUMENT"}}]`
	is := is.New(t)
	p := newProvider(t, answers(400, "application/json", refusal), fine)
	m := openAIAt(t, p.URL, quick())
	req := Request{Messages: []Message{user("hi")}}
	for _, schema := range []string{`{"type":"object","properties":{}}`, `{}`,
		`{"type":"object","properties":{"a":{"type":"string","maxLength":9},"o":{"type":"object","description":"Any."},"l":{"type":"array","items":{"type":"object","properties":{}}},"m":{"type":"object","additionalProperties":{"type":"string"}},"n":{"type":["object","null"]},"p":{"type":"object","properties":{"q":{"type":"object"}}}},"required":["o"]}`} {
		req.Tools = append(req.Tools, Tool{Name: fmt.Sprint("f", len(req.Tools)), InputSchema: json.RawMessage(schema)})
	}
	for range 2 {
		answered(t, m, req)
	}
	is.Equal(p.count(), 3)
	const text = `{"description":"(an object as JSON text)","type":"string"}`
	for n := 1; n < 3; n++ {
		is.Equal(jsonText(t, p.got(t, n).body["tools"]), `[{"function":{"name":"f0"},"type":"function"},{"function":{"name":"f1"},"type":"function"},`+
			`{"function":{"name":"f2","parameters":{"properties":{"a":{"maxLength":9,"type":"string"},"l":{"items":`+text+`,"type":"array"},"m":`+text+`,"n":`+text+`,`+
			`"o":{"description":"Any. (an object as JSON text)","type":"string"},"p":{"properties":{"q":`+text+`},"type":"object"}},"required":["o"],"type":"object"}},"type":"function"}]`)
	}
}

// TestOpenAIThoughtSignatures checks that Gemini gets its signatures back, and another one for calls that have none.
func TestOpenAIThoughtSignatures(t *testing.T) {
	t.Parallel()
	const none = `{"google":{"thought_signature":"skip_thought_signature_validator"}}`
	missing := answers(400, "application/json", `[{"error":{"code":400,"message":"Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly, and missing thought_signature may lead to degraded model performance. Additional data, function call `+"`default_api:f`"+` , position 2.","status":"INVALID_ARGUMENT"}}]`)
	vertex := refuses(400, "Unable to submit request because function call `f` in the 2. content block is missing a `thought_signature`.", "")
	streamed := streams(sse(toolDelta(`{"index":0,"id":"a","function":{"name":"f","arguments":""}}`),
		toolDelta(`{"index":0,"extra_content":{"google":{"thought_signature":"SIG"}},"function":{"arguments":"{}"}}`),
		toolDelta(`{"index":1,"id":"b","function":{"name":"f","arguments":"{}"}}`), finished("tool_calls"), done))
	history := func(t *testing.T, m *openAI) Request {
		own := answered(t, m, Request{Messages: []Message{user("hi")}})
		results := Message{Role: RoleTool}
		for _, p := range own.Parts {
			results.Parts = append(results.Parts, Part{Type: PartToolResult, CallID: p.CallID, Text: "x"})
		}
		other := callAnd("so")
		return Request{Messages: append(append(other.Messages, user("more")), Message{Role: RoleAssistant, Parts: own.Parts}, results)}
	}
	extras := func(t *testing.T, p *provider, n int) (all []string) {
		for _, m := range p.got(t, n).body["messages"].([]any) {
			calls, _ := m.(map[string]any)["tool_calls"].([]any)
			for _, c := range calls {
				all = append(all, jsonText(t, c.(map[string]any)["extra_content"]))
			}
		}
		return all
	}
	for name, refusal := range map[string]http.HandlerFunc{"Gemini": missing, "Vertex": vertex} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			p := newProvider(t, streamed, refusal, fine)
			m := openAIAt(t, p.URL, quick())
			req := history(t, m)
			for range 2 {
				answered(t, m, req)
			}
			is.Equal(p.count(), 4)
			const own = `{"google":{"thought_signature":"SIG"}}`
			is.Equal(extras(t, p, 1), []string{"null", own, "null"})
			is.Equal(extras(t, p, 2), []string{none, own, "null"})
			is.Equal(extras(t, p, 3), []string{none, own, "null"})
		})
	}
	t.Run("one that is not valid", func(t *testing.T) {
		t.Parallel()
		is := is.New(t)
		p := newProvider(t, streamed, refuses(400, "Thought signature is not valid.", ""), fine)
		m := openAIAt(t, p.URL, quick())
		req := history(t, m)
		answered(t, m, req)
		is.Equal(extras(t, p, 2), []string{none, none, "null"})
		answered(t, m, req)
		is.Equal(extras(t, p, 3)[1], `{"google":{"thought_signature":"SIG"}}`) // another conversation keeps its own
	})
	t.Run("a server that does not know them", func(t *testing.T) {
		t.Parallel()
		is := is.New(t)
		p := newProvider(t, streamed, dialects()["Mistral"]("messages.3.assistant.tool_calls.0.", "extra_content"), fine)
		m := openAIAt(t, p.URL, quick())
		req := history(t, m)
		for range 2 {
			answered(t, m, req)
		}
		is.Equal(p.count(), 4)
		is.Equal(extras(t, p, 3), []string{"null", "null", "null"})
	})
}

// strictMistral refuses what Mistral's API refuses of messages, in one of its two forms.
func strictMistral(nested bool) http.HandlerFunc {
	refuse := func(w http.ResponseWriter, r *http.Request, message, code string) {
		text := string(rawJSON(message))
		if nested {
			text = `{"detail":[{"type":"value_error","loc":["body","messages"],"msg":` + text + `,"input":""}]}`
		}
		answers(400, "application/json", `{"object":"error","message":`+text+`,"type":"invalid_request_message_order","param":null,"code":"`+code+`"}`)(w, r)
	}
	return func(w http.ResponseWriter, r *http.Request) {
		var body chatRequest
		_ = json.NewDecoder(r.Body).Decode(&body)
		last := ""
		for _, m := range body.Messages {
			if m.Role == "user" && last == "tool" {
				refuse(w, r, "Unexpected role 'user' after role 'tool'", "3230")
				return
			}
			last = m.Role
			for _, id := range append([]string{m.ToolCallID}, idsOf(m.ToolCalls)...) {
				if id != "" && (len(id) != 9 || !onlyAlphanumeric.MatchString(id)) {
					refuse(w, r, "Tool call id was "+id+" but must be a-z, A-Z, 0-9, with a length of 9.", "3280")
					return
				}
			}
		}
		fine(w, r)
	}
}

func idsOf(calls []chatCall) (ids []string) {
	for _, c := range calls {
		ids = append(ids, c.ID)
	}
	return ids
}

// TestOpenAIStrictMistral checks that the messages of a conversation with another model's calls are accepted.
func TestOpenAIStrictMistral(t *testing.T) {
	t.Parallel()
	for _, nested := range []bool{false, true} {
		server := httptest.NewServer(strictMistral(nested))
		t.Cleanup(server.Close)
		req := callAnd("so")
		req.Messages = append(req.Messages, user("The budget is used up."))
		answered(t, openAIAt(t, server.URL, quick()), req)
	}
}

// TestClaudeFieldsAreLeftOut checks servers with a copy of Anthropic's API that know fewer fields.
func TestClaudeFieldsAreLeftOut(t *testing.T) {
	t.Parallel()
	temperature := 0.5
	for field, tt := range map[string]struct {
		path string
		req  Request
	}{
		"cache_control": {"system.0.cache_control", Request{Instructions: "I"}},
		"temperature":   {"temperature", Request{Temperature: &temperature}},
		"output_config": {"output_config", Request{Effort: "low", OutputSchema: json.RawMessage(simple)}},
		"effort":        {"output_config.effort", Request{Effort: "max"}},
		"thinking":      {"thinking", Request{}},
	} {
		for _, form := range []string{"%s: Extra inputs are not permitted", "property '%s' is unsupported", "Unknown parameter: '%s'."} {
			t.Run(field+", "+form, func(t *testing.T) {
				t.Parallel()
				is := is.New(t)
				p := newProvider(t, refuses(400, fmt.Sprintf(form, tt.path), ""), streams(claudeSays("x")))
				m := claudeAt(t, p.URL, quick())
				req := tt.req
				req.Messages = []Message{user("hi")}
				for range 2 {
					answered(t, m, req)
				}
				is.Equal(p.count(), 3) // it is remembered
				for n, has := range []bool{true, false, false} {
					is.Equal(strings.Contains(p.got(t, n).raw, `"`+field+`":`), has)
				}
			})
		}
	}
}

// TestOpenAISealedThoughts checks a gateway whose provider cannot verify the thinking of earlier answers.
func TestOpenAISealedThoughts(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	refusal := refuses(400, "messages.1.content.0: Invalid `signature` in `thinking` block", "")
	p := newProvider(t, refusal, fine, refusal, fine)
	m := openAIAt(t, p.URL, quick())
	req := callAnd("so")
	meta := chatMeta{Field: "reasoning", Details: json.RawMessage(`[{"type":"reasoning.text","text":"Hm","signature":"OLD"}]`)}
	req.Messages[1].Parts = append([]Part{{Type: PartReasoning, Text: "Hm", Meta: sealMeta("openai:m", meta)}}, req.Messages[1].Parts...)
	for range 2 {
		answered(t, m, req)
	}
	is.Equal(p.count(), 4) // other conversations keep theirs
	for n, has := range []bool{true, false, true, false} {
		is.Equal(strings.Contains(p.got(t, n).raw, "OLD"), has)
	}
}
