package model

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store/ordertest"
)

const (
	ollamaHello = `{"model":"m","created_at":"2026-11-01T10:00:00Z","message":{"role":"assistant","content":"Hello"},"done":false}` + "\n"
	ollamaEnd   = `{"model":"m","created_at":"2026-11-01T10:00:01Z","message":{"role":"assistant","content":""},"done_reason":"stop","done":true,` +
		`"total_duration":883583458,"load_duration":1334875,"prompt_eval_count":26,"prompt_eval_duration":342546000,"eval_count":12,"eval_duration":535599000}` + "\n"
)

// lines returns an answer with these messages and a finish reason.
func lines(reason string, messages ...string) string {
	var b strings.Builder
	for _, m := range messages {
		b.WriteString(`{"model":"m","message":{"role":"assistant",` + m + `},"done":false}` + "\n")
	}
	return b.String() + strings.Replace(ollamaEnd, `"done_reason":"stop"`, `"done_reason":"`+reason+`"`, 1)
}

func ndjson(body string) http.HandlerFunc { return answers(200, "application/x-ndjson", body) }

// show returns a response of /api/show.
func show(context int, parameters string, capabilities ...string) string {
	can, _ := json.Marshal(capabilities)
	set, _ := json.Marshal(parameters)
	return fmt.Sprintf(`{"modelfile":"FROM x","parameters":%s,"template":"{{ .Prompt }}","details":{"family":"qwen3"},`+
		`"model_info":{"general.architecture":"qwen3","qwen3.block_count":36,"qwen3.vision.context_length":77,`+
		`"qwen3.context_length":%d,"tokenizer.ggml.tokens":null},"capabilities":%s}`, set, context, can)
}

// newOllama returns a fake Ollama server, which describes its model by shown.
func newOllama(t *testing.T, shown string, chat ...http.HandlerFunc) *provider {
	p := newProvider(t, chat...)
	p.about = map[string]string{"/api/show": shown, "/api/ps": `{"models":[]}`}
	return p
}

var allAbilities = []string{"completion", "tools", "thinking", "vision"}

func TestOllamaAnswers(t *testing.T) {
	t.Parallel()
	call := `{"function":{"index":0,"name":"read_file","arguments":{"path":"x"}}}`
	for name, tt := range map[string]struct {
		body   string
		parts  string // in the format of spell
		finish FinishReason
	}{
		"text":            {lines("stop", `"content":"Hel"`, `"content":"lo"`), "text:Hello", FinishStop},
		"thinking":        {lines("stop", `"content":"","thinking":"Hm"`, `"content":"","thinking":"m."`, `"content":"Hi"`), "reasoning:Hmm. text:Hi", FinishStop},
		"a call":          {lines("stop", `"content":"","tool_calls":[`+call+`]`), `tool-call:read_file{"path":"x"}`, FinishToolCalls},
		"text and calls":  {lines("stop", `"content":"Let me"`, `"content":"","tool_calls":[`+call+`,`+call+`]`), `text:Let me tool-call:read_file{"path":"x"} tool-call:read_file{"path":"x"}`, FinishToolCalls},
		"a call as text":  {lines("stop", `"content":"","tool_calls":[{"function":{"name":"f","arguments":"{\"a\":1}"}}]`), `tool-call:f{"a":1}`, FinishToolCalls},
		"no arguments":    {lines("stop", `"content":"","tool_calls":[{"function":{"name":"f","arguments":null}},{"function":{"name":"g"}}]`), `tool-call:f{} tool-call:g{}`, FinishToolCalls},
		"cut off":         {lines("length", `"content":"Hel"`), "text:Hel", FinishLength},
		"a call, cut off": {lines("length", `"content":"","tool_calls":[`+call+`]`), `tool-call:read_file{"path":"x"}`, FinishLength},
		"another reason":  {lines("unheard", `"content":"Hi"`), "text:Hi", FinishOther},
		"no stream":       {`{"model":"m","message":{"role":"assistant","content":"Hi"},"done":true,"done_reason":"stop","eval_count":1}`, "text:Hi", FinishStop},
		"blank lines":     {"\r\n" + strings.ReplaceAll(lines("stop", `"content":"Hi"`), "\n", "\r\n\r\n"), "text:Hi", FinishStop},
		"nothing":         {lines("stop"), "", FinishStop},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			resp := answered(t, ollamaAt(t, newOllama(t, show(40960, "", allAbilities...), ndjson(tt.body)).URL, quick()), Request{Messages: []Message{user("hi")}})
			is.Equal(spell(resp.Parts), tt.parts)
			is.Equal(resp.Finish, tt.finish)
			ordertest.Above(is, resp.Usage.InputTokens, 0) // counted or estimated
		})
	}
}

// TestOllamaCallIDs checks that calls without ids get ids, different ones in each answer.
func TestOllamaCallIDs(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	body := lines("stop", `"content":"","tool_calls":[{"function":{"name":"f","arguments":{}}},{"id":"call_own","function":{"name":"g","arguments":{}}},`+
		`{"id":"`+strings.Repeat("x", 65)+`","function":{"name":"h","arguments":{}}}]`)
	m := ollamaAt(t, newOllama(t, show(40960, "", allAbilities...), ndjson(body)).URL, quick())
	for range 2 { // equal requests must have equal answers
		resp := answered(t, m, Request{Messages: []Message{user("hi")}})
		is.Equal(resp.Parts[0].CallID, "call00000")
		is.Equal(resp.Parts[1].CallID, "call_own")
		is.Equal(resp.Parts[2].CallID, "call00002")
	}
	before := []Message{user("hi"), {Role: RoleAssistant, Parts: []Part{{Type: PartToolCall, CallID: "call00000", ToolName: "f", Input: []byte(`{}`)}}},
		{Role: RoleTool, Parts: []Part{{Type: PartToolResult, CallID: "call00000", ToolName: "f"}}}}
	resp := answered(t, m, Request{Messages: before})
	is.Equal(resp.Parts[0].CallID, "call00001")
}

func TestOllamaRequest(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	p := newOllama(t, show(40960, "", allAbilities...), ndjson(lines("stop", `"content":"","thinking":"Hm"`, `"content":"{\"n\":1}"`)))
	m := ollamaAt(t, p.URL, quick(), "OLLAMA_KEEP_ALIVE", "30m")
	resp := answered(t, m, Request{Messages: []Message{user("think")}})
	thought := resp.Parts[0]
	req := callAnd("found")
	req.Messages[1].Parts = append([]Part{thought}, req.Messages[1].Parts...)
	req.Messages[0].Parts = append(req.Messages[0].Parts, Part{Type: PartFile, Path: "p.png", MediaType: "image/png", Size: 3,
		Open: func() ([]byte, error) { return []byte("png"), nil }})
	req.Preamble, req.Instructions, req.MaxTokens = "You are.", "Be.", 500
	req.Tools = []Tool{{"read_file", "Reads.", json.RawMessage(`{"type":"object"}`)}}
	req.OutputSchema = json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}}}`)
	answered(t, m, req)
	body := p.got(t, 1).body
	is.Equal(p.got(t, 1).path, "/api/chat")
	is.Equal(p.got(t, 1).header.Get("Authorization"), "Bearer "+testKey)
	is.Equal(jsonText(t, body["options"]), `{"num_ctx":32768,"num_predict":500}`)
	is.Equal(jsonText(t, []any{body["think"], body["keep_alive"], body["stream"], body["truncate"], body["shift"], body["format"]}),
		`[true,"30m",true,false,false,null]`) // the model may still call a tool, so there is no format
	is.Equal(jsonText(t, body["tools"]), `[{"function":{"description":"Reads.","name":"read_file","parameters":{"properties":{},"type":"object"}},"type":"function"}]`)
	messages := body["messages"].([]any)
	is.True(strings.HasPrefix(jsonText(t, messages[0]), `{"content":"You are.\n\nBe.\n\nYour final answer must be one JSON`)) // system prompt
	is.Equal(jsonText(t, messages[1:]), `[{"content":"go","images":["cG5n"],"role":"user"},`+
		`{"content":"","role":"assistant","thinking":"Hm","tool_calls":[{"function":{"arguments":{"path":"x"},"name":"read_file"},"id":"call_1"}]},`+
		`{"content":"found","role":"tool","tool_call_id":"call_1","tool_name":"read_file"}]`)

	req.Final = true // the API has no tool choice
	answered(t, m, req)
	is.Equal(p.got(t, 2).body["tools"], nil)
	is.Equal(jsonText(t, p.got(t, 2).body["format"]), `{"properties":{"n":{"type":"integer"}},"type":"object"}`)
}

func TestOllamaSeesImagesOfTools(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	for ability, want := range map[string]string{
		"vision": `{"content":"a.png\n\nA file (image/gif, 9 bytes) is not shown here: only its name is sent.","images":["cG5n"],"role":"tool",`,
		"tools": `{"content":"a.png\n\nFile a.png (image/png, 3 bytes) lies in the workspace; its content is not shown here: ` +
			`the model ollama:m takes no pictures. A model that takes pictures is needed to see it.` +
			`\n\nA file (image/gif, 9 bytes) is not shown here: only its name is sent.","role":"tool",`,
	} {
		p := newOllama(t, show(40960, "", "completion", ability), ndjson(lines("stop", `"content":"ok"`)))
		answered(t, ollamaAt(t, p.URL, quick()), seen())
		is.True(strings.HasPrefix(jsonText(t, p.got(t, 0).body["messages"].([]any)[2]), want)) // the result
	}
}

// TestOllamaDescribes checks the capabilities that follow from model descriptions.
func TestOllamaDescribes(t *testing.T) {
	t.Parallel()
	full := Capabilities{ContextWindow: 32768, Tools: true, Vision: true, Thinking: true}
	window := func(n int64) Capabilities { c := full; c.ContextWindow = n; return c }
	for name, tt := range map[string]struct {
		shown string
		env   []string
		want  Capabilities
		think string // value of the field in the request
	}{
		"a large model":            {show(262144, "", allAbilities...), nil, full, "true"},
		"a small model":            {show(8192, "", allAbilities...), nil, window(8192), "true"},
		"its maker's choice":       {show(262144, "stop \"x y\"\nnum_ctx    65536", allAbilities...), nil, window(65536), "true"},
		"the operator's choice":    {show(262144, "num_ctx 65536", allAbilities...), []string{"OLLAMA_CONTEXT_LENGTH", "131072"}, window(131072), "true"},
		"more than the model has":  {show(8192, "", allAbilities...), []string{"OLLAMA_CONTEXT_LENGTH", "131072"}, window(8192), "true"},
		"a model elsewhere":        {strings.Replace(show(262144, "", allAbilities...), `{"modelfile"`, `{"remote_model":"big","modelfile"`, 1), nil, window(262144), "true"},
		"no tools":                 {show(8192, "", "completion"), nil, Capabilities{ContextWindow: 8192}, "null"},
		"an old server":            {`{"modelfile":"","parameters":"num_ctx 2048"}`, nil, Capabilities{ContextWindow: 2048, Tools: true, Vision: true}, "null"},
		"another family":           {`{"model_info":{"llama.context_length":4096},"capabilities":["tools"]}`, nil, Capabilities{ContextWindow: 4096, Tools: true}, "null"},
		"levels of thinking":       {strings.Replace(show(8192, "", allAbilities...), `{"modelfile"`, `{"thinking":{"values":["low","high"],"default":"low"},"modelfile"`, 1), nil, window(8192), `"low"`},
		"no thinking by default":   {strings.Replace(show(8192, "", allAbilities...), `{"modelfile"`, `{"thinking":{"values":[false,true],"default":false},"modelfile"`, 1), nil, window(8192), "true"},
		"numbers that are no size": {`{"parameters":"num_ctx -5","model_info":{"general.architecture":7,"x.context_length":-1},"capabilities":["tools"]}`, nil, Capabilities{ContextWindow: 32768, Tools: true}, "null"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			p := newOllama(t, tt.shown, ndjson(lines("stop", `"content":"ok"`)))
			m := ollamaAt(t, p.URL, quick(), tt.env...)
			can, err := m.Describe(t.Context())
			is.NoErr(err)
			is.Equal(can, tt.want)
			answered(t, m, Request{Messages: []Message{user("hi")}})
			is.Equal(jsonText(t, p.got(t, 0).body["options"]), fmt.Sprintf(`{"num_ctx":%d}`, tt.want.ContextWindow))
			is.Equal(jsonText(t, p.got(t, 0).body["think"]), tt.think)
		})
	}
}

// TestOllamaRefusals checks errors of real servers, and the solutions added to them.
func TestOllamaRefusals(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		chat      http.HandlerFunc
		code      string
		says      []string
		window    int64
		retryable bool
	}{
		"not pulled": {answers(404, "application/json", `{"error":"model \"m\" not found, try pulling it first"}`), "404", []string{"ollama pull m"}, 0, false},
		"no Ollama":  {answers(404, "text/plain", "404 page not found"), "404", []string{"does not answer as Ollama does"}, 0, false},
		"too long, 0.33": {answers(400, "application/json", `{"error":"{\"error\":{\"code\":400,\"message\":\"request (8889 tokens) exceeds the available context size (4096 tokens), try increasing it\",`+
			`\"type\":\"exceed_context_size_error\",\"n_prompt_tokens\":8889,\"n_ctx\":4096}}"}`), "context_length", []string{"about 8,889 tokens", "has 4,096 tokens", "OLLAMA_CONTEXT_LENGTH"}, 4096, false},
		"too long, no shift": {answers(400, "application/json", `{"error":"the prompt is longer than the context length currently available to the model"}`), "context_length", []string{"has 32,768 tokens"}, 32768, false},
		"too long, 0.12":     {answers(400, "application/json", `{"error":"the input length exceeds the context length"}`), "context_length", []string{"has 32,768 tokens"}, 32768, false},
		"too long, late":     {ndjson(ollamaHello + `{"error":"the input length exceeds the context length"}` + "\n"), "context_length", []string{"32,768"}, 32768, false},
		"memory": {answers(500, "application/json", `{"error":"model requires more system memory (9.6 GiB) than is available (3.1 GiB)"}`), "500",
			[]string{"9.6 GiB", "window of 32,768", "OLLAMA_CONTEXT_LENGTH"}, 0, false},
		"busy":           {answers(503, "application/json", `{"error":"server busy, please try again.  maximum pending requests exceeded"}`), "503", []string{"server busy"}, 0, true},
		"in the middle":  {ndjson(ollamaHello + `{"error":"llama runner process has terminated: exit status 2"}` + "\n"), "500", []string{"terminated"}, 0, true},
		"only loaded":    {ndjson(lines("load")), "stream", []string{"load"}, 0, true},
		"not a line":     {ndjson(ollamaHello + "oops\n" + ollamaEnd), "bad_response", []string{"not a line"}, 0, true},
		"a page":         {answers(200, "text/html", "<html>"), "web_page", []string{"a web page came in place of an answer of Ollama's API", "11434"}, 0, false},
		"an empty body":  {ndjson(""), "stream", []string{"broke off"}, 0, true},
		"a broken error": {answers(500, "application/json", `{"error":"{oops"}`), "500", []string{"{oops"}, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			p := newOllama(t, show(40960, "", allAbilities...), tt.chat)
			e := failure(t, ollamaAt(t, p.URL, quick()), Request{Messages: []Message{user("hi")}})
			is.Equal(e.Code, tt.code)
			for _, words := range tt.says {
				is.True(strings.Contains(e.Message, words)) // words
			}
			is.Equal(e.Window, tt.window)
			is.Equal(e.Retryable, tt.retryable)
			is.Equal(p.count(), 1)
		})
	}
}

// TestOllamaAdapts checks that a request is repeated without a rejected feature, which later
// requests omit.
func TestOllamaAdapts(t *testing.T) {
	t.Parallel()
	refused := func(message string) http.HandlerFunc {
		return answers(400, "application/json", `{"error":"`+message+`"}`)
	}
	shaped := Request{Messages: []Message{user("hi")}, OutputSchema: json.RawMessage(`{"type":"object"}`)}
	for name, tt := range map[string]struct {
		refusal http.HandlerFunc
		req     Request
		gone    string // the field that is missing in later requests
	}{
		"thinking": {refused(`\"m\" does not support thinking`), shaped, "think"},
		"a schema": {answers(500, "application/json", `{"error":"failed to parse grammar"}`), shaped, "format"},
		"images":   {answers(500, "application/json", `{"error":"this model is missing data required for image input"}`), seen(), "images"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			p := newOllama(t, show(40960, "", allAbilities...), tt.refusal, ndjson(lines("stop", `"content":"ok"`)))
			m := ollamaAt(t, p.URL, quick())
			for range 2 {
				answered(t, m, tt.req)
			}
			is.Equal(p.count(), 3) // the second call omits the feature
			for n, has := range []bool{true, false, false} {
				is.Equal(strings.Contains(p.got(t, n).raw, `"`+tt.gone+`":`), has)
			}
		})
	}
}

// An oldOllama is a server before 0.12.6, or behind a proxy that drops num_ctx. It cuts prompts
// to half of its window, and counts only the rest.
func oldOllama(t *testing.T, window int64) (url string, chats func() int) {
	p := newOllama(t, show(40960, "", allAbilities...), func(w http.ResponseWriter, r *http.Request) {
		left := fmt.Sprintf(`"prompt_eval_count":%d`, window/2+3)
		ndjson(strings.Replace(lines("stop", `"content":"What?"`), `"prompt_eval_count":26`, left, 1))(w, r)
	})
	p.about["/api/ps"] = fmt.Sprintf(`{"models":[{"name":"other:latest","context_length":512},{"name":"m:latest","model":"m:latest","context_length":%d}]}`, window)
	return p.URL, p.count
}

// TestOllamaLoadedWindow checks that the window that a server has actually loaded is detected.
// Later prompts that the server would cut are rejected.
func TestOllamaLoadedWindow(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	url, chats := oldOllama(t, 4096)
	m := ollamaAt(t, url, quick())
	answered(t, m, Request{Messages: []Message{user("short")}})
	can, err := m.Describe(t.Context())
	is.NoErr(err)
	is.Equal(can.ContextWindow, int64(4096))

	e := failure(t, m, Request{Messages: []Message{user(strings.Repeat("word ", 6000))}})
	is.True(e.TooLong())
	is.Equal(e.Window, int64(4096))
	is.True(strings.Contains(e.Message, "the prompt of about 6,000 tokens does not fit into the context window of ollama:m, which has 4,096 tokens"))
	is.Equal(chats(), 1) // the prompt was not sent
}

func TestOllamaHost(t *testing.T) {
	t.Parallel()
	for host, want := range map[string]string{
		"":                            "http://127.0.0.1:11434",
		"example.com":                 "http://example.com:11434",
		"example.com:56789":           "http://example.com:56789",
		"http://example.com":          "http://example.com:80",
		"https://example.com":         "https://example.com:443",
		"https://example.com:443/":    "https://example.com:443",
		"http://example.com:80/a/b":   "http://example.com:80/a/b",
		"1.2.3.4":                     "http://1.2.3.4:11434",
		"0.0.0.0":                     "http://127.0.0.1:11434",
		"0.0.0.0:80":                  "http://127.0.0.1:80",
		":8000":                       "http://127.0.0.1:8000",
		"::1":                         "http://[::1]:11434",
		"[::1]":                       "http://[::1]:11434",
		"[::1]:1337":                  "http://[::1]:1337",
		"[::]:1":                      "http://127.0.0.1:1",
		` "10.0.0.1" `:                "http://10.0.0.1:11434",
		"example.com:99x":             "",
		"ftp://example.com":           "",
		"http://":                     "",
		"http://user:secret@[::1]:x/": "",
	} {
		is := is.New(t)
		u, err := ollamaURL("OLLAMA_HOST", host)
		if want == "" {
			is.True(err != nil && !strings.Contains(err.Error(), "secret")) // host
			continue
		}
		is.NoErr(err)
		is.Equal(u.String(), want)
	}
}

// FuzzOllamaAnswer parses answers of hostile servers.
func FuzzOllamaAnswer(f *testing.F) {
	for _, seed := range []string{"", "{}", lines("stop", `"content":"Hi"`), ollamaHello + "oops", `{"error":{"message":1}}`,
		lines("length", `"content":"","tool_calls":[{"id":7,"function":{"name":"f","arguments":"{"}}]`, `"thinking":"x"`),
		`{"message":{"content":{"a":[1]},"tool_calls":[{},{}]},"done":true,"prompt_eval_count":-5,"eval_count":9e3}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, body string) {
		w := httptest.NewRecorder()
		ndjson(body)(w, nil)
		var deltas []Delta
		s := &ollamaStream{assembler: assembler{emit: func(d Delta) { deltas = append(deltas, d) }}, used: map[string]bool{}, name: "ollama:m"}
		if s.readAnswer(w.Result()) != nil {
			return
		}
		resp, err := s.response(&Request{}, "m")
		if err != nil {
			return
		}
		addUp(t, resp.Parts, deltas)
		if resp.Usage.InputTokens < 0 || resp.Usage.OutputTokens < 0 {
			t.Fatal("tokens below zero", resp.Usage)
		}
	})
}

// TestOllamaLoadsSlowly calls a server that loads its model before it answers.
func TestOllamaLoadsSlowly(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	p := newOllama(t, show(40960, "", allAbilities...), func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(150 * time.Millisecond) // simulates a slow server
		ndjson(lines("stop", `"content":"ready"`))(w, r)
	})
	patient := quick()
	patient.idle = 50 * time.Millisecond // only applies between two reads of the answer
	resp := answered(t, ollamaAt(t, p.URL, patient), Request{Messages: []Message{user("hi")}})
	is.Equal(spell(resp.Parts), "text:ready")
	is.Equal(resp.Usage, Usage{InputTokens: 26, OutputTokens: 12})
}
