package model

import (
	"encoding/base64"
	"encoding/json"
	"strings"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/packages/param"
)

// claudeMeta is what a reasoning part keeps for the model that thought it:
// without its signature it cannot go back.
type claudeMeta struct {
	Signature string `json:"signature,omitempty"`
	Redacted  string `json:"redacted,omitempty"` // thinking that only the provider can read
}

// params puts a Request into the provider's words, as far as q allows.
func (c *claude) params(req *Request, q claudeQuirks) anthropic.MessageNewParams {
	out := anthropic.MessageNewParams{Model: c.model, MaxTokens: q.maxTokens, Messages: c.messages(req, q)}
	var schema []string
	if len(req.OutputSchema) > 0 {
		schema = []string{schemaWords(req.OutputSchema)}
		if wire, ok := toWireSchema(req.OutputSchema); ok && !q.noSchema {
			out.OutputConfig.Format = anthropic.JSONOutputFormatParam{Schema: wire.schema}
		}
	}
	if text := system(req, schema...); text != "" {
		// The mark caches all that stands before the conversation, tools included.
		out.System = []anthropic.TextBlockParam{{Text: text, CacheControl: anthropic.NewCacheControlEphemeralParam()}}
	}
	if !q.noThinking {
		out.Thinking.OfAdaptive = &anthropic.ThinkingConfigAdaptiveParam{Display: anthropic.ThinkingConfigAdaptiveDisplaySummarized}
	}
	out.Tools = c.tools(req)
	if len(out.Tools) > 0 && (req.Final || len(req.Tools) == 0) {
		none := anthropic.NewToolChoiceNoneParam()
		out.ToolChoice.OfNone = &none
	}
	return out
}

// tools are what the model may call. A conversation with calls must name the
// tools even if none may be called any more.
func (c *claude) tools(req *Request) []anthropic.ToolUnionParam {
	var out []anthropic.ToolUnionParam
	for _, t := range req.Tools {
		out = append(out, anthropic.ToolUnionParam{OfTool: &anthropic.ToolParam{Name: t.Name,
			Description: anthropic.String(t.Description), InputSchema: param.Override[anthropic.ToolInputSchemaParam](t.InputSchema)}})
	}
	if len(out) > 0 {
		return out
	}
	named := map[string]bool{}
	for _, m := range req.Messages {
		for _, p := range m.Parts {
			name := plainWord(p.ToolName, 128)
			if p.Type == PartToolCall && !named[name] {
				named[name] = true
				out = append(out, anthropic.ToolUnionParam{OfTool: &anthropic.ToolParam{Name: name,
					InputSchema: param.Override[anthropic.ToolInputSchemaParam](json.RawMessage(`{"type":"object"}`))}})
			}
		}
	}
	return out
}

// messages are the conversation in the provider's words. Two marks let the next
// call find in the cache what this one has sent.
func (c *claude) messages(req *Request, q claudeQuirks) []anthropic.MessageParam {
	var out []anthropic.MessageParam
	files := attacher{left: maxInlineTotal, unlearned: q.noPDFs}
	for _, m := range req.Messages {
		role, blocks := anthropic.MessageParamRoleUser, []anthropic.ContentBlockParamUnion(nil)
		for _, p := range m.Parts {
			if b, ok := c.block(p, &files, q); ok {
				blocks = append(blocks, b)
			}
		}
		if m.Role == RoleAssistant {
			role = anthropic.MessageParamRoleAssistant
		}
		if len(blocks) == 0 {
			blocks = append(blocks, anthropic.NewTextBlock("(empty)"))
		}
		if n := len(out); n > 0 && out[n-1].Role == role {
			out[n-1].Content = append(out[n-1].Content, blocks...)
			continue
		}
		out = append(out, anthropic.MessageParam{Role: role, Content: blocks})
	}
	for i, marks := len(out)-1, 0; i >= 0 && marks < 2; i-- {
		if out[i].Role == anthropic.MessageParamRoleUser {
			mark(out[i].Content[len(out[i].Content)-1])
			marks++
		}
	}
	return out
}

// mark asks the provider to cache the conversation up to a block.
func mark(b anthropic.ContentBlockParamUnion) {
	if at := b.GetCacheControl(); at != nil {
		*at = anthropic.NewCacheControlEphemeralParam()
	}
}

// block is a part in the provider's words. Not ok means that it has nothing to say.
func (c *claude) block(p Part, files *attacher, q claudeQuirks) (b anthropic.ContentBlockParamUnion, ok bool) {
	switch p.Type {
	case PartText:
		return anthropic.NewTextBlock(p.Text), strings.TrimSpace(p.Text) != "" // blank ones are refused
	case PartReasoning:
		var meta claudeMeta
		if q.noThoughts || !openMeta(c.name, p.Meta, &meta) {
			return b, false
		}
		if meta.Redacted != "" {
			return anthropic.NewRedactedThinkingBlock(meta.Redacted), true
		}
		return anthropic.NewThinkingBlock(meta.Signature, p.Text), meta.Signature != ""
	case PartToolCall:
		return anthropic.NewToolUseBlock(plainWord(p.CallID, 64), argumentsObject(p.Input), plainWord(p.ToolName, 128)), true
	case PartToolResult:
		text := p.Text
		if strings.TrimSpace(text) == "" {
			text = "(no output)"
		}
		return anthropic.NewToolResultBlock(plainWord(p.CallID, 64), text, p.IsError), true
	case PartFile:
		return fileBlock(files.attach(p)), true
	}
	return b, false
}

// fileBlock is an attached file in the provider's words.
func fileBlock(at attachment) anthropic.ContentBlockParamUnion {
	switch at.kind {
	case fileImage:
		return anthropic.NewImageBlockBase64(at.mediaType, base64.StdEncoding.EncodeToString(at.data))
	case filePDF:
		b := anthropic.NewDocumentBlock(anthropic.Base64PDFSourceParam{Data: base64.StdEncoding.EncodeToString(at.data)})
		b.OfDocument.Title = anthropic.String(at.name)
		return b
	}
	return anthropic.NewTextBlock(at.text)
}

// A claudeStream reads an answer of the messages API.
type claudeStream struct {
	assembler
	name   string // of our model, for Meta
	used   map[string]bool
	blocks map[int64]*claudeBlock
	metas  map[int]claudeMeta // by part
	model  string
	stop   anthropic.StopReason
	why    string // the model refused
	usage  claudeUsage
	done   bool
}

// A claudeBlock is a content block of the answer.
type claudeBlock struct {
	kind  string
	part  int // index in the assembler, -1 while there is none
	whole string
}

// claudeUsage counts as the provider does: each kind of input apart.
type claudeUsage struct{ input, read, write, output, thinking int64 }

// event takes one event of the stream.
func (s *claudeStream) event(e *anthropic.MessageStreamEventUnion) error {
	switch e.Type {
	case "message_start":
		s.model = string(e.Message.Model)
		u := e.Message.Usage
		s.usage = claudeUsage{u.InputTokens, u.CacheReadInputTokens, u.CacheCreationInputTokens, u.OutputTokens, 0}
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

// count takes the counts so far; those that are left out stay.
func (s *claudeStream) count(u *anthropic.MessageDeltaUsage) {
	s.usage.output = max(s.usage.output, u.OutputTokens)
	s.usage.input = max(s.usage.input, u.InputTokens)
	s.usage.read = max(s.usage.read, u.CacheReadInputTokens)
	s.usage.write = max(s.usage.write, u.CacheCreationInputTokens)
	s.usage.thinking = max(s.usage.thinking, u.OutputTokensDetails.ThinkingTokens)
}

// begin takes the start of a block, of a kind that is used here.
func (s *claudeStream) begin(e *anthropic.MessageStreamEventUnion) (err error) {
	b := &claudeBlock{kind: e.ContentBlock.Type, part: -1}
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
		if raw, ok := e.ContentBlock.Input.(json.RawMessage); ok {
			b.whole = string(raw)
		} else if raw, err := json.Marshal(e.ContentBlock.Input); err == nil {
			b.whole = string(raw)
		}
		b.part, err = s.open(Part{Type: PartToolCall, CallID: freshCallID(e.ContentBlock.ID, s.used), ToolName: e.ContentBlock.Name})
	}
	return err
}

// delta takes a piece of a block.
func (s *claudeStream) delta(e *anthropic.MessageStreamEventUnion) error {
	b := s.blocks[e.Index]
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

// add adds text to a block of that type, beginning its part if need be.
func (s *claudeStream) add(b *claudeBlock, t PartType, text string) (err error) {
	if text == "" {
		return nil
	}
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

// end takes the end of a block. Arguments that came with its start and in no
// piece after it are the whole of them.
func (s *claudeStream) end(index int64) error {
	b := s.blocks[index]
	if b == nil || b.part < 0 {
		return nil
	}
	if b.kind == "tool_use" && s.parts[b.part].text.Len() == 0 && b.whole != "null" {
		if err := s.add(b, PartToolCall, b.whole); err != nil {
			return err
		}
	}
	s.assembler.end(b.part)
	return nil
}
