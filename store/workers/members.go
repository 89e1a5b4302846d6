package workers

import (
	"context"
	"time"

	"journeyman/store/db"
	"journeyman/store/people"
)

// A Member is a user invited to a private worker.
type Member struct {
	UserID    string
	Email     string
	Name      string
	CreatedAt time.Time // of the invitation
}

func scanWorkerMember(row db.Scanner) (m Member, err error) {
	err = row.Scan(&m.UserID, &m.Email, &m.Name, db.AsTime(&m.CreatedAt))
	return m, err
}

const selectWorkerMembers = `SELECT u.id, u.email, u.name, m.created_at
	FROM worker_members m JOIN users u ON u.id = m.user_id WHERE m.worker_id = ?`

// MaxMembers is how many users may be invited to one worker.
const MaxMembers = 1000

// WorkerMembers lists the users who are invited to a worker. It returns Forbidden unless the caller
// created the worker.
func (s *Store) WorkerMembers(ctx context.Context, c people.Caller, workerID string) ([]Member, error) {
	if _, err := Own(ctx, s.db, c, workerID); err != nil {
		return nil, err
	}
	return db.All(ctx, s.db, scanWorkerMember, selectWorkerMembers+` ORDER BY m.user_id LIMIT ?`,
		workerID, MaxMembers)
}

// WorkerMember returns a user who is invited to a worker. It returns Forbidden unless the caller
// created the worker.
func (s *Store) WorkerMember(ctx context.Context, c people.Caller, workerID, userID string) (Member, error) {
	if _, err := Own(ctx, s.db, c, workerID); err != nil {
		return Member{}, err
	}
	m, err := db.One(ctx, s.db, scanWorkerMember, selectWorkerMembers+` AND m.user_id = ?`, workerID, userID)
	return m, db.NoRecord(err, "member")
}

// AddWorkerMember invites a user of the organization to a worker. It returns Forbidden unless the
// caller created the worker. A second invitation changes nothing.
func (s *Store) AddWorkerMember(ctx context.Context, c people.Caller, workerID, userID string) (m Member,
	err error) {
	err = s.db.Write(ctx, func(tx db.Tx) error {
		if _, err := Own(ctx, tx, c, workerID); err != nil {
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
		if n >= MaxMembers {
			return db.Errorf(db.Conflict, "a worker has at most %d members", MaxMembers)
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
func (s *Store) InviteWorkerMember(ctx context.Context, c people.Caller, workerID, email string) (Member, error) {
	if _, err := Own(ctx, s.db, c, workerID); err != nil {
		return Member{}, err
	}
	id, err := db.One(ctx, s.db, db.ScanString, `SELECT u.id
		FROM users u JOIN memberships m ON m.organization_id = ? AND m.user_id = u.id
		WHERE u.email = ?`, c.OrganizationID, email)
	if err != nil {
		unknown := db.Fields{{Path: "email", Message: "nobody in this organization has that address"}}
		return Member{}, db.NoRow(err, unknown.Err())
	}
	return s.AddWorkerMember(ctx, c, workerID, id)
}

// RemoveWorkerMember withdraws an invitation, and reports whether there was one. It returns
// Forbidden unless the caller created the worker.
func (s *Store) RemoveWorkerMember(ctx context.Context, c people.Caller, workerID, userID string) (removed bool,
	err error) {
	err = s.db.Write(ctx, func(tx db.Tx) error {
		if _, err := Own(ctx, tx, c, workerID); err != nil {
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
func (s *Store) WorkerCreator(ctx context.Context, c people.Caller, id string) (Member, error) {
	if _, err := VisibleOrDeleted(ctx, s.db, c, id); err != nil {
		return Member{}, err
	}
	return db.One(ctx, s.db, scanWorkerMember, `SELECT u.id, u.email, u.name, w.created_at
		FROM workers w JOIN users u ON u.id = w.user_id WHERE w.id = ?`, id)
}
