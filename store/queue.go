package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// ErrClaimLost means that a turn is no longer the runner's: it ended otherwise or
// was taken back. The runner drops what it was doing.
var ErrClaimLost = errors.New("the turn is no longer claimed by this runner")

// maxInterruptions is how often the process may die with a turn since the turn's
// last finished call: then the turn itself is the likely cause.
const maxInterruptions = 3

// A Claim is a turn that a runner has taken, with what the worker was told when
// it was accepted.
type Claim struct {
	Turn
	RunnerID     string
	Instructions string
	OutputSchema json.RawMessage // nil for free text
	Settings     WorkerSettings
}

// fairness remembers whose turn was claimed last, so that the next claim is of
// the organization after it, and in that of the worker after its last one.
type fairness struct {
	organization string
	workers      map[string]string // by organization
}

// StartRunner makes runnerID known and gives it a lease of ttl. Since one process
// at a time holds the data folder, every other runner is dead: its turns are
// taken back.
func (s *Store) StartRunner(ctx context.Context, runnerID string, ttl time.Duration) error {
	return s.write(ctx, func(tx *Tx) error {
		if _, err := tx.Exec(`DELETE FROM runners`); err != nil {
			return err
		}
		return s.renewLease(ctx, tx, runnerID, ttl)
	})
}

// RenewLease gives runnerID another ttl and takes back the turns of runners whose
// lease is over.
func (s *Store) RenewLease(ctx context.Context, runnerID string, ttl time.Duration) error {
	return s.write(ctx, func(tx *Tx) error { return s.renewLease(ctx, tx, runnerID, ttl) })
}

func (s *Store) renewLease(ctx context.Context, tx *Tx, runnerID string, ttl time.Duration) error {
	_, err := tx.Exec(`INSERT INTO runners (id, expires_at) VALUES (?, ?) ON CONFLICT DO UPDATE SET expires_at = excluded.expires_at`,
		runnerID, s.now().Add(ttl).UnixMilli())
	if err != nil {
		return err
	}
	now := s.millis()
	if _, err := tx.Exec(`DELETE FROM runners WHERE expires_at <= ?`, now); err != nil {
		return err
	}
	// Also of a runner that claimed after its row was gone.
	turns, err := all(ctx, tx, scanInterrupted, `SELECT `+interruptedColumns+` FROM turns INDEXED BY turns_running
		WHERE runner_id IS NOT NULL AND runner_id NOT IN (SELECT id FROM runners)`)
	if err != nil {
		return err
	}
	for _, t := range turns {
		if err := s.interrupt(tx, t, 1); err != nil {
			return err
		}
	}
	return nil
}

// StopRunner gives the turns of a runner that stops in good order back to the
// queue. Its attempts do not count as interruptions.
func (s *Store) StopRunner(ctx context.Context, runnerID string) error {
	return s.write(ctx, func(tx *Tx) error {
		turns, err := all(ctx, tx, scanInterrupted, `SELECT `+interruptedColumns+` FROM turns INDEXED BY turns_running
			WHERE runner_id = ?`, runnerID)
		if err != nil {
			return err
		}
		for _, t := range turns {
			if err := s.interrupt(tx, t, 0); err != nil {
				return err
			}
		}
		_, err = tx.Exec(`DELETE FROM runners WHERE id = ?`, runnerID)
		return err
	})
}

type interrupted struct {
	num, taskNum, seq, interruptions int64
	abortRequested                   bool
	runnerID                         string
}

const interruptedColumns = `num, task_num, seq, interruptions, abort_requested, runner_id`

func scanInterrupted(row scanner) (t interrupted, err error) {
	err = row.Scan(&t.num, &t.taskNum, &t.seq, &t.interruptions, &t.abortRequested, &t.runnerID)
	return t, err
}

// interrupt decides what becomes of a turn that its runner leaves unfinished. count
// is 1 where the process died, and 0 where it stopped in good order.
func (s *Store) interrupt(tx *Tx, t interrupted, count int64) error {
	switch {
	case t.abortRequested:
		return s.endInterrupted(tx, t, AbortedOutcome)
	case t.interruptions+count >= maxInterruptions:
		return s.endInterrupted(tx, t, Outcome{Status: Failed, Failure: &Failure{Code: "interrupted", Retryable: true,
			Message: "the service stopped three times while it worked on this turn"}})
	}
	_, err := tx.Exec(`UPDATE turns SET status = 'pending', runner_id = NULL, interruptions = interruptions + ? WHERE num = ?`, count, t.num)
	if err != nil {
		return err
	}
	s.countQueued(tx, 1)
	_, err = tx.Exec(`UPDATE tasks SET status = 'pending' WHERE num = ? AND turn_count = ?`, t.taskNum, t.seq+1)
	return err
}

func (s *Store) endInterrupted(tx *Tx, t interrupted, out Outcome) error {
	turn, err := one(context.Background(), tx, scanTurn, `SELECT `+turnColumns+` FROM turns WHERE num = ?`, t.num)
	if err != nil {
		return err
	}
	if err := s.closeApprovals(tx, t.num, ApprovalCancelled); err != nil {
		return err
	}
	_, err = s.endTurn(tx, Claim{Turn: turn, RunnerID: t.runnerID}, nil, out)
	return err
}

// ClaimTurns takes up to n waiting turns for a runner, fairly: one organization
// after the other, and inside each one worker after the other.
func (s *Store) ClaimTurns(ctx context.Context, runnerID string, n int) ([]Claim, error) {
	var claims []Claim
	if s.queued.Load() == 0 {
		return nil, nil
	}
	err := s.write(ctx, func(tx *Tx) error {
		for len(claims) < n {
			num, err := s.nextTurn(ctx, tx)
			if errors.Is(err, sql.ErrNoRows) {
				break
			}
			if err != nil {
				return err
			}
			c, err := s.claim(ctx, tx, runnerID, num)
			if err != nil {
				return err
			}
			claims = append(claims, c)
		}
		s.countQueued(tx, -int64(len(claims)))
		return nil
	})
	if err != nil {
		return nil, err
	}
	return claims, nil
}

// nextTurn gives the num of the turn whose turn it is: of the next organization
// after the last one's, and there of the next worker, both in a circle. Each query
// is one step down the queue's index or two, however long the queue is.
func (s *Store) nextTurn(ctx context.Context, tx *Tx) (int64, error) {
	const head = `SELECT * FROM (SELECT organization_id, worker_id, num FROM turns INDEXED BY turns_queued WHERE status = 'pending' AND ready = 1 AND `
	e, err := one(ctx, tx, scanEntry, head+`organization_id > ?1 ORDER BY organization_id, worker_id, num LIMIT 1)
		UNION ALL `+head+`organization_id <= ?1 ORDER BY organization_id, worker_id, num LIMIT 1)`, s.fair.organization)
	if err != nil {
		return 0, err
	}
	if last := s.fair.workers[e.organization]; last >= e.worker {
		e, err = one(ctx, tx, scanEntry, head+`organization_id = ?1 AND worker_id > ?2 ORDER BY worker_id, num LIMIT 1)
			UNION ALL `+head+`organization_id = ?1 AND worker_id <= ?2 ORDER BY worker_id, num LIMIT 1)`, e.organization, last)
		if err != nil {
			return 0, err
		}
	}
	if s.fair.workers == nil {
		s.fair.workers = map[string]string{}
	}
	s.fair.organization = e.organization
	s.fair.workers[e.organization] = e.worker
	return e.num, nil
}

// An entry is a turn's place in the queue.
type entry struct {
	organization, worker string
	num                  int64
}

func scanEntry(row scanner) (e entry, err error) {
	err = row.Scan(&e.organization, &e.worker, &e.num)
	return e, err
}

// claim reads before it writes: an UPDATE that returns the row costs more than the
// two together.
func (s *Store) claim(ctx context.Context, tx *Tx, runnerID string, num int64) (Claim, error) {
	c, err := one(ctx, tx, scanClaim, `SELECT `+acceptedColumns+`, instructions, output_schema, v_model, approval_tools, mcp_tools FROM turns
		CROSS JOIN (SELECT worker_id w, version v, instructions, output_schema, model v_model, approval_tools, mcp_tools FROM worker_versions) ON w = worker_id AND v = worker_version
		WHERE num = ?`, num)
	if err == nil && c.Claims > 0 { // it has run before
		c.Turn, err = one(ctx, tx, scanTurn, `SELECT `+turnColumns+` FROM turns WHERE num = ?`, num)
	}
	if err != nil {
		return c, err
	}
	now := s.millis()
	c.RunnerID, c.Status, c.Claims = runnerID, Running, c.Claims+1
	if c.StartedAt == nil {
		started := fromMillis(now)
		c.StartedAt = &started
	}
	_, err = tx.Exec(`UPDATE turns SET status = 'running', runner_id = ?, claims = ?, started_at = ? WHERE num = ?`,
		runnerID, c.Claims, c.StartedAt.UnixMilli(), num)
	if err != nil {
		return c, err
	}
	_, err = tx.Exec(`UPDATE tasks SET status = 'running' WHERE num = ? AND turn_count = ?`, c.TaskNum, c.Seq+1)
	return c, err
}

func scanClaim(row scanner) (c Claim, err error) {
	var created int64
	var schema sql.NullString
	var settings settingsRow
	err = row.Scan(append(append(c.accepted(&created), &c.Instructions, &schema), settings.fields()...)...)
	if err != nil {
		return c, err
	}
	c.CreatedAt = fromMillis(created)
	if schema.Valid {
		c.OutputSchema = json.RawMessage(schema.String)
	}
	c.Settings, err = settings.settings()
	return c, err
}

// Queued is how many turns wait.
func (s *Store) Queued() int64 { return s.queued.Load() }

// countQueue counts what an earlier process has left.
func (s *Store) countQueue(ctx context.Context) error {
	n, err := one(ctx, s, scanInt, `SELECT count(*) FROM turns INDEXED BY turns_queued WHERE status = 'pending' AND ready IN (0, 1)`)
	if err != nil {
		return fmt.Errorf("count queue: %w", err)
	}
	s.queued.Store(n)
	return nil
}

// countQueued counts at once, so that the operations of one transaction keep the
// queue's limit together.
func (s *Store) countQueued(tx *Tx, n int64) {
	s.queued.Add(n)
	tx.ifUndone(func() { s.queued.Add(-n) })
}

// An Outcome is how a turn ended.
type Outcome struct {
	Status           Status // Completed, Failed or Aborted
	OutputText       string
	StructuredOutput json.RawMessage
	Failure          *Failure
	IncompleteReason string
	IncompleteLimit  string
	Duration         time.Duration
}

// AbortedOutcome is that of a turn cancelled before it produced anything.
var AbortedOutcome = Outcome{Status: Aborted, IncompleteReason: ReasonAborted,
	Failure: &Failure{Code: "aborted", Message: "the task was cancelled"}}

// FinishTurn ends a claimed turn, with its last step where that is not in the
// journal yet, and lets the next turn of the task run: one transaction. It is
// ErrClaimLost where the turn is not the runner's any more.
func (s *Store) FinishTurn(ctx context.Context, c Claim, last *Step, out Outcome) (t Turn, err error) {
	err = s.write(ctx, func(tx *Tx) error {
		if len(c.Settings.ApprovalTools) > 0 {
			if err := s.closeApprovals(tx, c.Num, ApprovalCancelled); err != nil {
				return err
			}
		}
		t, err = s.endTurn(tx, c, last, out)
		return err
	})
	return t, err
}

// endTurn reads of the turn only what changes after its claim. Without a runner it is
// a turn that rests.
func (s *Store) endTurn(tx *Tx, c Claim, last *Step, out Outcome) (Turn, error) {
	t := c.Turn
	t.Usage = Usage{}
	_, err := one(context.Background(), tx, func(row scanner) (struct{}, error) {
		return struct{}{}, row.Scan(append(t.Usage.columns(), &t.Model, &t.AbortRequested)...)
	}, `SELECT `+usageColumns+`, model, abort_requested FROM turns WHERE num = ? AND status = 'running' AND runner_id IS ?`, c.Num, nullable(c.RunnerID))
	if errors.Is(err, sql.ErrNoRows) {
		return Turn{}, ErrClaimLost
	}
	if err != nil {
		return Turn{}, err
	}
	var used Usage
	if last != nil {
		used = last.used()
		if last.Model != "" {
			t.Model = last.Model
		}
		if err := s.insertStep(tx, t, *last); err != nil {
			return Turn{}, err
		}
	}
	completed := fromMillis(s.millis())
	t.Status, t.CompletedAt, t.Duration, t.Usage = out.Status, &completed, out.Duration.Truncate(time.Millisecond), t.Usage.Add(used)
	t.OutputText, t.StructuredOutput, t.Failure = out.OutputText, out.StructuredOutput, out.Failure
	t.IncompleteReason, t.IncompleteLimit = out.IncompleteReason, out.IncompleteLimit
	if err := s.updateEnded(tx, t); err != nil {
		return Turn{}, err
	}
	if err := s.advanceTask(tx, t, used.Cost()); err != nil {
		return Turn{}, err
	}
	if err := s.meter(tx, t, used, true); err != nil {
		return Turn{}, err
	}
	if err := s.queueDelivery(tx, t); err != nil {
		return Turn{}, err
	}
	return t, s.queueReply(tx, t)
}

func (s *Store) updateEnded(tx *Tx, t Turn) error {
	var code, message, retryable any
	if f := t.Failure; f != nil {
		code, message, retryable = f.Code, f.Message, f.Retryable
	}
	u := t.Usage
	_, err := tx.Exec(`UPDATE turns SET status = ?, runner_id = NULL, rests_until = NULL, output_text = ?, structured_output = ?, error_code = ?, error_message = ?,
			error_retryable = ?, incomplete_reason = ?, incomplete_limit = ?, duration_ms = ?, completed_at = ?, model = ?, steps = ?,
			input_tokens = ?, output_tokens = ?, cache_read_tokens = ?, cache_write_tokens = ?, reasoning_tokens = ?, model_cost = ?, tool_cost = ?
		WHERE num = ?`,
		t.Status, t.OutputText, nullable(string(t.StructuredOutput)), code, message,
		retryable, nullable(t.IncompleteReason), nullable(t.IncompleteLimit), t.Duration.Milliseconds(), t.CompletedAt.UnixMilli(), t.Model, u.Steps,
		u.InputTokens, u.OutputTokens, u.CacheReadTokens, u.CacheWriteTokens, u.ReasoningTokens, u.ModelCost, u.ToolCost,
		t.Num)
	return err
}

// advanceTask takes a turn that ended into its task's figures and makes the next
// one ready.
func (s *Store) advanceTask(tx *Tx, t Turn, cost int64) error {
	_, err := tx.Exec(`UPDATE tasks SET unfinished = unfinished - 1, cost = cost + ?1, duration_ms = duration_ms + ?2,
			status = iif(turn_count = ?3, ?4, status), completed_at = iif(turn_count = ?3, ?5, completed_at)
		WHERE num = ?6`,
		cost, t.Duration.Milliseconds(), t.Seq+1, t.Status, t.CompletedAt.UnixMilli(), t.TaskNum)
	if err != nil {
		return err
	}
	next, err := one(context.Background(), tx, scanInt, `SELECT num FROM turns WHERE task_num = ? AND seq > ? AND status = 'pending'
		ORDER BY seq LIMIT 1`, t.TaskNum, t.Seq)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = tx.Exec(`UPDATE turns SET ready = 1 WHERE num = ?`, next)
	return err
}

// AbortTask cancels what of a task has not ended. Waiting turns end at once;
// running gives the ids of those that a runner must stop.
func (s *Store) AbortTask(ctx context.Context, c Caller, id string) (task Task, running []string, err error) {
	err = s.write(ctx, func(tx *Tx) error {
		if task, _, err = s.visibleTask(ctx, tx, c, id); err != nil || task.Unfinished == 0 {
			return err
		}
		running, err = all(ctx, tx, scanString, `UPDATE turns SET abort_requested = 1 WHERE task_num = ? AND runner_id IS NOT NULL RETURNING id`, task.Num)
		if err != nil {
			return err
		}
		resting, err := all(ctx, tx, scanTurn, `SELECT `+turnColumns+` FROM turns WHERE task_num = ? AND rests_until IS NOT NULL`, task.Num)
		if err != nil {
			return err
		}
		for _, t := range resting {
			if _, err := s.endResting(ctx, tx, t, ApprovalCancelled, AbortedOutcome); err != nil {
				return err
			}
		}
		if err := s.abortWaiting(tx, task); err != nil {
			return err
		}
		task, err = one(ctx, tx, scanTask, `SELECT `+taskColumns+` FROM tasks WHERE num = ?`, task.Num)
		return err
	})
	return task, running, err
}

// keepProduced gives a turn that was cancelled while it waited to go on, after a rest
// or a restart, what it had produced by then. Nobody need decide on its calls.
func (s *Store) keepProduced(tx *Tx, t Turn) (Turn, error) {
	if t.Usage.Steps == 0 {
		return t, nil
	}
	if err := s.closeApprovals(tx, t.Num, ApprovalCancelled); err != nil {
		return t, err
	}
	steps, err := s.journal(context.Background(), tx, t.Num)
	if err != nil {
		return t, err
	}
	t.OutputText, t.Duration = AnswerText(steps), Worked(steps).Truncate(time.Millisecond)
	_, err = tx.Exec(`UPDATE turns SET output_text = ?, duration_ms = ? WHERE num = ?`, t.OutputText, t.Duration.Milliseconds(), t.Num)
	return t, err
}

func (s *Store) abortWaiting(tx *Tx, task Task) error {
	f := AbortedOutcome.Failure
	turns, err := all(context.Background(), tx, scanTurn, `UPDATE turns SET status = 'aborted', ready = 0, incomplete_reason = ?,
			error_code = ?, error_message = ?, error_retryable = 0, completed_at = ?
		WHERE task_num = ? AND status = 'pending' RETURNING `+turnColumns,
		ReasonAborted, f.Code, f.Message, s.millis(), task.Num)
	if err != nil {
		return err
	}
	s.countQueued(tx, -int64(len(turns)))
	for _, t := range turns {
		if t, err = s.keepProduced(tx, t); err != nil {
			return err
		}
		if err := s.advanceTask(tx, t, 0); err != nil {
			return err
		}
		if err := s.meter(tx, t, Usage{}, true); err != nil {
			return err
		}
		if err := s.queueDelivery(tx, t); err != nil {
			return err
		}
		if err := s.queueReply(tx, t); err != nil {
			return err
		}
	}
	return nil
}
