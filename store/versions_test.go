package store_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/matryer/is"

	"journeyman/store/db"
	"journeyman/store/people"
	"journeyman/store/workers"
)

// TestVersions changes a worker in every way. Each change of its content creates a version, and
// other changes do not.
func TestVersions(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	is := is.New(t)
	c, id := f.owner.Caller, f.worker.ID
	change := func(p workers.Patch) workers.Worker {
		t.Helper()
		w, err := f.Workers.UpdateWorker(t.Context(), c, id, p)
		is.NoErr(err)
		return w
	}
	schema := json.RawMessage(`{"type":"object"}`)
	is.Equal(change(workers.Patch{Instructions: new("Help well.")}).Version, int64(2))
	is.Equal(change(workers.Patch{Instructions: new("Help well.")}).Version, int64(2)) // the same content again
	is.Equal(change(workers.Patch{Title: new("Clerk"), Summary: new("s")}).Version, int64(2))
	is.Equal(change(workers.Patch{OutputSchema: &schema, Model: new("offline")}).Version, int64(3))
	is.Equal(change(workers.Patch{ApprovalTools: &[]string{"shell"}, Tools: &workers.ToolRules{{Tool: "shell"}}}).Version,
		int64(4))
	effort, warm := workers.Effort("low"), new(0.5)
	is.Equal(change(workers.Patch{Effort: &effort, Temperature: &warm}).Version, int64(5))
	equal := new(0.5)
	is.Equal(change(workers.Patch{Effort: &effort, Temperature: &equal}).Version, int64(5)) // the same content again

	list, next, err := f.Workers.WorkerVersions(t.Context(), c, id, "", 10)
	is.NoErr(err)
	is.Equal(next, "")
	is.Equal(len(list), 5)
	is.Equal(list[0].Changed, []string{"effort", "temperature"})
	is.Equal(*list[0].Settings.Temperature, 0.5)
	is.Equal(list[1].Changed, []string{"approvalTools", "tools"})
	is.Equal(list[2].Changed, []string{"outputSchema", "model"})
	is.Equal(list[3].Changed, []string{"instructions"})
	is.Equal(len(list[4].Changed), 0) // the first version changes nothing
	for _, v := range list {
		is.Equal(v.UserEmail, "ann@acme.test")
	}
	first, err := f.Workers.WorkerVersion(t.Context(), c, id, 1)
	is.NoErr(err)
	is.Equal(first.Instructions, "Help.")

	w, _, err := f.Workers.RestoreVersion(t.Context(), c, id, 1, nil, db.IdempotencyKey{})
	is.NoErr(err)
	is.Equal(w.Version, int64(6))
	is.Equal(w.Settings.Effort, workers.Effort(""))
	is.True(w.Settings.Temperature == nil)
	is.Equal(w.Instructions, "Help.")
	is.Equal(w.OutputSchema, json.RawMessage(nil))
	is.Equal(w.Settings.Model, "")
	is.Equal(w.Settings.Tools, nil) // every tool again
	is.Equal(w.Title, "Clerk")      // a version does not contain the title
	sixth, err := f.Workers.WorkerVersion(t.Context(), c, id, 6)
	is.NoErr(err)
	is.Equal(sixth.RestoredFrom, int64(1))
	w, _, err = f.Workers.RestoreVersion(t.Context(), c, id, 1, nil, db.IdempotencyKey{})
	is.NoErr(err)
	is.Equal(w.Version, int64(6)) // it already has that content
}

// TestVersionAccess requests versions as callers without access, and versions that do not exist.
func TestVersionAccess(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	member := f.caller("Acme", "mo@acme.test", people.RoleMember).Caller
	admin := f.caller("Acme", "ada@acme.test", people.RoleAdmin).Caller
	other := f.caller("Globex", "sam@globex.test", people.RoleOwner).Caller
	private := f.newWorker(f.owner, workers.NewWorker{Visibility: workers.Private})
	gone := f.newWorker(f.owner, workers.NewWorker{})
	is.New(t).NoErr(f.DeleteWorker(t.Context(), f.owner.Caller, gone.ID))
	for name, tt := range map[string]struct {
		caller        people.Caller
		worker        string
		number        int64
		read, restore db.Kind
	}{
		"creator":              {f.owner.Caller, f.worker.ID, 1, 0, 0},
		"member":               {member, f.worker.ID, 1, 0, db.Forbidden},
		"admin":                {admin, f.worker.ID, 1, 0, db.Forbidden},
		"another organization": {other, f.worker.ID, 1, db.Forbidden, db.Forbidden},
		"not invited":          {member, private.ID, 1, db.Forbidden, db.Forbidden},
		"deleted":              {f.owner.Caller, gone.ID, 1, db.NotFound, db.NotFound},
		"no such version":      {f.owner.Caller, f.worker.ID, 2, db.NotFound, db.NotFound},
		"version 0":            {f.owner.Caller, f.worker.ID, 0, db.NotFound, db.NotFound},
		"not invited, none":    {member, private.ID, 7, db.Forbidden, db.Forbidden},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			kindIs := func(err error, want db.Kind) {
				t.Helper()
				is.True(want == 0 && err == nil || want != 0 && db.IsKind(err, want)) // the kind of the refusal
			}
			_, err := f.Workers.WorkerVersion(t.Context(), tt.caller, tt.worker, tt.number)
			kindIs(err, tt.read)
			_, _, err = f.Workers.RestoreVersion(t.Context(), tt.caller, tt.worker, tt.number, nil, db.IdempotencyKey{})
			kindIs(err, tt.restore)
			if tt.read != db.NotFound || tt.worker == gone.ID {
				_, _, err = f.Workers.WorkerVersions(t.Context(), tt.caller, tt.worker, "", 5)
				kindIs(err, tt.read)
			}
		})
	}
}

// TestVersionPages reads the list of versions in pages, and checks that the cursor of another
// worker is refused.
func TestVersionPages(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	is := is.New(t)
	for i := range 6 {
		_, err := f.Workers.UpdateWorker(t.Context(), f.owner.Caller, f.worker.ID,
			workers.Patch{Instructions: new(fmt.Sprint(i))})
		is.NoErr(err)
	}
	var cursor string
	ids := walk(t, func(v workers.Version) string {
		is.Equal(len(v.Changed) == 1, v.Number > 1) // also at the end of a page
		return fmt.Sprint(v.Number)
	}, func(at string) ([]workers.Version, string, error) {
		list, next, err := f.Workers.WorkerVersions(t.Context(), f.owner.Caller, f.worker.ID, at, 3)
		if next != "" {
			cursor = next
		}
		return list, next, err
	})
	is.Equal(ids, []string{"7", "6", "5", "4", "3", "2", "1"})
	other := f.newWorker(f.owner, workers.NewWorker{})
	_, _, err := f.Workers.WorkerVersions(t.Context(), f.owner.Caller, other.ID, cursor, 3)
	is.True(db.IsKind(err, db.Invalid)) // a cursor belongs to one list
}

// TestStaleChange lets two users change a worker that both have read.
func TestStaleChange(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	is := is.New(t)
	c, id, seen := f.owner.Caller, f.worker.ID, f.worker.Revision()
	w, err := f.Workers.UpdateWorker(t.Context(), c, id, workers.Patch{Title: new("A"), Revisions: []string{"v9-0", seen}})
	is.NoErr(err)
	is.True(w.Revision() != seen) // the title is part of the revision
	for _, p := range []workers.Patch{
		{Instructions: new("B"), Revisions: []string{seen}},
		{Title: new("B"), Revisions: []string{seen}},
		{Title: new("B"), Revisions: []string{}}, // no revision matches
	} {
		_, err = f.Workers.UpdateWorker(t.Context(), c, id, p)
		is.True(db.IsKind(err, db.Stale)) // the worker has changed since it was read
	}
	_, _, err = f.Workers.RestoreVersion(t.Context(), c, id, 1, []string{seen}, db.IdempotencyKey{})
	is.True(db.IsKind(err, db.Stale)) // a restoration is a change, too
	now, err := f.Workers.Worker(t.Context(), c, id)
	is.NoErr(err)
	is.Equal(now.Title, "A")
	is.Equal(now.Instructions, "Help.")
}
