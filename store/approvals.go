package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"
	"unicode/utf8"
)

// An ApprovalStatus is what became of an Approval.
type ApprovalStatus string

// The states of an approval: pending -> approved or denied, by a person; pending ->
// expired or cancelled, when its turn ends without a decision.
const (
	ApprovalPending   ApprovalStatus = "pending"
	ApprovalApproved  ApprovalStatus = "approved"
	ApprovalDenied    ApprovalStatus = "denied"
	ApprovalExpired   ApprovalStatus = "expired"
	ApprovalCancelled ApprovalStatus = "cancelled"
)

// MaxReason bounds the reason of a decision, in characters.
const MaxReason = 1000

// An Approval is asked of people before a tool call may run.
type Approval struct {
	num             int64
	ID              string // from NewID("apr", ...)
	TaskID          string
	TurnID          string
	WorkerID        string
	Step            int64
	Call            int64 // among the step's tool calls
	ToolName        string
	ToolCallID      string
	Input           json.RawMessage // the call's arguments
	Status          ApprovalStatus
	Reason          string // of the decision; '' without one
	Decision        int64  // 0, 1, ... among the decisions on its step, in their order
	DecidedByUserID string // '' where nobody has decided
	DecidedByName   string
	CreatedAt       time.Time
	DecidedAt       *time.Time // or when the turn ended; nil while pending
	BegunAt         *time.Time // when its call began to run; nil before
	MayDecide       bool       // the caller who asked may decide on it; lists only
}

// Decided reports whether a person has decided.
func (a Approval) Decided() bool {
	return a.Status == ApprovalApproved || a.Status == ApprovalDenied
}

const approvalColumns = `a.num, a.id, t.id, u.id, u.worker_id, a.turn_num, a.step_seq, a.call_seq, a.status, a.reason, coalesce(a.decision, 0),
	coalesce(a.decided_by_user_id, ''), coalesce((SELECT p.name FROM users p WHERE p.id = a.decided_by_user_id), ''),
	a.created_at, a.decided_at, a.begun_at`

// joinApproval follows a table a of approvals.
const joinApproval = ` CROSS JOIN turns u ON u.num = a.turn_num CROSS JOIN tasks t ON t.num = u.task_num `

type turnApproval struct {
	turn int64
	Approval
}

// scanInto reads approvalColumns and, after them, more.
func (a *turnApproval) scanInto(row scanner, more ...any) error {
	var created int64
	var decided, begun sql.NullInt64
	err := row.Scan(append([]any{&a.num, &a.ID, &a.TaskID, &a.TurnID, &a.WorkerID, &a.turn, &a.Step, &a.Call, &a.Status, &a.Reason, &a.Decision,
		&a.DecidedByUserID, &a.DecidedByName, &created, &decided, &begun}, more...)...)
	a.CreatedAt, a.DecidedAt, a.BegunAt = fromMillis(created), fromNull(decided), fromNull(begun)
	return err
}

func scanApproval(row scanner) (a turnApproval, err error) {
	err = a.scanInto(row)
	return a, err
}

// describe fills in what the call is, from the parts of its step.
func (a *Approval) describe(parts []Part) {
	n := int64(0)
	for _, p := range parts {
		if p.Type != PartToolCall {
			continue
		}
		if n == a.Call {
			a.ToolName, a.ToolCallID, a.Input = p.ToolName, p.CallID, p.Input
			return
		}
		n++
	}
}

func (s *Store) insertApprovals(tx *Tx, c Turn, st Step) error {
	for _, a := range st.Approvals {
		_, err := tx.Exec(`INSERT INTO approvals (id, organization_id, task_num, turn_num, step_seq, call_seq, status, reason, created_at)
			VALUES (?, ?, ?, ?, ?, ?, 'pending', '', ?)`, a.ID, c.OrganizationID, c.TaskNum, c.Num, st.Seq, a.Call, s.millis())
		if err != nil {
			return fmt.Errorf("ask for approval: %w", err)
		}
	}
	return nil
}

// stepApprovals are those of one step, in the order of its calls.
func (s *Store) stepApprovals(ctx context.Context, q querier, turnNum, step int64) ([]Approval, error) {
	rows, err := all(ctx, q, scanApproval, `SELECT `+approvalColumns+` FROM approvals a`+joinApproval+`
		WHERE a.turn_num = ? AND a.step_seq = ? ORDER BY a.call_seq`, turnNum, step)
	list := make([]Approval, 0, len(rows))
	for _, a := range rows {
		list = append(list, a.Approval)
	}
	return list, err
}

// ErrAbortRequested means that a turn is to be aborted by the runner that has it.
var ErrAbortRequested = errors.New("the turn is to be aborted")

// RestTurn gives a claimed turn up until people have decided on the calls of a
// step; it ends at until where they don't. Nobody holds it while it rests, and
// ClaimTurns gives it again after the last decision. Where all have been made
// already it does not rest: then approvals are as decided, and rests is false.
func (s *Store) RestTurn(ctx context.Context, c Claim, step int64, until time.Time) (approvals []Approval, rests bool, err error) {
	err = s.write(ctx, func(tx *Tx) error {
		if err := s.addToTurn(tx, c, "", Usage{}); err != nil {
			return err
		}
		aborted, err := one(ctx, tx, scanInt, `SELECT abort_requested FROM turns WHERE num = ?`, c.Num)
		if err != nil {
			return err
		}
		if aborted == 1 {
			return ErrAbortRequested
		}
		if approvals, err = s.stepApprovals(ctx, tx, c.Num, step); err != nil {
			return err
		}
		for _, a := range approvals {
			rests = rests || a.Status == ApprovalPending
		}
		if rests {
			_, err = tx.Exec(`UPDATE turns SET runner_id = NULL, rests_until = ? WHERE num = ?`, until.UnixMilli(), c.Num)
		}
		return err
	})
	return approvals, rests, err
}

// BeginApproved notes that an approved call is about to run: whoever finds the mark
// after a crash knows that the call may have acted, and whoever does not, that it
// has not.
func (s *Store) BeginApproved(ctx context.Context, c Claim, approvalID string) error {
	return s.write(ctx, func(tx *Tx) error {
		if err := s.addToTurn(tx, c, "", Usage{}); err != nil {
			return err
		}
		_, err := tx.Exec(`UPDATE approvals SET begun_at = ? WHERE id = ? AND turn_num = ?`, s.millis(), approvalID, c.Num)
		return err
	})
}

// A Decision is a person's on an approval.
type Decision struct {
	Approved bool
	Reason   string // for the model where it is denied, and for the record; at most MaxReason characters
	Once     Once
}

func (d Decision) status() ApprovalStatus {
	if d.Approved {
		return ApprovalApproved
	}
	return ApprovalDenied
}

// Check notes in f what breaks the limits of a decision.
func (d Decision) Check(f *Fields) {
	f.Check(utf8.RuneCountInString(d.Reason) <= MaxReason, "reason", "must have at most %d characters", MaxReason)
}

// DecideApproval approves or denies a tool call of a task, for the worker's creator,
// Owners and Admins. The last decision on a step puts its turn back into the queue.
// Front doors call Runner.DecideApproval, which has the turn go on at once. The same decision again changes
// nothing; the other one, and one after the turn has ended, is a Conflict.
func (s *Store) DecideApproval(ctx context.Context, c Caller, taskID, id string, d Decision) (a Approval, err error) {
	var f Fields
	if d.Check(&f); f.Err() != nil {
		return a, f.Err()
	}
	err = s.write(ctx, func(tx *Tx) error {
		task, err := s.decidableTask(ctx, tx, c, taskID)
		if err != nil {
			return err
		}
		if _, err := s.lookup(ctx, tx, d.Once); err != nil { // the same key for another decision
			return err
		}
		row, err := s.findApproval(ctx, tx, task, id)
		if err != nil {
			return err
		}
		if a = row.Approval; a.Status == d.status() {
			return nil
		}
		if a.Status != ApprovalPending {
			return &Error{Kind: Conflict, Code: "approval_" + string(a.Status), Message: refusedDecision[a.Status]}
		}
		if err := s.decide(ctx, tx, c, task, row, d); err != nil {
			return err
		}
		if row, err = s.findApproval(ctx, tx, task, id); err != nil {
			return err
		}
		a = row.Approval
		return s.remember(tx, d.Once, a.ID)
	})
	a.MayDecide = err == nil
	return a, err
}

// refusedDecision says why a decision comes too late.
var refusedDecision = map[ApprovalStatus]string{
	ApprovalApproved:  "the call has been approved already",
	ApprovalDenied:    "the call has been denied already",
	ApprovalExpired:   "nobody decided in time: the turn has ended",
	ApprovalCancelled: "the turn has ended before a decision",
}

func (s *Store) findApproval(ctx context.Context, tx *Tx, task Task, id string) (a turnApproval, err error) {
	var parts string
	_, err = one(ctx, tx, func(row scanner) (struct{}, error) { return struct{}{}, a.scanInto(row, &parts) },
		`SELECT `+approvalColumns+`, s.parts FROM approvals a`+joinApproval+joinStep+`WHERE a.id = ? AND a.task_num = ?`, id, task.Num)
	if err != nil {
		return a, notFound(err, "approval")
	}
	return a, a.read(parts)
}

const joinStep = ` CROSS JOIN steps s ON s.turn_num = a.turn_num AND s.seq = a.step_seq `

// read is describe from a step's parts as the database has them.
func (a *turnApproval) read(raw string) error {
	var parts []Part
	if err := json.Unmarshal([]byte(raw), &parts); err != nil {
		return fmt.Errorf("decode step: %w", err)
	}
	a.describe(parts)
	return nil
}

// decide writes a decision down and, where it is the step's last and the turn rests,
// queues the turn again.
func (s *Store) decide(ctx context.Context, tx *Tx, c Caller, task Task, a turnApproval, d Decision) error {
	_, err := tx.Exec(`UPDATE approvals SET status = ?1, reason = ?2, decided_by_user_id = ?3, decided_at = ?4,
			decision = (SELECT count(*) FROM approvals o WHERE o.turn_num = ?5 AND o.step_seq = ?6 AND o.decision IS NOT NULL)
		WHERE num = ?7`, d.status(), d.Reason, nullable(c.UserID), s.millis(), a.turn, a.Step, a.num)
	if err != nil {
		return err
	}
	detail := map[string]any{"taskId": task.ID, "turnId": a.TurnID, "toolName": a.ToolName, "toolCallId": a.ToolCallID}
	if d.Reason != "" {
		detail["reason"] = d.Reason
	}
	action := "approval.deny"
	if d.Approved {
		action = "approval.approve"
	}
	if err := s.audit(tx, c, action, a.ID, detail); err != nil {
		return err
	}
	left, err := one(ctx, tx, scanInt, `SELECT EXISTS (SELECT 1 FROM approvals WHERE turn_num = ? AND step_seq = ? AND status = 'pending')`, a.turn, a.Step)
	if err != nil || left == 1 {
		return err
	}
	return s.endRest(tx, task, a.turn)
}

// endRest puts a turn that rests back into the queue. One that its runner still has
// goes on by itself.
func (s *Store) endRest(tx *Tx, task Task, turnNum int64) error {
	n, err := tx.Exec(`UPDATE turns SET status = 'pending', rests_until = NULL WHERE num = ? AND rests_until IS NOT NULL`, turnNum)
	if err != nil || n == 0 {
		return err
	}
	s.countQueued(tx, 1)
	_, err = tx.Exec(`UPDATE tasks SET status = 'pending' WHERE num = ?1 AND turn_count = (SELECT seq + 1 FROM turns WHERE num = ?2)`, task.Num, turnNum)
	return err
}

// ExpireRests ends turns that have rested for too long, in error, at most limit of
// them, and gives them.
func (s *Store) ExpireRests(ctx context.Context, limit int) (ended []Turn, err error) {
	err = s.write(ctx, func(tx *Tx) error {
		turns, err := all(ctx, tx, scanTurn, `SELECT `+turnColumns+` FROM turns INDEXED BY turns_resting WHERE rests_until <= ?
			ORDER BY rests_until LIMIT ?`, s.millis(), limit)
		if err != nil {
			return err
		}
		for _, t := range turns {
			t, err := s.endResting(ctx, tx, t, ApprovalExpired, Outcome{Status: Failed, Failure: &Failure{Code: "approval_timeout",
				Message: "nobody decided in time on a tool call that needs approval"}})
			if err != nil {
				return err
			}
			ended = append(ended, t)
		}
		return nil
	})
	return ended, err
}

// endResting ends a turn that rests, with what it has produced so far.
func (s *Store) endResting(ctx context.Context, tx *Tx, t Turn, status ApprovalStatus, out Outcome) (Turn, error) {
	if err := s.closeApprovals(tx, t.Num, status); err != nil {
		return t, err
	}
	steps, err := s.journal(ctx, tx, t.Num)
	if err != nil {
		return t, err
	}
	out.OutputText, out.Duration = AnswerText(steps), Worked(steps)
	return s.endTurn(tx, Claim{Turn: t}, nil, out)
}

// closeApprovals is for a turn that ends: nobody can decide any more.
func (s *Store) closeApprovals(tx *Tx, turnNum int64, status ApprovalStatus) error {
	_, err := tx.Exec(`UPDATE approvals SET status = ?, decided_at = ? WHERE turn_num = ? AND status = 'pending'`, status, s.millis(), turnNum)
	return err
}

// An ApprovalQuery asks for a page of approvals.
type ApprovalQuery struct {
	TaskID string // of this task, decided or not; '' for the pending ones of all tasks
	Cursor string // from the page before
	Limit  int    // most items
}

// Check notes in f the filters whose values cannot be.
func (q ApprovalQuery) Check(f *Fields) { checkCursor(f, q.Cursor) }

// Approvals lists approvals of tasks the caller may see, newest first, and the
// cursor of the next page, ” after the last: with a TaskID for a task's page, without
// for what is open anywhere. MayDecide says on which the caller may decide.
func (s *Store) Approvals(ctx context.Context, c Caller, q ApprovalQuery) ([]Approval, string, error) {
	var f Fields
	if q.Check(&f); f.Err() != nil {
		return nil, "", f.Err()
	}
	from, key := ` FROM approvals INDEXED BY approvals_pending WHERE organization_id = ?1 AND status = 'pending'`, any(c.OrganizationID)
	if q.TaskID != "" {
		task, _, err := s.visibleTask(ctx, s, c, q.TaskID)
		if err != nil {
			return nil, "", err
		}
		from, key = ` FROM approvals INDEXED BY approvals_by_task WHERE task_num = ?1`, task.Num
	}
	before := int64(math.MaxInt64)
	if after, _ := parseCursor(q.Cursor); after != nil { // checked above
		before = after[0]
	}
	from += ` AND num < ?2 ORDER BY num DESC `
	limit := pageLimit(q.Limit)
	decides := c.Role.May(DecideApprovals)
	// The subquery is the outer loop, so its order is the result's.
	rows, err := all(ctx, s, scanListed, `SELECT `+approvalColumns+`, s.parts, ?3 OR w.user_id = ?4 FROM (SELECT *`+from+`LIMIT ?5) a`+joinApproval+joinStep+`
		CROSS JOIN workers w ON w.id = u.worker_id
		WHERE (?6 OR w.visibility = 'public' OR w.user_id = ?4 OR EXISTS (SELECT 1 FROM worker_members m WHERE m.worker_id = w.id AND m.user_id = ?4))
		LIMIT ?7`, key, before, decides, c.UserID, maxScanned, c.Role.manages(), limit+1)
	if err != nil {
		return nil, "", err
	}
	position := func(a Approval) []int64 { return []int64{a.num, 0} }
	return paginate(ctx, s, rows, limit, position, `SELECT num, 0`+from+`LIMIT 1 OFFSET ?3`, key, before, maxScanned-1)
}

func scanListed(row scanner) (Approval, error) {
	var a turnApproval
	var parts string
	if err := a.scanInto(row, &parts, &a.MayDecide); err != nil {
		return a.Approval, err
	}
	err := a.read(parts)
	return a.Approval, err
}
