package view

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"path"
	"slices"
	"strconv"
	"strings"

	"journeyman/store"
)

// A Message is a UI message as the AI SDK defines it. It is equal to the message that a
// client builds from the chunks of a stream.
type Message struct {
	ID       string    `json:"id"`
	Role     string    `json:"role"`
	Metadata *Metadata `json:"metadata"`
	Parts    []Part    `json:"parts"`
}

const (
	roleUser      = "user"
	roleAssistant = "assistant"
)

// Metadata is the metadata of a message. A stream sends it in two pieces, which clients
// merge: StartMetadata at the start, EndMetadata at the end.
type Metadata struct {
	TaskID    string `json:"taskId,omitempty"`
	TurnID    string `json:"turnId,omitempty"`
	Seq       *int64 `json:"seq,omitempty"`
	CreatedAt string `json:"createdAt,omitempty"`
	Usage     *Usage `json:"usage,omitempty"`
}

// StartMetadata returns the metadata that is known before a turn has ended.
func StartMetadata(t store.Turn) *Metadata {
	return &Metadata{TaskID: t.TaskID, TurnID: t.ID, Seq: &t.Seq, CreatedAt: Timestamp(t.CreatedAt)}
}

// EndMetadata returns the metadata that only the end of a turn determines.
func EndMetadata(t store.Turn) *Metadata {
	u := UsageOf(t)
	return &Metadata{Usage: &u}
}

// A Part is a part of a message. Its type determines which fields it has.
type Part struct {
	Type       string          `json:"type"`
	ID         string          `json:"id,omitempty"` // of reasoning and of an approval
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
	Approval   *Approval       `json:"approval,omitempty"`
	Data       any             `json:"data,omitempty"`
}

// Messages returns a conversation as UI messages. A turn without visible content has no assistant
// message. sdk is the version of the AI SDK that reads them.
func (b Builder) Messages(c store.Conversation, sdk SDK) []Message {
	messages := make([]Message, 0, 2*len(c.Turns))
	for _, t := range c.Turns {
		messages = append(messages, b.UserMessage(t, store.TurnFiles(c.Files, t.Num, store.Attached)))
		// A turn in the queue has no answer yet.
		if t.StartedAt == nil && !t.Status.Ended() {
			continue
		}
		m := Message{ID: AnswerID(t), Role: roleAssistant, Metadata: StartMetadata(t), Parts: []Part{}}
		steps := c.Steps[t.Num]
		for i := range steps {
			m.Parts = appendStep(m.Parts, stepParts(t, steps, i, sdk), steps, i)
		}
		if t.Status.Ended() {
			m.Metadata.Usage = EndMetadata(t).Usage
			m.Parts = append(m.Parts, b.endParts(c, t)...)
		}
		if len(m.Parts) > 0 {
			messages = append(messages, m)
		}
	}
	return messages
}

// UserMessage returns the instruction of a turn, with the files attached to it.
func (b Builder) UserMessage(t store.Turn, attached []store.File) Message {
	m := Message{ID: messageID(t.ID, roleUser), Role: roleUser, Metadata: StartMetadata(t)}
	m.Parts = append(m.Parts, Part{Type: "text", Text: &t.Input})
	for _, f := range attached {
		m.Parts = append(m.Parts,
			Part{Type: "file", MediaType: f.MediaType, Filename: path.Base(f.Path), URL: b.FileURL(f)})
	}
	return m
}

// endParts returns the parts that follow the last step of a turn that has ended.
func (b Builder) endParts(c store.Conversation, t store.Turn) []Part {
	var parts []Part
	if len(c.Steps[t.Num]) == 0 { // clients expect that each message has a part
		parts = append(parts, Part{Type: "step-start"})
	}
	for _, s := range c.Sources {
		if s.TurnNum == t.Num {
			parts = append(parts, Part{Type: "source-url", SourceID: s.ID, URL: s.URL, Title: s.Title})
		}
	}
	for _, f := range store.TurnFiles(c.Files, t.Num, store.Published) {
		parts = append(parts, Part{Type: "file", MediaType: f.MediaType, URL: b.FileURL(f)})
	}
	return parts
}

// appendStep appends the parts of step i. A step that continues the step before it is shown as part
// of that step. The text that was cut off is joined with its continuation.
func appendStep(parts, added []Part, steps []store.Step, i int) []Part {
	if !store.Continues(steps, i) {
		return append(parts, added...)
	}
	added = added[1:] // without its step-start: clients see one step
	if _, isCut := store.CutText(steps, i); !isCut {
		return append(parts, added...)
	}
	isText := func(p Part) bool { return p.Type == "text" }
	rest := slices.IndexFunc(added, isText)
	for k := len(parts) - 1; k >= 0 && rest >= 0; k-- {
		if isText(parts[k]) {
			*parts[k].Text += *added[rest].Text // stepParts made this copy of the text
			return append(parts, slices.Delete(added, rest, rest+1)...)
		}
	}
	return append(parts, added...)
}

// stepParts returns the parts of step i of a turn.
func stepParts(t store.Turn, steps []store.Step, i int, sdk SDK) []Part {
	st := steps[i]
	parts := []Part{{Type: "step-start"}}
	calls := st.ToolCalls()
	for n, p := range st.Parts {
		switch {
		case p.IsCall():
			part := toolPart(st, calls[0], t.Status.Ended() || i < len(steps)-1)
			if a, asks := st.Approval(calls[0].N); asks && sdk == SDK7 && a.Kind != store.KindQuestion {
				part.setApproval(a)
			}
			parts, calls = append(parts, part), calls[1:]
		case p.Text == "": // some providers send empty parts that carry only provider data
		case p.Type == store.PartReasoning:
			parts = append(parts, Part{Type: "reasoning", ID: PartID(st.Seq, n), Text: &p.Text, State: "done"})
		case p.Type == store.PartText:
			parts = append(parts, Part{Type: "text", Text: &p.Text, State: "done"})
		}
	}
	if sdk == SDK6 {
		parts = append(parts, approvalParts(st)...)
	}
	return parts
}

// toolPart returns the part of a tool call. over reports whether the turn has continued after the
// step of the call.
func toolPart(st store.Step, call store.ToolCall, over bool) Part {
	part := Part{Type: "dynamic-tool", ToolName: call.ToolName, ToolCallID: call.CallID,
		State: "input-available", Input: call.Input}
	if why := InputError(call.Input); why != "" {
		// No tool can run with such arguments, so the call has no other outcome.
		part.State, part.ErrorText = "output-error", why
		return part
	}
	output, errorText, ended := CallOutcome(st, call, over)
	switch {
	case !ended:
	case errorText == "":
		part.State, part.Output = "output-available", output
	default:
		part.State, part.ErrorText = "output-error", errorText
	}
	return part
}

// CallOutcome returns the output of a tool call, or the error text if there is none. ended is false
// while the call may still run. over reports whether the turn has continued after the step of the
// call: a call without a result then never ran.
func CallOutcome(st store.Step, call store.ToolCall, over bool) (out json.RawMessage, errorText string, ended bool) {
	c, ended := st.Call(call.N)
	switch {
	case ended && c.State == store.CallCompleted:
		return c.Output, "", true
	case ended:
		return nil, c.ErrorText(), true
	case over:
		return nil, store.CallDidNotRun, true
	}
	return nil, "", false
}

// StepID returns the id of a step, unique in its message.
func StepID(seq int64) string { return "s" + strconv.FormatInt(seq, 10) }

// PartID returns the id of a text or reasoning part, unique in its message.
func PartID(step int64, part int) string { return StepID(step) + "p" + strconv.Itoa(part) }

// AnswerID returns the id of the message that answers a turn.
func AnswerID(t store.Turn) string { return messageID(t.ID, roleAssistant) }

// messageID returns the id of a turn's message. It is derived from the turn's id and need not be
// stored. It begins with the same time, so both ids sort in the same order.
func messageID(turnID, role string) string {
	sum := sha256.Sum256([]byte(role + turnID))
	const crockford = "0123456789abcdefghjkmnpqrstvwxyz"
	tail := base32.NewEncoding(crockford).WithPadding(base32.NoPadding).EncodeToString(sum[:10])
	stamp := strings.TrimPrefix(turnID, "trn_")
	return "msg_" + stamp[:min(10, len(stamp))] + tail
}
