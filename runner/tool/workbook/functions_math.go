package workbook

import (
	"math"
	"slices"
)

// optional returns the number at index i, or a default.
func optional(n []float64, i int, otherwise float64) float64 {
	if i < len(n) {
		return n[i]
	}
	return otherwise
}

// rounded rounds to some decimals. Halves are rounded by f, which gets a number without the rounding errors of binary
// fractions.
func rounded(n, decimals float64, f func(float64) float64) any {
	decimals = math.Trunc(decimals)
	if decimals > 20 {
		return n
	}
	power := math.Pow(10, math.Abs(decimals))
	if decimals < 0 {
		return finite(f(round15(n/power)) * power)
	}
	return finite(f(round15(n*power)) / power)
}

func roundUp(n float64) float64 { return math.Copysign(math.Ceil(math.Abs(n)), n) }

// multiple returns a multiple of a step near n.
func multiple(n, step float64, f func(float64) float64) any {
	if step == 0 {
		return 0.0
	}
	return finite(f(round15(n/step)) * step)
}

func mathFunctions() map[string]function {
	rounding := func(least int, f func(float64) float64) function {
		return ofNumbers(least, 2, func(n []float64) any { return rounded(n[0], optional(n, 1, 0), f) })
	}
	multiples := func(f func(float64) float64) function {
		return ofNumbers(1, 2, func(n []float64) any { return multiple(n[0], optional(n, 1, 1), f) })
	}
	return map[string]function{
		"ABS": ofNumber(math.Abs), "SQRT": ofNumber(math.Sqrt), "EXP": ofNumber(math.Exp), "LN": ofNumber(math.Log),
		"LOG10": ofNumber(math.Log10), "SIN": ofNumber(math.Sin), "COS": ofNumber(math.Cos), "TAN": ofNumber(math.Tan),
		"ASIN": ofNumber(math.Asin), "ACOS": ofNumber(math.Acos), "ATAN": ofNumber(math.Atan),
		"INT":     ofNumber(func(n float64) float64 { return math.Floor(round15(n)) }),
		"DEGREES": ofNumber(func(n float64) float64 { return n * 180 / math.Pi }),
		"RADIANS": ofNumber(func(n float64) float64 { return n * math.Pi / 180 }),
		"EVEN":    ofNumber(func(n float64) float64 { return roundUp(n/2) * 2 }),
		"SIGN": ofNumber(func(n float64) float64 {
			switch {
			case n > 0:
				return 1
			case n < 0:
				return -1
			}
			return 0
		}),
		"PI": {all: func(*calculator, []any) any { return math.Pi }},
		"LOG": ofNumbers(1, 2, func(n []float64) any {
			return finite(math.Log(n[0]) / math.Log(optional(n, 1, 10)))
		}),
		"POWER": ofNumbers(2, 2, func(n []float64) any { return arithmetic("^", n[0], n[1]) }),
		"MOD": ofNumbers(2, 2, func(n []float64) any {
			if n[1] == 0 {
				return errDivision
			}
			return finite(n[0] - n[1]*math.Floor(n[0]/n[1]))
		}),
		"QUOTIENT": ofNumbers(2, 2, func(n []float64) any {
			if n[1] == 0 {
				return errDivision
			}
			return math.Trunc(n[0] / n[1])
		}),
		"ROUND": rounding(2, math.Round), "ROUNDUP": rounding(2, roundUp), "ROUNDDOWN": rounding(2, math.Trunc),
		"TRUNC": rounding(1, math.Trunc), "CEILING": multiples(math.Ceil), "FLOOR": multiples(math.Floor),
		"CEILING.MATH": multiples(math.Ceil), "FLOOR.MATH": multiples(math.Floor),
		"MROUND":     ofNumbers(2, 2, func(n []float64) any { return multiple(n[0], n[1], math.Round) }),
		"PMT":        ofNumbers(3, 5, payment),
		"SUMPRODUCT": {least: 1, most: unlimited, all: sumProduct},
		"ROWS":       {least: 1, most: 1, lazy: dimension(func(a area) int { return a.last.row - a.first.row + 1 })},
		"COLUMNS":    {least: 1, most: 1, lazy: dimension(func(a area) int { return a.last.column - a.first.column + 1 })},
		"ROW":        {most: 1, lazy: dimension(func(a area) int { return a.first.row })},
		"COLUMN":     {most: 1, lazy: dimension(func(a area) int { return a.first.column })},
	}
}

// dimension makes a function of the position or size of a reference.
func dimension(f func(area) int) func(c *calculator, args []*node) any {
	return func(c *calculator, args []*node) any {
		switch {
		case len(args) == 0 || args[0].kind == missingNode:
			return float64(f(area{c.cell, c.cell}))
		case args[0].kind == areaNode:
			return float64(f(args[0].cells))
		}
		return c.fail("the size of a computed range is not computed here")
	}
}

// payment computes PMT: rate, number of payments, present value, future value, and 1 for payments at the beginning.
func payment(n []float64) any {
	rate, count, present := n[0], n[1], n[2]
	future, early := optional(n, 3, 0), optional(n, 4, 0)
	if rate == 0 {
		return arithmetic("/", -(present + future), count)
	}
	growth := math.Pow(1+rate, count)
	return finite(-(present*growth + future) * rate / ((growth - 1) * (1 + rate*early)))
}

// sumProduct computes SUMPRODUCT. Cells without a number count as 0.
func sumProduct(c *calculator, args []any) any {
	first := many(args[0], asMatrix(args[0]))
	sum := 0.0
	for row, column := range first.positions() {
		product := 1.0
		for _, arg := range args {
			m := many(arg, asMatrix(arg))
			if m.rows != first.rows || m.columns != first.columns {
				return errValue
			}
			switch v := m.at(row, column).(type) {
			case cellError:
				return v
			case float64:
				product *= v
			default:
				product = 0
			}
		}
		sum += product
	}
	return finite(sum)
}

func asMatrix(v any) *matrix {
	m, _ := v.(*matrix)
	return m
}

func sum(list []float64) float64 {
	total := 0.0
	for _, n := range list {
		total += n
	}
	return total
}

// deviation returns the sum of the squared distances from the mean.
func deviation(list []float64) float64 {
	mean, squares := sum(list)/float64(len(list)), 0.0
	for _, n := range list {
		squares += (n - mean) * (n - mean)
	}
	return squares
}

// spreadFunctions returns the functions of variances.
func spreadFunctions() map[string]function {
	// spread makes a function of the variance; sample is 1 if the numbers are a sample.
	spread := func(sample int, f func(float64) float64) function {
		return overNumbers(func(list []float64) any {
			if len(list) <= sample {
				return errDivision
			}
			return f(deviation(list) / float64(len(list)-sample))
		})
	}
	same := func(n float64) float64 { return n }
	return map[string]function{
		"STDEV": spread(1, math.Sqrt), "STDEV.S": spread(1, math.Sqrt), "STDEVP": spread(0, math.Sqrt),
		"STDEV.P": spread(0, math.Sqrt), "VAR": spread(1, same), "VAR.S": spread(1, same), "VARP": spread(0, same),
		"VAR.P": spread(0, same),
	}
}

// counted makes a function that counts values.
func counted(f func(v any, fromCell bool) bool) function {
	return function{least: 1, most: unlimited, all: func(_ *calculator, args []any) any {
		n := 0.0
		_ = walk(args, func(v any, fromCell bool) any {
			if f(v, fromCell) {
				n++
			}
			return nil
		})
		return n
	}}
}

// countBlank computes COUNTBLANK.
func countBlank(c *calculator, args []*node) any {
	if args[0].kind != areaNode {
		return errValue
	}
	full := 0
	_ = walk([]any{c.argument(args[0])}, func(v any, _ bool) any {
		if v != nil && v != "" {
			full++
		}
		return nil
	})
	return float64(args[0].cells.size() - full)
}

func product(list []float64) any {
	all := 1.0
	for _, n := range list {
		all *= n
	}
	if len(list) == 0 {
		all = 0
	}
	return finite(all)
}

func statisticFunctions() map[string]function {
	return map[string]function{
		"SUM":     overNumbers(func(list []float64) any { return finite(sum(list)) }),
		"PRODUCT": overNumbers(product),
		"AVERAGE": overNumbers(average), "MEDIAN": overNumbers(median),
		"MIN": overNumbers(func(list []float64) any { return slices.Min(append(list, optional(list, 0, 0))) }),
		"MAX": overNumbers(func(list []float64) any { return slices.Max(append(list, optional(list, 0, 0))) }),
		"SUMSQ": overNumbers(func(list []float64) any {
			total := 0.0
			for _, n := range list {
				total += n * n
			}
			return finite(total)
		}),
		"COUNT": counted(func(v any, fromCell bool) bool {
			_, isNumber := v.(float64)
			_, converts := toNumber(v)
			return isNumber || !fromCell && converts
		}),
		"COUNTA":     counted(func(v any, _ bool) bool { return v != nil }),
		"COUNTBLANK": {least: 1, most: 1, lazy: countBlank},
		"LARGE":      ranked(func(list []float64, k int) float64 { return list[len(list)-k] }),
		"SMALL":      ranked(func(list []float64, k int) float64 { return list[k-1] }),
		"RANK":       {least: 2, most: 3, all: rank}, "RANK.EQ": {least: 2, most: 3, all: rank},
		"PERCENTILE": {least: 2, most: 2, all: percentile}, "PERCENTILE.INC": {least: 2, most: 2, all: percentile},
		"SUBTOTAL": {least: 2, most: unlimited, all: subtotal},
	}
}

func average(list []float64) any { return arithmetic("/", sum(list), float64(len(list))) }

func median(list []float64) any {
	if len(list) == 0 {
		return errNumber
	}
	slices.Sort(list)
	half := len(list) / 2
	if len(list)%2 == 1 {
		return list[half]
	}
	return (list[half-1] + list[half]) / 2
}

// ranked makes LARGE or SMALL. pick gets the sorted numbers.
func ranked(pick func(list []float64, k int) float64) function {
	return function{least: 2, most: 2, all: func(c *calculator, args []any) any {
		list, failed := numbers(args[:1])
		k, ok := toNumber(c.single(args[1]))
		switch {
		case failed != nil:
			return failed
		case !ok || k < 1 || int(k) > len(list):
			return errNumber
		}
		slices.Sort(list)
		return pick(list, int(k))
	}}
}

// rank computes RANK.
func rank(c *calculator, args []any) any {
	n, ok := toNumber(c.single(args[0]))
	list, failed := numbers(args[1:2])
	ascending := false
	if len(args) > 2 {
		ascending, _ = truth(c.single(args[2]))
	}
	switch {
	case failed != nil:
		return failed
	case !ok || !slices.Contains(list, n):
		return errNone
	}
	place := 1.0
	for _, other := range list {
		if ascending && other < n || !ascending && other > n {
			place++
		}
	}
	return place
}

func percentile(c *calculator, args []any) any {
	list, failed := numbers(args[:1])
	k, ok := toNumber(c.single(args[1]))
	switch {
	case failed != nil:
		return failed
	case !ok || k < 0 || k > 1 || len(list) == 0:
		return errNumber
	}
	slices.Sort(list)
	position := k * float64(len(list)-1)
	i := int(position)
	if i+1 == len(list) {
		return list[i]
	}
	return list[i] + (position-float64(i))*(list[i+1]-list[i])
}

// subtotal computes SUBTOTAL. No row is hidden in a workbook that this program writes.
func subtotal(c *calculator, args []any) any {
	n, _ := toNumber(c.single(args[0]))
	if n > 100 {
		n -= 100
	}
	names := []string{"AVERAGE", "COUNT", "COUNTA", "MAX", "MIN", "PRODUCT", "STDEV", "STDEVP", "SUM", "VAR", "VARP"}
	if n < 1 || int(n) > len(names) {
		return errValue
	}
	return functions()[names[int(n)-1]].all(c, args[1:])
}
