package store

import (
	"context"
	"errors"

	"journeyman/store/db"
	"journeyman/store/postgres"
)

// This file recognizes writes of a turn that a server has committed although its answer was lost. The
// runner then makes the write again, and must not take it for a failure.

// unlessStored returns nil instead of err if an earlier try of a write has stored its row already. The
// query selects whether that row exists.
func (s *Store) unlessStored(ctx context.Context, err error, query string, args ...any) error {
	if err == nil || !s.db.OnServer() || !postgres.IsDuplicate(err) {
		return err
	}
	stored, failed := db.One(ctx, s.db, db.ScanBool, query, args...)
	if failed != nil || !stored {
		return errors.Join(err, failed)
	}
	return nil
}

// unlessEnded returns the turn of a claim instead of err, which is ErrClaimLost, if an earlier try has
// ended the turn with the same outcome.
func (s *Store) unlessEnded(ctx context.Context, err error, c Claim, out Outcome) (Turn, error) {
	if !s.db.OnServer() || !errors.Is(err, ErrClaimLost) {
		return Turn{}, err
	}
	t, failed := db.One(ctx, s.db, scanTurn, selectTurn, c.Num)
	if failed != nil {
		return Turn{}, errors.Join(err, failed)
	}
	if t.CompletedAt == nil || t.Claims != c.Claims || !out.isOf(t) {
		return Turn{}, err
	}
	return t, nil
}

// isOf reports whether a turn has ended with the outcome.
func (o Outcome) isOf(t Turn) bool {
	failure := func(f *Failure) Failure {
		if f == nil {
			return Failure{}
		}
		return *f
	}
	return t.Status == o.Status && t.OutputText == o.OutputText && failure(t.Failure) == failure(o.Failure) &&
		t.Duration.Milliseconds() == o.Duration.Milliseconds()
}
