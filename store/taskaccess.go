package store

import (
	"context"
	"database/sql"
	"errors"

	"journeyman/store/db"
	"journeyman/store/people"
	"journeyman/store/workers"
)

// The functions below decide which tasks a caller may see or change. A function with a Task as parameter relies on
// them and does not check again.

// visibleTask returns a task and its worker, which may be deleted, if the caller may
// see the worker.
func visibleTask(ctx context.Context, q db.Querier, c people.Caller, id string) (Task, workers.Worker, error) {
	t, err := db.One(ctx, q, scanTask, `SELECT `+taskColumns+` FROM tasks WHERE id = ?
		AND organization_num = `+db.OrganizationNum,
		id, c.OrganizationID)
	if errors.Is(err, sql.ErrNoRows) {
		return Task{}, workers.Worker{}, foreignTask(ctx, q, id)
	}
	if err != nil {
		return Task{}, workers.Worker{}, err
	}
	w, err := workers.VisibleOrDeleted(ctx, q, c, t.WorkerID)
	return t, w, err
}

// foreignTask returns the error for a task that the caller's organization does not have. For
// a task of another organization, it is Forbidden. For an id that a client chose, it is
// always NotFound, because this organization may use the same id.
func foreignTask(ctx context.Context, q db.Querier, id string) error {
	exists, err := db.One(ctx, q, db.ScanBool, `SELECT EXISTS (SELECT 1 FROM tasks WHERE id = ?)`, id)
	if err != nil {
		return err
	}
	if exists && db.IsServerID("tsk", id) {
		return db.Errorf(db.Forbidden, "you have no access to the task")
	}
	return db.Errorf(db.NotFound, "no task has that id")
}

// mayDecide returns the SQL condition that a caller may decide on the approval a. Its turn is
// u, its task is t, and its worker is w. The query must check that the caller sees the task.
// right and user are two placeholders: the first tells whether the caller has the right
// DecideApprovals, and the second is the id of the caller's user.
//
// The worker's creator, Owners and Admins decide on calls. A member who only runs the
// worker may not: the approval protects against them, too. The same people answer
// questions, and so do the author of the turn and the creator of the task. Only the author
// answers the question of a turn that a stranger started, by mail.
func mayDecide(right, user string) string {
	// An unknown user has no num, so 0 stands for one: no row refers to 0.
	num := `coalesce((SELECT num FROM users WHERE id = ` + user + `), 0)`
	return `(CASE WHEN a.kind = 'approval' THEN ` + right + ` OR w.user_id = ` + user + `
		ELSE u.created_by_user_num IS NOT NULL AND (` + right + ` OR w.user_id = ` + user + `
			OR u.created_by_user_num = ` + num + ` OR t.created_by_user_num IS ` + num + `) END)`
}
