package store

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"journeyman/store/db"
)

// An Outcome is how a turn ended.
type Outcome struct {
	Status           Status // Completed, Failed or Aborted
	OutputText       string
	StructuredOutput json.RawMessage
	Failure          *Failure
	IncompleteReason string
	IncompleteLimit  string
	Duration         time.Duration
	Model            string // that refused to answer at all; "" for the model of the last answer
}

// AbortedOutcome returns the Outcome of a turn that was cancelled before it produced anything.
func AbortedOutcome() Outcome {
	return Outcome{Status: Aborted, IncompleteReason: ReasonAborted,
		Failure: &Failure{Code: "aborted", Message: "the task was cancelled"}}
}

// FinishTurn ends a claimed turn and lets the next turn of the task run, in one
// transaction. It also stores the turn's last step, unless last is nil. It returns
// ErrClaimLost if the runner no longer has the turn.
//
// It may be a locking write (see db.DB.Hot) if the end of the turn depends on no other turn. That is so
// if the turn completes, has asked for no approvals, has no parent and has started no turns.
// FinishTurn first locks the turn, so neither the claim nor the mark of a cancel can change. If the
// turn was cancelled or has started turns, the write becomes serializable. StartChild locks the
// turn, too, so no child is missed. Then FinishTurn changes the row of the task. Every write that
// adds a turn to the task, or takes one from it, changes that row as well. So the sums of the task
// and the turn behind this one cannot change. A cap or a webhook that is set at the same time
// applies from the next turn on. One statement checks whether the schedule of the task may run
// again, and changes its row. The row of the webhook is locked until the delivery is committed: see
// RemoveWebhook. The sums of the organization come last: see meter.
func (s *Store) FinishTurn(ctx context.Context, c Claim, last *Step, out Outcome) (t Turn, err error) {
	// A turn that completed without approval rules has no pending approvals. The common case then
	// needs one statement less.
	asked := len(c.Settings.ApprovalTools) > 0 || out.Status != Completed || out.IncompleteReason != ""
	out = s.storableOutcome(out)
	locking := !asked && c.Depth == 0 && (last == nil || len(last.Approvals) == 0)
	err = s.db.Hot(ctx, locking, func(tx db.Tx) error {
		if c.Depth > 0 {
			if err := s.lockParents(ctx, tx, c.taskNum); err != nil {
				return err
			}
		}
		if asked {
			if err := s.closeApprovals(tx, c.Turn, ApprovalCancelled); err != nil {
				return err
			}
		}
		return s.ending(tx, func(tx db.Tx) error {
			t, err = s.endTurn(tx, c, last, out)
			return err
		})
	})
	if err != nil {
		return s.unlessEnded(ctx, err, c, out)
	}
	return t, nil
}

// endTurn ends a turn that c's runner has. If c has no RunnerID, it ends a suspended turn. A locking
// write ends only a turn on which no other turn depends: see FinishTurn.
func (s *Store) endTurn(tx db.Tx, c Claim, last *Step, out Outcome) (Turn, error) {
	var used Usage
	model := out.Model
	if last != nil {
		used, model = last.used(), last.Model
	}
	completed := db.FromMillis(s.db.Millis())
	t := c.Turn
	// Whole milliseconds, as in the database: the result equals what a later read returns.
	t.Status, t.CompletedAt, t.Duration = out.Status, &completed, out.Duration.Truncate(time.Millisecond)
	t.OutputText, t.StructuredOutput, t.Failure = out.OutputText, out.StructuredOutput, out.Failure
	t.IncompleteReason, t.IncompleteLimit, t.Wait = out.IncompleteReason, out.IncompleteLimit, nil
	t.FailingSince, t.FailedCalls = nil, 0
	ended := []Turn{t}
	var about endSettings
	if err := endClaimed(tx, c.RunnerID, &ended[0], model, used, &about); err != nil {
		return Turn{}, err
	}
	if last != nil {
		if err := s.insertStep(context.Background(), tx, t, *last); err != nil {
			return Turn{}, err
		}
	}
	// Only a tool call starts a child, and only a journaled step has calls that have begun.
	checked := db.IsLocking(tx) && last != nil && last.Seq > 0
	if checked {
		if err := refuseChildren(tx, t); err != nil {
			return Turn{}, err
		}
	}
	// A cancel ends the whole task, so the turns that wait behind this one end, too.
	if ended[0].AbortRequested {
		waiting, err := s.abortWaiting(tx, t.taskNum)
		if err != nil {
			return Turn{}, err
		}
		ended = append(ended, waiting...)
	}
	if err := s.endTurns(tx, ended, true, used.Cost(), &about); err != nil {
		return Turn{}, err
	}
	// The children come after the turn: the end of a child must not resume it.
	if ended[0].Usage.Steps > used.Steps && !checked {
		if err := s.abandonChildren(tx, ended[0]); err != nil {
			return Turn{}, err
		}
	}
	return ended[0], s.meterEnded(tx, ended, used, about)
}

// endClaimed stores the end of a turn that a runner has, and reads into t what only the row knows. The
// task usually gets the status of the turn: updateEnded corrects another one. In a locking write, these
// fields of t and about are set before the next result.
func endClaimed(tx db.Tx, runnerID string, t *Turn, model string, used Usage, about *endSettings) error {
	// Only these columns change after the claim. The condition on the runner decides the race
	// with another runner that has claimed the turn since.
	return db.OneLater(tx, ErrClaimLost, func(row db.Scanner) error {
		err := row.Scan(append(t.Usage.columns(), &t.Model, &t.AbortRequested, &about.hasCap, &about.hasWebhook)...)
		if err == nil && t.AbortRequested && db.IsLocking(tx) {
			return db.ErrSerialize
		}
		return err
	}, `UPDATE turns SET `+endedColumns+` WHERE num = ? AND status = 'running' AND runner_id IS ?
		RETURNING `+usageColumns+`, coalesce(model, ''), abort_requested, `+capAndWebhook,
		append(endedArgs(t, t.Status, model, used), t.Num, db.Nullable(runnerID))...)
}

// endSettings holds the settings that decide which statements the end of a turn needs.
type endSettings struct{ hasCap, hasWebhook bool }

// capAndWebhook selects the endSettings of a turn.
const capAndWebhook = `EXISTS (SELECT 1 FROM organizations o WHERE o.num = organization_num
		AND o.monthly_credit_cap IS NOT NULL),
	EXISTS (SELECT 1 FROM webhooks h WHERE h.worker_id = ` + db.WorkerID + `)`

// meterEnded adds turns that have ended to the sums of their organization. used is the usage of the
// first turn's last step. The usage of all earlier steps is in the sums already.
func (s *Store) meterEnded(tx db.Tx, ended []Turn, used Usage, about endSettings) error {
	var list []metered
	for i := range ended {
		if i > 0 { // the other turns were waiting: they used nothing now
			used = Usage{}
		}
		list = append(list, metered{&ended[i], used, true, about.hasCap})
	}
	if e, ok := tx.(*endingTx); ok {
		e.ended = append(e.ended, list...)
		return nil
	}
	return s.meterAll(tx, list)
}

// endedColumns sets the columns of a turn that has ended to endedArgs. The columns of a claim and of a
// suspension become NULL, so no index of waiting turns keeps it.
const endedColumns = `status = ?, runner_id = NULL, suspended_until = NULL, waits_for = NULL,
	wait_reason = NULL, retry_at = NULL, output_text = ?, structured_output = ?, error_code = ?, error_message = ?,
	error_retryable = ?, incomplete_reason = ?, incomplete_limit = ?, duration_ms = ?, completed_at = ?,
	task_status = ?, failing_since = NULL, failed_calls = 0, ` + addUsage

// endedArgs returns the values of endedColumns. model and used are those of a step that ends the turn.
func endedArgs(t *Turn, task Status, model string, used Usage) []any {
	var code, message, retryable any
	if f := t.Failure; f != nil {
		code, message, retryable = f.Code, f.Message, f.Retryable
	}
	return append([]any{t.Status, t.OutputText, db.Nullable(string(t.StructuredOutput)), code, message, retryable,
		db.Nullable(t.IncompleteReason), db.Nullable(t.IncompleteLimit), t.Duration.Milliseconds(), t.CompletedAt.UnixMilli(),
		task}, usageArgs(model, used)...)
}

// updateEnded stores the status of the task after the end of a turn. stored is true if endClaimed
// has stored the other columns of the end.
func updateEnded(tx db.Tx, t *Turn, task Status, stored bool) error {
	t.TaskStatus = task
	switch {
	case !stored:
		return tx.ExecLater(`UPDATE turns SET `+endedColumns+` WHERE num = ?`,
			append(endedArgs(t, task, "", Usage{}), t.Num)...)
	case task != t.Status:
		return tx.ExecLater(`UPDATE turns SET task_status = ? WHERE num = ?`, task, t.Num)
	}
	return nil
}

// endTurns stores that turns of one task have ended, and makes the task's next turn ready. ended,
// ran and cost are as in settleTask. If ran is true, endClaimed has stored the end of the first
// turn. endTurns reads about only after settleTask, because a locking write sets it late. The
// caller then calls meterEnded.
func (s *Store) endTurns(tx db.Tx, ended []Turn, ran bool, cost int64, about *endSettings) error {
	task, err := s.settleTask(tx, ended, ran, cost)
	if err != nil {
		return err
	}
	for i := range ended {
		t := &ended[i]
		if err := updateEnded(tx, t, task.status, ran && i == 0); err != nil {
			return err
		}
		if err := s.Effects.queueReply(tx, *t); err != nil {
			return err
		}
		if err := s.Effects.alertEnd(context.Background(), tx, *t); err != nil {
			return err
		}
		if t.Depth > 0 {
			if err := s.childEnded(tx, *t); err != nil {
				return err
			}
		}
	}
	if err := startNext(tx, ended[len(ended)-1], task); err != nil {
		return err
	}
	if !about.hasWebhook {
		return nil
	}
	// The rows of deliveries and replies are in the same transaction as the end. A crash can
	// then lose neither of them.
	return s.Effects.queueDeliveries(tx, ended, task)
}

// startNext makes the turn after t ready to run. If the task has no such turn, the
// schedule that waits for the task may fire again.
func startNext(tx db.Tx, t Turn, task taskState) error {
	if task.unfinished == 0 {
		return releaseSchedule(tx, t)
	}
	next, err := db.One(context.Background(), tx, db.ScanInt, `SELECT num FROM turns
		WHERE task_num = ? AND seq > ? AND status = 'pending' ORDER BY seq LIMIT 1`, t.taskNum, t.Seq)
	if err != nil {
		return err
	}
	return tx.ExecLater(`UPDATE turns SET ready = 1 WHERE num = ?`, next)
}

// ExpireSuspended ends the waits of at most limit turns whose time is over. A turn that
// waits only for answers goes on without them: resumed counts these turns. Any other turn
// ends in error: ended holds these turns.
func (s *Store) ExpireSuspended(ctx context.Context, limit int) (ended []Turn, resumed int, err error) {
	err = s.db.Write(ctx, func(tx db.Tx) error {
		return s.ending(tx, func(tx db.Tx) error {
			ended, resumed, err = s.expireSuspended(ctx, tx, limit)
			return err
		})
	})
	return ended, resumed, err
}

func (s *Store) expireSuspended(ctx context.Context, tx db.Tx, limit int) (ended []Turn, resumed int, err error) {
	if s.Gate.Writable() != nil {
		return nil, 0, nil // maintenance has begun while this write waited: no wait times out during maintenance
	}
	turns, err := db.All(ctx, tx, scanTurn, `SELECT `+turnColumns+` FROM turns INDEXED BY turns_suspended
		WHERE suspended_until <= ? ORDER BY suspended_until LIMIT ?`, s.db.Millis(), limit)
	if err != nil {
		return ended, resumed, err
	}
	for _, t := range turns {
		if t.AbortRequested { // its worker was deleted
			t, err := s.endSuspended(ctx, tx, t, ApprovalCancelled, AbortedOutcome())
			if err != nil {
				return ended, resumed, err
			}
			ended = append(ended, t)
			continue
		}
		// A question asks for help, so its turn can go on without an answer. An unapproved
		// call must not run.
		answers, err := s.expireQuestions(ctx, tx, t)
		if err != nil {
			return ended, resumed, err
		}
		if answers {
			resumed++
			continue
		}
		t, err := s.endSuspended(ctx, tx, t, ApprovalExpired, t.Wait.expired())
		if err != nil {
			return ended, resumed, err
		}
		ended = append(ended, t)
	}
	return ended, resumed, nil
}

// expireQuestions resumes a turn that waits only for answers. It reports false for other turns.
func (s *Store) expireQuestions(ctx context.Context, tx db.Tx, t Turn) (bool, error) {
	if t.Wait == nil || t.Wait.For != WaitForPerson {
		return false, nil
	}
	only, err := db.One(ctx, tx, db.ScanBool, `SELECT count(*) > 0 AND count(*) = count(iif(kind = 'question', 1, NULL))
		FROM approvals WHERE turn_num = ? AND status = 'pending'`, t.Num)
	if err != nil || !only {
		return false, err
	}
	// The questions are closed first: the resumed turn would otherwise wait for them again.
	if err := s.closeApprovals(tx, t, ApprovalExpired); err != nil {
		return false, err
	}
	return true, s.resume(tx, t.OrganizationID, t.taskNum, t.Num)
}

// endSuspended ends a suspended turn and keeps the text that it has produced so far.
func (s *Store) endSuspended(ctx context.Context, tx db.Tx, t Turn, status ApprovalStatus, out Outcome) (Turn, error) {
	if err := s.closeApprovals(tx, t, status); err != nil {
		return t, err
	}
	steps, err := readJournal(ctx, tx, t.Num)
	if err != nil {
		return t, err
	}
	out.OutputText, out.Duration = AnswerText(steps), Worked(steps)
	return s.endTurn(tx, Claim{Turn: t}, nil, out)
}

// expired returns the Outcome of a turn whose wait has timed out.
func (w *Wait) expired() Outcome {
	f := Failure{Code: "approval_timeout", Message: "nobody decided in time on a tool call that needs approval"}
	if w != nil && w.For == WaitForModel {
		// The reason is the provider's error, with its code before it.
		code, message, ok := strings.Cut(w.Reason, ": ")
		if !ok {
			code, message = "model_unavailable", w.Reason
		}
		f = Failure{Code: code, Message: message, Retryable: true}
	}
	return Outcome{Status: Failed, Failure: &f}
}

// abandonChildren cancels the children of an ending turn whose tool calls have no result, because
// nobody would read their answers. Children whose calls have a result go on: those calls did not
// wait.
func (s *Store) abandonChildren(tx db.Tx, t Turn) error {
	ctx := context.Background()
	children, err := db.All(ctx, tx, scanTurn, `SELECT `+turnColumns+ofWaitedFor, t.Num)
	if db.IsLocking(tx) && len(children) > 0 {
		return db.ErrSerialize
	}
	for _, child := range children {
		if !child.Status.Ended() {
			if _, err := s.abortTurn(ctx, tx, child); err != nil {
				return err
			}
		}
		// A child that has ended may have left turns that go on by themselves.
		if _, err := s.abortBelow(ctx, tx, child.Num); err != nil {
			return err
		}
	}
	return err
}

// ofWaitedFor selects the children of a turn whose tool calls have no result.
const ofWaitedFor = ` FROM turns WHERE parent_turn_num = ?1 AND NOT EXISTS (SELECT 1 FROM tool_calls k
	WHERE k.turn_num = ?1 AND k.step_seq = parent_step_seq AND k.seq = parent_call_seq)`

// refuseChildren ends a locking write with db.ErrSerialize if abandonChildren would cancel a child. It
// needs no round trip of its own.
func refuseChildren(tx db.Tx, t Turn) error {
	return db.OneLater(tx, nil, func(row db.Scanner) error {
		found, err := db.ScanBool(row)
		if err == nil && found {
			return db.ErrSerialize
		}
		return err
	}, `SELECT EXISTS (SELECT 1`+ofWaitedFor+`)`, t.Num)
}

// storableOutcome returns an outcome with texts as later reads return them.
func (s *Store) storableOutcome(out Outcome) Outcome {
	s.db.MakeStorable(&out.OutputText, &out.Model)
	if out.StructuredOutput != nil {
		out.StructuredOutput = []byte(s.db.Storable(string(out.StructuredOutput)))
	}
	if out.Failure != nil {
		f := *out.Failure // the caller's stays unchanged
		s.db.MakeStorable(&f.Code, &f.Message)
		out.Failure = &f
	}
	return out
}
