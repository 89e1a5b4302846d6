package model

import (
	"bytes"
	"encoding/json"
	"io"
	"strconv"
	"strings"
)

// A responseEvent is an event of a Responses API stream. Type determines the fields that are
// set. Events of other types are ignored.
type responseEvent struct {
	Type         string          `json:"type"`
	OutputIndex  *looseCount     `json:"output_index"`
	ItemID       looseText       `json:"item_id"`
	SummaryIndex looseCount      `json:"summary_index"`
	Delta        looseText       `json:"delta"`
	Item         *responseItem   `json:"item"`
	Response     *responseObject `json:"response"`
}

// A responseItem is an item of the answer: a message, reasoning or a tool call.
type responseItem struct {
	Type      string          `json:"type"`
	ID        looseText       `json:"id"`
	CallID    looseText       `json:"call_id"`
	Name      looseText       `json:"name"`
	Arguments looseText       `json:"arguments"`
	Phase     looseText       `json:"phase"`
	Status    looseText       `json:"status"`
	Content   json.RawMessage `json:"content"`
	Summary   json.RawMessage `json:"summary"`
	Encrypted looseText       `json:"encrypted_content"`
}

// A responseObject is the complete answer, which the last event of a stream contains.
type responseObject struct {
	Object     string          `json:"object"`
	Model      looseText       `json:"model"`
	Status     string          `json:"status"`
	Error      json.RawMessage `json:"error"`
	Incomplete struct {
		Reason looseText `json:"reason"`
	} `json:"incomplete_details"`
	Output []responseItem  `json:"output"`
	Usage  *responsesUsage `json:"usage"`
}

type responsesUsage struct {
	InputTokens  looseCount `json:"input_tokens"`
	OutputTokens looseCount `json:"output_tokens"`
	TotalTokens  looseCount `json:"total_tokens"`
	InputDetails struct {
		CachedTokens     looseCount `json:"cached_tokens"`
		CacheWriteTokens looseCount `json:"cache_write_tokens"`
	} `json:"input_tokens_details"`
	OutputDetails struct {
		ReasoningTokens looseCount `json:"reasoning_tokens"`
	} `json:"output_tokens_details"`
}

// A responseStream reads an answer of the Responses API.
type responseStream struct {
	assembler
	name    string          // name of the Model, for Meta
	used    map[string]bool // call ids of the conversation
	items   map[string]*itemState
	metas   map[int]responsesMeta // by part
	refusal strings.Builder
	eventLines
	final *responseObject // nil until the last event
	usage *responsesUsage
}

// An itemState is an item of the answer that has begun.
type itemState struct {
	kind    PartType   // "" for items that are not used here, such as a search by the provider
	part    int        // index in the assembler; -1 before the first text of the item
	section looseCount // index of the current summary of the reasoning
	ended   bool
}

// read reads the stream to its end.
func (s *responseStream) read(body io.Reader) error {
	if err := s.readLines(body, func() bool { return s.final != nil }, s.event); err != nil {
		return err
	}
	if stray := bytes.TrimSpace(s.stray); s.events == 0 && isObject(stray) {
		return s.whole(stray) // an error, or a complete answer that was not streamed
	}
	return nil
}

// whole handles an answer that is a single JSON document, or an error.
func (s *responseStream) whole(data []byte) error {
	var whole responseObject
	if json.Unmarshal(data, &whole) != nil {
		return errNoChunk
	}
	if whole.Object != "response" {
		return streamError(data)
	}
	return s.end(&whole)
}

// event handles one event. It returns a *streamFault for an error within the stream.
func (s *responseStream) event(data []byte) error {
	if len(data) == 0 || string(data) == "[DONE]" {
		return nil
	}
	var e responseEvent
	if err := json.Unmarshal(s.markHalves(data), &e); err != nil {
		return errNoChunk
	}
	s.events++
	switch e.Type {
	case "error", "":
		return streamError(data) // some servers send errors in another form, without a type
	case "response.completed", "response.incomplete", "response.failed", "response.cancelled":
		// Without the complete answer, the finish reason is unknown.
		if e.Response == nil {
			return errNoChunk
		}
		return s.end(e.Response)
	case "response.output_item.added":
		_, err := s.begin(&e)
		return err
	case "response.output_item.done":
		return s.complete(&e)
	}
	return s.piece(&e)
}

// piece handles an event with a piece of an item.
func (s *responseStream) piece(e *responseEvent) error {
	switch e.Type {
	case "response.output_text.delta":
		return s.text(e, PartText)
	case "response.refusal.delta":
		s.refusal.WriteString(string(e.Delta)) // without a limit, because it is also added to the text, which has one
		return s.text(e, PartText)
	case "response.reasoning_summary_text.delta",
		"response.reasoning_text.delta": // open models, whose reasoning is not encrypted
		return s.text(e, PartReasoning)
	case "response.function_call_arguments.delta":
		it := s.items[e.key()]
		if it == nil || it.kind != PartToolCall || it.ended {
			return nil // the piece belongs to no call
		}
		return s.add(it.part, string(e.Delta))
	}
	return nil
}

// key returns the key of an event's item. Some servers change the ids of items between events,
// others omit the index.
func (e *responseEvent) key() string {
	switch {
	case e.OutputIndex != nil:
		return "#" + strconv.Itoa(int(*e.OutputIndex))
	case e.ItemID == "" && e.Item != nil:
		return string(e.Item.ID)
	}
	return string(e.ItemID)
}

// begin returns the state of an event's item, which may be new. A call gets its part
// immediately. Text and reasoning get a part with their first text: items without text are
// common, and watchers would see an empty part.
func (s *responseStream) begin(e *responseEvent) (*itemState, error) {
	it := s.items[e.key()]
	if it != nil || e.Item == nil {
		return it, nil
	}
	it = &itemState{part: -1}
	var err error
	switch e.Item.Type {
	case "message":
		it.kind = PartText
	case "reasoning":
		it.kind = PartReasoning
	// Watchers see a call as soon as its name has arrived.
	case "function_call":
		it.kind = PartToolCall
		it.part, err = s.open(Part{Type: PartToolCall, ToolName: string(e.Item.Name),
			CallID: freshCallID(string(e.Item.CallID), s.used)})
	}
	return it, s.keep(e.key(), it, err)
}

// keep stores an item. Items without a part count towards the limit of parts, too.
func (s *responseStream) keep(key string, it *itemState, err error) error {
	if err == nil && len(s.items) == maxParts {
		err = errTooMuch
	}
	if s.items == nil {
		s.items = map[string]*itemState{}
	}
	s.items[key] = it
	return err
}

// text adds a piece of text or reasoning. Some servers do not announce items, so the first
// piece begins the item.
func (s *responseStream) text(e *responseEvent, t PartType) error {
	it := s.items[e.key()]
	if it == nil {
		it = &itemState{kind: t, part: -1}
		if err := s.keep(e.key(), it, nil); err != nil {
			return err
		}
	}
	if it.kind != t || it.ended {
		return nil // a piece of an item of another kind, or of a complete item
	}
	text := string(e.Delta)
	if it.section != e.SummaryIndex && it.part >= 0 {
		text = "\n\n" + text // a summary consists of paragraphs
	}
	it.section = e.SummaryIndex
	return s.addTo(it, text)
}

// addTo adds text to an item, and creates its part if it has none.
func (s *responseStream) addTo(it *itemState, text string) (err error) {
	if it.part < 0 {
		if it.part, err = s.open(Part{Type: it.kind}); err != nil {
			return err
		}
	}
	return s.add(it.part, text)
}

// complete ends an item. It adds text that did not arrive in pieces.
func (s *responseStream) complete(e *responseEvent) error {
	it, err := s.begin(e)
	if err != nil || it == nil || it.kind == "" || it.ended || e.Item == nil {
		return err
	}
	it.ended = true
	if it.part < 0 || s.parts[it.part].text.Len() == 0 {
		text := s.wholeText(e.Item)
		// Reasoning that only the provider can decrypt has no text, but must be sent back.
		if text != "" || it.kind == PartReasoning && e.Item.Encrypted != "" {
			if err := s.addTo(it, text); err != nil {
				return err
			}
		}
	}
	if it.part < 0 {
		return nil
	}
	// A call that was cut off does not end: its arguments are incomplete.
	if it.kind != PartToolCall || e.Item.Status != "incomplete" {
		s.assembler.end(it.part)
	}
	s.remember(it, e.Item)
	return nil
}

// wholeText returns the text of an item that arrived in one piece.
func (s *responseStream) wholeText(item *responseItem) string {
	if item.Type == "function_call" {
		return string(item.Arguments)
	}
	list, between := item.Content, ""
	if item.Type == "reasoning" {
		between = "\n\n" // a summary consists of paragraphs
		if len(item.Summary) > len(`[]`) {
			list = item.Summary
		}
	}
	var pieces []struct {
		Text    looseText `json:"text"`
		Refusal looseText `json:"refusal"`
	}
	_ = json.Unmarshal(list, &pieces) // a list of another form has no text
	texts := make([]string, len(pieces))
	for i, p := range pieces {
		s.refusal.WriteString(string(p.Refusal))
		// Users read a refusal like any text. The field refusal determines the finish reason.
		texts[i] = string(p.Text + p.Refusal)
	}
	return strings.Join(texts, between)
}

// remember stores the fields of an item that the provider needs in later requests.
func (s *responseStream) remember(it *itemState, item *responseItem) {
	meta := responsesMeta{}
	switch {
	case it.kind == PartReasoning && item.Encrypted != "":
		meta.Item = &reasoningItem{Type: "reasoning", ID: string(item.ID), Summary: item.Summary,
			Content: item.Content, Encrypted: string(item.Encrypted)}
		if len(item.Summary) == 0 || string(item.Summary) == "null" {
			meta.Item.Summary = json.RawMessage(`[]`) // the API requires a list
		}
		if string(item.Content) == "null" {
			meta.Item.Content = nil
		}
	case it.kind == PartText && item.Phase != "":
		meta.Phase = string(item.Phase)
	default:
		return
	}
	if s.metas == nil {
		s.metas = map[int]responsesMeta{}
	}
	s.metas[it.part] = meta
}

// end handles the complete answer at the end of a stream.
func (s *responseStream) end(whole *responseObject) error {
	// Set the usage before any error, because a failed answer costs tokens, too.
	if whole.Usage != nil {
		s.usage = whole.Usage
	}
	failed := whole.Status == "failed" || whole.Status == "cancelled"
	if failed || len(whole.Error) > 0 && string(whole.Error) != "null" {
		return responseFault(whole)
	}
	for i := range whole.Output {
		// Items that were not streamed are added now. The others are found by their index or
		// id.
		item := &whole.Output[i]
		if err := s.complete(&responseEvent{OutputIndex: s.placeOf(i, item), ItemID: item.ID, Item: item}); err != nil {
			return err
		}
	}
	s.final = whole
	return nil
}

// placeOf returns the index of an item in the complete answer. It returns nil if the stream
// identified its items by id.
func (s *responseStream) placeOf(i int, item *responseItem) *looseCount {
	if _, byID := s.items[string(item.ID)]; byID && item.ID != "" {
		return nil
	}
	return new(looseCount(i))
}

// responseFault returns the error of an answer that failed.
func responseFault(whole *responseObject) error {
	raw, _ := json.Marshal(map[string]json.RawMessage{"error": whole.Error}) // the error was parsed from JSON
	fault := streamError(raw)
	r := fault.(*streamFault).refusal
	// These errors concern the request. With status 500 the runner would retry it without
	// success.
	switch {
	case strings.HasSuffix(r.code, "_policy"), strings.HasSuffix(r.code, "_policy_violation"):
		r.status, r.code = 400, codeContentFilter
	case strings.HasPrefix(r.code, "invalid_"), strings.Contains(r.code, "image"):
		r.status = 400
	}
	return fault
}
