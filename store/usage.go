package store

import (
	"context"

	"journeyman/store/db"
	"journeyman/store/people"
)

// meter adds usage to the sums for charts, bills and the credit cap. If ended is set, the turn has
// ended and is counted. hasCap is false if the organization has no credit cap.
//
// These are the rows that most writes change, so meter comes last in a write. In a locking write, each
// sum is added to in one statement. From then on the row of spending is locked, so exactly one write
// finds that the spending has exceeded a share of the cap. UpdateOrganization locks the row before it changes a cap.
func (s *Effects) meter(tx db.Tx, t Turn, u Usage, ended, hasCap bool) error {
	return s.meterOrganization(tx, t.OrganizationID, []metered{{&t, u, ended, hasCap}})
}

// meterOrganization is meter for usage of one organization.
func (s *Effects) meterOrganization(tx db.Tx, organizationID string, list []metered) (err error) {
	ctx := context.Background()
	var cost int64
	hasCap := false
	for _, m := range list {
		tx.OnCommit(func() { s.counters.metered(*m.turn, m.usage, m.ended) })
		cost, hasCap = cost+m.usage.Cost(), hasCap || m.hasCap
	}
	var limit *float64
	if hasCap && cost != 0 {
		if limit, err = people.CreditCap(ctx, tx, organizationID); err != nil {
			return err
		}
	}
	for rest := list; len(rest) > 0; { // turns with the same sums are beside each other: see meterAll
		n := 1
		for n < len(rest) && sameSums(*rest[0].turn, *rest[n].turn) {
			n++
		}
		if err := s.addToUsage(tx, rest[:n]); err != nil {
			return err
		}
		rest = rest[n:]
	}
	if cost == 0 {
		return nil
	}
	// The check of the cap reads this one row of the month, because it must not sum up usage for
	// each request.
	const add = `INSERT INTO spending (organization_id, month, cost) VALUES (?, ?, ?)
		ON CONFLICT (organization_id, month) DO UPDATE SET cost = spending.cost + excluded.cost`
	if limit == nil {
		return tx.ExecLater(add, organizationID, people.Month(s.db.Now()), cost)
	}
	spent, err := db.One(ctx, tx, db.ScanInt, add+` RETURNING cost`, organizationID, people.Month(s.db.Now()), cost)
	if err == nil && db.IsLocking(tx) { // the cap may have changed until the row was locked
		limit, err = people.CreditCap(ctx, tx, organizationID)
	}
	if err != nil || limit == nil {
		return err
	}
	return s.alertCap(ctx, tx, people.CapChange{OrganizationID: organizationID,
		SpentBefore: spent - cost, Spent: spent, Before: limit, Cap: limit})
}

// sameSums reports whether the usage of two turns of an organization is in the same row.
func sameSums(a, b Turn) bool {
	return a.WorkerID == b.WorkerID && a.KeyID == b.KeyID && a.TriggeredBy == b.TriggeredBy
}

// addToUsage adds usage to one row of the sums of a day. All of it is of turns with the same sums.
func (s *Effects) addToUsage(tx db.Tx, list []metered) error {
	var u Usage
	var turns, failures, duration int64
	for _, m := range list {
		u = u.Add(m.usage)
		if !m.ended {
			continue
		}
		turns, duration = turns+1, duration+m.turn.Duration.Milliseconds()
		if m.turn.Status == Failed {
			failures++
		}
	}
	t := list[0].turn
	return tx.ExecLater(`INSERT INTO usage (organization_id, day, worker_id, api_key_id, triggered_by,
			turns, failures, steps, input_tokens, output_tokens, cost, duration_ms)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (organization_id, day, worker_id, api_key_id, triggered_by) DO UPDATE SET
			turns = usage.turns + excluded.turns, failures = usage.failures + excluded.failures,
			steps = usage.steps + excluded.steps, input_tokens = usage.input_tokens + excluded.input_tokens,
			output_tokens = usage.output_tokens + excluded.output_tokens, cost = usage.cost + excluded.cost,
			duration_ms = usage.duration_ms + excluded.duration_ms`,
		t.OrganizationID, s.db.Now().Unix()/secondsADay, t.WorkerID, t.KeyID, t.TriggeredBy,
		turns, failures, u.Steps, u.InputTokens, u.OutputTokens, u.Cost(), duration)
}

// MeterCaller charges a model call that belongs to no turn to the caller's organization.
func (s *Effects) MeterCaller(ctx context.Context, c people.Caller, u Usage) error {
	return s.db.Write(ctx, func(tx db.Tx) error {
		return s.meter(tx, Turn{OrganizationID: c.OrganizationID, KeyID: c.KeyID, TriggeredBy: c.Trigger}, u, false, true)
	})
}

// metered adds the usage that meter has written.
func (c *Counters) metered(t Turn, u Usage, ended bool) {
	c.Steps.Add(u.Steps)
	c.InputTokens.Add(u.InputTokens)
	c.OutputTokens.Add(u.OutputTokens)
	c.Cost.Add(u.Cost())
	if !ended {
		return
	}
	switch t.Status {
	case Failed:
		c.TurnsFailed.Add(1)
	case Aborted:
		c.TurnsAborted.Add(1)
	default:
		c.TurnsCompleted.Add(1)
	}
}
