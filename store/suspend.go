package store

import (
	"context"
	"time"

	"journeyman/store/db"
)

// A suspended turn waits for something outside its runner. Its status stays running, but no
// runner has claimed it and it holds no slot.

// suspend takes a claimed turn from its runner. The caller must have checked, in the same
// transaction, the claim and that the turn was not cancelled. No runner could notice the
// cancellation of a suspended turn.
func (s *Store) suspend(tx db.Tx, c Claim, w Wait) error {
	var retryAt any
	if w.RetryAt != nil {
		retryAt = w.RetryAt.UnixMilli()
	}
	_, err := tx.Exec(`UPDATE turns SET runner_id = NULL, suspended_until = ?, waits_for = ?, wait_reason = ?, retry_at = ?
		WHERE num = ?`, w.Until.UnixMilli(), w.For, db.Nullable(w.Reason), retryAt, c.Num)
	if err != nil {
		return err
	}
	s.db.Notify(tx, c.OrganizationID, db.ChangedTasks)
	// The task repeats the reason, so that the list of tasks can be filtered by an index.
	_, err = tx.Exec(`UPDATE tasks SET waits_for = ? WHERE num = ?`, w.For, c.taskNum)
	return err
}

// resume puts a suspended turn back into the queue. It does nothing for a turn that its runner
// still has. No event is lost: a runner that suspends a turn first checks, in the same transaction,
// whether the turn still has to wait.
func (s *Store) resume(tx db.Tx, organizationID string, taskNum, turnNum int64) error {
	stranger, err := db.One(context.Background(), tx, db.ScanBool,
		`UPDATE turns SET status = 'pending', suspended_until = NULL,
			waits_for = NULL, wait_reason = NULL, retry_at = NULL
		WHERE num = ? AND suspended_until IS NOT NULL RETURNING created_by_user_num IS NULL`, turnNum)
	if err != nil {
		return db.NoRow(err, nil)
	}
	// Accepted work always returns to the queue, even to a full one.
	s.waiting.add(tx, organizationID, laneOf(stranger), 1)
	return s.setRunning(tx, organizationID, taskNum, false)
}

// An Outage is a series of failed model calls of one turn, without a success between them.
type Outage struct {
	Since time.Time // when the first call failed
	Calls int64     // failed calls since the turn was claimed
}

// SuspendForModel takes a claimed turn from its runner until w.RetryAt. It also stores the time of
// the first failure. It returns ErrAbortRequested if the turn was cancelled, and ErrClaimLost if
// the runner no longer has it.
func (s *Store) SuspendForModel(ctx context.Context, c Claim, w Wait, o Outage) error {
	return s.db.Write(ctx, func(tx db.Tx) error {
		// The first failure stays the start of the outage, however often the turn is
		// suspended.
		err := updateClaimed(tx, c, `failing_since = coalesce(failing_since, ?), failed_calls = failed_calls + ?`,
			o.Since.UnixMilli(), o.Calls)
		if err != nil {
			return err
		}
		err = db.RefuseIf(ctx, tx, ErrAbortRequested, `SELECT abort_requested FROM turns WHERE num = ?`, c.Num)
		if err != nil {
			return err
		}
		return s.suspend(tx, c, w)
	})
}

// A waitingTurn is a suspended turn that is to be resumed.
type waitingTurn struct {
	num, taskNum int64
	organization string
}

func scanWaitingTurn(row db.Scanner) (w waitingTurn, err error) {
	err = row.Scan(&w.num, &w.taskNum, &w.organization)
	return w, err
}

// ResumeDue puts up to limit turns back into the queue whose time for another model call has
// come. It returns their number, and the time at which the next turn is due. next is nil if
// no turn waits for a model.
func (s *Store) ResumeDue(ctx context.Context, limit int) (n int, next *time.Time, err error) {
	// An idle runner asks often: it must cost no write.
	if next, err = nextRetry(ctx, s.db); err != nil || next == nil || next.After(s.db.Now()) {
		return 0, next, err
	}
	err = s.db.Write(ctx, func(tx db.Tx) error {
		limit := limit
		if s.Gate.Writable() != nil {
			limit = 0 // maintenance has begun while this write waited: the turns stay suspended
		}
		// The turns are read again in the write: some may have been cancelled since.
		turns, err := db.All(ctx, tx, scanWaitingTurn, `SELECT num, task_num, `+db.OrganizationID+`
			FROM turns INDEXED BY turns_retrying WHERE retry_at <= ? ORDER BY retry_at LIMIT ?`, s.db.Millis(), limit)
		if err != nil {
			return err
		}
		for _, t := range turns {
			if err := s.resume(tx, t.organization, t.taskNum, t.num); err != nil {
				return err
			}
		}
		n = len(turns)
		next, err = nextRetry(ctx, tx)
		return err
	})
	return n, next, err
}

// nextRetry returns when the next suspended turn is due, or nil if none waits for a model.
func nextRetry(ctx context.Context, q db.Querier) (next *time.Time, err error) {
	_, err = db.One(ctx, q, db.Into(db.AsTimeOrNil(&next)), `SELECT min(retry_at) FROM turns INDEXED BY turns_retrying
		WHERE retry_at IS NOT NULL`)
	return next, err
}

// RetryNow makes turns that wait for their model due at once. Turns that have ended or
// wait for something else stay as they are.
func (s *Store) RetryNow(ctx context.Context, turnIDs []string) error {
	return s.db.Write(ctx, func(tx db.Tx) error {
		for _, id := range turnIDs {
			// min keeps an earlier time, so the order among the turns that are due stays.
			_, err := tx.Exec(`UPDATE turns SET retry_at = min(retry_at, ?) WHERE id = ? AND waits_for = 'model'`,
				s.db.Millis(), id)
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// Suspended returns how many turns are suspended, by what they wait for.
func (s *Store) Suspended(ctx context.Context) (map[WaitFor]int64, error) {
	var person, model, worker int64
	// The condition is true for every suspended turn. The index needs it, and it holds
	// few rows.
	_, err := db.One(ctx, s.db, db.Into(&person, &model, &worker), `SELECT count(*) FILTER (WHERE waits_for = 'person'),
			count(*) FILTER (WHERE waits_for = 'model'), count(*) FILTER (WHERE waits_for = 'worker')
		FROM turns INDEXED BY turns_suspended WHERE suspended_until > 0`)
	return map[WaitFor]int64{WaitForPerson: person, WaitForModel: model, WaitForWorker: worker}, err
}

// returningNum makes an UPDATE of turns return a row.
const returningNum = ` RETURNING num`

// updateClaimed sets columns of a claimed turn, or returns ErrClaimLost.
func updateClaimed(tx db.Tx, c Claim, set string, args ...any) error {
	update, args := `UPDATE turns SET `+set+` WHERE num = ? AND status = 'running' AND runner_id = ?`,
		append(args, c.Num, c.RunnerID)
	if db.IsLocking(tx) { // ErrClaimLost is then the result of a later statement or of the commit
		scan := func(row db.Scanner) error { return row.Scan(new(int64)) }
		return db.OneLater(tx, ErrClaimLost, scan, update+returningNum, args...)
	}
	n, err := tx.Exec(update, args...)
	if err == nil && n == 0 {
		return ErrClaimLost
	}
	return err
}
