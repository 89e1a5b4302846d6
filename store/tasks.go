package store

import (
	"context"
	"math"
	"time"

	"journeyman/store/db"
	"journeyman/store/people"
	"journeyman/store/workers"
)

// Task returns a task that the caller may see, and its worker, which may be deleted.
func (s *Store) Task(ctx context.Context, c people.Caller, id string) (Task, workers.Worker, error) {
	return visibleTask(ctx, s.db, c, id)
}

// TaskOfTurn returns the task of a turn.
func (s *Store) TaskOfTurn(ctx context.Context, t Turn) (Task, error) {
	task, err := db.One(ctx, s.db, scanTask, `SELECT `+taskColumns+` FROM tasks WHERE num = ?`, t.taskNum)
	return task, db.NoRecord(err, "task")
}

// LatestTask returns the newest task of a worker that is not archived, or a NotFound
// error.
func (s *Store) LatestTask(ctx context.Context, w workers.Worker) (Task, error) {
	t, err := db.One(ctx, s.db, scanTask, `SELECT `+taskColumns+` FROM tasks WHERE worker_num = ? AND archived_at IS NULL
		ORDER BY created_at DESC, num DESC LIMIT 1`, w.Num)
	return t, db.NoRecord(err, "task")
}

// A TaskQuery asks for a page of tasks. Zero fields do not filter.
type TaskQuery struct {
	WorkerID      string
	Status        Status
	TriggeredBy   people.Trigger
	WaitingFor    WaitFor // with a turn that is suspended for it
	Text          string  // in the title, case-insensitive
	CreatedAfter  time.Time
	CreatedBefore time.Time
	Archived      bool   // the archived ones instead of the others
	Cursor        string // from the page before
	Limit         int    // most items
	Scan          int    // most entries of the index that are read for the page; 0: the usual number
}

// Tasks returns a page of the tasks that the caller may see, newest first, and the cursor
// of the next page, which is empty after the last.
func (s *Store) Tasks(ctx context.Context, c people.Caller, q TaskQuery) ([]Task, string, error) {
	var f db.Fields
	q.Check(&f)
	if err := f.Err(); err != nil {
		return nil, "", err
	}
	if q.WorkerID != "" {
		if _, err := workers.VisibleOrDeleted(ctx, s.db, c, q.WorkerID); err != nil {
			return nil, "", err
		}
	}
	from, start := q.listed()
	// Without a filter every creation time is later.
	after := int64(math.MinInt64)
	if !q.CreatedAfter.IsZero() {
		after = q.CreatedAfter.UnixMilli()
	}
	at, num := q.position(&f)
	args := []any{c.OrganizationID, start, after, at, num}
	limit := db.PageLimit(q.Limit)
	// The first subquery is the outer loop, so its order is the order of the result. The joins cost
	// less than the subqueries of taskColumns, which open their tables again for each row.
	list := make([]Task, 0, limit+1)
	rows, err := db.AppendAll(ctx, s.db, list, taskScanner(), `
		SELECT num, id, w_organization, w_id, coalesce(u_id, ''), `+taskValues+`
		FROM (SELECT *`+from+`LIMIT ?6) t
		CROSS JOIN (SELECT num w_num, id w_id, organization_id w_organization, visibility w_visibility, user_id w_user
			FROM workers) AS w ON w_num = worker_num
		LEFT JOIN (SELECT num u_num, id u_id FROM users) AS u ON u_num = created_by_user_num
		WHERE (?7 = '' OR status = ?7) AND (?8 = '' OR triggered_by = ?8) AND (?9 = '' OR w_id = ?9)
			AND (?10 = '' OR title LIKE ?10 ESCAPE '\')
			AND (?11 OR w_visibility = 'public' OR w_user = ?12
				OR EXISTS (SELECT 1 FROM worker_members m WHERE m.worker_id = w_id AND m.user_id = ?12))
			AND (?13 = '' OR waits_for = ?13)
		/* ORDER BY created_at DESC, num DESC */ LIMIT ?14`,
		append(args, db.Scanned(q.Scan), string(q.Status), string(q.TriggeredBy), q.WorkerID, db.LikePattern(q.Text),
			c.Role.Manages(), c.UserID, string(q.WaitingFor), limit+1)...)
	if err != nil {
		return nil, "", err
	}
	position := func(t Task) []any { return []any{t.CreatedAt.UnixMilli(), t.num} }
	return db.Paginate(ctx, s.db, rows, limit, q.scope(), position,
		`SELECT created_at || ' ' || num`+from+`LIMIT 1 OFFSET ?6`, append(args, db.Scanned(q.Scan)-1)...)
}

// position returns the creation time and the num at which the page begins, exclusive.
func (q TaskQuery) position(f *db.Fields) (at, num int64) {
	return q.scope().ReadTime(f, q.Cursor, q.CreatedBefore)
}

// listed returns the range of the list's index. It uses the filter that leaves the fewest
// rows, and start is the value of that filter: the second argument of the query.
func (q TaskQuery) listed() (from, start string) {
	index, column, archived := "tasks_listed", "?2 = ''", "IS NULL"
	switch {
	case q.Archived:
		index, archived = "tasks_archived", "IS NOT NULL"
	case q.WaitingFor != "": // few tasks wait at any time
		index, column, start = "tasks_waiting", "waits_for = ?2", string(q.WaitingFor)
	case q.WorkerID != "":
		index, column, start = "tasks_by_worker", "worker_num = (SELECT num FROM workers WHERE id = ?2)", q.WorkerID
	case q.Status != "" && q.Status != Completed: // most tasks are completed, so their list is the list of all tasks
		index, column, start = "tasks_by_status", "status = ?2 AND status <> 'completed'", string(q.Status)
	case q.TriggeredBy != "":
		index, column, start = "tasks_by_trigger", "triggered_by = ?2", string(q.TriggeredBy)
	}
	return ` FROM tasks INDEXED BY ` + index + `
		WHERE organization_num = (SELECT num FROM organizations WHERE id = ?1) AND ` + column + `
		AND archived_at ` + archived + `
		AND created_at > ?3 AND (created_at, num) < (?4, ?5) ORDER BY created_at DESC, num DESC `, start
}

// Check adds to f the filters with invalid values.
func (q TaskQuery) Check(f *db.Fields) {
	db.CheckLine(f, "q", q.Text, db.MaxQueryText)
	q.position(f)
	f.Check(q.Status == "" || q.Status.valid(), "status", "must be pending, running, completed, error or aborted")
	f.Check(q.TriggeredBy == "" || q.TriggeredBy.Valid(), "triggeredBy", "must be api, email, schedule or ui")
	f.Check(q.WaitingFor == "" || q.WaitingFor.valid(), "waitingFor", "must be person, model or worker")
}

func (q TaskQuery) scope() db.Scope {
	return db.ScopeOf("tasks", q.WorkerID, q.Status, q.TriggeredBy, q.WaitingFor, q.Text, q.CreatedAfter.UnixMilli(),
		q.CreatedBefore.UnixMilli(), q.Archived)
}

// WorkerTitle returns the title of a task's worker, deleted or not.
func (s *Store) WorkerTitle(ctx context.Context, t Task) (string, error) {
	title, err := db.One(ctx, s.db, db.ScanString, `SELECT title FROM workers WHERE id = ?`, t.WorkerID)
	return title, db.NoRecord(err, "worker")
}

// The column status of tasks is computed from other columns: see schema.sql. Only addTurn,
// setRunning and settleTask write those columns after the task was created.

// addTurn counts a new turn of a task that exists. runs reports whether the turn is claimed at once.
func addTurn(tx db.Tx, taskNum int64, runs bool) error {
	return tx.ExecLater(`UPDATE tasks SET outcome = NULL, completed_at = NULL, turn_count = turn_count + 1,
		unfinished = unfinished + 1, running = iif(?, 1, running) WHERE num = ?`, runs, taskNum)
}

// setRunning stores whether a turn of the task is running. A suspended turn counts as running.
func (s *Store) setRunning(tx db.Tx, organizationID string, taskNum int64, running bool) error {
	s.db.Notify(tx, organizationID, db.ChangedTasks)
	return tx.ExecLater(`UPDATE tasks SET running = ?, waits_for = NULL WHERE num = ?`, running, taskNum)
}

// settleTask adds turns that end together to their task's row, and returns the task's state after
// that. ended is ordered by seq. ran reports whether the first of them was running. cost is the
// cost of its last step.
func (s *Store) settleTask(tx db.Tx, ended []Turn, ran bool, cost int64) (st taskState, err error) {
	var duration int64
	for _, t := range ended {
		duration += t.Duration.Milliseconds()
	}
	// The newest of the ended turns decides the outcome, but only if no newer turn waits.
	last := ended[len(ended)-1]
	s.db.Notify(tx, last.OrganizationID, db.ChangedTasks)
	_, err = db.One(context.Background(), tx, db.Into(&st.status, &st.turns, &st.unfinished, &st.cost, &st.duration),
		`UPDATE tasks SET unfinished = unfinished - ?1, running = iif(?2, 0, running),
			waits_for = iif(?2, NULL, waits_for), cost = cost + ?3,
			duration_ms = duration_ms + ?4, outcome = iif(turn_count = ?5, ?6, outcome),
			completed_at = iif(unfinished = ?1, CAST(?7 AS BIGINT), NULL)
		WHERE num = ?8 RETURNING status, turn_count, unfinished, cost, duration_ms`,
		len(ended), ran, cost, duration, last.Seq+1, last.Status, last.CompletedAt.UnixMilli(), last.taskNum)
	return st, err
}
