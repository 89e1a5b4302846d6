package workers

import (
	"context"
	"database/sql"
	"slices"

	"journeyman/store/db"
	"journeyman/store/people"
)

// The functions below decide which workers a caller may see or change. A function with a Worker as parameter relies
// on them and does not check again.

// Visible returns a worker that the caller may see. It returns NotFound if the worker
// does not exist or was deleted. It returns Forbidden if the worker is in another
// organization, or if it is private and the caller is not invited.
func Visible(ctx context.Context, q db.Querier, c people.Caller, id string) (Worker, error) {
	w, err := VisibleOrDeleted(ctx, q, c, id)
	if err == nil && w.DeletedAt != nil {
		return Worker{}, db.Errorf(db.NotFound, "no worker has that id")
	}
	return w, err
}

// VisibleOrDeleted is Visible, but it also returns deleted workers, because their tasks and
// files stay readable.
func VisibleOrDeleted(ctx context.Context, q db.Querier, c people.Caller, id string) (Worker, error) {
	w, err := db.One(ctx, q, Scan, SelectWorker, id)
	if err != nil {
		return Worker{}, db.NoRecord(err, "worker")
	}
	return Allow(ctx, q, c, w)
}

// Runnable is Visible with only the fields that accepting a turn needs: those of
// the access rules, the version, the time of creation, and the cap of the organization. A write locks
// the worker: see keepsWorker.
func Runnable(ctx context.Context, q db.Querier, c people.Caller, id string) (Worker, error) {
	w, err := db.One(ctx, q, ScanRunnable, SelectRunnable+keepsWorker(q), id)
	return allowRunnable(ctx, q, c, w, err)
}

// Claimable is Runnable with the fields that the claim of its turn needs, too: those of the
// version, and Claim.
func Claimable(ctx context.Context, q db.Querier, c people.Caller, id string) (Worker, error) {
	w, err := db.One(ctx, q, scanClaimable, selectClaimable+keepsWorker(q), id)
	return allowRunnable(ctx, q, c, w, err)
}

// keepsWorker returns the end of a query for a worker. In a write on a server, it locks the worker until the commit.
// The store's DeleteWorker waits for this lock: see LockDeleted. So it finds the turns that were accepted before, and none is accepted after it.
// A new task takes the same lock by its reference to the worker, and other changes of a worker do not wait for it.
func keepsWorker(q db.Querier) string {
	if _, writes := q.(db.Tx); writes {
		return ` /* FOR KEY SHARE OF workers */`
	}
	return ""
}

// LockDeleted waits for the writes that keep a worker, and lets no other write keep it until the commit.
func (s *Store) LockDeleted(ctx context.Context, tx db.Tx, w Worker) error {
	if !s.db.OnServer() {
		return nil // the writes run one after the other
	}
	_, err := db.One(ctx, tx, db.ScanInt, `SELECT num FROM workers WHERE num = ? /* FOR UPDATE */`, w.Num)
	return err
}

// allowRunnable returns w if err is nil and the caller may see w.
func allowRunnable(ctx context.Context, q db.Querier, c people.Caller, w Worker, err error) (Worker, error) {
	if err == nil {
		w, err = Allow(ctx, q, c, w)
	}
	// The access is checked first: a caller without it does not learn of the deletion.
	if err == nil && w.DeletedAt != nil {
		err = sql.ErrNoRows
	}
	return w, db.NoRecord(err, "worker")
}

const (
	runnableColumns = `num, id, organization_id, user_id, visibility, workspace, version, created_at, deleted_at,
		(SELECT monthly_credit_cap FROM organizations o WHERE o.id = organization_id)`

	// SelectRunnable reads the worker with an id, for ScanRunnable.
	SelectRunnable = `SELECT ` + runnableColumns + ` FROM workers WHERE id = ?`

	selectClaimable = `SELECT ` + runnableColumns + `, (SELECT o.num FROM organizations o WHERE o.id = organization_id),
			EXISTS (SELECT 1 FROM secrets INDEXED BY secrets_by_name
				WHERE organization_id = workers.organization_id AND coalesce(worker_id, '') IN ('', workers.id)),
			instructions, output_schema, v_model, approval_tools, mcp_tools, tools, stranger_tools,
			effort, temperature
		FROM workers` + WithSettings + `workers.id AND v = workers.version WHERE id = ?`
)

// runnable returns the destinations of runnableColumns.
func (w *Worker) runnable() []any {
	return []any{&w.Num, &w.ID, &w.OrganizationID, &w.UserID, &w.Visibility, &w.Workspace, &w.Version,
		db.AsTime(&w.CreatedAt), db.AsTimeOrNil(&w.DeletedAt), &w.CreditCap}
}

// ScanRunnable reads a row of SelectRunnable.
func ScanRunnable(row db.Scanner) (w Worker, err error) {
	err = row.Scan(w.runnable()...)
	return w, err
}

func scanClaimable(row db.Scanner) (w Worker, err error) {
	w.Claim = new(ClaimFacts)
	err = row.Scan(slices.Concat(w.runnable(), []any{&w.Claim.Organization, &w.Claim.HasSecrets, &w.Instructions,
		db.AsJSON(&w.OutputSchema)}, w.Settings.Columns())...)
	return w, err
}

// Allow returns w if the caller may see it, and a Forbidden error otherwise.
func Allow(ctx context.Context, q db.Querier, c people.Caller, w Worker) (Worker, error) {
	if w.OrganizationID != c.OrganizationID {
		return Worker{}, db.Errorf(db.Forbidden, "you have no access to the worker")
	}
	if w.Visibility == Public || w.UserID == c.UserID || c.Role.Manages() {
		return w, nil
	}
	// The query is last, because most callers do not need it.
	invited, err := db.One(ctx, q, db.ScanBool, `SELECT EXISTS
		(SELECT 1 FROM worker_members WHERE worker_id = ? AND user_id = ?)`, w.ID, c.UserID)
	if err != nil {
		return Worker{}, err
	}
	if !invited {
		return Worker{}, db.Errorf(db.Forbidden, "the worker is private, and you are not invited to it")
	}
	return w, nil
}

// Own is Visible for changes that only the worker's creator may make.
func Own(ctx context.Context, q db.Querier, c people.Caller, id string) (Worker, error) {
	w, err := Visible(ctx, q, c, id)
	if err == nil && w.UserID != c.UserID {
		return Worker{}, db.Errorf(db.Forbidden, "only the creator of the worker may do this")
	}
	return w, err
}
