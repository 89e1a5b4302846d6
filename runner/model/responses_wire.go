package model

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
)

// A responsesRequest is the body of a Responses API request. The types below are its parts. The
// provider stores nothing, so each request contains the complete conversation.
type responsesRequest struct {
	Model             string              `json:"model"`
	Instructions      string              `json:"instructions,omitempty"`
	Input             []any               `json:"input"` // the item types below
	Tools             []responsesTool     `json:"tools,omitempty"`
	ToolChoice        string              `json:"tool_choice,omitempty"`
	ParallelToolCalls *bool               `json:"parallel_tool_calls,omitempty"`
	Text              *responsesText      `json:"text,omitempty"`
	MaxOutputTokens   int                 `json:"max_output_tokens,omitempty"`
	Reasoning         *responsesReasoning `json:"reasoning,omitempty"`
	Temperature       *float64            `json:"temperature,omitempty"`
	Include           []string            `json:"include,omitempty"`
	PromptCacheKey    string              `json:"prompt_cache_key,omitempty"`
	Store             *bool               `json:"store,omitempty"` // false, unless the server refuses the field
	Stream            bool                `json:"stream"`
}

type responsesTool struct {
	Type        string          `json:"type"`
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters"`
	Strict      bool            `json:"strict"` // required by the API
}

type responsesText struct {
	Format responsesFormat `json:"format"`
}

type responsesFormat struct {
	Type   string `json:"type"`
	Name   string `json:"name"`
	Schema any    `json:"schema"`
	Strict bool   `json:"strict"`
}

type responsesReasoning struct {
	Effort  string `json:"effort,omitempty"`
	Summary string `json:"summary,omitempty"`
}

// A messageItem is a message of the user or the model.
type messageItem struct {
	Type    string `json:"type"`
	Role    string `json:"role"`
	Content any    `json:"content"`         // text, or []responsesContent
	Phase   string `json:"phase,omitempty"` // for the model's messages: the provider's value
}

type responsesContent struct {
	Type     string `json:"type"`
	Text     string `json:"text,omitempty"`
	ImageURL string `json:"image_url,omitempty"`
	Detail   string `json:"detail,omitempty"`
	Filename string `json:"filename,omitempty"`
	FileData string `json:"file_data,omitempty"`
}

// A reasoningItem is the model's reasoning. Only the provider can decrypt the encrypted
// content. It must be sent back unchanged.
type reasoningItem struct {
	Type      string          `json:"type"`
	ID        string          `json:"id"`
	Summary   json.RawMessage `json:"summary"`
	Content   json.RawMessage `json:"content,omitempty"`
	Encrypted string          `json:"encrypted_content"`
}

type callItem struct {
	Type      string `json:"type"`
	CallID    string `json:"call_id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

type outputItem struct {
	Type   string `json:"type"`
	CallID string `json:"call_id"`
	Output any    `json:"output"` // text, or []responsesContent
}

// responsesMeta is the Meta of an assistant part: data that the provider needs in later
// requests.
type responsesMeta struct {
	Item  *reasoningItem `json:"item,omitempty"`  // set for a reasoning part
	Phase string         `json:"phase,omitempty"` // set for a text
}

// leastOutput is the minimum output limit that the API accepts.
const leastOutput = 16

// request converts a Request. It omits features that q excludes.
func (o *responses) request(req *Request, q responsesQuirks) responsesRequest {
	out := responsesRequest{Model: o.model, Input: o.input(req, q), Stream: true,
		Temperature: q.sampling.temperature(req)}
	var schema []string
	if len(req.OutputSchema) > 0 {
		schema = []string{schemaInstruction(req.OutputSchema)}
		// The continuation of a cut answer alone does not match the schema.
		if format := chatSchema(req.OutputSchema); format != nil && !q.noSchema && !req.goesOn() {
			f := format.JSONSchema
			out.Text = &responsesText{responsesFormat{format.Type, f.Name, f.Schema, f.Strict}}
		}
	}
	out.Instructions = system(req, schema...)
	if !q.noStore {
		out.Store = new(false)
	}
	tools := req.Tools
	if req.Final && q.noChoice {
		tools = nil
	}
	for _, t := range tools {
		parameters := plainTool(t.InputSchema, q.bareTools)
		out.Tools = append(out.Tools, responsesTool{"function", t.Name, t.Description, parameters, false})
	}
	if len(out.Tools) > 0 && !q.noParallel {
		out.ParallelToolCalls = new(true)
	}
	if len(out.Tools) > 0 && req.Final {
		out.ToolChoice = "none" // the tools stay, so that the provider's cache matches the beginning
	}
	if most := q.maxTokens(req.MaxTokens); most > 0 && !q.noMaxTokens {
		out.MaxOutputTokens = max(most, leastOutput)
	}
	// The provider stores nothing, so it must return its reasoning for the next request.
	if !q.noEncrypted {
		out.Include = []string{"reasoning.encrypted_content"}
	}
	reasoning := responsesReasoning{Effort: q.sampling.word(openAIEfforts(req.Effort))}
	if !q.noSummary {
		reasoning.Summary = "auto"
	}
	if reasoning != (responsesReasoning{}) {
		out.Reasoning = &reasoning
	}
	if !q.noCacheKey {
		out.PromptCacheKey = cacheKey(req.Place)
	}
	return out
}

// cacheKey returns the key under which a provider finds the cached beginning of a task's
// conversation. It is "" for a call outside of turns. The key contains no id of this service.
func cacheKey(p Place) string {
	if p.Task == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(p.Worker + "\x00" + p.Task))
	return "task-" + hex.EncodeToString(sum[:12])
}

// input converts the conversation.
func (o *responses) input(req *Request, q responsesQuirks) []any {
	out := []any{} // the API requires a list, even if it is empty
	files := newAttacher(req, o.takes(q))
	for _, m := range req.Messages {
		switch m.Role {
		case RoleUser:
			out = append(out, messageItem{Type: "message", Role: "user", Content: userItems(m.Parts, files)})
		case RoleAssistant:
			out = append(out, o.assistant(m.Parts, q)...)
		case RoleTool:
			for _, p := range m.Parts {
				out = append(out, outputItem{"function_call_output", safeName(p.CallID, 64), resultOutput(p, files)})
			}
		}
	}
	return out
}

// userItems converts the parts of a user message.
func userItems(parts []Part, files *attacher) []responsesContent {
	list := []responsesContent{}
	for _, p := range parts {
		switch p.Type {
		case PartText:
			list = append(list, responsesContent{Type: "input_text", Text: p.Text})
		case PartFile:
			list = append(list, fileContent(files.attach(p)))
		}
	}
	return list
}

// fileContent converts an attached file.
func fileContent(at attachment) responsesContent {
	switch at.kind {
	case fileImage:
		return responsesContent{Type: "input_image", ImageURL: dataURL(at), Detail: "auto"}
	case filePDF:
		return responsesContent{Type: "input_file", Filename: at.name, FileData: dataURL(at)}
	}
	return responsesContent{Type: "input_text", Text: at.text}
}

// resultOutput converts the result of a tool call: a text, or a list if there are images.
func resultOutput(p Part, files *attacher) any {
	if len(p.Images) == 0 {
		return resultText(p)
	}
	list := []responsesContent{{Type: "input_text", Text: resultText(p)}}
	for _, image := range p.Images {
		list = append(list, fileContent(files.attach(image)))
	}
	return list
}

// assistant converts a message of the model. Reasoning is only sent back to the same model, and
// only before the text or call that it led to: otherwise the API rejects it.
func (o *responses) assistant(parts []Part, q responsesQuirks) []any {
	var out []any
	var thoughts []any // reasoning whose text or call has not followed yet
	for _, p := range parts {
		var meta responsesMeta
		known := openMeta(o.name, p.Meta, &meta)
		switch {
		case p.Type == PartReasoning && known && meta.Item != nil && !q.noThoughts:
			thoughts = append(thoughts, *meta.Item)
		case p.Type == PartText && p.Text != "":
			if q.noPhase {
				meta.Phase = ""
			}
			out = append(append(out, thoughts...),
				messageItem{Type: "message", Role: "assistant", Content: p.Text, Phase: meta.Phase})
			thoughts = nil
		case p.Type == PartToolCall:
			out = append(append(out, thoughts...), callItem{"function_call", safeName(p.CallID, 64),
				safeName(p.ToolName, 64), string(argumentsObject(p.Input))})
			thoughts = nil
		}
	}
	return out
}
