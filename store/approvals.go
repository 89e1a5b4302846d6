package store

import (
	"context"
	"slices"
	"time"

	"journeyman/store/db"
)

// stepApprovals returns the approvals of one step, in the order of its calls.
func stepApprovals(ctx context.Context, q db.Querier, turnNum, step int64) ([]Approval, error) {
	return db.All(ctx, q, scanApproval, `SELECT `+approvalColumns+` FROM approvals a`+joinApproval+`
		WHERE a.turn_num = ? AND a.step_seq = ? ORDER BY a.call_seq`, turnNum, step)
}

// SuspendTurn takes a claimed turn from its runner until people have decided on the calls of
// a step. The last decision puts the turn back into the queue. At the time until,
// ExpireSuspended ends a wait without decisions. If all decisions have been made already,
// or if withdrawQuestions leaves none to wait for, the turn goes on and suspended is false. SuspendTurn
// returns ErrAbortRequested if the turn was cancelled.
func (s *Store) SuspendTurn(ctx context.Context, c Claim, step int64,
	until time.Time) (approvals []Approval, suspended bool, err error) {
	err = s.db.Write(ctx, func(tx db.Tx) error {
		// claimedProgress returns ErrClaimLost if the runner no longer has the turn.
		if err := claimedProgress(tx, c, "", Usage{}); err != nil {
			return err
		}
		// A suspended turn has no runner to stop it, so a cancelled turn must not become one.
		err := db.RefuseIf(ctx, tx, ErrAbortRequested, `SELECT abort_requested FROM turns WHERE num = ?`, c.Num)
		if err != nil {
			return err
		}
		if approvals, err = stepApprovals(ctx, tx, c.Num, step); err != nil {
			return err
		}
		if approvals, err = s.withdrawQuestions(ctx, tx, c.Turn, approvals); err != nil {
			return err
		}
		// A decision may have come while the runner still had the turn. Then there is no later
		// decision that would resume it.
		suspended = slices.ContainsFunc(approvals, isPending)
		if !suspended {
			return nil
		}
		if err := s.suspend(tx, c, Wait{For: WaitForPerson, Until: until}); err != nil {
			return err
		}
		return s.announceWait(ctx, tx, c, approvals)
	})
	return approvals, suspended, err
}

func isPending(a Approval) bool { return a.Status == ApprovalPending }

// BeginApproved records that an approved call is about to run. After a crash, a call with
// this record may have acted, and a call without it has not.
func (s *Store) BeginApproved(ctx context.Context, c Claim, approvalID string) error {
	return s.db.Write(ctx, func(tx db.Tx) error {
		if err := claimedProgress(tx, c, "", Usage{}); err != nil {
			return err
		}
		_, err := tx.Exec(`UPDATE approvals SET started_at = ? WHERE id = ? AND turn_num = ?`,
			s.db.Millis(), approvalID, c.Num)
		return err
	})
}

// closeApprovals sets the last status of the pending approvals of a turn. The turn ends, or
// it goes on without answers to its questions.
func (s *Store) closeApprovals(tx db.Tx, t Turn, status ApprovalStatus) error {
	n, err := tx.Exec(`UPDATE approvals SET status = ?, decided_at = ? WHERE turn_num = ?
		AND status = 'pending'`, status, s.db.Millis(), t.Num)
	if n > 0 {
		s.db.Notify(tx, t.OrganizationID, db.ChangedApprovals)
	}
	return err
}
