package model

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store/ordertest"
)

// testKey is the key of the providers in tests. Only headers may contain it.
const testKey = "sk-test-secret-0123456789"

// quick returns timeouts for tests that do not test timeouts.
func quick() timeouts {
	return timeouts{connect: 5 * time.Second, header: 10 * time.Second, idle: 10 * time.Second, linger: 50 * time.Millisecond}
}

// A provider is a fake model server. It stores the requests and sends the n-th answer to the
// n-th one. After the last answer, it repeats that answer.
type provider struct {
	*httptest.Server
	mu       sync.Mutex
	requests []asked
	answers  []http.HandlerFunc
	about    map[string]string // Ollama's responses about models, by path; they are not counted
}

// asked is a request that the provider has received.
type asked struct {
	path   string
	header http.Header
	body   map[string]any
	raw    string
}

func newProvider(t *testing.T, answers ...http.HandlerFunc) *provider {
	t.Helper()
	p := &provider{answers: answers}
	p.Server = httptest.NewServer(p)
	t.Cleanup(p.Close)
	return p
}

// ServeHTTP sends the next answer.
func (p *provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	raw, _ := io.ReadAll(r.Body)
	if strings.HasPrefix(r.URL.Path, "/api/") && r.URL.Path != "/api/chat" {
		answers(200, "application/json", cmp.Or(p.about[r.URL.Path], "{}"))(w, r)
		return
	}
	a := asked{path: r.URL.Path, header: r.Header, raw: string(raw)}
	_ = json.Unmarshal(raw, &a.body)
	p.mu.Lock()
	p.requests = append(p.requests, a)
	answer := p.answers[min(len(p.requests), len(p.answers))-1]
	p.mu.Unlock()
	answer(w, r)
}

// got returns the n-th request.
func (p *provider) got(t *testing.T, n int) asked {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if n >= len(p.requests) {
		t.Fatalf("%d requests came, no number %d", len(p.requests), n)
	}
	return p.requests[n]
}

func (p *provider) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.requests)
}

// streams responds with an event stream.
func streams(body string) http.HandlerFunc { return answers(200, "text/event-stream", body) }

// answers responds with a status, a body and more headers, as names and values.
func answers(status int, contentType, body string, more ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", contentType)
		for i := 0; i+1 < len(more); i += 2 {
			w.Header().Set(more[i], more[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// cut responds with the bytes and closes the connection.
func cut(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, body)
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
}

// environment returns a Getenv with these variables.
func environment(pairs ...string) func(string) string {
	return func(name string) string {
		for i := 0; i+1 < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1]
			}
		}
		return ""
	}
}

// openAIAt opens a model of an OpenAI-compatible server.
func openAIAt(t *testing.T, url string, p timeouts) *openAI {
	t.Helper()
	m, err := openOpenAI("m", Config{Getenv: environment("OPENAI_BASE_URL", url, "OPENAI_API_KEY", testKey)}, p)
	is.New(t).NoErr(err)
	o := m.(*openAI)
	t.Cleanup(o.client.CloseIdleConnections)
	return o
}

// claudeAt opens a model of a server with Anthropic's API.
func claudeAt(t *testing.T, url string, p timeouts) *claude {
	t.Helper()
	m, err := openAnthropic("claude-sonnet-5-5", Config{Getenv: environment("ANTHROPIC_BASE_URL", url, "ANTHROPIC_API_KEY", testKey)}, p)
	is.New(t).NoErr(err)
	return m.(*claude)
}

// ollamaAt opens a model of an Ollama server.
func ollamaAt(t *testing.T, url string, p timeouts, env ...string) *ollama {
	t.Helper()
	env = append(env, "OLLAMA_HOST", url, "OLLAMA_API_KEY", testKey)
	m, err := openOllama("m", Config{Getenv: environment(env...)}, p)
	is.New(t).NoErr(err)
	return m.(*ollama)
}

// A wire is a wire format for the common tests.
type wire struct {
	at    func(t *testing.T, url string, p timeouts) Model
	kind  string // media type of its streams
	hello string // beginning of an answer, with the text Hello
	end   string // rest of the answer
	line  string // beginning of a line
}

// wires returns the wire formats by name.
func wires() map[string]wire {
	return map[string]wire{
		"openai": {func(t *testing.T, url string, p timeouts) Model { return openAIAt(t, url, p) }, "text/event-stream",
			openAIHello, sse(finished("stop"), done), "data: \""},
		"responses": {func(t *testing.T, url string, p timeouts) Model { return responsesAt(t, url, p) }, "text/event-stream",
			responsesHello, sse(responsesDone(``)), "data: \""},
		"anthropic": {func(t *testing.T, url string, p timeouts) Model { return claudeAt(t, url, p) }, "text/event-stream",
			claudeHello, claudeEnd("end_turn"), "data: \""},
		"ollama": {func(t *testing.T, url string, p timeouts) Model { return ollamaAt(t, url, p) }, "application/x-ndjson",
			ollamaHello, ollamaEnd, `{"message":{"content":"`},
	}
}

// ask makes a call and checks that the deltas add up to the response.
func ask(t *testing.T, m Model, req Request) (Response, error) {
	t.Helper()
	var deltas []Delta
	resp, err := m.Generate(context.Background(), req, func(d Delta) { deltas = append(deltas, d) })
	if err != nil {
		if strings.Contains(err.Error(), testKey) {
			t.Fatal("the error holds the key")
		}
		return resp, err
	}
	addUp(t, resp.Parts, deltas)
	return resp, nil
}

// answered makes a call, as ask does, that must not fail.
func answered(t *testing.T, m Model, req Request) Response {
	t.Helper()
	resp, err := ask(t, m, req)
	is.New(t).NoErr(err)
	return resp
}

// failure makes a call, as ask does, and returns its error. The call must fail.
func failure(t *testing.T, m Model, req Request) *Error {
	t.Helper()
	_, err := ask(t, m, req)
	return asFailure(t, err)
}

// addUp checks the rules of Model for emit.
func addUp(t *testing.T, parts []Part, deltas []Delta) {
	t.Helper()
	texts := make([]string, len(parts))
	at := 0
	for _, d := range deltas {
		if d.Part < at || d.Part > at+1 || d.Part >= len(parts) {
			t.Fatalf("a delta of part %d after part %d of %d", d.Part, at, len(parts))
		}
		at = d.Part
		p := parts[at]
		if d.Type != p.Type || d.CallID != p.CallID || d.ToolName != p.ToolName {
			t.Fatalf("delta %+v of part %+v", d, p)
		}
		texts[at] += d.Text
	}
	for i, p := range parts {
		if texts[i] != p.Text+string(p.Input) {
			t.Fatalf("part %d is %q, its deltas are %q", i, p.Text+string(p.Input), texts[i])
		}
	}
}

// uniqueIDs checks that each call has an id of its own.
func uniqueIDs(t *testing.T, parts []Part) {
	t.Helper()
	ids := map[string]bool{}
	for _, part := range parts {
		is.New(t).True(part.Type != PartToolCall || part.CallID != "" && !ids[part.CallID])
		ids[part.CallID] = true
	}
}

// asFailure returns err as an *Error, or fails the test.
func asFailure(t *testing.T, err error) *Error {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) {
		t.Fatalf("not an *Error: %v", err)
	}
	return e
}

// An wireAnswer is an answer in some wire format, and what it contains.
type wireAnswer struct {
	stream, parts string // parts are in the format of spell
	finish        FinishReason
}

// checkStreams makes a call for each answer. An answer that contains counted has the given usage.
func checkStreams(t *testing.T, format, counted string, usage Usage, cases map[string]wireAnswer) {
	t.Helper()
	for name, tt := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			answer := streams(tt.stream)
			if name == "no stream" {
				answer = answers(200, "application/json; charset=utf-8", tt.stream)
			}
			resp := answered(t, wires()[format].at(t, newProvider(t, answer).URL, quick()), Request{Messages: []Message{user("hi")}})
			is.Equal(spell(resp.Parts), tt.parts)
			is.Equal(resp.Finish, tt.finish)
			uniqueIDs(t, resp.Parts)
			if strings.Contains(tt.stream, counted) {
				is.Equal(resp.Usage, usage)
				is.Equal(resp.Model, "m-1")
			}
			ordertest.Above(is, resp.Usage.InputTokens, 0)  // estimated if unknown
			ordertest.Above(is, resp.Usage.OutputTokens, 0) // the answer is not counted
		})
	}
}

// A brokenStream is an answer without a complete response, and the error of the call.
type brokenStream struct {
	answer     http.HandlerFunc
	code, says string
	retryable  bool
}

// checkBroken makes a call for each answer, and checks its error.
func checkBroken(t *testing.T, format string, cases map[string]brokenStream) {
	t.Helper()
	for name, tt := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			resp, err := ask(t, wires()[format].at(t, newProvider(t, tt.answer).URL, quick()), Request{Messages: []Message{user("hi")}})
			e := asFailure(t, err)
			is.Equal(e.Code, tt.code)
			is.True(strings.Contains(e.Message, tt.says))
			is.Equal(e.Retryable, tt.retryable)
			if format == "responses" && strings.HasPrefix(name, "failed") {
				is.Equal(resp.Usage.OutputTokens, int64(12)) // a failed call costs money, too
			}
		})
	}
}

// callAnd returns a request whose conversation ends with the result of a tool call.
func callAnd(result string) Request {
	return Request{Messages: []Message{
		user("go"),
		{Role: RoleAssistant, Parts: []Part{{Type: PartToolCall, CallID: "call_1", ToolName: "read_file", Input: json.RawMessage(`{"path":"x"}`)}}},
		{Role: RoleTool, Parts: []Part{{Type: PartToolResult, CallID: "call_1", ToolName: "read_file", Text: result}}},
	}}
}

// TestStatuses checks error responses, which differ between providers only in the form of the
// body.
func TestStatuses(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		status    int
		kind      string
		body      string
		header    []string
		code      string
		says      string
		retryable bool
		after     time.Duration
	}{
		"bad key":            {401, "", `{"error":{"message":"Incorrect API key provided: ` + testKey + `."}}`, nil, "401", "Incorrect API key provided: [key].", false, 0},
		"no right":           {403, "", `{"error":{"message":"Not yours"}}`, nil, "403", "Not yours", false, 0},
		"no such model":      {404, "", `{"error":{"message":"The model m does not exist","code":"model_not_found"}}`, nil, "404", "does not exist", false, 0},
		"rate limit":         {429, "", `{"error":{"message":"Slow down"}}`, []string{"Retry-After", "7"}, "429", "Slow down", true, 7 * time.Second},
		"in milliseconds":    {429, "", `{"error":{"message":"Slow down"}}`, []string{"Retry-After", "9", "Retry-After-Ms", "250.5"}, "429", "Slow down", true, 250500 * time.Microsecond},
		"a wait below zero":  {429, "", `{"error":{"message":"Slow down"}}`, []string{"Retry-After", "-5"}, "429", "Slow down", true, 0},
		"no number":          {429, "", `{"error":{"message":"Slow down"}}`, []string{"Retry-After", "NaN"}, "429", "Slow down", true, 0},
		"an endless wait":    {429, "", `{"error":{"message":"Slow down"}}`, []string{"Retry-After", "1e300"}, "429", "Slow down", true, 24 * time.Hour},
		"empty purse":        {429, "", `{"error":{"message":"You exceeded your current quota","code":"insufficient_quota"}}`, nil, "429", "quota", false, 0},
		"server fault":       {500, "", `{"error":{"message":"Boom"}}`, nil, "500", "Boom", true, 0},
		"nothing said":       {503, "", ``, []string{"Retry-After", "2"}, "503", "503 Service Unavailable", true, 2 * time.Second},
		"a page":             {502, "text/html", "<html><body><h1>Bad gateway</h1></body></html>", nil, "502", "502 Bad Gateway", true, 0},
		"a page without say": {502, "text/plain", "<!DOCTYPE html><p>x", nil, "502", "502 Bad Gateway", true, 0},
		"plain text":         {504, "text/plain", "upstream  timed\nout", nil, "504", "upstream timed out", true, 0},
		"overloaded":         {529, "", `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, nil, "529", "Overloaded", true, 0},
		"not there":          {501, "", `{}`, nil, "501", "501 Not Implemented", false, 0},
		"a bare string":      {400, "", `{"error":"invalid thing"}`, nil, "400", "invalid thing", false, 0},
		"as FastAPI":         {422, "", `{"detail":"no such field"}`, nil, "422", "no such field", false, 0},
		"as Google":          {400, "", `[{"error":{"code":400,"message":"bad thing","status":"INVALID_ARGUMENT"}}]`, nil, "400", "bad thing", false, 0},
		"redirect":           {307, "", ``, []string{"Location", "https://elsewhere.example/v1"}, "307", "redirects", false, 0},
		"length, by code":    {400, "", `{"error":{"message":"too many","code":"context_length_exceeded"}}`, nil, "context_length", "too many", false, 0},
		"length, vLLM":       {400, "", `{"object":"error","message":"This model's maximum context length is 4096 tokens. However, you requested 5000 tokens","code":400}`, nil, "context_length", "4096", false, 0},
		"length, llama.cpp":  {400, "", `{"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error"}}`, nil, "context_length", "available context", false, 0},
		"length, Anthropic":  {400, "", `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}`, nil, "context_length", "too long", false, 0},
		"too large":          {413, "", `{"type":"error","error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}`, nil, "context_length", "maximum size", false, 0},
		"length, xAI":        {400, "", `{"error":"This model's maximum prompt length is 131072 but the request contains 537812 tokens."}`, nil, "context_length", "131072", false, 0},
		"a long message":     {400, "text/plain", strings.Repeat("ä ", 5000), nil, "400", "ä ä", false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kind := cmp.Or(tt.kind, "application/json")
			p := newProvider(t, answers(tt.status, kind, tt.body, tt.header...))
			for _, w := range wires() {
				is := is.New(t)
				e := failure(t, w.at(t, p.URL+"/", quick()), Request{Messages: []Message{user("hi")}})
				is.Equal(e.Code, tt.code)
				is.True(strings.Contains(e.Message, tt.says))     // the message of the provider
				ordertest.Below(is, len(e.Message), 2*maxMessage) // the message is too long
				is.Equal(e.Retryable, tt.retryable)
				is.Equal(e.RetryAfter, tt.after)
			}
			is.New(t).Equal(p.count(), len(wires())) // Generate does not retry
		})
	}
}

// hangs responds with the bytes and then waits until the client disconnects.
func hangs(body string, left chan<- struct{}) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if body != "" {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, body)
			w.(http.Flusher).Flush()
		}
		<-r.Context().Done()
		left <- struct{}{}
	}
}

const (
	openAIHello = `data: {"choices":[{"index":0,"delta":{"content":"Hello"}}]}` + "\n\n"
	claudeHello = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",\"type\":\"message\",\"role\":\"assistant\",\"content\":[],\"model\":\"claude\",\"usage\":{\"input_tokens\":1,\"output_tokens\":1}}}\n\n" +
		"event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n" +
		"event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"Hello\"}}\n\n"
)

func TestCancellationClosesTheConnection(t *testing.T) {
	t.Parallel()
	for name, w := range wires() {
		for when, body := range map[string]string{"in the middle": w.hello, "before the answer": ""} {
			t.Run(name+" "+when, func(t *testing.T) {
				t.Parallel()
				is := is.New(t)
				left := make(chan struct{}, 1)
				begun := make(chan struct{}, 1)
				hang := hangs(body, left)
				p := newProvider(t, func(w http.ResponseWriter, r *http.Request) { begun <- struct{}{}; hang(w, r) })
				m := w.at(t, p.URL, quick())
				ctx, cancel := context.WithCancel(context.Background())
				said := make(chan struct{}, 1)
				go func() {
					<-begun
					if body != "" {
						<-said
					}
					cancel()
				}()
				_, err := m.Generate(ctx, Request{Messages: []Message{user("hi")}}, func(Delta) { said <- struct{}{} })
				is.True(errors.Is(err, context.Canceled))
				select {
				case <-left: // the server noticed the disconnection
				case <-time.After(time.Minute):
					t.Fatal("the connection stayed open")
				}
			})
		}
	}
}

func TestTimeOuts(t *testing.T) {
	t.Parallel()
	short := timeouts{connect: 5 * time.Second, header: 50 * time.Millisecond, idle: 50 * time.Millisecond, linger: time.Millisecond}
	for name, w := range wires() {
		for when, body := range map[string]string{"silent": "", "silent in the middle": w.hello} {
			t.Run(name+" "+when, func(t *testing.T) {
				t.Parallel()
				is := is.New(t)
				left := make(chan struct{}, 1)
				p := newProvider(t, hangs(body, left))
				e := failure(t, w.at(t, p.URL, short), Request{Messages: []Message{user("hi")}})
				is.Equal(e.Code, "timeout")
				is.True(e.Retryable)
				<-left
			})
		}
	}
}

func TestNoConnection(t *testing.T) {
	t.Parallel()
	p := newProvider(t, streams(""))
	p.Close()
	for _, w := range wires() {
		is := is.New(t)
		e := failure(t, w.at(t, p.URL, quick()), Request{Messages: []Message{user("hi")}})
		is.Equal(e.Code, "connection")
		is.True(e.Retryable)
		is.True(!strings.Contains(e.Message, "127.0.0.1")) // users must not see the address
	}
}

// TestBrokenStreams closes the connection in the middle of an answer.
func TestBrokenStreams(t *testing.T) {
	t.Parallel()
	for name, w := range wires() {
		for when, body := range map[string]string{"between lines": w.hello, "in a line": w.hello + w.line} {
			t.Run(name+" "+when, func(t *testing.T) {
				t.Parallel()
				is := is.New(t)
				e := failure(t, w.at(t, newProvider(t, cut(body)).URL, quick()), Request{Messages: []Message{user("hi")}})
				is.Equal(e.Code, "stream")
				is.True(e.Retryable)
			})
		}
	}
}

func TestLongLines(t *testing.T) {
	t.Parallel()
	for name, wire := range wires() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			p := newProvider(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", wire.kind)
				_, _ = io.WriteString(w, wire.line)
				block := strings.Repeat("x", 1<<20)
				for {
					if _, err := io.WriteString(w, block); err != nil {
						return
					}
				}
			})
			e := failure(t, wire.at(t, p.URL, quick()), Request{Messages: []Message{user("hi")}})
			is.Equal(e.Code, "bad_response")
			is.True(!e.Retryable)
		})
	}
}

// TestConnectionsAreReused checks that consecutive calls use one connection.
func TestConnectionsAreReused(t *testing.T) {
	t.Parallel()
	for _, w := range wires() {
		is := is.New(t)
		p := newProvider(t, answers(200, w.kind, w.hello+w.end))
		var mu sync.Mutex
		peers := map[string]bool{}
		inner := p.answers[0]
		p.answers[0] = func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			peers[r.RemoteAddr] = true
			mu.Unlock()
			inner(w, r)
			w.(http.Flusher).Flush()
			time.Sleep(20 * time.Millisecond) // the end of the body comes after the last event
		}
		patient := quick()
		patient.linger = 5 * time.Second
		m := w.at(t, p.URL, patient)
		for range 3 {
			answered(t, m, Request{Messages: []Message{user("hi")}})
		}
		is.Equal(len(peers), 1)
	}
}

// TestSlowAnswers checks that an answer that keeps arriving has no time limit.
func TestSlowAnswers(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	p := newProvider(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for range 4 {
			_, _ = io.WriteString(w, openAIHello)
			w.(http.Flusher).Flush()
			time.Sleep(900 * time.Millisecond) // all pauses exceed the idle time, none of them does
		}
		_, _ = io.WriteString(w, sse(finished("stop"), done))
	})
	patient := quick()
	patient.idle = 3 * time.Second
	resp := answered(t, openAIAt(t, p.URL, patient), Request{Messages: []Message{user("hi")}})
	is.Equal(spell(resp.Parts), "text:HelloHelloHelloHello")
}

// TestWindowOfRefusals checks the window that is found in providers' error messages.
func TestWindowOfRefusals(t *testing.T) {
	t.Parallel()
	for message, want := range map[string]int64{
		"This model's maximum context length is 8192 tokens. However, your messages resulted in 10231 tokens.":               8192,
		"This model's maximum context length is 4096 tokens. However, you requested 5000 tokens (3000 in the messages)":      4096,
		"prompt is too long: 210000 tokens > 200000 maximum":                                                                 200000,
		"input length and `max_tokens` exceed context limit: 190000 + 21000 > 200000, decrease input length or `max_tokens`": 200000,
		"the request exceeds the available context size (4096 tokens), try increasing it":                                    4096,
		"The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).":                            1048576,
		"This model's maximum prompt length is 131072 but the request contains 537812 tokens.":                               131072,
		"the model loaded has a context length of only 4096 tokens":                                                          4096,
		"Your input exceeds the context window of this model.":                                                               0,
		"prompt is too long: 1 > 0":                             0,
		"maximum context length is 99999999999999999999 tokens": 0,
	} {
		is := is.New(t)
		e := (&apiError{status: 400, message: message}).failure()
		is.True(e.TooLong() || want == 0)
		is.Equal(e.Window, want)
	}
}

// user returns a message that begins a turn.
func user(text string, files ...string) Message {
	m := Message{Role: RoleUser, Parts: []Part{{Type: PartText, Text: text}}}
	for _, name := range files {
		m.Parts = append(m.Parts, Part{Type: PartFile, Path: name, MediaType: "text/plain", Size: 1})
	}
	return m
}

func spell(parts []Part) string {
	var all []string
	for _, p := range parts {
		all = append(all, string(p.Type)+":"+p.Text+p.ToolName+string(p.Input))
	}
	return strings.Join(all, " ")
}
