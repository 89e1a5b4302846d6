package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
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
		WHERE status = 'running' AND runner_id NOT IN (SELECT id FROM runners)`)
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
			WHERE status = 'running' AND runner_id = ?`, runnerID)
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
		_, err := s.endTurn(tx, t.num, t.runnerID, nil, AbortedOutcome)
		return err
	case t.interruptions+count >= maxInterruptions:
		_, err := s.endTurn(tx, t.num, t.runnerID, nil, Outcome{Status: Failed, Failure: &Failure{Code: "interrupted", Retryable: true,
			Message: "the service stopped three times while it worked on this turn"}})
		return err
	}
	_, err := tx.Exec(`UPDATE turns SET status = 'pending', runner_id = NULL, interruptions = interruptions + ? WHERE num = ?`, count, t.num)
	if err != nil {
		return err
	}
	s.countQueued(tx, 1)
	_, err = tx.Exec(`UPDATE tasks SET status = 'pending' WHERE num = ? AND turn_count = ?`, t.taskNum, t.seq+1)
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

// nextTurn gives the num of the turn whose turn it is. Each query is one step
// down the queue's index, however long the queue is.
func (s *Store) nextTurn(ctx context.Context, tx *Tx) (int64, error) {
	type entry struct {
		organization, worker string
		num                  int64
	}
	scan := func(row scanner) (e entry, err error) {
		err = row.Scan(&e.organization, &e.worker, &e.num)
		return e, err
	}
	const head = `SELECT organization_id, worker_id, num FROM turns INDEXED BY turns_queued WHERE status = 'pending' AND ready = 1 `
	e, err := one(ctx, tx, scan, head+`AND organization_id > ? ORDER BY organization_id, worker_id, num LIMIT 1`, s.fair.organization)
	if errors.Is(err, sql.ErrNoRows) && s.fair.organization != "" {
		s.fair.organization = ""
		e, err = one(ctx, tx, scan, head+`AND organization_id > ? ORDER BY organization_id, worker_id, num LIMIT 1`, "")
	}
	if err != nil {
		return 0, err
	}
	if s.fair.workers == nil {
		s.fair.workers = map[string]string{}
	}
	if last := s.fair.workers[e.organization]; last >= e.worker {
		next, err := one(ctx, tx, scan, head+`AND organization_id = ? AND worker_id > ? ORDER BY worker_id, num LIMIT 1`, e.organization, last)
		if err == nil {
			e = next // otherwise the round begins anew with the first worker
		} else if !errors.Is(err, sql.ErrNoRows) {
			return 0, err
		}
	}
	s.fair.organization = e.organization
	s.fair.workers[e.organization] = e.worker
	return e.num, nil
}

func (s *Store) claim(ctx context.Context, tx *Tx, runnerID string, num int64) (Claim, error) {
	c := Claim{RunnerID: runnerID}
	var err error
	c.Turn, err = one(ctx, tx, scanTurn, `UPDATE turns SET status = 'running', runner_id = ?, claims = claims + 1, started_at = coalesce(started_at, ?)
		WHERE num = ? RETURNING `+turnColumns, runnerID, s.millis(), num)
	if err != nil {
		return c, err
	}
	if _, err := tx.Exec(`UPDATE tasks SET status = 'running' WHERE num = ? AND turn_count = ?`, c.TaskNum, c.Seq+1); err != nil {
		return c, err
	}
	_, err = one(ctx, tx, func(row scanner) (struct{}, error) {
		var schema sql.NullString
		err := row.Scan(&c.Instructions, &schema)
		if schema.Valid {
			c.OutputSchema = json.RawMessage(schema.String)
		}
		return struct{}{}, err
	}, `SELECT instructions, output_schema FROM worker_versions WHERE worker_id = ? AND version = ?`, c.WorkerID, c.WorkerVersion)
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
		t, err = s.endTurn(tx, c.Num, c.RunnerID, last, out)
		return err
	})
	return t, err
}

func (s *Store) endTurn(tx *Tx, num int64, runnerID string, last *Step, out Outcome) (Turn, error) {
	var used Usage
	model := ""
	if last != nil {
		used, model = last.used(), last.Model
	}
	f := out.Failure
	var code, message, retryable any
	if f != nil {
		code, message, retryable = f.Code, f.Message, f.Retryable
	}
	t, err := one(context.Background(), tx, scanTurn, `UPDATE turns SET status = ?, runner_id = NULL, output_text = ?, structured_output = ?,
			error_code = ?, error_message = ?, error_retryable = ?, incomplete_reason = ?, incomplete_limit = ?, duration_ms = ?, completed_at = ?,
			`+addUsage+` WHERE num = ? AND status = 'running' AND runner_id = ? RETURNING `+turnColumns,
		slices.Concat([]any{out.Status, out.OutputText, nullable(string(out.StructuredOutput)), code, message, retryable,
			nullable(out.IncompleteReason), nullable(out.IncompleteLimit), out.Duration.Milliseconds(), s.millis()},
			usageArgs(model, used), []any{num, runnerID})...)
	if errors.Is(err, sql.ErrNoRows) {
		return Turn{}, ErrClaimLost
	}
	if err != nil {
		return Turn{}, err
	}
	if last != nil {
		if err := s.insertStep(tx, num, *last); err != nil {
			return Turn{}, err
		}
	}
	if err := s.advanceTask(tx, t, used.Cost()); err != nil {
		return Turn{}, err
	}
	if err := s.meter(tx, t, used, true); err != nil {
		return Turn{}, err
	}
	return t, s.queueReply(tx, t)
}

// advanceTask takes a turn that ended into its task's figures and makes the next
// one ready.
func (s *Store) advanceTask(tx *Tx, t Turn, cost int64) error {
	unfinished, err := one(context.Background(), tx, scanInt, `UPDATE tasks SET unfinished = unfinished - 1, cost = cost + ?, duration_ms = duration_ms + ?,
			status = iif(turn_count = ?3, ?4, status), completed_at = iif(turn_count = ?3, ?5, completed_at)
		WHERE num = ?6 RETURNING unfinished`,
		cost, t.Duration.Milliseconds(), t.Seq+1, t.Status, s.millis(), t.TaskNum)
	if err != nil || unfinished == 0 {
		return err
	}
	_, err = tx.Exec(`UPDATE turns SET ready = 1 WHERE num =
		(SELECT num FROM turns WHERE task_num = ? AND seq > ? AND status = 'pending' ORDER BY seq LIMIT 1)`, t.TaskNum, t.Seq)
	return err
}

// AbortTask cancels what of a task has not ended. Waiting turns end at once;
// running gives the ids of those that a runner must stop.
func (s *Store) AbortTask(ctx context.Context, c Caller, id string) (task Task, running []string, err error) {
	err = s.write(ctx, func(tx *Tx) error {
		if task, _, err = s.visibleTask(ctx, tx, c, id); err != nil || task.Unfinished == 0 {
			return err
		}
		running, err = all(ctx, tx, scanString, `UPDATE turns SET abort_requested = 1 WHERE task_num = ? AND status = 'running' RETURNING id`, task.Num)
		if err != nil {
			return err
		}
		if err := s.abortWaiting(tx, task); err != nil {
			return err
		}
		task, err = one(ctx, tx, scanTask, `SELECT `+taskColumns+` FROM tasks WHERE num = ?`, task.Num)
		return err
	})
	return task, running, err
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
		if err := s.advanceTask(tx, t, 0); err != nil {
			return err
		}
		if err := s.meter(tx, t, Usage{}, true); err != nil {
			return err
		}
		if err := s.queueReply(tx, t); err != nil {
			return err
		}
	}
	return nil
}
