package model

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/matryer/is"
)

// sse returns a stream of events.
func sse(events ...string) string {
	var b strings.Builder
	for _, e := range events {
		b.WriteString("data: " + e + "\n\n")
	}
	return b.String()
}

// chunk returns an event with a delta; finished returns one with a finish reason.
func chunk(delta string) string {
	return `{"id":"c1","object":"chat.completion.chunk","created":1,"model":"m-1","choices":[{"index":0,"delta":` + delta + `,"finish_reason":null}]}`
}

func finished(reason string) string {
	return `{"id":"c1","object":"chat.completion.chunk","model":"m-1","choices":[{"index":0,"delta":{},"finish_reason":"` + reason + `"}]}`
}

const (
	usageText  = `{"prompt_tokens":30,"completion_tokens":12,"total_tokens":42,"prompt_tokens_details":{"cached_tokens":20},"completion_tokens_details":{"reasoning_tokens":5}}`
	usageChunk = `{"id":"c1","model":"m-1","choices":[],"usage":` + usageText + `}`
	done       = "[DONE]"
)

// toolDelta returns a delta with one tool call.
func toolDelta(call string) string { return chunk(`{"tool_calls":[` + call + `]}`) }

func TestOpenAIStreams(t *testing.T) {
	t.Parallel()
	checkStreams(t, "openai", usageText, Usage{InputTokens: 30, OutputTokens: 12, CacheReadTokens: 20, ReasoningTokens: 5}, map[string]wireAnswer{
		"text": {sse(chunk(`{"role":"assistant","content":""}`), chunk(`{"content":"Hel"}`), chunk(`{"content":"lo"}`), finished("stop"), usageChunk, done), "text:Hello", FinishStop},
		"reasoning_content": {sse(chunk(`{"role":"assistant","content":null,"reasoning_content":"Hm"}`), chunk(`{"reasoning_content":"m."}`), chunk(`{"content":"Hi"}`), finished("stop"), done),
			"reasoning:Hmm. text:Hi", FinishStop},
		"reasoning":             {sse(chunk(`{"reasoning":"Hm","content":""}`), chunk(`{"content":"Hi"}`), finished("stop"), done), "reasoning:Hm text:Hi", FinishStop},
		"reasoning twice named": {sse(chunk(`{"reasoning":"Hm","reasoning_content":"Hm"}`), chunk(`{"content":"Hi"}`), finished("stop"), done), "reasoning:Hm text:Hi", FinishStop},
		"both in one event":     {sse(chunk(`{"reasoning":"a","content":"b"}`), chunk(`{"reasoning":"c","content":"d"}`), finished("stop"), done), "reasoning:a text:b reasoning:c text:d", FinishStop},
		"content in parts":      {sse(chunk(`{"content":[{"type":"thinking","thinking":[{"type":"text","text":"Hm"}]}]}`), chunk(`{"content":[{"type":"text","text":"Hi"}]}`), finished("stop"), done), "reasoning:Hm text:Hi", FinishStop},
		"comments":              {": OPENROUTER PROCESSING\n\n: OPENROUTER PROCESSING\n\n" + sse(chunk(`{"content":"a"}`)) + ":\n" + sse(chunk(`{"content":"b"}`)) + ": x\n\n" + sse(finished("stop"), done), "text:ab", FinishStop},
		"no blanks, CRLF":       {strings.ReplaceAll(sse(chunk(`{"content":"a"}`), chunk(`{"content":"b"}`), finished("stop"), done), "\n\n", "\r\n"), "text:ab", FinishStop},
		"no space":              {"data:" + chunk(`{"content":"a"}`) + "\n\ndata:" + finished("stop") + "\n\ndata:[DONE]\n\n", "text:a", FinishStop},
		"event names and ids":   {"event: message\nid: 1\nretry: 10\n" + sse(chunk(`{"content":"a"}`), finished("stop"), done), "text:a", FinishStop},
		"no end mark":           {sse(chunk(`{"content":"a"}`), finished("stop")), "text:a", FinishStop},
		"no last line end":      {strings.TrimSuffix(sse(chunk(`{"content":"a"}`), finished("stop")), "\n\n"), "text:a", FinishStop},
		"no reason to stop":     {sse(chunk(`{"content":"a"}`), done), "text:a", FinishStop},
		"nothing at all":        {sse(chunk(`{"role":"assistant"}`), finished("stop"), done), "", FinishStop},
		"length":                {sse(chunk(`{"content":"a"}`), finished("length"), done), "text:a", FinishLength},
		"filtered":              {sse(chunk(`{"content":"a"}`), finished("content_filter"), done), "text:a", FinishContentFilter},
		"refused":               {sse(chunk(`{"refusal":"I can't "}`), chunk(`{"refusal":"do that."}`), finished("stop"), done), "text:I can't do that.", FinishRefused},
		"filter annotations":    {sse(`{"choices":[],"prompt_filter_results":[{"prompt_index":0}]}`, chunk(`{"content":"a"}`), finished("stop"), done), "text:a", FinishStop},
		"another choice":        {sse(`{"choices":[{"index":1,"delta":{"content":"x"}}]}`, chunk(`{"content":"a"}`), finished("stop"), done), "text:a", FinishStop},
		"a message in an event": {sse(`{"choices":[{"message":{"role":"assistant","content":"a"},"finish_reason":"stop"}]}`, done), "text:a", FinishStop},
		"no stream":             {`{"id":"c1","object":"chat.completion","model":"m-1","choices":[{"index":0,"message":{"role":"assistant","content":"a","reasoning_content":"b"},"finish_reason":"stop"}]}`, "reasoning:b text:a", FinishStop},

		"call": {sse(toolDelta(`{"index":0,"id":"call_a","type":"function","function":{"name":"f","arguments":""}}`), toolDelta(`{"index":0,"function":{"arguments":"{\"a\":"}}`),
			toolDelta(`{"index":0,"function":{"arguments":"1}"}}`), finished("tool_calls"), usageChunk, done), `tool-call:f{"a":1}`, FinishToolCalls},
		"text, then calls": {sse(chunk(`{"content":"Look."}`), toolDelta(`{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}`), toolDelta(`{"index":1,"id":"b","function":{"name":"g","arguments":"{\"x\":\"}\"}"}}`),
			finished("tool_calls"), done), `text:Look. tool-call:f{} tool-call:g{"x":"}"}`, FinishToolCalls},
		"interleaved": {sse(toolDelta(`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"a\""}},{"index":1,"id":"b","function":{"name":"g","arguments":"{\"b"}}`),
			toolDelta(`{"index":1,"function":{"arguments":"\":2"}}`), toolDelta(`{"index":0,"function":{"arguments":":1}"}}`), toolDelta(`{"index":1,"function":{"arguments":"}"}}`), finished("tool_calls"), done),
			`tool-call:f{"a":1} tool-call:g{"b":2}`, FinishToolCalls},
		"second first":               {sse(toolDelta(`{"index":1,"id":"b","function":{"name":"g","arguments":"{}"}}`), toolDelta(`{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}`), finished("tool_calls"), done), `tool-call:g{} tool-call:f{}`, FinishToolCalls},
		"text after calls":           {sse(toolDelta(`{"index":0,"id":"a","function":{"name":"f","arguments":"{"}}`), chunk(`{"content":"x"}`), toolDelta(`{"index":0,"function":{"arguments":"}"}}`), finished("stop"), done), `tool-call:f{} text:x`, FinishToolCalls},
		"arguments whole":            {sse(toolDelta(`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"a\":[1,{}]}"}}`), finished("stop"), done), `tool-call:f{"a":[1,{}]}`, FinishToolCalls},
		"arguments an object":        {sse(toolDelta(`{"index":0,"id":"a","function":{"name":"f","arguments":{"a":1}}}`), finished("tool_calls"), done), `tool-call:f{"a":1}`, FinishToolCalls},
		"arguments null":             {sse(toolDelta(`{"index":0,"id":"a","function":{"name":"f","arguments":null}}`), finished("tool_calls"), done), `tool-call:f{}`, FinishToolCalls},
		"no arguments":               {sse(toolDelta(`{"index":0,"id":"a","function":{"name":"f"}}`), finished("tool_calls"), done), `tool-call:f{}`, FinishToolCalls},
		"blank arguments":            {sse(toolDelta(`{"index":0,"id":"a","function":{"name":"f","arguments":" "}}`), finished("tool_calls"), done), `tool-call:f {}`, FinishToolCalls},
		"arguments that are no JSON": {sse(toolDelta(`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"a\": oops"}}`), finished("tool_calls"), done), `tool-call:f{"a": oops`, FinishToolCalls},
		"the whole said again": {sse(toolDelta(`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"a\""}}`), toolDelta(`{"index":0,"id":"a","function":{"name":"f","arguments":":1}"}}`),
			toolDelta(`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"a\":1}"}}`), finished("tool_calls"), done), `tool-call:f{"a":1}`, FinishToolCalls},
		"the name again and again": {sse(toolDelta(`{"index":0,"id":"a","function":{"name":"f","arguments":"{"}}`), toolDelta(`{"index":0,"function":{"name":"f","arguments":"}"}}`),
			toolDelta(`{"index":0,"function":{"name":"f","arguments":""}}`), finished("tool_calls"), done), `tool-call:f{}`, FinishToolCalls},
		"no index": {sse(toolDelta(`{"id":"a","function":{"name":"f","arguments":"{\"a\":"}}`), toolDelta(`{"function":{"arguments":"1}"}}`), toolDelta(`{"id":"b","function":{"name":"f","arguments":"{}"}}`), finished("tool_calls"), done),
			`tool-call:f{"a":1} tool-call:f{}`, FinishToolCalls},
		"no index, no id":            {sse(toolDelta(`{"function":{"name":"f","arguments":"{}"}}`), toolDelta(`{"function":{"name":"f","arguments":"{\"b\":2}"}}`), finished("tool_calls"), done), `tool-call:f{} tool-call:f{"b":2}`, FinishToolCalls},
		"none, in one event":         {sse(toolDelta(`{"function":{"name":"f","arguments":""}},{"function":{"name":"f","arguments":""}},{"function":{"name":"g"}}`), finished("tool_calls"), done), `tool-call:f{} tool-call:f{} tool-call:g{}`, FinishToolCalls},
		"all of index 0":             {sse(toolDelta(`{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}},{"index":0,"id":"b","function":{"name":"g","arguments":"{}"}}`), finished("tool_calls"), done), `tool-call:f{} tool-call:g{}`, FinishToolCalls},
		"all of index 0, without id": {sse(toolDelta(`{"index":0,"function":{"name":"f","arguments":"{\"a\":1}"}}`), toolDelta(`{"index":0,"function":{"name":"f","arguments":"{\"a\":2}"}}`), finished("tool_calls"), done), `tool-call:f{"a":1} tool-call:f{"a":2}`, FinishToolCalls},
		"one id for two":             {sse(toolDelta(`{"index":0,"id":"x","function":{"name":"f","arguments":"{}"}}`), toolDelta(`{"index":1,"id":"x","function":{"name":"g","arguments":"{}"}}`), finished("tool_calls"), done), `tool-call:f{} tool-call:g{}`, FinishToolCalls},
		"the name after":             {sse(toolDelta(`{"index":0,"id":"x","function":{"arguments":"{"}}`), toolDelta(`{"index":0,"function":{"name":"g","arguments":"}"}}`), finished("tool_calls"), done), `tool-call:g{}`, FinishToolCalls},
		"a call that is cut":         {sse(toolDelta(`{"index":0,"id":"x","function":{"name":"g","arguments":"{\"a\":\"bc"}}`), finished("length"), done), `tool-call:g{"a":"bc`, FinishLength},
		"function_call":              {sse(chunk(`{"function_call":{"name":"f","arguments":"{"}}`), chunk(`{"function_call":{"arguments":"}"}}`), finished("function_call"), done), `tool-call:f{}`, FinishToolCalls},
		"an empty piece":             {sse(toolDelta(`{"index":0,"id":"","function":{"name":"","arguments":""}}`), chunk(`{"content":"a"}`), finished("stop"), done), `text:a`, FinishStop},
		// Some models at Groq.
		"usage only in x_groq":   {sse(chunk(`{"content":"a"}`), `{"model":"m-1","choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"x_groq":{"id":"r","usage":`+usageText+`}}`, done), "text:a", FinishStop},
		"x_groq of another form": {sse(chunk(`{"content":"a"}`), `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"x_groq":"r"}`, done), "text:a", FinishStop},
		// Gemini's door numbers all calls 0.
		"equal arguments, other names": {sse(toolDelta(`{"index":0,"id":"","function":{"name":"f","arguments":"{\"a\":1}"}}`), toolDelta(`{"index":0,"id":"","function":{"name":"g","arguments":"{\"a\":1}"}}`), finished("stop"), done),
			`tool-call:f{"a":1} tool-call:g{"a":1}`, FinishToolCalls},
		"an id that is a number": {sse(toolDelta(`{"index":0,"id":7,"function":{"name":"f","arguments":"{}"}}`), finished("tool_calls"), done), `tool-call:f{}`, FinishToolCalls},
	})
}

func TestOpenAIBrokenStreams(t *testing.T) {
	t.Parallel()
	checkBroken(t, "openai", map[string]brokenStream{
		"cut":                       {cut(sse(chunk(`{"content":"a"}`))), "stream", "broke off", true},
		"cut in a line":             {cut(`data: {"choices":[{"del`), "stream", "broke off", true},
		"ended early":               {streams(sse(chunk(`{"content":"a"}`))), "stream", "broke off", true},
		"ended at once":             {streams(""), "stream", "broke off", true},
		"an error":                  {streams(sse(chunk(`{"content":"a"}`), `{"error":{"message":"Provider returned error","code":502,"metadata":{"raw":"no more"}},"choices":[{"delta":{},"finish_reason":"error"}]}`)), "502", "Provider returned error (no more)", true},
		"an error as a string":      {streams(sse(chunk(`{"content":"a"}`), `{"error":"model runner crashed"}`)), "500", "model runner crashed", true},
		"an error after comments":   {streams(": x\n\n" + sse(`{"error":{"message":"boom","type":"server_error"}}`)), "500", "boom", true},
		"a named error event":       {streams("event: error\n" + sse(`{"object":"error","message":"too fast","type":"rate_limit_error"}`)), "429", "too fast", true},
		"stopped early, Groq":       {streams(sse(chunk(`{"content":"a"}`), `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"x_groq":{"id":"r","error":"over capacity"}}`, done)), "500", "over capacity", true},
		"an error without form":     {streams(`{"error":{"message":"bad input","type":"invalid_request_error"}}`), "400", "bad input", false},
		"length within the stream":  {streams(sse(`{"error":{"message":"prompt is too long for this model","code":400}}`)), "context_length", "too long", false},
		"an error that says little": {streams(sse(`{"error":{}}`)), "500", "500", true},
		"finished by an error":      {streams(sse(chunk(`{"content":"a"}`), finished("error"))), "stream", "failed in the middle", true},
		"no JSON":                   {streams("data: oops\n\n"), "bad_response", "not an event", true},
		"a page":                    {answers(200, "text/html", "<html>Welcome</html>"), "web_page", "base URL", false},
		"all filtered":              {streams(sse(finished("content_filter"), done)), "content_filter", "filter", false},
		"a whole that is an error":  {answers(200, "application/json", `{"error":{"message":"nope","code":"invalid_request_error"}}`), "400", "nope", false},
		"too many parts":            {streams(strings.Repeat(sse(chunk(`{"reasoning":"a","content":"b"}`)), maxParts)), "bad_response", "too long", false},
	})
}

const simple = `{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"],"additionalProperties":false}`

// fine is a valid answer.
var fine = streams(sse(chunk(`{"content":"{\"n\":1}"}`), finished("stop"), usageChunk, done))

func TestOpenAIRequest(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	p := newProvider(t, fine)
	m := openAIAt(t, p.URL+"/v1/", quick())
	m.inspected.Do(func() {}) // the first request must be the call itself
	req := callAnd("")
	req.Preamble, req.Instructions, req.MaxTokens = "P", "I", 77
	req.Tools = []Tool{{Name: "read_file", Description: "Reads.", InputSchema: json.RawMessage(`{"type":"object"}`)}}
	req.OutputSchema = json.RawMessage(simple)
	req.Messages[0].Parts = append(req.Messages[0].Parts,
		Part{Type: PartFile, Path: "a.png", MediaType: "image/png", Size: 3, Open: func() ([]byte, error) { return []byte("png"), nil }},
		Part{Type: PartFile, Path: "b.pdf", MediaType: "application/pdf", Size: 3, Open: func() ([]byte, error) { return []byte("pdf"), nil }},
		Part{Type: PartFile, Path: "c.csv", MediaType: "text/csv; charset=utf-8", Size: 3, Open: func() ([]byte, error) { return []byte("x,y"), nil }},
		Part{Type: PartFile, Path: "d.bin", MediaType: "application/octet-stream", Size: 3, Open: func() ([]byte, error) { return []byte("bin"), nil }},
		Part{Type: PartFile, Path: "e.txt", MediaType: "text/plain", Size: 3, Open: func() ([]byte, error) { return nil, errors.New("gone") }},
		Part{Type: PartFile, Path: "f.txt", MediaType: "text/plain", Size: 3, Open: func() ([]byte, error) { return []byte("\xff\xfe\xfd"), nil }},
		Part{Type: PartFile, Path: "g.txt", MediaType: "text/plain", Size: maxInlineText + 1, Open: func() ([]byte, error) { return nil, nil }})
	req.Messages[1].Parts = append(req.Messages[1].Parts, Part{Type: PartToolCall, CallID: "call_2", ToolName: "a tool!", Input: json.RawMessage(`"{\"a\": oops"`)})
	req.Messages[2].Parts = append(req.Messages[2].Parts, Part{Type: PartToolResult, CallID: "call_2", ToolName: "a tool!", Text: "no", IsError: true})
	answered(t, m, req)
	got := p.got(t, 0)
	is.Equal(got.path, "/v1/chat/completions")
	is.Equal(got.header.Get("Authorization"), "Bearer "+testKey)
	want := `{"model":"m","messages":[` +
		`{"role":"system","content":"P\n\nI\n\nYour final answer must be one JSON value that meets the following JSON Schema, with nothing before or after it:\n` + strings.ReplaceAll(simple, `"`, `\"`) + `"},` +
		`{"role":"user","content":[{"type":"text","text":"go"},{"type":"image_url","image_url":{"url":"data:image/png;base64,cG5n"}},` +
		`{"type":"file","file":{"filename":"b.pdf","file_data":"data:application/pdf;base64,cGRm"}},{"type":"text","text":"File c.csv:\n\nx,y"},` +
		`{"type":"text","text":"File d.bin (application/octet-stream, 3 bytes) lies in the workspace; its content is not shown here: models take no files of this type. read_file reads it, if it holds text."},` +
		`{"type":"text","text":"File e.txt (text/plain, 3 bytes) lies in the workspace; its content is not shown here: it cannot be read. read_file reads it, if it holds text."},` +
		`{"type":"text","text":"File f.txt (text/plain, 3 bytes) lies in the workspace; its content is not shown here: it is no text in UTF-8. read_file reads it, if it holds text."},` +
		`{"type":"text","text":"File g.txt (text/plain, 262145 bytes) lies in the workspace; its content is not shown here: it is larger than the 262144 bytes that are shown at once. read_file reads it, if it holds text."}]},` +
		`{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"read_file","arguments":"{\"path\":\"x\"}"}},` +
		`{"id":"call_2","type":"function","function":{"name":"a_tool__` + safeName("a tool!", 64)[8:] + `","arguments":"{\"invalid_arguments\":\"{\\\"a\\\": oops\"}"}}]},` +
		`{"role":"tool","content":"(no output)","tool_call_id":"call_1"},{"role":"tool","content":"Error: no","tool_call_id":"call_2"}],` +
		`"tools":[{"type":"function","function":{"name":"read_file","description":"Reads.","parameters":{"type":"object","properties":{}}}}],` +
		`"response_format":{"type":"json_schema","json_schema":{"name":"answer","schema":{"additionalProperties":false,"properties":{"n":{"type":"integer"}},"required":["n"],"type":"object"},"strict":true}},` +
		`"max_tokens":77,"stream":true,"stream_options":{"include_usage":true}}` + "\n"
	is.Equal(got.raw, want)

	req.Final = true
	answered(t, m, req)
	tools := `"tools":[{"type":"function","function":{"name":"read_file","description":"Reads.","parameters":{"type":"object","properties":{}}}}],`
	last := strings.Replace(want, tools, tools+`"tool_choice":"none",`, 1)
	is.Equal(p.got(t, 1).raw, last) // the provider has cached the beginning

	req.Tools = nil
	answered(t, m, req)
	is.Equal(p.got(t, 2).body["tool_choice"], nil) // servers reject tool_choice without tools
}

// refuses responds with an error in OpenAI's form.
func refuses(status int, message, param string) http.HandlerFunc {
	return answers(status, "application/json", fmt.Sprintf(`{"error":{"message":%q,"type":"invalid_request_error","param":%q,"code":null}}`, message, param))
}

// TestOpenAIAdapts checks that later requests omit a rejected feature.
func TestOpenAIAdapts(t *testing.T) {
	t.Parallel()
	tools := []Tool{{Name: "f", InputSchema: json.RawMessage(`{"type":"object"}`)}}
	image := Part{Type: PartFile, Path: "a.png", MediaType: "image/png", Size: 3, Open: func() ([]byte, error) { return []byte("png"), nil }}
	checkAdapts(t, "openai", fine, map[string]adaptation{
		"the limit's new name": {refuses(400, "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.", "max_tokens"), Request{MaxTokens: 9}, `"max_tokens"`, `"max_completion_tokens":9`, false},
		"no response_format":   {refuses(400, "This response_format type is unavailable now", ""), Request{OutputSchema: json.RawMessage(simple)}, "response_format", "meets the following JSON Schema", false},
		"a schema too odd":     {refuses(400, "Invalid schema for response_format 'answer'", "response_format"), Request{OutputSchema: json.RawMessage(simple)}, "response_format", "meets the following JSON Schema", false},
		"no stream_options":    {refuses(422, "Extra inputs are not permitted: stream_options", ""), Request{}, "stream_options", `"stream":true`, false},
		"no reasoning with tools": {refuses(400, "Function tools with reasoning_effort are not supported for gpt-6-sol in /v1/chat/completions. To use function tools, use /v1/responses or set reasoning_effort to 'none'.", "reasoning_effort"),
			Request{Tools: tools}, "", `"reasoning_effort":"none"`, false},
		"no tool choice": {refuses(400, "Unknown parameter: 'tool_choice'.", "tool_choice"), Request{Tools: tools, Final: true}, `"tool`, `"stream":true`, false},
		"no images":      {refuses(500, "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj", ""), Request{Messages: []Message{{Role: RoleUser, Parts: []Part{image}}}}, "image_url", "lies in the workspace", false},
	})
	checkStubborn(t, "openai", fine, "max_tokens response_format image stream_options", "/v1/chat/completions")
}

// TestOpenAISchemaWithTools checks servers that apply a schema at once, which prevents tool
// calls.
func TestOpenAISchemaWithTools(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		models  http.HandlerFunc
		formats []bool // whether each request has a format: with tools, its correction, and without tools
	}{
		"Ollama":  {answers(200, "application/json", `{"object":"list","data":[{"id":"m","object":"model","owned_by": "library"}]}`), []bool{false, true, true}},
		"vLLM":    {answers(200, "application/json", `{"data":[{"id":"m","owned_by":"vllm"}]}`), []bool{false, true, true}},
		"another": {answers(200, "application/json", `{"data":[{"id":"m","owned_by":"mistral"}]}`), []bool{true, true, true}},
		"unknown": {answers(404, "text/plain", "no"), []bool{true, true, true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			var lists atomic.Int64
			p := newProvider(t, fine)
			p.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodGet {
					lists.Add(1)
					tt.models(w, r)
					return
				}
				p.ServeHTTP(w, r)
			})
			m := openAIAt(t, p.URL+"/v1", quick())
			req := Request{Messages: []Message{user("hi")}, OutputSchema: json.RawMessage(simple), Tools: []Tool{{Name: "f", InputSchema: json.RawMessage(`{}`)}}}
			corrected := req
			corrected.Messages = []Message{user("hi"), {Role: RoleAssistant, Parts: []Part{{Type: PartText, Text: "1"}}}, user("not an object")}
			last := req
			last.Final = true
			for n, r := range []Request{req, corrected, last} {
				answered(t, m, r)
				is.Equal(p.got(t, n).body["response_format"] != nil, tt.formats[n])
			}
			is.Equal(lists.Load(), int64(1)) // once
		})
	}
}

// TestOpenAIMeta checks that a provider gets its data back within the same sequence of calls.
func TestOpenAIMeta(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	p := newProvider(t, streams(sse(chunk(`{"reasoning":"Hm","reasoning_details":[{"type":"reasoning.text","index":0,"text":"H"}]}`), chunk(`{"reasoning":"m","reasoning_details":[{"type":"reasoning.text","index":0,"text":"m","signature":"S"}]}`),
		toolDelta(`{"index":0,"id":"a","function":{"name":"f","arguments":"{}"},"extra_content":{"google":{"thought_signature":"T"}}}`), finished("tool_calls"), done)))
	m := openAIAt(t, p.URL, quick())
	resp := answered(t, m, Request{Messages: []Message{user("hi")}})
	is.Equal(resp.Parts[0].Text, "Hmm")
	messages := []Message{user("hi"), {Role: RoleAssistant, Parts: resp.Parts}, {Role: RoleTool, Parts: []Part{{Type: PartToolResult, CallID: "a", Text: "x"}}}}
	answered(t, m, Request{Messages: messages})
	raw := p.got(t, 1).raw
	is.True(strings.Contains(raw, `"reasoning":"Hmm"`))
	is.True(strings.Contains(raw, `"reasoning_details":[{"index":0,"signature":"S","text":"Hm","type":"reasoning.text"}]`))
	is.True(strings.Contains(raw, `"extra_content":{"google":{"thought_signature":"T"}}`))

	answered(t, m, Request{Messages: append(messages, Message{Role: RoleAssistant, Parts: []Part{{Type: PartText, Text: "ok"}}}, user("more"))})
	is.True(!strings.Contains(p.got(t, 2).raw, `"reasoning":"Hmm"`)) // the turn is over

	m.name = "openai:other"
	answered(t, m, Request{Messages: messages})
	is.True(!strings.Contains(p.got(t, 3).raw, "signature")) // data of another model is not sent
}

// TestOpenAICallIDs checks that an id in the conversation is not used again.
func TestOpenAICallIDs(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	p := newProvider(t, streams(sse(toolDelta(`{"index":0,"id":"call_1","function":{"name":"f","arguments":"{}"}}`), toolDelta(`{"index":1,"function":{"name":"g","arguments":"{}"}}`), finished("tool_calls"), done)))
	resp := answered(t, openAIAt(t, p.URL, quick()), callAnd("x"))
	is.Equal(resp.Parts[0].CallID, "call00001")
	is.Equal(resp.Parts[1].CallID, "call00002")
}

// FuzzOpenAIStream parses random streams and checks that the result is valid.
func FuzzOpenAIStream(f *testing.F) {
	f.Add(sse(chunk(`{"content":"Hel","reasoning":"x"}`), toolDelta(`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"a\""}},{"index":1,"function":{"name":"g","arguments":{"b":1}}}`),
		toolDelta(`{"index":0,"function":{"arguments":":1}"}}`), finished("tool_calls"), usageChunk, done))
	f.Add(": c\n\n" + sse(`{"error":"x"}`))
	f.Add(`{"choices":[{"message":{"content":[{"text":"a"}]}}]}`)
	f.Add(sse(toolDelta(`{"function":{"arguments":"}{}["}}`), toolDelta(`{"function":{"name":"f"}},{"function":{"name":"f"}}`), chunk(`{"content":"b"}`)))
	f.Fuzz(func(t *testing.T, body string) {
		var deltas []Delta
		s := &chatStream{assembler: assembler{emit: func(d Delta) { deltas = append(deltas, d) }}, used: map[string]bool{"call00000": true}}
		if s.read(strings.NewReader(body)) != nil {
			return
		}
		resp, err := s.response(&Request{}, "m")
		if err != nil {
			return
		}
		addUp(t, resp.Parts, deltas)
		uniqueIDs(t, resp.Parts)
	})
}

// TestUserTwiceInARow checks that two adjacent messages of a user are sent as one.
func TestUserTwiceInARow(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	p := newProvider(t, streams(sse(chunk(`{"content":"ok"}`), finished("stop"), done)))
	picture := Part{Type: PartFile, Path: "a.png", MediaType: "image/png", Size: 3, Open: func() ([]byte, error) { return []byte("png"), nil }}
	said := Message{Role: RoleAssistant, Parts: []Part{{Type: PartText, Text: "yes"}}}
	withPicture := Message{Role: RoleUser, Parts: []Part{{Type: PartText, Text: "three"}, picture}}
	answered(t, openAIAt(t, p.URL, quick()), Request{Messages: []Message{user("one"), user("two"), said, withPicture, user("four")}})
	messages := p.got(t, 0).body["messages"].([]any)
	is.Equal(len(messages), 3) // the roles alternate
	is.Equal(messages[0].(map[string]any)["content"], "one\n\ntwo")
	last := messages[2].(map[string]any)["content"].([]any)
	is.Equal(len(last), 3)
	is.Equal(last[0].(map[string]any)["text"], "three")
	is.Equal(last[1].(map[string]any)["type"], "image_url")
	is.Equal(last[2].(map[string]any)["text"], "four")
}
