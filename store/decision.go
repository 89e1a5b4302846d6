package store

import (
	"context"
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"journeyman/store/db"
	"journeyman/store/people"
)

// MaxAnswer bounds the answer to a question, in characters.
const MaxAnswer = 20_000

// A Decision is a person's decision on an Approval. A decision with an Answer is for a
// question. A decision without one is for a call that needs approval.
type Decision struct {
	Approved       bool
	RestOfTask     bool   // with Approved: later calls of the same tool in the task need no decision
	Reason         string // for the model if it is denied, and for the record; at most MaxReason characters
	Answer         string // to a question, without white space around it; at most MaxAnswer characters
	Via            string // for the audit log: the way of the decision, such as a link in a mail; usually ""
	IdempotencyKey db.IdempotencyKey
}

func (d Decision) status() ApprovalStatus {
	switch {
	case d.Answer != "":
		return ApprovalAnswered
	case d.Approved:
		return ApprovalApproved
	}
	return ApprovalDenied
}

// Check adds to f the fields that break a limit.
func (d Decision) Check(f *db.Fields) {
	db.CheckLine(f, "reason", d.Reason, MaxReason)
	f.Check(utf8.RuneCountInString(d.Answer) <= MaxAnswer, "answer", "must have at most %d characters", MaxAnswer)
	f.Check(d.Answer == "" || !db.IsBlank(d.Answer), "answer", "must not be blank")
	db.CheckNUL(f, "answer", d.Answer)
	f.Check(!d.RestOfTask || d.Approved, "restOfTask", "needs an approval")
}

// checkFor returns an Invalid error if the decision is for the other kind of approval.
func (d Decision) checkFor(a Approval) error {
	var f db.Fields
	f.Check(a.Kind != KindQuestion || d.Answer != "", "answer", "is required: the call asks a question")
	f.Check(a.Kind != KindApproval || d.Answer == "", "approved",
		"is required instead of an answer: the call waits for an approval")
	return f.Err()
}

const (
	joinStep   = ` CROSS JOIN steps s ON s.turn_num = a.turn_num AND s.seq = a.step_seq `
	joinWorker = ` CROSS JOIN workers w ON w.num = u.worker_num `
)

// scanDescribed scans approvalColumns, the parts of the step, and MayDecide.
func scanDescribed(row db.Scanner) (a Approval, err error) {
	var raw []byte
	if err := a.scanInto(row, &raw, &a.MayDecide); err != nil {
		return a, err
	}
	var parts []Part
	if err := json.Unmarshal(raw, &parts); err != nil {
		return a, fmt.Errorf("decode step: %w", err)
	}
	a.describe(parts)
	return a, nil
}

// findApproval returns an approval of a task, or a NotFound error.
func findApproval(ctx context.Context, q db.Querier, c people.Caller, task Task, id string) (Approval, error) {
	a, err := db.One(ctx, q, scanDescribed, `SELECT `+approvalColumns+`, s.parts, `+mayDecide("?1", "?2")+`
		FROM approvals a`+joinApproval+joinStep+joinWorker+`
		WHERE a.id = ?3 AND a.task_num = ?4`, c.Role.May(people.DecideApprovals), c.UserID, id, task.num)
	return a, db.NoRecord(err, "approval")
}

// decide stores a decision. The last decision on a step resumes its turn.
func (s *Store) decide(ctx context.Context, tx db.Tx, c people.Caller, task Task, a Approval, d Decision) error {
	if err := s.setDecision(tx, a, d, c.UserID); err != nil {
		return err
	}
	s.db.Notify(tx, task.OrganizationID, db.ChangedApprovals)
	// The audit log records what members do. The answer of a stranger is in the list of mails.
	if !c.Stranger() {
		if err := s.auditDecision(tx, c, task, a, d); err != nil {
			return err
		}
	}
	// A step goes on only when all of its calls are decided. Writes are serializable, so exactly
	// one decision is the last.
	left, err := db.One(ctx, tx, db.ScanInt, `SELECT EXISTS (SELECT 1 FROM approvals
		WHERE turn_num = ? AND step_seq = ? AND status = 'pending')`, a.turnNum, a.Step)
	if err != nil || left == 1 {
		return err
	}
	return s.resume(tx, task.OrganizationID, task.num, a.turnNum)
}

// setDecision writes a decision of a user into the row of an approval.
func (s *Store) setDecision(tx db.Tx, a Approval, d Decision, userID string) error {
	_, err := tx.Exec(`UPDATE approvals SET status = ?1, reason = ?2, decided_by_user_id = ?3, decided_at = ?4,
			decision = (SELECT count(*) FROM approvals o WHERE o.turn_num = ?5 AND o.step_seq = ?6
				AND o.decision IS NOT NULL), answer = ?7
		WHERE num = ?8`,
		d.status(), d.Reason, db.Nullable(userID), s.db.Millis(), a.turnNum, a.Step, db.Nullable(d.Answer), a.num)
	return err
}

func (s *Store) auditDecision(tx db.Tx, c people.Caller, task Task, a Approval, d Decision) error {
	detail := map[string]any{"taskId": task.ID, "turnId": a.TurnID, "toolName": a.ToolName, "toolCallId": a.ToolCallID}
	if d.Reason != "" {
		detail["reason"] = d.Reason
	}
	if d.Via != "" {
		detail["via"] = d.Via
	}
	if d.RestOfTask {
		detail["restOfTask"] = true
	}
	action := "approval.deny"
	switch d.status() {
	case ApprovalApproved:
		action = "approval.approve"
	case ApprovalAnswered:
		action = "question.answer" // the answer itself is content, which the log does not hold
	}
	return s.People.Audit(tx, c, action, a.ID, detail)
}

// forbidden returns the error for a caller who may see an approval but not decide on it.
func forbidden(a Approval) error {
	if a.Kind == KindQuestion {
		return db.Errorf(db.Forbidden, "only the author of the instruction, the person who began the task, the creator of "+
			"the worker, Owners and Admins may answer its questions. A question to a non-member needs an answer by mail")
	}
	return db.Errorf(db.Forbidden, "only the creator of the worker, Owners and Admins may decide on its tool calls")
}
