package store

import (
	"context"
	"slices"
	"time"
)

// What is long is read here in pages: a task may have a thousand turns, and a turn
// as many steps.

// TurnsBefore lists the newest turns of a task whose seq is below before, at most
// limit of them, in their order. The caller has checked that the task may be seen.
func (s *Store) TurnsBefore(ctx context.Context, taskNum, before int64, limit int) ([]Turn, error) {
	turns, err := all(ctx, s, scanTurn, `SELECT `+turnColumns+` FROM turns WHERE task_num = ? AND seq < ? ORDER BY seq DESC LIMIT ?`,
		taskNum, before, pageLimit(limit))
	slices.Reverse(turns)
	return turns, err
}

// TurnAt gives the turn of a task with that seq. The caller has checked that the
// task may be seen.
func (s *Store) TurnAt(ctx context.Context, taskNum, seq int64) (Turn, error) {
	t, err := one(ctx, s, scanTurn, `SELECT `+turnColumns+` FROM turns WHERE task_num = ? AND seq = ?`, taskNum, seq)
	return t, notFound(err, "turn")
}

// JournalPage gives the steps of a turn from seq on, at most limit of them, in their
// order, with their tool calls and approvals. The caller has checked that the task
// may be seen.
func (s *Store) JournalPage(ctx context.Context, turnNum, seq int64, limit int) ([]Step, error) {
	end := seq + int64(pageLimit(limit)) // steps are numbered without a gap
	steps, err := all(ctx, s, scanStep, `SELECT `+stepColumns+` FROM steps s WHERE s.turn_num = ? AND s.seq >= ? AND s.seq < ? ORDER BY s.seq`,
		turnNum, seq, end)
	if err != nil || len(steps) == 0 {
		return nil, err
	}
	calls, err := all(ctx, s, scanCall, `SELECT `+callColumns+` FROM tool_calls c WHERE c.turn_num = ? AND c.step_seq >= ? AND c.step_seq < ?
		ORDER BY c.step_seq, c.seq`, turnNum, seq, end)
	if err != nil {
		return nil, err
	}
	approvals, err := all(ctx, s, scanApproval, `SELECT `+approvalColumns+` FROM approvals a`+joinApproval+`
		WHERE a.turn_num = ? AND a.step_seq >= ? AND a.step_seq < ? ORDER BY a.step_seq, a.call_seq`, turnNum, seq, end)
	return joinCalls(steps, calls, approvals)[turnNum], err
}

// A Span is when a model or a tool was at work.
type Span struct {
	Step        int64
	Call        int64 // of the step's tool calls; -1 for the model call
	StartedAt   time.Time
	CompletedAt time.Time
}

// maxSpans bounds what is read of one turn, for each of the two kinds.
const maxSpans = 5000

// Spans gives when the model and the tools of a turn were at work, the model calls
// first, each in their order. Of very long turns it is the beginning. The caller has
// checked that the task may be seen.
func (s *Store) Spans(ctx context.Context, turnNum int64) ([]Span, error) {
	spans, err := all(ctx, s, scanSpan, `SELECT seq, -1, started_at, completed_at FROM steps WHERE turn_num = ? ORDER BY seq LIMIT ?`,
		turnNum, maxSpans)
	if err != nil {
		return nil, err
	}
	calls, err := all(ctx, s, scanSpan, `SELECT step_seq, seq, started_at, completed_at FROM tool_calls WHERE turn_num = ?
		ORDER BY step_seq, seq LIMIT ?`, turnNum, maxSpans)
	return append(spans, calls...), err
}

func scanSpan(row scanner) (p Span, err error) {
	var started, completed int64
	err = row.Scan(&p.Step, &p.Call, &started, &completed)
	p.StartedAt, p.CompletedAt = fromMillis(started), fromMillis(completed)
	return p, err
}

// WorkerTitle gives the title of a worker, deleted or not. The caller has checked
// that the worker, or a task of it, may be seen.
func (s *Store) WorkerTitle(ctx context.Context, id string) (string, error) {
	title, err := one(ctx, s, scanString, `SELECT title FROM workers WHERE id = ?`, id)
	return title, notFound(err, "worker")
}

// UserName gives the name of a user, or the address where there is none. The caller
// has checked that something the user has done in the organization may be seen.
func (s *Store) UserName(ctx context.Context, id string) (string, error) {
	name, err := one(ctx, s, scanString, `SELECT CASE name WHEN '' THEN email ELSE name END FROM users WHERE id = ?`, id)
	return name, notFound(err, "user")
}
