package model

import (
	"encoding/base64"
	"encoding/json"
	"strings"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/packages/param"
)

// claudeMeta is the Meta of a reasoning part. The provider accepts the part back only
// with its signature.
type claudeMeta struct {
	Signature string `json:"signature,omitempty"`
	Redacted  string `json:"redacted,omitempty"` // thinking that only the provider can read
}

// params converts a Request, without the features that q excludes.
func (c *claude) params(req *Request, q claudeQuirks) anthropic.MessageNewParams {
	out := anthropic.MessageNewParams{Model: c.model, MaxTokens: q.maxTokens, Messages: c.messages(req, q)}
	var schema []string
	if len(req.OutputSchema) > 0 {
		schema = []string{schemaInstruction(req.OutputSchema)}
		// The rest of a cut answer alone does not match the schema.
		if wire, ok := toWireSchema(req.OutputSchema); ok && !q.noSchema && !req.goesOn() {
			out.OutputConfig.Format = anthropic.JSONOutputFormatParam{Schema: wire.schema}
		}
	}
	if text := system(req, schema...); text != "" {
		// This mark caches everything before the conversation, tools included.
		out.System = []anthropic.TextBlockParam{{Text: text, CacheControl: anthropic.NewCacheControlEphemeralParam()}}
	}
	// Watchers see the summaries while the model has not answered yet.
	if !q.noThinking {
		out.Thinking.OfAdaptive = &anthropic.ThinkingConfigAdaptiveParam{
			Display: anthropic.ThinkingConfigAdaptiveDisplaySummarized}
	}
	out.Tools = c.tools(req)
	// The tools of a final call stay, so that the cache has the beginning of the request.
	if len(out.Tools) > 0 && (req.Final || len(req.Tools) == 0) {
		none := anthropic.NewToolChoiceNoneParam()
		out.ToolChoice.OfNone = &none
	}
	return out
}

// tools converts the tools of a request. The provider wants the tools of earlier calls
// named even if the model may not call any, so these are listed if there are no others.
func (c *claude) tools(req *Request) []anthropic.ToolUnionParam {
	var out []anthropic.ToolUnionParam
	for _, t := range req.Tools {
		out = append(out, anthropic.ToolUnionParam{OfTool: &anthropic.ToolParam{Name: t.Name,
			Description: anthropic.String(t.Description),
			InputSchema: param.Override[anthropic.ToolInputSchemaParam](t.InputSchema)}})
	}
	if len(out) > 0 {
		return out
	}
	// The worker has lost its tools.
	named := map[string]bool{}
	for _, m := range req.Messages {
		for _, p := range m.Parts {
			name := safeName(p.ToolName, 128)
			if p.Type == PartToolCall && !named[name] {
				named[name] = true
				out = append(out, anthropic.ToolUnionParam{OfTool: &anthropic.ToolParam{Name: name,
					InputSchema: param.Override[anthropic.ToolInputSchemaParam](json.RawMessage(`{"type":"object"}`))}})
			}
		}
	}
	return out
}

// messages converts the conversation. Cache marks on the last two user messages let the
// next call find this conversation in the provider's cache.
func (c *claude) messages(req *Request, q claudeQuirks) []anthropic.MessageParam {
	var out []anthropic.MessageParam
	files := attacher{left: maxInlineTotal, noPDFs: q.noPDFs}
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
		// The provider refuses a message without content.
		if len(blocks) == 0 {
			blocks = append(blocks, anthropic.NewTextBlock("(empty)"))
		}
		if n := len(out); n > 0 && out[n-1].Role == role {
			out[n-1].Content = append(out[n-1].Content, blocks...)
			continue // the provider wants the roles to alternate
		}
		out = append(out, anthropic.MessageParam{Role: role, Content: blocks})
	}
	// The last mark is for the next call. The one before it is where the previous call wrote the cache.
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

// block converts a part. It reports false if nothing is to be sent.
func (c *claude) block(p Part, files *attacher, q claudeQuirks) (b anthropic.ContentBlockParamUnion, ok bool) {
	switch p.Type {
	case PartText:
		return anthropic.NewTextBlock(p.Text), strings.TrimSpace(p.Text) != "" // the provider refuses blank text
	case PartReasoning:
		var meta claudeMeta
		// The provider refuses the signatures of other models, and thinking without one.
		if q.noThoughts || !openMeta(c.name, p.Meta, &meta) {
			return b, false
		}
		if meta.Redacted != "" {
			return anthropic.NewRedactedThinkingBlock(meta.Redacted), true
		}
		return anthropic.NewThinkingBlock(meta.Signature, p.Text), meta.Signature != ""
	case PartToolCall:
		id, name := safeName(p.CallID, 64), safeName(p.ToolName, 128)
		return anthropic.NewToolUseBlock(id, argumentsObject(p.Input), name), true
	case PartToolResult:
		return toolResultBlock(p, files), true
	case PartFile:
		return fileBlock(files.attach(p)), true
	}
	return b, false
}

// toolResultBlock converts the result of a tool call, with its images.
func toolResultBlock(p Part, files *attacher) anthropic.ContentBlockParamUnion {
	text := p.Text
	if strings.TrimSpace(text) == "" {
		text = "(no output)"
	}
	b := anthropic.NewToolResultBlock(safeName(p.CallID, 64), text, p.IsError)
	for _, image := range p.Images {
		// An image that is too large becomes a text with its path.
		shown := fileBlock(files.attach(image))
		b.OfToolResult.Content = append(b.OfToolResult.Content,
			anthropic.ToolResultBlockParamContentUnion{OfText: shown.OfText, OfImage: shown.OfImage})
	}
	return b
}

// fileBlock converts an attached file.
func fileBlock(at attachment) anthropic.ContentBlockParamUnion {
	data := base64.StdEncoding.EncodeToString(at.data)
	switch at.kind {
	case fileImage:
		return anthropic.NewImageBlockBase64(at.mediaType, data)
	case filePDF:
		b := anthropic.NewDocumentBlock(anthropic.Base64PDFSourceParam{Data: data})
		b.OfDocument.Title = anthropic.String(at.name)
		return b
	}
	return anthropic.NewTextBlock(at.text)
}

// A claudeStream reads the events of an answer.
type claudeStream struct {
	assembler
	name   string                 // of the Model, for Meta
	used   map[string]bool        // call ids of the conversation
	blocks map[int64]*claudeBlock // by the provider's index
	metas  map[int]claudeMeta     // by part
	model  string
	stop   anthropic.StopReason
	why    string // the model refused, in the provider's words
	usage  claudeUsage
	done   bool
}

// A claudeBlock is a content block of the answer.
type claudeBlock struct {
	kind  string
	part  int    // index in the assembler, -1 while there is none
	whole string // arguments that came with the start of the block
}

// claudeUsage counts tokens as the provider does, each kind of input separately.
type claudeUsage struct{ input, read, write, output, thinking int64 }

// event handles one event of the stream.
func (s *claudeStream) event(e *anthropic.MessageStreamEventUnion) error {
	switch e.Type {
	case "message_start":
		s.model = string(e.Message.Model)
		// These counts hold if the answer breaks off. The last message_delta completes them.
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

// count updates the counts. The provider may leave out those that did not change.
func (s *claudeStream) count(u *anthropic.MessageDeltaUsage) {
	s.usage.output = max(s.usage.output, u.OutputTokens)
	s.usage.input = max(s.usage.input, u.InputTokens)
	s.usage.read = max(s.usage.read, u.CacheReadInputTokens)
	s.usage.write = max(s.usage.write, u.CacheCreationInputTokens)
	s.usage.thinking = max(s.usage.thinking, u.OutputTokensDetails.ThinkingTokens)
}

// begin handles the start of a block. It ignores blocks of unknown kinds.
func (s *claudeStream) begin(e *anthropic.MessageStreamEventUnion) (err error) {
	b := &claudeBlock{kind: e.ContentBlock.Type, part: -1}
	// Blocks of unknown kinds count too: no stream may fill the memory with them.
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
		// Marshal would escape <, > and & in arguments that are JSON already.
		if raw, ok := e.ContentBlock.Input.(json.RawMessage); ok {
			b.whole = string(raw)
		} else if raw, err := json.Marshal(e.ContentBlock.Input); err == nil {
			b.whole = string(raw)
		}
		b.part, err = s.open(Part{Type: PartToolCall, CallID: freshCallID(e.ContentBlock.ID, s.used),
			ToolName: e.ContentBlock.Name})
	}
	return err
}

// delta handles a piece of a block.
func (s *claudeStream) delta(e *anthropic.MessageStreamEventUnion) error {
	b := s.blocks[e.Index]
	// A piece of a block that never began has no place.
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

// add adds text to a block. It opens the part of a text block with its first text.
func (s *claudeStream) add(b *claudeBlock, t PartType, text string) (err error) {
	if text == "" {
		return nil
	}
	// A text block may stay empty, and providers refuse empty text when it comes back.
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

// end handles the end of a block. If no arguments came in pieces, those from the start of
// the block are complete. An empty object there is a placeholder and means nothing.
func (s *claudeStream) end(index int64) error {
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
