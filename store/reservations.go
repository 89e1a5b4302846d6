package store

import (
	"context"

	"journeyman/store/db"
)

// This file reserves money for model calls that are in progress on several nodes: see Reservation. The
// table reservations has the sum of each node. The node of a call knows the details.

// A Reservation reserves a part of the money that an account has left: the highest price of a model call.
// An account is the monthly cap of an organization, or the budget of a team.
type Reservation struct {
	Account  string // the name of the account
	RunnerID string
	Own      int64 // nano-dollars that the runner has reserved already
	// Decide returns the nano-dollars that the runner reserves in addition. left is the unspent
	// money, from which no reservation is subtracted. others is the sum that the other runners have
	// reserved. Decide may be called several times.
	Decide func(left, others int64) (nanos int64)
}

// ReserveFromCap reserves a part of what an organization may still spend this month. limited is false if it has
// no cap. Then ReserveFromCap does nothing, and does not call h.Decide. It returns ErrLeaseLost if the lease of
// the runner is over.
//
// It is locking: it locks the row of the organization, so reservations of one account are decided one after
// the other. Each of them then sees those before it. The costs are read after the reservations, and the cost of a
// call is stored before its reservation ends. So each call is found in the one or in the other.
func (s *Store) ReserveFromCap(ctx context.Context, organizationID string, h Reservation) (limited bool, err error) {
	if credits, err := s.People.KnownCap(ctx, organizationID); err != nil || credits == nil {
		return false, err
	}
	err = s.db.Hot(ctx, true, func(tx db.Tx) error {
		limited = false
		var credits *float64
		_, err := db.One(ctx, tx, db.Into(&credits), `SELECT monthly_credit_cap FROM organizations WHERE id = ?
			/* FOR NO KEY UPDATE */`, organizationID)
		if err != nil || credits == nil {
			return err
		}
		limited = true
		return reserveIn(ctx, tx, h, func() (int64, error) { return s.People.Remaining(ctx, tx, organizationID, *credits) })
	})
	return limited, err
}

// ReserveFromTeam reserves a part of the budget of a turn's team. budget is that of the root, in nano-dollars,
// less what the team keeps for its last calls. It is locking for the reason of ReserveFromCap: it locks the
// row of the root.
func (s *Store) ReserveFromTeam(ctx context.Context, t Turn, budget int64, h Reservation) error {
	return s.db.Hot(ctx, true, func(tx db.Tx) error {
		_, err := db.One(ctx, tx, db.ScanInt, `SELECT num FROM turns
			WHERE num = (SELECT coalesce(root_turn_num, num) FROM turns WHERE num = ?) /* FOR NO KEY UPDATE */`, t.Num)
		if err != nil {
			return err
		}
		return reserveIn(ctx, tx, h, func() (int64, error) {
			team, _, err := teamOf(ctx, tx, t)
			return budget - team.Cost, err
		})
	})
}

// reserveIn reads what is left and what other runners have reserved, and stores what the runner has from now on. The
// caller has locked the account.
func reserveIn(ctx context.Context, tx db.Tx, h Reservation, left func() (int64, error)) error {
	others, err := db.One(ctx, tx, db.ScanInt, `SELECT CAST(coalesce(sum(cost), 0) AS BIGINT) FROM reservations
		WHERE account = ? AND runner_id <> ? AND runner_id IN (SELECT id FROM runners)`, h.Account, h.RunnerID)
	if err != nil {
		return err
	}
	nanos, err := left()
	if err != nil {
		return err
	}
	if more := h.Decide(nanos, others); more > 0 {
		return setReservation(tx, h.Account, h.RunnerID, h.Own+more)
	}
	return nil
}

// setReservation stores what a runner has reserved. The row of the runner is locked, so that its lease does not end
// before the commit: a reservation counts only while its runner has a lease.
func setReservation(tx db.Tx, account, runnerID string, nanos int64) error {
	n, err := tx.Exec(`INSERT INTO reservations (account, runner_id, cost)
		SELECT CAST(?1 AS TEXT), id, CAST(?3 AS BIGINT) FROM runners WHERE id = ?2 /* FOR KEY SHARE */
		ON CONFLICT (account, runner_id) DO UPDATE SET cost = excluded.cost`, account, runnerID, nanos)
	if err == nil && n == 0 {
		return ErrLeaseLost
	}
	return err
}

// SetReservation changes what a runner has reserved of an account, after calls have ended. It returns ErrLeaseLost if
// the runner has no lease, so that its reservations do not count. It is locking: it changes one row by its key.
func (s *Store) SetReservation(ctx context.Context, account, runnerID string, nanos int64) error {
	return s.db.Hot(ctx, true, func(tx db.Tx) error {
		if nanos > 0 {
			return setReservation(tx, account, runnerID, nanos)
		}
		_, err := tx.Exec(`DELETE FROM reservations WHERE account = ? AND runner_id = ?`, account, runnerID)
		return err
	})
}
