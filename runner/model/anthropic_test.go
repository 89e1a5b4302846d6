package model

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/matryer/is"
)

// claudeEvent returns an event of the Messages API: its name and its data.
func claudeEvent(data string) string {
	var e struct {
		Type string `json:"type"`
	}
	_ = json.Unmarshal([]byte(data), &e)
	return "event: " + e.Type + "\ndata: " + data + "\n\n"
}

// claudeStart returns the beginning of a message with the given usage.
func claudeStart(usage string) string {
	return claudeEvent(`{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","content":[],"model":"claude-x-1","stop_reason":null,"stop_sequence":null,"usage":` + usage + `}}`)
}

// claudeBlocks returns complete content blocks: the start of each, its deltas and its end.
func claudeBlocks(blocks ...[]string) string {
	var b strings.Builder
	for i, block := range blocks {
		n := strconv.Itoa(i)
		b.WriteString(claudeEvent(`{"type":"content_block_start","index":` + n + `,"content_block":` + block[0] + `}`))
		for _, d := range block[1:] {
			b.WriteString(claudeEvent(`{"type":"content_block_delta","index":` + n + `,"delta":` + d + `}`))
		}
		b.WriteString(claudeEvent(`{"type":"content_block_stop","index":` + n + `}`))
	}
	return b.String()
}

// claudeStop returns the end of a message.
func claudeStop(delta, usage string) string {
	return claudeEvent(`{"type":"message_delta","delta":`+delta+`,"usage":`+usage+`}`) + claudeEvent(`{"type":"message_stop"}`)
}

func claudeEnd(stop string) string {
	return claudeEvent(`{"type":"content_block_stop","index":0}`) + claudeStop(`{"stop_reason":"`+stop+`","stop_sequence":null}`, `{"output_tokens":7}`)
}

// claudeSays returns a complete answer with one text.
func claudeSays(text string) string {
	return claudeStart(`{"input_tokens":10,"output_tokens":1}`) +
		claudeBlocks([]string{`{"type":"text","text":""}`, `{"type":"text_delta","text":` + strconv.Quote(text) + `}`}) +
		claudeStop(`{"stop_reason":"end_turn","stop_sequence":null}`, `{"output_tokens":7}`)
}

const oneUsage = `{"input_tokens":10,"output_tokens":1}`

func TestClaudeStreams(t *testing.T) {
	t.Parallel()
	endTurn := func(usage string) string { return claudeStop(`{"stop_reason":"end_turn","stop_sequence":null}`, usage) }
	text := []string{`{"type":"text","text":""}`, `{"type":"text_delta","text":"Hel"}`, `{"type":"text_delta","text":"lo"}`}
	for name, tt := range map[string]struct {
		stream string
		parts  string
		finish FinishReason
		usage  Usage
	}{
		"text with caching": {claudeStart(`{"input_tokens":10,"cache_creation_input_tokens":20,"cache_read_input_tokens":300,"output_tokens":1}`) + claudeEvent(`{"type":"ping"}`) + claudeBlocks(text) + endTurn(`{"output_tokens":7,"output_tokens_details":{"thinking_tokens":4}}`),
			"text:Hello", FinishStop, Usage{InputTokens: 330, OutputTokens: 7, CacheReadTokens: 300, CacheWriteTokens: 20, ReasoningTokens: 4}},
		"thinking": {claudeStart(oneUsage) + claudeBlocks([]string{`{"type":"thinking","thinking":"","signature":""}`, `{"type":"thinking_delta","thinking":"Hm"}`, `{"type":"thinking_delta","thinking":"m."}`, `{"type":"signature_delta","signature":"SIG"}`}, text) + endTurn(`{"output_tokens":7}`),
			"reasoning:Hmm. text:Hello", FinishStop, Usage{InputTokens: 10, OutputTokens: 7}},
		"thinking that is not shown": {claudeStart(oneUsage) + claudeBlocks([]string{`{"type":"thinking","thinking":"","signature":""}`, `{"type":"signature_delta","signature":"SIG"}`}, []string{`{"type":"redacted_thinking","data":"XYZ"}`}, text) + endTurn(`{"output_tokens":7}`),
			"reasoning: reasoning: text:Hello", FinishStop, Usage{InputTokens: 10, OutputTokens: 7}},
		"tools": {claudeStart(oneUsage) + claudeBlocks(text, []string{`{"type":"tool_use","id":"toolu_1","name":"f","input":{}}`, `{"type":"input_json_delta","partial_json":""}`, `{"type":"input_json_delta","partial_json":"{\"a\":"}`, `{"type":"input_json_delta","partial_json":"1}"}`},
			[]string{`{"type":"tool_use","id":"toolu_1","name":"g","input":{}}`}, []string{`{"type":"tool_use","id":"toolu_3","name":"h","input":{"whole":true}}`}) + claudeStop(`{"stop_reason":"tool_use"}`, `{"output_tokens":7}`),
			`text:Hello tool-call:f{"a":1} tool-call:g{} tool-call:h{"whole":true}`, FinishToolCalls, Usage{InputTokens: 10, OutputTokens: 7}},
		"interleaved blocks": {claudeStart(oneUsage) + claudeEvent(`{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"a","name":"f","input":{}}}`) + claudeEvent(`{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"b","name":"g","input":{}}}`) +
			claudeEvent(`{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"b\":2"}}`) + claudeEvent(`{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"a\":1}"}}`) +
			claudeEvent(`{"type":"content_block_stop","index":0}`) + claudeEvent(`{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"}"}}`) + claudeEvent(`{"type":"content_block_stop","index":1}`) + claudeStop(`{"stop_reason":"tool_use"}`, `{"output_tokens":7}`),
			`tool-call:f{"a":1} tool-call:g{"b":2}`, FinishToolCalls, Usage{InputTokens: 10, OutputTokens: 7}},
		"unknown blocks": {claudeStart(oneUsage) + claudeBlocks([]string{`{"type":"server_tool_use","id":"s","name":"web_search","input":{}}`, `{"type":"input_json_delta","partial_json":"{}"}`}, []string{`{"type":"of_tomorrow"}`, `{"type":"of_tomorrow_delta","x":1}`}, text) + endTurn(`{"output_tokens":7}`),
			"text:Hello", FinishStop, Usage{InputTokens: 10, OutputTokens: 7}},
		"unknown events": {claudeEvent(`{"type":"of_tomorrow","x":{"y":1}}`) + ": comment\n\n" + claudeStart(oneUsage) + claudeBlocks(text) + endTurn(`{"output_tokens":7}`), "text:Hello", FinishStop, Usage{InputTokens: 10, OutputTokens: 7}},
		"other types": {claudeStart(`{"input_tokens":"10","output_tokens":1}`) + claudeBlocks(text) + claudeStop(`{"stop_reason":"end_turn","stop_details":"none"}`, `{"output_tokens":7}`),
			"text:Hello", FinishStop, Usage{InputTokens: 10, OutputTokens: 7}},
		"max_tokens":       {claudeStart(oneUsage) + claudeBlocks(text) + claudeStop(`{"stop_reason":"max_tokens"}`, `{"output_tokens":7}`), "text:Hello", FinishLength, Usage{InputTokens: 10, OutputTokens: 7}},
		"window exceeded":  {claudeStart(oneUsage) + claudeBlocks(text) + claudeStop(`{"stop_reason":"model_context_window_exceeded"}`, `{"output_tokens":7}`), "text:Hello", FinishLength, Usage{InputTokens: 10, OutputTokens: 7}},
		"refusal":          {claudeStart(oneUsage) + claudeBlocks(text) + claudeStop(`{"stop_reason":"refusal"}`, `{"output_tokens":7}`), "text:Hello", FinishRefused, Usage{InputTokens: 10, OutputTokens: 7}},
		"arguments cut":    {claudeStart(oneUsage) + claudeBlocks([]string{`{"type":"tool_use","id":"t","name":"f","input":{}}`, `{"type":"input_json_delta","partial_json":"{\"a\":\"b"}`}) + claudeStop(`{"stop_reason":"max_tokens"}`, `{"output_tokens":7}`), `tool-call:f{"a":"b`, FinishLength, Usage{InputTokens: 10, OutputTokens: 7}},
		"usage at the end": {claudeStart(`{"input_tokens":0,"output_tokens":0}`) + claudeBlocks(text) + endTurn(`{"input_tokens":12,"cache_read_input_tokens":3,"output_tokens":7}`), "text:Hello", FinishStop, Usage{InputTokens: 15, OutputTokens: 7, CacheReadTokens: 3}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			p := newProvider(t, streams(tt.stream))
			resp := answered(t, claudeAt(t, p.URL, quick()), Request{Messages: []Message{user("hi")}})
			is.Equal(spell(resp.Parts), tt.parts)
			is.Equal(resp.Finish, tt.finish)
			is.Equal(resp.Usage, tt.usage)
			is.Equal(resp.Model, "claude-x-1")
			uniqueIDs(t, resp.Parts)
		})
	}
}

func TestClaudeBrokenStreams(t *testing.T) {
	t.Parallel()
	begun := claudeStart(oneUsage) + claudeEvent(`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`) + claudeEvent(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a"}}`)
	checkBroken(t, "anthropic", map[string]brokenStream{
		"cut":            {cut(begun), "stream", "broke off", true},
		"ended early":    {streams(begun), "stream", "broke off", true},
		"ended at once":  {streams(""), "stream", "broke off", true},
		"overloaded":     {streams(begun + claudeEvent(`{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`)), "529", "Overloaded", true},
		"fault":          {streams(claudeEvent(`{"type":"error","error":{"type":"api_error","message":"Internal"}}`)), "500", "Internal", true},
		"unknown fault":  {streams(begun + "event: error\ndata: hm\n\n"), "500", "hm", true},
		"bad request":    {streams(claudeEvent(`{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 1 > 0"}}`)), "context_length", "too long", false},
		"no JSON":        {streams(begun + "event: content_block_delta\ndata: oops\n\n"), "bad_response", "not JSON", true},
		"a page":         {answers(200, "text/html", "<html>Welcome</html>"), "web_page", "base URL", false},
		"refused at all": {streams(claudeStart(oneUsage) + claudeStop(`{"stop_reason":"refusal","stop_details":{"type":"refusal","category":"bio","explanation":"This is about germs."}}`, `{"output_tokens":0}`)), "refused", "germs", false},
	})
}

// jsonText marshals a part of a request for comparison.
func jsonText(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	is.New(t).NoErr(err)
	return string(raw)
}

func TestClaudeRequest(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	p := newProvider(t, streams(claudeSays("x")))
	m := claudeAt(t, p.URL+"/v1", quick())
	req := callAnd("")
	req.Preamble, req.Instructions, req.MaxTokens = "P", "I", 77
	req.Tools = []Tool{{Name: "read_file", Description: "Reads.", InputSchema: json.RawMessage(`{"type":"object","x":1}`)}}
	req.OutputSchema = json.RawMessage(simple)
	req.Messages[0].Parts = append(req.Messages[0].Parts,
		Part{Type: PartFile, Path: "a.png", MediaType: "image/png", Size: 3, Open: func() ([]byte, error) { return []byte("png"), nil }},
		Part{Type: PartFile, Path: "b.pdf", MediaType: "application/pdf", Size: 3, Open: func() ([]byte, error) { return []byte("pdf"), nil }},
		Part{Type: PartFile, Path: "c.csv", MediaType: "text/csv", Size: 3, Open: func() ([]byte, error) { return []byte("x,y"), nil }})
	req.Messages[1].Parts = []Part{
		{Type: PartReasoning, Text: "Hm", Meta: sealMeta(m.Name(), claudeMeta{Signature: "SIG"})},
		{Type: PartReasoning, Meta: sealMeta(m.Name(), claudeMeta{Redacted: "XYZ"})},
		{Type: PartReasoning, Text: "of another", Meta: sealMeta("anthropic:other", claudeMeta{Signature: "OTHER"})},
		{Type: PartReasoning, Text: "of nobody"},
		{Type: PartText, Text: " \n"},
		{Type: PartToolCall, CallID: "functions.f:0", ToolName: "read_file", Input: json.RawMessage(`{"path":"x"}`)},
	}
	req.Messages[2].Parts[0].CallID = "functions.f:0"
	req.Messages = append(req.Messages, user("again"))
	answered(t, m, req)
	got := p.got(t, 0)
	is.Equal(got.path, "/v1/messages")
	is.Equal(got.header.Get("X-Api-Key"), testKey)
	is.Equal(got.header.Get("Authorization"), "")
	b := got.body
	id := safeName("functions.f:0", 64)
	mark := `"cache_control":{"type":"ephemeral"}`
	is.Equal(jsonText(t, b["messages"]), `[{"content":[{"text":"go","type":"text"},{"source":{"data":"cG5n","media_type":"image/png","type":"base64"},"type":"image"},`+
		`{"source":{"data":"cGRm","media_type":"application/pdf","type":"base64"},"title":"b.pdf","type":"document"},{`+mark+`,"text":"File c.csv:\n\nx,y","type":"text"}],"role":"user"},`+
		`{"content":[{"signature":"SIG","thinking":"Hm","type":"thinking"},{"data":"XYZ","type":"redacted_thinking"},{"id":"`+id+`","input":{"path":"x"},"name":"read_file","type":"tool_use"}],"role":"assistant"},`+
		`{"content":[{"content":[{"text":"(no output)","type":"text"}],"is_error":false,"tool_use_id":"`+id+`","type":"tool_result"},{`+mark+`,"text":"again","type":"text"}],"role":"user"}]`)
	is.True(strings.HasPrefix(jsonText(t, b["system"]), `[{`+mark+`,"text":"P\n\nI\n\nYour final answer`))
	is.Equal(jsonText(t, b["tools"]), `[{"description":"Reads.","input_schema":{"properties":{},"type":"object"},"name":"read_file"}]`)
	is.Equal(jsonText(t, b["output_config"]), `{"format":{"schema":`+`{"additionalProperties":false,"properties":{"n":{"type":"integer"}},"required":["n"],"type":"object"}`+`,"type":"json_schema"}}`)
	is.Equal(jsonText(t, b["thinking"]), `{"display":"summarized","type":"adaptive"}`)
	is.Equal(b["max_tokens"], 77.0)
	is.Equal(b["stream"], true)

	req.Final = true
	answered(t, m, req)
	last := p.got(t, 1).body
	is.Equal(last["tools"], b["tools"]) // the provider has cached tools and system
	is.Equal(last["system"], b["system"])
	is.Equal(jsonText(t, last["tool_choice"]), `{"type":"none"}`)

	req.Tools, req.MaxTokens = nil, 0
	answered(t, m, req)
	b = p.got(t, 2).body
	is.Equal(jsonText(t, b["tools"]), `[{"input_schema":{"type":"object"},"name":"read_file"}]`) // those of the conversation
	is.Equal(jsonText(t, b["tool_choice"]), `{"type":"none"}`)
	is.Equal(b["max_tokens"], 128000.0) // the model's own limit
}

func TestClaudeAdapts(t *testing.T) {
	t.Parallel()
	refuses := func(message string) http.HandlerFunc {
		return answers(400, "application/json", `{"type":"error","error":{"type":"invalid_request_error","message":`+strconv.Quote(message)+`},"request_id":"req_1"}`)
	}
	fine := streams(claudeSays("x"))
	checkAdapts(t, "anthropic", fine, map[string]adaptation{
		"limit of the model": {refuses("max_tokens: 128000 > 64000, which is the maximum allowed number of output tokens for claude-x"), Request{}, "128000", `"max_tokens":64000`, false},
		"room in the window": {refuses("input length and `max_tokens` exceed context limit: 190000 + 128000 > 200000, decrease input length or `max_tokens` and try again"), Request{}, "128000", `"max_tokens":10000`, true},
		"no thinking":        {refuses("adaptive thinking is not supported on this model"), Request{}, `"thinking"`, `"stream":true`, false},
		"no schema":          {refuses("output_config.format.schema: For 'object' type, ..."), Request{OutputSchema: json.RawMessage(simple)}, `"output_config"`, "meets the following JSON Schema", false},
		"thoughts refused": {refuses("messages.1.content.0: Invalid `signature` in `thinking` block"), Request{Messages: []Message{user("a"), {Role: RoleAssistant, Parts: []Part{{Type: PartReasoning, Text: "Hm", Meta: sealMeta("anthropic:claude-sonnet-5-5", claudeMeta{Signature: "OLD"})}, {Type: PartText, Text: "b"}}}}},
			"OLD", `"adaptive"`, true},
	})
	// vLLM and LiteLLM serve other models under this API, with refusals of their own.
	t.Run("another server's window", func(t *testing.T) {
		t.Parallel()
		is := is.New(t)
		p := newProvider(t, refuses("'max_tokens' or 'max_completion_tokens' is too large: 128000. This model's maximum context length is 8192 tokens and your request has 5000 input tokens (128000 > 8192 - 5000)."), fine)
		m := claudeAt(t, p.URL, quick())
		is.Equal(answered(t, m, Request{Messages: []Message{user("hi")}}).Window, int64(8192)) // the runner narrows its window
		is.Equal(p.got(t, 1).body["max_tokens"], 3192.0)
		is.Equal(answered(t, m, Request{Messages: []Message{user("hi")}}).Window, int64(0))
		is.Equal(p.got(t, 2).body["max_tokens"], 128000.0) // what is left is not remembered
	})
	t.Run("a lower bound of the prompt", func(t *testing.T) {
		t.Parallel()
		is := is.New(t)
		p := newProvider(t, refuses("This model's maximum context length is 8192 tokens. However, you requested 4096 output tokens and your prompt contains at least 4097 input tokens, for a total of at least 8193 tokens."), fine)
		answered(t, claudeAt(t, p.URL, quick()), Request{MaxTokens: 4096, Messages: []Message{user("hi")}})
		is.Equal(p.got(t, 1).body["max_tokens"], 2048.0)
	})
	t.Run("another server's limit", func(t *testing.T) {
		t.Parallel()
		is := is.New(t)
		p := newProvider(t, refuses("max_tokens is too large: 128000. This model supports at most 16384 completion tokens, whereas you provided 128000."), fine)
		m := claudeAt(t, p.URL, quick())
		for n := range 2 {
			is.Equal(answered(t, m, Request{Messages: []Message{user("hi")}}).Window, int64(0))
			is.Equal(p.got(t, n+1).body["max_tokens"], 16384.0) // it is remembered
		}
	})
	t.Run("another server without room", func(t *testing.T) {
		t.Parallel()
		is := is.New(t)
		p := newProvider(t, refuses("'max_tokens' is too large: 1000. This model's maximum context length is 8192 tokens and your request has 8000 input tokens (1000 > 8192 - 8000)."))
		e := failure(t, claudeAt(t, p.URL, quick()), Request{MaxTokens: 1000, Messages: []Message{user("hi")}})
		is.True(e.TooLong())
		is.Equal(e.Window, int64(8192))
		is.Equal(p.count(), 1)
	})
	t.Run("no room at all", func(t *testing.T) {
		t.Parallel()
		is := is.New(t)
		p := newProvider(t, refuses("input length and `max_tokens` exceed context limit: 199900 + 128000 > 200000, decrease input length"))
		is.Equal(failure(t, claudeAt(t, p.URL, quick()), Request{Messages: []Message{user("hi")}}).Code, "context_length")
		is.Equal(p.count(), 1)
	})
}

// TestClaudePauses checks that a paused model is asked to continue, and that the result is one
// answer.
func TestClaudePauses(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	pause := claudeStart(oneUsage) + claudeBlocks([]string{`{"type":"thinking","thinking":"","signature":""}`, `{"type":"thinking_delta","thinking":"Hm"}`, `{"type":"signature_delta","signature":"SIG"}`}, []string{`{"type":"text","text":"One "}`}) +
		claudeStop(`{"stop_reason":"pause_turn"}`, `{"output_tokens":7}`)
	p := newProvider(t, streams(pause), streams(claudeSays("two.")))
	m := claudeAt(t, p.URL, quick())
	resp := answered(t, m, Request{Messages: []Message{user("hi")}})
	is.Equal(spell(resp.Parts), "reasoning:Hm text:One  text:two.")
	is.Equal(resp.Usage, Usage{InputTokens: 20, OutputTokens: 14})
	is.True(strings.Contains(jsonText(t, p.got(t, 1).body["messages"]), `{"content":[{"signature":"SIG","thinking":"Hm","type":"thinking"},{"text":"One ","type":"text"}],"role":"assistant"}]`))

	p.answers = []http.HandlerFunc{streams(pause)}
	resp = answered(t, m, Request{Messages: []Message{user("hi")}})
	is.Equal(len(resp.Parts), 2*(maxPauses+1)) // the number of pauses is limited
}

func TestClaudeModelsBeforeAdaptiveThinking(t *testing.T) {
	t.Parallel()
	for name, old := range map[string]bool{
		"claude-3-5-sonnet-20241022": true, "claude-opus-4-20250514": true, "claude-opus-4-1": true, "claude-sonnet-4-5-20250929": true, "claude-haiku-4-5": true,
		"claude-opus-4-6": false, "claude-sonnet-4-6": false, "claude-opus-4-8": false, "claude-sonnet-5": false, "claude-haiku-5-5": false, "claude-fable-5": false,
	} {
		is.New(t).Equal(beforeAdaptive.MatchString(name), old)
	}
}
