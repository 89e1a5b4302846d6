package store

import (
	"time"

	"journeyman/store/db"
	"journeyman/store/people"
)

// A Status is the status of a turn or of a task. schema.sql defines how a task's status
// follows from those of its turns.
type Status string

// The states of a turn: pending -> running -> completed, error or aborted;
// pending -> aborted; running -> pending when the process died or was stopped, and when
// people have decided on the tool calls of a suspended turn. The status of a suspended
// turn is running.
const (
	Pending   Status = "pending"
	Running   Status = "running"
	Completed Status = "completed"
	Failed    Status = "error"
	Aborted   Status = "aborted"
)

// Ended reports whether the status is final.
func (s Status) Ended() bool { return s == Completed || s == Failed || s == Aborted }

func (s Status) valid() bool { return s == Pending || s == Running || s.Ended() }

// A Task is a conversation with a worker. It has the sums of its turns' costs and times.
type Task struct {
	num             int64
	ID              string
	OrganizationID  string
	WorkerID        string
	CreatedByUserID string // '' if the mail of a stranger created it
	Title           string
	Status          Status
	TriggeredBy     people.Trigger
	TurnCount       int64
	Unfinished      int64 // turns that are pending or running
	Cost            int64 // nano-dollars
	Duration        time.Duration
	CreatedAt       time.Time
	CompletedAt     *time.Time // nil while a turn is pending or running
	ArchivedAt      *time.Time
	OwnFolder       bool  // its turns work in a folder of their own
	Wait            *Wait // of its suspended turn; nil without one
}

const taskColumns = `num, id, ` + db.OrganizationID + `, ` + db.WorkerID + `, ` + db.CreatorID + `, ` + taskValues

const taskValues = `title, status, triggered_by, turn_count, unfinished, cost, duration_ms, created_at, completed_at,
	archived_at, own_folder, ` + taskWait

func scanTask(row db.Scanner) (Task, error) { return taskScanner()(row) }

// taskScanner returns a scanTask for the rows of one query. It reads them all into the same memory,
// because a row would otherwise allocate twice the size of its task. Each row sets every field. The
// embedded engine copies no text that is the same as in the row before.
func taskScanner() func(db.Scanner) (Task, error) {
	t := new(Task)
	dest := []any{&t.num, &t.ID, &t.OrganizationID, &t.WorkerID, &t.CreatedByUserID, &t.Title, &t.Status,
		&t.TriggeredBy, &t.TurnCount, &t.Unfinished, &t.Cost, db.AsDuration(&t.Duration), db.AsTime(&t.CreatedAt),
		db.AsTimeOrNil(&t.CompletedAt), db.AsTimeOrNil(&t.ArchivedAt), &t.OwnFolder,
		asWait{&t.Wait}}
	return func(row db.Scanner) (Task, error) {
		err := row.Scan(dest...)
		return *t, err
	}
}

// A TaskRef is a Task or one of its Turns. Only this package sets the number to which
// a TaskRef refers. So the value comes from a method that checked the caller's access,
// or from a claim, and a method that takes a TaskRef checks nothing.
type TaskRef interface {
	taskKey() int64 // the task's num
}

func (t Task) taskKey() int64 { return t.num }

// A taskState is a task as it was when one of its turns had ended.
type taskState struct {
	status     Status
	turns      int64 // turns of the task
	unfinished int64 // turns of the task that are pending or running
	cost       int64 // nano-dollars
	duration   int64 // milliseconds
}
