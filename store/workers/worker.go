package workers

import (
	"encoding/json"
	"time"
	"unicode/utf8"

	"journeyman/store/db"
)

// A Visibility decides which members of the organization see a worker.
type Visibility string

// A Public worker is for every member. A Private one is for its creator, the invited
// members, and the organization's Owners and Admins.
const (
	Public  Visibility = "public"
	Private Visibility = "private"
)

// An Origin is the way in which a worker was created.
type Origin string

// A worker of CreatedOrigin was created or kept by somebody. A worker of TaskOrigin was made by a task
// that named no worker. Pages and MCP clients do not list it.
const (
	CreatedOrigin Origin = "created"
	TaskOrigin    Origin = "task"
)

// Valid reports whether o is one of the origins.
func (o Origin) Valid() bool { return o == CreatedOrigin || o == TaskOrigin }

// originRule is the message for an invalid origin.
const originRule = "must be created or task"

// The limits of a worker's fields, in characters (interface, Limits).
const (
	MaxInstructions = 20_000
	MaxPrompt       = 10_000
	MaxSummary      = 80
	MaxTitle        = 200

	MaxKeepTaskDays = 36_500 // in days
)

// A Worker is the newest version of an agent definition.
type Worker struct {
	Num            int64 // of the row; 0 before it is stored
	ID             string
	OrganizationID string
	UserID         string // the creator
	Title          string
	Summary        string
	Visibility     Visibility
	Origin         Origin
	Workspace      WorkspaceKind
	KeepTaskDays   *int64 // days for which ended tasks are kept; 0: for ever; nil: the server's setting
	Version        int64
	Instructions   string
	OutputSchema   json.RawMessage // nil for free text
	Settings       Settings
	CreatedAt      time.Time
	UpdatedAt      time.Time
	DeletedAt      *time.Time

	CreditCap *float64    // of its organization; only Runnable and Claimable set it; nil for none
	Claim     *ClaimFacts // only Claimable sets it
}

// ClaimFacts are the data that a claim of a worker's turn needs besides the turn and the worker.
type ClaimFacts struct {
	Organization int64 // num
	HasSecrets   bool  // whether the worker or its organization has secrets
}

const workerColumns = `w.num, w.id, w.organization_id, w.user_id, w.title, w.summary, w.visibility, w.origin,
	w.workspace, w.keep_task_days, w.version, v.instructions, v.output_schema, w.created_at, w.updated_at,
	w.deleted_at, ` + SettingsColumns

// SelectWorker reads the newest version of the worker with an id, for Scan.
const SelectWorker = `SELECT ` + workerColumns + `
	FROM workers w JOIN worker_versions v ON v.worker_id = w.id AND v.version = w.version WHERE w.id = ?`

// Scan reads a row of SelectWorker.
func Scan(row db.Scanner) (w Worker, err error) {
	err = row.Scan(append([]any{&w.Num, &w.ID, &w.OrganizationID, &w.UserID, &w.Title, &w.Summary, &w.Visibility,
		&w.Origin, &w.Workspace, &w.KeepTaskDays, &w.Version, &w.Instructions, db.AsJSON(&w.OutputSchema),
		db.AsTime(&w.CreatedAt), db.AsTime(&w.UpdatedAt), db.AsTimeOrNil(&w.DeletedAt)}, w.Settings.Columns()...)...)
	return w, err
}

// NewWorker holds the fields of a worker to create. The caller has checked that
// OutputSchema can be used.
type NewWorker struct {
	ID           string // from NewID("wrk", ...), or '' for a generated one
	Title        string // '' for a generated one
	Summary      string
	Instructions string
	Visibility   Visibility    // '' for Public
	Origin       Origin        // '' for CreatedOrigin
	Workspace    WorkspaceKind // '' for SharedWorkspace
	KeepTaskDays *int64        // nil: as the server
	OutputSchema json.RawMessage
	Settings     Settings
}

// A Patch holds the fields of a worker to change. A nil field stays as it is.
type Patch struct {
	Title, Summary, Instructions *string
	Visibility                   *Visibility
	Origin                       *Origin          // CreatedOrigin keeps a worker that a task made
	OutputSchema                 *json.RawMessage // to nil: free text
	Model                        *string          // to '': the server's
	ApprovalTools, MCPTools      *[]string
	Tools                        *ToolRules // to nil: every tool
	StrangerTools                *ToolRules // to nil: the runner's default
	Effort                       *Effort    // to '': the provider's default
	Temperature                  **float64  // to nil: the provider's default
	Workspace                    *WorkspaceKind
	KeepTaskDays                 **int64 // to nil: as the server

	// UpdateWorker returns Stale unless Revisions contains the worker's present revision. nil
	// permits every revision.
	Revisions []string
}

// Check adds to f the fields of p that exceed their limits. Whether the model, the tools
// and the schema can be used is not checked here.
func (p Patch) Check(f *db.Fields) {
	if p.Instructions != nil {
		f.Check(utf8.RuneCountInString(*p.Instructions) <= MaxInstructions, "instructions",
			"must have at most %d characters", MaxInstructions)
	}
	if p.Summary != nil {
		db.CheckLine(f, "summary", *p.Summary, MaxSummary)
	}
	if p.Title != nil {
		db.CheckName(f, "title", *p.Title, MaxTitle)
	}
	f.Check(p.Visibility == nil || *p.Visibility == Public || *p.Visibility == Private, "visibility",
		"must be public or private")
	f.Check(p.Origin == nil || p.Origin.Valid(), "origin", originRule)
	f.Check(p.Workspace == nil || *p.Workspace == SharedWorkspace || *p.Workspace == TaskWorkspace, "workspace",
		"must be shared or task")
	if p.KeepTaskDays != nil && *p.KeepTaskDays != nil {
		f.Check(**p.KeepTaskDays >= 0 && **p.KeepTaskDays <= MaxKeepTaskDays, "keepTaskDays",
			"must be an integer from 0 to %d", MaxKeepTaskDays)
	}
}

// New returns a new worker with the fields of p. Its origin is CreatedOrigin.
func (p Patch) New() (n NewWorker) {
	db.Set(&n.Title, p.Title)
	db.Set(&n.Summary, p.Summary)
	db.Set(&n.Instructions, p.Instructions)
	db.Set(&n.Visibility, p.Visibility)
	db.Set(&n.Workspace, p.Workspace)
	db.Set(&n.KeepTaskDays, p.KeepTaskDays)
	db.Set(&n.OutputSchema, p.OutputSchema)
	p.apply(&n.Settings)
	return n
}

// Apply sets the fields of w that p names.
func (p Patch) Apply(w *Worker) {
	db.Set(&w.Title, p.Title)
	db.Set(&w.Summary, p.Summary)
	db.Set(&w.Visibility, p.Visibility)
	db.Set(&w.Origin, p.Origin)
	db.Set(&w.Workspace, p.Workspace)
	db.Set(&w.KeepTaskDays, p.KeepTaskDays)
	db.Set(&w.Instructions, p.Instructions)
	db.Set(&w.OutputSchema, p.OutputSchema)
	p.apply(&w.Settings)
}

// apply changes the settings that p names.
func (p Patch) apply(s *Settings) {
	db.Set(&s.Model, p.Model)
	db.Set(&s.ApprovalTools, p.ApprovalTools)
	db.Set(&s.MCPTools, p.MCPTools)
	db.Set(&s.Tools, p.Tools)
	db.Set(&s.StrangerTools, p.StrangerTools)
	db.Set(&s.Effort, p.Effort)
	db.Set(&s.Temperature, p.Temperature)
}

// EqualDays reports whether two settings of KeepTaskDays are equal.
func EqualDays(a, b *int64) bool { return EqualNumbers(a, b) }

// EqualNumbers reports whether two numbers are equal, or both missing.
func EqualNumbers[T int64 | float64](a, b *T) bool { return a == b || a != nil && b != nil && *a == *b }

// A WorkspaceKind decides which folder new tasks of a worker get.
type WorkspaceKind string

// SharedWorkspace is one folder for all tasks of members. TaskWorkspace is a folder for
// each task. With both, a task that a stranger began has a folder of its own.
const (
	SharedWorkspace WorkspaceKind = "shared"
	TaskWorkspace   WorkspaceKind = "task"
)
