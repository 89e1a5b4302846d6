package store

import (
	"context"
	"database/sql"
	"errors"
	"time"
)

// NanosPerCredit is one credit, 0.01 US$, in nano-dollars.
const NanosPerCredit = 10_000_000

// Credits gives nano-dollars in credits.
func Credits(nanos int64) float64 { return float64(nanos) / NanosPerCredit }

// Dollars gives nano-dollars in US$.
func Dollars(nanos int64) float64 { return float64(nanos) / 1e9 }

// meter adds to the sums that plots, bills and the credit cap read. ended says that
// the turn is over and counts as one.
func (s *Store) meter(tx *Tx, t Turn, u Usage, ended bool) error {
	tx.ifCommitted(func() { s.counters.metered(t, u, ended) })
	now := s.now()
	var turns, failures, duration int64
	if ended {
		turns, duration = 1, t.Duration.Milliseconds()
		if t.Status == Failed {
			failures = 1
		}
	}
	_, err := tx.Exec(`INSERT INTO usage (organization_id, day, worker_id, api_key_id, triggered_by,
			turns, failures, steps, input_tokens, output_tokens, cost, duration_ms)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT DO UPDATE SET turns = turns + excluded.turns, failures = failures + excluded.failures, steps = steps + excluded.steps,
			input_tokens = input_tokens + excluded.input_tokens, output_tokens = output_tokens + excluded.output_tokens,
			cost = cost + excluded.cost, duration_ms = duration_ms + excluded.duration_ms`,
		t.OrganizationID, now.Unix()/86_400, t.WorkerID, t.KeyID, t.TriggeredBy,
		turns, failures, u.Steps, u.InputTokens, u.OutputTokens, u.Cost(), duration)
	if err != nil || u.Cost() == 0 {
		return err
	}
	_, err = tx.Exec(`INSERT INTO spending (organization_id, month, cost) VALUES (?, ?, ?)
		ON CONFLICT DO UPDATE SET cost = cost + excluded.cost`, t.OrganizationID, month(now), u.Cost())
	return err
}

func month(t time.Time) int { return t.UTC().Year()*12 + int(t.UTC().Month()) - 1 }

// Allowance is what an organization may still spend this month in nano-dollars;
// limited is false without a cap.
func (s *Store) Allowance(ctx context.Context, organizationID string) (left int64, limited bool, err error) {
	return s.allowance(ctx, s, organizationID)
}

func (s *Store) allowance(ctx context.Context, q querier, organizationID string) (left int64, limited bool, err error) {
	var credits sql.NullFloat64
	_, err = one(ctx, q, func(row scanner) (struct{}, error) { return struct{}{}, row.Scan(&credits) },
		`SELECT monthly_credit_cap FROM organizations WHERE id = ?`, organizationID)
	if err != nil || !credits.Valid {
		return 0, false, err
	}
	spent, err := one(ctx, q, scanInt, `SELECT cost FROM spending WHERE organization_id = ? AND month = ?`, organizationID, month(s.now()))
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return 0, false, err
	}
	return int64(min(credits.Float64*NanosPerCredit, 1<<62)) - spent, true, nil
}

func (s *Store) checkCap(ctx context.Context, q querier, organizationID string) error {
	left, limited, err := s.allowance(ctx, q, organizationID)
	if err == nil && limited && left <= 0 {
		return CapReached()
	}
	return err
}

// CapReached is the refusal of what an organization can't pay any more.
func CapReached() *Error {
	return &Error{Kind: PaymentRequired, Code: "credit_cap", Message: "the organization has used its credits for this month"}
}

// SetCreditCap sets how many credits an organization may spend in a calendar month
// (UTC); nil lifts the cap.
func (s *Store) SetCreditCap(ctx context.Context, organizationID string, credits *float64) error {
	if credits != nil && !(*credits >= 0) { // nor is NaN
		var f Fields
		f.Add("credits", "must be 0 or more")
		return f.Err()
	}
	return s.write(ctx, func(tx *Tx) error {
		var v any
		if credits != nil {
			v = *credits
		}
		n, err := tx.Exec(`UPDATE organizations SET monthly_credit_cap = ? WHERE id = ?`, v, organizationID)
		if err == nil && n == 0 {
			return Errorf(NotFound, "no organization has that id")
		}
		return err
	})
}

// MeterCaller charges a model call that belongs to no turn to the caller's
// organization.
func (s *Store) MeterCaller(ctx context.Context, c Caller, u Usage) error {
	return s.write(ctx, func(tx *Tx) error {
		return s.meter(tx, Turn{OrganizationID: c.OrganizationID, KeyID: c.KeyID, TriggeredBy: c.Trigger}, u, false)
	})
}
