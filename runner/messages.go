package runner

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"path"
	"strings"
	"time"

	"journeyman/store"
)

// A Message is a UI message as the AI SDK defines it: what a reader of the stream
// builds is equal to what is here.
type Message struct {
	ID       string       `json:"id"`
	Role     string       `json:"role"`
	Metadata *messageMeta `json:"metadata"`
	Parts    []uiPart     `json:"parts"`
}

const (
	roleUser      = "user"
	roleAssistant = "assistant"
)

// messageMeta is the metadata of a message. The stream sends it in two pieces,
// which readers merge: at the start, and with the usage at the finish.
type messageMeta struct {
	TaskID    string     `json:"taskId,omitempty"`
	TurnID    string     `json:"turnId,omitempty"`
	Seq       *int64     `json:"seq,omitempty"`
	CreatedAt string     `json:"createdAt,omitempty"`
	Usage     *TurnUsage `json:"usage,omitempty"`
}

// TurnUsage is what a turn has used, as the interface names it.
type TurnUsage struct {
	CacheReadTokens  int64   `json:"cacheReadTokens"`
	CacheWriteTokens int64   `json:"cacheWriteTokens"`
	CostUsd          float64 `json:"costUsd"`
	InputTokens      int64   `json:"inputTokens"`
	OutputTokens     int64   `json:"outputTokens"`
	ReasoningTokens  int64   `json:"reasoningTokens"`
	Steps            int64   `json:"steps"`
	TotalTokens      int64   `json:"totalTokens"`
	Credits          float64 `json:"credits"`
	DurationMs       int64   `json:"durationMs"`
}

// UsageOf gives a turn's figures in the words of the interface.
func UsageOf(t store.Turn) TurnUsage {
	u := t.Usage
	return TurnUsage{CacheReadTokens: u.CacheReadTokens, CacheWriteTokens: u.CacheWriteTokens, CostUsd: store.Dollars(u.Cost()),
		InputTokens: u.InputTokens, OutputTokens: u.OutputTokens, ReasoningTokens: u.ReasoningTokens, Steps: u.Steps,
		TotalTokens: u.InputTokens + u.OutputTokens, Credits: store.Credits(u.Cost()), DurationMs: t.Duration.Milliseconds()}
}

// turnUsage is UsageOf for a chunk.
func turnUsage(t store.Turn) *TurnUsage { u := UsageOf(t); return &u }

func startMeta(t store.Turn) *messageMeta {
	return &messageMeta{TaskID: t.TaskID, TurnID: t.ID, Seq: &t.Seq, CreatedAt: Timestamp(t.CreatedAt)}
}

func finishMeta(t store.Turn) *messageMeta { return &messageMeta{Usage: turnUsage(t)} }

// Timestamp is a time as JSON shows it: RFC 3339, UTC, milliseconds.
func Timestamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// uiPart is a part of a message. Which fields it has follows its type.
type uiPart struct {
	Type       string          `json:"type"`
	ID         string          `json:"id,omitempty"` // of reasoning
	Text       *string         `json:"text,omitempty"`
	State      string          `json:"state,omitempty"`
	ToolName   string          `json:"toolName,omitempty"`
	ToolCallID string          `json:"toolCallId,omitempty"`
	Input      json.RawMessage `json:"input,omitempty"`
	Output     json.RawMessage `json:"output,omitempty"`
	ErrorText  string          `json:"errorText,omitempty"`
	SourceID   string          `json:"sourceId,omitempty"`
	URL        string          `json:"url,omitempty"`
	Title      string          `json:"title,omitempty"`
	MediaType  string          `json:"mediaType,omitempty"`
	Filename   string          `json:"filename,omitempty"`
	Approval   *uiApproval     `json:"approval,omitempty"`
}

// Messages gives a task's conversation as UI messages. An assistant's message is
// there once it has something to say.
func (r *Runner) Messages(c store.Conversation) []Message { return r.messages(c, false) }

// MessagesWithApprovals are Messages with what the AI SDK 6 shows of approvals: states
// of tool calls that version 5 does not know.
func (r *Runner) MessagesWithApprovals(c store.Conversation) []Message { return r.messages(c, true) }

func (r *Runner) messages(c store.Conversation, approvals bool) []Message {
	messages := make([]Message, 0, 2*len(c.Turns))
	for _, t := range c.Turns {
		messages = append(messages, r.userMessage(t, turnFiles(c.Files, t.Num, store.Attached)))
		if t.StartedAt == nil && !t.Status.Ended() {
			continue
		}
		m := r.assistantMessage(view{turn: t, steps: c.Steps[t.Num],
			files: turnFiles(c.Files, t.Num, store.Published), sources: turnSources(c.Sources, t.Num)}, approvals)
		if len(m.Parts) > 0 {
			messages = append(messages, m)
		}
	}
	return messages
}

func turnSources(sources []store.Source, turnNum int64) []store.Source {
	var own []store.Source
	for _, s := range sources {
		if s.TurnNum == turnNum {
			own = append(own, s)
		}
	}
	return own
}

func (r *Runner) userMessage(t store.Turn, attached []store.File) Message {
	m := Message{ID: messageID(t.ID, roleUser), Role: roleUser, Metadata: startMeta(t)}
	m.Parts = append(m.Parts, uiPart{Type: "text", Text: &t.Input})
	for _, f := range attached {
		m.Parts = append(m.Parts, uiPart{Type: "file", MediaType: f.MediaType, Filename: path.Base(f.Path), URL: r.FileURL(f)})
	}
	return m
}

func (r *Runner) assistantMessage(v view, approvals bool) Message {
	m := Message{ID: messageID(v.turn.ID, roleAssistant), Role: roleAssistant, Metadata: startMeta(v.turn), Parts: []uiPart{}}
	for _, st := range v.steps {
		m.Parts = append(m.Parts, stepParts(v, st, approvals)...)
	}
	if v.turn.Status.Ended() {
		if len(v.steps) == 0 {
			m.Parts = append(m.Parts, uiPart{Type: "step-start"})
		}
		m.Metadata.Usage = turnUsage(v.turn)
		for _, s := range v.sources {
			m.Parts = append(m.Parts, uiPart{Type: "source-url", SourceID: s.ID, URL: s.URL, Title: s.Title})
		}
		for _, f := range v.files {
			m.Parts = append(m.Parts, uiPart{Type: "file", MediaType: f.MediaType, URL: r.FileURL(f)})
		}
	}
	return m
}

func stepParts(v view, st store.Step, approvals bool) []uiPart {
	parts := []uiPart{{Type: "step-start"}}
	n := int64(0)
	for i, p := range st.Parts {
		switch {
		case p.Type != store.PartToolCall && p.Text == "": // not shown
		case p.Type == store.PartReasoning:
			parts = append(parts, uiPart{Type: "reasoning", ID: partID(st.Seq, int64(i)), Text: &p.Text, State: "done"})
		case p.Type == store.PartText:
			parts = append(parts, uiPart{Type: "text", Text: &p.Text, State: "done"})
		case p.Type == store.PartToolCall:
			part := toolPart(v, st, toolCall{p, n})
			if a, asks := st.Approval(n); asks && approvals {
				part = approvalPart(part, a)
			}
			parts = append(parts, part)
			n++
		}
	}
	return parts
}

func toolPart(v view, st store.Step, p toolCall) uiPart {
	part := uiPart{Type: "dynamic-tool", ToolName: p.ToolName, ToolCallID: p.CallID, State: "input-available", Input: p.Input}
	if why := inputError(p.Input); why != "" {
		part.State, part.ErrorText = "output-error", why
		return part
	}
	c, ended := callEnd(v, st, p)
	switch {
	case !ended:
	case c.Type == "tool-output-available":
		part.State, part.Output = "output-available", c.Output
	default:
		part.State, part.ErrorText = "output-error", c.ErrorText
	}
	return part
}

// AnswerID is the id of the message that answers a turn.
func AnswerID(t store.Turn) string { return messageID(t.ID, roleAssistant) }

// messageID is the id of a turn's user or assistant message: always the same, so
// that it need not be kept. It keeps the time of the turn's id, so that it sorts
// with it.
func messageID(turnID, role string) string {
	sum := sha256.Sum256([]byte(role + turnID))
	const crockford = "0123456789abcdefghjkmnpqrstvwxyz"
	tail := base32.NewEncoding(crockford).WithPadding(base32.NoPadding).EncodeToString(sum[:10])
	stamp := strings.TrimPrefix(turnID, "trn_")
	return "msg_" + stamp[:min(10, len(stamp))] + tail
}
