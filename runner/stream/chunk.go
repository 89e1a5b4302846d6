package stream

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/r3labs/sse/v2"

	"journeyman/runner/model"
	"journeyman/runner/view"
	"journeyman/store"
)

// An Event is one event of a stream, for the library that writes it. Its ID is opaque: a client that
// reconnects with it gets the events that follow. Its Data is a chunk as JSON on one line. Many
// readers share an event, so it never changes.
type Event struct{ *sse.Event }

// NewEvent returns an event. Its data must not be empty.
func NewEvent(id string, data []byte) Event { return Event{&sse.Event{ID: []byte(id), Data: data}} }

// A chunk is a chunk of the UI message stream. Its type determines which fields it has.
// Strict clients accept no other field, and no null.
type chunk struct {
	Type            string          `json:"type"`
	ID              string          `json:"id,omitempty"`
	Delta           string          `json:"delta,omitempty"`
	MessageID       string          `json:"messageId,omitempty"`
	MessageMetadata *view.Metadata  `json:"messageMetadata,omitempty"`
	ToolCallID      string          `json:"toolCallId,omitempty"`
	ToolName        string          `json:"toolName,omitempty"`
	InputTextDelta  string          `json:"inputTextDelta,omitempty"`
	Input           json.RawMessage `json:"input,omitempty"`
	Output          json.RawMessage `json:"output,omitempty"`
	ErrorText       string          `json:"errorText,omitempty"`
	Dynamic         bool            `json:"dynamic,omitempty"`
	SourceID        string          `json:"sourceId,omitempty"`
	URL             string          `json:"url,omitempty"`
	Title           string          `json:"title,omitempty"`
	MediaType       string          `json:"mediaType,omitempty"`
	FinishReason    string          `json:"finishReason,omitempty"`
	ApprovalID      string          `json:"approvalId,omitempty"`
	Approved        *bool           `json:"approved,omitempty"`
	Reason          string          `json:"reason,omitempty"`
	Data            any             `json:"data,omitempty"`
	Transient       bool            `json:"transient,omitempty"`

	// Only in a worker-wide stream.
	TaskID string `json:"taskId,omitempty"`
	TurnID string `json:"turnId,omitempty"`
}

// marshal returns the chunk as JSON on one line.
func (c chunk) marshal() []byte {
	b, err := view.Marshal(c)
	if err != nil { // the store contains a value that is not JSON
		return fmt.Appendf(nil, `{"type":"error","errorText":%q}`, "the event cannot be shown")
	}
	return bytes.TrimSuffix(b, []byte("\n"))
}

// dataChunk returns a data chunk, an extension of this service. Clients do not add it to the
// message that they build.
func dataChunk(name string, data any) chunk {
	return chunk{Type: "data-" + name, Data: data, Transient: true}
}

// statusChunk returns the chunk with the status of a task.
func statusChunk(s store.Status) chunk {
	return dataChunk("status", map[string]store.Status{"status": s})
}

// outageChunk returns the chunk that reports that a turn waits for its model.
func outageChunk(t store.Turn) chunk {
	return dataChunk("waiting", view.WaitingOf(t.Wait))
}

// restartChunk returns the chunk that withdraws a step.
func restartChunk(step int) chunk {
	return dataChunk("restart", map[string]string{"stepId": view.StepID(int64(step))})
}

// waitingChunk returns the chunk with the status of a question.
func waitingChunk(a store.Approval, status store.ApprovalStatus) chunk {
	question, choices := view.QuestionOf(a)
	return dataChunk("waiting", struct {
		For        store.WaitFor        `json:"for"`
		ApprovalID string               `json:"approvalId"`
		ToolCallID string               `json:"toolCallId"`
		Question   *string              `json:"question"`
		Choices    []string             `json:"choices"`
		Status     store.ApprovalStatus `json:"status"`
	}{store.WaitForPerson, a.ID, a.ToolCallID, question, choices, status})
}

// approvalChunk returns the chunk with the state of an approval. The AI SDK 6 shows it as a part of the
// message: a later state with the same id replaces an earlier one.
func approvalChunk(state view.ApprovalState, sdk view.SDK) chunk {
	if sdk == view.SDK6 {
		return chunk{Type: view.ApprovalPart, ID: state.ApprovalID, Data: state}
	}
	return chunk{Type: view.ApprovalPart, Data: state, Transient: true}
}

// responseChunk returns the chunk with the decision on an approval, for the AI SDK 7.
func responseChunk(a store.Approval, reason string) chunk {
	approved := a.Status == store.ApprovalApproved
	return chunk{Type: "tool-approval-response", ApprovalID: a.ID, Approved: &approved, Reason: view.ValidText(reason)}
}

// failureChunk returns the chunk with the reason for a turn's failure.
func failureChunk(f *store.Failure) chunk {
	if f == nil || f.Message == "" {
		return chunk{Type: "error", ErrorText: "the turn failed"}
	}
	return chunk{Type: "error", ErrorText: f.Message}
}

// finishReason returns the protocol's finish reason for a turn that has ended.
func finishReason(t store.Turn, steps []store.Step) string {
	switch {
	// The protocol has no reason for a refusal. The nearest one is the content filter.
	case t.Status == store.Failed && t.Failure != nil && t.Failure.Code == model.CodeRefused:
		return string(model.FinishContentFilter)
	case t.Status == store.Failed:
		return "error"
	case t.Status == store.Aborted:
		return string(model.FinishOther)
	case t.IncompleteReason == store.ReasonBudget, t.IncompleteReason == store.ReasonMaxTokens:
		return string(model.FinishLength)
	case t.IncompleteReason == store.ReasonFilter:
		return string(model.FinishContentFilter)
	case len(steps) > 0 && steps[len(steps)-1].Finish == string(model.FinishOther):
		return string(model.FinishOther)
	}
	return string(model.FinishStop)
}
