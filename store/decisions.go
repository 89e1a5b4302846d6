package store

import (
	"context"
	"strings"

	"journeyman/store/db"
	"journeyman/store/people"
)

// DecideApproval approves or denies a tool call of a task, or answers its question. It
// returns Forbidden unless mayDecide permits the caller. The last decision on a step puts its
// turn back into the queue. The same decision again changes nothing. A different decision, or
// one after the turn has ended, is a Conflict. Call Runner.DecideApproval instead: it also
// wakes the runner.
func (s *Store) DecideApproval(ctx context.Context, c people.Caller, taskID, id string, d Decision) (a Approval,
	err error) {
	d.Answer = strings.TrimSpace(d.Answer)
	var f db.Fields
	if d.Check(&f); f.Err() != nil {
		return a, f.Err()
	}
	err = s.db.Write(ctx, func(tx db.Tx) (err error) {
		var task Task
		if a, task, err = s.approvalToDecide(ctx, tx, &c, taskID, id, d.IdempotencyKey); err != nil {
			return err
		}
		if err := d.checkFor(a); err != nil || a.Status == d.status() && a.Answer == d.Answer {
			return err
		}
		if a.Status != ApprovalPending {
			return decidedAlready(a)
		}
		if d.RestOfTask {
			if err := s.allowRestOfTask(ctx, tx, c, task, a); err != nil {
				return err
			}
		}
		if err := s.decide(ctx, tx, c, task, a, d); err != nil {
			return err
		}
		// Read it again for the fields that the database computes, such as Decision.
		if a, err = findApproval(ctx, tx, c, task, id); err != nil {
			return err
		}
		return s.db.RememberIn(tx, d.IdempotencyKey, a.ID)
	})
	return a, err
}

// approvalToDecide returns an approval on which the caller may decide, and its task. It sets c.Role to
// the caller's present role.
func (s *Store) approvalToDecide(ctx context.Context, tx db.Tx, c *people.Caller, taskID, id string,
	key db.IdempotencyKey) (a Approval, task Task, err error) {
	// The caller may have been demoted or removed while the request was under way.
	if err := people.RoleNow(ctx, tx, c); err != nil {
		return a, task, err
	}
	if c.Role == "" && !c.IsOperator() {
		return a, task, db.Errorf(db.Forbidden, "you are not in this organization")
	}
	task, w, err := visibleTask(ctx, tx, *c, taskID)
	if err != nil {
		return a, task, err
	}
	// The result is not used: the same decision again changes nothing anyway. FindResult
	// returns an error if the key belongs to a different decision.
	if _, err := s.db.FindResult(ctx, tx, key); err != nil {
		return a, task, err
	}
	a, err = findApproval(ctx, tx, *c, task, id)
	if db.IsKind(err, db.NotFound) && w.UserID != c.UserID && !c.Role.May(people.DecideApprovals) {
		return a, task, forbidden(a) // a caller without the right does not learn which ids exist
	}
	if err == nil && !a.MayDecide {
		err = forbidden(a)
	}
	return a, task, err
}

// decidedAlready returns the Conflict for a decision on an approval that is no longer pending.
func decidedAlready(a Approval) error {
	message := "the turn has ended before a decision"
	switch a.Status {
	case ApprovalApproved:
		message = "the call has been approved already"
	case ApprovalDenied:
		message = "the call has been denied already"
	case ApprovalAnswered:
		message = "the question has been answered already"
	case ApprovalExpired:
		message = "nobody decided in time: the turn has ended"
		if a.Kind == KindQuestion {
			message = "nobody answered in time: the worker has gone on without an answer"
		}
	case ApprovalCancelled:
		if a.Kind == KindQuestion {
			message = "the question was withdrawn: its turn has ended, or has gone on because another message waited"
		}
	}
	// The code names the state, so a client can tell a lost race from an expired wait.
	return &db.Error{Kind: db.Conflict, Code: "approval_" + string(a.Status), Message: message}
}

// Approval returns an approval of a task that the caller may see.
func (s *Store) Approval(ctx context.Context, c people.Caller, taskID, id string) (Approval, error) {
	task, _, err := visibleTask(ctx, s.db, c, taskID)
	if err != nil {
		return Approval{}, err
	}
	return findApproval(ctx, s.db, c, task, id)
}
