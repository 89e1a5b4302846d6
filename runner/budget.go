package runner

import (
	"context"
	"math"
	"sort"
	"time"

	"journeyman/runner/model"
	"journeyman/store"
)

// The limits that a turn can reach, as incomplete_details names them.
const (
	limitCredits = "credits"
	limitSteps   = "steps"
	limitTime    = "time"
)

const (
	wrapUpTokens = 1000             // output that the turn keeps credits for, so that it can pay its last call
	leastTokens  = 256              // output; a call that can afford less is not worth its price
	easyTokens   = 4096             // output; a call that can afford less waits for other calls to be settled
	wrapUpTime   = 60 * time.Second // for the last call of a turn that is out of time
)

// An allowance bounds the next model call of a turn.
type allowance struct {
	maxTokens int          // 0: not even the last call can be paid
	byCredits bool         // the credits, and not the model, limit maxTokens
	limit     string       // the limit that is reached, so this is the last call; "" for none
	reserved  *reservation // to be settled once the call's cost is in the database
}

// allow returns the allowance for the next call of a turn, and reserves its worst cost.
func (r *Runner) allow(ctx context.Context, e *execution) (allowance, error) {
	input := e.prompt.Calibrated(e.estimate)
	// The larger of the two estimates counts: a calibration that is too low must not overrun the cap.
	return r.reserveFor(ctx, e, expense{price: e.model.price, limit: r.reached(e), left: r.creditsLeft(e),
		input: max(e.estimate, input), most: e.window.Output(input)})
}

// reserveFor reserves the worst cost of a call, both in the budget of the turn's team and in
// the cap of its organization. Every call takes the two in this order, so that no two calls
// wait for each other.
func (r *Runner) reserveFor(ctx context.Context, e *execution, x expense) (allowance, error) {
	if e.team == nil {
		return r.reserve(ctx, e.claim.OrganizationID, x)
	}
	t, _, err := r.cfg.Store.Team(ctx, e.claim.Turn)
	if err != nil {
		return allowance{}, err
	}
	root := r.cfg.Budgets[t.Root]
	if x.limit == "" && root.Steps > 0 && t.Steps >= root.Steps {
		x.limit = limitSteps
	}
	if root.Credits == 0 { // no limit to share
		return r.reserve(ctx, e.claim.OrganizationID, x)
	}
	// Parallel turns of the team must not overrun its budget together. The team is read again
	// inside, under the lock of its account.
	a, err := r.hold(ctx, "team "+e.team.rootID, x, func(ctx context.Context) (int64, bool, error) {
		t, _, err := r.cfg.Store.Team(ctx, e.claim.Turn)
		return int64(root.Credits*store.NanosPerCredit) - t.Cost - e.team.kept, true, err
	})
	if err != nil || a.maxTokens == 0 {
		a.reserved.settle()
		a.reserved = nil
		return a, err
	}
	// The organization can only lower what the team allows.
	x.limit, x.most = a.limit, a.maxTokens
	b, err := r.reserve(ctx, e.claim.OrganizationID, x)
	if err != nil || b.reserved == nil {
		a.reserved.settle()
		return b, err
	}
	b.reserved.also, b.byCredits = a.reserved, b.byCredits || a.byCredits
	return b, nil
}

// reached returns the limit that the turn has reached, or "".
func (r *Runner) reached(e *execution) string {
	steps := r.cfg.Budgets[e.claim.Budget].Steps
	if e.limit == "" && steps > 0 && int64(len(e.steps)) >= steps {
		return limitSteps
	}
	return e.limit
}

// creditsLeft returns the amount that the turn may still spend, in nano-dollars.
func (r *Runner) creditsLeft(e *execution) int64 {
	credits := r.cfg.Budgets[e.claim.Budget].Credits
	if credits == 0 {
		return math.MaxInt64
	}
	return int64(credits*store.NanosPerCredit) - e.used.Cost()
}

// An expense is a model call that is to be made.
type expense struct {
	price model.Price
	limit string // the limit that is reached already: this is the last call
	left  int64  // nano-dollars that its turn may still spend
	input int64  // tokens
	most  int    // tokens that the call can make use of
}

// reserve holds the worst cost of a call against the organization's cap, so that parallel
// turns cannot overrun it together. If only reservations of other calls leave too little
// room, it waits: those calls will not need everything that they hold.
func (r *Runner) reserve(ctx context.Context, organizationID string, x expense) (allowance, error) {
	return r.hold(ctx, organizationID, x, func(ctx context.Context) (int64, bool, error) {
		return r.cfg.Store.Allowance(ctx, organizationID)
	})
}

// hold is reserve for any account of the ledger. left returns the nano-dollars that the owner
// of the account may still spend. limited is false for an owner without a limit.
func (r *Runner) hold(ctx context.Context, account string, x expense,
	left func(context.Context) (nanos int64, limited bool, err error)) (a allowance, err error) {
	// A million tokens show any price, however low it is per token.
	if worstCost(x.price, 1e6, 1e6) == 0 {
		return allowance{limit: x.limit, maxTokens: x.most}, nil // nothing to pay, nothing to reserve
	}
	reserved, err := r.ledger.reserve(ctx, account, func(held int64) (nanos int64, wait bool, err error) {
		// This runs under the lock of the account: see reservation.hold.
		left, limited, err := left(ctx)
		room := x.left
		if limited {
			room = min(room, left-held)
		}
		a, nanos = x.fit(room)
		// It waits only for reservations, which end soon. A cap that is used up stays used up.
		inTheWay := held > 0 && room < x.left
		tooLittle := a.limit != x.limit || a.maxTokens < min(x.most, easyTokens)
		return nanos, inTheWay && tooLittle, err
	})
	a.reserved = reserved
	return a, err
}

// fit returns the allowance with which the call fits into room nano-dollars, and its worst
// cost.
func (x expense) fit(room int64) (a allowance, worst int64) {
	a.limit = x.limit
	if a.limit == "" {
		// Keep enough for the last call, which sends this whole input again.
		after := worstCost(x.price, x.input+leastTokens, wrapUpTokens)
		free := affordableTokens(x.price, room-after, x.input)
		if free < min(leastTokens, x.most) {
			a.limit = limitCredits
		} else {
			a.maxTokens, a.byCredits = min(x.most, free), free < x.most
		}
	}
	// The last call may also use the amount that was kept for it.
	if a.limit != "" {
		a.maxTokens = min(x.most, affordableTokens(x.price, room, x.input))
	}
	if a.maxTokens > 0 {
		worst = worstCost(x.price, x.input, int64(a.maxTokens))
	}
	return a, worst
}

// worstCost returns the most that a call can cost, in nano-dollars. Some providers charge
// more for input that they put into their cache.
func worstCost(price model.Price, input, output int64) int64 {
	return max(price.Cost(model.Usage{InputTokens: input, OutputTokens: output}),
		price.Cost(model.Usage{InputTokens: input, CacheWriteTokens: input, OutputTokens: output}))
}

// affordableTokens returns how many tokens a call with that input can produce for left
// nano-dollars.
func affordableTokens(price model.Price, left, input int64) int {
	// A search, because worstCost is a maximum of rounded sums and has no simple inverse.
	return sort.Search(1<<30, func(n int) bool { return worstCost(price, input, int64(n)+1) > left })
}

// Limits returns the limits of a budget.
func (r *Runner) Limits(b store.Budget) Limits { return r.cfg.Budgets[b] }
