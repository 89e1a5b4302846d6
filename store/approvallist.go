package store

import (
	"context"

	"journeyman/store/db"
	"journeyman/store/people"
)

// An ApprovalQuery asks for a page of approvals.
type ApprovalQuery struct {
	TaskID string // lists all approvals of this task; '' lists the pending ones of all tasks
	Mine   bool   // leaves out those on which the caller may not decide
	Cursor string // from the page before
	Limit  int    // most items
}

// Check adds to f the filters with invalid values.
func (q ApprovalQuery) Check(f *db.Fields) { q.scope().ReadNum(f, q.Cursor) }

func (q ApprovalQuery) scope() db.Scope { return db.ScopeOf("approvals", q.TaskID, q.Mine) }

// Approvals returns approvals of tasks that the caller may see, newest first, and the
// cursor of the next page, which is empty after the last. It lists all approvals of the
// query's task, or without a TaskID the pending ones of every task.
func (s *Store) Approvals(ctx context.Context, c people.Caller, q ApprovalQuery) ([]Approval, string, error) {
	var f db.Fields
	if q.Check(&f); f.Err() != nil {
		return nil, "", f.Err()
	}
	from, key := ` FROM approvals INDEXED BY approvals_pending WHERE organization_id = ?1
		AND status = 'pending'`, any(c.OrganizationID)
	// The access check of the task comes first. Without a task, the query below checks
	// each worker.
	if q.TaskID != "" {
		task, _, err := visibleTask(ctx, s.db, c, q.TaskID)
		if err != nil {
			return nil, "", err
		}
		from, key = ` FROM approvals INDEXED BY approvals_by_task WHERE task_num = ?1`, task.num
	}
	before := q.scope().ReadNum(&f, q.Cursor)
	from += ` AND num < ?2 ORDER BY num DESC `
	limit := db.PageLimit(q.Limit)
	// The subquery is the outer loop, so its order is that of the result. It reads at most
	// db.MaxScanned rows, because a caller may see none of many thousands.
	rows, err := db.All(ctx, s.db, scanDescribed, `SELECT `+approvalColumns+`, s.parts, `+mayDecide("?3", "?4")+`
		FROM (SELECT *`+from+`LIMIT ?5) a`+joinApproval+joinStep+joinWorker+`
		WHERE (?6 OR w.visibility = 'public' OR w.user_id = ?4
				OR EXISTS (SELECT 1 FROM worker_members m WHERE m.worker_id = w.id AND m.user_id = ?4))
			AND (NOT ?8 OR `+mayDecide("?3", "?4")+`)
		/* ORDER BY a.num DESC */ LIMIT ?7`,
		key, before, c.Role.May(people.DecideApprovals), c.UserID, db.MaxScanned, c.Role.Manages(), limit+1, q.Mine)
	if err != nil {
		return nil, "", err
	}
	return db.Paginate(ctx, s.db, rows, limit, q.scope(), func(a Approval) []any { return []any{a.num} },
		`SELECT num`+from+`LIMIT 1 OFFSET ?3`, key, before, db.MaxScanned-1)
}

// MaxPendingDecisions is the highest count that PendingDecisions returns.
const MaxPendingDecisions = 100

// PendingDecisions returns the number of decisions and answers that wait for the caller, at most
// MaxPendingDecisions. Every page shows this number, so the query reads only the newest db.MaxScanned
// pending approvals.
func (s *Store) PendingDecisions(ctx context.Context, c people.Caller) (int64, error) {
	return db.One(ctx, s.db, db.ScanInt, `SELECT count(*) FROM (SELECT 1 FROM
			(SELECT * FROM approvals INDEXED BY approvals_pending WHERE organization_id = ?3 AND status = 'pending'
				ORDER BY num DESC LIMIT ?4) a`+joinApproval+joinWorker+`
		WHERE `+mayDecide("?1", "?2")+` AND (?5 OR w.visibility = 'public' OR w.user_id = ?2
			OR EXISTS (SELECT 1 FROM worker_members m WHERE m.worker_id = w.id AND m.user_id = ?2))
		LIMIT ?6) AS counted`, c.Role.May(people.DecideApprovals), c.UserID, c.OrganizationID,
		db.MaxScanned, c.Role.Manages(), MaxPendingDecisions)
}
