package handlers

import (
	"encoding/json"
	"net/http"

	"journeyman/runner"
	"journeyman/store"
)

type approvalView struct {
	ID         string               `json:"id"`
	TaskID     string               `json:"taskId"`
	TurnID     string               `json:"turnId"`
	WorkerID   string               `json:"workerId"`
	ToolCallID string               `json:"toolCallId"`
	ToolName   string               `json:"toolName"`
	Input      json.RawMessage      `json:"input"`
	Status     store.ApprovalStatus `json:"status"`
	Reason     *string              `json:"reason"`
	DecidedBy  *string              `json:"decidedBy"`
	CreatedAt  string               `json:"createdAt"`
	DecidedAt  *string              `json:"decidedAt"`
	MayDecide  bool                 `json:"mayDecide"`
}

func newApprovalView(a store.Approval) approvalView {
	return approvalView{ID: a.ID, TaskID: a.TaskID, TurnID: a.TurnID, WorkerID: a.WorkerID, ToolCallID: a.ToolCallID, ToolName: a.ToolName,
		Input: a.Input, Status: a.Status, Reason: optional(a.Reason), DecidedBy: optional(a.DecidedByUserID),
		CreatedAt: runner.Timestamp(a.CreatedAt), DecidedAt: optionalTime(a.DecidedAt), MayDecide: a.MayDecide}
}

// listApprovals lists what waits for a decision in all tasks.
func (a *API) listApprovals(w http.ResponseWriter, r *request) error {
	return a.respondApprovals(w, r, store.ApprovalQuery{})
}

// listTaskApprovals lists what was asked about a task's tool calls, decided or not.
func (a *API) listTaskApprovals(w http.ResponseWriter, r *request) error {
	return a.respondApprovals(w, r, store.ApprovalQuery{TaskID: r.params.ByName("taskId")})
}

func (a *API) respondApprovals(w http.ResponseWriter, r *request, q store.ApprovalQuery) error {
	v, err := parseQuery(r)
	if err != nil {
		return err
	}
	var f store.Fields
	q.Cursor, q.Limit = v.Get("cursor"), pageLimit(&f, v)
	if q.Check(&f); f.Err() != nil {
		return f.Err()
	}
	approvals, next, err := a.store.Approvals(r.Context(), r.who.Caller, q)
	if err != nil {
		return err
	}
	list := page[approvalView]{Items: make([]approvalView, 0, len(approvals)), NextCursor: optional(next)}
	for _, ap := range approvals {
		list.Items = append(list.Items, newApprovalView(ap))
	}
	return respond(w, http.StatusOK, list)
}

// decideApproval approves or denies a tool call. The same decision again changes
// nothing.
func (a *API) decideApproval(w http.ResponseWriter, r *request) error {
	b, err := readBody(w, r)
	if err != nil {
		return err
	}
	d := store.Decision{Approved: b.flag("approved")}
	b.invalid.Check(b.has("approved"), "approved", "is required")
	if reason := b.text("reason"); reason != nil {
		d.Reason = *reason
	}
	d.Check(&b.invalid)
	if err := b.invalid.Err(); err != nil {
		return err
	}
	if d.Once, err = b.once(r); err != nil {
		return err
	}
	done, err := a.store.Replay(r.Context(), d.Once)
	if err != nil {
		return err
	}
	markReplay(w, done != "")
	decided, err := a.runner.DecideApproval(r.Context(), r.who.Caller, r.params.ByName("taskId"), r.params.ByName("approvalId"), d)
	if err != nil {
		return err
	}
	return respond(w, http.StatusOK, newApprovalView(decided))
}

// knowsApprovals reports whether a client reads with the AI SDK 6, as it says in the
// query: version 5 refuses what its successor shows of approvals.
func knowsApprovals(r *request) (bool, error) {
	v, err := parseQuery(r)
	if err != nil {
		return false, err
	}
	switch v.Get("aiSdk") {
	case "", "5":
		return false, nil
	case "6":
		return true, nil
	}
	return false, invalid("aiSdk", "must be 5 or 6")
}

// pendingApproval is what a run view says of a call that waits for a decision.
type pendingApproval struct {
	ID         string          `json:"id"`
	ToolCallID string          `json:"toolCallId"`
	ToolName   string          `json:"toolName"`
	Input      json.RawMessage `json:"input"`
}

// pendingApprovals are those of a conversation: of the last step of the turn that
// rests.
func pendingApprovals(conv store.Conversation) []pendingApproval {
	var list []pendingApproval
	for _, t := range conv.Turns {
		steps := conv.Steps[t.Num]
		if t.Status.Ended() || len(steps) == 0 {
			continue
		}
		for _, ap := range steps[len(steps)-1].Approvals {
			if ap.Status == store.ApprovalPending {
				list = append(list, pendingApproval{ap.ID, ap.ToolCallID, ap.ToolName, ap.Input})
			}
		}
	}
	return list
}
