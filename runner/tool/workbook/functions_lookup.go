package workbook

import (
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxPattern is the length of the longest text with wildcards, in characters, as in Excel.
const maxPattern = 255

// A criterion is what COUNTIF and its relatives compare cells with, such as ">5" or "Jan*".
type criterion struct {
	operator string
	value    any
	pattern  string // for texts with wildcards, in lower case
}

// parseCriterion parses a criterion.
func parseCriterion(v any) criterion {
	text, ok := v.(string)
	if !ok {
		return criterion{operator: "=", value: v}
	}
	c := criterion{operator: "=", value: text}
	for _, operator := range []string{"<>", "<=", ">=", "<", ">", "="} {
		if rest, ok := strings.CutPrefix(text, operator); ok {
			c.operator, text = operator, rest
			break
		}
	}
	c.value = text
	if n, ok := parseNumber(text); ok {
		c.value = n
	} else if strings.EqualFold(text, "TRUE") || strings.EqualFold(text, "FALSE") {
		c.value = strings.EqualFold(text, "TRUE")
	} else if strings.ContainsAny(text, "*?~") && utf8.RuneCountInString(text) <= maxPattern {
		c.pattern = strings.ToLower(text)
	}
	return c
}

// matches reports whether a cell meets the criterion.
func (c criterion) matches(v any) bool {
	if _, isError := v.(cellError); isError {
		return false
	}
	different := c.operator == "<>"
	switch want := c.value.(type) {
	case string:
		text, isText := v.(string)
		switch {
		case want == "" && (c.operator == "=" || different):
			return (v == nil || v == "") != different
		case !isText:
			return different
		case c.pattern != "":
			return wildcard(c.pattern, strings.ToLower(text)) != different
		}
	case float64:
		n, isNumber := v.(float64)
		if text, isText := v.(string); isText && (c.operator == "=" || different) {
			n, isNumber = parseNumber(text)
		}
		if !isNumber {
			return different
		}
		v = n
	case bool:
		if _, isBool := v.(bool); !isBool {
			return different
		}
	}
	is, _ := operate(c.operator, v, c.value).(bool)
	return is
}

// wildcard reports whether text matches a pattern, in which * stands for any text, ? for any character, and ~ before
// them for themselves. It takes time in proportion to the product of the lengths at most.
func wildcard(pattern, text string) bool {
	p, t := []rune(pattern), []rune(text)
	i, k, star, mark := 0, 0, -1, 0
	for k < len(t) {
		switch {
		case i < len(p) && p[i] == '*':
			star, mark = i, k
			i++
			continue
		case i+1 < len(p) && p[i] == '~' && p[i+1] == t[k]:
			i, k = i+2, k+1
			continue
		case i < len(p) && (p[i] == '?' || p[i] == t[k]):
			i, k = i+1, k+1
			continue
		case star < 0:
			return false
		}
		// Let the last star stand for one character more.
		mark++
		i, k = star+1, mark
	}
	for i < len(p) && p[i] == '*' {
		i++
	}
	return i == len(p)
}

// conditional makes a function of the cells whose neighbours meet criteria. withValues is true if its cells are not
// those of the criterion; first is the index of the first range of a criterion.
func conditional(least, most, first int, result func(values []any) any) function {
	return function{least: least, most: most, all: func(c *calculator, args []any) any {
		pairs, values := args[first:], asMatrix(args[0])
		// SUMIF and AVERAGEIF have their cells last, or use those of the criterion.
		if first == 0 {
			pairs = args[:min(2, len(args))]
			if most > 3 {
				pairs = args
			} else if len(args) == 3 {
				values = asMatrix(args[2])
			}
		}
		if len(pairs)%2 == 1 || values == nil || values.ref == nil {
			return errValue
		}
		return c.conditional(values, pairs, result)
	}}
}

func (c *calculator) conditional(values *matrix, pairs []any, result func(values []any) any) any {
	var ranges []*matrix
	var criteria []criterion
	for i := 0; i < len(pairs); i += 2 {
		m := asMatrix(pairs[i])
		if m == nil || m.ref == nil || len(ranges) > 0 && (m.rows != ranges[0].rows || m.columns != ranges[0].columns) {
			return errValue
		}
		ranges = append(ranges, m)
		criteria = append(criteria, parseCriterion(c.single(pairs[i+1])))
	}
	var found []any
	for row, column := range ranges[0].positions() {
		meets := true
		for i, m := range ranges {
			meets = meets && criteria[i].matches(m.at(row, column))
		}
		if meets {
			found = append(found, values.at(row, column))
		}
	}
	return result(found)
}

// numbersOf returns the numbers among values, or an error.
func numbersOf(values []any) ([]float64, any) {
	return numbers([]any{newMatrix(len(values), 1, values)})
}

// overFound makes the result of a conditional function.
func overFound(f func([]float64) any) func([]any) any {
	return func(values []any) any {
		list, failed := numbersOf(values)
		if failed != nil {
			return failed
		}
		return f(list)
	}
}

func lookupFunctions() map[string]function {
	total := overFound(func(n []float64) any { return finite(sum(n)) })
	mean := overFound(average)
	amount := func(values []any) any { return float64(len(values)) }
	statistics := statisticFunctions()
	extreme := func(name string) func([]any) any {
		return func(values []any) any {
			return statistics[name].all(nil, []any{newMatrix(len(values), 1, values)})
		}
	}
	return map[string]function{
		"COUNTIF": conditional(2, 2, 0, amount), "COUNTIFS": conditional(2, unlimited, 0, amount),
		"SUMIF": conditional(2, 3, 0, total), "SUMIFS": conditional(3, unlimited, 1, total),
		"AVERAGEIF": conditional(2, 3, 0, mean), "AVERAGEIFS": conditional(3, unlimited, 1, mean),
		"MINIFS": conditional(3, unlimited, 1, extreme("MIN")), "MAXIFS": conditional(3, unlimited, 1, extreme("MAX")),
		"MATCH": {least: 2, most: 3, all: match}, "INDEX": {least: 2, most: 3, all: index},
		"VLOOKUP": {least: 3, most: 4, all: func(c *calculator, a []any) any { return tableLookup(c, a, false) }},
		"HLOOKUP": {least: 3, most: 4, all: func(c *calculator, a []any) any { return tableLookup(c, a, true) }},
		"XLOOKUP": {least: 3, most: 6, all: xlookup},
		"ADDRESS": ofNumbers(2, 2, func(n []float64) any {
			if n[0] < 1 || n[0] > maxRows || n[1] < 1 || n[1] > maxColumns {
				return errValue
			}
			return "$" + columnName(int(n[1])) + "$" + strconv.Itoa(int(n[0]))
		}),
	}
}

// A line is a row or column of values.
type line struct {
	length int
	at     func(int) any
}

func lineOf(m *matrix) (line, bool) {
	switch {
	case m == nil:
		return line{}, false
	case m.columns == 1:
		return line{m.rows, func(i int) any { return m.at(i, 0) }}, true
	case m.rows == 1:
		return line{m.columns, func(i int) any { return m.at(0, i) }}, true
	}
	return line{}, false
}

// exact returns the index of a value, -1 if it is absent. Texts may have wildcards.
func (l line) exact(v any) int {
	same := parseCriterion(v)
	if text, ok := v.(string); ok {
		same = criterion{operator: "=", value: text}
		if strings.ContainsAny(text, "*?~") && utf8.RuneCountInString(text) <= maxPattern {
			same.pattern = strings.ToLower(text)
		}
	}
	for i := range l.length {
		cell := l.at(i)
		_, isText := cell.(string)
		_, wantText := v.(string)
		if isText == wantText && cell != nil && same.matches(cell) {
			return i
		}
	}
	return -1
}

// nearest returns the index of the last value up to v in ascending order, or down to v in descending order.
func (l line) nearest(v any, direction int) int {
	found := -1
	for i := range l.length {
		cell := l.at(i)
		if cell == nil || !sameKind(cell, v) {
			continue
		}
		if compareValues(cell, v)*direction > 0 {
			break
		}
		found = i
	}
	return found
}

func sameKind(a, b any) bool {
	_, textA := a.(string)
	_, textB := b.(string)
	_, boolA := a.(bool)
	_, boolB := b.(bool)
	_, errA := a.(cellError)
	return textA == textB && boolA == boolB && !errA
}

func match(c *calculator, args []any) any {
	v := c.single(args[0])
	l, ok := lineOf(asMatrix(args[1]))
	kind := 1.0
	if len(args) > 2 {
		kind, _ = toNumber(c.single(args[2]))
	}
	if e, isError := v.(cellError); isError {
		return e
	}
	i := -1
	switch {
	case !ok:
		return errNone
	case kind == 0:
		i = l.exact(v)
	case kind > 0:
		i = l.nearest(v, 1)
	default:
		i = l.nearest(v, -1)
	}
	if i < 0 {
		return errNone
	}
	return float64(i + 1)
}

func index(c *calculator, args []any) any {
	m := many(args[0], asMatrix(args[0]))
	row, ok := toNumber(c.single(args[1]))
	column, alsoOK := 0.0, true
	if len(args) > 2 {
		column, alsoOK = toNumber(c.single(args[2]))
	} else if m.rows == 1 {
		row, column = 1, row
	} else {
		column = 1
	}
	r, k := int(math.Trunc(row)), int(math.Trunc(column))
	switch {
	case !ok || !alsoOK || r < 0 || k < 0:
		return errValue
	case m.ref != nil && cellAbsent(m.ref.cells, r, k), m.ref == nil && (r > m.rows || k > m.columns):
		return errRef
	case r == 0 && k == 0:
		return m
	case r == 0:
		return &matrix{rows: m.rows, columns: 1, at: func(row, _ int) any { return m.at(row, k-1) }}
	case k == 0:
		return &matrix{rows: 1, columns: m.columns, at: func(_, column int) any { return m.at(r-1, column) }}
	}
	return m.at(r-1, k-1)
}

// cellAbsent reports whether a row or column, counted from 1, is outside of an area.
func cellAbsent(a area, row, column int) bool {
	return row > a.last.row-a.first.row+1 || column > a.last.column-a.first.column+1
}

// tableLookup computes VLOOKUP, or HLOOKUP if across is true.
func tableLookup(c *calculator, args []any, across bool) any {
	v, m := c.single(args[0]), asMatrix(args[1])
	n, ok := toNumber(c.single(args[2]))
	near := true
	if len(args) > 3 {
		near, _ = truth(c.single(args[3]))
	}
	if e, isError := v.(cellError); isError {
		return e
	}
	if m == nil || !ok || n < 1 {
		return errValue
	}
	at, length, width := m.at, m.rows, m.columns
	if m.ref != nil {
		width = m.ref.cells.last.column - m.ref.cells.first.column + 1
	}
	if across {
		at = func(row, column int) any { return m.at(column, row) }
		length, width = m.columns, m.rows
		if m.ref != nil {
			width = m.ref.cells.last.row - m.ref.cells.first.row + 1
		}
	}
	if int(n) > width {
		return errRef
	}
	l := line{length, func(i int) any { return at(i, 0) }}
	i := -1
	if near {
		i = l.nearest(v, 1)
	} else {
		i = l.exact(v)
	}
	if i < 0 {
		return errNone
	}
	return at(i, int(n)-1)
}

// xlookup computes XLOOKUP for an exact value.
func xlookup(c *calculator, args []any) any {
	v := c.single(args[0])
	l, ok := lineOf(asMatrix(args[1]))
	results, alsoOK := lineOf(asMatrix(args[2]))
	if e, isError := v.(cellError); isError {
		return e
	}
	for _, arg := range args[min(4, len(args)):] {
		if n, _ := toNumber(c.single(arg)); n != 0 && n != 1 {
			return c.fail("XLOOKUP in another way than exact is not computed here")
		}
	}
	if len(args) > 4 {
		if n, _ := toNumber(c.single(args[4])); n != 0 {
			return c.fail("XLOOKUP in another way than exact is not computed here")
		}
	}
	if !ok || !alsoOK {
		return c.fail("XLOOKUP with several columns is not computed here")
	}
	i := l.exact(v)
	switch {
	case i >= 0:
		return results.at(i)
	case len(args) > 3 && args[3] != nil:
		return c.single(args[3])
	}
	return errNone
}
