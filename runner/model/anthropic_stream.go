package model

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"net/http"
)

// claudeMeta is the Meta of a reasoning part. The provider accepts the part back only
// with its signature.
type claudeMeta struct {
	Signature string `json:"signature,omitempty"`
	Redacted  string `json:"redacted,omitempty"` // thinking that only the provider can decrypt
}

// A messagesEvent is an event of the answer, reduced to the fields that are used here.
type messagesEvent struct {
	Type    string `json:"type"`
	Message struct {
		Model string         `json:"model"`
		Usage messagesTokens `json:"usage"`
	} `json:"message"`
	Index        looseCount `json:"index"`
	ContentBlock struct {
		Type      string          `json:"type"`
		Text      string          `json:"text"`
		Thinking  string          `json:"thinking"`
		Signature string          `json:"signature"`
		Data      string          `json:"data"`
		ID        string          `json:"id"`
		Name      string          `json:"name"`
		Input     json.RawMessage `json:"input"`
	} `json:"content_block"`
	Delta struct {
		Type        string `json:"type"`
		Text        string `json:"text"`
		Thinking    string `json:"thinking"`
		PartialJSON string `json:"partial_json"`
		Signature   string `json:"signature"`
		StopReason  string `json:"stop_reason"`
		StopDetails struct {
			Explanation string `json:"explanation"`
		} `json:"stop_details"`
	} `json:"delta"`
	Usage messagesTokens `json:"usage"`
}

// messagesTokens are the token counts in an event.
type messagesTokens struct {
	InputTokens              looseCount `json:"input_tokens"`
	OutputTokens             looseCount `json:"output_tokens"`
	CacheReadInputTokens     looseCount `json:"cache_read_input_tokens"`
	CacheCreationInputTokens looseCount `json:"cache_creation_input_tokens"`
	OutputTokensDetails      struct {
		ThinkingTokens looseCount `json:"thinking_tokens"`
	} `json:"output_tokens_details"`
}

var errNoEvent = errors.New("the model server sent an event that is not JSON")

// A claudeStream reads the events of an answer.
type claudeStream struct {
	assembler
	name   string                      // name of the Model, for Meta
	used   map[string]bool             // call ids of the conversation
	blocks map[looseCount]*claudeBlock // by the provider's index
	metas  map[int]claudeMeta          // by part
	model  string
	stop   string // the provider's stop reason
	why    string // the provider's explanation of a refusal
	usage  claudeUsage
	done   bool
	eventLines
}

// A claudeBlock is a content block of the answer.
type claudeBlock struct {
	kind  string
	part  int    // index in the assembler, -1 without a part
	whole string // arguments in the start event of the block
}

// claudeUsage holds the token counts in the provider's form: each kind of input separately.
type claudeUsage struct{ input, read, write, output, thinking int64 }

// readEvents reads the stream to its last event. message_stop ends the answer, even if the
// server keeps the stream open.
func (s *claudeStream) readEvents(body io.Reader) error {
	err := s.readLines(body, func() bool { return s.done }, func(data []byte) error {
		if len(data) == 0 {
			return nil
		}
		s.events++
		return s.read(s.eventLines.name, data)
	})
	if stray := bytes.TrimSpace(s.stray); err == nil && s.events == 0 && isObject(stray) {
		return s.whole(stray)
	}
	return err
}

// whole handles an answer that is a single JSON document, or an error.
func (s *claudeStream) whole(data []byte) error {
	var m struct {
		Type    string            `json:"type"`
		Model   string            `json:"model"`
		Content []json.RawMessage `json:"content"`
		Stop    string            `json:"stop_reason"`
		Usage   messagesTokens    `json:"usage"`
	}
	if err := json.Unmarshal(data, &m); err != nil || m.Type != "message" {
		return s.read("error", data)
	}
	s.model, s.stop = m.Model, m.Stop
	s.count(&m.Usage)
	for i, raw := range m.Content {
		block := &messagesEvent{Index: looseCount(i)}
		_ = json.Unmarshal(raw, &block.ContentBlock) // a field of another type stays empty
		if err := s.begin(block); err != nil {
			return err
		}
		if err := s.end(block.Index); err != nil {
			return err
		}
	}
	s.done = true
	return nil
}

// read handles the data of an event. It returns a *streamFault for an error within the stream.
func (s *claudeStream) read(name string, data []byte) error {
	var e messagesEvent
	var syntax *json.SyntaxError
	err := json.Unmarshal(s.markHalves(data), &e)
	if name == "error" || e.Type == "error" {
		r := &apiError{}
		r.readBody("/v1/messages", http.Header{}, data)
		// The status of the HTTP response is 200 nevertheless. LiteLLM writes the right one as a code.
		r.status = cmp.Or(numericStatus(r.code), streamStatus(r.kind))
		return &streamFault{r}
	}
	if errors.As(err, &syntax) {
		return errNoEvent
	}
	// A field of another type stays empty: copies of the API may send some.
	return s.event(&e)
}

// event handles one event of the stream.
func (s *claudeStream) event(e *messagesEvent) error {
	switch e.Type {
	case "message_start":
		s.model = e.Message.Model
		// These counts are used if the answer is interrupted. The last message_delta completes
		// them.
		s.usage = claudeUsage{}
		s.count(&e.Message.Usage) // which ignores negative counts
	case "content_block_start":
		return s.begin(e)
	case "content_block_delta":
		return s.delta(e)
	case "content_block_stop":
		return s.end(e.Index)
	case "message_delta":
		s.stop, s.why = e.Delta.StopReason, tidyMessage(e.Delta.StopDetails.Explanation, nil)
		s.count(&e.Usage)
	case "message_stop":
		s.done = true
	}
	return nil
}

// count updates the counts. The provider may omit counts that did not change.
func (s *claudeStream) count(u *messagesTokens) {
	s.usage.output = max(s.usage.output, int64(u.OutputTokens))
	s.usage.input = max(s.usage.input, int64(u.InputTokens))
	s.usage.read = max(s.usage.read, int64(u.CacheReadInputTokens))
	s.usage.write = max(s.usage.write, int64(u.CacheCreationInputTokens))
	s.usage.thinking = max(s.usage.thinking, int64(u.OutputTokensDetails.ThinkingTokens))
}

// begin handles the start of a block. It ignores blocks of unknown kinds.
func (s *claudeStream) begin(e *messagesEvent) (err error) {
	b := &claudeBlock{kind: e.ContentBlock.Type, part: -1}
	// Blocks of unknown kinds count, too: no stream may fill the memory with them.
	if len(s.blocks) == maxParts {
		return errTooMuch
	}
	s.blocks[e.Index] = b
	switch b.kind {
	case "text":
		return s.add(b, PartText, e.ContentBlock.Text)
	case "thinking":
		if b.part, err = s.open(Part{Type: PartReasoning}); err != nil {
			return err
		}
		s.metas[b.part] = claudeMeta{Signature: e.ContentBlock.Signature}
		return s.add(b, PartReasoning, e.ContentBlock.Thinking)
	case "redacted_thinking":
		if b.part, err = s.open(Part{Type: PartReasoning}); err == nil {
			s.metas[b.part] = claudeMeta{Redacted: e.ContentBlock.Data}
		}
	case "tool_use":
		b.whole = string(e.ContentBlock.Input)
		b.part, err = s.open(Part{Type: PartToolCall, CallID: freshCallID(e.ContentBlock.ID, s.used),
			ToolName: e.ContentBlock.Name})
	}
	return err
}

// delta handles a piece of a block.
func (s *claudeStream) delta(e *messagesEvent) error {
	b := s.blocks[e.Index]
	// Ignore a piece of a block that never began.
	if b == nil {
		return nil
	}
	switch d := &e.Delta; d.Type {
	case "text_delta":
		return s.add(b, PartText, d.Text)
	case "thinking_delta":
		return s.add(b, PartReasoning, d.Thinking)
	case "input_json_delta":
		return s.add(b, PartToolCall, d.PartialJSON)
	case "signature_delta":
		if b.kind == "thinking" {
			meta := s.metas[b.part]
			meta.Signature += d.Signature
			s.metas[b.part] = meta
		}
	}
	return nil
}

// add adds text to a block. The first text of a text block opens the part.
func (s *claudeStream) add(b *claudeBlock, t PartType, text string) (err error) {
	if text == "" {
		return nil
	}
	// A text block may stay empty, and providers reject empty text in later requests.
	if b.part < 0 && t == PartText && b.kind == "text" {
		if b.part, err = s.open(Part{Type: t}); err != nil {
			return err
		}
	}
	if b.part < 0 || s.parts[b.part].part.Type != t {
		return nil
	}
	return s.assembler.add(b.part, text)
}

// end handles the end of a block. If no arguments arrived in pieces, those from the start of
// the block are complete. An empty object there is only a placeholder.
func (s *claudeStream) end(index looseCount) error {
	b := s.blocks[index]
	if b == nil || b.part < 0 {
		return nil
	}
	if b.kind == "tool_use" && s.parts[b.part].text.Len() == 0 && b.whole != "null" && b.whole != "{}" {
		if err := s.add(b, PartToolCall, b.whole); err != nil {
			return err
		}
	}
	s.assembler.end(b.part)
	return nil
}
