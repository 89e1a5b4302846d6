package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"slices"
	"time"
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

// Usage is what model and tool calls have used. Costs are in nano-dollars.
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

// Cost is the whole cost in nano-dollars.
func (u Usage) Cost() int64 { return u.ModelCost + u.ToolCost }

// Add gives the sum of both.
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

// A Failure says why a turn ended in error or was aborted.
type Failure struct {
	Code      string
	Message   string
	Retryable bool
}

// What cut a turn's work short.
const (
	ReasonBudget  = "budget_exhausted"
	ReasonAborted = "aborted"
)

// A Turn is one instruction to a worker and what became of it.
type Turn struct {
	Num             int64
	ID              string
	TaskNum         int64
	TaskID          string
	Seq             int64
	OrganizationID  string
	WorkerID        string
	WorkerVersion   int64
	CreatedByUserID string
	KeyID           string
	TriggeredBy     Trigger
	Input           string
	Budget          Budget

	Status         Status
	Claims         int64 // how often it was claimed
	AbortRequested bool

	OutputText       string
	StructuredOutput json.RawMessage // nil without one
	Failure          *Failure        // nil unless it ended in error or was aborted
	IncompleteReason string          // '' for complete, else ReasonBudget or ReasonAborted
	IncompleteLimit  string          // credits, steps or time, with ReasonBudget
	Model            string          // that answered last; '' before
	Usage            Usage
	Duration         time.Duration // from start to end

	CreatedAt   time.Time
	StartedAt   *time.Time // of the first claim
	CompletedAt *time.Time
}

// acceptedColumns are those that are filled when a turn is accepted. The queue reads
// no more: each column of a row costs, and the others say nothing yet.
const acceptedColumns = `num, id, task_num, (SELECT k.id FROM tasks k WHERE k.num = task_num), seq, organization_id, worker_id,
	worker_version, coalesce(created_by_user_id, ''), coalesce(api_key_id, ''), triggered_by, input, budget, created_at, claims`

const usageColumns = `steps, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, reasoning_tokens, model_cost, tool_cost`

const turnColumns = acceptedColumns + `, status, abort_requested, output_text, structured_output, error_code, coalesce(error_message, ''),
	coalesce(error_retryable, 0), coalesce(incomplete_reason, ''), coalesce(incomplete_limit, ''), model, duration_ms, started_at, completed_at, ` + usageColumns

// accepted is where acceptedColumns go.
func (t *Turn) accepted(created *int64) []any {
	return []any{&t.Num, &t.ID, &t.TaskNum, &t.TaskID, &t.Seq, &t.OrganizationID, &t.WorkerID,
		&t.WorkerVersion, &t.CreatedByUserID, &t.KeyID, &t.TriggeredBy, &t.Input, &t.Budget, created, &t.Claims}
}

// columns is where usageColumns go.
func (u *Usage) columns() []any {
	return []any{&u.Steps, &u.InputTokens, &u.OutputTokens, &u.CacheReadTokens, &u.CacheWriteTokens, &u.ReasoningTokens, &u.ModelCost, &u.ToolCost}
}

func scanTurn(row scanner) (t Turn, err error) {
	var structured, code sql.NullString
	var f Failure
	var duration, created int64
	var started, completed sql.NullInt64
	err = row.Scan(slices.Concat(t.accepted(&created), []any{&t.Status, &t.AbortRequested, &t.OutputText, &structured, &code, &f.Message,
		&f.Retryable, &t.IncompleteReason, &t.IncompleteLimit, &t.Model, &duration, &started, &completed}, t.Usage.columns())...)
	if structured.Valid {
		t.StructuredOutput = json.RawMessage(structured.String)
	}
	if code.Valid {
		f.Code = code.String
		t.Failure = &f
	}
	t.Duration = time.Duration(duration) * time.Millisecond
	t.CreatedAt, t.StartedAt, t.CompletedAt = fromMillis(created), fromNull(started), fromNull(completed)
	return t, err
}

// Turn gives the turn with that id. The caller has checked that it may be seen.
func (s *Store) Turn(ctx context.Context, id string) (Turn, error) {
	t, err := one(ctx, s, scanTurn, `SELECT `+turnColumns+` FROM turns WHERE id = ?`, id)
	return t, notFound(err, "turn")
}

// maxTurns bounds the turns of one task, so that a conversation can be read whole.
const maxTurns = 1000

// Turns lists the turns of a task in order. The caller has checked that it may be
// seen.
func (s *Store) Turns(ctx context.Context, taskNum int64) ([]Turn, error) {
	return all(ctx, s, scanTurn, `SELECT `+turnColumns+` FROM turns WHERE task_num = ? ORDER BY seq`, taskNum)
}

// NewTurn is an instruction to be accepted. Exactly one of these says for which
// task: TaskID (an existing one, or a new one of that id), Continue, or neither
// for a new task. Without WorkerID and an existing task, NewWorker is made.
type NewTurn struct {
	Caller      Caller
	WorkerID    string
	NewWorker   *NewWorker
	TaskID      string // chosen by the client
	Continue    bool   // the caller's newest task of the worker, or a new one
	Input       string
	Budget      Budget
	Title       string // of a new task; '' for the beginning of the input
	Attachments []File // already in the workspace and the blob folder
	Once        Once
}

// Accepted is a turn that was accepted, now or by the same request before.
type Accepted struct {
	Turn     Turn
	Replayed bool
}

// CreateTurn accepts an instruction: once it returns, the turn is durably queued.
func (s *Store) CreateTurn(ctx context.Context, n NewTurn) (Accepted, error) {
	var a Accepted
	if err := n.check(); err != nil {
		return a, err
	}
	err := s.write(ctx, func(tx *Tx) error {
		id, err := s.lookup(ctx, tx, n.Once)
		if err != nil {
			return err
		}
		if a.Replayed = id != ""; a.Replayed {
			a.Turn, err = one(ctx, tx, scanTurn, `SELECT `+turnColumns+` FROM turns WHERE id = ?`, id)
			return err
		}
		if a.Turn, err = s.acceptTurn(ctx, tx, n); err != nil {
			return err
		}
		return s.remember(tx, n.Once, a.Turn.ID)
	})
	return a, err
}

func (n NewTurn) check() error {
	var f Fields
	f.Check(n.Input != "", "input", "is required")
	f.Check(n.Budget.Valid(), "budget", "must be low, standard, high or unlimited")
	f.Check(n.TaskID == "" || ValidTaskID(n.TaskID), "taskId", "must have 1 to 128 characters from A-Z, a-z, 0-9 and . _ : -")
	return f.Err()
}

// checkAttachments reports files that lie in another worker's folder: the task was
// made for that worker after they were put there.
func (n NewTurn) checkAttachments(w Worker) error {
	for _, f := range n.Attachments {
		if f.WorkerID != "" && f.WorkerID != w.ID {
			return &Error{Kind: Conflict, Code: CodeMoved, Message: "the task has just been made for another worker"}
		}
	}
	return nil
}

// CodeMoved is the code of the error for attachments that have to be put into
// another worker's folder: TargetWorker now tells which.
const CodeMoved = "attachments_moved"

// acceptTurn finds or makes worker and task and adds the turn, in one transaction.
func (s *Store) acceptTurn(ctx context.Context, tx *Tx, n NewTurn) (Turn, error) {
	if s.queued.Load() >= s.queueLimit {
		return Turn{}, Errorf(Busy, "the queue is full: %d turns are waiting", s.queueLimit)
	}
	if err := s.checkCap(ctx, tx, n.Caller.OrganizationID); err != nil {
		return Turn{}, err
	}
	task, w, err := s.target(ctx, tx, n)
	if err != nil {
		return Turn{}, err
	}
	if err := n.checkAttachments(w); err != nil {
		return Turn{}, err
	}
	now := s.millis()
	if task.Num == 0 {
		task, err = s.insertTask(tx, n, w, now)
	} else {
		_, err = tx.Exec(`UPDATE tasks SET status = 'pending', completed_at = NULL, turn_count = turn_count + 1, unfinished = unfinished + 1
			WHERE num = ?`, task.Num)
	}
	if err != nil {
		return Turn{}, err
	}
	t, err := s.insertTurn(tx, n, task, w, now)
	if err != nil {
		return Turn{}, err
	}
	s.countQueued(tx, 1)
	for _, f := range n.Attachments {
		if err := s.insertFile(tx, t, Attached, f, now); err != nil {
			return Turn{}, err
		}
	}
	return t, nil
}

// target gives the task the turn goes to, with Num 0 for a new one, and its
// worker, made where none is named.
func (s *Store) target(ctx context.Context, tx *Tx, n NewTurn) (Task, Worker, error) {
	task, err := s.namedTask(ctx, tx, n)
	if err != nil {
		return Task{}, Worker{}, err
	}
	if task.Num != 0 {
		if n.WorkerID != "" && n.WorkerID != task.WorkerID {
			var f Fields
			f.Add("taskId", "belongs to another worker than workerId names")
			return Task{}, Worker{}, f.Err()
		}
		if task.ArchivedAt != nil {
			return Task{}, Worker{}, Errorf(Conflict, "the task is archived and takes no new turns")
		}
		if task.TurnCount >= maxTurns {
			return Task{}, Worker{}, Errorf(Conflict, "the task has %d turns, the most a task can have", maxTurns)
		}
		n.WorkerID = task.WorkerID
	}
	if n.WorkerID == "" && n.NewWorker == nil {
		var f Fields
		f.Add("workerId", "is required")
		return Task{}, Worker{}, f.Err()
	}
	if n.WorkerID == "" {
		w, err := s.insertWorker(tx, n.Caller, *n.NewWorker)
		return Task{}, w, err
	}
	w, err := s.runnableWorker(ctx, tx, n.Caller, n.WorkerID)
	return task, w, err
}

// namedTask is the existing task that n is for; its Num is 0 where there is none.
func (s *Store) namedTask(ctx context.Context, q querier, n NewTurn) (t Task, err error) {
	switch {
	case n.TaskID != "":
		t, err = one(ctx, q, scanTask, `SELECT `+taskColumns+` FROM tasks WHERE id = ? AND organization_id = ?`,
			n.TaskID, n.Caller.OrganizationID)
	case n.Continue:
		t, err = one(ctx, q, scanTask, `SELECT `+taskColumns+` FROM tasks INDEXED BY tasks_by_caller
			WHERE worker_id = ? AND created_by_user_id = ? AND archived_at IS NULL ORDER BY num DESC LIMIT 1`, n.WorkerID, n.Caller.UserID)
	}
	if errors.Is(err, sql.ErrNoRows) {
		return Task{}, nil
	}
	return t, err
}

// TargetWorker gives the id of the worker a NewTurn will go to, as far as it
// exists: ” where CreateTurn would make one. It fails as CreateTurn would where
// the caller may not see it.
func (s *Store) TargetWorker(ctx context.Context, n NewTurn) (string, error) {
	task, err := s.namedTask(ctx, s, n)
	if err != nil {
		return "", err
	}
	if task.Num != 0 {
		n.WorkerID = task.WorkerID
	}
	if n.WorkerID == "" {
		return "", nil
	}
	_, err = s.visibleWorker(ctx, s, n.Caller, n.WorkerID)
	return n.WorkerID, err
}

// Lookup gives the turn that the same request made before, as n.Once tells.
func (s *Store) Lookup(ctx context.Context, once Once) (Turn, bool, error) {
	id, err := s.lookup(ctx, s, once)
	if err != nil || id == "" {
		return Turn{}, false, err
	}
	t, err := s.Turn(ctx, id)
	return t, err == nil, err
}

func (s *Store) insertTask(tx *Tx, n NewTurn, w Worker, now int64) (Task, error) {
	t := Task{ID: n.TaskID, OrganizationID: w.OrganizationID, WorkerID: w.ID, Title: n.Title}
	if t.ID == "" {
		t.ID = NewID("tsk", s.now())
	}
	if t.Title == "" {
		t.Title = TitleOf(n.Input)
	} else if r := []rune(t.Title); len(r) > MaxTitle {
		t.Title = string(r[:MaxTitle]) // a mail's subject has no other limit
	}
	var err error
	t.Num, err = tx.Insert(`INSERT INTO tasks (id, organization_id, worker_id, created_by_user_id, title, status, triggered_by,
			turn_count, unfinished, cost, duration_ms, created_at)
		VALUES (?, ?, ?, ?, ?, 'pending', ?, 1, 1, 0, 0, ?)`,
		t.ID, t.OrganizationID, t.WorkerID, nullable(n.Caller.UserID), t.Title, n.Caller.Trigger, now)
	return t, err
}

func (s *Store) insertTurn(tx *Tx, n NewTurn, task Task, w Worker, now int64) (Turn, error) {
	t := Turn{ID: NewID("trn", s.now()), TaskNum: task.Num, TaskID: task.ID, Seq: task.TurnCount, OrganizationID: w.OrganizationID,
		WorkerID: w.ID, WorkerVersion: w.Version, CreatedByUserID: n.Caller.UserID, KeyID: n.Caller.KeyID,
		TriggeredBy: n.Caller.Trigger, Input: n.Input, Budget: n.Budget, Status: Pending, CreatedAt: fromMillis(now)}
	var err error
	t.Num, err = tx.Insert(`INSERT INTO turns (id, task_num, seq, organization_id, worker_id, worker_version, created_by_user_id,
			api_key_id, triggered_by, input, budget, status, ready, claims, interruptions, abort_requested, output_text, model, steps,
			input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, reasoning_tokens, model_cost, tool_cost, duration_ms, created_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'pending', ?, 0, 0, 0, '', '', 0, 0, 0, 0, 0, 0, 0, 0, 0, ?)`,
		t.ID, t.TaskNum, t.Seq, t.OrganizationID, t.WorkerID, t.WorkerVersion, nullable(t.CreatedByUserID),
		nullable(t.KeyID), t.TriggeredBy, t.Input, t.Budget, task.Unfinished == 0, now)
	return t, err
}

// TurnEnded reports whether the turn with that id has ended.
func (s *Store) TurnEnded(ctx context.Context, id string) (bool, error) {
	ended, err := one(ctx, s, scanInt, `SELECT completed_at IS NOT NULL FROM turns WHERE id = ?`, id)
	return ended == 1, notFound(err, "turn")
}

// TurnAfter gives the turn of a task that comes after seq, or a NotFound error.
func (s *Store) TurnAfter(ctx context.Context, taskNum, seq int64) (Turn, error) {
	t, err := one(ctx, s, scanTurn, `SELECT `+turnColumns+` FROM turns WHERE task_num = ? AND seq > ? ORDER BY seq LIMIT 1`, taskNum, seq)
	return t, notFound(err, "turn")
}

// TurnsSince lists the turns of a worker from num on, at most the newest limit of
// them, in the order of their creation.
func (s *Store) TurnsSince(ctx context.Context, workerID string, num int64, limit int) ([]Turn, error) {
	turns, err := all(ctx, s, scanTurn, `SELECT `+turnColumns+` FROM turns WHERE worker_id = ? AND num >= ? ORDER BY num DESC LIMIT ?`,
		workerID, num, limit)
	slices.Reverse(turns)
	return turns, err
}
