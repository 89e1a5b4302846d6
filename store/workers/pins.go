package workers

import (
	"cmp"
	"context"
	"slices"
	"time"

	"journeyman/store/db"
	"journeyman/store/people"
)

// MaxPins is how many workers of an organization a user can pin. Every page lists them.
const MaxPins = 12

// A Pin is a worker that a user has pinned.
type Pin struct {
	ID, Title string // of the worker
	at        time.Time
}

func scanPin(row db.Scanner) (p Pin, err error) {
	err = row.Scan(&p.ID, &p.Title, db.AsTime(&p.at))
	return p, err
}

// Pins returns the workers that the caller has pinned and may still see, in the order in
// which they were pinned.
func (s *Store) Pins(ctx context.Context, c people.Caller) ([]Pin, error) {
	list, err := db.All(ctx, s.db, scanPin, `SELECT w.id, w.title, p.created_at
		FROM worker_pins p CROSS JOIN workers w ON w.id = p.worker_id
		WHERE p.organization_id = ?1 AND p.user_id = ?2 AND w.deleted_at IS NULL
			AND (?3 OR w.visibility = 'public' OR w.user_id = ?2
				OR EXISTS (SELECT 1 FROM worker_members m WHERE m.worker_id = w.id AND m.user_id = ?2))
		LIMIT ?4`, c.OrganizationID, c.UserID, c.Role.Manages(), MaxPins)
	slices.SortFunc(list, func(a, b Pin) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.ID, b.ID)) })
	return list, err
}

// PinWorker pins a worker that the caller may see. A second pin changes nothing. It
// returns a Conflict if the caller has MaxPins pins already.
func (s *Store) PinWorker(ctx context.Context, c people.Caller, workerID string) error {
	return s.db.Write(ctx, func(tx db.Tx) error {
		if _, err := Runnable(ctx, tx, c, workerID); err != nil {
			return err
		}
		// A deleted worker keeps its pins. Nobody sees them, so they must not count.
		if _, err := tx.Exec(`DELETE FROM worker_pins WHERE organization_id = ?1 AND user_id = ?2
			AND worker_id IN (SELECT w.id FROM worker_pins p CROSS JOIN workers w ON w.id = p.worker_id
				WHERE p.organization_id = ?1 AND p.user_id = ?2 AND w.deleted_at IS NOT NULL)`,
			c.OrganizationID, c.UserID); err != nil {
			return err
		}
		n, err := db.One(ctx, tx, db.ScanInt, `SELECT count(*) FROM worker_pins
			WHERE organization_id = ? AND user_id = ? AND worker_id <> ?`, c.OrganizationID, c.UserID, workerID)
		if err != nil {
			return err
		}
		if n >= MaxPins {
			return db.Errorf(db.Conflict, "you have pinned %d workers, which is the limit: unpin one first", MaxPins)
		}
		s.db.Notify(tx, c.OrganizationID, db.ChangedWorkers)
		_, err = tx.Exec(`INSERT INTO worker_pins (organization_id, user_id, worker_id, created_at)
			VALUES (?, ?, ?, ?) ON CONFLICT (organization_id, user_id, worker_id) DO NOTHING`, c.OrganizationID, c.UserID,
			workerID, s.db.Millis())
		return err
	})
}

// UnpinWorker removes a pin. It does nothing if the caller has not pinned the worker.
func (s *Store) UnpinWorker(ctx context.Context, c people.Caller, workerID string) error {
	return s.db.Write(ctx, func(tx db.Tx) error {
		s.db.Notify(tx, c.OrganizationID, db.ChangedWorkers)
		_, err := tx.Exec(`DELETE FROM worker_pins WHERE organization_id = ? AND user_id = ? AND worker_id = ?`,
			c.OrganizationID, c.UserID, workerID)
		return err
	})
}
