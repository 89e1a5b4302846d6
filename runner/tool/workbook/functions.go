package workbook

import (
	"fmt"
	"maps"
	"math"
	"strings"
	"sync"
)

// A function is a function of formulas that is computed. One of its three forms is set.
type function struct {
	least, most int                                   // number of arguments
	lazy        func(c *calculator, args []*node) any // computes only the arguments that it needs
	all         func(c *calculator, args []any) any   // gets several cells as a *matrix
	one         func(args []any) any                  // gets single values, none of which is an error
}

// unlimited is the number of arguments of functions with any number.
const unlimited = 255

// arity returns a text about the number of arguments.
func (f function) arity() string {
	switch {
	case f.least == f.most:
		return fmt.Sprint(f.least)
	case f.most == unlimited:
		return fmt.Sprintf("at least %d", f.least)
	}
	return fmt.Sprintf("%d to %d", f.least, f.most)
}

// computedFunctions are made once. An initializer would refer to itself, because some functions call others.
var computedFunctions struct {
	once   sync.Once
	byName map[string]function
}

// functions returns all functions that are computed, by their names.
func functions() map[string]function {
	computedFunctions.once.Do(func() {
		all := map[string]function{}
		for _, part := range []map[string]function{logicFunctions(), mathFunctions(), statisticFunctions(),
			spreadFunctions(), textFunctions(), joinFunctions(), dateFunctions(), lookupFunctions()} {
			maps.Copy(all, part)
		}
		computedFunctions.byName = all
	})
	return computedFunctions.byName
}

// call computes a function.
func (c *calculator) call(n *node) any {
	f, ok := functions()[n.text]
	if !ok {
		return c.fail(n.text + " is not computed here")
	}
	if f.lazy != nil {
		return f.lazy(c, n.args)
	}
	// The function computes with each cell by itself, so the formula needs no mark.
	marked := c.array
	args := make([]any, len(n.args))
	for i, arg := range n.args {
		args[i] = c.argument(arg)
	}
	if n.text == "SUMPRODUCT" {
		c.array = marked
	}
	if c.failed != "" {
		return errValue
	}
	if f.all != nil {
		return f.all(c, args)
	}
	return c.eachOf(args, f.one)
}

// argument returns the value of an argument. A reference to one cell is a *matrix, too, because functions such as SUM
// ignore a text in a cell, but not a text as an argument.
func (c *calculator) argument(n *node) any {
	if n.kind == areaNode && n.cells.first == n.cells.last {
		return &matrix{rows: 1, columns: 1, ref: n, at: func(int, int) any { return c.read(n.sheet, n.cells.first) }}
	}
	return c.eval(n)
}

// eachOf calls f with single values, once for each cell if an argument has several.
func (c *calculator) eachOf(args []any, f func([]any) any) any {
	rows, columns := 1, 1
	for i, arg := range args {
		m, ok := arg.(*matrix)
		switch {
		case !ok:
		case m.rows*m.columns > 1:
			rows, columns = max(rows, m.rows), max(columns, m.columns)
		default:
			args[i] = c.single(m)
		}
	}
	call := func(row, column int) any {
		values := make([]any, len(args))
		for i, arg := range args {
			if m, ok := arg.(*matrix); ok {
				arg = m.stretched(row, column)
			}
			if e, ok := arg.(cellError); ok {
				return e
			}
			values[i] = arg
		}
		return f(values)
	}
	if rows*columns == 1 {
		return call(0, 0)
	}
	c.array = true
	if c.steps += rows * columns; c.steps > maxSteps {
		return c.fail(tooMany)
	}
	values := make([]any, 0, rows*columns)
	for i := range rows * columns {
		values = append(values, call(i/columns, i%columns))
	}
	return newMatrix(rows, columns, values)
}

// walk calls f for each value of an argument; of cells it calls f with fromCell. It ends at the first error that f
// returns.
func walk(args []any, f func(v any, fromCell bool) any) any {
	for _, arg := range args {
		m, ok := arg.(*matrix)
		if !ok {
			if e := f(arg, false); e != nil {
				return e
			}
			continue
		}
		for row, column := range m.positions() {
			if e := f(m.at(row, column), true); e != nil {
				return e
			}
		}
	}
	return nil
}

// numbers returns the numbers of arguments. Cells with texts, booleans and nothing do not count.
func numbers(args []any) (found []float64, failed any) {
	failed = walk(args, func(v any, fromCell bool) any {
		if e, ok := v.(cellError); ok {
			return e
		}
		n, ok := v.(float64)
		if !ok && !fromCell {
			if n, ok = toNumber(v); !ok {
				return errValue
			}
		}
		if ok {
			found = append(found, n)
		}
		return nil
	})
	return found, failed
}

// overNumbers makes a function of a list of numbers.
func overNumbers(f func([]float64) any) function {
	return function{least: 1, most: unlimited, all: func(_ *calculator, args []any) any {
		list, failed := numbers(args)
		if failed != nil {
			return failed
		}
		return f(list)
	}}
}

// ofNumber makes a function of one number.
func ofNumber(f func(float64) float64) function {
	return ofNumbers(1, 1, func(n []float64) any { return finite(f(n[0])) })
}

// ofNumbers makes a function of single numbers. Those that are absent are not in the list.
func ofNumbers(least, most int, f func([]float64) any) function {
	return function{least: least, most: most, one: func(args []any) any {
		list := make([]float64, len(args))
		for i, arg := range args {
			n, ok := toNumber(arg)
			if !ok {
				return errValue
			}
			list[i] = n
		}
		return f(list)
	}}
}

// truth converts a value to a boolean.
func truth(v any) (is, ok bool) {
	switch v := v.(type) {
	case bool:
		return v, true
	case string:
		return strings.EqualFold(v, "TRUE"), strings.EqualFold(v, "TRUE") || strings.EqualFold(v, "FALSE")
	}
	n, ok := toNumber(v)
	return n != 0, ok
}

func logicFunctions() map[string]function {
	isKind := func(f func(v any) bool) function {
		return function{least: 1, most: 1, lazy: func(c *calculator, args []*node) any {
			return c.each(c.eval(args[0]), nil, func(v, _ any) any { return f(v) })
		}}
	}
	onError := func(caught func(v any) bool) function {
		return function{least: 2, most: 2, lazy: func(c *calculator, args []*node) any {
			v := c.single(c.eval(args[0]))
			if !caught(v) {
				return v
			}
			return c.eval(args[1])
		}}
	}
	isError := func(v any) bool { _, ok := v.(cellError); return ok }
	return map[string]function{
		"IF":      {least: 2, most: 3, lazy: (*calculator).ifThen},
		"IFS":     {least: 2, most: unlimited, lazy: (*calculator).ifs},
		"SWITCH":  {least: 3, most: unlimited, lazy: (*calculator).switchOf},
		"CHOOSE":  {least: 2, most: unlimited, lazy: (*calculator).choose},
		"IFERROR": onError(isError), "IFNA": onError(func(v any) bool { return v == errNone }),
		"AND": logical(func(yes, no int) bool { return no == 0 }), "OR": logical(func(yes, no int) bool { return yes > 0 }),
		"XOR":       logical(func(yes, no int) bool { return yes%2 == 1 }),
		"NOT":       {least: 1, most: 1, one: func(a []any) any { return ifTrue(a[0], false, true) }},
		"TRUE":      {all: func(*calculator, []any) any { return true }},
		"FALSE":     {all: func(*calculator, []any) any { return false }},
		"NA":        {all: func(*calculator, []any) any { return errNone }},
		"ISERROR":   isKind(isError),
		"ISERR":     isKind(func(v any) bool { return isError(v) && v != errNone }),
		"ISNA":      isKind(func(v any) bool { return v == errNone }),
		"ISBLANK":   isKind(func(v any) bool { return v == nil }),
		"ISNUMBER":  isKind(func(v any) bool { _, ok := v.(float64); return ok }),
		"ISTEXT":    isKind(func(v any) bool { _, ok := v.(string); return ok }),
		"ISNONTEXT": isKind(func(v any) bool { _, ok := v.(string); return !ok }),
		"ISLOGICAL": isKind(func(v any) bool { _, ok := v.(bool); return ok }),
		"ISEVEN":    ofNumbers(1, 1, func(n []float64) any { return math.Mod(math.Trunc(n[0]), 2) == 0 }),
		"ISODD":     ofNumbers(1, 1, func(n []float64) any { return math.Mod(math.Trunc(n[0]), 2) != 0 }),
		"N": {least: 1, most: 1, one: func(a []any) any {
			n, _ := toNumber(a[0])
			if _, text := a[0].(string); text {
				n = 0
			}
			return n
		}},
	}
}

// ifTrue returns one of two values, or an error if v is no boolean.
func ifTrue(v, yes, no any) any {
	if e, ok := v.(cellError); ok {
		return e
	}
	is, ok := truth(v)
	switch {
	case !ok:
		return errValue
	case is:
		return yes
	}
	return no
}

// ifThen computes IF.
func (c *calculator) ifThen(args []*node) any {
	when := c.eval(args[0])
	branch := func(i int) any {
		if i == len(args) {
			return false
		}
		v := c.eval(args[i])
		if v == nil {
			return 0.0
		}
		return v
	}
	m, ok := when.(*matrix)
	if ok && m.rows*m.columns > 1 {
		yes, no := branch(1), branch(2)
		picked := c.each(when, yes, func(w, y any) any { return ifTrue(w, y, nil) })
		return c.each(c.each(when, no, func(w, n any) any { return ifTrue(w, nil, n) }), picked, func(n, y any) any {
			if y != nil {
				return y
			}
			return n
		})
	}
	switch v := ifTrue(c.single(when), 1, 2).(type) {
	case int:
		return branch(v)
	default:
		return v
	}
}

// ifs computes IFS.
func (c *calculator) ifs(args []*node) any {
	for i := 0; i+1 < len(args); i += 2 {
		switch v := ifTrue(c.single(c.eval(args[i])), 1, 2); v {
		case 1:
			return c.eval(args[i+1])
		case 2:
		default:
			return v
		}
	}
	return errNone
}

// switchOf computes SWITCH.
func (c *calculator) switchOf(args []*node) any {
	v := c.single(c.eval(args[0]))
	if e, ok := v.(cellError); ok {
		return e
	}
	i := 1
	for ; i+1 < len(args); i += 2 {
		if w := c.single(c.eval(args[i])); compareValues(v, w) == 0 {
			return c.eval(args[i+1])
		}
	}
	if i < len(args) {
		return c.eval(args[i])
	}
	return errNone
}

// choose computes CHOOSE.
func (c *calculator) choose(args []*node) any {
	n, ok := toNumber(c.single(c.eval(args[0])))
	if i := math.Trunc(n); ok && i >= 1 && int(i) < len(args) {
		return c.eval(args[int(i)])
	}
	return errValue
}

// logical makes a function of booleans. decide gets how many are true and how many false.
func logical(decide func(yes, no int) bool) function {
	return function{least: 1, most: unlimited, all: func(_ *calculator, args []any) any {
		yes, no := 0, 0
		failed := walk(args, func(v any, fromCell bool) any {
			if e, ok := v.(cellError); ok {
				return e
			}
			_, isText := v.(string)
			if fromCell && (v == nil || isText) {
				return nil
			}
			is, ok := truth(v)
			switch {
			case !ok:
				return errValue
			case is:
				yes++
			default:
				no++
			}
			return nil
		})
		if failed == nil && yes+no == 0 {
			failed = errValue
		}
		if failed != nil {
			return failed
		}
		return decide(yes, no)
	}}
}
