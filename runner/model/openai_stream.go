package model

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
)

// A chatChunk is an event of a stream of chat completions. It takes what servers
// really send: fields of other types than documented are read as text, and a
// whole message in place of a delta is one big delta.
type chatChunk struct {
	Model   looseText       `json:"model"`
	Choices []chatChoice    `json:"choices"`
	Usage   *chatUsage      `json:"usage"`
	Error   json.RawMessage `json:"error"`
	Message looseText       `json:"message"` // of an error without an envelope
}

type chatChoice struct {
	Index        int        `json:"index"`
	Delta        *chatDelta `json:"delta"`
	Message      *chatDelta `json:"message"`
	FinishReason looseText  `json:"finish_reason"`
}

type chatDelta struct {
	Content          chatText          `json:"content"`
	Refusal          looseText         `json:"refusal"`
	ReasoningContent looseText         `json:"reasoning_content"`
	Reasoning        looseText         `json:"reasoning"`
	ReasoningDetails []json.RawMessage `json:"reasoning_details"`
	ToolCalls        []chatCallDelta   `json:"tool_calls"`
	FunctionCall     *chatFunctionPart `json:"function_call"` // of before there were parallel calls
}

type chatCallDelta struct {
	Index        *int             `json:"index"`
	ID           looseText        `json:"id"`
	Function     chatFunctionPart `json:"function"`
	ExtraContent json.RawMessage  `json:"extra_content"`
}

type chatFunctionPart struct {
	Name      looseText `json:"name"`
	Arguments looseText `json:"arguments"` // a string; from some servers the object itself
}

// A chatText is the text of a message: a string, or a list of parts as Mistral
// sends it, whose thinking is kept apart.
type chatText struct{ text, thinking string }

// UnmarshalJSON reads either form.
func (t *chatText) UnmarshalJSON(raw []byte) error {
	var list []struct {
		Type     string    `json:"type"`
		Text     looseText `json:"text"`
		Thinking []struct {
			Text looseText `json:"text"`
		} `json:"thinking"`
	}
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

type chatUsage struct {
	PromptTokens     int64 `json:"prompt_tokens"`
	CompletionTokens int64 `json:"completion_tokens"`
	TotalTokens      int64 `json:"total_tokens"`
	CacheHitTokens   int64 `json:"prompt_cache_hit_tokens"` // DeepSeek
	PromptDetails    struct {
		CachedTokens     int64 `json:"cached_tokens"`
		CacheWriteTokens int64 `json:"cache_write_tokens"`
	} `json:"prompt_tokens_details"`
	CompletionDetails struct {
		ReasoningTokens int64 `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
}

// usage puts the counts into our words. Some servers, of xAI and Google, count the
// reasoning beside the completion: the total tells.
func (u *chatUsage) usage() Usage {
	output := max(u.CompletionTokens, u.CompletionDetails.ReasoningTokens, 0)
	if reasoning := u.CompletionDetails.ReasoningTokens; reasoning > 0 && u.TotalTokens == u.PromptTokens+u.CompletionTokens+reasoning {
		output = u.CompletionTokens + reasoning
	}
	return Usage{
		InputTokens:      max(u.PromptTokens, 0),
		OutputTokens:     output,
		CacheReadTokens:  max(u.PromptDetails.CachedTokens, u.CacheHitTokens, 0),
		CacheWriteTokens: max(u.PromptDetails.CacheWriteTokens, 0),
		ReasoningTokens:  max(u.CompletionDetails.ReasoningTokens, 0),
	}
}

// A chatStream reads an answer of chat completions.
type chatStream struct {
	assembler
	name    string // of our model, for Meta
	used    map[string]bool
	calls   []chatCallState
	model   string
	finish  string
	refused bool
	done    bool   // the end mark came
	events  int    // that came so far
	stray   []byte // the first lines that are no events
	usage   *chatUsage
	field   string // how reasoning was called
	details []map[string]any
}

// A chatCallState is a tool call of the answer.
type chatCallState struct {
	part  int // index in the assembler
	index int // as the server counts, -1 if it does not
	id    string
	event int // the last that added to it
	extra json.RawMessage
}

var errNoChunk = errors.New("the model server sent something that is not an event of a chat completion")

// read reads the stream to its end. Lines that are no data, such as comments,
// are skipped; the end mark is left out by some servers.
func (s *chatStream) read(body io.Reader) error {
	r := bufio.NewReader(body)
	for !s.done {
		line, err := readLine(r)
		if err != nil && err != io.EOF {
			return err
		}
		if data, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			fault := s.event(bytes.TrimSpace(data))
			if fault != nil && !(err == io.EOF && fault == errNoChunk) { // a cut line is a cut stream
				return fault
			}
		} else if s.events == 0 && len(s.stray) < maxErrorBody && !bytes.HasPrefix(line, []byte(":")) {
			s.stray = append(s.stray, line[:min(len(line), maxErrorBody)]...)
		}
		if err == io.EOF {
			break
		}
	}
	if s.events == 0 && s.finish == "" && bytes.HasPrefix(bytes.TrimSpace(s.stray), []byte("{")) {
		return s.event(s.stray) // an error, or a whole answer, without the form of a stream
	}
	return nil
}

// readLine reads a line, which may be valid no longer than until the next read.
func readLine(r *bufio.Reader) ([]byte, error) {
	line, err := r.ReadSlice('\n')
	if !errors.Is(err, bufio.ErrBufferFull) {
		return line, err
	}
	long := bytes.Clone(line)
	for errors.Is(err, bufio.ErrBufferFull) { // the body bounds its lines
		line, err = r.ReadSlice('\n')
		long = append(long, line...)
	}
	return long, err
}

// event takes one event. An error within the stream is a *refusal.
func (s *chatStream) event(data []byte) error {
	if len(data) == 0 {
		return nil
	}
	if string(data) == "[DONE]" {
		s.done = true
		return nil
	}
	var c chatChunk
	if err := json.Unmarshal(data, &c); err != nil {
		return errNoChunk
	}
	if len(c.Error) > 0 && string(c.Error) != "null" || len(c.Choices) == 0 && c.Message != "" {
		return streamRefusal(data)
	}
	if c.Model != "" {
		s.model = string(c.Model)
	}
	if c.Usage != nil {
		s.usage = c.Usage
	}
	for _, choice := range c.Choices {
		if choice.Index > 0 {
			continue // one answer was asked for
		}
		for _, d := range []*chatDelta{choice.Delta, choice.Message} {
			if d == nil {
				continue
			}
			if err := s.delta(d); err != nil {
				return err
			}
		}
		if choice.FinishReason != "" {
			s.finish = string(choice.FinishReason)
		}
	}
	return nil
}

// streamRefusal reads an error that came in the middle of a good answer. Its
// code is often the status that the server would have answered with.
func streamRefusal(data []byte) error {
	r := &refusal{}
	r.read(data)
	switch status := numericStatus(r.code); {
	case status != 0:
		r.status = status
	case r.mentions("rate_limit", "rate limit", "too many requests"):
		r.status = 429
	case r.mentions("overloaded"):
		r.status = 529
	case r.mentions("invalid_request", "invalid_argument", "authentication", "permission"):
		r.status = 400
	default:
		r.status = 500
	}
	return &streamFault{r}
}

// A streamFault is a refusal within a stream.
type streamFault struct{ refusal *refusal }

// Error gives the provider's message.
func (f *streamFault) Error() string { return f.refusal.message }

// numericStatus reads an HTTP status of an error, 0 if text is none.
func numericStatus(text string) int {
	var n int
	if json.Unmarshal([]byte(text), &n) != nil || n < 400 || n > 599 {
		return 0
	}
	return n
}

// delta takes what one event adds, in the order in which models produce it.
func (s *chatStream) delta(d *chatDelta) error {
	s.events++
	s.addDetails(d.ReasoningDetails)
	reasoning, field := string(d.ReasoningContent), "reasoning_content"
	if reasoning == "" { // some servers send it under both names
		reasoning, field = string(d.Reasoning), "reasoning"
	}
	if reasoning != "" {
		s.field = field
	}
	if d.Refusal != "" {
		s.refused = true
	}
	for _, say := range []struct {
		kind PartType
		text string
	}{
		{PartReasoning, reasoning}, {PartReasoning, d.Content.thinking}, {PartText, d.Content.text}, {PartText, string(d.Refusal)},
	} {
		if err := s.say(say.kind, say.text); err != nil {
			return err
		}
	}
	calls := d.ToolCalls
	if d.FunctionCall != nil {
		zero := 0
		calls = append(calls, chatCallDelta{Index: &zero, Function: *d.FunctionCall})
	}
	for i := range calls {
		if err := s.call(&calls[i]); err != nil {
			return err
		}
	}
	return nil
}

// call takes a piece of a tool call.
func (s *chatStream) call(d *chatCallDelta) error {
	args := string(d.Function.Arguments)
	at := s.findCall(d)
	if at < 0 {
		if d.ID == "" && d.Function.Name == "" && strings.TrimSpace(args) == "" {
			return nil // says nothing, and belongs to nothing
		}
		s.endSpoken()
		part, err := s.open(Part{Type: PartToolCall, CallID: freshCallID(string(d.ID), s.used), ToolName: string(d.Function.Name)})
		if err != nil {
			return err
		}
		state := chatCallState{part: part, index: -1, id: string(d.ID)}
		if d.Index != nil {
			state.index = *d.Index
		}
		s.calls, at = append(s.calls, state), len(s.calls)
	}
	c := &s.calls[at]
	c.event = s.events
	if len(d.ExtraContent) > 0 && string(d.ExtraContent) != "null" {
		c.extra = d.ExtraContent
	}
	m := s.parts[c.part]
	if m.part.ToolName == "" {
		m.part.ToolName = string(d.Function.Name)
	}
	if m.args.complete && m.text.String() == args {
		return nil // some servers say the whole once more at the end
	}
	return s.add(c.part, args)
}

// findCall gives the call that a piece belongs to, -1 if it begins a new one.
// Servers that count wrongly, or not at all, are told apart by ids, then by
// names: a name after complete arguments begins a call, and so does a name that
// stands in one event with another.
func (s *chatStream) findCall(d *chatCallDelta) int {
	name, args := string(d.Function.Name), strings.TrimSpace(string(d.Function.Arguments))
	for i := len(s.calls) - 1; i >= 0; i-- {
		c := &s.calls[i]
		m := s.parts[c.part]
		switch {
		case d.Index != nil && c.index != *d.Index,
			d.ID != "" && c.id != "" && c.id != string(d.ID),
			d.ID != "" && c.id == "" && d.Index == nil,
			name != "" && c.event == s.events,
			name != "" && m.args.complete && args != "" && m.text.String() != args:
			continue
		case d.Index == nil && d.ID == "":
			if i < len(s.calls)-1 || name != "" && (m.args.complete || name != m.part.ToolName && m.part.ToolName != "") {
				return -1
			}
		}
		return i
	}
	return -1
}

// addDetails collects reasoning_details. Pieces of one detail are joined.
func (s *chatStream) addDetails(raw []json.RawMessage) {
	for _, r := range raw {
		var d map[string]any
		if s.size += len(r); json.Unmarshal(r, &d) != nil || d == nil || s.size > maxPartBytes {
			continue
		}
		if n := len(s.details); n > 0 && s.details[n-1]["type"] == d["type"] && sameIndex(s.details[n-1]["index"], d["index"]) {
			joinDetail(s.details[n-1], d)
			continue
		}
		s.details = append(s.details, d)
	}
}

// sameIndex compares two numbers as JSON gives them.
func sameIndex(a, b any) bool {
	x, isNumber := a.(float64)
	y, also := b.(float64)
	return isNumber && also && x == y
}

// joinDetail adds a piece of a detail to what there is of it.
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
