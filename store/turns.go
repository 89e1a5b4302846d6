package store

import (
	"context"
	"slices"

	"journeyman/store/db"
	"journeyman/store/people"
	"journeyman/store/workers"
)

// Turn returns the turn with that id. It checks no access: the id must come from a record
// that the caller may see.
func (s *Store) Turn(ctx context.Context, id string) (Turn, error) {
	t, err := db.One(ctx, s.db, scanTurn, `SELECT `+turnColumns+` FROM turns WHERE id = ?`, id)
	return t, db.NoRecord(err, "turn")
}

const selectTurn = `SELECT ` + turnColumns + ` FROM turns WHERE num = ?`

const selectTurns = `SELECT ` + turnColumns + ` FROM turns WHERE task_num = ? ORDER BY seq`

// Turns returns the turns of a task in order.
func (s *Store) Turns(ctx context.Context, task TaskRef) ([]Turn, error) {
	return db.All(ctx, s.db, scanTurn, selectTurns, task.taskKey())
}

// TaskTurns returns a task that the caller may see, and its turns in order, both read at
// one moment.
func (s *Store) TaskTurns(ctx context.Context, c people.Caller, id string) (t Task, turns []Turn, err error) {
	err = s.db.Snapshot(ctx, func(q db.Querier) (err error) {
		if t, _, err = visibleTask(ctx, q, c, id); err == nil {
			turns, err = db.All(ctx, q, scanTurn, selectTurns, t.num)
		}
		return err
	})
	return t, turns, err
}

// TurnsBefore returns the newest turns of a task whose seq is below before, at most
// limit of them, in their order.
func (s *Store) TurnsBefore(ctx context.Context, task TaskRef, before int64, limit int) ([]Turn, error) {
	turns, err := db.All(ctx, s.db, scanTurn, `SELECT `+turnColumns+` FROM turns WHERE task_num = ? AND seq < ?
		ORDER BY seq DESC LIMIT ?`, task.taskKey(), before, db.PageLimit(limit))
	slices.Reverse(turns)
	return turns, err
}

// TurnAt returns the turn of a task with that seq, or a NotFound error.
func (s *Store) TurnAt(ctx context.Context, task TaskRef, seq int64) (Turn, error) {
	t, err := db.One(ctx, s.db, scanTurn, `SELECT `+turnColumns+` FROM turns WHERE task_num = ? AND seq = ?`,
		task.taskKey(), seq)
	return t, db.NoRecord(err, "turn")
}

// NextTurn returns the turn that follows t in its task, or a NotFound error.
func (s *Store) NextTurn(ctx context.Context, t Turn) (Turn, error) {
	next, err := db.One(ctx, s.db, scanTurn, `SELECT `+turnColumns+` FROM turns WHERE task_num = ? AND seq > ?
		ORDER BY seq LIMIT 1`, t.taskNum, t.Seq)
	return next, db.NoRecord(err, "turn")
}

// TurnsSince returns the turns of a worker from num on, at most the newest limit of
// them, oldest first.
func (s *Store) TurnsSince(ctx context.Context, workerID string, num int64, limit int) ([]Turn, error) {
	turns, err := db.All(ctx, s.db, scanTurn, `SELECT `+turnColumns+` FROM turns
		WHERE worker_num = `+db.WorkerNum+` AND num >= ? ORDER BY num DESC LIMIT ?`, workerID, num, limit)
	slices.Reverse(turns)
	return turns, err
}

// TurnEnded reports whether the turn with that id has ended.
func (s *Store) TurnEnded(ctx context.Context, id string) (bool, error) {
	ended, err := db.One(ctx, s.db, db.ScanBool, `SELECT completed_at IS NOT NULL FROM turns WHERE id = ?`, id)
	return ended, db.NoRecord(err, "turn")
}

// WorkerOfTurn returns the worker of a turn, deleted or not.
func (s *Store) WorkerOfTurn(ctx context.Context, t Turn) (workers.Worker, error) {
	w, err := db.One(ctx, s.db, workers.Scan, workers.SelectWorker, t.WorkerID)
	return w, db.NoRecord(err, "worker")
}
