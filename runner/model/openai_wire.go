package model

import (
	"encoding/base64"
	"encoding/json"
	"slices"
)

// A chatRequest is the body of a chat completions request. The types below are its parts.
type chatRequest struct {
	Model               string          `json:"model"`
	Messages            []chatMessage   `json:"messages"`
	Tools               []chatTool      `json:"tools,omitempty"`
	ToolChoice          string          `json:"tool_choice,omitempty"`
	ResponseFormat      *responseFormat `json:"response_format,omitempty"`
	MaxTokens           int             `json:"max_tokens,omitempty"`
	MaxCompletionTokens int             `json:"max_completion_tokens,omitempty"`
	ReasoningEffort     string          `json:"reasoning_effort,omitempty"`
	Temperature         *float64        `json:"temperature,omitempty"`
	Stream              bool            `json:"stream"`
	StreamOptions       *streamOptions  `json:"stream_options,omitempty"`

	Usage     *openRouterUsage `json:"usage,omitempty"`      // OpenRouter only
	SessionID string           `json:"session_id,omitempty"` // OpenRouter only
}

type streamOptions struct {
	IncludeUsage bool `json:"include_usage"`
}

type chatMessage struct {
	Role             string          `json:"role"`
	Content          any             `json:"content"` // text, []chatContent or null
	ToolCalls        []chatCall      `json:"tool_calls,omitempty"`
	ToolCallID       string          `json:"tool_call_id,omitempty"`
	ReasoningContent string          `json:"reasoning_content,omitempty"`
	Reasoning        string          `json:"reasoning,omitempty"`
	ReasoningDetails json.RawMessage `json:"reasoning_details,omitempty"`
}

type chatContent struct {
	Type         string        `json:"type"`
	Text         string        `json:"text,omitempty"`
	ImageURL     *chatImageURL `json:"image_url,omitempty"`
	File         *chatFile     `json:"file,omitempty"`
	CacheControl *cacheMark    `json:"cache_control,omitempty"` // OpenRouter only
}

type chatImageURL struct {
	URL string `json:"url"`
}

type chatFile struct {
	Filename string `json:"filename"`
	FileData string `json:"file_data"`
}

type chatCall struct {
	ID           string          `json:"id"`
	Type         string          `json:"type"`
	Function     chatFunction    `json:"function"`
	ExtraContent json.RawMessage `json:"extra_content,omitempty"`
}

type chatFunction struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

type chatTool struct {
	Type     string       `json:"type"`
	Function chatToolSpec `json:"function"`
}

type chatToolSpec struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters,omitempty"`
}

type responseFormat struct {
	Type       string         `json:"type"`
	JSONSchema chatJSONSchema `json:"json_schema"`
}

type chatJSONSchema struct {
	Name   string `json:"name"`
	Schema any    `json:"schema"`
	Strict bool   `json:"strict"`
}

// chatMeta is the Meta of an assistant part: data that the provider needs in later requests.
type chatMeta struct {
	Field   string          `json:"field,omitempty"`   // name of the reasoning field: reasoning_content or reasoning
	Details json.RawMessage `json:"details,omitempty"` // reasoning_details of OpenRouter
	Extra   json.RawMessage `json:"extra,omitempty"`   // extra_content of a tool call from Google
}

// request converts a Request. It omits features that q excludes.
func (o *openAI) request(req *Request, q quirks) chatRequest {
	out := chatRequest{Model: o.model, Stream: true, ReasoningEffort: q.effortFor(req),
		Temperature: q.sampling.temperature(req)}
	if !q.noStreamOptions {
		out.StreamOptions = &streamOptions{IncludeUsage: true}
	}
	var schema []string
	if len(req.OutputSchema) > 0 {
		schema = []string{schemaInstruction(req.OutputSchema)}
		// The continuation of a cut answer alone does not match the schema.
		if !q.noSchema && !q.keepsApart(req) && !req.goesOn() {
			out.ResponseFormat = chatSchema(req.OutputSchema)
		}
	}
	if text := system(req, schema...); text != "" {
		out.Messages = append(out.Messages, chatMessage{Role: "system", Content: text})
	}
	messages := o.messages(req, q)
	if q.noToolRole {
		messages = withoutToolRole(messages)
	}
	out.Messages = append(out.Messages, q.shape.messages(arrange(messages))...)
	if q.noSystem {
		out.Messages = withoutSystem(out.Messages)
	}
	if !(req.Final && q.noToolChoice) {
		out.Tools = q.tools(req)
	}
	if req.Final && len(out.Tools) > 0 {
		out.ToolChoice = "none" // the tools stay, so that the provider's cache matches the beginning
	}
	if q.shape.whole && len(out.Tools) > 0 {
		out.Stream, out.StreamOptions = false, nil
	}
	if o.router {
		o.route(&out, req, q)
	}
	switch {
	case q.noMaxTokens:
	case q.oldMaxTokens:
		out.MaxTokens = q.maxTokens(req.MaxTokens)
	default:
		out.MaxCompletionTokens = q.maxTokens(req.MaxTokens)
	}
	return out
}

// keepsApart reports whether a request with a schema of the answer has no format because of its tools.
func (q quirks) keepsApart(req *Request) bool {
	return q.schemaAlone && mayStillCall(req) || q.schemaApart && len(req.Tools) > 0
}

// tools converts the tools of a request, with schemas that the server has not refused.
func (q quirks) tools(req *Request) (out []chatTool) {
	for _, t := range req.Tools {
		parameters := plainTool(t.InputSchema, q.bareTools)
		if q.noEmpty {
			parameters = filledTool(t.InputSchema, q.bareTools)
		}
		out = append(out, chatTool{"function", chatToolSpec{t.Name, t.Description, parameters}})
	}
	return out
}

// mayStillCall reports whether the model may call tools before its answer. A model that only
// has to correct its answer needs no tools.
func mayStillCall(req *Request) bool {
	n := len(req.Messages) - 1
	// A user message after the model's answer requests a correction of that answer.
	corrected := n > req.TurnStart && req.Messages[n].Role == RoleUser
	return len(req.Tools) > 0 && !req.Final && !corrected
}

// chatSchema returns the response format for a schema, in strict mode if possible. It returns
// nil for schemas that the API does not accept.
func chatSchema(raw json.RawMessage) *responseFormat {
	wire, ok := toWireSchema(raw)
	if ok && wire.strict {
		return &responseFormat{"json_schema", chatJSONSchema{"answer", wire.schema, true}}
	}
	var root struct {
		Type any `json:"type"`
	}
	if json.Unmarshal(raw, &root) != nil || root.Type != "object" {
		return nil
	}
	return &responseFormat{"json_schema", chatJSONSchema{"answer", plainOutput(raw), false}}
}

// messages converts the conversation.
func (o *openAI) messages(req *Request, q quirks) []chatMessage {
	var out []chatMessage
	files := newAttacher(req, o.takes(q))
	loop := 0 // index of the message that began the current sequence of calls and results
	for i, m := range req.Messages {
		if m.Role == RoleUser {
			loop = i
		}
	}
	for i, m := range req.Messages {
		switch m.Role {
		case RoleUser:
			out = append(out, chatMessage{Role: "user", Content: userContent(m.Parts, files)})
		case RoleAssistant:
			out = append(out, o.assistant(m.Parts, i > loop, q))
		case RoleTool:
			out = append(out, toolMessages(m.Parts, files, q.ids)...)
		}
	}
	return out
}

// toolMessages converts the results of a step's calls. The API accepts only text in results, so
// images follow in a user message.
func toolMessages(parts []Part, files *attacher, ids idRule) (out []chatMessage) {
	var shown []Part
	for _, p := range parts {
		id := ids.apply(p.CallID)
		out = append(out, chatMessage{Role: "tool", ToolCallID: id, Content: resultText(p)})
		if len(p.Images) > 0 {
			name := "Images that " + p.ToolName + " (call " + id + ") shows:"
			shown = append(append(shown, Part{Type: PartText, Text: name}), p.Images...)
		}
	}
	if len(shown) > 0 {
		out = append(out, chatMessage{Role: "user", Content: userContent(shown, files)})
	}
	return out
}

// resultText returns a tool result as text. It is never empty, because some servers reject
// that.
func resultText(p Part) string {
	switch {
	case p.IsError:
		return "Error: " + p.Text
	case p.Text == "":
		return "(no output)"
	}
	return p.Text
}

// userContent converts the parts of a user message. It returns a string if all parts are text,
// because some servers accept nothing else. Otherwise it returns a list.
func userContent(parts []Part, files *attacher) any {
	var list []chatContent
	plain := true
	for _, p := range parts {
		if p.Type == PartText {
			list = append(list, chatContent{Type: "text", Text: p.Text})
			continue
		}
		// Calls and results have their own messages.
		if p.Type != PartFile {
			continue
		}
		switch at := files.attach(p); at.kind {
		case fileImage:
			plain = false
			list = append(list, chatContent{Type: "image_url", ImageURL: &chatImageURL{dataURL(at)}})
		case filePDF:
			plain = false
			list = append(list, chatContent{Type: "file", File: &chatFile{at.name, dataURL(at)}})
		default:
			list = append(list, chatContent{Type: "text", Text: at.text})
		}
	}
	if !plain {
		return list
	}
	text := ""
	for i, c := range list {
		if i > 0 {
			// A blank line separates the parts, such as a note and the user's text.
			text += "\n\n"
		}
		text += c.Text
	}
	return text
}

// joinContent joins the contents of two messages. The templates of some models reject two
// adjacent user messages.
func joinContent(a, b any) any {
	first, plain := a.(string)
	second, alsoPlain := b.(string)
	if plain && alsoPlain {
		return first + "\n\n" + second
	}
	return slices.Concat(contentList(a), contentList(b))
}

func contentList(content any) []chatContent {
	if text, plain := content.(string); plain {
		return []chatContent{{Type: "text", Text: text}}
	}
	list, _ := content.([]chatContent) // userContent returns no other type
	return list
}

// dataURL returns a file as a data URL (RFC 2397).
func dataURL(at attachment) string {
	return "data:" + at.mediaType + ";base64," + base64.StdEncoding.EncodeToString(at.data)
}

// assistant converts a message of the model. Reasoning is only returned to the same model, and
// only within the same sequence of tool calls.
func (o *openAI) assistant(parts []Part, inLoop bool, q quirks) chatMessage {
	m := chatMessage{Role: "assistant"}
	text, reasoning, field := "", "", ""
	for _, p := range parts {
		var meta chatMeta
		known := openMeta(o.name, p.Meta, &meta)
		if known && len(meta.Details) > 0 && !q.noThoughts {
			m.ReasoningDetails = meta.Details
		}
		switch p.Type {
		case PartText:
			text += p.Text
		case PartReasoning:
			if known {
				reasoning, field = reasoning+p.Text, meta.Field
			}
		case PartToolCall:
			call := chatCall{ID: q.ids.apply(p.CallID), Type: "function"}
			if !q.noExtra {
				call.ExtraContent = q.extra(meta.Extra, len(m.ToolCalls) == 0)
			}
			call.Function = chatFunction{safeName(p.ToolName, 64), string(argumentsObject(p.Input))}
			m.ToolCalls = append(m.ToolCalls, call)
		}
	}
	switch {
	case text != "":
		m.Content = text
	case len(m.ToolCalls) == 0:
		m.Content = "(no text)" // Mistral refuses a message without text and calls
	} // otherwise null: the model wrote no text
	// For example, DeepSeek needs reasoning back only until the model has answered the user.
	if !inLoop || len(m.ToolCalls) == 0 || q.noThoughts {
		return m
	}
	switch field {
	case "reasoning_content":
		m.ReasoningContent = reasoning
	case "reasoning":
		m.Reasoning = reasoning
	}
	return m
}

// extra returns the extra_content of a call. Gemini wants a signature with the first call of each message, but calls of
// other models have none. Its documentation of thought signatures names this value for them.
func (q quirks) extra(known json.RawMessage, first bool) json.RawMessage {
	if first && (q.newSignatures || q.fillSignatures && len(known) == 0) {
		return json.RawMessage(`{"google":{"thought_signature":"skip_thought_signature_validator"}}`)
	}
	if q.newSignatures {
		return nil
	}
	return known
}
