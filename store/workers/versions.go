package workers

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"journeyman/store/db"
	"journeyman/store/people"
)

// MaxVersions is the number of versions that a worker may have.
const MaxVersions = 10_000

// A WorkerContent is the part of a worker that a turn keeps from its acceptance on. Every
// change of it is a new version.
type WorkerContent struct {
	Instructions string
	OutputSchema json.RawMessage // nil for free text
	Settings     Settings
}

// A Version is the content of a worker between two changes. It never changes.
type Version struct {
	Number       int64 // 1 for the first
	UserID       string
	UserEmail    string // of UserID; both are "" if the author of the version was not recorded
	RestoredFrom int64  // the version whose content this one repeats; 0 for none
	CreatedAt    time.Time
	Changed      []string // fields that differ from the version before; nil for the first
	WorkerContent
}

// SetContent replaces the content of w.
func (w *Worker) SetContent(c WorkerContent) {
	w.Instructions, w.OutputSchema, w.Settings = c.Instructions, c.OutputSchema, c.Settings
}

// Content returns the content of the worker's newest version.
func (w Worker) Content() WorkerContent {
	return WorkerContent{Instructions: w.Instructions, OutputSchema: w.OutputSchema, Settings: w.Settings}
}

// Changes returns the names of the fields in which c differs from the content before. They are
// the names of a worker's fields in JSON.
func (c WorkerContent) Changes(before WorkerContent) (fields []string) {
	now, old := c.Settings.listed(), before.Settings.listed()
	for _, f := range []struct {
		name string
		same bool
	}{
		{"instructions", c.Instructions == before.Instructions},
		{"outputSchema", bytes.Equal(c.OutputSchema, before.OutputSchema)},
		{"model", now.Model == old.Model},
		{"approvalTools", slices.Equal(now.ApprovalTools, old.ApprovalTools)},
		{"mcpTools", slices.Equal(now.MCPTools, old.MCPTools)},
		{"tools", now.Tools.Equal(old.Tools)},
		{"strangerTools", now.StrangerTools.Equal(old.StrangerTools)},
		{"effort", now.Effort == old.Effort},
		{"temperature", EqualNumbers(now.Temperature, old.Temperature)},
	} {
		if !f.same {
			fields = append(fields, f.name)
		}
	}
	return fields
}

// Patch returns a patch that gives a worker this content.
func (c WorkerContent) Patch() Patch {
	s := c.Settings.listed()
	return Patch{Instructions: &c.Instructions, OutputSchema: &c.OutputSchema, Model: &s.Model,
		ApprovalTools: &s.ApprovalTools, MCPTools: &s.MCPTools, Tools: &s.Tools, StrangerTools: &s.StrangerTools,
		Effort: &s.Effort, Temperature: &s.Temperature}
}

// Revision returns a name for the present state of the worker's fields. It changes with every
// change of a field. It begins with the number of the version.
func (w Worker) Revision() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %s %s", w.Title, w.Summary, w.Visibility, w.Workspace))
	if w.KeepTaskDays != nil { // so that workers without it keep their revision
		sum = sha256.Sum256(fmt.Appendf(sum[:], " %d", *w.KeepTaskDays))
	}
	if w.Origin == TaskOrigin { // so that all other workers keep their revision
		sum = sha256.Sum256(fmt.Appendf(sum[:], " %s", w.Origin))
	}
	return fmt.Sprintf("v%d-%s", w.Version, hex.EncodeToString(sum[:6]))
}

// expect returns a Stale error unless the worker has one of these revisions. nil stands for
// every revision.
func (w Worker) expect(revisions []string) error {
	if revisions == nil || slices.Contains(revisions, w.Revision()) {
		return nil
	}
	return db.Errorf(db.Stale, "the worker has changed since you read it: its version is %d now; "+
		"read it again, and send your change with the new ETag", w.Version)
}

// insertVersion stores the content of w as its version w.Version, made by the caller.
func (s *Store) insertVersion(tx db.Tx, c people.Caller, w Worker, restoredFrom int64) error {
	if w.Version > MaxVersions {
		return db.Errorf(db.Conflict, "the worker has %d versions, and can have no more: "+
			"export it and import it as a new worker", MaxVersions)
	}
	if err := s.charge(tx, w.OrganizationID, int64(len(w.Instructions)+len(w.OutputSchema))); err != nil {
		return err
	}
	set := w.Settings
	_, err := tx.Exec(`INSERT INTO worker_versions (worker_id, version, instructions, output_schema, created_at,
			user_id, restored_from, `+SettingsColumns+`)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		w.ID, w.Version, w.Instructions, db.Nullable(string(w.OutputSchema)), w.UpdatedAt.UnixMilli(),
		db.Nullable(c.UserID), db.Nullable(restoredFrom),
		db.Nullable(set.Model), nameList(set.ApprovalTools), nameList(set.MCPTools), set.Tools, set.StrangerTools,
		db.Nullable(string(set.Effort)), set.Temperature)
	return err
}

const selectVersions = `SELECT v.version, coalesce(v.user_id, ''), coalesce(u.email, ''), coalesce(v.restored_from, 0),
	v.created_at, v.instructions, v.output_schema, ` + SettingsColumns + `
	FROM worker_versions v LEFT JOIN users u ON u.id = v.user_id WHERE v.worker_id = ?`

func scanVersion(row db.Scanner) (v Version, err error) {
	err = row.Scan(append([]any{&v.Number, &v.UserID, &v.UserEmail, &v.RestoredFrom, db.AsTime(&v.CreatedAt),
		&v.Instructions, db.AsJSON(&v.OutputSchema)}, v.Settings.Columns()...)...)
	return v, err
}

// WorkerVersions returns a page of the versions of a worker that the caller may see, newest
// first, and the cursor of the next page, which is empty after the last.
func (s *Store) WorkerVersions(ctx context.Context, c people.Caller, id, cursor string, limit int) (
	list []Version, next string, err error) {
	of := db.ScopeOf("versions", id)
	var f db.Fields
	below := of.ReadNum(&f, cursor)
	if err := f.Err(); err != nil {
		return nil, "", err
	}
	if _, err := Visible(ctx, s.db, c, id); err != nil {
		return nil, "", err
	}
	limit = db.PageLimit(limit)
	// One more row than the page has: the last version is compared with the one before it.
	list, err = db.All(ctx, s.db, scanVersion, selectVersions+` AND v.version < ? ORDER BY v.version DESC LIMIT ?`,
		id, below, limit+1)
	if err != nil {
		return nil, "", err
	}
	for i := range list[:max(0, len(list)-1)] {
		list[i].Changed = list[i].Changes(list[i+1].WorkerContent)
	}
	list, next = db.Cut(list, limit, of, func(v Version) []any { return []any{v.Number} })
	return list, next, nil
}

// WorkerVersion returns a version of a worker that the caller may see.
func (s *Store) WorkerVersion(ctx context.Context, c people.Caller, id string, number int64) (v Version,
	err error) {
	if _, err := Visible(ctx, s.db, c, id); err != nil {
		return v, err
	}
	pair, err := db.All(ctx, s.db, scanVersion, selectVersions+` AND v.version BETWEEN ? AND ? ORDER BY v.version DESC`,
		id, number-1, number)
	if err != nil {
		return v, err
	}
	if len(pair) == 0 || pair[0].Number != number {
		return v, noVersion(number)
	}
	v = pair[0]
	if len(pair) == 2 {
		v.Changed = v.Changes(pair[1].WorkerContent)
	}
	return v, nil
}

// noVersion returns the error for a version that a worker does not have.
func noVersion(number int64) error {
	return db.Errorf(db.NotFound, "the worker has no version %d", number)
}
