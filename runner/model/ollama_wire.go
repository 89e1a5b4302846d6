package model

import (
	"encoding/json"
	"regexp"
	"strings"
)

// An ollamaRequest is the body of a request to /api/chat. The types below are its parts.
type ollamaRequest struct {
	Model     string          `json:"model"`
	Messages  []ollamaMessage `json:"messages"`
	Tools     []chatTool      `json:"tools,omitempty"`
	Format    json.RawMessage `json:"format,omitempty"`
	Think     any             `json:"think,omitempty"`
	KeepAlive any             `json:"keep_alive,omitempty"`
	Stream    bool            `json:"stream"`
	Truncate  *bool           `json:"truncate,omitempty"` // false: reject a prompt that is too long
	Shift     *bool           `json:"shift,omitempty"`    // false: stop at the end of the window
	Options   ollamaOptions   `json:"options"`
}

type ollamaOptions struct {
	NumCtx     int64 `json:"num_ctx,omitempty"`
	NumPredict int   `json:"num_predict,omitempty"`

	Temperature *float64 `json:"temperature,omitempty"`
}

type ollamaMessage struct {
	Role       string       `json:"role"`
	Content    string       `json:"content"`
	Thinking   string       `json:"thinking,omitempty"`
	Images     [][]byte     `json:"images,omitempty"` // in base64
	ToolCalls  []ollamaCall `json:"tool_calls,omitempty"`
	ToolName   string       `json:"tool_name,omitempty"`
	ToolCallID string       `json:"tool_call_id,omitempty"`
}

type ollamaCall struct {
	ID       string         `json:"id,omitempty"`
	Function ollamaFunction `json:"function"`
}

type ollamaFunction struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"` // an object
}

// request converts a Request. It omits features that m lacks.
func (o *ollama) request(req *Request, m ollamaModel) ollamaRequest {
	q := m.quirks
	out := ollamaRequest{Model: o.model, Stream: true, Think: m.thought(req.Effort),
		Options: ollamaOptions{NumCtx: m.window, NumPredict: q.maxTokens(req.MaxTokens),
			Temperature: q.sampling.temperature(req)}}
	if q.noNumCtx {
		out.Options.NumCtx = 0
	}
	if q.noNumPredict {
		out.Options.NumPredict = 0
	}
	if !q.noKeepAlive {
		out.KeepAlive = o.keepAlive
	}
	if !q.noTruncate {
		out.Truncate = new(false)
	}
	if !q.noShift {
		out.Shift = new(false)
	}
	var schema []string
	if len(req.OutputSchema) > 0 {
		schema = []string{schemaInstruction(req.OutputSchema)}
		// The server forces the model to follow the schema from its first token on, which
		// prevents tool calls. The continuation of a cut answer alone does not match the
		// schema.
		if !q.noSchema && !o.isBad(req.OutputSchema) && !(m.tools && mayStillCall(req)) && !req.goesOn() {
			out.Format = plainOutput(req.OutputSchema)
		}
	}
	if text := system(req, schema...); text != "" {
		out.Messages = append(out.Messages, ollamaMessage{Role: "system", Content: text})
	}
	out.Messages = append(out.Messages, o.messages(req, m)...)
	// The API has no tool choice, so omit the tools to prevent calls.
	if m.tools && !req.Final {
		for _, t := range req.Tools {
			parameters := plainTool(t.InputSchema, q.bareTools)
			out.Tools = append(out.Tools, chatTool{"function", chatToolSpec{t.Name, t.Description, parameters}})
		}
	}
	return out
}

func (o *ollama) isBad(schema json.RawMessage) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.bad[string(schema)]
}

// messages converts the conversation.
func (o *ollama) messages(req *Request, m ollamaModel) []ollamaMessage {
	var out []ollamaMessage
	files := newAttacher(req, o.takes(m))
	loop := 0 // index of the message that began the current sequence of calls and results
	for i, msg := range req.Messages {
		if msg.Role == RoleUser {
			loop = i
		}
	}
	for i, msg := range req.Messages {
		switch msg.Role {
		case RoleUser:
			next := ollamaContent("user", "", msg.Parts, files)
			if n := len(out) - 1; n >= 0 && out[n].Role == "user" { // some templates reject two in a row
				out[n].Content += "\n\n" + next.Content
				out[n].Images = append(out[n].Images, next.Images...)
				continue
			} else if n >= 0 && out[n].Role == "tool" { // Mistral's templates reject a user message there
				out = append(out, ollamaMessage{Role: "assistant", Content: noted})
			}
			out = append(out, next)
		case RoleAssistant:
			out = append(out, o.assistant(msg.Parts, i > loop && m.think != nil && !m.quirks.noThoughts))
		case RoleTool:
			for _, p := range msg.Parts {
				result := ollamaContent("tool", resultText(p), p.Images, files)
				// Some servers match a result with its call by the tool's name, others by the
				// id.
				result.ToolName, result.ToolCallID = safeName(p.ToolName, 64), p.CallID
				out = append(out, result)
			}
		}
	}
	return out
}

// ollamaContent returns a message with the text, if it is not empty, followed by the parts.
func ollamaContent(role, text string, parts []Part, files *attacher) ollamaMessage {
	m := ollamaMessage{Role: role}
	add := func(more string) {
		if m.Content != "" {
			m.Content += "\n\n"
		}
		m.Content += more
	}
	add(text)
	for _, p := range parts {
		switch p.Type {
		case PartText:
			add(p.Text)
		case PartFile:
			at := files.attach(p)
			if at.kind == fileImage {
				m.Images = append(m.Images, at.data) // the server inserts the image before the text
				continue
			}
			add(at.text)
		}
	}
	return m
}

// assistant converts a message of the model. Reasoning is only returned to the same model, and
// only within the same sequence of tool calls.
func (o *ollama) assistant(parts []Part, inLoop bool) ollamaMessage {
	m := ollamaMessage{Role: "assistant"}
	reasoning := ""
	for _, p := range parts {
		switch p.Type {
		case PartText:
			m.Content += p.Text
		case PartReasoning:
			if openMeta(o.name, p.Meta, &struct{}{}) {
				reasoning += p.Text
			}
		case PartToolCall:
			m.ToolCalls = append(m.ToolCalls, ollamaCall{p.CallID,
				ollamaFunction{safeName(p.ToolName, 64), argumentsObject(p.Input)}})
		}
	}
	// For example, Qwen's documentation advises against reasoning of earlier turns.
	if inLoop && len(m.ToolCalls) > 0 {
		m.Thinking = reasoning
	}
	return m
}

// unwrap replaces an error by the original error of the program that runs the model. Newer
// servers include that error as JSON in the message.
func (r *apiError) unwrap() {
	if strings.HasPrefix(strings.TrimSpace(r.message), "{") {
		inner := apiError{status: r.status}
		if inner.read([]byte(r.message)) {
			r.message, r.code, r.kind, r.failed = inner.message, inner.code, inner.kind, inner.failed
			r.param, r.details, r.window = inner.param, inner.details, inner.window
		}
	}
}

// requestTokens matches the size of a request in llama.cpp's refusal.
var requestTokens = regexp.MustCompile(`request \((\d{1,9}) tokens\)`)

// promptTokens returns the size of a rejected request as counted by the server, or 0.
func (r *apiError) promptTokens() int64 { return r.number(requestTokens) }
