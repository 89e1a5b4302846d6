package view

import (
	"encoding/json"

	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/people"
)

// A Task is a task as JSON.
type Task struct {
	ID              string         `json:"id"`
	CompletedAt     *string        `json:"completedAt"`
	CreatedAt       string         `json:"createdAt"`
	CreatedByUserID *string        `json:"createdByUserId"`
	OrganizationID  string         `json:"organizationId"`
	Status          store.Status   `json:"status"`
	Title           string         `json:"title"`
	Totals          Totals         `json:"totals"`
	TriggeredBy     people.Trigger `json:"triggeredBy"`
	URL             string         `json:"url"`
	WaitingFor      *Waiting       `json:"waitingFor"`
	WorkerID        string         `json:"workerId"`
}

// Waiting describes the reason why a suspended turn waits.
type Waiting struct {
	For     store.WaitFor `json:"for"`
	Reason  *string       `json:"reason"`  // the reason, as text for users
	RetryAt *string       `json:"retryAt"` // time of the automatic retry
}

// WaitingOf returns the view of a Wait, nil for nil.
func WaitingOf(w *store.Wait) *Waiting {
	if w == nil {
		return nil
	}
	return &Waiting{For: w.For, Reason: Optional(ValidText(w.Reason)), RetryAt: OptionalTime(w.RetryAt)}
}

// Totals are the sums over the turns of a task.
type Totals struct {
	Credits    float64 `json:"credits"`
	DurationMs int64   `json:"durationMs"`
	TurnCount  int64   `json:"turnCount"`
}

// Task returns the view of a task.
func (b Builder) Task(t store.Task) Task {
	return Task{ID: t.ID, CompletedAt: OptionalTime(t.CompletedAt), CreatedAt: Timestamp(t.CreatedAt),
		CreatedByUserID: Optional(t.CreatedByUserID), OrganizationID: t.OrganizationID, Status: t.Status,
		Title: t.Title, Totals: Totals{db.Credits(t.Cost), t.Duration.Milliseconds(), t.TurnCount},
		TriggeredBy: t.TriggeredBy, URL: b.TaskURL(t.OrganizationID, t.ID), WaitingFor: WaitingOf(t.Wait), WorkerID: t.WorkerID}
}

// A Turn is a turn as JSON.
type Turn struct {
	ID               string          `json:"id"`
	TaskID           string          `json:"taskId"`
	Seq              int64           `json:"seq"`
	Role             string          `json:"role"`
	Status           store.Status    `json:"status"`
	Input            string          `json:"input"`
	OutputText       string          `json:"outputText"`
	InputTokens      int64           `json:"inputTokens"`
	OutputTokens     int64           `json:"outputTokens"`
	Credits          float64         `json:"credits"`
	DurationMs       int64           `json:"durationMs"`
	StartedAt        string          `json:"startedAt"`
	CompletedAt      *string         `json:"completedAt"`
	StructuredOutput json.RawMessage `json:"structuredOutput"`
	WaitingFor       *Waiting        `json:"waitingFor"`
	WorkerVersion    int64           `json:"workerVersion"`
}

// TurnOf returns the view of a turn.
func TurnOf(t store.Turn) Turn {
	started := t.CreatedAt // before the turn runs: the interface does not allow null here
	if t.StartedAt != nil {
		started = *t.StartedAt
	}
	return Turn{ID: t.ID, TaskID: t.TaskID, Seq: t.Seq, Role: roleAssistant, Status: t.Status,
		Input: t.Input, OutputText: t.OutputText,
		InputTokens: t.Usage.InputTokens, OutputTokens: t.Usage.OutputTokens, Credits: db.Credits(t.Usage.Cost()),
		DurationMs: t.Duration.Milliseconds(), StartedAt: Timestamp(started), CompletedAt: OptionalTime(t.CompletedAt),
		StructuredOutput: t.StructuredOutput, WaitingFor: WaitingOf(t.Wait),
		WorkerVersion: t.WorkerVersion}
}

// Usage is the usage of a turn so far.
type Usage struct {
	CacheReadTokens  int64   `json:"cacheReadTokens"`
	CacheWriteTokens int64   `json:"cacheWriteTokens"`
	CostUsd          float64 `json:"costUsd"`
	InputTokens      int64   `json:"inputTokens"`
	OutputTokens     int64   `json:"outputTokens"`
	ReasoningTokens  int64   `json:"reasoningTokens"`
	Steps            int64   `json:"steps"`
	TotalTokens      int64   `json:"totalTokens"`
	Credits          float64 `json:"credits"`
	DurationMs       int64   `json:"durationMs"`
}

// UsageOf returns the usage of a turn.
func UsageOf(t store.Turn) Usage {
	u := t.Usage
	return Usage{
		CacheReadTokens:  u.CacheReadTokens,
		CacheWriteTokens: u.CacheWriteTokens,
		CostUsd:          db.Dollars(u.Cost()),
		InputTokens:      u.InputTokens,
		OutputTokens:     u.OutputTokens,
		ReasoningTokens:  u.ReasoningTokens,
		Steps:            u.Steps,
		TotalTokens:      u.InputTokens + u.OutputTokens,
		Credits:          db.Credits(u.Cost()),
		DurationMs:       t.Duration.Milliseconds(),
	}
}
