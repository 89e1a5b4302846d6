package runner_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"journeyman/runner/model"
)

// A wire is a fake of a model server that speaks the streaming wire formats of
// OpenAI's chat completions and of Anthropic's messages. It is the outside world.
type wire struct {
	*httptest.Server
	think func(a asked) said

	mu    sync.Mutex
	asked []asked
}

// asked is a request that came, in no provider's words.
type asked struct {
	number    int    // 0, 1, ... of all requests
	system    string // all that stands before the conversation
	messages  []heard
	bytes     int // of all text in it
	maxTokens int
	tools     int
	schema    bool // an answer of a form is asked for
}

// heard is a message of a request.
type heard struct {
	role string // user, assistant or tool
	text string
	call string // id of the call that a tool message answers
}

// last is the newest message.
func (a asked) last() heard { return a.messages[len(a.messages)-1] }

// has reports whether any message holds a text.
func (a asked) has(text string) bool {
	for _, m := range a.messages {
		if strings.Contains(m.text, text) {
			return true
		}
	}
	return false
}

// said is an answer.
type said struct {
	status    int // of an error, with its body
	body      string
	reasoning string
	text      string
	calls     []saidCall
	in, out   int64
}

type saidCall struct{ id, name, args string }

func newWire(t testing.TB, think func(asked) said) *wire {
	t.Helper()
	p := &wire{think: think}
	p.Server = httptest.NewServer(p)
	t.Cleanup(p.Close)
	return p
}

// openModel opens a provider's model at the fake.
func (p *wire) openModel(t testing.TB, name string) model.Model {
	t.Helper()
	m, err := model.Open(model.Config{Model: name, Getenv: func(variable string) string {
		return map[string]string{"OPENAI_BASE_URL": p.URL + "/v1", "ANTHROPIC_BASE_URL": p.URL, "ANTHROPIC_API_KEY": "key-of-a-test"}[variable]
	}})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func (p *wire) seen() []asked {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]asked(nil), p.asked...)
}

// ServeHTTP answers a request as the provider of its path does.
func (p *wire) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet { // the list of models
		_, _ = io.WriteString(w, `{"data":[]}`)
		return
	}
	raw, _ := io.ReadAll(r.Body)
	claude := strings.HasSuffix(r.URL.Path, "/messages")
	a := readChat(raw)
	if claude {
		a = readClaude(raw)
	}
	p.mu.Lock()
	a.number = len(p.asked)
	p.asked = append(p.asked, a)
	p.mu.Unlock()
	s := p.think(a)
	if s.status != 0 {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(s.status)
		_, _ = io.WriteString(w, s.body)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	if claude {
		writeClaude(w, s)
	} else {
		writeChat(w, s)
	}
}

// tooLong is how such servers refuse what they have no room for.
func tooLong(window, got int) said {
	return said{status: http.StatusBadRequest, body: fmt.Sprintf(`{"error":{"message":"This model's maximum context length is %d tokens. However, your messages resulted in %d tokens.",`+
		`"type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}`, window, got)}
}

// contentText is the text of a message's content: a string or a list of parts.
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
		a.messages = append(a.messages, heard{m.Role, text, m.ToolCallID})
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
		h := heard{role: m.Role}
		for _, b := range m.Content {
			switch b.Type {
			case "text":
				h.text += b.Text
			case "tool_use":
				h.text += "\ncalled " + b.Name + " " + string(b.Input)
			case "tool_result": // a message of its own, as the other format has it
				text := contentText(b.Content)
				a.bytes += len(text)
				a.messages = append(a.messages, heard{"tool", text, b.ToolUseID})
			}
		}
		if a.bytes += len(h.text); h.text != "" {
			a.messages = append(a.messages, h)
		}
	}
	return a
}

// pieces are a text as it comes over the wire.
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
	finish := `"stop"`
	if len(s.calls) > 0 {
		finish = `"tool_calls"`
	}
	chunk(`{}`, finish)
	_, _ = fmt.Fprintf(w, "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"model\":\"wired-1\",\"choices\":[],\"usage\":{\"prompt_tokens\":%d,\"completion_tokens\":%d}}\n\ndata: [DONE]\n\n", s.in, s.out)
}

func writeClaude(w io.Writer, s said) {
	event := func(kind, body string) {
		_, _ = fmt.Fprintf(w, "event: %s\ndata: {\"type\":%q,%s}\n\n", kind, kind, body)
	}
	event("message_start", fmt.Sprintf(`"message":{"id":"m","type":"message","role":"assistant","model":"wired-1","content":[],"stop_reason":null,"usage":{"input_tokens":%d,"output_tokens":1}}`, s.in))
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
	stop := "end_turn"
	if len(s.calls) > 0 {
		stop = "tool_use"
	}
	event("message_delta", fmt.Sprintf(`"delta":{"stop_reason":%q,"stop_sequence":null},"usage":{"output_tokens":%d}`, stop, s.out))
	event("message_stop", `"x":0`)
}
