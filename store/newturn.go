package store

import (
	"time"

	"journeyman/store/db"
	"journeyman/store/people"
	"journeyman/store/workers"
)

// NewTurn is an instruction to accept. TaskID selects an existing task, or a new one
// with that id. Continue selects the caller's newest task of the worker. With neither,
// the task is new. Without WorkerID and an existing task, NewWorker is created. In a task with exactly
// one open question, which asks the caller, the instruction is the answer.
type NewTurn struct {
	Caller         people.Caller
	WorkerID       string
	NewWorker      *workers.NewWorker
	TaskID         string // from the client
	NewTaskID      string // of a new task without TaskID; '' for a generated one
	TurnID         string // from NewTurnID, maybe older than the task's id; '' for a generated one
	Continue       bool   // not together with TaskID; creates a task if the caller has none of the worker
	Input          string
	Budget         Budget
	Title          string // of a new task; '' for the beginning of Input
	Attachments    []File // the bytes are stored in the workspace and as blobs
	AlwaysQueue    bool   // a new turn even if the task has an open question that it could answer
	Channel        Channel
	Mail           *MailNote // the mail by which it came; nil without one
	IdempotencyKey db.IdempotencyKey

	schedule  *Schedule // the schedule that creates it; nil without one
	asker     string    // title of the worker whose turn starts it; '' without one
	workspace Listing   // of the folder in which the turn will probably work
	atOnce    bool      // a runner with a free slot may claim the turn in the transaction that accepts it
	mayAnswer bool      // it may be the answer to the open question of its task
	runnerID  string    // of the runner that claims it in that transaction; '' if it waits in the queue
}

// Accepted is a turn that CreateTurn accepted, or the turn whose question the instruction has
// answered. Replayed reports that an earlier call with the same IdempotencyKey did so.
type Accepted struct {
	Turn            Turn
	Answered        *Approval // the question that was answered; nil if Turn is new or Replayed is set
	WorkerCreatedAt time.Time // of the turn's worker; the zero time if Replayed is set
	Replayed        bool
}

// NewTurnID returns an id for a NewTurn, so that a caller can watch the turn before it is accepted.
func (s *Store) NewTurnID() string { return db.NewID("trn", s.db.Now()) }

func (n NewTurn) check() error {
	var f db.Fields
	f.Check(n.Input != "", "input", "is required")
	f.Check(n.Budget.Valid(), "budget", "must be low, standard, high or unlimited")
	f.Check(n.TaskID == "" || db.ValidTaskID(n.TaskID), "taskId", db.TaskIDRule)
	return f.Err()
}

// ownFolder reports whether a new task of the worker gets a folder of its own.
func (n NewTurn) ownFolder(w workers.Worker) bool {
	return n.Caller.Stranger() || w.Workspace == workers.TaskWorkspace
}

// checkAttachments returns an error if attachments are in another folder than the turn's.
// That happens if the task or its worker changed after the files were stored.
func (n NewTurn) checkAttachments(t Turn) error {
	for _, f := range n.Attachments {
		if f.WorkerID != "" && (f.WorkerID != t.WorkerID || f.TaskID != t.Folder().TaskID) {
			return &db.Error{Kind: db.Conflict, Code: CodeMoved,
				Message: "the task has just got another folder: send the request again"}
		}
	}
	return nil
}

// CodeMoved is the code of the error for attachments that must be stored again, in the
// folder that TargetFolder now returns.
const CodeMoved = "attachments_moved"
