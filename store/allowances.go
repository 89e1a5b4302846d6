package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"

	"journeyman/store/db"
	"journeyman/store/people"
)

// allowanceReason is the reason that the audit log and the pages show for a decision that an
// allowance has made.
const allowanceReason = "allowed for the rest of the task"

// MayAllowRestOfTask reports whether a person may allow a tool for the rest of the turn's task, and
// whether such an allowance applies to the turn. A person who allows a tool trusts the people in
// the task, but cannot know what a later mail will ask for.
func (t Turn) MayAllowRestOfTask() bool { return !t.Stranger() && t.TriggeredBy != people.TriggerEmail }

// allowRestOfTask stores that the calls of a tool need no more decisions in a task. It also
// approves the other waiting calls of that tool in the same step. Otherwise a person would be asked
// about a call that they have just allowed.
func (s *Store) allowRestOfTask(ctx context.Context, tx db.Tx, c people.Caller, task Task, a Approval) error {
	if c.UserID == "" {
		return db.Errorf(db.Forbidden, "only a member can allow a tool for the rest of a task")
	}
	t, err := db.One(ctx, tx, scanTurn, selectTurn, a.turnNum)
	if err != nil {
		return err
	}
	if !t.MayAllowRestOfTask() {
		return db.Errorf(db.Conflict, "the turn came by mail or from somebody who is no member: "+
			"each of its calls is decided on alone")
	}
	_, err = tx.Exec(`INSERT INTO task_allowances (task_num, tool, user_id, worker_version, created_at)
		VALUES (?, ?, ?, ?, ?)
		ON CONFLICT (task_num, tool) DO UPDATE SET user_id = excluded.user_id, worker_version = excluded.worker_version,
			created_at = excluded.created_at`,
		task.num, a.ToolName, c.UserID, t.WorkerVersion, s.db.Millis())
	if err != nil {
		return err
	}
	waiting, err := db.All(ctx, tx, scanDescribed, `SELECT `+approvalColumns+`, s.parts, `+mayDecide("?1", "?2")+`
		FROM approvals a`+joinApproval+joinStep+joinWorker+`
		WHERE a.turn_num = ?3 AND a.step_seq = ?4 AND a.status = 'pending' AND a.kind = 'approval'
		ORDER BY a.call_seq`, c.Role.May(people.DecideApprovals), c.UserID, a.turnNum, a.Step)
	if err != nil {
		return err
	}
	for _, other := range waiting {
		if other.num == a.num || other.ToolName != a.ToolName {
			continue
		}
		// The approval a is still pending, so none of these is the last decision of the step.
		if err := s.decide(ctx, tx, c, task, other, Decision{Approved: true, Via: allowanceReason}); err != nil {
			return err
		}
	}
	return nil
}

// approveAllowed approves a new call if somebody has allowed its tool for the rest of the task
// and may still decide on it.
func (s *Store) approveAllowed(ctx context.Context, tx db.Tx, t Turn, step int64, a Approval) error {
	if a.Kind == KindQuestion || a.ToolName == "" || !t.MayAllowRestOfTask() {
		return nil
	}
	var userID, creatorID string
	// Another version of the worker may do other things with the tool than the person has seen.
	_, err := db.One(ctx, tx, db.Into(&userID, &creatorID), `SELECT l.user_id, w.user_id FROM task_allowances l
		CROSS JOIN workers w ON w.id = ?3 WHERE l.task_num = ?1 AND l.tool = ?2 AND l.worker_version = ?4`,
		t.taskNum, a.ToolName, t.WorkerID, t.WorkerVersion)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	// An allowance ends with the rights of the person who has made it.
	role, err := people.ReadRole(ctx, tx, t.OrganizationID, userID)
	if err != nil || role == "" || userID != creatorID && !role.May(people.DecideApprovals) {
		return err
	}
	a.turnNum, a.Step = t.Num, step
	if err := s.setDecision(tx, a, Decision{Approved: true}, userID); err != nil {
		return err
	}
	c := people.Caller{OrganizationID: t.OrganizationID, UserID: userID, Role: role}
	a.TurnID = t.ID
	return s.auditDecision(tx, c, Task{ID: t.TaskID, OrganizationID: t.OrganizationID}, a,
		Decision{Approved: true, Via: allowanceReason})
}

// insertApprovals stores the approvals that the calls of a step need. A call of a tool that a
// person has allowed for the rest of the task is approved at once, in the name of that person.
func (s *Store) insertApprovals(ctx context.Context, tx db.Tx, c Turn, st Step) error {
	if len(st.Approvals) > 0 {
		s.db.Notify(tx, c.OrganizationID, db.ChangedApprovals)
	}
	for _, a := range st.Approvals {
		var err error
		a.num, err = db.One(ctx, tx, db.ScanInt, `INSERT INTO approvals (id, kind, organization_id, task_num, turn_num,
				step_seq, call_seq, status, reason, created_at)
			VALUES (?, ?, ?, ?, ?, ?, ?, 'pending', '', ?) RETURNING num`,
			a.ID, cmp.Or(a.Kind, KindApproval), c.OrganizationID, c.taskNum, c.Num, st.Seq, a.Call, s.db.Millis())
		if err != nil {
			return fmt.Errorf("ask for approval: %w", err)
		}
		a.describe(st.Parts)
		if err := s.approveAllowed(ctx, tx, c, st.Seq, a); err != nil {
			return fmt.Errorf("approve an allowed call: %w", err)
		}
	}
	return nil
}
