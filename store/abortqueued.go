package store

import (
	"context"
	"encoding/json"

	"journeyman/store/db"
)

// ofQueuedTasks is the end of a query for the first ready turns in a lane: of the tasks of a deleted worker whose turns
// all wait and have never run. It locks these turns, so no runner claims any turn of the tasks: each waits
// for the one before it. Tasks of teams are left out, because the ends of their turns change other tasks.
const ofQueuedTasks = `organization_num = (SELECT o.num FROM workers w JOIN organizations o ON o.id = w.organization_id
		WHERE w.id = ?1)
	AND worker_num = (SELECT num FROM workers WHERE id = ?1 AND deleted_at IS NOT NULL)
	AND steps = 0 AND depth = 0
	AND NOT EXISTS (SELECT 1 FROM turns d WHERE d.task_num = turns.task_num AND d.completed_at IS NULL AND d.depth > 0)
	ORDER BY num LIMIT ?2 /* FOR NO KEY UPDATE SKIP LOCKED */`

// AbortQueued ends the turns of at most limit tasks of a deleted worker, if all unfinished turns of the task wait in
// the queue and have never run. It needs few statements, however many turns there are. It returns the ended turns
// without their inputs, and none if no such task is left. Turns that a runner is claiming are skipped.
//
// It may be a locking write (see db.DB.Hot): it locks the first turn of each task, so that no turn of the task runs. No turn
// is added, because the worker is deleted: see workers.Runnable. It queues no delivery and no reply, as the end of any turn
// of a deleted worker: see speaks.
func (s *Store) AbortQueued(ctx context.Context, workerID string, limit int) (ended []Turn, err error) {
	err = s.db.Hot(ctx, true, func(tx db.Tx) error {
		ended = nil
		for l := range lanes {
			list, err := s.abortLane(ctx, tx, l, workerID, limit)
			if err != nil {
				return err
			}
			ended = append(ended, list...)
		}
		list := make([]metered, len(ended))
		for i := range ended {
			list[i] = metered{turn: &ended[i], ended: true}
		}
		return s.meterAll(tx, list)
	})
	return ended, err
}

// abortLane is AbortQueued for one lane of the queue, without the sums.
func (s *Store) abortLane(ctx context.Context, tx db.Tx, l lane, workerID string, limit int) ([]Turn, error) {
	tasks, err := db.All(ctx, tx, db.ScanInt, `SELECT task_num FROM turns`+l.ready()+ofQueuedTasks, workerID, limit)
	if err != nil || len(tasks) == 0 {
		return nil, err
	}
	nums, err := json.Marshal(tasks)
	if err != nil {
		return nil, err
	}
	end, now := Turn{Status: Aborted, AbortRequested: true}, db.FromMillis(s.db.Millis())
	out := AbortedOutcome()
	end.CompletedAt, end.TaskStatus, end.Failure, end.IncompleteReason = &now, Aborted, out.Failure, out.IncompleteReason
	ended, err := db.All(ctx, tx, func(row db.Scanner) (Turn, error) {
		t := end
		err := row.Scan(&t.Num, &t.ID, &t.taskNum, &t.TaskID, &t.Seq, &t.OrganizationID, &t.WorkerID, &t.CreatedByUserID,
			&t.KeyID, &t.TriggeredBy)
		return t, err
	}, `UPDATE turns SET abort_requested = 1, `+endedColumns+`
		WHERE task_num IN (SELECT value FROM json_each(?)) AND status = 'pending'
		RETURNING num, id, task_num, (SELECT k.id FROM tasks k WHERE k.num = task_num), seq, `+db.OrganizationID+`,
			`+db.WorkerID+`, `+db.CreatorID+`, `+db.KeyID+`, triggered_by`,
		append(endedArgs(&end, Aborted, "", Usage{}), string(nums))...)
	if err != nil {
		return nil, err
	}
	// A constraint of the table refuses the end of a task that has an unfinished turn.
	_, err = tx.Exec(`UPDATE tasks SET outcome = 'aborted', completed_at = ?, unfinished = (SELECT count(*) FROM turns
			WHERE task_num = tasks.num AND completed_at IS NULL)
		WHERE num IN (SELECT value FROM json_each(?))`, now.UnixMilli(), string(nums))
	if err != nil {
		return nil, err
	}
	_, err = tx.Exec(`UPDATE schedules SET running_task_num = NULL
		WHERE running_task_num IN (SELECT value FROM json_each(?))`, string(nums))
	if err != nil {
		return nil, err
	}
	for _, t := range ended {
		s.waiting.add(tx, t.OrganizationID, l, -1)
	}
	s.db.Notify(tx, ended[0].OrganizationID, db.ChangedTasks)
	return ended, nil
}
