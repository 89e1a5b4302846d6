package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"journeyman/store/db"
	"journeyman/store/engine"
)

// MinKeepTasks is the shortest time for which ended tasks are kept. Until then a client may
// repeat its request, and must get the result of the first one.
const MinKeepTasks = db.IdempotencyLife

// The limits of one transaction. The number of tasks that it deletes depends on its duration,
// because all other writes wait for it.
const (
	minPruned = 4
	maxPruned = 256
	pruneTime = 8 * time.Millisecond // that a transaction may take
	pruneScan = 1000                 // ended tasks that one query returns
	day       = 24 * time.Hour
)

// An endedTask is a task that may be old enough to be pruned.
type endedTask struct {
	num     int64
	endedAt int64 // milliseconds
}

// PruneTasks deletes tasks that ended longer ago than keep, or than their worker's own setting
// says, with all that belongs to them. It keeps tasks with a delivery or a mail that is still to be
// sent, and tasks that have started others. A keep of 0 keeps the tasks of workers without a
// setting. It works in short transactions with pauses, until ctx ends or nothing is left, and
// returns the number of deleted tasks. After a crash, the next call continues.
func (s *Store) PruneTasks(ctx context.Context, keep time.Duration) (n int64, err error) {
	p := pruning{s: s, size: minPruned}
	for worker := int64(0); ; {
		var days *int64
		_, err := db.One(ctx, s.db, db.Into(&worker, &days),
			`SELECT num, keep_task_days FROM workers WHERE num > ? ORDER BY num LIMIT 1`, worker)
		if err != nil {
			return p.tasks, errors.Join(db.NoRow(err, nil), p.failed)
		}
		age := keep
		if days != nil {
			age = time.Duration(*days) * day
		}
		if age <= 0 {
			continue
		}
		before := s.db.Now().Add(-max(age, MinKeepTasks)).UnixMilli()
		if err := p.pruneWorker(ctx, worker, before); err != nil {
			return p.tasks, err
		}
	}
}

// A pruning is one call of PruneTasks.
type pruning struct {
	s      *Store
	size   int // tasks in the next transaction
	tasks  int64
	failed error // of the first task that could not be deleted
}

// pruneWorker deletes the tasks of a worker that ended before a time. It reads each task once, so
// that the tasks that are kept do not block it.
func (p *pruning) pruneWorker(ctx context.Context, worker, before int64) error {
	var at endedTask
	for {
		list, err := db.All(ctx, p.s.db, scanEnded, `SELECT num, completed_at FROM tasks INDEXED BY tasks_ended
			WHERE worker_num = ? AND completed_at < ? AND (completed_at, num) > (?, ?)
			ORDER BY completed_at, num LIMIT ?`, worker, before, at.endedAt, at.num, pruneScan)
		if err != nil || len(list) == 0 {
			return err
		}
		at = list[len(list)-1]
		for len(list) > 0 {
			some := list[:min(p.size, len(list))]
			list = list[len(some):]
			if err := p.pruneSome(ctx, some, before); err != nil {
				return err
			}
		}
	}
}

func scanEnded(row db.Scanner) (t endedTask, err error) {
	err = row.Scan(&t.num, &t.endedAt)
	return t, err
}

// pruneSome deletes tasks in one transaction, and pauses for as long as that took. Where one of
// them cannot be deleted, it deletes the others one by one.
func (p *pruning) pruneSome(ctx context.Context, list []endedTask, before int64) error {
	begun := time.Now()
	gone, err := p.s.deleteTasks(ctx, list, before)
	took := time.Since(begun)
	switch {
	case err == nil:
	case ctx.Err() != nil, db.IsKind(err, db.Busy):
		return err // the disk is full, or the program stops: the next call continues
	case len(list) == 1:
		if p.failed == nil {
			p.failed = fmt.Errorf("delete the task with the number %d: %w", list[0].num, err)
		}
		return nil
	default:
		for i := range list {
			if err := p.pruneSome(ctx, list[i:i+1], before); err != nil {
				return err
			}
		}
		return nil
	}
	p.tasks += gone.tasks
	p.s.counters.TasksPruned.Add(gone.tasks)
	p.s.removeFiles(ctx, gone)
	switch {
	case took > pruneTime:
		p.size = max(p.size/2, minPruned)
	case took < pruneTime/2:
		p.size = min(p.size*2, maxPruned)
	}
	return Pause(ctx, took)
}

// Pause waits for d. It returns the error of ctx if ctx ends first.
func Pause(ctx context.Context, d time.Duration) error { return engine.Pause(ctx, d) }

// deletedTasks holds the files and folders of deleted tasks in the data folder.
type deletedTasks struct {
	tasks   int64
	blobs   []string // SHA-256 of files, images and mails; other records may refer to the same bytes
	folders []Folder // own folders
}

// prunable selects the tasks of a JSON array that can be deleted. The newest task and the newest
// turn stay, because otherwise their numbers would be used again, and positions in streams contain
// these numbers. A task that a turn has started stays until that turn ends, because a resumed turn
// reads its result.
const prunable = `SELECT k.num, k.id, (SELECT id FROM workers WHERE num = k.worker_num),
		(SELECT id FROM organizations WHERE num = k.organization_num), k.own_folder
	FROM json_each(?1) j CROSS JOIN tasks k ON k.num = j.value
	WHERE k.completed_at < ?2 AND k.num < (SELECT max(num) FROM tasks)
		AND NOT EXISTS (SELECT 1 FROM schedules c WHERE c.running_task_num = k.num)
		AND NOT EXISTS (SELECT 1 FROM turns t WHERE t.task_num = k.num AND (
			t.num = (SELECT max(num) FROM turns)
			OR EXISTS (SELECT 1 FROM deliveries d WHERE d.turn_num = t.num AND d.next_attempt_at IS NOT NULL)
			OR EXISTS (SELECT 1 FROM outbound_emails o WHERE o.turn_num = t.num AND o.status = 'queued')
			OR EXISTS (SELECT 1 FROM turns c WHERE c.parent_turn_num = t.num AND c.task_num <> k.num)
			OR EXISTS (SELECT 1 FROM turns c WHERE c.root_turn_num = t.num AND c.task_num <> k.num)
			OR EXISTS (SELECT 1 FROM turns p WHERE p.num IN (t.parent_turn_num, t.root_turn_num) AND p.completed_at IS NULL)))`

// blobsOfTurns selects the blobs to which rows of turns refer.
const blobsOfTurns = `SELECT sha256 FROM files WHERE turn_num IN (SELECT value FROM json_each(?1))
	UNION ALL SELECT sha256 FROM call_images WHERE turn_num IN (SELECT value FROM json_each(?1))
	UNION ALL SELECT source_sha256 FROM inbound_emails
		WHERE turn_num IN (SELECT value FROM json_each(?1)) AND source_sha256 IS NOT NULL
	UNION ALL SELECT source_sha256 FROM outbound_emails
		WHERE turn_num IN (SELECT value FROM json_each(?1)) AND source_sha256 IS NOT NULL`

// deletionsOfTurns returns the statements that delete turns and all that refers to them. Rows that
// refer to other rows are deleted before them.
func deletionsOfTurns() []string {
	return []string{
		`DELETE FROM webhook_executions WHERE delivery_num IN
			(SELECT num FROM deliveries WHERE turn_num IN (SELECT value FROM json_each(?1)))`,
		`DELETE FROM deliveries WHERE turn_num IN (SELECT value FROM json_each(?1))`,
		`DELETE FROM outbound_emails WHERE turn_num IN (SELECT value FROM json_each(?1))`,
		`DELETE FROM inbound_emails WHERE turn_num IN (SELECT value FROM json_each(?1))`,
		`DELETE FROM approvals WHERE turn_num IN (SELECT value FROM json_each(?1))`,
		`DELETE FROM call_images WHERE turn_num IN (SELECT value FROM json_each(?1))`,
		`DELETE FROM tool_calls WHERE turn_num IN (SELECT value FROM json_each(?1))`,
		`DELETE FROM steps WHERE turn_num IN (SELECT value FROM json_each(?1))`,
		`DELETE FROM turn_toolsets WHERE turn_num IN (SELECT value FROM json_each(?1))`,
		`DELETE FROM compactions WHERE turn_num IN (SELECT value FROM json_each(?1))`,
		`DELETE FROM files WHERE turn_num IN (SELECT value FROM json_each(?1))`,
		`DELETE FROM sources WHERE turn_num IN (SELECT value FROM json_each(?1))`,
		`DELETE FROM turns WHERE num IN (SELECT value FROM json_each(?1))`,
	}
}

// deletionsOfTasks returns the statements that delete tasks whose turns are gone.
func deletionsOfTasks() []string {
	return []string{
		`DELETE FROM task_allowances WHERE task_num IN (SELECT value FROM json_each(?1))`,
		`UPDATE alerts SET task_num = NULL WHERE task_num IN (SELECT value FROM json_each(?1))`,
		`DELETE FROM tasks WHERE num IN (SELECT value FROM json_each(?1))`,
	}
}

// deleteTasks deletes those of the tasks that can be deleted, in one transaction.
func (s *Store) deleteTasks(ctx context.Context, list []endedTask, before int64) (gone deletedTasks, err error) {
	var nums []int64
	for _, t := range list {
		nums = append(nums, t.num)
	}
	err = s.db.Write(ctx, func(tx db.Tx) error {
		gone = deletedTasks{}
		// The conditions are checked in this transaction, because a turn may have been added meanwhile.
		var deleted []int64
		_, err := db.All(ctx, tx, func(row db.Scanner) (struct{}, error) {
			var num int64
			var id, worker, organization string
			var own bool
			err := row.Scan(&num, &id, &worker, &organization, &own)
			deleted = append(deleted, num)
			if own {
				gone.folders = append(gone.folders, Folder{WorkerID: worker, TaskID: id})
			}
			s.db.Notify(tx, organization, db.ChangedTasks)
			return struct{}{}, err
		}, prunable, jsonArray(nums), before)
		if err != nil || len(deleted) == 0 {
			return err
		}
		gone.tasks = int64(len(deleted))
		gone.blobs, err = deleteRows(ctx, tx, deleted)
		return err
	})
	if err != nil {
		return deletedTasks{}, err
	}
	return gone, nil
}

// deleteRows deletes the rows of tasks, and returns the blobs to which they referred.
func deleteRows(ctx context.Context, tx db.Tx, tasks []int64) (blobs []string, err error) {
	turns, err := db.All(ctx, tx, db.ScanInt, `SELECT num FROM turns WHERE task_num IN (SELECT value FROM json_each(?1))`,
		jsonArray(tasks))
	if err != nil {
		return nil, err
	}
	if blobs, err = db.All(ctx, tx, db.ScanString, blobsOfTurns, jsonArray(turns)); err != nil {
		return nil, err
	}
	for _, query := range deletionsOfTurns() {
		if _, err := tx.Exec(query, jsonArray(turns)); err != nil {
			return nil, err
		}
	}
	for _, query := range deletionsOfTasks() {
		if _, err := tx.Exec(query, jsonArray(tasks)); err != nil {
			return nil, err
		}
	}
	return blobs, nil
}

// jsonArray returns numbers as a JSON array.
func jsonArray(nums []int64) string {
	text, _ := json.Marshal(nums) // numbers always marshal
	return string(text)
}

// removeFiles removes the files and folders of deleted tasks, unless other records refer to them.
// The sweep later removes files that this function cannot remove now, such as during a backup.
func (s *Store) removeFiles(ctx context.Context, gone deletedTasks) {
	if len(gone.blobs)+len(gone.folders) == 0 || !s.backups.TryLock() {
		return
	}
	defer s.backups.Unlock()
	slices.Sort(gone.blobs)
	for _, sha := range slices.Compact(gone.blobs) {
		if _, err := s.sweepBlob(ctx, sha); err != nil && !errors.Is(err, os.ErrNotExist) {
			return
		}
	}
	for _, f := range gone.folders {
		if _, err := s.sweepOwnFolder(ctx, f.WorkerID, folderName(f.TaskID)); err != nil {
			return
		}
	}
}

// PruneAudit deletes at most limit entries of the audit log that are older than age, and returns
// their number.
func (s *Store) PruneAudit(ctx context.Context, age time.Duration, limit int) (int64, error) {
	// The subquery bounds the rows that one call reads, even if no row is old enough.
	return s.db.Exec(ctx, `DELETE FROM audit_log WHERE created_at < ?
		AND num IN (SELECT num FROM audit_log WHERE num > 0 ORDER BY num LIMIT ?)`, s.db.Now().Add(-age).UnixMilli(), limit)
}
