package runner

import (
	"context"
	"math"
	"sort"
	"strings"
	"sync"
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
	easyTokens   = 4096             // a call with room for fewer waits for those under way to be paid
	wrapUpTime   = 60 * time.Second // for the last call of a turn out of time
)

// allowance is what the next model call may produce: maxTokens, or with limit set
// only the last call, or with none set nothing more. reserved is its worst case in
// nano-dollars, held for the organization until settled.
type allowance struct {
	maxTokens int
	squeezed  bool   // maxTokens is less than the model can give
	limit     string // '' or the limit that is reached
	none      bool   // not even the last call can be paid
	reserved  int64
}

// allow decides what the next call of a turn may spend, and reserves it.
func (r *Runner) allow(ctx context.Context, w *work) (allowance, error) {
	return r.reserve(ctx, w.claim.OrganizationID, expense{price: w.model.price, limit: r.reached(w), left: r.creditsLeft(w),
		input: max(w.raw, w.gauge(w.raw)), most: r.maxOutput(w)})
}

// reached is the limit that the turn has reached, ” while there is none.
func (r *Runner) reached(w *work) string {
	steps := r.cfg.Budgets[w.claim.Budget].Steps
	if w.limit == "" && steps > 0 && int64(len(w.steps)) >= steps {
		return limitSteps
	}
	return w.limit
}

// creditsLeft is what the turn may still spend, in nano-dollars.
func (r *Runner) creditsLeft(w *work) int64 {
	credits := r.cfg.Budgets[w.claim.Budget].Credits
	if credits == 0 {
		return math.MaxInt64
	}
	return int64(credits*store.NanosPerCredit) - w.used.Cost()
}

// An expense is a call that is to be made.
type expense struct {
	price model.Price
	limit string // that is reached already: it is the last call
	left  int64  // what its turn may still spend, in nano-dollars
	input int64  // tokens
	most  int    // tokens it can make use of
}

// reserve holds the worst case of a call against the organization's cap, so that
// turns side by side cannot overrun it together. Where only what others hold is in
// the way, it waits: they will not need all of it.
func (r *Runner) reserve(ctx context.Context, organizationID string, e expense) (a allowance, err error) {
	if worstCost(e.price, 1e6, 1e6) == 0 {
		return allowance{limit: e.limit, maxTokens: e.most}, nil // nothing to pay, nothing to reserve
	}
	decide := func(held int64) (int64, bool, error) {
		left, capped, err := r.cfg.Store.Allowance(ctx, organizationID)
		room := e.left
		if capped {
			room = min(room, left-held)
		}
		a = e.fit(room)
		wait := held > 0 && room < e.left && (a.limit != e.limit || a.none || a.maxTokens < min(e.most, easyTokens))
		return a.reserved, wait, err
	}
	for {
		settled, err := r.ledger.hold(organizationID, decide)
		if err != nil || settled == nil {
			return a, err
		}
		select {
		case <-settled:
		case <-ctx.Done():
			return allowance{}, context.Cause(ctx)
		}
	}
}

// fit makes the call's worst case fit into room nano-dollars.
func (e expense) fit(room int64) allowance {
	a := allowance{limit: e.limit}
	if a.limit == "" {
		// Keep enough for one more call after this one, which reads all of it again.
		after := worstCost(e.price, e.input+leastTokens, wrapUpTokens)
		free := affordableTokens(e.price, room-after, e.input)
		if free < min(leastTokens, e.most) {
			a.limit = limitCredits
		} else {
			a.maxTokens, a.squeezed = min(e.most, free), free < e.most
		}
	}
	if a.limit != "" {
		a.maxTokens = min(e.most, affordableTokens(e.price, room, e.input))
	}
	if a.none = a.maxTokens < 1; !a.none {
		a.reserved = worstCost(e.price, e.input, int64(a.maxTokens))
	}
	return a
}

// worstCost is the most that a call can cost, in nano-dollars: some providers charge
// more for what they put into their cache.
func worstCost(price model.Price, input, output int64) int64 {
	return max(price.Cost(model.Usage{InputTokens: input, OutputTokens: output}),
		price.Cost(model.Usage{InputTokens: input, CacheWriteTokens: input, OutputTokens: output}))
}

// affordableTokens is how many tokens a call with that input can produce for left
// nano-dollars.
func affordableTokens(price model.Price, left, input int64) int {
	return sort.Search(1<<30, func(n int) bool { return worstCost(price, input, int64(n)+1) > left })
}

// A ledger knows what calls under way may cost, by organization.
type ledger struct {
	mu sync.Mutex
	m  map[string]*reservations
}

type reservations struct {
	nanos   int64
	settled chan struct{} // closed when the next of them is settled
}

// hold asks decide, which is told what is held, how much to hold more or whether
// to wait. It gives the channel to wait for, or nil once it holds.
func (l *ledger) hold(organizationID string, decide func(held int64) (nanos int64, wait bool, err error)) (<-chan struct{}, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	held := l.m[organizationID]
	if held == nil {
		held = &reservations{settled: make(chan struct{})}
	}
	// What is settled is in the database before it is taken off here, so asking the
	// database while holding mu counts everything at least once.
	nanos, wait, err := decide(held.nanos)
	if err != nil || nanos == 0 && !wait {
		return nil, err
	}
	if wait {
		return held.settled, nil
	}
	if l.m == nil {
		l.m = map[string]*reservations{}
	}
	l.m[organizationID] = held
	held.nanos += nanos
	return nil, nil
}

// settle gives a reservation back, once the call's real cost is in the database.
func (l *ledger) settle(organizationID string, nanos int64) {
	if nanos == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	held := l.m[organizationID]
	close(held.settled)
	held.settled = make(chan struct{})
	if held.nanos -= nanos; held.nanos == 0 {
		delete(l.m, organizationID)
	}
}

// modelMaxTokens is the most a model produces in one call.
func modelMaxTokens(price model.Price) int {
	if price.MaxOutput > 0 {
		return int(price.MaxOutput)
	}
	return 32_000
}

// estimateTokens is about what a request counts, rather too much than too little.
func estimateTokens(req model.Request) int64 {
	return overheadTokens(req) + messageTokens(req.Messages)
}

// overheadTokens is what a request counts besides its messages.
func overheadTokens(req model.Request) int64 {
	n := textTokens(req.Preamble) + textTokens(req.Instructions) + textTokens(string(req.OutputSchema))
	for _, t := range req.Tools {
		n += textTokens(t.Name) + textTokens(t.Description) + textTokens(string(t.InputSchema))
	}
	return n
}

// messageTokens is what messages count.
func messageTokens(messages []model.Message) int64 {
	n := int64(0)
	for _, m := range messages {
		n += 4
		for _, p := range m.Parts {
			n += textTokens(p.Text) + textTokens(string(p.Input)) + textTokens(p.ToolName) + textTokens(p.Path)
			if p.Type == model.PartFile {
				n += fileTokens(p)
			}
		}
	}
	return n
}

// textTokens counts four letters a token, and two bytes of all else: figures, signs
// and other scripts.
func textTokens(s string) int64 {
	letters := 0
	for i := range len(s) {
		if c := s[i] | 0x20; c >= 'a' && c <= 'z' || s[i] == ' ' {
			letters++
		}
	}
	return int64(letters+3)/4 + int64(len(s)-letters+1)/2
}

// fileTokens is about what a file counts whose bytes a provider may send along:
// pictures count by their size in pixels, which providers bound, and text is sent
// only up to a limit.
func fileTokens(p model.Part) int64 {
	const picture, name, longestText, longest = 2000, 100, 256 << 10, 64_000
	switch {
	case p.Open == nil: // it is only named
		return name
	case strings.HasPrefix(p.MediaType, "image/"):
		return picture
	case p.MediaType == "application/pdf":
		return min(p.Size/4, longest)
	case p.Size > longestText:
		return name
	}
	return p.Size/4 + name
}
