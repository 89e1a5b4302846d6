package store

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"strings"
	"time"
)

// A Status is that of a turn, and of a task: its newest turn's.
type Status string

// The states of a turn: pending -> running -> completed, error or aborted;
// pending -> aborted; running -> pending when the process that ran it died or was
// stopped, and when people have decided on the tool calls that it rested for: to the
// outside a turn that rests is running.
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
	before, err := q.position()
	if err != nil {
		return nil, "", err
	}
	if q.WorkerID != "" {
		if _, err := s.seenWorker(ctx, s, c, q.WorkerID); err != nil {
			return nil, "", err
		}
	}
	from, start := q.listed()
	after := int64(math.MinInt64)
	if !q.CreatedAfter.IsZero() {
		after = q.CreatedAfter.UnixMilli()
	}
	args := []any{c.OrganizationID, start, after, before[0], before[1]}
	limit := pageLimit(q.Limit)
	// The subquery is the outer loop, so its order is the result's.
	rows, err := all(ctx, s, scanTask, `SELECT `+taskColumns+` FROM (SELECT *`+from+`LIMIT ?6) t
		WHERE (?7 = '' OR status = ?7) AND (?8 = '' OR triggered_by = ?8) AND (?9 = '' OR worker_id = ?9)
			AND (?10 = '' OR title LIKE ?10 ESCAPE '\')
			AND (?11 OR EXISTS (SELECT 1 FROM workers w WHERE w.id = t.worker_id AND (w.visibility = 'public' OR w.user_id = ?12
				OR EXISTS (SELECT 1 FROM worker_members m WHERE m.worker_id = w.id AND m.user_id = ?12))))
		LIMIT ?13`,
		append(args, maxScanned, string(q.Status), string(q.TriggeredBy), q.WorkerID, likePattern(q.Text), c.Role.manages(), c.UserID, limit+1)...)
	if err != nil {
		return nil, "", err
	}
	position := func(t Task) []int64 { return []int64{t.CreatedAt.UnixMilli(), t.Num} }
	return paginate(ctx, s, rows, limit, position, `SELECT created_at, num`+from+`LIMIT 1 OFFSET ?6`, append(args, maxScanned-1)...)
}

// position is the creation time and num before which the page begins.
func (q TaskQuery) position() ([]int64, error) {
	var f Fields
	q.Check(&f)
	if err := f.Err(); err != nil {
		return nil, err
	}
	before := []int64{math.MaxInt64, 0}
	if !q.CreatedBefore.IsZero() {
		before[0] = q.CreatedBefore.UnixMilli()
	}
	after, err := parseCursor(q.Cursor)
	if err != nil || after == nil || after[0] >= before[0] {
		return before, err
	}
	return after, nil
}

// listed is the range of the list's index: of the most telling filter, for which
// start is the second argument.
func (q TaskQuery) listed() (from, start string) {
	index, column, archived := "tasks_listed", "?2 = ''", "IS NULL"
	switch {
	case q.Archived:
		index, archived = "tasks_archived", "IS NOT NULL"
	case q.WorkerID != "":
		index, column, start = "tasks_by_worker", "worker_id = ?2", q.WorkerID
	case q.Status != "":
		index, column, start = "tasks_by_status", "status = ?2", string(q.Status)
	case q.TriggeredBy != "":
		index, column, start = "tasks_by_trigger", "triggered_by = ?2", string(q.TriggeredBy)
	}
	return ` FROM tasks INDEXED BY ` + index + ` WHERE organization_id = ?1 AND ` + column + ` AND archived_at ` + archived + `
		AND created_at > ?3 AND (created_at, num) < (?4, ?5) ORDER BY created_at DESC, num DESC `, start
}

// Check notes in f the filters whose values cannot be.
func (q TaskQuery) Check(f *Fields) {
	checkText(f, q.Text)
	checkCursor(f, q.Cursor)
	f.Check(q.Status == "" || q.Status.valid(), "status", "must be pending, running, completed, error or aborted")
	f.Check(q.TriggeredBy == "" || q.TriggeredBy.valid(), "triggeredBy", "must be api, email, schedule or ui")
}

func (t Trigger) valid() bool {
	return t == TriggerAPI || t == TriggerEmail || t == TriggerSchedule || t == TriggerUI
}

// TitleOf is the beginning of an input, for people: its first line that says
// something, cut at 80 characters.
func TitleOf(input string) string {
	title := "Untitled task"
	for line := range strings.Lines(input) {
		if strings.HasPrefix(line, "```") || strings.HasPrefix(line, "~~~") {
			continue // the beginning of a code block says how it is written, not what it is about
		}
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
