// Package budget decides what the next model call of a turn may cost. An Expense describes the call, an Allowance
// limits it, and a Ledger reserves its maximum cost, so that parallel calls cannot exceed a limit together.
//
// It imports prices from package model, and nothing else of this program. It reads no database: callers pass what
// an account may still spend.
package budget

import (
	"sort"

	"journeyman/runner/model"
)

// The limits that a turn can reach, with their names in incomplete_details.
const (
	LimitCredits = "credits"
	LimitSteps   = "steps"
	LimitTime    = "time"
)

const (
	wrapUpTokens = 1000 // output of the last call, for which the turn keeps credits
	leastTokens  = 256  // output; below this the turn makes its last call instead
	easyTokens   = 4096 // output; below this a call waits for reservations to be settled
)

// An Allowance limits the next model call of a turn.
type Allowance struct {
	MaxTokens int          // 0: the turn cannot even pay for its last call
	ByCredits bool         // the credits, and not the model, limit MaxTokens
	Limit     string       // the limit that is reached: this is the last call; "" for none
	Reserved  *Reservation // to be settled once the call's cost is in the database
}

// An Expense describes a model call before it is made.
type Expense struct {
	Price model.Price // of the model
	Limit string      // the limit that the turn has reached, so this is the last call; "" for none
	Left  int64       // nano-dollars that its turn may still spend
	Input int64       // tokens
	Most  int         // the most output tokens that the call can use
}

// Free reports whether the call costs nothing, so that it needs no reservation.
func (x Expense) Free() bool {
	return worstCost(x.Price, 1e6, 1e6) == 0 // a million tokens, because the price of one token may round to 0
}

// Decide returns the allowance of a call for which room nano-dollars are free, and the decision on its reservation.
// held is the sum of all current reservations of the account.
func (x Expense) Decide(room, held int64) (a Allowance, v Verdict) {
	room = min(room, x.Left)
	a, v.Nanos = x.fit(room)
	// Wait only for reservations, which end soon. An exhausted cap does not recover soon.
	inTheWay := held > 0 && room < x.Left
	tooLittle := a.Limit != x.Limit || a.MaxTokens < min(x.Most, easyTokens)
	v.Wait = inTheWay && tooLittle
	return a, v
}

// LastCost returns the maximum cost, in nano-dollars, of the last call of a turn whose input has had input tokens.
func LastCost(price model.Price, input int64) int64 {
	return worstCost(price, input+leastTokens, wrapUpTokens)
}

// fit returns the allowance with which the call fits into room nano-dollars, and its maximum cost.
func (x Expense) fit(room int64) (a Allowance, worst int64) {
	a.Limit = x.Limit
	if a.Limit == "" {
		// Keep enough credits for the last call, which sends the whole input again.
		after := LastCost(x.Price, x.Input)
		free := affordableTokens(x.Price, room-after, x.Input)
		if free < min(leastTokens, x.Most) {
			a.Limit = LimitCredits
		} else {
			a.MaxTokens, a.ByCredits = min(x.Most, free), free < x.Most
		}
	}
	// The last call may also use the credits that were kept for it.
	if a.Limit != "" {
		a.MaxTokens = min(x.Most, affordableTokens(x.Price, room, x.Input))
	}
	if a.MaxTokens > 0 {
		worst = worstCost(x.Price, x.Input, int64(a.MaxTokens))
	}
	return a, worst
}

// worstCost returns the maximum cost of a call, in nano-dollars. Some providers charge more for
// input that they write to their cache.
func worstCost(price model.Price, input, output int64) int64 {
	return max(price.Cost(model.Usage{InputTokens: input, OutputTokens: output}),
		price.Cost(model.Usage{InputTokens: input, CacheWriteTokens: input, OutputTokens: output}))
}

// affordableTokens returns how many output tokens a call with the given input can produce for left
// nano-dollars.
func affordableTokens(price model.Price, left, input int64) int {
	// Use a search, because worstCost is a maximum of rounded sums and has no simple inverse.
	return sort.Search(1<<30, func(n int) bool { return worstCost(price, input, int64(n)+1) > left })
}

// Spent reports whether the credits, not the model's own limit, have truncated an answer of outputTokens tokens. The
// model's own limit may be lower than in the price table.
func (a Allowance) Spent(outputTokens int64) bool {
	return a.ByCredits && outputTokens*10 >= int64(a.MaxTokens)*9
}
