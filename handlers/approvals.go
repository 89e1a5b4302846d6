package handlers

import (
	"encoding/json"
	"net/http"
	"strings"

	"journeyman/runner/view"
	"journeyman/store"
	"journeyman/store/db"
)

// An approvalView is an approval as the API shows it.
type approvalView struct {
	ID         string               `json:"id"`
	Kind       store.ApprovalKind   `json:"kind"`
	TaskID     string               `json:"taskId"`
	TurnID     string               `json:"turnId"`
	WorkerID   string               `json:"workerId"`
	ToolCallID string               `json:"toolCallId"`
	ToolName   string               `json:"toolName"`
	Input      json.RawMessage      `json:"input"`
	Question   *string              `json:"question"` // null for a call that is approved or denied
	Choices    []string             `json:"choices"`  // null for such a call, too
	Status     store.ApprovalStatus `json:"status"`
	Answer     *string              `json:"answer"`
	Reason     *string              `json:"reason"`
	DecidedBy  *string              `json:"decidedBy"`
	CreatedAt  string               `json:"createdAt"`
	DecidedAt  *string              `json:"decidedAt"`
	MayDecide  bool                 `json:"mayDecide"`
}

func newApprovalView(a store.Approval) approvalView {
	question, choices := view.QuestionOf(a)
	return approvalView{ID: a.ID, Kind: a.Kind, Question: question, Choices: choices, Answer: view.Optional(a.Answer),
		TaskID: a.TaskID, TurnID: a.TurnID, WorkerID: a.WorkerID,
		ToolCallID: a.ToolCallID, ToolName: a.ToolName, Input: a.Input, Status: a.Status,
		Reason: view.Optional(a.Reason), DecidedBy: view.Optional(a.DecidedByUserID), MayDecide: a.MayDecide,
		CreatedAt: view.Timestamp(a.CreatedAt), DecidedAt: view.OptionalTime(a.DecidedAt)}
}

// listApprovals lists the tool calls that wait for a decision or an answer, of all tasks.
func (a *API) listApprovals(w http.ResponseWriter, r *request) error {
	return a.respondApprovals(w, r, store.ApprovalQuery{})
}

// listTaskApprovals lists the approvals of a task's tool calls, decided or not.
func (a *API) listTaskApprovals(w http.ResponseWriter, r *request) error {
	return a.respondApprovals(w, r, store.ApprovalQuery{TaskID: r.param("taskId")})
}

// respondApprovals writes the page of approvals that the query asks for.
func (a *API) respondApprovals(w http.ResponseWriter, r *request, q store.ApprovalQuery) error {
	var f db.Fields
	q.Cursor, q.Limit = r.query.Get("cursor"), pageLimit(&f, r.query)
	if q.Check(&f); f.Err() != nil {
		return f.Err()
	}
	approvals, next, err := a.store.Approvals(r.Context(), r.who.Caller, q)
	return respondPage(w, approvals, next, newApprovalView, err)
}

// decideApproval approves or denies a tool call, or answers its question. A repeated decision
// changes nothing.
func (a *API) decideApproval(w http.ResponseWriter, r *request) error {
	b, err := readBody(w, r)
	if err != nil {
		return err
	}
	d := decisionOf(b)
	d.Check(&b.Invalid)
	if d.IdempotencyKey, err = b.checkedKey(w, r); err != nil {
		return err
	}
	// The store applies a decision only once. This look-up only marks the answer to a repeated
	// request as a replay.
	done, err := a.store.Replay(r.Context(), d.IdempotencyKey)
	if err != nil {
		return err
	}
	markReplay(w, done != "")
	decided, err := a.runner.DecideApproval(r.Context(), r.who.Caller, r.param("taskId"), r.param("approvalId"), d)
	return respondOK(w, newApprovalView(decided), err)
}

// decisionOf reads a decision. The store checks whether it fits the kind of the approval.
func decisionOf(b *Body) (d store.Decision) {
	if answer := b.text("answer"); answer != nil {
		d.Answer = strings.TrimSpace(*answer)
		b.Invalid.Check(d.Answer != "", "answer", "must not be empty")
		b.Invalid.Check(!b.has("approved"), "approved", "must not be given with an answer")
	} else if !b.has("answer") {
		b.Invalid.Check(b.has("approved"), "approved", "is required, or an answer if the call asks a question")
		d.Approved = b.flag("approved")
		d.RestOfTask = b.has("restOfTask") && b.flag("restOfTask")
	}
	d.Reason = b.Text("reason")
	return d
}
