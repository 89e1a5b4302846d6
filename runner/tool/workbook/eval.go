package workbook

import (
	"fmt"
	"iter"
	"math"
	"time"
)

// Limits of all formulas of a workbook.
const (
	maxSteps    = 10_000_000 // cells that they read
	maxKeptArea = 10_000     // cells of a reference that may be beyond the contents of its sheet
)

// A cellError is an error as the value of a cell, such as #DIV/0!.
type cellError string

// The errors that formulas make.
const (
	errDivision = cellError("#DIV/0!")
	errValue    = cellError("#VALUE!")
	errRef      = cellError("#REF!")
	errNumber   = cellError("#NUM!")
	errNone     = cellError("#N/A")
)

// tooMany is why a formula has no value when the limits are reached.
const tooMany = "the workbook has too many formulas to compute all"

// A matrix is the value of several cells.
type matrix struct {
	rows, columns int
	at            func(row, column int) any // from 0
	ref           *node                     // the cells, nil if the values are computed
}

// positions returns the rows and columns of all values, row by row.
func (m *matrix) positions() iter.Seq2[int, int] {
	return func(yield func(row, column int) bool) {
		for row := range m.rows {
			for column := range m.columns {
				if !yield(row, column) {
					return
				}
			}
		}
	}
}

// A calculator computes the formulas of a workbook. The values of cells are float64, string, bool, cellError, and nil
// for an empty cell.
type calculator struct {
	sheets  []*sheet
	now     time.Time
	expired func() bool
	steps   int

	sheet  int    // of the present cell
	cell   cellAt // present cell
	failed string // why the present cell cannot be computed
	array  bool   // the present formula computes with each cell of an area
}

// States of a formula.
const (
	pending  = iota
	visiting // the cells to which it refers are computed first
	computed
)

// A formulaCell is a formula and its result.
type formulaCell struct {
	text   string
	tree   *node
	areas  []*node // the cells to which it refers
	state  int
	value  any
	failed string // why there is no value
	array  bool
}

// addAreas collects the references in a formula.
func (f *formulaCell) addAreas(n *node) {
	if n == nil {
		return
	}
	if n.kind == areaNode {
		f.areas = append(f.areas, n)
	}
	for _, arg := range n.args {
		f.addAreas(arg)
	}
}

// A visit is a formula whose references are being computed.
type visit struct {
	sheet   int
	cell    cellAt
	formula *formulaCell
	area    int // index of the present reference
	next    int // number of the next cell in it
}

// compute computes a formula and all formulas on which it depends. It keeps its own stack, because a chain of
// references may be long.
func (c *calculator) compute(sheet int, cell cellAt, f *formulaCell) error {
	if f.state != pending {
		return nil
	}
	f.state = visiting
	stack := []*visit{{sheet: sheet, cell: cell, formula: f}}
	for len(stack) > 0 {
		top := stack[len(stack)-1]
		next := c.dependency(top)
		switch {
		case next == nil:
			c.evaluate(top)
			stack = stack[:len(stack)-1]
		case next.formula.state == visiting:
			return fmt.Errorf("%s: the formula %q refers to its own cell", c.place(next.sheet, next.cell), next.formula.text)
		default:
			next.formula.state = visiting
			stack = append(stack, next)
		}
	}
	return nil
}

// dependency returns the next formula to which v refers and which has no value yet, nil if there is none.
func (c *calculator) dependency(v *visit) *visit {
	for ; v.area < len(v.formula.areas); v.area, v.next = v.area+1, 0 {
		n := v.formula.areas[v.area]
		cells := c.bounded(n)
		width := cells.last.column - cells.first.column + 1
		for ; v.next < cells.size(); v.next++ {
			at := cellAt{cells.first.column + v.next%width, cells.first.row + v.next/width}
			if c.steps++; c.steps > maxSteps {
				return nil
			}
			if f, ok := c.sheets[n.sheet].at(at).(*formulaCell); ok && f.state != computed {
				return &visit{sheet: n.sheet, cell: at, formula: f}
			}
		}
	}
	return nil
}

// bounded returns the cells of a reference without those beyond the contents of their sheet. Its size is 0 if none
// are left.
func (c *calculator) bounded(n *node) area {
	s := c.sheets[n.sheet]
	cells := n.cells
	// Short ranges keep their size, which functions compare.
	if cells.size() <= maxKeptArea {
		return cells
	}
	cells.last.row = max(min(cells.last.row, len(s.rows)), cells.first.row-1)
	cells.last.column = max(min(cells.last.column, s.width), cells.first.column-1)
	return cells
}

// place returns the name of a cell, with its sheet.
func (c *calculator) place(sheet int, cell cellAt) string {
	return fmt.Sprintf("%s!%s", quoteSheet(c.sheets[sheet].name), cell)
}

// evaluate computes a formula whose references have values.
func (c *calculator) evaluate(v *visit) {
	f := v.formula
	c.sheet, c.cell, c.failed, c.array = v.sheet, v.cell, "", false
	if f.state = computed; c.steps > maxSteps || c.expired() {
		f.failed = tooMany
		return
	}
	f.value = c.single(c.eval(f.tree))
	if f.value == nil {
		f.value = 0.0 // a formula that refers to an empty cell is 0
	}
	if n, ok := f.value.(float64); ok && (math.IsNaN(n) || math.IsInf(n, 0)) {
		f.value = errNumber
	}
	if text, ok := f.value.(string); ok && len(text) > maxCellText {
		f.value = errValue
	}
	f.array, f.failed = c.array, c.failed
}

// fail notes why the present cell cannot be computed.
func (c *calculator) fail(reason string) any {
	if c.failed == "" {
		c.failed = reason
	}
	return errValue
}

// eval returns the value of a part of a formula: of a cell, or a *matrix.
func (c *calculator) eval(n *node) any {
	if c.failed != "" {
		return errValue // the result does not matter
	}
	switch n.kind {
	case valueNode:
		return n.value
	case areaNode:
		return c.area(n)
	case callNode:
		return c.call(n)
	case binaryNode:
		left, right := c.eval(n.args[0]), c.eval(n.args[1])
		return c.each(left, right, func(a, b any) any { return operate(n.text, a, b) })
	case prefixNode:
		return c.prefix(n)
	case percentNode:
		return c.each(c.eval(n.args[0]), 100.0, func(a, b any) any { return operate("/", a, b) })
	case arrayNode:
		values := make([]any, len(n.args))
		for i, arg := range n.args {
			values[i] = c.eval(arg)
		}
		return newMatrix(len(values)/n.width, n.width, values)
	case missingNode:
		return nil
	}
	return c.fail(n.text + " is not computed here")
}

func (c *calculator) prefix(n *node) any {
	v := c.eval(n.args[0])
	switch n.text {
	case "-":
		return c.each(0.0, v, func(a, b any) any { return operate("-", a, b) })
	case "@":
		return c.single(v)
	}
	return v
}

// area returns the value of a reference.
func (c *calculator) area(n *node) any {
	if n.cells.first == n.cells.last {
		return c.read(n.sheet, n.cells.first)
	}
	b := c.bounded(n)
	return &matrix{rows: b.last.row - b.first.row + 1, columns: b.last.column - b.first.column + 1, ref: n,
		at: func(row, column int) any {
			return c.read(n.sheet, cellAt{n.cells.first.column + column, n.cells.first.row + row})
		}}
}

// read returns the value of a cell.
func (c *calculator) read(sheet int, at cellAt) any {
	if c.steps++; c.steps > maxSteps {
		return c.fail(tooMany)
	}
	switch v := c.sheets[sheet].at(at).(type) {
	case *formulaCell:
		if v.failed != "" {
			return c.fail("it refers to " + c.place(sheet, at) + ", which is not computed")
		}
		return v.value
	default:
		return v
	}
}

// single returns the value for one cell: of several cells, the one in the row or column of the present cell.
func (c *calculator) single(v any) any {
	m, ok := v.(*matrix)
	switch {
	case !ok:
		return v
	case m.rows < 1 || m.columns < 1:
		return nil
	case m.ref == nil || c.array || m.rows == 1 && m.columns == 1:
		return m.at(0, 0)
	}
	a := m.ref.cells
	row, column := c.cell.row-a.first.row, c.cell.column-a.first.column
	switch {
	case m.columns == 1 && row >= 0 && row < m.rows:
		return m.at(row, 0)
	case m.rows == 1 && column >= 0 && column < m.columns:
		return m.at(0, column)
	}
	return errValue
}

// each computes with two values, or with each of several. A single one is combined with all others.
func (c *calculator) each(left, right any, f func(a, b any) any) any {
	l, leftMany := left.(*matrix)
	r, rightMany := right.(*matrix)
	if !leftMany && !rightMany {
		return f(left, right)
	}
	c.array = true
	l, r = many(left, l), many(right, r)
	rows, columns := max(l.rows, r.rows), max(l.columns, r.columns)
	if c.failed != "" {
		return errValue
	}
	values := make([]any, 0, min(rows*columns, maxSteps))
	for row := range rows {
		for column := range columns {
			if c.steps++; c.steps > maxSteps {
				return c.fail(tooMany)
			}
			values = append(values, f(l.stretched(row, column), r.stretched(row, column)))
		}
	}
	return newMatrix(rows, columns, values)
}

// newMatrix returns a matrix of computed values, row by row.
func newMatrix(rows, columns int, values []any) *matrix {
	return &matrix{rows: rows, columns: columns, at: func(row, column int) any {
		if row < 0 || row >= rows || column < 0 || column >= columns {
			return errNone
		}
		return values[row*columns+column]
	}}
}

// many returns m, or a matrix of one value if m is nil.
func many(v any, m *matrix) *matrix {
	if m != nil {
		return m
	}
	return newMatrix(1, 1, []any{v})
}

// stretched returns a value of m. A single row or column stands for all.
func (m *matrix) stretched(row, column int) any {
	if m.rows == 1 {
		row = 0
	}
	if m.columns == 1 {
		column = 0
	}
	if row >= m.rows || column >= m.columns {
		return errNone
	}
	return m.at(row, column)
}
