package store

import (
	"context"

	"journeyman/store/db"
	"journeyman/store/people"
	"journeyman/store/workers"
)

// This file deletes workers and archives tasks. Both end the turns that have not ended, and both are
// silent from then on: nothing is sent to a webhook or by mail, and nothing that failed is tried again.

// DeleteWorker hides a worker, removes its webhook and its secrets, and cancels its schedules. Its
// tasks, turns and files stay. It requests the abort of the worker's turns that have not ended. The
// caller then aborts the tasks that UnfinishedTasks returns. If it does not come to that, such a turn
// ends when a runner claims it, and a suspended one in ExpireSuspended. DeleteWorker returns Forbidden
// unless the caller created the worker.
func (s *Store) DeleteWorker(ctx context.Context, c people.Caller, id string) error {
	err := s.db.Write(ctx, func(tx db.Tx) error {
		w, err := workers.Own(ctx, tx, c, id)
		if err != nil {
			return err
		}
		s.db.Notify(tx, c.OrganizationID, db.ChangedWorkers)
		if err := s.People.Audit(tx, c, "worker.delete", id, map[string]any{"title": w.Title}); err != nil {
			return err
		}
		if err := s.endWorker(tx, w); err != nil {
			return err
		}
		// The lock comes last: the ends of turns lock the turn before the worker, too.
		if err := s.Workers.LockDeleted(ctx, tx, w); err != nil {
			return err
		}
		_, err = tx.Exec(`UPDATE workers SET deleted_at = ? WHERE id = ?`, s.db.Millis(), id)
		return err
	})
	if err != nil {
		return err
	}
	// A turn that ended at the same time may have queued a delivery that the write above did not see. See
	// RemoveWebhook: a locking write sees it, and later turns find no webhook.
	return s.db.Hot(ctx, true, func(tx db.Tx) error { return giveUpDeliveries(tx, id) })
}

// endWorker ends what a deleted worker still has to do.
func (s *Store) endWorker(tx db.Tx, w workers.Worker) error {
	now := s.db.Millis()
	// The row of the worker stays, so no foreign key deletes its secrets.
	if _, err := tx.Exec(`DELETE FROM secrets WHERE organization_id = ? AND coalesce(worker_id, '') = ?`,
		w.OrganizationID, w.ID); err != nil {
		return err
	}
	// FireSchedule would also end them, but only when each is due next.
	if _, err := tx.Exec(`UPDATE schedules SET next_run_at = NULL, cancelled_at = ?
		WHERE worker_id = ? AND next_run_at IS NOT NULL`, now, w.ID); err != nil {
		return err
	}
	if _, err := tx.Exec(`DELETE FROM webhooks WHERE worker_id = ?`, w.ID); err != nil {
		return err
	}
	if err := giveUpDeliveries(tx, w.ID); err != nil {
		return err
	}
	if err := s.giveUpMail(tx, w.OrganizationID, "the worker was deleted",
		`next_attempt_at > 0 AND worker_id = ?`, w.ID); err != nil {
		return err
	}
	_, err := tx.Exec(`UPDATE turns SET abort_requested = 1,
			suspended_until = iif(suspended_until IS NULL, NULL, CAST(? AS BIGINT))
		WHERE completed_at IS NULL AND task_num IN (SELECT num`+unfinishedTasks+`)`, now, w.ID, w.ID)
	return err
}

// unfinishedTasks selects the tasks of a worker that have not ended and are not archived. The worker's
// id is a parameter twice. An organization has few such tasks, because its queue is limited.
const unfinishedTasks = ` FROM tasks INDEXED BY tasks_by_status
	WHERE organization_num = (SELECT o.num FROM workers w JOIN organizations o ON o.id = w.organization_id
			WHERE w.id = ?)
		AND status IN ('pending', 'running') AND status <> 'completed' AND archived_at IS NULL
		AND worker_num = ` + db.WorkerNum

// UnfinishedTasks returns the ids of a worker's tasks that have not ended and are not archived, in no
// order.
func (s *Store) UnfinishedTasks(ctx context.Context, workerID string) ([]string, error) {
	return db.All(ctx, s.db, db.ScanString, `SELECT id`+unfinishedTasks, workerID, workerID)
}

// ArchiveTask hides a task from the lists and cancels its turns that have not ended; its turns and files
// stay. The task accepts no more turns. The turn waited, whose client waits for the result, is not cancelled;
// it is "" if there is none. It returns Forbidden unless the caller created the worker. The results are those
// of AbortTask.
func (s *Store) ArchiveTask(ctx context.Context, c people.Caller, id, waited string) (task Task, running []string,
	err error) {
	err = s.db.Write(ctx, func(tx db.Tx) error {
		return s.ending(tx, func(tx db.Tx) error {
			task, running, err = s.archiveTask(ctx, tx, c, id, waited)
			return err
		})
	})
	return task, running, err
}

func (s *Store) archiveTask(ctx context.Context, tx db.Tx, c people.Caller, id, waited string) (Task, []string, error) {
	t, w, err := visibleTask(ctx, tx, c, id)
	switch {
	case err != nil:
		return t, nil, err
	case w.UserID != c.UserID:
		return t, nil, db.Errorf(db.Forbidden, "only the creator of the worker may archive its tasks")
	case t.ArchivedAt != nil:
		return t, nil, nil
	}
	s.db.Notify(tx, c.OrganizationID, db.ChangedTasks)
	// The task is archived first, so that the ends of its turns queue nothing.
	if _, err := tx.Exec(`UPDATE tasks SET archived_at = ? WHERE num = ?`, s.db.Millis(), t.num); err != nil {
		return t, nil, err
	}
	if _, err := tx.Exec(`UPDATE deliveries SET next_attempt_at = NULL WHERE next_attempt_at IS NOT NULL
		AND turn_num IN (SELECT num FROM turns WHERE task_num = ?)`, t.num); err != nil {
		return t, nil, err
	}
	if err := s.giveUpMail(tx, w.OrganizationID, "the task was archived",
		`status = 'queued' AND turn_num IN (SELECT num FROM turns WHERE task_num = ?)`, t.num); err != nil {
		return t, nil, err
	}
	return s.abortUnfinished(ctx, tx, t, waited)
}

// giveUpMail gives up the mails of the outbox for which a condition with the given value is true. It
// counts no failure and raises no alert, because a person has caused it. As in endReply, the source of a
// mail to a member is deleted.
func (s *Store) giveUpMail(tx db.Tx, organizationID, reason, condition string, value any) error {
	n, err := tx.Exec(`UPDATE outbound_emails SET status = 'failed', error_message = ?, next_attempt_at = NULL,
			claimed = 0, source = iif(user_id IS NULL, source, NULL),
			source_sha256 = iif(user_id IS NULL, source_sha256, NULL)
		WHERE `+condition, reason, value)
	if n > 0 {
		s.db.Notify(tx, organizationID, db.ChangedOutbox)
	}
	return err
}

// speaks is a condition on a task, whose num is its parameter: the ends of the task's turns are sent to
// the webhook of its worker and to the authors of mails.
const speaks = `EXISTS (SELECT 1 FROM tasks k CROSS JOIN workers v ON v.num = k.worker_num
	WHERE k.num = ? AND k.archived_at IS NULL AND v.deleted_at IS NULL)`

// mustSpeak returns a Conflict if speaks is false for a task.
func mustSpeak(ctx context.Context, q db.Querier, taskNum int64) error {
	ok, err := db.One(ctx, q, db.ScanBool, `SELECT `+speaks, taskNum)
	if err == nil && !ok {
		return db.Errorf(db.Conflict, "the task is archived or its worker was deleted: nothing of it is sent any more")
	}
	return err
}
