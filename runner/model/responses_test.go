package model

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/store/ordertest"
)

// responsesAt opens a model of a server with the Responses API.
func responsesAt(t *testing.T, url string, p timeouts) *responses {
	t.Helper()
	m, err := openOpenAI("m", Config{Getenv: environment("OPENAI_BASE_URL", url, "OPENAI_API_KEY", testKey, openAIVariable, "responses")}, p)
	is.New(t).NoErr(err)
	r := m.(*responses)
	t.Cleanup(r.client.CloseIdleConnections)
	return r
}

// Events of the Responses API.
const (
	responsesHello = `data: {"type":"response.output_text.delta","output_index":0,"item_id":"msg_1","content_index":0,"delta":"Hello"}` + "\n\n"
	responsesUsed  = `"usage":{"input_tokens":30,"input_tokens_details":{"cached_tokens":20,"cache_write_tokens":4},"output_tokens":12,"output_tokens_details":{"reasoning_tokens":5},"total_tokens":42}`
)

// item returns an event at the beginning or the end of an item.
func item(when string, index int, body string) string {
	return `{"type":"response.output_item.` + when + `","output_index":` + string(rune('0'+index)) + `,"item":{` + body + `}}`
}

// piece returns an event with a piece of an item.
func piece(kind string, index int, delta string) string {
	quoted, _ := json.Marshal(delta)
	return `{"type":"response.` + kind + `.delta","output_index":` + string(rune('0'+index)) + `,"item_id":"i","delta":` + string(quoted) + `}`
}

// responsesDone returns the last event of a complete answer. more are fields of its response
// object.
func responsesDone(more string) string {
	if more != "" {
		more = "," + more
	}
	return `{"type":"response.completed","response":{"object":"response","model":"m-1","status":"completed","output":[]` + more + `}}`
}

// responsesCut returns the last event of an incomplete answer.
func responsesCut(reason string) string {
	return `{"type":"response.incomplete","response":{"object":"response","model":"m-1","status":"incomplete","incomplete_details":{"reason":"` + reason + `"},"output":[],` + responsesUsed + `}}`
}

func TestResponsesStreams(t *testing.T) {
	t.Parallel()
	const reasoned = `"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"ENC"`
	checkStreams(t, "responses", responsesUsed, Usage{InputTokens: 30, OutputTokens: 12, CacheReadTokens: 20, CacheWriteTokens: 4, ReasoningTokens: 5}, map[string]wireAnswer{
		"text": {sse(`{"type":"response.created","response":{"model":"m-1"}}`, item("added", 0, `"type":"message","id":"m","content":[]`), piece("output_text", 0, "Hel"), piece("output_text", 0, "lo"),
			item("done", 0, `"type":"message","id":"m","content":[{"type":"output_text","text":"Hello"}]`), responsesDone(responsesUsed)), "text:Hello", FinishStop},
		"not announced":     {responsesHello + sse(responsesDone("")), "text:Hello", FinishStop},
		"only at its end":   {sse(item("done", 0, `"type":"message","content":[{"type":"output_text","text":"Hel"},{"type":"output_text","text":"lo"}]`), responsesDone("")), "text:Hello", FinishStop},
		"only in the whole": {sse(responsesDone(`"output":[{"type":"message","content":[{"type":"output_text","text":"Hello"}]}]`)), "text:Hello", FinishStop},
		"an empty message":  {sse(item("added", 0, `"type":"message"`), item("done", 0, `"type":"message","content":[]`), responsesDone("")), "", FinishStop},
		"unknown events and items": {sse(`{"type":"keepalive","sequence_number":3}`, `{"type":"response.new_thing","output_index":0,"delta":{"x":1}}`, item("added", 0, `"type":"web_search_call","id":"w"`), piece("output_text", 0, "no"),
			item("done", 0, `"type":"web_search_call"`), piece("output_text", 1, "Hi"), responsesDone("")), "text:Hi", FinishStop},
		"a summary": {sse(item("added", 0, `"type":"reasoning","id":"rs","summary":[]`), `{"type":"response.reasoning_summary_text.delta","output_index":0,"summary_index":0,"delta":"One"}`,
			`{"type":"response.reasoning_summary_text.delta","output_index":0,"summary_index":1,"delta":"Two"}`, item("done", 0, reasoned), piece("output_text", 1, "Hi"), responsesDone("")), "reasoning:One\n\nTwo text:Hi", FinishStop},
		"reasoning without a summary": {sse(item("added", 0, `"type":"reasoning"`), item("done", 0, reasoned), piece("output_text", 1, "Hi"), responsesDone("")), "reasoning: text:Hi", FinishStop},
		"reasoning without anything":  {sse(item("added", 0, `"type":"reasoning"`), item("done", 0, `"type":"reasoning","summary":[]`), piece("output_text", 1, "Hi"), responsesDone("")), "text:Hi", FinishStop},
		"open reasoning":              {sse(piece("reasoning_text", 0, "Hm"), piece("output_text", 1, "Hi"), responsesDone("")), "reasoning:Hm text:Hi", FinishStop},
		"a call": {sse(item("added", 0, `"type":"function_call","call_id":"c","name":"f","arguments":""`), piece("function_call_arguments", 0, `{"a":`), piece("function_call_arguments", 0, `1}`),
			`{"type":"response.function_call_arguments.done","output_index":0,"arguments":"{\"a\":1}"}`, item("done", 0, `"type":"function_call","call_id":"c","name":"f","arguments":"{\"a\":1}"`), responsesDone("")), `tool-call:f{"a":1}`, FinishToolCalls},
		"calls with text before": {sse(piece("output_text", 0, "Look."), item("done", 1, `"type":"function_call","call_id":"c","name":"f","arguments":"{}"`), item("done", 2, `"type":"function_call","call_id":"d","name":"g","arguments":""`), responsesDone("")),
			`text:Look. tool-call:f{} tool-call:g{}`, FinishToolCalls},
		"interleaved": {sse(item("added", 0, `"type":"function_call","call_id":"c","name":"f"`), item("added", 1, `"type":"function_call","call_id":"d","name":"g"`), piece("function_call_arguments", 1, `{"b"`), piece("function_call_arguments", 0, `{"a":1}`),
			piece("function_call_arguments", 1, `:2}`), responsesDone("")), `tool-call:f{"a":1} tool-call:g{"b":2}`, FinishToolCalls},
		"one id for two": {sse(item("done", 0, `"type":"function_call","call_id":"c","name":"f","arguments":"{}"`), item("done", 1, `"type":"function_call","call_id":"c","name":"f","arguments":"{}"`), responsesDone("")), `tool-call:f{} tool-call:f{}`, FinishToolCalls},
		"without an index": {sse(`{"type":"response.output_item.added","item":{"type":"function_call","id":"x","call_id":"c","name":"f"}}`, `{"type":"response.function_call_arguments.delta","item_id":"x","delta":"{}"}`,
			responsesDone(`"output":[{"type":"function_call","id":"x","call_id":"c","name":"f","arguments":"{}"}]`)), `tool-call:f{}`, FinishToolCalls},
		"pieces after the end":     {sse(item("done", 0, `"type":"message","content":[{"text":"Hi"}]`), piece("output_text", 0, "more"), responsesDone("")), "text:Hi", FinishStop},
		"pieces of another kind":   {sse(item("added", 0, `"type":"function_call","call_id":"c","name":"f"`), piece("output_text", 0, "x"), piece("function_call_arguments", 3, "y"), responsesDone("")), `tool-call:f{}`, FinishToolCalls},
		"refused":                  {sse(piece("refusal", 0, "I can't."), responsesDone("")), "text:I can't.", FinishRefused},
		"refused at the end":       {sse(item("done", 0, `"type":"message","content":[{"type":"refusal","refusal":"No."}]`), responsesDone("")), "text:No.", FinishRefused},
		"cut off":                  {sse(piece("output_text", 0, "Hel"), responsesCut("max_output_tokens")), "text:Hel", FinishLength},
		"a call that is cut off":   {sse(item("added", 0, `"type":"function_call","call_id":"c","name":"f"`), piece("function_call_arguments", 0, `{"a":"b`), item("done", 0, `"type":"function_call","status":"incomplete"`), responsesCut("max_output_tokens")), `tool-call:f{"a":"b`, FinishLength},
		"filtered":                 {sse(piece("output_text", 0, "Hel"), responsesCut("content_filter")), "text:Hel", FinishContentFilter},
		"incomplete, who knows":    {sse(piece("output_text", 0, "Hel"), responsesCut("steered")), "text:Hel", FinishOther},
		"event lines and comments": {": ping\n\nevent: response.output_text.delta\n" + responsesHello + "event: response.completed\n" + sse(responsesDone("")), "text:Hello", FinishStop},
		"no stream":                {`{"object":"response","model":"m-1","status":"completed","output":[{"type":"reasoning","summary":[{"text":"a"},{"text":"b"}]},{"type":"message","content":[{"text":"Hi"}]}],` + responsesUsed + `}`, "reasoning:a\n\nb text:Hi", FinishStop},
	})
}

func TestResponsesBrokenStreams(t *testing.T) {
	t.Parallel()
	failed := func(err string) string {
		return `{"type":"response.failed","response":{"object":"response","status":"failed","error":` + err + `,` + responsesUsed + `}}`
	}
	checkBroken(t, "responses", map[string]brokenStream{
		"cut":                     {cut(responsesHello), "stream", "broke off", true},
		"cut in a line":           {cut(`data: {"type":"resp`), "stream", "broke off", true},
		"ended early":             {streams(responsesHello), "stream", "broke off", true},
		"ended at once":           {streams(""), "stream", "broke off", true},
		"failed":                  {streams(responsesHello + sse(failed(`{"code":"server_error","message":"An error occurred."}`))), "500", "An error occurred.", true},
		"failed for the rate":     {streams(sse(failed(`{"code":"rate_limit_exceeded","message":"Slow down"}`))), "429", "Slow down", true},
		"failed without a reason": {streams(sse(failed(`null`))), "500", "500", true},
		"a prompt that is wrong":  {streams(sse(failed(`{"code":"invalid_prompt","message":"Not so"}`))), "400", "Not so", false},
		"an image that is wrong":  {streams(sse(failed(`{"code":"image_too_small","message":"Not so"}`))), "400", "Not so", false},
		"against the policy":      {streams(sse(failed(`{"code":"bio_policy","message":"Not that"}`))), "content_filter", "Not that", false},
		"an error":                {streams(sse(`{"type":"error","code":"server_error","message":"boom","param":null,"sequence_number":1}`)), "500", "boom", true},
		"an error within":         {streams(sse(`{"type":"error","error":{"type":"server_error","code":"rate_limit_exceeded","message":"too fast"}}`)), "429", "too fast", true},
		"too long":                {streams(sse(`{"type":"error","code":"context_length_exceeded","message":"Your input exceeds the context window of this model."}`)), "context_length", "exceeds", false},
		"an empty purse":          {streams(sse(`{"type":"error","code":"insufficient_quota","message":"You exceeded your current quota"}`)), "429", "quota", false},
		"an error without form":   {streams(`{"error":{"message":"bad input","type":"invalid_request_error"}}`), "400", "bad input", false},
		"no JSON":                 {streams("data: oops\n\n"), "bad_response", "not an event", true},
		"an end without answer":   {streams(sse(`{"type":"response.completed"}`)), "bad_response", "not an event", true},
		"a page":                  {answers(200, "text/html", "<html>Welcome</html>"), "web_page", "base URL", false},
		"all filtered":            {streams(sse(responsesCut("content_filter"))), "content_filter", "filter", false},
		"too many items":          {streams(strings.Repeat(sse(item("done", 0, `"type":"message"`)), 3) + manyItems()), "bad_response", "too long", false},
	})
}

// manyItems returns a stream with more items than the limit.
func manyItems() string {
	var b strings.Builder
	for i := range maxParts + 1 {
		b.WriteString(sse(strings.Replace(item("added", 0, `"type":"other"`), `"output_index":0`, `"item_id":"i`+strings.Repeat("x", i)+`"`, 1)))
	}
	return b.String()
}

func TestResponsesRequest(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	p := newProvider(t, streams(responsesHello+sse(responsesDone(""))))
	m := responsesAt(t, p.URL+"/v1/", quick())
	req := callAnd("")
	req.Preamble, req.Instructions, req.MaxTokens = "P", "I", 77
	req.Place = Place{Worker: firstWorker, Task: "tsk_1", Turn: 3, Step: 4}
	req.Tools = []Tool{{Name: "read_file", Description: "Reads.", InputSchema: json.RawMessage(`{"type":"object"}`)}}
	req.OutputSchema = json.RawMessage(simple)
	png := Part{Type: PartFile, Path: "a.png", MediaType: "image/png", Size: 3, Open: func() ([]byte, error) { return []byte("png"), nil }}
	req.Messages[0].Parts = append(req.Messages[0].Parts, png,
		Part{Type: PartFile, Path: "b.pdf", MediaType: "application/pdf", Size: 3, Open: func() ([]byte, error) { return []byte("pdf"), nil }})
	req.Messages[1].Parts = slices.Insert(req.Messages[1].Parts, 0,
		Part{Type: PartReasoning, Text: "Hm", Meta: sealMeta(m.Name(), responsesMeta{Item: &reasoningItem{Type: "reasoning", ID: "rs_1", Summary: json.RawMessage(`[{"type":"summary_text","text":"Hm"}]`), Encrypted: "ENC=="}})},
		Part{Type: PartReasoning, Text: "of another", Meta: sealMeta("openai:other", responsesMeta{Item: &reasoningItem{Type: "reasoning", ID: "rs_0", Encrypted: "OTHER"}})},
		Part{Type: PartText, Text: "I look.", Meta: sealMeta(m.Name(), responsesMeta{Phase: "commentary"})})
	req.Messages[1].Parts = append(req.Messages[1].Parts,
		Part{Type: PartToolCall, CallID: "call_2", ToolName: "a tool!", Input: json.RawMessage(`"{\"a\": oops"`)},
		Part{Type: PartReasoning, Meta: sealMeta(m.Name(), responsesMeta{Item: &reasoningItem{Type: "reasoning", ID: "rs_2", Encrypted: "led to nothing"}})})
	req.Messages[2].Parts[0].Images = []Part{png}
	req.Messages[2].Parts = append(req.Messages[2].Parts, Part{Type: PartToolResult, CallID: "call_2", ToolName: "a tool!", Text: "no", IsError: true})
	answered(t, m, req)
	got := p.got(t, 0)
	is.Equal(got.path, "/v1/responses")
	is.Equal(got.header.Get("Authorization"), "Bearer "+testKey)
	want := `{"model":"m","instructions":"P\n\nI\n\nYour final answer must be one JSON value that meets the following JSON Schema, with nothing before or after it:\n` + strings.ReplaceAll(simple, `"`, `\"`) + `",` +
		`"input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"go"},{"type":"input_image","image_url":"data:image/png;base64,cG5n","detail":"auto"},` +
		`{"type":"input_file","filename":"b.pdf","file_data":"data:application/pdf;base64,cGRm"}]},` +
		`{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"Hm"}],"encrypted_content":"ENC=="},` +
		`{"type":"message","role":"assistant","content":"I look.","phase":"commentary"},` +
		`{"type":"function_call","call_id":"call_1","name":"read_file","arguments":"{\"path\":\"x\"}"},` +
		`{"type":"function_call","call_id":"call_2","name":"a_tool__` + safeName("a tool!", 64)[8:] + `","arguments":"{\"invalid_arguments\":\"{\\\"a\\\": oops\"}"},` +
		`{"type":"function_call_output","call_id":"call_1","output":[{"type":"input_text","text":"(no output)"},{"type":"input_image","image_url":"data:image/png;base64,cG5n","detail":"auto"}]},` +
		`{"type":"function_call_output","call_id":"call_2","output":"Error: no"}],` +
		`"tools":[{"type":"function","name":"read_file","description":"Reads.","parameters":{"type":"object","properties":{}},"strict":false}],"parallel_tool_calls":true,` +
		`"text":{"format":{"type":"json_schema","name":"answer","schema":{"additionalProperties":false,"properties":{"n":{"type":"integer"}},"required":["n"],"type":"object"},"strict":true}},` +
		`"max_output_tokens":77,"reasoning":{"summary":"auto"},"include":["reasoning.encrypted_content"],"prompt_cache_key":"` + cacheKey(req.Place) + `","store":false,"stream":true}` + "\n"
	is.Equal(got.raw, want)
	ordertest.AtMost(is, len(cacheKey(req.Place)), 64)
	is.True(!strings.Contains(got.raw, firstWorker)) // the key contains no id

	final := req
	final.Final, final.MaxTokens, final.Place.Turn, final.Place.Step = true, 3, 5, 0
	answered(t, m, final)
	is.Equal(p.got(t, 1).body["tool_choice"], "none")
	is.Equal(p.got(t, 1).body["tools"], got.body["tools"])                       // the provider has cached the tools
	is.Equal(p.got(t, 1).body["prompt_cache_key"], got.body["prompt_cache_key"]) // one key per task
	is.Equal(p.got(t, 1).body["max_output_tokens"], 16.0)                        // the minimum of the API
}

// TestResponsesReasoningComesBack checks that all later requests contain the reasoning
// unchanged.
func TestResponsesReasoningComesBack(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	thought := `"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"Hm"}],"encrypted_content":"gAAA=+/"`
	p := newProvider(t, streams(sse(item("added", 0, `"type":"reasoning","id":"rs_1","summary":[]`), piece("reasoning_summary_text", 0, "Hm"), item("done", 0, thought+`,"status":"completed"`),
		item("done", 1, `"type":"message","phase":"commentary","content":[{"text":"I look."}]`), item("done", 2, `"type":"function_call","call_id":"c","name":"f","arguments":"{}"`), responsesDone(""))))
	m := responsesAt(t, p.URL, quick())
	req := Request{Messages: []Message{user("hi")}}
	for turn := range 2 {
		resp := answered(t, m, req)
		said := Message{Role: RoleAssistant, Parts: resp.Parts}
		raw, err := json.Marshal(said) // in the form in which the journal stores it
		is.NoErr(err)
		var kept Message
		is.NoErr(json.Unmarshal(raw, &kept))
		req.Messages = append(req.Messages, kept, Message{Role: RoleTool, Parts: []Part{{Type: PartToolResult, CallID: resp.Parts[2].CallID, Text: "so"}}}, user("more"))
		answered(t, m, req)
		got := p.got(t, 2*turn+1).raw
		is.Equal(strings.Count(got, `{`+thought+`},{"type":"message","role":"assistant","content":"I look.","phase":"commentary"},{"type":"function_call"`), turn+1)
	}
}

// TestResponsesAdapts checks that later requests omit a rejected feature.
func TestResponsesAdapts(t *testing.T) {
	t.Parallel()
	fine := streams(responsesHello + sse(responsesDone("")))
	image := Part{Type: PartFile, Path: "a.png", MediaType: "image/png", Size: 3, Open: func() ([]byte, error) { return []byte("png"), nil }}
	m := responsesAt(t, "http://127.0.0.1:1", quick())
	thought := Message{Role: RoleAssistant, Parts: []Part{{Type: PartReasoning, Meta: sealMeta(m.Name(), responsesMeta{Item: &reasoningItem{Type: "reasoning", ID: "rs_1", Encrypted: "ENC"}})}, {Type: PartText, Text: "a"}}}
	checkAdapts(t, "responses", fine, map[string]adaptation{
		"no encrypted reasoning": {refuses(400, "Encrypted content is not supported with this model.", "include"), Request{}, "encrypted_content", "", false},
		"no summaries":           {refuses(400, "Unsupported parameter: 'reasoning.summary' is not supported with this model.", "reasoning.summary"), Request{}, `"summary"`, "", false},
		"no right to summaries":  {refuses(400, "Your organization must be verified to generate reasoning summaries.", "reasoning.summary"), Request{}, `"summary"`, "", false},
		"no cache key":           {refuses(400, "Unknown parameter: 'prompt_cache_key'.", "prompt_cache_key"), Request{Place: Place{Task: "t"}}, "prompt_cache_key", "", false},
		"a schema too odd":       {refuses(400, "Invalid schema for response_format 'answer'", "text.format.schema"), Request{OutputSchema: json.RawMessage(simple)}, `"format"`, "", false},
		"a limit too high":       {refuses(400, "max_output_tokens is too large", "max_output_tokens"), Request{MaxTokens: 9e5}, "max_output_tokens", "", false},
		"no images":              {refuses(400, "This model does not support image input", "input[0]"), Request{Messages: []Message{{Role: RoleUser, Parts: []Part{image}}}}, "input_image", "", false},
		"reasoning of old keys":  {refuses(400, "The encrypted content for item rs_1 could not be verified.", ""), Request{Messages: []Message{thought}}, "ENC", "", true}, // other conversations keep theirs
		"reasoning that is gone": {refuses(404, "Item with id 'rs_1' not found. Items are not persisted when `store` is set to false.", "input"), Request{Messages: []Message{thought}}, "ENC", "", true},
	})
	checkStubborn(t, "responses", fine, "reasoning.summary image_url prompt_cache_key schema max_output_tokens input_file", "/v1/responses")
}

// TestOpenAIAPI checks which API is selected for an address and for a user's choice.
func TestOpenAIAPI(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ address, choice, want string }{
		"OpenAI":            {"", "", "responses"},
		"OpenAI, by name":   {"https://api.openai.com/v1", "", "responses"},
		"chat at OpenAI":    {"", "chat", "chat"},
		"another server":    {"http://localhost:11434/v1", "", "chat"},
		"Responses at it":   {"https://x.openai.azure.com/openai/v1", "responses", "responses"},
		"OpenRouter":        {"https://openrouter.ai/api/v1", "", "openrouter"},
		"a proxy before it": {"http://localhost:4000", "openrouter", "openrouter"},
		"no such API":       {"", "assistants", ""},
	} {
		is := is.New(t)
		m, err := Open(Config{Model: "openai:m", Getenv: environment("OPENAI_API_KEY", "k", "OPENAI_BASE_URL", tt.address, openAIVariable, tt.choice)})
		got := ""
		switch o := m.(type) {
		case *responses:
			got = "responses"
		case *openAI:
			if got = "chat"; o.router {
				got = "openrouter"
			}
		}
		if got != tt.want || (err != nil) != (tt.want == "") {
			t.Errorf("%s: %q, %v", name, got, err)
		}
		is.True(err == nil || strings.Contains(err.Error(), "JOURNEYMAN_OPENAI_API is responses, chat or openrouter"))
	}
}

// FuzzResponses parses random streams.
func FuzzResponses(f *testing.F) {
	for _, seed := range []string{responsesHello + sse(responsesDone(responsesUsed)), sse(item("done", 0, `"type":"function_call","call_id":"c","name":"f","arguments":"{"`), responsesCut("max_output_tokens")),
		sse(item("added", 0, `"type":"reasoning"`), piece("reasoning_summary_text", 0, "x"), item("done", 0, `"type":"reasoning","summary":[],"encrypted_content":"E"`), responsesDone(`"output":[{"type":"message","content":[{"text":"y"}]}]`)),
		`{"error":{"message":"x"}}`, sse(`{"type":"error"}`), "data: {\"type\":\"response.failed\",\"response\":{\"error\":{\"code\":\"x_policy\"}}}"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, stream string) {
		var deltas []Delta
		s := &responseStream{assembler: assembler{emit: func(d Delta) { deltas = append(deltas, d) }}, name: "openai:m", used: map[string]bool{}}
		if s.read(strings.NewReader(stream)) != nil {
			return
		}
		resp, err := s.response(&Request{}, "m")
		if err != nil {
			return
		}
		addUp(t, resp.Parts, deltas)
		for _, p := range resp.Parts {
			if p.Type == PartToolCall && p.CallID == "" {
				t.Fatal("a call without an id")
			}
		}
	})
}
