package runner

import (
	"context"
	"time"

	"journeyman/runner/model"
	"journeyman/store"
)

// Limits are what a turn may spend under a budget.
type Limits struct {
	Credits float64 // 0: no limit
	Steps   int64   // model calls before the last one that wraps up; 0: no limit
	Time    time.Duration
}

// DefaultBudgets are the limits of each budget.
func DefaultBudgets() map[store.Budget]Limits {
	return map[store.Budget]Limits{
		store.BudgetLow:       {Credits: 10, Steps: 10, Time: 5 * time.Minute},
		store.BudgetStandard:  {Credits: 100, Steps: 50, Time: 30 * time.Minute},
		store.BudgetHigh:      {Credits: 1000, Steps: 250, Time: 2 * time.Hour},
		store.BudgetUnlimited: {Time: 24 * time.Hour},
	}
}

// The limits a turn can reach (interface: incomplete_details).
const (
	limitCredits = "credits"
	limitSteps   = "steps"
	limitTime    = "time"
)

const (
	wrapUpTokens = 1000             // kept back so that the last call can be paid
	leastTokens  = 256              // a call with room for fewer is not worth making
	wrapUpTime   = 60 * time.Second // for the last call of a turn out of time
)

// allowance is what the next model call may produce: maxTokens, or with limit set
// only the last call, or with none set nothing more. reserved is its worst case in
// nano-dollars, held for the organization until settled.
type allowance struct {
	maxTokens int
	limit     string // '' or the limit that is reached
	none      bool   // not even the last call can be paid
	reserved  int64
}

// allow decides what the next call may spend, and reserves its worst case against
// the organization's cap, so that turns side by side cannot overrun it together.
func (r *Runner) allow(ctx context.Context, w *work, req model.Request) (allowance, error) {
	price := r.cfg.Prices.Lookup(r.cfg.Model.Name())
	limits := r.cfg.Budgets[w.claim.Budget]
	most := modelMaxTokens(price)
	a := allowance{maxTokens: most}
	switch {
	case w.outOfTime:
		a.limit = limitTime
	case limits.Steps > 0 && int64(len(w.steps)) >= limits.Steps:
		a.limit = limitSteps
	}
	if price.Cost(model.Usage{OutputTokens: 1_000_000}) == 0 {
		return a, nil // nothing to pay, nothing to reserve
	}
	left := int64(1) << 62
	if limits.Credits > 0 {
		left = int64(limits.Credits*store.NanosPerCredit) - w.used.Cost()
	}
	inputTokens := estimateTokens(req)
	r.mu.Lock()
	defer r.mu.Unlock()
	orgLeft, capped, err := r.cfg.Store.Allowance(ctx, w.claim.OrganizationID)
	if err != nil {
		return a, err
	}
	if capped {
		left = min(left, orgLeft-r.spent[w.claim.OrganizationID])
	}
	a.fit(price, left, inputTokens, most)
	a.reserved = price.Cost(model.Usage{InputTokens: inputTokens, OutputTokens: int64(a.maxTokens)})
	r.spent[w.claim.OrganizationID] += a.reserved
	return a, nil
}

// fit makes the call's worst case fit into left nano-dollars.
func (a *allowance) fit(price model.Price, left, inputTokens int64, most int) {
	affordable := affordableTokens(price, left, inputTokens)
	if a.limit == "" {
		// Keep enough for one more call after this one, which reads all of it again.
		after := price.Cost(model.Usage{InputTokens: inputTokens + leastTokens, OutputTokens: wrapUpTokens})
		if free := affordableTokens(price, left-after, inputTokens); free >= leastTokens {
			a.maxTokens = min(most, free)
			return
		}
		a.limit = limitCredits
	}
	a.maxTokens = min(most, wrapUpTokens, affordable)
	a.none = a.maxTokens < 1
	a.maxTokens = max(a.maxTokens, 0)
}

// affordableTokens is how many tokens a call with that input can produce for left
// nano-dollars.
func affordableTokens(price model.Price, left, inputTokens int64) int {
	left -= price.Cost(model.Usage{InputTokens: inputTokens})
	perMillion := price.Cost(model.Usage{OutputTokens: 1_000_000})
	if left <= 0 || perMillion == 0 {
		return 0
	}
	return int(min(float64(left)*1e6/float64(perMillion), 1<<30))
}

// settle gives a reservation back, once the call's real cost is in the journal.
func (r *Runner) settle(organizationID string, a allowance) {
	if a.reserved == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.spent[organizationID] -= a.reserved; r.spent[organizationID] <= 0 {
		delete(r.spent, organizationID)
	}
}

// modelMaxTokens is the most a model produces in one call.
func modelMaxTokens(price model.Price) int {
	if price.MaxOutput > 0 {
		return int(price.MaxOutput)
	}
	return 32_000
}

// estimateTokens is about what a request counts: four bytes a token, rounded up.
func estimateTokens(req model.Request) int64 {
	n := len(req.Preamble) + len(req.Instructions) + len(req.OutputSchema)
	for _, t := range req.Tools {
		n += len(t.Name) + len(t.Description) + len(t.InputSchema)
	}
	for _, m := range req.Messages {
		n += 16
		for _, p := range m.Parts {
			n += len(p.Text) + len(p.Input) + len(p.ToolName) + int(min(p.Size, 1<<20))
		}
	}
	return int64(n+3) / 4
}
