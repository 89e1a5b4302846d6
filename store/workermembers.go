package store

import (
	"context"
	"time"

	"journeyman/store/db"
	"journeyman/store/people"
)

// A WorkerMember is a user invited to a private worker.
type WorkerMember struct {
	UserID    string
	Email     string
	Name      string
	CreatedAt time.Time // of the invitation
}

func scanWorkerMember(row db.Scanner) (m WorkerMember, err error) {
	err = row.Scan(&m.UserID, &m.Email, &m.Name, db.AsTime(&m.CreatedAt))
	return m, err
}

const selectWorkerMembers = `SELECT u.id, u.email, u.name, m.created_at
	FROM worker_members m JOIN users u ON u.id = m.user_id WHERE m.worker_id = ?`

// maxWorkerMembers is how many users may be invited to one worker.
const maxWorkerMembers = 1000

// WorkerMembers lists the users who are invited to a worker. It returns Forbidden unless the caller
// created the worker.
func (s *workerStore) WorkerMembers(ctx context.Context, c people.Caller, workerID string) ([]WorkerMember, error) {
	if _, err := ownWorker(ctx, s.db, c, workerID); err != nil {
		return nil, err
	}
	return db.All(ctx, s.db, scanWorkerMember, selectWorkerMembers+` ORDER BY m.user_id LIMIT ?`,
		workerID, maxWorkerMembers)
}

// WorkerMember returns a user who is invited to a worker. It returns Forbidden unless the caller
// created the worker.
func (s *workerStore) WorkerMember(ctx context.Context, c people.Caller, workerID, userID string) (WorkerMember, error) {
	if _, err := ownWorker(ctx, s.db, c, workerID); err != nil {
		return WorkerMember{}, err
	}
	m, err := db.One(ctx, s.db, scanWorkerMember, selectWorkerMembers+` AND m.user_id = ?`, workerID, userID)
	return m, db.NoRecord(err, "member")
}

// AddWorkerMember invites a user of the organization to a worker. It returns Forbidden unless the
// caller created the worker. A second invitation changes nothing.
func (s *workerStore) AddWorkerMember(ctx context.Context, c people.Caller, workerID, userID string) (m WorkerMember,
	err error) {
	err = s.db.Write(ctx, func(tx db.Tx) error {
		if _, err := ownWorker(ctx, tx, c, workerID); err != nil {
			return err
		}
		role, err := people.ReadRole(ctx, tx, c.OrganizationID, userID)
		if err != nil {
			return err
		}
		if role == "" {
			return db.Errorf(db.NotFound, "no user of this organization has that id")
		}
		n, err := db.One(ctx, tx, db.ScanInt, `SELECT count(*) FROM worker_members WHERE worker_id = ? AND user_id <> ?`,
			workerID, userID)
		if err != nil {
			return err
		}
		if n >= maxWorkerMembers {
			return db.Errorf(db.Conflict, "a worker has at most %d members", maxWorkerMembers)
		}
		added, err := tx.Exec(`INSERT INTO worker_members (worker_id, user_id, created_at) VALUES (?, ?, ?)
			ON CONFLICT (worker_id, user_id) DO NOTHING`, workerID, userID, s.db.Millis())
		if err != nil {
			return err
		}
		m, err = db.One(ctx, tx, scanWorkerMember, selectWorkerMembers+` AND m.user_id = ?`, workerID, userID)
		if err != nil || added == 0 {
			return err
		}
		s.db.Notify(tx, c.OrganizationID, db.ChangedWorkers)
		return s.people.Audit(tx, c, "worker.member.add", workerID, map[string]any{"user": m.Email})
	})
	return m, err
}

// InviteWorkerMember is AddWorkerMember for the user with that email address.
func (s *workerStore) InviteWorkerMember(ctx context.Context, c people.Caller, workerID, email string) (WorkerMember, error) {
	if _, err := ownWorker(ctx, s.db, c, workerID); err != nil {
		return WorkerMember{}, err
	}
	id, err := db.One(ctx, s.db, db.ScanString, `SELECT u.id
		FROM users u JOIN memberships m ON m.organization_id = ? AND m.user_id = u.id
		WHERE u.email = ?`, c.OrganizationID, email)
	if err != nil {
		unknown := db.Fields{{Path: "email", Message: "nobody in this organization has that address"}}
		return WorkerMember{}, db.NoRow(err, unknown.Err())
	}
	return s.AddWorkerMember(ctx, c, workerID, id)
}

// RemoveWorkerMember withdraws an invitation, and reports whether there was one. It returns
// Forbidden unless the caller created the worker.
func (s *workerStore) RemoveWorkerMember(ctx context.Context, c people.Caller, workerID, userID string) (removed bool,
	err error) {
	err = s.db.Write(ctx, func(tx db.Tx) error {
		if _, err := ownWorker(ctx, tx, c, workerID); err != nil {
			return err
		}
		m, err := db.One(ctx, tx, scanWorkerMember, selectWorkerMembers+` AND m.user_id = ?`, workerID, userID)
		if err != nil {
			return db.NoRow(err, nil)
		}
		removed = true
		s.db.Notify(tx, c.OrganizationID, db.ChangedWorkers)
		if _, err := tx.Exec(`DELETE FROM worker_members WHERE worker_id = ? AND user_id = ?`,
			workerID, userID); err != nil {
			return err
		}
		return s.people.Audit(tx, c, "worker.member.remove", workerID, map[string]any{"user": m.Email})
	})
	return removed, err
}

// WorkerCreator returns the creator of a worker that the caller may see. CreatedAt is the
// time when the worker was created.
func (s *workerStore) WorkerCreator(ctx context.Context, c people.Caller, id string) (WorkerMember, error) {
	if _, err := visibleOrDeletedWorker(ctx, s.db, c, id); err != nil {
		return WorkerMember{}, err
	}
	return db.One(ctx, s.db, scanWorkerMember, `SELECT u.id, u.email, u.name, w.created_at
		FROM workers w JOIN users u ON u.id = w.user_id WHERE w.id = ?`, id)
}
