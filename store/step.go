package store

import (
	"encoding/json"
	"slices"
	"time"

	"journeyman/store/db"
)

// A PartType is the kind of a Part.
type PartType string

// The kinds of parts that a model produces. PartUnmade is the text of a tool call that could not be made. The journal
// keeps it for the person who looks for the reason. It is no part of messages, streams and answers. The step has the
// Finish FinishMistake, except after the last call of a budget with other text.
const (
	PartReasoning PartType = "reasoning"
	PartText      PartType = "text"
	PartToolCall  PartType = "tool-call"
	PartUnmade    PartType = "unmade-call"
)

// A Part is a piece of the answer to a model call.
type Part struct {
	Type     PartType        `json:"type"`
	Text     string          `json:"text,omitempty"`
	CallID   string          `json:"callId,omitempty"`
	ToolName string          `json:"toolName,omitempty"`
	Input    json.RawMessage `json:"input,omitempty"` // a tool call's arguments
	Meta     json.RawMessage `json:"meta,omitempty"`  // returned to the provider unchanged
}

// IsCall reports whether the part is a tool call.
func (p Part) IsCall() bool { return p.Type == PartToolCall }

// A Step is one finished model call, with those of its tool calls that have ended.
type Step struct {
	Seq         int64
	Attempt     int64 // the number of this try at the step
	Parts       []Part
	Calls       []Call     // those that have ended, in the order of their ends
	Approvals   []Approval // that its calls need, in their order
	Finish      string
	Feedback    string // the message of the runner to the model after the step
	Model       string
	Estimated   int64 // tokens of the input, estimated before the call
	Usage       Usage // of the model call; Steps and ToolCost are not used
	Charged     bool  // Usage has been added to the turn's sums already; not stored
	StartedAt   time.Time
	CompletedAt time.Time
}

// Call returns the end of the step's tool call number seq; ok is false if it has not
// ended.
func (st Step) Call(seq int64) (c Call, ok bool) {
	i := slices.IndexFunc(st.Calls, func(c Call) bool { return c.Seq == seq })
	if i < 0 {
		return c, false
	}
	return st.Calls[i], true
}

// Approval returns the approval of the step's tool call number seq; ok is false if the
// call needs none.
func (st Step) Approval(seq int64) (a Approval, ok bool) {
	i := slices.IndexFunc(st.Approvals, func(a Approval) bool { return a.Call == seq })
	if i < 0 {
		return a, false
	}
	return st.Approvals[i], true
}

// A ToolCall is a part that calls a tool.
type ToolCall struct {
	Part
	N int64 // number among the tool calls of its step
}

// ToolCalls returns the tool calls of a step, in order.
func (st Step) ToolCalls() []ToolCall {
	var list []ToolCall
	for _, p := range st.Parts {
		if p.IsCall() {
			list = append(list, ToolCall{p, int64(len(list))})
		}
	}
	return list
}

// used returns the usage that the model call adds to the sums.
func (st Step) used() Usage {
	u := st.Usage
	if st.Charged {
		u = Usage{}
	}
	u.Steps, u.ToolCost = 1, 0
	return u
}

// Worked returns the total duration of the calls of a journal. The time between calls, such as a
// wait for a person, does not count. Time in which several calls ran counts once. It counts in milliseconds, as the
// database does: a turn that resumes then has worked exactly as long as before.
func Worked(steps []Step) time.Duration {
	var d time.Duration
	for _, st := range steps {
		d += stored(st.CompletedAt).Sub(stored(st.StartedAt))
		begun := slices.SortedFunc(slices.Values(st.Calls), func(a, b Call) int {
			return a.StartedAt.Compare(b.StartedAt)
		})
		var counted time.Time // the time up to which calls are counted
		for _, c := range begun {
			from, end := stored(c.StartedAt), stored(c.CompletedAt)
			if from.Before(counted) {
				from = counted
			}
			if end.After(from) {
				d += end.Sub(from)
				counted = end
			}
		}
	}
	return d
}

// stored returns a time as the database returns it.
func stored(t time.Time) time.Time { return db.FromMillis(t.UnixMilli()) }

// A CallState is the way in which a tool call ended.
type CallState string

// The ends of a tool call. An interrupted call was under way when the process ended, and
// may have acted.
const (
	CallCompleted   CallState = "completed"
	CallFailed      CallState = "error"
	CallInterrupted CallState = "interrupted"
)

// A Call is a tool call that has ended.
type Call struct {
	Step        int64
	Seq         int64 // among the step's tool calls
	State       CallState
	Output      json.RawMessage // an error: its message, as a JSON string
	Images      []Image         // that it shows to the model
	Cost        int64           // nano-dollars
	StartedAt   time.Time
	CompletedAt time.Time
	Spent       Spent // when it ended
}

// A Spent is how much of its budget a turn has used, in per cent of each limit, at most 100. A value is 0
// without a limit.
type Spent struct {
	Steps, Time, Credits int64
	ByTeam               bool // Steps and Credits count other turns of its team
}

// CallDidNotRun is the error text of a call that never ran: its turn went on or ended
// without it.
const CallDidNotRun = "the call did not run"

// ErrorText returns the error message of a call that failed.
func (c Call) ErrorText() string {
	var text string
	if err := json.Unmarshal(c.Output, &text); err != nil || text == "" {
		return "the call failed"
	}
	return text
}

// A Source is a web page on which an answer is based.
type Source struct {
	ID      string // from NewID("src", ...)
	TurnNum int64
	URL     string
	Title   string // '' without one
}

// An Image is an image that a tool call shows to the model.
type Image struct {
	Path      string `json:"path"` // in the workspace, such as "a.png" or "b.pdf#page=3"; "" for an image of another server
	MediaType string `json:"mediaType"`
	Size      int64  `json:"size"`   // in bytes
	SHA256    string `json:"sha256"` // in hexadecimal; names its blob
}

// Of returns the approval with the fields of its tool call set. The table has no columns for
// them: the parts of the step hold them already.
func (a Approval) Of(c ToolCall) Approval {
	a.ToolName, a.ToolCallID, a.Input = c.ToolName, c.CallID, c.Input
	if a.Kind == KindQuestion {
		// The error cannot occur: the runner checked the arguments before it asked.
		_ = json.Unmarshal(a.Input, &a.Question)
	}
	return a
}

// describe sets the fields of the tool call from the parts of its step.
func (a *Approval) describe(parts []Part) {
	if calls := (Step{Parts: parts}).ToolCalls(); a.Call < int64(len(calls)) {
		*a = a.Of(calls[a.Call])
	}
}
