package store

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// A Status is that of a turn, and of a task: its newest turn's.
type Status string

// The states of a turn: pending -> running -> completed, error or aborted;
// pending -> aborted; running -> pending only when the process that ran it died
// or was stopped.
const (
	Pending   Status = "pending"
	Running   Status = "running"
	Completed Status = "completed"
	Failed    Status = "error"
	Aborted   Status = "aborted"
)

// Ended reports whether the state is final.
func (s Status) Ended() bool { return s == Completed || s == Failed || s == Aborted }

func (s Status) valid() bool { return s == Pending || s == Running || s.Ended() }

// A Task is a conversation with a worker, with the sums of its turns' figures.
type Task struct {
	Num             int64
	ID              string
	OrganizationID  string
	WorkerID        string
	CreatedByUserID string // '' for a stranger's mail
	Title           string
	Status          Status
	TriggeredBy     Trigger
	TurnCount       int64
	Unfinished      int64 // turns pending or running
	Cost            int64 // nano-dollars
	Duration        time.Duration
	CreatedAt       time.Time
	CompletedAt     *time.Time // nil until its newest turn has ended
	ArchivedAt      *time.Time
}

const taskColumns = `num, id, organization_id, worker_id, coalesce(created_by_user_id, ''), title, status, triggered_by,
	turn_count, unfinished, cost, duration_ms, created_at, completed_at, archived_at`

func scanTask(row scanner) (t Task, err error) {
	var duration, created int64
	var completed, archived sql.NullInt64
	err = row.Scan(&t.Num, &t.ID, &t.OrganizationID, &t.WorkerID, &t.CreatedByUserID, &t.Title, &t.Status, &t.TriggeredBy,
		&t.TurnCount, &t.Unfinished, &t.Cost, &duration, &created, &completed, &archived)
	t.Duration = time.Duration(duration) * time.Millisecond
	t.CreatedAt, t.CompletedAt, t.ArchivedAt = fromMillis(created), fromNull(completed), fromNull(archived)
	return t, err
}

// Task gives a task that the caller may see, and its worker, which may be deleted.
func (s *Store) Task(ctx context.Context, c Caller, id string) (Task, Worker, error) {
	return s.visibleTask(ctx, s, c, id)
}

// LatestTask gives the newest task of a worker that is not archived, or a NotFound
// error. The caller has checked that the worker may be seen.
func (s *Store) LatestTask(ctx context.Context, workerID string) (Task, error) {
	t, err := one(ctx, s, scanTask, `SELECT `+taskColumns+` FROM tasks WHERE worker_id = ? AND archived_at IS NULL
		ORDER BY created_at DESC, num DESC LIMIT 1`, workerID)
	return t, notFound(err, "task")
}

// ArchiveTask takes a task off the lists; only its worker's creator may. Its turns
// and files stay, and it takes no new turns.
func (s *Store) ArchiveTask(ctx context.Context, c Caller, id string) error {
	return s.write(ctx, func(tx *Tx) error {
		t, w, err := s.visibleTask(ctx, tx, c, id)
		if err != nil {
			return err
		}
		if w.UserID != c.UserID {
			return Errorf(Forbidden, "only the creator of the worker may archive its tasks")
		}
		_, err = tx.Exec(`UPDATE tasks SET archived_at = coalesce(archived_at, ?) WHERE num = ?`, s.millis(), t.Num)
		return err
	})
}

// A TaskQuery asks for a page of tasks. Zero fields do not filter.
type TaskQuery struct {
	WorkerID      string
	Status        Status
	TriggeredBy   Trigger
	Text          string // in the title, case-insensitive
	CreatedAfter  time.Time
	CreatedBefore time.Time
	Archived      bool   // the archived ones instead of the others
	Cursor        string // from the page before
	Limit         int    // most items
}

// Tasks lists the tasks the caller may see, newest first, and the cursor of the
// next page, ” after the last.
func (s *Store) Tasks(ctx context.Context, c Caller, q TaskQuery) ([]Task, string, error) {
	after, err := parseCursor(q.Cursor, 2)
	if err != nil {
		return nil, "", err
	}
	if q.WorkerID != "" {
		if _, err := s.seenWorker(ctx, s, c, q.WorkerID); err != nil {
			return nil, "", err
		}
	}
	created, num := q.createdBefore(), int64(0)
	if len(after) == 2 {
		if created, num, err = taskPosition(after); err != nil {
			return nil, "", err
		}
	}
	query, args := q.sql(c)
	page, last, err := paginate(q.Limit, func(after *Task, window int) ([]listed[Task], error) {
		if after != nil {
			created, num = after.CreatedAt.UnixMilli(), after.Num
		}
		return all(ctx, s, scanListed(scanTask), query, append(args, created, num, window)...)
	})
	if err != nil || last == nil {
		return page, "", err
	}
	return page, formatCursor(strconv.FormatInt(last.CreatedAt.UnixMilli(), 10), strconv.FormatInt(last.Num, 10)), nil
}

// createdBefore is the first creation time not wanted, in milliseconds.
func (q TaskQuery) createdBefore() int64 {
	if q.CreatedBefore.IsZero() {
		return 1 << 62
	}
	return q.CreatedBefore.UnixMilli()
}

// sql is the query of one window, and its arguments but for the last three:
// position and size. It begins with the most telling filter's index and leaves
// the others to a column that says whether the row matches.
func (q TaskQuery) sql(c Caller) (string, []any) {
	args := []any{c.OrganizationID, c.UserID, c.Role.manages(), likePattern(q.Text), string(q.Status), string(q.TriggeredBy),
		q.WorkerID, q.CreatedAfter.UnixMilli()}
	if q.CreatedAfter.IsZero() {
		args[7] = int64(-1 << 62)
	}
	index, where, archived := "tasks_listed", "t.organization_id = ?1", "IS NULL"
	switch {
	case q.Archived:
		index, archived = "tasks_archived", "IS NOT NULL"
	case q.WorkerID != "":
		index, where = "tasks_by_worker", "t.worker_id = ?7"
	case q.Status != "":
		index, where = "tasks_by_status", "t.organization_id = ?1 AND t.status = ?5"
	case q.TriggeredBy != "":
		index, where = "tasks_by_trigger", "t.organization_id = ?1 AND t.triggered_by = ?6"
	}
	return `SELECT t.num, t.id, t.organization_id, t.worker_id, coalesce(t.created_by_user_id, ''), t.title, t.status, t.triggered_by,
			t.turn_count, t.unfinished, t.cost, t.duration_ms, t.created_at, t.completed_at, t.archived_at,
			(?3 OR EXISTS (SELECT 1 FROM workers w WHERE w.id = t.worker_id AND (w.visibility = 'public' OR w.user_id = ?2
				OR EXISTS (SELECT 1 FROM worker_members m WHERE m.worker_id = w.id AND m.user_id = ?2))))
			AND (?4 = '' OR t.title LIKE ?4 ESCAPE '\') AND (?5 = '' OR t.status = ?5) AND (?6 = '' OR t.triggered_by = ?6)
			AND (?7 = '' OR t.worker_id = ?7)
		FROM tasks t INDEXED BY ` + index + `
		WHERE ` + where + ` AND t.archived_at ` + archived + `
			AND t.created_at > ?8 AND (t.created_at, t.num) < (?9, ?10)
		ORDER BY t.created_at DESC, t.num DESC LIMIT ?11`, args
}

func taskPosition(parts []string) (created, num int64, err error) {
	created, err1 := strconv.ParseInt(parts[0], 10, 64)
	num, err2 := strconv.ParseInt(parts[1], 10, 64)
	if err1 != nil || err2 != nil {
		return 0, 0, errCursor()
	}
	return created, num, nil
}

// Check says whether the filters have values that exist.
func (q TaskQuery) Check(f *Fields) {
	f.Check(q.Status == "" || q.Status.valid(), "status", "must be pending, running, completed, error or aborted")
	f.Check(q.TriggeredBy == "" || q.TriggeredBy.valid(), "triggeredBy", "must be api, email, schedule or ui")
}

func (t Trigger) valid() bool {
	return t == TriggerAPI || t == TriggerEmail || t == TriggerSchedule || t == TriggerUI
}

// taskTitle is the beginning of an input, for people: its first line that says
// something, cut at 80 characters.
func taskTitle(input string) string {
	title := "Untitled task"
	for line := range strings.Lines(input) {
		if line = strings.Join(strings.Fields(strings.Trim(line, "#*`~> \t\r\n")), " "); line != "" {
			title = line
			break
		}
	}
	if r := []rune(title); len(r) > 80 {
		title = fmt.Sprintf("%s…", strings.TrimSpace(string(r[:79])))
	}
	return title
}
