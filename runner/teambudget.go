package runner

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"journeyman/runner/budget"
	"journeyman/store"
	"journeyman/store/db"
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
		chain, err := r.Models.Chain(ctx, e.claim.OrganizationID, a.Model)
		if err != nil {
			continue // without a model that turn makes no last call, so it needs no credits
		}
		e.team.kept += budget.LastCost(chain[0].Price, a.Estimated)
	}
	if left < math.MaxInt64/2 { // otherwise none of these turns has a limit
		e.team.time = max(left, time.Nanosecond) // not 0, because 0 means no limit
	}
	return nil
}

// spentAfter returns how much of its budget a turn has used when the call of its last step has ended. Of steps
// and credits, it counts what the limits count: those of the turn, and those of its team.
func (r *Runner) spentAfter(ctx context.Context, e *execution, call store.Call) (s store.Spent, err error) {
	own, last := r.cfg.Budgets[e.claim.Budget], len(e.steps)-1
	st := e.steps[last]
	st.Calls = append(slices.Clip(st.Calls), call)
	s.Steps = share(int64(len(e.steps)), own.Steps)
	s.Credits = share(e.used.Cost()+call.Cost, nanos(own.Credits))
	if limit := r.timeLimit(e); limit > 0 {
		s.Time = share(int64(store.Worked(e.steps[:last])+store.Worked([]store.Step{st})), int64(limit))
	}
	if e.team == nil {
		return s, nil
	}
	t, ok, err := r.cfg.Store.Team(ctx, e.claim.Turn)
	if err != nil || !ok {
		return s, err
	}
	root := r.cfg.Budgets[t.Root]
	s.ByTeam = true
	s.Steps = max(s.Steps, share(t.Steps, root.Steps))
	if root.Credits > 0 {
		s.Credits = max(s.Credits, share(t.Cost+call.Cost, max(1, nanos(root.Credits)-e.team.kept)))
	}
	return s, nil
}

// share returns how much of a limit is used, in per cent and at most 100. A limit of 0 is none.
func share(used, limit int64) int64 {
	if limit <= 0 {
		return 0
	}
	used = max(used, 0) // the clock may have been set back
	return int64(min(float64(used)/float64(limit), 1) * 100)
}

// nanos returns credits in nano-dollars.
func nanos(credits float64) int64 { return int64(credits * db.NanosPerCredit) }

// timeLimit returns the longest time that a turn may work, or 0 for no limit.
func (r *Runner) timeLimit(e *execution) time.Duration {
	limit := r.cfg.Budgets[e.claim.Budget].Time
	if e.team != nil && e.team.time != 0 && (limit == 0 || e.team.time < limit) {
		return e.team.time
	}
	return limit
}
