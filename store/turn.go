package store

import (
	"database/sql"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"journeyman/store/db"
	"journeyman/store/people"
	"journeyman/store/workers"
)

// A Budget bounds what a turn may spend.
type Budget string

// The budgets of the interface.
const (
	BudgetLow       Budget = "low"
	BudgetStandard  Budget = "standard"
	BudgetHigh      Budget = "high"
	BudgetUnlimited Budget = "unlimited"
)

// Valid reports whether b is one of the budgets.
func (b Budget) Valid() bool {
	return b == BudgetLow || b == BudgetStandard || b == BudgetHigh || b == BudgetUnlimited
}

// Usage holds the tokens and costs of model and tool calls. Costs are in nano-dollars.
type Usage struct {
	Steps            int64
	InputTokens      int64
	OutputTokens     int64
	CacheReadTokens  int64
	CacheWriteTokens int64
	ReasoningTokens  int64
	ModelCost        int64
	ToolCost         int64
}

// Cost returns the whole cost in nano-dollars.
func (u Usage) Cost() int64 { return u.ModelCost + u.ToolCost }

// Add returns the sum of u and v.
func (u Usage) Add(v Usage) Usage {
	u.Steps += v.Steps
	u.InputTokens += v.InputTokens
	u.OutputTokens += v.OutputTokens
	u.CacheReadTokens += v.CacheReadTokens
	u.CacheWriteTokens += v.CacheWriteTokens
	u.ReasoningTokens += v.ReasoningTokens
	u.ModelCost += v.ModelCost
	u.ToolCost += v.ToolCost
	return u
}

// A Failure is the reason why a turn ended in error or was aborted.
type Failure struct {
	Code      string
	Message   string
	Retryable bool
}

// The reasons why the answer of a turn is incomplete.
const (
	ReasonBudget    = "budget_exhausted"
	ReasonMaxTokens = "max_output_tokens" // the model's output limit cut it off, even after continuations
	ReasonFilter    = "content_filter"    // the provider withheld a part of it
	ReasonAborted   = "aborted"
)

// A Turn is one instruction to a worker, and its result.
type Turn struct {
	Num             int64
	ID              string
	taskNum         int64
	TaskID          string
	Seq             int64
	OrganizationID  string
	WorkerID        string
	WorkerVersion   int64
	CreatedByUserID string
	KeyID           string
	OwnFolder       bool // the turn works in its task's own folder
	TriggeredBy     people.Trigger
	Input           string
	Budget          Budget
	Envelope        string // text for the model before Input

	Status         Status
	Claims         int64 // number of claims
	Depth          int64 // number of turns above it; 0 if no other turn started it
	AbortRequested bool
	Wait           *Wait      // nil unless it is suspended
	FailingSince   *time.Time // the first failed model call after the last success; nil without one
	FailedCalls    int64      // number of those failed calls, as of its last suspension
	Ready          bool       // all earlier turns of the task have ended
	TaskStatus     Status     // of the task when this turn had ended; '' before

	OutputText       string
	StructuredOutput json.RawMessage // nil without one
	Failure          *Failure        // nil unless it ended in error or was aborted
	IncompleteReason string          // '' for a complete answer, else one of the Reason constants
	IncompleteLimit  string          // credits, steps or time, with ReasonBudget
	Model            string          // the last one that answered; '' before
	Usage            Usage
	Duration         time.Duration // from start to end

	CreatedAt   time.Time
	StartedAt   *time.Time // of the first claim
	CompletedAt *time.Time
}

// acceptedColumns are the columns that have a value when a turn is accepted. A claim reads
// only these, since every further column costs time and is still empty.
const acceptedColumns = `num, id, task_num, (SELECT k.id FROM tasks k WHERE k.num = task_num), seq,
	` + db.OrganizationID + `, ` + db.WorkerID + `, worker_version, ` + db.CreatorID + `, ` + db.KeyID + `,
	own_folder, triggered_by, input, budget, created_at, claims, envelope, depth`

const usageColumns = `steps, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, reasoning_tokens,
	model_cost, tool_cost`

const turnColumns = acceptedColumns + `, status, abort_requested, ready,
	coalesce(task_status, ''), output_text, structured_output, error_code,
	coalesce(error_message, ''), coalesce(error_retryable, 0),
	coalesce(incomplete_reason, ''), coalesce(incomplete_limit, ''), coalesce(model, ''), duration_ms, started_at, completed_at,
	` + waitColumns + `, ` + usageColumns

// accepted returns the destinations of acceptedColumns.
func (t *Turn) accepted() []any {
	return []any{&t.Num, &t.ID, &t.taskNum, &t.TaskID, &t.Seq, &t.OrganizationID, &t.WorkerID, &t.WorkerVersion,
		&t.CreatedByUserID, &t.KeyID, &t.OwnFolder, &t.TriggeredBy, &t.Input, &t.Budget,
		db.AsTime(&t.CreatedAt), &t.Claims, &t.Envelope, &t.Depth}
}

// columns returns the destinations of usageColumns.
func (u *Usage) columns() []any {
	return []any{&u.Steps, &u.InputTokens, &u.OutputTokens, &u.CacheReadTokens, &u.CacheWriteTokens,
		&u.ReasoningTokens, &u.ModelCost, &u.ToolCost}
}

func scanTurn(row db.Scanner) (t Turn, err error) {
	var code sql.NullString
	var f Failure
	var w scannedWait
	err = row.Scan(slices.Concat(t.accepted(), []any{&t.Status, &t.AbortRequested, &t.Ready, &t.TaskStatus,
		&t.OutputText, db.AsJSON(&t.StructuredOutput), &code, &f.Message, &f.Retryable, &t.IncompleteReason,
		&t.IncompleteLimit, &t.Model, db.AsDuration(&t.Duration), db.AsTimeOrNil(&t.StartedAt),
		db.AsTimeOrNil(&t.CompletedAt)},
		w.columns(&t), t.Usage.columns())...)
	t.Wait = w.wait()
	if code.Valid {
		f.Code = code.String
		t.Failure = &f
	}
	return t, err
}

// columns returns the destinations of waitColumns.
func (w *scannedWait) columns(t *Turn) []any {
	return []any{&w.waitsFor, &w.Reason, db.AsTime(&w.Until), db.AsTimeOrNil(&w.RetryAt), db.AsTimeOrNil(&t.FailingSince),
		&t.FailedCalls}
}

// Stranger reports whether the author was not a member of the organization when the turn
// was accepted. A later change of the membership has no effect on the turn.
func (t Turn) Stranger() bool { return t.CreatedByUserID == "" }

func (t Turn) taskKey() int64 { return t.taskNum }

// Folder returns the folder in which the turn works.
func (t Turn) Folder() Folder {
	f := Folder{WorkerID: t.WorkerID}
	if t.OwnFolder {
		f.TaskID = t.TaskID
	}
	return f
}

// A Claim is a turn that a runner has taken, with the version of the worker that was
// current when the turn was accepted.
type Claim struct {
	Turn
	RunnerID     string
	Instructions string
	OutputSchema json.RawMessage // nil for free text
	Settings     workers.Settings
	HasFiles     bool // the turn has files
	HasSecrets   bool // the turn's worker or its organization has secrets
}

// ErrClaimLost means that a runner no longer has a turn, because the turn has ended or is in the
// queue again. The runner must stop its work on the turn.
var ErrClaimLost = errors.New("the turn is no longer claimed by this runner")

// ErrAbortRequested means that a claimed turn was cancelled.
var ErrAbortRequested = errors.New("the turn is to be aborted")
