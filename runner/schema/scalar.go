package schema

import (
	"encoding/json"
	"math"
	"math/big"
	"reflect"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// kindOf returns the kind of a JSON value.
func kindOf(v any) kind {
	switch v := v.(type) {
	case nil:
		return null
	case bool:
		return boolean
	case json.Number:
		if r, ok := rational(v); ok && r.IsInt() {
			return integer
		}
		return fraction
	case string:
		return text
	case []any:
		return array
	}
	return object
}

// pick returns a candidate that meets c. It skips v.variant suitable candidates if there are
// more. all means that no other value is possible. Then it returns the clash at if no candidate
// fits.
func (v *solver) pick(c *conjunction, candidates []any, all bool, at *clash) result {
	var good []any
	open := !all
	for _, value := range candidates {
		ok, known := v.meets(value, c)
		open = open || !known
		if ok && !slices.ContainsFunc(good, func(one any) bool { return reflect.DeepEqual(one, value) }) {
			if good = append(good, value); len(good) > v.variant {
				break
			}
		}
	}
	switch {
	case len(good) > 0:
		return result{value: good[len(good)-1], ok: true}
	case open && len(candidates) > 0:
		return result{value: candidates[0]}
	case open:
		return result{}
	}
	return result{clash: at}
}

// plain finds null, false or true.
func (v *solver) plain(c *conjunction, _ int) result {
	return v.pick(c, []any{nil, false, true}, true, c.nothing("no value of its type is allowed"))
}

// nothing returns a clash of the whole conjunction.
func (c *conjunction) nothing(why string) *clash {
	if len(c.schemas) == 0 {
		return &clash{"", why}
	}
	return clashAt(c.schemas[0], "", "%s", why)
}

// A limit is a limit of a count, and the schema that sets it.
type limit struct {
	n  int
	of *jsonschema.Schema
}

// limits returns the largest minimum and the smallest maximum of all schemas.
func (c *conjunction) limits(of func(*jsonschema.Schema) (least, most *int)) (least, most limit) {
	most.n = math.MaxInt
	for _, s := range c.schemas {
		low, high := of(s)
		if low != nil && *low > least.n {
			least = limit{*low, s}
		}
		if high != nil && *high < most.n {
			most = limit{*high, s}
		}
	}
	return least, most
}

// text finds a string that meets c.
func (v *solver) text(c *conjunction, _ int) result {
	least, most := c.limits(func(s *jsonschema.Schema) (*int, *int) { return s.MinLength, s.MaxLength })
	if least.n > most.n {
		return result{clash: clashAt(least.of, "/minLength", "%d is more than the maxLength of %d", least.n, most.n)}
	}
	if most.n == 0 {
		return v.pick(c, []any{""}, true,
			clashAt(most.of, "/maxLength", "0 permits only the empty text, which is not allowed"))
	}
	// Such a string may exist, but is too long to construct.
	if least.n > 100_000 {
		return result{}
	}
	var candidates []any
	// Samples of patterns are expensive, so they count as more work.
	v.left -= 100 * len(c.schemas)
	for _, t := range c.texts(least.n) {
		candidates = append(candidates, t)
	}
	return v.pick(c, candidates, false, nil)
}

// texts returns strings that may meet a conjunction.
func (c *conjunction) texts(least int) []string {
	var list []string
	for _, s := range c.schemas {
		for _, hint := range slices.Concat(s.Examples, defaultOf(s)) {
			if t, ok := hint.(string); ok {
				list = append(list, t)
			}
		}
		if s.Format != nil {
			list = append(list, formatSamples(s.Format.Name)...)
		}
		if s.Pattern != nil && len(list) < 1000 {
			list = append(list, patternSamples(s.Pattern.String(), least)...)
		}
	}
	for _, start := range []string{"", "a", "A", "0", "a b", "aA0-", "unknown", "1970-01-01", "b", "c", "1"} {
		missing := max(0, least-len(start))
		list = append(list, start, start+strings.Repeat("a", missing), start+strings.Repeat("0", missing))
	}
	return list
}

func defaultOf(s *jsonschema.Schema) []any {
	if s.Default == nil {
		return nil
	}
	return []any{*s.Default}
}

// An end is one end of a range of numbers.
type end struct {
	at     *big.Rat // nil if the range has no end here
	strict bool     // the range excludes the end itself
	of     *jsonschema.Schema
}

// number finds a number that meets c.
func (v *solver) number(c *conjunction, _ int) result {
	low, high := c.ends()
	step, known := c.step()
	if problem := impossible(low, high); problem != nil {
		return result{clash: problem}
	}
	if !known {
		return result{}
	}
	if step == nil {
		some, _ := numbers(between(low, high))
		return v.pick(c, some, false, nil)
	}
	candidates, all := multiples(low, high, step)
	return v.pick(c, candidates, all,
		clashAt(c.schemas[0], "", "no multiple of %s is within its limits", step.RatString()))
}

// ends returns the range that all schemas allow.
func (c *conjunction) ends() (low, high end) {
	tighten := func(e *end, at *big.Rat, strict bool, s *jsonschema.Schema, sign int) {
		if at == nil {
			return
		}
		if side := 1; e.at != nil {
			if side = at.Cmp(e.at) * sign; side < 0 || side == 0 && !strict {
				return
			}
		}
		*e = end{at, strict, s}
	}
	for _, s := range c.schemas {
		tighten(&low, s.Minimum, false, s, 1)
		tighten(&low, s.ExclusiveMinimum, true, s, 1)
		tighten(&high, s.Maximum, false, s, -1)
		tighten(&high, s.ExclusiveMaximum, true, s, -1)
	}
	return low, high
}

// impossible returns a clash if a range is empty.
func impossible(low, high end) *clash {
	if low.at == nil || high.at == nil {
		return nil
	}
	if order := low.at.Cmp(high.at); order > 0 || order == 0 && (low.strict || high.strict) {
		return clashAt(low.of, "", "no number is within its limits, %s to %s", low.at.RatString(), high.at.RatString())
	}
	return nil
}

// maxStepBits is the maximum number of bits of a common multiple.
const maxStepBits = 20_000

// step returns the common multiple of all multipleOf, nil if any number is allowed. known is
// false if the common multiple would be too large.
func (c *conjunction) step() (step *big.Rat, known bool) {
	if c.kinds&fraction == 0 {
		step = big.NewRat(1, 1)
	}
	for _, s := range c.schemas {
		if s.MultipleOf == nil || s.MultipleOf.Sign() <= 0 {
			continue
		}
		if step == nil {
			step = s.MultipleOf
			continue
		}
		// For reduced fractions, lcm(a/b, c/d) = lcm(a, c) / gcd(b, d).
		a, b := step.Num(), s.MultipleOf.Num()
		gcd := new(big.Int).GCD(nil, nil, a, b)
		top := new(big.Int).Mul(new(big.Int).Quo(a, gcd), b)
		bottom := new(big.Int).GCD(nil, nil, step.Denom(), s.MultipleOf.Denom())
		if step = new(big.Rat).SetFrac(top, bottom); top.BitLen() > maxStepBits {
			return nil, false
		}
	}
	return step, true
}

// between returns a few numbers, most of them within a range.
func between(low, high end) []*big.Rat {
	one, half := big.NewRat(1, 1), big.NewRat(1, 2)
	mean := func(a, b *big.Rat) *big.Rat {
		sum := new(big.Rat).Add(a, b)
		return sum.Mul(sum, half)
	}
	list := []*big.Rat{new(big.Rat), one, half}
	if low.at != nil {
		list = append(list, low.at, new(big.Rat).Add(low.at, one), new(big.Rat).Add(low.at, half))
	}
	if high.at != nil {
		list = append(list, high.at, new(big.Rat).Sub(high.at, one), new(big.Rat).Sub(high.at, half))
	}
	if low.at != nil && high.at != nil {
		middle := mean(low.at, high.at)
		list = append(list, middle, mean(low.at, middle), mean(middle, high.at))
	}
	for i := range int64(5) {
		list = append(list, big.NewRat(i+2, 1), big.NewRat(-i-1, 1))
	}
	return list
}

// multiples returns multiples of step in a range. all reports whether these are all.
func multiples(low, high end, step *big.Rat) (list []any, all bool) {
	const most = 40
	// Begin with the multiple nearest to zero: it has the fewest digits.
	start, direction := new(big.Rat), int64(1)
	switch {
	case low.at != nil && low.at.Sign() >= 0:
		start = roundTo(low.at, step, 1)
	case high.at != nil && high.at.Sign() <= 0:
		start, direction = roundTo(high.at, step, -1), -1
	}
	move := new(big.Rat).Mul(step, big.NewRat(direction, 1))
	var found []*big.Rat
	for _, from := range []struct{ at, by *big.Rat }{
		{start, move},
		{new(big.Rat).Sub(start, move), new(big.Rat).Neg(move)},
	} {
		x := new(big.Rat).Set(from.at)
		for range most {
			if within := inRange(x, low, high); !within && len(found) > 0 || beyond(x, low, high, from.by.Sign()) {
				break
			} else if within {
				found = append(found, new(big.Rat).Set(x))
			}
			x.Add(x, from.by)
		}
	}
	list, whole := numbers(found)
	return list, whole && low.at != nil && high.at != nil && len(found) < most
}

func inRange(x *big.Rat, low, high end) bool {
	return (low.at == nil || x.Cmp(low.at) > 0 || x.Cmp(low.at) == 0 && !low.strict) &&
		(high.at == nil || x.Cmp(high.at) < 0 || x.Cmp(high.at) == 0 && !high.strict)
}

// beyond reports whether all numbers after x, in that direction, are outside the range.
func beyond(x *big.Rat, low, high end, direction int) bool {
	if direction > 0 {
		return high.at != nil && x.Cmp(high.at) > 0
	}
	return low.at != nil && x.Cmp(low.at) < 0
}

// roundTo returns v if it is a multiple of step, else the next multiple in that direction.
func roundTo(v, step *big.Rat, direction int) *big.Rat {
	q := new(big.Rat).Quo(v, step)
	whole := new(big.Int).Div(q.Num(), q.Denom()) // rounds down
	if direction > 0 && !q.IsInt() {
		whole.Add(whole, big.NewInt(1))
	}
	return new(big.Rat).Mul(new(big.Rat).SetInt(whole), step)
}

// numbers converts numbers to JSON. It drops numbers with too many digits, and reports false if
// there were any.
func numbers(list []*big.Rat) (out []any, whole bool) {
	whole = true
	for _, r := range list {
		digits, exact := r.FloatPrec()
		if !exact {
			continue // no JSON number has exactly this value
		}
		// Count the digits first: writing very many digits takes long.
		if digits <= maxNumber && small(json.Number(r.FloatString(digits))) {
			out = append(out, json.Number(r.FloatString(digits)))
		} else {
			whole = false
		}
	}
	return out, whole
}
