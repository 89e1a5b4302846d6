package runner

import (
	"context"
	"fmt"
	"math"
	"time"
)

// loadTeam reads the team of a turn, if any.
func (r *Runner) loadTeam(ctx context.Context, e *execution) error {
	t, ok, err := r.cfg.Store.Team(ctx, e.claim.Turn)
	if err != nil || !ok {
		return err
	}
	e.team = &team{rootID: t.RootID}
	above, err := r.cfg.Store.Ancestors(ctx, e.claim.Turn)
	if err != nil {
		return fmt.Errorf("read the turns above: %w", err)
	}
	// Start at the root: the time that each turn has worked is subtracted for all turns below it.
	left := time.Duration(math.MaxInt64)
	for _, a := range above {
		if limit := r.cfg.Budgets[a.Budget].Time; limit != 0 {
			left = min(left, limit)
		}
		left -= a.Worked
		chain, err := r.chainOf(ctx, e.claim.OrganizationID, a.Model)
		if err != nil {
			continue // without a model that turn makes no last call, so it needs no credits
		}
		e.team.kept += worstCost(chain[0].price, a.Estimated+leastTokens, wrapUpTokens)
	}
	if left < math.MaxInt64/2 { // otherwise none of these turns has a limit
		e.team.time = max(left, time.Nanosecond) // not 0, because 0 means no limit
	}
	return nil
}

// timeLimit returns the longest time that a turn may work, or 0 for no limit.
func (r *Runner) timeLimit(e *execution) time.Duration {
	limit := r.cfg.Budgets[e.claim.Budget].Time
	if e.team != nil && e.team.time != 0 && (limit == 0 || e.team.time < limit) {
		return e.team.time
	}
	return limit
}
