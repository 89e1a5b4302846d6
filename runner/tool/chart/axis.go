package chart

import (
	"math"
	"strconv"
	"strings"
)

// An axis maps values to a range of the picture.
type axis struct {
	low, high float64 // values at its ends
	step      float64 // between ticks
	from, to  float64 // places of low and high
}

// newAxis returns an axis whose ends are ticks, with about that many ticks.
func newAxis(low, high float64, ticks int) axis {
	// A single value, or several that a float64 hardly distinguishes, is in the middle.
	if spread := high - low; spread < 1e-300 || spread <= 1e-12*max(math.Abs(low), math.Abs(high)) {
		gap := max(math.Abs(low)/2, 0.5)
		if low == 0 {
			gap = 1
		}
		low, high = low-gap, high+gap
	}
	raw := (high - low) / float64(max(ticks, 1))
	power := math.Pow(10, math.Floor(math.Log10(raw)))
	step := 10 * power
	for _, factor := range []float64{1, 2, 2.5, 5} {
		if factor*power >= raw*0.999 {
			step = factor * power
			break
		}
	}
	return axis{low: math.Floor(low/step+1e-9) * step, high: math.Ceil(high/step-1e-9) * step, step: step}
}

// at returns the place of a value.
func (a axis) at(v float64) float64 { return a.from + (v-a.low)/(a.high-a.low)*(a.to-a.from) }

// ticks returns the values with a mark.
func (a axis) ticks() (values []float64) {
	n := int(math.Round((a.high - a.low) / a.step))
	for i := range n + 1 {
		v := a.low + float64(i)*a.step
		if math.Abs(v) < a.step/1e6 {
			v = 0 // not -1e-17
		}
		values = append(values, v)
	}
	return values
}

// label returns the text of a tick. All ticks have the same number of decimals.
func (a axis) label(v float64) string {
	decimals := 0
	for f := a.step; decimals < 9 && math.Abs(f-math.Round(f)) > 1e-6*math.Abs(f); decimals++ {
		f *= 10
	}
	if decimals == 9 || math.Abs(v) >= 1e12 {
		return strconv.FormatFloat(v, 'g', 4, 64)
	}
	return grouped(strconv.FormatFloat(v, 'f', decimals, 64))
}

// format returns a value in a form for people.
func format(v float64) string {
	decimals := 2
	switch a := math.Abs(v); {
	case a >= 1e12:
		return strconv.FormatFloat(v, 'g', 6, 64)
	case a >= 100_000:
		decimals = 0
	case a > 0 && a < 0.1:
		return strings.Replace(strconv.FormatFloat(v, 'g', 3, 64), "-", "−", 1)
	}
	s := strconv.FormatFloat(v, 'f', decimals, 64)
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	return grouped(s)
}

// grouped separates the thousands of a number by spaces, which people of all countries understand.
func grouped(number string) string {
	sign, digits := "", number
	if strings.HasPrefix(number, "-") {
		sign, digits = "−", number[1:]
	}
	whole, fraction, _ := strings.Cut(digits, ".")
	if len(whole) > 4 {
		var b strings.Builder
		for i, d := range whole {
			if i > 0 && (len(whole)-i)%3 == 0 {
				b.WriteRune('\u00a0')
			}
			b.WriteRune(d)
		}
		whole = b.String()
	}
	if fraction != "" {
		fraction = "." + fraction
	}
	return sign + whole + fraction
}
