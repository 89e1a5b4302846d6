package model

import (
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"
)

// A chatChunk is an event of a chat completions stream, in all forms that servers send. Fields
// may have other types than documented, and are read as text. A complete message instead of a
// delta is treated as one large delta.
type chatChunk struct {
	Model   looseText       `json:"model"`
	Choices []chatChoice    `json:"choices"`
	Usage   *chatUsage      `json:"usage"`
	Error   json.RawMessage `json:"error"`
	Message looseText       `json:"message"` // error without an envelope
	XGroq   json.RawMessage `json:"x_groq"`
}

// A groqChunk is what Groq adds to the first and the last chunk. Some models have the usage only there (vercel/ai,
// groq-chat-language-model.test.ts). An error means that the stream was stopped early (groq-python,
// chat_completion_chunk.py).
type groqChunk struct {
	Usage *chatUsage `json:"usage"`
	Error looseText  `json:"error"`
}

// ofGroq returns what Groq has added. A field of another form is ignored.
func (c *chatChunk) ofGroq() (g groqChunk) {
	if json.Unmarshal(c.XGroq, &g) != nil {
		return groqChunk{}
	}
	return g
}

type chatChoice struct {
	Index        looseCount      `json:"index"`
	Delta        *chatDelta      `json:"delta"`
	Message      *chatDelta      `json:"message"`
	FinishReason looseText       `json:"finish_reason"`
	NativeReason looseText       `json:"native_finish_reason"` // OpenRouter: the word of the actual provider
	Error        json.RawMessage `json:"error"`                // OpenRouter and gateways: the model failed
}

type chatDelta struct {
	Content          chatText          `json:"content"`
	Refusal          looseText         `json:"refusal"`
	ReasoningContent looseText         `json:"reasoning_content"`
	Reasoning        looseText         `json:"reasoning"`
	ReasoningDetails []json.RawMessage `json:"reasoning_details"`
	ToolCalls        []chatCallDelta   `json:"tool_calls"`
	FunctionCall     *chatFunctionPart `json:"function_call"` // used before parallel calls existed
}

type chatCallDelta struct {
	Index        *looseCount      `json:"index"`
	ID           looseText        `json:"id"`
	Function     chatFunctionPart `json:"function"`
	ExtraContent json.RawMessage  `json:"extra_content"`
}

type chatFunctionPart struct {
	Name      looseText `json:"name"`
	Arguments looseText `json:"arguments"` // a string; some servers send the object itself
}

// A chatText is the text of a message: a string or, from Mistral, a list of parts with separate
// thinking.
type chatText struct{ text, thinking string }

// UnmarshalJSON accepts both forms.
func (t *chatText) UnmarshalJSON(raw []byte) error {
	var list []struct {
		Type     string    `json:"type"`
		Text     looseText `json:"text"`
		Thinking []struct {
			Text looseText `json:"text"`
		} `json:"thinking"`
	}
	// Most servers send a string instead of a list.
	if json.Unmarshal(raw, &list) != nil {
		var s looseText
		err := s.UnmarshalJSON(raw)
		t.text = string(s)
		return err
	}
	for _, part := range list {
		t.text += string(part.Text)
		for _, thought := range part.Thinking {
			t.thinking += string(thought.Text)
		}
	}
	return nil
}

// A chatUsage is the usage of a call. OpenRouter adds the cost.
type chatUsage struct {
	PromptTokens     looseCount `json:"prompt_tokens"`
	CompletionTokens looseCount `json:"completion_tokens"`
	TotalTokens      looseCount `json:"total_tokens"`
	CacheHitTokens   looseCount `json:"prompt_cache_hit_tokens"` // DeepSeek
	CitationTokens   looseCount `json:"citation_tokens"`         // Perplexity
	PromptDetails    struct {
		CachedTokens     looseCount `json:"cached_tokens"`
		CacheWriteTokens looseCount `json:"cache_write_tokens"`
		AudioTokens      looseCount `json:"audio_tokens"`
	} `json:"prompt_tokens_details"`
	CompletionDetails struct {
		ReasoningTokens looseCount `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`

	Cost        looseText `json:"cost"`    // in US$
	OwnAccount  bool      `json:"is_byok"` // the provider charges the user's own account
	CostDetails struct {
		Upstream looseText `json:"upstream_inference_cost"` // in US$
	} `json:"cost_details"`
}

// usage converts the server's counts.
func (u *chatUsage) usage() Usage {
	return statedTokens{
		input: u.PromptTokens, output: u.CompletionTokens, total: u.TotalTokens,
		read:  max(u.PromptDetails.CachedTokens, u.CacheHitTokens),
		write: u.PromptDetails.CacheWriteTokens, reasoning: u.CompletionDetails.ReasoningTokens,
		otherInputs: []looseCount{u.PromptDetails.AudioTokens, u.CitationTokens},
	}.usage()
}

// A chatStream reads an answer of chat completions.
type chatStream struct {
	assembler
	name    string          // name of the Model, for Meta
	router  bool            // the server is OpenRouter, which reports the cost of a call
	used    map[string]bool // call ids of the conversation
	calls   []chatCallState
	model   string
	finish  string
	native  string // the finish reason in the words of the actual provider
	refusal strings.Builder
	done    bool // the end mark has arrived
	eventLines
	usage   *chatUsage
	field   string           // the server's name of the reasoning field
	details []map[string]any // reasoning_details
}

// A chatCallState is a tool call of the answer.
type chatCallState struct {
	part  int // index in the assembler
	index int // the server's number, -1 without one
	id    string
	event int // number of the last event for this call
	extra json.RawMessage
}

var errNoChunk = errors.New("the model server sent something that is not an event of a chat completion")

// read reads the stream to its end. Some servers send no end mark.
func (s *chatStream) read(body io.Reader) error {
	if err := s.readLines(body, func() bool { return s.done }, s.event); err != nil {
		return err
	}
	if s.events == 0 && s.finish == "" && isObject(s.stray) {
		return s.event(s.stray) // an error, or a complete answer that was not streamed
	}
	return nil
}

// event handles one event. It returns a *streamFault for an error within the stream.
func (s *chatStream) event(data []byte) error {
	if len(data) == 0 {
		return nil
	}
	if string(data) == "[DONE]" {
		s.done = true
		return nil
	}
	var c chatChunk
	if err := json.Unmarshal(s.markHalves(data), &c); err != nil {
		return errNoChunk
	}
	groq := c.ofGroq()
	if usage := cmp.Or(c.Usage, groq.Usage); usage != nil {
		s.usage = usage // also the usage of an answer that fails
	}
	failed := len(c.Choices) == 0 || c.Choices[0].FinishReason == "error"
	if len(c.Error) > 0 && string(c.Error) != "null" || failed && c.Message != "" {
		return streamError(data)
	}
	if groq.Error != "" {
		return streamError(rawJSON(map[string]string{"error": string(groq.Error)}))
	}
	if c.Model != "" {
		s.model = string(c.Model)
	}
	for _, choice := range c.Choices {
		if choice.Index > 0 {
			continue // the request asks for only one answer
		}
		for _, d := range []*chatDelta{choice.Delta, choice.Message} {
			if d == nil {
				continue
			}
			if err := s.delta(d); err != nil {
				return err
			}
		}
		if len(choice.Error) > 0 && string(choice.Error) != "null" {
			return streamError([]byte(`{"error":` + string(choice.Error) + `}`))
		}
		// Some servers omit the reason in later chunks.
		if choice.FinishReason != "" {
			s.finish, s.native = string(choice.FinishReason), string(choice.NativeReason)
		}
	}
	return nil
}

// streamError parses an error within an answer. Its code is often the HTTP status that the
// server would have used.
func streamError(data []byte) error {
	r := &apiError{}
	r.read(data)
	switch status := numericStatus(r.code); {
	case status != 0:
		r.status = status
	// Other servers use a word instead of a status.
	case r.mentions("rate_limit", "rate limit", "too many requests", "insufficient_quota"):
		r.status = 429
	case r.says(meansSpent):
		r.status = 402
	case r.mentions("overloaded"):
		r.status = 529
	case r.mentions("invalid_request", "invalid_argument", "authentication", "permission"):
		r.status = 400
	default:
		r.status = 500
	}
	r.readWait(http.Header{}, time.Now())
	return &streamFault{r}
}

// A streamFault is an apiError within a stream.
type streamFault struct{ refusal *apiError }

// Error returns the provider's message.
func (f *streamFault) Error() string { return f.refusal.message }

// numericStatus returns the number in text if it is the HTTP status of an error, else 0.
func numericStatus(text string) int {
	var n int
	if json.Unmarshal([]byte(text), &n) != nil || n < 400 || n > 599 {
		return 0
	}
	return n
}

// delta adds the content of one event, in the order in which models produce it.
func (s *chatStream) delta(d *chatDelta) error {
	s.events++
	s.addDetails(d.ReasoningDetails)
	reasoning := cmp.Or(d.ReasoningContent, d.Reasoning) // some servers send it in both fields
	switch {
	case d.ReasoningContent != "":
		s.field = "reasoning_content"
	case reasoning != "":
		s.field = "reasoning"
	}
	s.refusal.WriteString(string(d.Refusal)) // without a limit, because it is also added to the text, which has one
	for _, part := range []struct {
		kind PartType
		text string
	}{
		{PartReasoning, string(reasoning)}, {PartReasoning, d.Content.thinking},
		{PartText, d.Content.text}, {PartText, string(d.Refusal)},
	} {
		if err := s.addText(part.kind, part.text); err != nil {
			return err
		}
	}
	calls := d.ToolCalls
	if d.FunctionCall != nil {
		var zero looseCount
		calls = append(calls, chatCallDelta{Index: &zero, Function: *d.FunctionCall})
	}
	for i := range calls {
		if err := s.call(&calls[i]); err != nil {
			return err
		}
	}
	return nil
}

// call adds a piece of a tool call.
func (s *chatStream) call(d *chatCallDelta) error {
	args := string(d.Function.Arguments)
	at := s.findCall(d)
	if at < 0 {
		if d.ID == "" && d.Function.Name == "" && strings.TrimSpace(args) == "" {
			return nil // an empty piece that belongs to no call
		}
		s.endText()
		part, err := s.open(Part{Type: PartToolCall, CallID: freshCallID(string(d.ID), s.used),
			ToolName: string(d.Function.Name)})
		if err != nil {
			return err
		}
		state := chatCallState{part: part, index: -1, id: string(d.ID)}
		if d.Index != nil {
			state.index = int(*d.Index)
		}
		s.calls, at = append(s.calls, state), len(s.calls)
	}
	c := &s.calls[at]
	// excludes compares this number: an event contains each call only once.
	c.event = s.events
	if len(d.ExtraContent) > 0 && string(d.ExtraContent) != "null" {
		c.extra = d.ExtraContent
	}
	m := s.parts[c.part]
	m.part.ToolName = joinName(m.part.ToolName, string(d.Function.Name), m.text.Len() > 0)
	if m.args.complete && m.text.String() == args {
		return nil // some servers repeat the complete arguments at the end
	}
	return s.add(c.part, args)
}

// joinName adds a piece to the name of a call. Servers send the name once, in each event, in pieces, or as all of it so
// far. Once the arguments have begun, the name is complete.
func joinName(name, piece string, begun bool) string {
	switch {
	case strings.HasPrefix(piece, name):
		return piece
	case begun || strings.HasSuffix(name, piece):
		return name
	}
	return name + piece
}

// findCall returns the index of the call that a piece belongs to, -1 if the piece begins a new
// call. Some servers number their calls wrongly or not at all. Then findCall compares ids, and
// after them names. A name begins a new call if the arguments are complete, or if the same
// event already named a call.
func (s *chatStream) findCall(d *chatCallDelta) int {
	if d.Index == nil && d.ID == "" {
		// Without a number and an id, a piece can only continue the last call.
		last := len(s.calls) - 1
		if last < 0 || s.excludes(last, d) || s.isNamedAnew(last, d) {
			return -1
		}
		return last
	}
	for i := len(s.calls) - 1; i >= 0; i-- {
		if !s.excludes(i, d) {
			return i
		}
	}
	return -1
}

// excludes reports whether a piece cannot belong to the i-th call.
func (s *chatStream) excludes(i int, d *chatCallDelta) bool {
	c := &s.calls[i]
	switch {
	case d.Index != nil && c.index != int(*d.Index),
		d.ID != "" && c.id != "" && c.id != string(d.ID),
		d.ID != "" && c.id == "" && d.Index == nil:
		return true
	case d.Function.Name == "":
		return false
	}
	m, args := s.parts[c.part], strings.TrimSpace(string(d.Function.Arguments))
	// Some servers repeat a complete call at the end. The same arguments with another name are another call.
	repeated := m.text.String() == args && m.part.ToolName == string(d.Function.Name)
	return c.event == s.events || m.args.complete && args != "" && !repeated
}

// isNamedAnew reports whether the name in a piece begins another call than the i-th one.
func (s *chatStream) isNamedAnew(i int, d *chatCallDelta) bool {
	m, name := s.parts[s.calls[i].part], string(d.Function.Name)
	return name != "" && (m.args.complete || name != m.part.ToolName && m.part.ToolName != "")
}

// addDetails collects reasoning_details. It joins the pieces of each detail.
func (s *chatStream) addDetails(raw []json.RawMessage) {
	for _, r := range raw {
		var d map[string]any
		// Details stay in memory like the parts, so the same limit applies.
		if s.size += len(r); json.Unmarshal(r, &d) != nil || d == nil || s.size > maxPartBytes {
			continue
		}
		n := len(s.details)
		if n > 0 && s.details[n-1]["type"] == d["type"] && sameIndex(s.details[n-1]["index"], d["index"]) {
			joinDetail(s.details[n-1], d)
			continue
		}
		s.details = append(s.details, d)
	}
}

// sameIndex reports whether two JSON values are the same number.
func sameIndex(a, b any) bool {
	x, isNumber := a.(float64)
	y, also := b.(float64)
	return isNumber && also && x == y
}

// joinDetail adds a piece to a detail. It appends texts, and replaces other values.
func joinDetail(to, piece map[string]any) {
	for key, value := range piece {
		old, isText := to[key].(string)
		more, also := value.(string)
		switch {
		case isText && also && (key == "text" || key == "summary" || key == "data"):
			to[key] = old + more
		case value != nil:
			to[key] = value
		}
	}
}
