package runner_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/matryer/is"

	"journeyman/runner/model"
)

// A wire is a fake model server. It implements the streaming formats of OpenAI's chat completions
// and Responses, of Anthropic's messages, and of Ollama's chat.
type wire struct {
	*httptest.Server
	think   func(a asked) said
	list    string             // the list of models
	speaker func(asked) string // worker whose model is asked; only with a personality

	mu    sync.Mutex
	as    *personality // nil for the plain formats
	asked []asked
	sent  []sentCall // by a personality
}

// asked is a received request, in a form common to all formats.
type asked struct {
	number    int    // index of the request, from 0
	system    string // the text before the conversation
	messages  []count
	bytes     int // of all text in the request
	maxTokens int
	tools     int
	schema    bool     // the request has an output schema
	images    int      // PNG images in the request
	raw       []byte   // the request
	thoughts  []string // encrypted reasoning in the request
}

// count is a message of a request.
type count struct {
	role string // user, assistant or tool
	text string
	call string // id of the call whose result this tool message contains
}

// last returns the newest message.
func (a asked) last() count { return a.messages[len(a.messages)-1] }

// has reports whether any message contains text.
func (a asked) has(text string) bool {
	return slices.ContainsFunc(a.messages, func(m count) bool { return strings.Contains(m.text, text) })
}

// said is a response.
type said struct {
	status    int // of an error, with its body
	body      string
	again     string // Retry-After header of the error
	reasoning string
	text      string
	calls     []saidCall
	in, out   int64
	cached    int64 // input tokens from the provider's cache; Ollama has none

	finish  string // length, filter, refused or odd; "" for the reason that fits the other fields
	why     string // reason of a refusal
	garbage bool   // the response is invalid in every format
	lost    bool   // the connection breaks before the response
	broken  bool   // the connection breaks after the text
	counted bool   // the server reports the usage before the connection breaks
	hangs   bool   // after the text, nothing is sent until the client disconnects

	shape  func(wire, body string) string // changes the body on its way; nil for no change
	header http.Header                    // replaces fields of the answer
	bill   string                         // "estimated" if the counts are missing, "none" for no charge
}

type saidCall struct{ id, name, args string }

func newWire(t testing.TB, think func(asked) said) *wire {
	t.Helper()
	p := &wire{think: think}
	p.Server = httptest.NewServer(p)
	t.Cleanup(p.Close)
	return p
}

// openModel opens a provider's model with the fake as its server. The provider "responses" is
// OpenAI with its Responses API.
func (p *wire) openModel(t testing.TB, name string) model.Model {
	t.Helper()
	api := ""
	if rest, ok := strings.CutPrefix(name, "responses:"); ok {
		name, api = "openai:"+rest, "responses"
	}
	provider, _, _ := strings.Cut(name, ":")
	if q := personalityOf(provider); q != nil {
		p.mu.Lock()
		p.as = q
		p.mu.Unlock()
		m, err := q.open(p.Listener.Addr().String())
		is.New(t).NoErr(err)
		return m
	}
	m, err := model.Open(model.Config{Model: name, Getenv: func(variable string) string {
		return map[string]string{"JOURNEYMAN_OPENAI_API": api, "OPENAI_BASE_URL": p.URL + "/v1", "ANTHROPIC_BASE_URL": p.URL, "ANTHROPIC_API_KEY": "key-of-a-test", "OLLAMA_HOST": p.URL}[variable]
	}})
	is.New(t).NoErr(err)
	return m
}

func (p *wire) seen() []asked {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]asked(nil), p.asked...)
}

// ServeHTTP answers a request like the provider of its path.
func (p *wire) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	as := p.as
	p.mu.Unlock()
	if as != nil && as.get != nil && as.get(w, r) {
		return
	}
	if r.Method == http.MethodGet { // the list of models
		_, _ = io.WriteString(w, cmp.Or(p.list, `{"data":[]}`))
		return
	}
	if r.URL.Path == "/api/show" {
		_, _ = io.WriteString(w, ollamaShown)
		return
	}
	raw, _ := io.ReadAll(r.Body)
	ofOllama := r.URL.Path == "/api/chat"
	claude := strings.HasSuffix(r.URL.Path, "/messages")
	a := readChat(raw)
	ofResponses := strings.HasSuffix(r.URL.Path, "/responses")
	switch {
	case claude:
		a = readClaude(raw)
	case ofResponses:
		a = readResponses(raw)
	case ofOllama:
		a = readOllama(raw)
	}
	a.images = bytes.Count(raw, []byte(`iVBORw0KGgo`)) // the signature of PNG in base64
	a.raw = raw
	if as != nil {
		var refusal *said
		if a, refusal = p.take(as, a); refusal != nil {
			writeRefusal(w, *refusal)
			return
		}
	}
	p.mu.Lock()
	a.number = len(p.asked)
	p.asked = append(p.asked, a)
	p.mu.Unlock()
	s := p.think(a)
	if s.lost {
		panic(http.ErrAbortHandler)
	}
	if s.status != 0 {
		writeRefusal(w, s)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	maps.Copy(w.Header(), s.header)
	wire, write := "openai", writeChat
	switch {
	case claude:
		wire, write = "anthropic", writeClaude
	case ofResponses:
		wire, write = "responses", writeResponses
	case ofOllama:
		wire, write = "ollama", writeOllama
	}
	if as != nil {
		write = func(w io.Writer, s said) { p.give(as, w, s, a) }
	}
	switch {
	case s.garbage:
		_, _ = io.WriteString(w, "data: {\"oops\n\n")
	case s.shape != nil:
		var body bytes.Buffer
		write(&body, s)
		_, _ = io.WriteString(w, s.shape(wire, body.String()))
	default:
		write(w, s)
	}
	if s.hangs || s.broken {
		w.(http.Flusher).Flush()
		if s.hangs {
			<-r.Context().Done()
		}
		panic(http.ErrAbortHandler)
	}
}

func writeRefusal(w http.ResponseWriter, s said) {
	w.Header().Set("Content-Type", "application/json")
	maps.Copy(w.Header(), s.header)
	if s.again != "" {
		w.Header().Set("Retry-After", s.again)
	}
	w.WriteHeader(s.status)
	_, _ = io.WriteString(w, s.body)
}

// tooLong is the server's error for a request that exceeds the window.
func tooLong(window, got int) said {
	return said{status: http.StatusBadRequest, body: fmt.Sprintf(`{"error":{"message":"This model's maximum context length is %d tokens. However, your messages resulted in %d tokens.",`+
		`"type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}`, window, got)}
}

// contentText returns the text of a message's content, which is a string or a list of parts.
func contentText(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	var parts []struct {
		Type, Text string
		Content    json.RawMessage
	}
	_ = json.Unmarshal(raw, &parts)
	for _, p := range parts {
		if text += p.Text; len(p.Content) > 0 {
			text += contentText(p.Content)
		}
	}
	return text
}

func readChat(raw []byte) (a asked) {
	var body struct {
		Messages []struct {
			Role       string
			Content    json.RawMessage
			ToolCallID string `json:"tool_call_id"`
			ToolCalls  []struct {
				Function struct{ Name, Arguments string }
			} `json:"tool_calls"`
		}
		MaxTokens      int `json:"max_tokens"`
		Tools          []json.RawMessage
		ResponseFormat json.RawMessage `json:"response_format"`
	}
	_ = json.Unmarshal(raw, &body)
	a.maxTokens, a.tools, a.schema = body.MaxTokens, len(body.Tools), len(body.ResponseFormat) > 0
	for _, m := range body.Messages {
		text := contentText(m.Content)
		for _, c := range m.ToolCalls {
			text += "\ncalled " + c.Function.Name + " " + c.Function.Arguments
		}
		a.bytes += len(text)
		if m.Role == "system" {
			a.system += text
			continue
		}
		a.messages = append(a.messages, count{m.Role, text, m.ToolCallID})
	}
	return a
}

func readClaude(raw []byte) (a asked) {
	var body struct {
		System   []struct{ Text string }
		Messages []struct {
			Role    string
			Content []struct {
				Type, Text, Name string
				Input, Content   json.RawMessage
				ToolUseID        string `json:"tool_use_id"`
			}
		}
		MaxTokens    int `json:"max_tokens"`
		Tools        []json.RawMessage
		OutputConfig struct{ Format json.RawMessage } `json:"output_config"`
	}
	_ = json.Unmarshal(raw, &body)
	a.maxTokens, a.tools, a.schema = body.MaxTokens, len(body.Tools), len(body.OutputConfig.Format) > 0
	for _, s := range body.System {
		a.system += s.Text
	}
	a.bytes = len(a.system)
	for _, m := range body.Messages {
		h := count{role: m.Role}
		for _, b := range m.Content {
			switch b.Type {
			case "text":
				h.text += b.Text
			case "tool_use":
				h.text += "\ncalled " + b.Name + " " + string(b.Input)
			case "tool_result": // a separate message in the common form
				text := contentText(b.Content)
				a.bytes += len(text)
				a.messages = append(a.messages, count{"tool", text, b.ToolUseID})
			}
		}
		if a.bytes += len(h.text); h.text != "" {
			a.messages = append(a.messages, h)
		}
	}
	return a
}

// pieces splits text into pieces, as a server streams it.
func pieces(text string) (list []string) {
	runes := []rune(text)
	for len(runes) > 7 {
		list, runes = append(list, string(runes[:7])), runes[7:]
	}
	return append(list, string(runes))
}

func quoted(text string) string {
	b, _ := json.Marshal(text)
	return string(b)
}

func writeChat(w io.Writer, s said) {
	chunk := func(delta, finish string) {
		_, _ = fmt.Fprintf(w, "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"model\":\"wired-1\",\"choices\":[{\"index\":0,\"delta\":%s,\"finish_reason\":%s}]}\n\n", delta, finish)
	}
	chunk(`{"role":"assistant","content":""}`, "null")
	if s.reasoning != "" {
		for _, piece := range pieces(s.reasoning) {
			chunk(`{"reasoning_content":`+quoted(piece)+`}`, "null")
		}
	}
	if s.text != "" {
		for _, piece := range pieces(s.text) {
			chunk(`{"content":`+quoted(piece)+`}`, "null")
		}
	}
	for i, c := range s.calls {
		chunk(fmt.Sprintf(`{"tool_calls":[{"index":%d,"id":%q,"type":"function","function":{"name":%q,"arguments":""}}]}`, i, c.id, c.name), "null")
		for _, piece := range pieces(c.args) {
			chunk(fmt.Sprintf(`{"tool_calls":[{"index":%d,"function":{"arguments":%s}}]}`, i, quoted(piece)), "null")
		}
	}
	if s.finish == "refused" {
		chunk(`{"refusal":`+quoted(s.why)+`}`, "null")
	}
	usage := fmt.Sprintf(`{"prompt_tokens":%d,"completion_tokens":%d,"prompt_tokens_details":{"cached_tokens":%d}}`, s.in, s.out, s.cached)
	if s.counted { // some servers report the usage while they stream
		_, _ = fmt.Fprintf(w, "data: {\"id\":\"c\",\"choices\":[],\"usage\":%s}\n\n", usage)
	}
	if s.broken || s.hangs {
		return
	}
	finish := map[string]string{"": "stop", "length": "length", "filter": "content_filter", "refused": "stop", "odd": "full_moon"}[s.finish]
	if len(s.calls) > 0 && s.finish == "" {
		finish = "tool_calls"
	}
	chunk(`{}`, quoted(finish))
	_, _ = fmt.Fprintf(w, "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"model\":\"wired-1\",\"choices\":[],\"usage\":%s}\n\ndata: [DONE]\n\n", usage)
}

func writeClaude(w io.Writer, s said) {
	event := func(kind, body string) {
		_, _ = fmt.Fprintf(w, "event: %s\ndata: {\"type\":%q,%s}\n\n", kind, kind, body)
	}
	in, cached := s.in-s.cached, s.cached
	if (s.broken || s.hangs) && !s.counted {
		in, cached = 0, 0
	}
	event("message_start", fmt.Sprintf(`"message":{"id":"m","type":"message","role":"assistant","model":"wired-1","content":[],"stop_reason":null,"usage":{"input_tokens":%d,"cache_read_input_tokens":%d,"output_tokens":1}}`, in, cached))
	index := 0
	block := func(start string, deltas []string) {
		event("content_block_start", fmt.Sprintf(`"index":%d,"content_block":%s`, index, start))
		for _, d := range deltas {
			event("content_block_delta", fmt.Sprintf(`"index":%d,"delta":%s`, index, d))
		}
		event("content_block_stop", fmt.Sprintf(`"index":%d`, index))
		index++
	}
	deltas := func(kind, field, text string) (list []string) {
		for _, piece := range pieces(text) {
			list = append(list, fmt.Sprintf(`{"type":%q,%q:%s}`, kind, field, quoted(piece)))
		}
		return list
	}
	if s.reasoning != "" {
		block(`{"type":"thinking","thinking":"","signature":""}`,
			append(deltas("thinking_delta", "thinking", s.reasoning), `{"type":"signature_delta","signature":"c2lnbmVk"}`))
	}
	if s.text != "" {
		block(`{"type":"text","text":""}`, deltas("text_delta", "text", s.text))
	}
	for _, c := range s.calls {
		block(fmt.Sprintf(`{"type":"tool_use","id":%q,"name":%q,"input":{}}`, c.id, c.name), deltas("input_json_delta", "partial_json", c.args))
	}
	if s.counted {
		event("message_delta", fmt.Sprintf(`"delta":{},"usage":{"output_tokens":%d}`, s.out))
	}
	if s.broken || s.hangs {
		return
	}
	stop := map[string]string{"": "end_turn", "length": "max_tokens", "refused": "refusal", "odd": "full_moon"}[s.finish]
	if len(s.calls) > 0 && s.finish == "" {
		stop = "tool_use"
	}
	event("message_delta", fmt.Sprintf(`"delta":{"stop_reason":%q,"stop_sequence":null,"stop_details":{"type":"refusal","explanation":%s}},"usage":{"output_tokens":%d}`,
		stop, quoted(s.why), s.out))
	event("message_stop", `"x":0`)
}
