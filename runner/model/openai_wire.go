package model

import (
	"encoding/base64"
	"encoding/json"
	"slices"
)

// The request of OpenAI's chat completions API, as far as it is used here.
type chatRequest struct {
	Model               string          `json:"model"`
	Messages            []chatMessage   `json:"messages"`
	Tools               []chatTool      `json:"tools,omitempty"`
	ResponseFormat      *responseFormat `json:"response_format,omitempty"`
	MaxTokens           int             `json:"max_tokens,omitempty"`
	MaxCompletionTokens int             `json:"max_completion_tokens,omitempty"`
	ReasoningEffort     string          `json:"reasoning_effort,omitempty"`
	Stream              bool            `json:"stream"`
	StreamOptions       *streamOptions  `json:"stream_options,omitempty"`
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
	Type     string        `json:"type"`
	Text     string        `json:"text,omitempty"`
	ImageURL *chatImageURL `json:"image_url,omitempty"`
	File     *chatFile     `json:"file,omitempty"`
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
	Parameters  json.RawMessage `json:"parameters"`
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

// chatMeta is what is kept of an assistant's message for its provider: how it
// called its reasoning, and what must come back unchanged with a tool call.
type chatMeta struct {
	Field   string          `json:"field,omitempty"`   // of the reasoning: reasoning_content or reasoning
	Details json.RawMessage `json:"details,omitempty"` // reasoning_details, as OpenRouter sends them
	Extra   json.RawMessage `json:"extra,omitempty"`   // extra_content of a tool call, as Google sends it
}

// request puts a Request into the provider's words, as far as q allows.
func (o *openAI) request(req *Request, q quirks) chatRequest {
	out := chatRequest{Model: o.model, Stream: true, ReasoningEffort: q.effort}
	if !q.noStreamOptions {
		out.StreamOptions = &streamOptions{IncludeUsage: true}
	}
	var schema []string
	if len(req.OutputSchema) > 0 {
		schema = []string{schemaWords(req.OutputSchema)}
		if !q.noSchema && !(q.schemaAlone && mayStillCall(req)) {
			out.ResponseFormat = chatSchema(req.OutputSchema)
		}
	}
	if text := system(req, schema...); text != "" {
		out.Messages = append(out.Messages, chatMessage{Role: "system", Content: text})
	}
	out.Messages = append(out.Messages, o.messages(req, q)...)
	if !req.Final && !q.noTools {
		for _, t := range req.Tools {
			out.Tools = append(out.Tools, chatTool{"function", chatToolSpec{t.Name, t.Description, t.InputSchema}})
		}
	}
	switch {
	case q.noMaxTokens:
	case q.oldMaxTokens:
		out.MaxTokens = req.MaxTokens
	default:
		out.MaxCompletionTokens = req.MaxTokens
	}
	return out
}

// mayStillCall says whether tools are offered and the model has not answered yet.
// One that has, and is told what is wrong with its answer, is done with tools.
func mayStillCall(req *Request) bool {
	n := len(req.Messages) - 1
	corrected := n > req.TurnStart && req.Messages[n].Role == RoleUser
	return len(req.Tools) > 0 && !req.Final && !corrected
}

// chatSchema asks for an answer that meets the schema, strictly where the schema
// is of the kind that strict mode takes. Nil means that it cannot be asked for.
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
	return &responseFormat{"json_schema", chatJSONSchema{"answer", raw, false}}
}

// messages are the conversation in the provider's words.
func (o *openAI) messages(req *Request, q quirks) []chatMessage {
	var out []chatMessage
	files := attacher{left: maxInlineTotal, blind: q.noImages, unlearned: q.noPDFs}
	loop := 0 // where the current run of calls and results begins
	for i, m := range req.Messages {
		if m.Role == RoleUser {
			loop = i
		}
	}
	for i, m := range req.Messages {
		switch m.Role {
		case RoleUser:
			content := userContent(m.Parts, &files)
			if n := len(out) - 1; n >= 0 && out[n].Role == "user" {
				out[n].Content = joinContent(out[n].Content, content)
				continue
			}
			out = append(out, chatMessage{Role: "user", Content: content})
		case RoleAssistant:
			out = append(out, o.assistant(m.Parts, i > loop))
		case RoleTool:
			for _, p := range m.Parts {
				out = append(out, chatMessage{Role: "tool", ToolCallID: p.CallID, Content: resultText(p)})
			}
		}
	}
	return out
}

// resultText is a tool result as text, never empty: some servers refuse that.
func resultText(p Part) string {
	switch {
	case p.IsError:
		return "Error: " + p.Text
	case p.Text == "":
		return "(no output)"
	}
	return p.Text
}

// userContent is plain text where there is nothing else, for servers that know
// only that, else a list.
func userContent(parts []Part, files *attacher) any {
	var list []chatContent
	plain := true
	for _, p := range parts {
		if p.Type == PartText {
			list = append(list, chatContent{Type: "text", Text: p.Text})
			continue
		}
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
			text += "\n\n"
		}
		text += c.Text
	}
	return text
}

// joinContent makes one message of two: the templates of some models refuse a user
// who speaks twice in a row.
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
	list, _ := content.([]chatContent) // there is no third kind
	return list
}

// dataURL is a file as RFC 2397 has it.
func dataURL(at attachment) string {
	return "data:" + at.mediaType + ";base64," + base64.StdEncoding.EncodeToString(at.data)
}

// assistant is a message of the model. Its reasoning goes back only within the
// run of tool calls that it belongs to, and only to the model it came from.
func (o *openAI) assistant(parts []Part, inLoop bool) chatMessage {
	m := chatMessage{Role: "assistant"}
	text, reasoning, field := "", "", ""
	for _, p := range parts {
		var meta chatMeta
		known := openMeta(o.name, p.Meta, &meta)
		if known && len(meta.Details) > 0 {
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
			call := chatCall{ID: p.CallID, Type: "function", ExtraContent: meta.Extra}
			call.Function = chatFunction{plainWord(p.ToolName, 64), string(argumentsObject(p.Input))}
			m.ToolCalls = append(m.ToolCalls, call)
		}
	}
	if text != "" || len(m.ToolCalls) == 0 {
		m.Content = text // else null, as the model said nothing
	}
	if !inLoop || len(m.ToolCalls) == 0 {
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
