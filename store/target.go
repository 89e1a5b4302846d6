package store

import (
	"context"
	"database/sql"
	"errors"
	"strings"

	"journeyman/store/db"
	"journeyman/store/people"
	"journeyman/store/workers"
)

// target returns the task and the worker of n. For a new task, the Task is zero. It
// creates the worker if n names none.
func (s *Store) target(ctx context.Context, tx db.Tx, n NewTurn) (Task, workers.Worker, error) {
	task, w, err := s.existing(ctx, tx, n)
	switch {
	case err != nil:
		return Task{}, workers.Worker{}, err
	case w.ID != "":
		return task, w, nil
	case n.NewWorker == nil:
		return Task{}, workers.Worker{}, db.Fields{{Path: "workerId", Message: "is required"}}.Err()
	}
	if err := s.People.CheckCap(ctx, tx, n.Caller.OrganizationID); err != nil {
		return Task{}, workers.Worker{}, err
	}
	w, err = s.Workers.Insert(tx, n.Caller, *n.NewWorker)
	return Task{}, w, err
}

// existing returns the task and the worker of n if they exist already. A new one is
// the zero value.
func (s *Store) existing(ctx context.Context, q db.Querier, n NewTurn) (Task, workers.Worker, error) {
	task, err := namedTask(ctx, q, n)
	if err != nil {
		return Task{}, workers.Worker{}, err
	}
	if task.num != 0 {
		return s.followUp(ctx, q, n, task)
	}
	if n.WorkerID == "" {
		return Task{}, workers.Worker{}, nil
	}
	w, err := s.workerOf(ctx, q, n, n.WorkerID)
	return Task{}, w, err
}

// workerOf returns the worker of n. If its turn will probably be claimed at once, it is workers.Claimable,
// otherwise workers.Runnable.
func (s *Store) workerOf(ctx context.Context, q db.Querier, n NewTurn, id string) (workers.Worker, error) {
	if n.atOnce && s.slots.Load() != nil && s.Queued() == 0 {
		return workers.Claimable(ctx, q, n.Caller, id)
	}
	return workers.Runnable(ctx, q, n.Caller, id)
}

// followUp returns an error unless n may add a turn to a task. The caller's access is checked
// first, so that a refusal tells no more than reading the task and the worker would.
func (s *Store) followUp(ctx context.Context, q db.Querier, n NewTurn, task Task) (Task, workers.Worker, error) {
	w, err := s.workerOf(ctx, q, n, task.WorkerID)
	if err != nil {
		return Task{}, workers.Worker{}, err
	}
	if n.WorkerID != "" && n.WorkerID != task.WorkerID {
		// The error below confirms that the named worker exists, so the caller must see
		// it.
		if _, err := workers.Runnable(ctx, q, n.Caller, n.WorkerID); err != nil {
			return Task{}, workers.Worker{}, err
		}
		wrong := db.Fields{{Path: "taskId", Message: "belongs to another worker than workerId names"}}
		return Task{}, workers.Worker{}, wrong.Err()
	}
	if !task.Takes(n.Caller) {
		return Task{}, workers.Worker{}, db.Errorf(db.Forbidden,
			"the task's folder holds a member's files: only members may add turns")
	}
	if task.ArchivedAt != nil {
		return Task{}, workers.Worker{}, db.Errorf(db.Conflict, "the task is archived and takes no new turns")
	}
	if task.TurnCount >= maxTurns {
		return Task{}, workers.Worker{}, db.Errorf(db.Conflict, "the task has %d turns, the most a task can have", maxTurns)
	}
	return task, w, nil
}

// namedTask returns the existing task of n, or a zero Task. No new task gets an id in the
// server's own form: for such an id it returns the error that reading the task returns.
func namedTask(ctx context.Context, q db.Querier, n NewTurn) (t Task, err error) {
	switch {
	case n.TaskID != "":
		lock := ""
		if _, writes := q.(db.Tx); writes {
			lock = ` /* FOR NO KEY UPDATE */` // see CreateTurn
		}
		t, err = db.One(ctx, q, scanTask, `SELECT `+taskColumns+` FROM tasks WHERE id = ?
			AND organization_num = `+db.OrganizationNum+lock,
			n.TaskID, n.Caller.OrganizationID)
		if errors.Is(err, sql.ErrNoRows) && db.IsServerID("tsk", strings.ToLower(n.TaskID)) {
			return Task{}, foreignTask(ctx, q, n.TaskID)
		}
	case n.Continue:
		// Tasks that another turn started are left out: no person had a conversation
		// there.
		t, err = db.One(ctx, q, scanTask, `SELECT `+taskColumns+` FROM tasks INDEXED BY tasks_by_caller
			WHERE worker_num = `+db.WorkerNum+` AND created_by_user_num = `+db.UserNum+` AND archived_at IS NULL
				AND NOT EXISTS (SELECT 1 FROM turns WHERE task_num = tasks.num AND seq = 0 AND depth > 0)
			ORDER BY tasks.num DESC LIMIT 1`, n.WorkerID, n.Caller.UserID)
	}
	return t, db.NoRow(err, nil)
}

// maxTurns bounds the turns of one task, so that a conversation can be read whole.
const maxTurns = 1000

// Takes reports whether the task's folder lets the caller add a turn. A stranger may not
// add one to a member's task that has its own folder: the turn would read and write the
// member's files.
func (t Task) Takes(c people.Caller) bool {
	return !c.Stranger() || !t.OwnFolder || t.CreatedByUserID == ""
}
