package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"time"
	"unicode/utf8"
)

// A Visibility says who of the organization sees a worker.
type Visibility string

// Public is everybody; Private is the creator, the invited members, and the
// organization's Owners and Admins.
const (
	Public  Visibility = "public"
	Private Visibility = "private"
)

// The limits of a worker's fields, in characters (interface, Limits).
const (
	MaxInstructions = 20_000
	MaxPrompt       = 10_000
	MaxSummary      = 80
	MaxTitle        = 200
)

// A Worker is an agent definition, in its newest version.
type Worker struct {
	num            int64
	ID             string
	OrganizationID string
	UserID         string // the creator
	Title          string
	Summary        string
	Visibility     Visibility
	Version        int64
	Instructions   string
	OutputSchema   json.RawMessage // nil for free text
	Settings       WorkerSettings
	CreatedAt      time.Time
	UpdatedAt      time.Time
	DeletedAt      *time.Time
}

const workerColumns = `w.num, w.id, w.organization_id, w.user_id, w.title, w.summary, w.visibility, w.version,
	v.instructions, v.output_schema, w.created_at, w.updated_at, w.deleted_at, ` + settingsColumns

const fromWorkers = ` FROM workers w JOIN worker_versions v ON v.worker_id = w.id AND v.version = w.version `

func scanWorker(row scanner) (w Worker, err error) {
	var schema sql.NullString
	var created, updated int64
	var deleted sql.NullInt64
	var settings settingsRow
	err = row.Scan(append([]any{&w.num, &w.ID, &w.OrganizationID, &w.UserID, &w.Title, &w.Summary, &w.Visibility, &w.Version,
		&w.Instructions, &schema, &created, &updated, &deleted}, settings.fields()...)...)
	if err != nil {
		return w, err
	}
	if schema.Valid {
		w.OutputSchema = json.RawMessage(schema.String)
	}
	w.CreatedAt, w.UpdatedAt, w.DeletedAt = fromMillis(created), fromMillis(updated), fromNull(deleted)
	w.Settings, err = settings.settings()
	return w, err
}

// NewWorker holds the fields of a worker to make. The caller has made sure that
// OutputSchema is a usable schema.
type NewWorker struct {
	ID           string // from NewID("wrk", ...), or '' for a fresh one
	Title        string // '' for a generated one
	Summary      string
	Instructions string
	Visibility   Visibility // '' for Public
	OutputSchema json.RawMessage
	Settings     WorkerSettings
}

// CheckWorker notes in f what breaks the limits of a worker's fields. Nil fields
// are not looked at.
func CheckWorker(f *Fields, instructions, summary, title *string, visibility *Visibility) {
	atMost := func(path string, v *string, n int) {
		f.Check(v == nil || utf8.RuneCountInString(*v) <= n, path, "must have at most %d characters", n)
	}
	atMost("instructions", instructions, MaxInstructions)
	atMost("summary", summary, MaxSummary)
	f.Check(title == nil || *title != "" && utf8.RuneCountInString(*title) <= MaxTitle, "title", "must have 1 to %d characters", MaxTitle)
	f.Check(visibility == nil || *visibility == Public || *visibility == Private, "visibility", "must be public or private")
}

// CreateWorker makes a worker of the caller's. A request made before, as once
// tells, gives the worker it made, and replayed is true.
func (s *Store) CreateWorker(ctx context.Context, c Caller, n NewWorker, once Once) (w Worker, replayed bool, err error) {
	err = s.write(ctx, func(tx *Tx) error {
		id, err := s.lookup(ctx, tx, once)
		if err != nil {
			return err
		}
		if replayed = id != ""; replayed {
			w, err = one(ctx, tx, scanWorker, `SELECT `+workerColumns+fromWorkers+`WHERE w.id = ?`, id)
			return notFound(err, "worker")
		}
		if w, err = s.insertWorker(tx, c, n); err != nil {
			return err
		}
		return s.remember(tx, once, w.ID)
	})
	return w, replayed, err
}

func (s *Store) insertWorker(tx *Tx, c Caller, n NewWorker) (Worker, error) {
	if n.ID == "" {
		n.ID = NewID("wrk", s.now())
	}
	if n.Title == "" {
		n.Title = generatedTitle(n.ID)
	}
	if n.Visibility == "" {
		n.Visibility = Public
	}
	now := s.millis()
	w := Worker{ID: n.ID, OrganizationID: c.OrganizationID, UserID: c.UserID, Title: n.Title, Summary: n.Summary,
		Visibility: n.Visibility, Version: 1, Instructions: n.Instructions, OutputSchema: n.OutputSchema,
		Settings: n.Settings.listed(), CreatedAt: fromMillis(now), UpdatedAt: fromMillis(now)}
	var err error
	w.num, err = tx.Insert(`INSERT INTO workers (id, organization_id, user_id, title, summary, visibility, version, created_at, updated_at)
		VALUES (?, ?, ?, ?, ?, ?, 1, ?, ?)`, w.ID, w.OrganizationID, w.UserID, w.Title, w.Summary, w.Visibility, now, now)
	if err != nil {
		return w, err
	}
	return w, s.insertVersion(tx, w, now)
}

func (s *Store) insertVersion(tx *Tx, w Worker, now int64) error {
	settings, err := w.Settings.row()
	if err != nil {
		return err
	}
	_, err = tx.Exec(`INSERT INTO worker_versions (worker_id, version, instructions, output_schema, created_at, `+settingsColumns+`)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
		append([]any{w.ID, w.Version, w.Instructions, nullable(string(w.OutputSchema)), now}, settings...)...)
	return err
}

// Worker gives a worker that the caller may see. A deleted one is not found.
func (s *Store) Worker(ctx context.Context, c Caller, id string) (Worker, error) {
	return s.visibleWorker(ctx, s, c, id)
}

// A WorkerPatch holds the fields to change; nil leaves one as it is.
type WorkerPatch struct {
	Title, Summary, Instructions *string
	Visibility                   *Visibility
	OutputSchema                 *json.RawMessage // to nil: free text
	Model                        *string          // to '': the server's
	ApprovalTools, MCPTools      *[]string
}

// told reports whether p changes what turns are accepted with.
func (p WorkerPatch) told() bool {
	return p.Instructions != nil || p.OutputSchema != nil || p.Model != nil || p.ApprovalTools != nil || p.MCPTools != nil
}

// UpdateWorker changes a worker; only its creator may. Turns accepted before keep
// the instructions, schema and settings they were accepted with.
func (s *Store) UpdateWorker(ctx context.Context, c Caller, id string, p WorkerPatch) (w Worker, err error) {
	err = s.write(ctx, func(tx *Tx) error {
		if w, err = s.ownWorker(ctx, tx, c, id); err != nil {
			return err
		}
		was := w
		set(&w.Title, p.Title)
		set(&w.Summary, p.Summary)
		set(&w.Visibility, p.Visibility)
		now := s.millis()
		if p.told() {
			set(&w.Instructions, p.Instructions)
			set(&w.OutputSchema, p.OutputSchema)
			set(&w.Settings.Model, p.Model)
			set(&w.Settings.ApprovalTools, p.ApprovalTools)
			set(&w.Settings.MCPTools, p.MCPTools)
			w.Version++
			if err := s.insertVersion(tx, w, now); err != nil {
				return err
			}
		}
		w.UpdatedAt = fromMillis(now)
		_, err := tx.Exec(`UPDATE workers SET title = ?, summary = ?, visibility = ?, version = ?, updated_at = ? WHERE id = ?`,
			w.Title, w.Summary, w.Visibility, w.Version, now, id)
		if err != nil {
			return err
		}
		return s.auditWorker(tx, c, was, w)
	})
	return w, err
}

// auditWorker notes what a change of a worker opens or closes to others.
func (s *Store) auditWorker(tx *Tx, c Caller, was, w Worker) error {
	if was.Visibility != w.Visibility {
		err := s.audit(tx, c, "worker.visibility", w.ID, map[string]any{"title": w.Title, "from": was.Visibility, "to": w.Visibility})
		if err != nil {
			return err
		}
	}
	if slices.Equal(was.Settings.ApprovalTools, w.Settings.ApprovalTools) {
		return nil
	}
	return s.audit(tx, c, "worker.approvals", w.ID, map[string]any{"title": w.Title, "from": was.Settings.ApprovalTools, "to": w.Settings.ApprovalTools})
}

func set[T any](field *T, v *T) {
	if v != nil {
		*field = *v
	}
}

// DeleteWorker hides a worker and cancels its schedules; only its creator may. Its
// tasks, turns and files stay.
func (s *Store) DeleteWorker(ctx context.Context, c Caller, id string) error {
	return s.write(ctx, func(tx *Tx) error {
		w, err := s.ownWorker(ctx, tx, c, id)
		if err != nil {
			return err
		}
		if _, err := tx.Exec(`UPDATE workers SET deleted_at = ? WHERE id = ?`, s.millis(), id); err != nil {
			return err
		}
		if err := s.audit(tx, c, "worker.delete", id, map[string]any{"title": w.Title}); err != nil {
			return err
		}
		_, err = tx.Exec(`UPDATE schedules SET next_run_at = NULL, cancelled_at = ? WHERE worker_id = ? AND next_run_at IS NOT NULL`,
			s.millis(), id)
		return err
	})
}

// A WorkerQuery asks for a page of workers.
type WorkerQuery struct {
	Text   string // in title or summary, case-insensitive; '' for all
	Cursor string // from the page before; '' for the first
	Limit  int    // most items
}

// Workers lists the workers the caller may see, newest first, and the cursor of
// the next page, empty after the last.
func (s *Store) Workers(ctx context.Context, c Caller, q WorkerQuery) ([]Worker, string, error) {
	after, err := q.position()
	if err != nil {
		return nil, "", err
	}
	const listed = ` FROM workers INDEXED BY workers_by_organization WHERE organization_id = ?1 AND deleted_at IS NULL AND num < ?2
		ORDER BY num DESC `
	limit := pageLimit(q.Limit)
	// The subquery is the outer loop, so its order is the result's.
	rows, err := all(ctx, s, scanWorker, `SELECT `+workerColumns+`
		FROM (SELECT *`+listed+`LIMIT ?3) w CROSS JOIN worker_versions v ON v.worker_id = w.id AND v.version = w.version
		WHERE (w.visibility = 'public' OR ?4 OR w.user_id = ?5
				OR EXISTS (SELECT 1 FROM worker_members m WHERE m.worker_id = w.id AND m.user_id = ?5))
			AND (?6 = '' OR w.title LIKE ?6 ESCAPE '\' OR w.summary LIKE ?6 ESCAPE '\') LIMIT ?7`,
		c.OrganizationID, after, maxScanned, c.Role.manages(), c.UserID, likePattern(q.Text), limit+1)
	if err != nil {
		return nil, "", err
	}
	position := func(w Worker) []int64 { return []int64{0, w.num} }
	return paginate(ctx, s, rows, limit, position, `SELECT 0, num`+listed+`LIMIT 1 OFFSET ?3`, c.OrganizationID, after, maxScanned-1)
}

// Check notes in f the values that cannot be.
func (q WorkerQuery) Check(f *Fields) {
	checkText(f, q.Text)
	checkCursor(f, q.Cursor)
}

// position is the num before which the page begins.
func (q WorkerQuery) position() (int64, error) {
	var f Fields
	q.Check(&f)
	if err := f.Err(); err != nil {
		return 0, err
	}
	after, err := parseCursor(q.Cursor)
	if err != nil || after == nil {
		return math.MaxInt64, err
	}
	return after[1], nil
}

// A Member is a user invited to a private worker.
type Member struct {
	UserID    string
	Email     string
	Name      string
	CreatedAt time.Time // of the invitation
}

func scanMember(row scanner) (m Member, err error) {
	var created int64
	err = row.Scan(&m.UserID, &m.Email, &m.Name, &created)
	m.CreatedAt = fromMillis(created)
	return m, err
}

const selectMembers = `SELECT u.id, u.email, u.name, m.created_at FROM worker_members m JOIN users u ON u.id = m.user_id WHERE m.worker_id = ?`

// maxMembers bounds who may be invited to one worker.
const maxMembers = 1000

// WorkerMembers lists who is invited to a worker; only its creator may ask.
func (s *Store) WorkerMembers(ctx context.Context, c Caller, workerID string) ([]Member, error) {
	if _, err := s.ownWorker(ctx, s, c, workerID); err != nil {
		return nil, err
	}
	return all(ctx, s, scanMember, selectMembers+` ORDER BY m.user_id LIMIT ?`, workerID, maxMembers)
}

// WorkerMember gives one invited member; only the worker's creator may ask.
func (s *Store) WorkerMember(ctx context.Context, c Caller, workerID, userID string) (Member, error) {
	if _, err := s.ownWorker(ctx, s, c, workerID); err != nil {
		return Member{}, err
	}
	m, err := one(ctx, s, scanMember, selectMembers+` AND m.user_id = ?`, workerID, userID)
	return m, notFound(err, "member")
}

// AddWorkerMember invites a user of the organization to a worker; only its creator
// may. Inviting twice changes nothing.
func (s *Store) AddWorkerMember(ctx context.Context, c Caller, workerID, userID string) (m Member, err error) {
	err = s.write(ctx, func(tx *Tx) error {
		if _, err := s.ownWorker(ctx, tx, c, workerID); err != nil {
			return err
		}
		in, err := one(ctx, tx, scanInt, `SELECT EXISTS (SELECT 1 FROM memberships WHERE organization_id = ? AND user_id = ?)`,
			c.OrganizationID, userID)
		if err != nil {
			return err
		}
		if in == 0 {
			return Errorf(NotFound, "no user of this organization has that id")
		}
		n, err := one(ctx, tx, scanInt, `SELECT count(*) FROM worker_members WHERE worker_id = ? AND user_id <> ?`, workerID, userID)
		if err != nil {
			return err
		}
		if n >= maxMembers {
			return Errorf(Conflict, "a worker has at most %d members", maxMembers)
		}
		fresh, err := tx.Exec(`INSERT INTO worker_members (worker_id, user_id, created_at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING`,
			workerID, userID, s.millis())
		if err != nil {
			return err
		}
		m, err = one(ctx, tx, scanMember, selectMembers+` AND m.user_id = ?`, workerID, userID)
		if err != nil || fresh == 0 {
			return err
		}
		return s.audit(tx, c, "worker.member.add", workerID, map[string]any{"user": m.Email})
	})
	return m, err
}

// RemoveWorkerMember takes an invitation back; only the worker's creator may. It
// reports whether there was one.
func (s *Store) RemoveWorkerMember(ctx context.Context, c Caller, workerID, userID string) (removed bool, err error) {
	err = s.write(ctx, func(tx *Tx) error {
		if _, err := s.ownWorker(ctx, tx, c, workerID); err != nil {
			return err
		}
		m, err := one(ctx, tx, scanMember, selectMembers+` AND m.user_id = ?`, workerID, userID)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		removed = true
		if _, err := tx.Exec(`DELETE FROM worker_members WHERE worker_id = ? AND user_id = ?`, workerID, userID); err != nil {
			return err
		}
		return s.audit(tx, c, "worker.member.remove", workerID, map[string]any{"user": m.Email})
	})
	return removed, err
}

// notFound gives sql.ErrNoRows the words for a caller.
func notFound(err error, what string) error {
	if errors.Is(err, sql.ErrNoRows) {
		return Errorf(NotFound, "no %s has that id", what)
	}
	return err
}

// WorkerOfTurn gives the worker of a turn that its caller was just told of, even
// if it is deleted by now.
func (s *Store) WorkerOfTurn(ctx context.Context, t Turn) (Worker, error) {
	w, err := one(ctx, s, scanWorker, `SELECT `+workerColumns+fromWorkers+`WHERE w.id = ?`, t.WorkerID)
	return w, notFound(err, "worker")
}
