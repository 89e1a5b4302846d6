package workbook

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// operate computes with an operator.
func operate(operator string, a, b any) any {
	if e, ok := a.(cellError); ok {
		return e
	}
	if e, ok := b.(cellError); ok {
		return e
	}
	switch operator {
	case "&":
		// Each operator of a long chain would copy a longer text.
		if text := toText(a) + toText(b); len(text) <= maxCellText*utf8.UTFMax {
			return text
		}
		return errValue
	case "+", "-", "*", "/", "^":
		x, ok := toNumber(a)
		y, alsoOK := toNumber(b)
		if !ok || !alsoOK {
			return errValue
		}
		return arithmetic(operator, x, y)
	}
	order := compareValues(a, b)
	return map[string]bool{"=": order == 0, "<>": order != 0, "<": order < 0, ">": order > 0, "<=": order <= 0,
		">=": order >= 0}[operator]
}

func arithmetic(operator string, x, y float64) any {
	switch operator {
	case "+":
		return x + y
	case "-":
		return x - y
	case "*":
		return x * y
	case "/":
		if y == 0 {
			return errDivision
		}
		return x / y
	}
	if x == 0 && y == 0 {
		return errNumber
	}
	return finite(math.Pow(x, y))
}

// finite returns n, or an error if it is no number.
func finite(n float64) any {
	if math.IsNaN(n) || math.IsInf(n, 0) {
		return errNumber
	}
	return n
}

// toNumber converts the value of a cell to a number. ok is false for a text that is none, and for an error.
func toNumber(v any) (n float64, ok bool) {
	switch v := v.(type) {
	case nil:
		return 0, true
	case float64:
		return v, true
	case bool:
		if v {
			return 1, true
		}
		return 0, true
	case string:
		return parseNumber(v)
	}
	return 0, false
}

// parseNumber parses a text as a number, a percentage or an ISO date.
func parseNumber(text string) (float64, bool) {
	text = strings.TrimSpace(text)
	if serial, _, ok := parseDate(text); ok {
		return serial, true
	}
	number, percent := strings.CutSuffix(text, "%")
	n, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if err != nil || math.IsNaN(n) || math.IsInf(n, 0) || strings.ContainsAny(number, "xXpP_") {
		return 0, false
	}
	if percent {
		n /= 100
	}
	return n, true
}

// toText converts the value of a cell to a text.
func toText(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case float64:
		return general(v, neutral)
	case bool:
		return strings.ToUpper(strconv.FormatBool(v))
	default:
		return fmt.Sprint(v)
	}
}

// compareValues compares two values. Numbers come before texts, and texts before booleans. An empty cell equals 0 and
// the empty text.
func compareValues(a, b any) int {
	rank := func(v, other any) (int, any) {
		switch v := v.(type) {
		case nil:
			switch other.(type) {
			case string:
				return 1, ""
			case bool:
				return 2, false
			}
			return 0, 0.0
		case string:
			return 1, strings.ToLower(v)
		case bool:
			return 2, v
		}
		return 0, v
	}
	rankA, x := rank(a, b)
	rankB, y := rank(b, a)
	if rankA != rankB {
		return rankA - rankB
	}
	switch x := x.(type) {
	case string:
		return strings.Compare(x, y.(string))
	case bool:
		p, _ := toNumber(x)
		q, _ := toNumber(y)
		return int(p - q)
	}
	p, _ := toNumber(x)
	q, _ := toNumber(y)
	switch {
	// The digits beyond the 15th are rounding errors.
	case math.Abs(p-q) <= 1e-15*max(math.Abs(p), math.Abs(q)):
		return 0
	case p < q:
		return -1
	case p > q:
		return 1
	}
	return 0
}
