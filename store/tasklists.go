package store

import (
	"context"

	"journeyman/store/db"
	"journeyman/store/people"
)

// This file holds the queries of pages that show many tasks. The cost of each query has a limit
// that does not depend on the number of tasks.

// MaxCounted is the highest count in TaskCounts.
const MaxCounted = 100

// TaskCounts are numbers of tasks that the caller may see, each at most MaxCounted.
type TaskCounts struct {
	Running int64 // tasks at work now, without those that wait
	Queued  int64
	Failed  int64
}

// maxCountScanned bounds the rows that one count reads.
const maxCountScanned = 1000

// TaskCounts counts the newest tasks in each state.
func (s *Store) TaskCounts(ctx context.Context, c people.Caller) (n TaskCounts, err error) {
	for _, count := range []struct {
		status Status
		to     *int64
	}{{Running, &n.Running}, {Pending, &n.Queued}, {Failed, &n.Failed}} {
		*count.to, err = db.One(ctx, s.db, db.ScanInt, `SELECT count(*) FROM (SELECT 1 FROM
				(SELECT * FROM tasks INDEXED BY tasks_by_status
					WHERE organization_num = (SELECT num FROM organizations WHERE id = ?1) AND status = ?2
					AND status <> 'completed' AND archived_at IS NULL ORDER BY created_at DESC LIMIT ?3) t
			WHERE waits_for IS NULL AND `+seesTask("?4", "?5")+` LIMIT ?6) AS counted`,
			c.OrganizationID, string(count.status), maxCountScanned, c.Role.Manages(), c.UserID, MaxCounted)
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// seesTask is the condition that a user may see the worker of task t. all is true for users
// who see every worker.
func seesTask(all, user string) string {
	return `(` + all + ` OR EXISTS (SELECT 1 FROM workers w WHERE w.num = t.worker_num AND (w.visibility = 'public'
		OR w.user_id = ` + user + `
		OR EXISTS (SELECT 1 FROM worker_members m WHERE m.worker_id = w.id AND m.user_id = ` + user + `))))`
}

// LastTurn returns the newest turn of a task.
func (s *Store) LastTurn(ctx context.Context, task TaskRef) (Turn, error) {
	t, err := db.One(ctx, s.db, scanTurn, `SELECT `+turnColumns+` FROM turns WHERE task_num = ? ORDER BY seq DESC LIMIT 1`,
		task.taskKey())
	return t, db.NoRecord(err, "turn")
}
