package store

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"journeyman/store/db"
)

// An ApprovalStatus is the state of an Approval.
type ApprovalStatus string

// The states of an approval: pending -> approved, denied or answered, by a person;
// pending -> expired, when nobody decides in time; pending -> cancelled, when its turn
// ends without a decision.
const (
	ApprovalPending   ApprovalStatus = "pending"
	ApprovalApproved  ApprovalStatus = "approved"
	ApprovalDenied    ApprovalStatus = "denied"
	ApprovalAnswered  ApprovalStatus = "answered"
	ApprovalExpired   ApprovalStatus = "expired"
	ApprovalCancelled ApprovalStatus = "cancelled"
)

// An ApprovalKind is the kind of decision: whether a call may run, or the answer to its question.
type ApprovalKind string

// The kinds of approvals.
const (
	KindApproval ApprovalKind = "approval"
	KindQuestion ApprovalKind = "question"
)

// MaxReason bounds the reason of a decision, in characters.
const MaxReason = 1000

// An Approval is a person's decision on a tool call, pending or made. The call runs only
// after a person has approved it, or it asks a person a question.
type Approval struct {
	num             int64
	turnNum         int64
	ID              string // from NewID("apr", ...)
	Kind            ApprovalKind
	TaskID          string
	TurnID          string
	WorkerID        string
	Step            int64
	Call            int64 // among the step's tool calls
	ToolName        string
	ToolCallID      string
	Input           json.RawMessage // the call's arguments
	Status          ApprovalStatus
	Question        Question // of KindQuestion
	Reason          string   // the reason for the decision; '' if none was given
	Answer          string   // to the question; '' if there is none
	Decision        int64    // 0, 1, ... in the order of the decisions on its step
	DecidedByUserID string   // '' before a decision
	DecidedByName   string
	CreatedAt       time.Time
	DecidedAt       *time.Time // when it was decided or given up; nil while pending
	StartedAt       *time.Time // when its call began to run; nil before
	MayDecide       bool       // the caller may decide on it; set by Approvals and DecideApproval
}

// Decided reports whether a person has decided.
func (a Approval) Decided() bool {
	return a.Status == ApprovalApproved || a.Status == ApprovalDenied || a.Status == ApprovalAnswered
}

const approvalColumns = `a.num, a.id, a.kind, t.id, u.id, (SELECT id FROM workers WHERE num = u.worker_num),
	a.turn_num, a.step_seq, a.call_seq, a.status,
	a.reason, coalesce(a.answer, ''), coalesce(a.decision, 0), coalesce(a.decided_by_user_id, ''),
	coalesce((SELECT p.name FROM users p WHERE p.id = a.decided_by_user_id), ''),
	a.created_at, a.decided_at, a.started_at`

// joinApproval joins a table a of approvals with its turn u and its task t.
const joinApproval = ` CROSS JOIN turns u ON u.num = a.turn_num CROSS JOIN tasks t ON t.num = u.task_num `

// scanInto scans approvalColumns and then the columns of more.
func (a *Approval) scanInto(row db.Scanner, more ...any) error {
	return row.Scan(append([]any{&a.num, &a.ID, &a.Kind, &a.TaskID, &a.TurnID, &a.WorkerID, &a.turnNum, &a.Step,
		&a.Call, &a.Status, &a.Reason, &a.Answer, &a.Decision, &a.DecidedByUserID, &a.DecidedByName,
		db.AsTime(&a.CreatedAt), db.AsTimeOrNil(&a.DecidedAt), db.AsTimeOrNil(&a.StartedAt)}, more...)...)
}

func scanApproval(row db.Scanner) (a Approval, err error) {
	err = a.scanInto(row)
	return a, err
}

// A Question is what a worker asks a person.
type Question struct {
	Text    string   `json:"question"`
	Choices []string `json:"choices"` // suggestions: an answer may be any text
}

// Choice returns the choice with that number, counted from 1, or "" if there is none. It also
// accepts "2." and "2)".
func (q Question) Choice(number string) string {
	n, err := strconv.Atoi(strings.TrimRight(strings.TrimSpace(number), ".)"))
	if err != nil || n < 1 || n > len(q.Choices) {
		return ""
	}
	return q.Choices[n-1]
}

// Match returns the answer that a typed text means: a choice if the text is its number or
// its words, and otherwise the text itself.
func (q Question) Match(text string) string {
	text = strings.TrimSpace(text)
	if choice := q.Choice(text); choice != "" {
		return choice
	}
	// Mail programs and people add spaces, full stops and quotes.
	plain := func(s string) string { return strings.Trim(strings.Join(strings.Fields(s), " "), ` .!"'`) }
	for _, choice := range q.Choices {
		if strings.EqualFold(plain(choice), plain(text)) {
			return choice
		}
	}
	return text
}
