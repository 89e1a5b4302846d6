package store

import (
	"context"
	"time"

	"journeyman/store/db"
	"journeyman/store/workers"
)

// This file finds the deliveries that are due, and reads what their bodies report.

// A WaitingWorker is a worker with pending deliveries.
type WaitingWorker struct {
	ID  string
	Due time.Time // of its first delivery
}

// WaitingWorkers returns the workers that follow the id after and have pending deliveries, at most limit
// of them, in the order of their creation.
func (s *Effects) WaitingWorkers(ctx context.Context, after string, limit int) ([]WaitingWorker, error) {
	// Each row of the recursion finds the next worker in the index, so the number of a worker's deliveries
	// does not matter.
	return db.All(ctx, s.db, func(row db.Scanner) (w WaitingWorker, err error) {
		err = row.Scan(&w.ID, db.AsTime(&w.Due))
		return w, err
	}, `WITH RECURSIVE waiting (num) AS (
			SELECT (SELECT worker_num FROM deliveries INDEXED BY deliveries_due
				WHERE worker_num > coalesce(`+db.WorkerNum+`, 0) AND next_attempt_at IS NOT NULL
				ORDER BY worker_num LIMIT 1)
			UNION ALL
			SELECT (SELECT worker_num FROM deliveries INDEXED BY deliveries_due
				WHERE worker_num > waiting.num AND next_attempt_at IS NOT NULL ORDER BY worker_num LIMIT 1)
			FROM waiting WHERE waiting.num IS NOT NULL)
		SELECT (SELECT id FROM workers WHERE num = waiting.num),
			(SELECT next_attempt_at FROM deliveries INDEXED BY deliveries_due
				WHERE worker_num = waiting.num AND next_attempt_at IS NOT NULL ORDER BY next_attempt_at LIMIT 1)
		FROM waiting WHERE num IS NOT NULL /* ORDER BY waiting.num */ LIMIT ?`, after, limit)
}

// WorkerDelivery returns the time at which the next delivery of a worker is due; ok is false if
// none is pending.
func (s *Effects) WorkerDelivery(ctx context.Context, workerID string) (at time.Time, ok bool, err error) {
	_, err = db.One(ctx, s.db, db.Into(db.AsTime(&at)), `SELECT next_attempt_at FROM deliveries INDEXED BY deliveries_due
		WHERE worker_num = `+db.WorkerNum+` AND next_attempt_at IS NOT NULL ORDER BY next_attempt_at LIMIT 1`, workerID)
	return at, err == nil, db.NoRow(err, nil)
}

// DueDeliveries returns up to limit due deliveries of a worker, in the order in which they must be
// sent: by the end of the turn, and retries by their time.
func (s *Effects) DueDeliveries(ctx context.Context, workerID string, limit int) ([]Delivery, error) {
	return db.All(ctx, s.db, scanDelivery, `SELECT `+deliveryColumns+` FROM deliveries d INDEXED BY deliveries_due
		LEFT JOIN webhooks w ON w.worker_id = (SELECT id FROM workers WHERE num = d.worker_num)
		WHERE d.worker_num = `+db.WorkerNum+` AND d.next_attempt_at <= ? ORDER BY d.next_attempt_at, d.num
		LIMIT ?`, workerID, s.db.Millis(), limit)
}

// CurrentDelivery returns a delivery and its webhook as they are now; ok is false if the
// delivery has arrived or was given up.
func (s *Effects) CurrentDelivery(ctx context.Context, d Delivery) (now Delivery, ok bool, err error) {
	now, err = db.One(ctx, s.db, scanDelivery, `SELECT `+deliveryColumns+` FROM deliveries d
		CROSS JOIN webhooks w ON w.worker_id = (SELECT id FROM workers WHERE num = d.worker_num)
		WHERE d.num = ? AND d.next_attempt_at IS NOT NULL`, d.num)
	return now, err == nil, db.NoRow(err, nil)
}

// DeliverySubject returns the records that a delivery reports: the turn, its task as it was at the
// end of the turn, and its worker. A test has only a worker.
func (s *Effects) DeliverySubject(ctx context.Context, d Delivery) (task Task, t Turn, w workers.Worker, err error) {
	w, err = db.One(ctx, s.db, workers.Scan, workers.SelectWorker, d.WorkerID)
	if err != nil || d.Test() {
		return task, t, w, err
	}
	if t, err = db.One(ctx, s.db, scanTurn, `SELECT `+turnColumns+` FROM turns WHERE num = ?`, d.turnNum); err != nil {
		return task, t, w, err
	}
	task, err = db.One(ctx, s.db, scanTask, `SELECT `+taskColumns+` FROM tasks WHERE num = ?`, t.taskNum)
	d.restore(&task, t)
	return task, t, w, err
}

// DeliveredConversation returns the task of a delivery, which is no test, as it was when the delivery
// was queued, with the turns up to the one that the delivery reports.
func (s *Effects) DeliveredConversation(ctx context.Context, d Delivery) (c Conversation, err error) {
	err = s.db.Snapshot(ctx, func(q db.Querier) error {
		c, err = readConversation(ctx, q, d.taskNum)
		return err
	})
	if err != nil {
		return c, err
	}
	if c.EndWith(d.turnNum); len(c.Turns) == 0 {
		return c, db.Errorf(db.NotFound, "the turn of the delivery was deleted")
	}
	d.restore(&c.Task, c.Turns[len(c.Turns)-1])
	return c, nil
}

// restore changes the task to its state when the delivery was queued. So every attempt at a
// delivery has the same body.
func (d Delivery) restore(task *Task, t Turn) {
	task.Status, task.TurnCount, task.Cost = d.task.status, d.task.turns, d.task.cost
	task.Duration, task.Wait = time.Duration(d.task.duration)*time.Millisecond, t.Wait
	if task.CompletedAt = nil; task.Status.Ended() {
		task.CompletedAt = t.CompletedAt
	}
	if task.Wait = nil; d.Waiting() {
		task.Wait = &Wait{For: WaitForPerson}
	}
}
