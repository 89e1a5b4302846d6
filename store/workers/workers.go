package workers

import (
	"cmp"
	"context"
	"slices"

	"journeyman/store/db"
	"journeyman/store/people"
)

// CreateWorker creates a worker of the caller. If a request with the same key has created
// one before, it returns that worker, and replayed is true.
func (s *Store) CreateWorker(ctx context.Context, c people.Caller, n NewWorker,
	key db.IdempotencyKey) (w Worker, replayed bool, err error) {
	return db.CreateOnce(ctx, s.db, key, func(tx db.Tx, id string) (Worker, error) {
		w, err := db.One(ctx, tx, Scan, SelectWorker, id)
		return w, db.NoRecord(err, "worker")
	}, func(tx db.Tx) (Worker, string, error) {
		w, err := s.Insert(tx, c, n)
		return w, w.ID, err
	})
}

// Insert stores a new worker of the caller, in a transaction of CreateWorker or of an import.
func (s *Store) Insert(tx db.Tx, c people.Caller, n NewWorker) (Worker, error) {
	n.ID = cmp.Or(n.ID, db.NewID("wrk", s.db.Now()))
	n.Title = cmp.Or(n.Title, generatedTitle(n.ID))
	s.db.MakeStorable(&n.Title, &n.Summary, &n.Instructions)
	n.Visibility = cmp.Or(n.Visibility, Public)
	n.Origin = cmp.Or(n.Origin, CreatedOrigin)
	n.Workspace = cmp.Or(n.Workspace, SharedWorkspace)
	now := s.db.Millis()
	s.db.Notify(tx, c.OrganizationID, db.ChangedWorkers)
	w := Worker{ID: n.ID, OrganizationID: c.OrganizationID, UserID: c.UserID, Title: n.Title, Summary: n.Summary,
		Visibility: n.Visibility, Origin: n.Origin, Workspace: n.Workspace, KeepTaskDays: n.KeepTaskDays,
		Version: 1, Instructions: n.Instructions, OutputSchema: n.OutputSchema, Settings: n.Settings.listed(),
		CreatedAt: db.FromMillis(now), UpdatedAt: db.FromMillis(now)}
	var err error
	w.Num, err = tx.Insert(`INSERT INTO workers (id, organization_id, user_id, title, summary, visibility, origin,
			workspace, keep_task_days, version, created_at, updated_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 1, ?, ?)`,
		w.ID, w.OrganizationID, w.UserID, w.Title, w.Summary, w.Visibility, w.Origin, w.Workspace, w.KeepTaskDays,
		now, now)
	if err != nil {
		return w, err
	}
	return w, s.insertVersion(tx, c, w, 0)
}

// Worker returns a worker that the caller may see. A deleted worker is NotFound.
func (s *Store) Worker(ctx context.Context, c people.Caller, id string) (Worker, error) {
	return Visible(ctx, s.db, c, id)
}

// UpdateWorker changes a worker. It returns Forbidden unless the caller created it, NotFound
// if it was deleted, and Stale if it has another revision than the patch expects. Turns that
// were accepted before keep their instructions, schema and settings.
func (s *Store) UpdateWorker(ctx context.Context, c people.Caller, id string, p Patch) (w Worker, err error) {
	if err := s.gate.RoomIn(ctx); err != nil {
		return w, err
	}
	err = s.db.Write(ctx, func(tx db.Tx) error {
		w, err = s.changeWorker(ctx, tx, c, id, p, 0)
		return err
	})
	return w, err
}

// changeWorker applies a patch. restoredFrom is the version that the patch repeats, or 0.
func (s *Store) changeWorker(ctx context.Context, tx db.Tx, c people.Caller, id string, p Patch,
	restoredFrom int64) (Worker, error) {
	// The worker is read in the transaction, so that two concurrent patches of different fields are
	// both kept.
	w, err := Own(ctx, tx, c, id)
	if err != nil {
		return w, err
	}
	if err := w.expect(p.Revisions); err != nil {
		return w, err
	}
	was := w
	if p.Origin != nil && *p.Origin == TaskOrigin && w.Origin != TaskOrigin {
		return w, db.Fields{{Path: "origin", Message: "cannot become task: somebody created or kept the worker"}}.Err()
	}
	p.Apply(&w)
	s.db.MakeStorable(&w.Title, &w.Summary, &w.Instructions)
	now := s.db.Millis()
	w.UpdatedAt = db.FromMillis(now)
	// A patch that repeats the content creates no version, because the history shows only changes.
	if len(w.Content().Changes(was.Content())) == 0 {
		// Equal rules may be in another order. The worker keeps the order of the version.
		w.SetContent(was.Content())
	} else {
		// Accepted turns refer to the old version, so that row never changes.
		w.Version++
		if err := s.insertVersion(tx, c, w, restoredFrom); err != nil {
			return w, err
		}
	}
	s.db.Notify(tx, c.OrganizationID, db.ChangedWorkers)
	_, err = tx.Exec(`UPDATE workers SET title = ?, summary = ?, visibility = ?, origin = ?, workspace = ?,
		keep_task_days = ?, version = ?, updated_at = ? WHERE id = ?`,
		w.Title, w.Summary, w.Visibility, w.Origin, w.Workspace, w.KeepTaskDays, w.Version, now, id)
	if err != nil {
		return w, err
	}
	return w, s.auditWorker(tx, c, was, w)
}

// auditWorker adds to the audit log the changes of a worker that matter for security.
func (s *Store) auditWorker(tx db.Tx, c people.Caller, was, w Worker) error {
	rules := func(l ToolRules) any {
		if l == nil {
			return "default"
		}
		return l.Words()
	}
	// Other changes, such as a new title, extend no rights. Their entries would only hide the
	// important ones.
	old, now := was.Settings, w.Settings
	for _, change := range []struct {
		action   string
		changed  bool
		from, to any
	}{
		{"worker.visibility", was.Visibility != w.Visibility, was.Visibility, w.Visibility},
		{"worker.keepTasks", !EqualDays(was.KeepTaskDays, w.KeepTaskDays), was.KeepTaskDays, w.KeepTaskDays},
		{"worker.approvals", !slices.Equal(old.ApprovalTools, now.ApprovalTools), old.ApprovalTools, now.ApprovalTools},
		{"worker.tools", !old.Tools.Equal(now.Tools), rules(old.Tools), rules(now.Tools)},
		{"worker.strangerTools", !old.StrangerTools.Equal(now.StrangerTools), rules(old.StrangerTools),
			rules(now.StrangerTools)},
	} {
		if !change.changed {
			continue
		}
		detail := map[string]any{"title": w.Title, "from": change.from, "to": change.to}
		if err := s.people.Audit(tx, c, change.action, w.ID, detail); err != nil {
			return err
		}
	}
	return nil
}

// A Query asks for a page of workers.
type Query struct {
	Text   string // in title or summary, case-insensitive; '' for all
	Origin Origin // '' for all
	Cursor string // from the page before; '' for the first
	Limit  int    // most items
	Scan   int    // most workers that are read for the page; 0: the usual number
}

// List returns a page of the workers that the caller may see, newest first, and the
// cursor of the next page, which is empty after the last.
func (s *Store) List(ctx context.Context, c people.Caller, q Query) ([]Worker, string, error) {
	var f db.Fields
	q.Check(&f)
	if err := f.Err(); err != nil {
		return nil, "", err
	}
	after := q.scope().ReadNum(&f, q.Cursor)
	// Each origin is a range of its own index, so that many workers of the other one cost nothing.
	index, origin := "workers_by_organization", ""
	if q.Origin != "" {
		index, origin = "workers_by_origin", " AND origin = '"+string(q.Origin)+"'" // Check knows the value
	}
	listed := ` FROM workers INDEXED BY ` + index + `
		WHERE organization_id = ?1` + origin + ` AND deleted_at IS NULL AND num < ?2 ORDER BY num DESC `
	limit := db.PageLimit(q.Limit)
	// The subquery is the outer loop, so its order is the order of the result.
	rows, err := db.All(ctx, s.db, Scan, `SELECT `+workerColumns+`
		FROM (SELECT *`+listed+`LIMIT ?3) w CROSS JOIN worker_versions v ON v.worker_id = w.id AND v.version = w.version
		WHERE (w.visibility = 'public' OR ?4 OR w.user_id = ?5
				OR EXISTS (SELECT 1 FROM worker_members m WHERE m.worker_id = w.id AND m.user_id = ?5))
			AND (?6 = '' OR w.title LIKE ?6 ESCAPE '\' OR w.summary LIKE ?6 ESCAPE '\')
		/* ORDER BY w.num DESC */ LIMIT ?7`,
		c.OrganizationID, after, db.Scanned(q.Scan), c.Role.Manages(), c.UserID, db.LikePattern(q.Text), limit+1)
	if err != nil {
		return nil, "", err
	}
	return db.Paginate(ctx, s.db, rows, limit, q.scope(), func(w Worker) []any { return []any{w.Num} },
		`SELECT num`+listed+`LIMIT 1 OFFSET ?3`, c.OrganizationID, after, db.Scanned(q.Scan)-1)
}

// Check adds to f the values that are invalid.
func (q Query) Check(f *db.Fields) {
	db.CheckLine(f, "q", q.Text, db.MaxQueryText)
	f.Check(q.Origin == "" || q.Origin.Valid(), "origin", originRule)
	q.scope().ReadNum(f, q.Cursor)
}

func (q Query) scope() db.Scope {
	if q.Origin == "" {
		return db.ScopeOf("workers", q.Text)
	}
	return db.ScopeOf("workers", q.Text, q.Origin)
}

// RestoreVersion makes a new version of a worker with the content of an older one. It
// changes nothing if the worker has that content already. It returns the errors of UpdateWorker.
// The caller has checked that the content can be used. If a request with the same key has
// restored it before, replayed is true.
func (s *Store) RestoreVersion(ctx context.Context, c people.Caller, id string, number int64, revisions []string,
	key db.IdempotencyKey) (w Worker, replayed bool, err error) {
	return db.CreateOnce(ctx, s.db, key, func(tx db.Tx, id string) (Worker, error) {
		return Own(ctx, tx, c, id)
	}, func(tx db.Tx) (Worker, string, error) {
		// The access is checked before the version is looked for: a caller without it does not
		// learn how many versions there are.
		if _, err := Own(ctx, tx, c, id); err != nil {
			return Worker{}, "", err
		}
		v, err := db.One(ctx, tx, scanVersion, selectVersions+` AND v.version = ?`, id, number)
		if err != nil {
			return Worker{}, "", db.NoRow(err, noVersion(number))
		}
		p := v.Patch()
		p.Revisions = revisions
		w, err := s.changeWorker(ctx, tx, c, id, p, number)
		return w, id, err
	})
}
