package store

import (
	"context"
	"database/sql"
	"errors"
)

// Every question of who may see or change a worker or a task is answered in this
// file, and everything not allowed here is refused.

// visibleWorker gives a worker that is not deleted and that c may see. It is
// NotFound where there is none, and Forbidden in another organization or when it
// is private and c is not invited.
func (s *Store) visibleWorker(ctx context.Context, q querier, c Caller, id string) (Worker, error) {
	w, err := s.seenWorker(ctx, q, c, id)
	if err == nil && w.DeletedAt != nil {
		return Worker{}, Errorf(NotFound, "no worker has that id")
	}
	return w, err
}

// seenWorker is visibleWorker with deleted ones: their tasks and files stay
// readable.
func (s *Store) seenWorker(ctx context.Context, q querier, c Caller, id string) (Worker, error) {
	w, err := one(ctx, q, scanWorker, `SELECT `+workerColumns+fromWorkers+`WHERE w.id = ?`, id)
	if err != nil {
		return Worker{}, notFound(err, "worker")
	}
	return s.allow(ctx, q, c, w)
}

// runnableWorker is visibleWorker for accepting a turn, which needs no more of the
// worker than who may run which version.
func (s *Store) runnableWorker(ctx context.Context, q querier, c Caller, id string) (Worker, error) {
	w, err := one(ctx, q, scanRunnable, selectRunnable, id)
	if err == nil {
		w, err = s.allow(ctx, q, c, w)
	}
	if err == nil && w.DeletedAt != nil {
		err = sql.ErrNoRows
	}
	return w, notFound(err, "worker")
}

const selectRunnable = `SELECT id, organization_id, user_id, visibility, version, deleted_at FROM workers WHERE id = ?`

func scanRunnable(row scanner) (w Worker, err error) {
	var deleted sql.NullInt64
	err = row.Scan(&w.ID, &w.OrganizationID, &w.UserID, &w.Visibility, &w.Version, &deleted)
	w.DeletedAt = fromNull(deleted)
	return w, err
}

// allow gives w back where c may see it.
func (s *Store) allow(ctx context.Context, q querier, c Caller, w Worker) (Worker, error) {
	if w.OrganizationID != c.OrganizationID {
		return Worker{}, Errorf(Forbidden, "this key has no access to the worker")
	}
	if w.Visibility == Public || w.UserID == c.UserID || c.Role.manages() {
		return w, nil
	}
	invited, err := one(ctx, q, scanInt, `SELECT EXISTS (SELECT 1 FROM worker_members WHERE worker_id = ? AND user_id = ?)`, w.ID, c.UserID)
	if err != nil {
		return Worker{}, err
	}
	if invited == 0 {
		return Worker{}, Errorf(Forbidden, "the worker is private and this key's user is not invited to it")
	}
	return w, nil
}

// ownWorker is visibleWorker for what only the creator may do.
func (s *Store) ownWorker(ctx context.Context, q querier, c Caller, id string) (Worker, error) {
	w, err := s.visibleWorker(ctx, q, c, id)
	if err == nil && w.UserID != c.UserID {
		return Worker{}, Errorf(Forbidden, "only the creator of the worker may do this")
	}
	return w, err
}

// visibleTask gives a task and its worker, which may be deleted, where c may see
// the worker. A task of another organization is Forbidden, but NotFound under an
// id that a client has chosen: that id is free in this organization.
func (s *Store) visibleTask(ctx context.Context, q querier, c Caller, id string) (Task, Worker, error) {
	t, err := one(ctx, q, scanTask, `SELECT `+taskColumns+` FROM tasks WHERE id = ? AND organization_id = ?`, id, c.OrganizationID)
	if errors.Is(err, sql.ErrNoRows) {
		return Task{}, Worker{}, s.foreignTask(ctx, q, id)
	}
	if err != nil {
		return Task{}, Worker{}, err
	}
	w, err := s.seenWorker(ctx, q, c, t.WorkerID)
	return t, w, err
}

func (s *Store) foreignTask(ctx context.Context, q querier, id string) error {
	n, err := one(ctx, q, scanInt, `SELECT EXISTS (SELECT 1 FROM tasks WHERE id = ?)`, id)
	if err != nil {
		return err
	}
	if n == 1 && isServerID("tsk", id) {
		return Errorf(Forbidden, "this key has no access to the task")
	}
	return Errorf(NotFound, "no task has that id")
}

// decidableTask is visibleTask for approving or denying its tool calls: the worker's
// creator, Owners and Admins may. Whoever merely runs a worker does not decide what
// is too dangerous for it to do unasked.
func (s *Store) decidableTask(ctx context.Context, q querier, c Caller, id string) (Task, error) {
	t, w, err := s.visibleTask(ctx, q, c, id)
	if err == nil && w.UserID != c.UserID && !c.Role.May(DecideApprovals) {
		return Task{}, Errorf(Forbidden, "only the creator of the worker, Owners and Admins may decide on its tool calls")
	}
	return t, err
}
