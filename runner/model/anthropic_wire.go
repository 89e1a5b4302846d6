package model

import (
	"encoding/base64"
	"encoding/json"
	"strings"
)

// A claudeRequest is the body of a Messages API request, reduced to the fields that are used
// here.
type claudeRequest struct {
	Model        string          `json:"model"`
	MaxTokens    int64           `json:"max_tokens"`
	System       []claudeContent `json:"system,omitempty"`
	Messages     []claudeMessage `json:"messages"`
	Tools        []claudeTool    `json:"tools,omitempty"`
	ToolChoice   *claudeKind     `json:"tool_choice,omitempty"`
	Thinking     *claudeThinking `json:"thinking,omitempty"`
	OutputConfig *claudeOutput   `json:"output_config,omitempty"`
	Temperature  *float64        `json:"temperature,omitempty"`
	Stream       bool            `json:"stream"`
}

type claudeMessage struct {
	Role    string           `json:"role"`
	Content []*claudeContent `json:"content"`
}

// A claudeContent is a block of a message. Type determines the fields that are set.
type claudeContent struct {
	Type         string           `json:"type"`
	Text         string           `json:"text,omitempty"`
	Thinking     *string          `json:"thinking,omitempty"` // may be empty if there is a signature
	Signature    string           `json:"signature,omitempty"`
	Data         string           `json:"data,omitempty"`   // redacted thinking
	Source       *claudeSource    `json:"source,omitempty"` // an image or a document
	Title        string           `json:"title,omitempty"`
	ID           string           `json:"id,omitempty"` // call id
	Name         string           `json:"name,omitempty"`
	Input        json.RawMessage  `json:"input,omitempty"`
	ToolUseID    string           `json:"tool_use_id,omitempty"` // id of the call with this result
	Content      []*claudeContent `json:"content,omitempty"`     // the result
	IsError      *bool            `json:"is_error,omitempty"`
	CacheControl *claudeKind      `json:"cache_control,omitempty"`
}

// A claudeSource is the data of a file, in base64.
type claudeSource struct {
	Type      string `json:"type"`
	MediaType string `json:"media_type"`
	Data      string `json:"data"`
}

type claudeTool struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	InputSchema json.RawMessage `json:"input_schema"`
}

// A claudeKind is a JSON object that has only a type.
type claudeKind struct {
	Type string `json:"type"`
}

type claudeThinking struct {
	Type         string `json:"type"`
	Display      string `json:"display,omitempty"`
	BudgetTokens int64  `json:"budget_tokens,omitempty"`
}

type claudeOutput struct {
	Format *claudeFormat `json:"format,omitempty"`
	Effort string        `json:"effort,omitempty"`
}

type claudeFormat struct {
	Type   string `json:"type"`
	Schema any    `json:"schema"`
}

// cached returns the mark that ends a part which the provider should cache for five minutes.
func cached() *claudeKind { return &claudeKind{"ephemeral"} }

// request converts a Request. It omits features that q excludes.
func (c *claude) request(req *Request, q claudeQuirks) *claudeRequest {
	out := &claudeRequest{Model: c.model, MaxTokens: q.maxTokens, Messages: c.messages(req, q), Stream: true}
	config := claudeOutput{Effort: q.effortFor(req)}
	var schema []string
	if len(req.OutputSchema) > 0 {
		schema = []string{schemaInstruction(req.OutputSchema)}
		// The continuation of a cut answer alone does not match the schema.
		if wire, ok := toWireSchema(req.OutputSchema); ok && !q.noSchema && !req.goesOn() {
			config.Format = &claudeFormat{"json_schema", wire.schema}
		}
	}
	if text := system(req, schema...); text != "" {
		// This mark caches everything before the conversation, including the tools.
		out.System = []claudeContent{{Type: "text", Text: text, CacheControl: cached()}}
	}
	if config != (claudeOutput{}) {
		out.OutputConfig = &config
	}
	switch budget := q.budgetFor(req); {
	case budget > 0:
		out.Thinking = &claudeThinking{Type: "enabled", BudgetTokens: budget}
	// Watchers see summaries of the thinking before the answer begins.
	case !q.noThinking && req.Effort != "none":
		out.Thinking = &claudeThinking{Type: "adaptive", Display: "summarized"}
	}
	if t := q.sampling.temperature(req); t != nil {
		out.Temperature = new(min(*t, 1)) // the highest that the API accepts
	}
	out.Tools = c.tools(req, q)
	// The tools stay in a final call, so that the cache matches the beginning of the request.
	if len(out.Tools) > 0 && (req.Final || len(req.Tools) == 0) {
		out.ToolChoice = &claudeKind{"none"}
	}
	if q.noMarks {
		out.unmark()
	}
	return out
}

// unmark removes the cache marks.
func (r *claudeRequest) unmark() {
	for i := range r.System {
		r.System[i].CacheControl = nil
	}
	for _, m := range r.Messages {
		for _, block := range m.Content {
			block.CacheControl = nil
		}
	}
}

// tools converts the tools of a request. The provider requires that the tools of earlier calls
// are listed, even if the model may call none now. So these are listed if there are no others.
func (c *claude) tools(req *Request, q claudeQuirks) []claudeTool {
	var out []claudeTool
	for _, t := range req.Tools {
		out = append(out, claudeTool{t.Name, t.Description, plainTool(t.InputSchema, q.bareTools)})
	}
	if len(out) > 0 {
		return out
	}
	// The worker no longer has any tools.
	named := map[string]bool{}
	for _, m := range req.Messages {
		for _, p := range m.Parts {
			name := safeName(p.ToolName, 128)
			if p.Type == PartToolCall && !named[name] {
				named[name] = true
				out = append(out, claudeTool{Name: name, InputSchema: json.RawMessage(`{"type":"object"}`)})
			}
		}
	}
	return out
}

// messages converts the conversation. Cache marks on the last two user messages let the next
// call find this conversation in the provider's cache.
func (c *claude) messages(req *Request, q claudeQuirks) []claudeMessage {
	var out []claudeMessage
	files := newAttacher(req, c.takes(q))
	for _, m := range req.Messages {
		role, blocks := "user", []*claudeContent(nil)
		for _, p := range m.Parts {
			if b := c.block(p, files, q); b != nil {
				blocks = append(blocks, b)
			}
		}
		if m.Role == RoleAssistant {
			role = "assistant"
		}
		// The provider rejects a message without content.
		if len(blocks) == 0 {
			blocks = append(blocks, textBlock("(empty)"))
		}
		if n := len(out); n > 0 && out[n-1].Role == role {
			out[n-1].Content = append(out[n-1].Content, blocks...)
			continue // the provider requires alternating roles
		}
		out = append(out, claudeMessage{role, blocks})
	}
	// The last mark is for the next call. The one before it matches the cache of the previous
	// call.
	for i, marks := len(out)-1, 0; i >= 0 && marks < 2; i-- {
		if out[i].Role == "user" {
			out[i].Content[len(out[i].Content)-1].CacheControl = cached()
			marks++
		}
	}
	return out
}

func textBlock(text string) *claudeContent { return &claudeContent{Type: "text", Text: text} }

// block converts a part. It returns nil if nothing has to be sent.
func (c *claude) block(p Part, files *attacher, q claudeQuirks) *claudeContent {
	switch p.Type {
	case PartText:
		if strings.TrimSpace(p.Text) != "" { // the provider rejects blank text
			return textBlock(p.Text)
		}
	case PartReasoning:
		var meta claudeMeta
		// The provider rejects signatures of other models, and thinking without a signature.
		if q.noThoughts || !openMeta(c.name, p.Meta, &meta) {
			return nil
		}
		if meta.Redacted != "" {
			return &claudeContent{Type: "redacted_thinking", Data: meta.Redacted}
		}
		if meta.Signature != "" {
			return &claudeContent{Type: "thinking", Thinking: &p.Text, Signature: meta.Signature}
		}
	case PartToolCall:
		return &claudeContent{Type: "tool_use", ID: safeName(p.CallID, 64), Name: safeName(p.ToolName, 128),
			Input: argumentsObject(p.Input)}
	case PartToolResult:
		return toolResultBlock(p, files)
	case PartFile:
		return fileBlock(files.attach(p))
	}
	return nil
}

// toolResultBlock converts the result of a tool call, with its images.
func toolResultBlock(p Part, files *attacher) *claudeContent {
	text := p.Text
	if strings.TrimSpace(text) == "" {
		text = "(no output)"
	}
	b := &claudeContent{Type: "tool_result", ToolUseID: safeName(p.CallID, 64), IsError: &p.IsError,
		Content: []*claudeContent{textBlock(text)}}
	for _, image := range p.Images {
		// An image that is too large is replaced by a text with its path.
		b.Content = append(b.Content, fileBlock(files.attach(image)))
	}
	return b
}

// fileBlock converts an attached file.
func fileBlock(at attachment) *claudeContent {
	data := base64.StdEncoding.EncodeToString(at.data)
	switch at.kind {
	case fileImage:
		return &claudeContent{Type: "image", Source: &claudeSource{"base64", at.mediaType, data}}
	case filePDF:
		return &claudeContent{Type: "document", Title: at.name, Source: &claudeSource{"base64", "application/pdf", data}}
	}
	return textBlock(at.text)
}
