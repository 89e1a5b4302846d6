package runner

import (
	"context"
	"errors"
	"math"

	"journeyman/runner/budget"
	"journeyman/store"
)

// reserveFor reserves the maximum cost of a call in two accounts: the budget of the turn's team,
// and the cap of its organization. Every call uses this order, which prevents a deadlock.
func (r *Runner) reserveFor(ctx context.Context, e *execution, x budget.Expense) (budget.Allowance, error) {
	if e.team == nil {
		return r.reserve(ctx, e.claim.OrganizationID, x)
	}
	t, _, err := r.cfg.Store.Team(ctx, e.claim.Turn)
	if err != nil {
		return budget.Allowance{}, err
	}
	root := r.cfg.Budgets[t.Root]
	if x.Limit == "" && outOfSteps(root, t) {
		x.Limit = budget.LimitSteps
	}
	if root.Credits == 0 { // no limit to share
		return r.reserve(ctx, e.claim.OrganizationID, x)
	}
	// Parallel turns of a team must not exceed its budget together. The team is read again inside
	// the callback, under the lock of the team's account.
	budget := nanos(root.Credits) - e.team.kept
	a, err := r.hold(ctx, "team "+e.team.rootID, x, balance{
		left: func(ctx context.Context) (int64, bool, error) {
			t, _, err := r.cfg.Store.Team(ctx, e.claim.Turn)
			return budget - t.Cost, true, err
		},
		hold: func(ctx context.Context, h store.Reservation) (bool, error) {
			return true, r.cfg.Store.ReserveFromTeam(ctx, e.claim.Turn, budget, h)
		}})
	if err != nil || a.MaxTokens == 0 {
		a.Reserved.Settle()
		a.Reserved = nil
		return a, err
	}
	// The cap of the organization can only lower the team's allowance.
	x.Limit, x.Most = a.Limit, a.MaxTokens
	b, err := r.reserve(ctx, e.claim.OrganizationID, x)
	if err != nil || b.Reserved == nil {
		a.Reserved.Settle()
		return b, err
	}
	b.Reserved.SettleWith(a.Reserved)
	b.ByCredits = b.ByCredits || a.ByCredits
	return b, nil
}

// reached returns the limit that the turn has reached, or "".
func (r *Runner) reached(e *execution) string {
	steps := r.cfg.Budgets[e.claim.Budget].Steps
	if e.limit == "" && steps > 0 && int64(len(e.steps)) >= steps {
		return budget.LimitSteps
	}
	return e.limit
}

// reachedByTeam returns the limit that the turn has reached, or its team, or "".
func (r *Runner) reachedByTeam(ctx context.Context, e *execution) (string, error) {
	limit := r.reached(e)
	if limit != "" || e.team == nil {
		return limit, nil
	}
	t, _, err := r.cfg.Store.Team(ctx, e.claim.Turn)
	if err == nil && outOfSteps(r.cfg.Budgets[t.Root], t) {
		limit = budget.LimitSteps
	}
	return limit, err
}

// outOfSteps reports whether a team has used up the steps of its root.
func outOfSteps(root Limits, t store.Team) bool { return root.Steps > 0 && t.Steps >= root.Steps }

// creditsLeft returns the amount that the turn may still spend, in nano-dollars.
func (r *Runner) creditsLeft(e *execution) int64 {
	credits := r.cfg.Budgets[e.claim.Budget].Credits
	if credits == 0 {
		return math.MaxInt64
	}
	return nanos(credits) - e.used.Cost()
}

// reserve reserves the maximum cost of a call in the organization's cap. So parallel turns
// cannot exceed the cap together. If only reservations of other calls leave too little room,
// reserve waits: those calls usually cost less than they have reserved.
func (r *Runner) reserve(ctx context.Context, organizationID string, x budget.Expense) (budget.Allowance, error) {
	return r.hold(ctx, organizationID, x, balance{
		left: func(ctx context.Context) (int64, bool, error) {
			return r.cfg.Store.People.Allowance(ctx, organizationID)
		},
		hold: func(ctx context.Context, h store.Reservation) (bool, error) {
			return r.cfg.Store.ReserveFromCap(ctx, organizationID, h)
		}})
}

// A balance holds the functions that read what the owner of an account may still spend. limited is false
// for an owner without a limit.
type balance struct {
	left func(context.Context) (nanos int64, limited bool, err error) // used by a single node

	// hold is used among nodes. It calls h.Decide with the amount, and stores the result of Decide.
	hold func(ctx context.Context, h store.Reservation) (limited bool, err error)
}

// hold is reserve for any account of the ledger.
func (r *Runner) hold(ctx context.Context, account string, x budget.Expense, b balance) (
	a budget.Allowance, err error) {
	if x.Free() {
		return budget.Allowance{Limit: x.Limit, MaxTokens: x.Most}, nil // a free call needs no reservation
	}
	// decide runs under the lock of the account: see budget.Ledger.Reserve.
	decide := func(room, held int64) (v budget.Verdict) {
		a, v = x.Decide(room, held)
		return v
	}
	reserved, err := r.ledger.Reserve(ctx, account, func(held int64) (budget.Verdict, error) {
		if r.cfg.Store.Shared() {
			return r.holdAmongNodes(ctx, account, held, b, decide)
		}
		left, limited, err := b.left(ctx)
		if !limited {
			return decide(math.MaxInt64, held), err
		}
		return decide(left-held, held), err
	})
	a.Reserved = reserved
	return a, err
}

// holdAmongNodes decides on a reservation, with regard to the reservations of all nodes. It stores the new
// sum of this node's reservations in the same transaction.
func (r *Runner) holdAmongNodes(ctx context.Context, account string, own int64, b balance,
	decide func(room, held int64) budget.Verdict) (v budget.Verdict, err error) {
	limited, err := b.hold(ctx, store.Reservation{Account: account, RunnerID: r.ID(), Own: own,
		Decide: func(left, others int64) int64 {
			v = decide(left-own-others, own+others)
			if v.Wait {
				return 0
			}
			return v.Nanos
		}})
	if err == nil && !limited {
		return decide(math.MaxInt64, own), nil
	}
	v.Shared = true
	return v, err
}

// storeHold writes the sum of this node's reservations in an account to the database, for the other nodes.
// A stop of the runner does not cancel the write, because turns that stop also settle their calls.
func (r *Runner) storeHold(account string, nanos int64) error {
	err := r.cfg.Store.SetReservation(context.WithoutCancel(r.ctx), account, r.ID(), nanos)
	if errors.Is(err, store.ErrLeaseLost) {
		return nil // the reservations of an expired lease no longer count
	}
	if err != nil {
		r.cfg.Log.Error("store the reservations of model calls, will retry", "err", err)
	}
	return err
}

// Limits returns the limits of a budget.
func (r *Runner) Limits(b store.Budget) Limits { return r.cfg.Budgets[b] }
