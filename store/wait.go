package store

import (
	"encoding/json"
	"time"

	"journeyman/store/db"
)

// A WaitFor is the kind of event that a suspended turn waits for.
type WaitFor string

// The kinds of events.
const (
	WaitForPerson WaitFor = "person" // a decision on a tool call, or an answer
	WaitForModel  WaitFor = "model"  // its provider, which is down or has asked for a pause
	WaitForWorker WaitFor = "worker" // a turn that it has started
)

func (w WaitFor) valid() bool { return w == WaitForPerson || w == WaitForModel || w == WaitForWorker }

// A Wait describes why a turn is suspended.
type Wait struct {
	For     WaitFor
	Reason  string     // for people, such as the provider's error; usually ""
	Until   time.Time  // when ExpireSuspended ends the wait
	RetryAt *time.Time // when the turn returns to the queue; nil unless For is WaitForModel
}

// waitColumns are the columns of turns that describe a suspension, and the failed model
// calls that led to one.
const waitColumns = `waits_for, coalesce(wait_reason, ''), suspended_until, retry_at, failing_since, failed_calls`

// A scannedWait is a Wait as waitColumns have it.
type scannedWait struct {
	waitsFor *string
	Wait
}

// wait returns the Wait, or nil for a turn that is not suspended.
func (w *scannedWait) wait() *Wait {
	if w.waitsFor == nil {
		return nil
	}
	w.For = WaitFor(*w.waitsFor)
	return &w.Wait
}

// taskWait selects the Wait of a task's suspended turn as JSON, or NULL if there is none.
// Only queued turns follow a suspended turn, so the search goes back from the newest turn.
const taskWait = `CASE WHEN waits_for IS NULL THEN NULL ELSE (SELECT w FROM (SELECT task_num k, seq q,
	waits_for f, json_object('For', waits_for, 'Reason', coalesce(wait_reason, ''), 'Until', suspended_until,
		'RetryAt', retry_at) w FROM turns) AS waits WHERE k = num AND f IS NOT NULL ORDER BY q DESC LIMIT 1) END`

// asWait scans the column taskWait.
type asWait struct{ to **Wait }

// Scan accepts JSON, and NULL as nil.
func (a asWait) Scan(src any) error {
	*a.to = nil
	text, ok := src.(string)
	if !ok {
		return nil
	}
	// JSON has no times, so the columns are in milliseconds, as in the table.
	var w struct {
		For     WaitFor
		Reason  string
		Until   int64
		RetryAt *int64
	}
	if err := json.Unmarshal([]byte(text), &w); err != nil {
		return err
	}
	*a.to = &Wait{For: w.For, Reason: w.Reason, Until: db.FromMillis(w.Until)}
	if w.RetryAt != nil {
		at := db.FromMillis(*w.RetryAt)
		(*a.to).RetryAt = &at
	}
	return nil
}
