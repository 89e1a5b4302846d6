package runner

import (
	"sort"

	"journeyman/runner/model"
)

// The limits that a turn can reach, with their names in incomplete_details.
const (
	limitCredits = "credits"
	limitSteps   = "steps"
	limitTime    = "time"
)

const (
	wrapUpTokens = 1000 // output of the last call, for which the turn keeps credits
	leastTokens  = 256  // output; below this the turn makes its last call instead
	easyTokens   = 4096 // output; below this a call waits for reservations to be settled
)

// An allowance limits the next model call of a turn.
type allowance struct {
	maxTokens int          // 0: the turn cannot even pay for its last call
	byCredits bool         // the credits, and not the model, limit maxTokens
	limit     string       // the limit that is reached: this is the last call; "" for none
	reserved  *reservation // to be settled once the call's cost is in the database
}

// An expense describes a model call before it is made.
type expense struct {
	price model.Price
	limit string // the limit that the turn has reached, so this is the last call; "" for none
	left  int64  // nano-dollars that its turn may still spend
	input int64  // tokens
	most  int    // the most output tokens that the call can use
}

// free reports whether the call costs nothing, so that it needs no reservation.
func (x expense) free() bool {
	return worstCost(x.price, 1e6, 1e6) == 0 // a million tokens, because the price of one token may round to 0
}

// decide returns the allowance of a call for which room nano-dollars are free, and the decision on its reservation.
// held is the sum of all current reservations of the account.
func (x expense) decide(room, held int64) (a allowance, v verdict) {
	room = min(room, x.left)
	a, v.nanos = x.fit(room)
	// Wait only for reservations, which end soon. An exhausted cap does not recover soon.
	inTheWay := held > 0 && room < x.left
	tooLittle := a.limit != x.limit || a.maxTokens < min(x.most, easyTokens)
	v.wait = inTheWay && tooLittle
	return a, v
}

// lastCost returns the maximum cost, in nano-dollars, of the last call of a turn whose input has had input tokens.
func lastCost(price model.Price, input int64) int64 {
	return worstCost(price, input+leastTokens, wrapUpTokens)
}

// fit returns the allowance with which the call fits into room nano-dollars, and its maximum cost.
func (x expense) fit(room int64) (a allowance, worst int64) {
	a.limit = x.limit
	if a.limit == "" {
		// Keep enough credits for the last call, which sends the whole input again.
		after := lastCost(x.price, x.input)
		free := affordableTokens(x.price, room-after, x.input)
		if free < min(leastTokens, x.most) {
			a.limit = limitCredits
		} else {
			a.maxTokens, a.byCredits = min(x.most, free), free < x.most
		}
	}
	// The last call may also use the credits that were kept for it.
	if a.limit != "" {
		a.maxTokens = min(x.most, affordableTokens(x.price, room, x.input))
	}
	if a.maxTokens > 0 {
		worst = worstCost(x.price, x.input, int64(a.maxTokens))
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

// spent reports whether the credits, not the model's own limit, have truncated an answer of outputTokens tokens. The
// model's own limit may be lower than in the price table.
func (a allowance) spent(outputTokens int64) bool {
	return a.byCredits && outputTokens*10 >= int64(a.maxTokens)*9
}
