package store

import (
	"context"
	"database/sql"
	"errors"
)

// InviteWorkerMember is AddWorkerMember for who is known by an email address.
func (s *Store) InviteWorkerMember(ctx context.Context, c Caller, workerID, email string) (Member, error) {
	if _, err := s.ownWorker(ctx, s, c, workerID); err != nil {
		return Member{}, err
	}
	id, err := one(ctx, s, scanString, `SELECT u.id FROM users u JOIN memberships m ON m.organization_id = ? AND m.user_id = u.id WHERE u.email = ?`,
		c.OrganizationID, email)
	if errors.Is(err, sql.ErrNoRows) {
		var f Fields
		f.Add("email", "nobody in this organization has that address")
		return Member{}, f.Err()
	}
	if err != nil {
		return Member{}, err
	}
	return s.AddWorkerMember(ctx, c, workerID, id)
}

// WorkerCreator gives who made a worker that the caller may see; CreatedAt is when.
func (s *Store) WorkerCreator(ctx context.Context, c Caller, id string) (Member, error) {
	if _, err := s.seenWorker(ctx, s, c, id); err != nil {
		return Member{}, err
	}
	return one(ctx, s, scanMember, `SELECT u.id, u.email, u.name, w.created_at FROM workers w JOIN users u ON u.id = w.user_id WHERE w.id = ?`, id)
}
