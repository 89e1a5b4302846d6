package workbook

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxDepth is how deep the parts of a formula may be nested. Excel allows 64 functions inside each other.
const maxDepth = 200

// Kinds of nodes of a formula.
const (
	valueNode  = iota // a number, text, boolean or error
	areaNode          // one or more cells
	callNode          // a function with arguments
	binaryNode        // an operator between two values
	prefixNode        // - + or @
	percentNode
	arrayNode   // {1,2;3,4}
	missingNode // an argument that is absent, as the second in IF(A1,,2)
	opaqueNode  // valid, but not computed here
)

// A node is a part of a parsed formula.
type node struct {
	kind  int
	text  string // function, operator, or the reason why an opaque node is not computed
	value any
	sheet int // index of the sheet of an area
	cells area
	args  []*node
	width int // columns of an array
}

// A formulaParser parses a formula. It has no = before it.
type formulaParser struct {
	rest  []lexeme
	names []string // of the sheets
	own   int      // sheet of the formula
	free  bool     // names stand for values, as in LET
}

// parseFormula parses the formula of a cell on the sheet with index own. names are the sheets of the workbook.
func parseFormula(formula string, names []string, own int) (*node, error) {
	if utf8.RuneCountInString(formula) > maxFormula {
		return nil, fmt.Errorf("it has more than %d characters", maxFormula)
	}
	lexemes, err := lex(formula)
	if err != nil {
		return nil, err
	}
	p := &formulaParser{names: names, own: own}
	for _, x := range lexemes {
		if x.kind != spaceLexeme {
			p.rest = append(p.rest, x)
		}
		p.free = p.free || x.kind == functionLexeme && slices.Contains([]string{"LET", "LAMBDA"}, strings.ToUpper(x.text))
	}
	n, err := p.expression(0, 0)
	switch {
	case err != nil:
		return nil, err
	case len(p.rest) == 0:
		return n, nil
	case p.rest[0].text == ")":
		return nil, errors.New("a ) has no (")
	case p.rest[0].text == ";":
		return nil, errors.New("a comma separates arguments, not ;")
	}
	return nil, fmt.Errorf("an operator is missing before %s", p.rest[0].text)
}

// next returns the text of the next operator, "" if there is none.
func (p *formulaParser) next() string {
	if len(p.rest) > 0 && p.rest[0].kind == operatorLexeme {
		return p.rest[0].text
	}
	return ""
}

// skip removes the next lexeme if it is an operator.
func (p *formulaParser) skip(operator string) bool {
	if p.next() != operator {
		return false
	}
	p.rest = p.rest[1:]
	return true
}

// precedences are the operators between two values; a higher one binds stronger.
var precedences = map[string]int{"=": 1, "<>": 1, "<": 1, ">": 1, "<=": 1, ">=": 1, "&": 2, "+": 3, "-": 3, "*": 4,
	"/": 4, "^": 5}

// expression parses values with operators that bind stronger than least.
func (p *formulaParser) expression(least, depth int) (*node, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("its parts are nested more than %d deep", maxDepth)
	}
	left, err := p.prefixed(depth)
	// A long chain of operators makes a deep tree, too.
	for length := 0; err == nil; length++ {
		operator := p.next()
		precedence := precedences[operator]
		if precedence <= least {
			return left, nil
		}
		if length+depth > maxFormula {
			return nil, fmt.Errorf("it has more than %d operators", maxFormula)
		}
		p.rest = p.rest[1:]
		var right *node
		right, err = p.expression(precedence, depth+1)
		left = &node{kind: binaryNode, text: operator, args: []*node{left, right}}
	}
	return nil, err
}

// prefixed parses a value with signs before and percent signs after it.
func (p *formulaParser) prefixed(depth int) (*node, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("its parts are nested more than %d deep", maxDepth)
	}
	for _, sign := range []string{"-", "+", "@"} {
		if p.skip(sign) {
			// A sign binds stronger than every operator: -2^2 is 4.
			n, err := p.prefixed(depth + 1)
			return &node{kind: prefixNode, text: sign, args: []*node{n}}, err
		}
	}
	n, err := p.primary(depth)
	for count := 0; err == nil && p.skip("%"); count++ {
		if count > maxDepth {
			return nil, errors.New("it has too many percent signs")
		}
		n = &node{kind: percentNode, args: []*node{n}}
	}
	return n, err
}

// primary parses a value without operators.
func (p *formulaParser) primary(depth int) (*node, error) {
	if len(p.rest) == 0 {
		return nil, errors.New("it ends where a value is expected")
	}
	x := p.rest[0]
	p.rest = p.rest[1:]
	switch x.kind {
	case numberLexeme:
		v, err := strconv.ParseFloat(x.text, 64)
		if err != nil {
			return nil, fmt.Errorf("%s is no number", x.text)
		}
		return &node{value: v}, nil
	case textLexeme:
		return &node{value: strings.ReplaceAll(x.text[1:len(x.text)-1], `""`, `"`)}, nil
	case boolLexeme:
		return &node{value: strings.EqualFold(x.text, "TRUE")}, nil
	case errorLexeme:
		return &node{value: cellError(strings.ToUpper(x.text))}, nil
	case sheetLexeme:
		return p.onSheet(x.text[:len(x.text)-1])
	case cellLexeme, linesLexeme:
		return p.reference(x, p.own)
	case functionLexeme:
		return p.call(x.text, depth)
	case nameLexeme:
		if p.free {
			return &node{kind: opaqueNode, text: "LET and LAMBDA"}, nil
		}
		return nil, fmt.Errorf("%s is neither a cell nor a function; a text stands in quotation marks", x.text)
	case tableLexeme:
		return nil, fmt.Errorf("there is no table for %s", x.text)
	}
	switch x.text {
	case "(":
		n, err := p.expression(0, depth+1)
		if err == nil && !p.skip(")") {
			err = errors.New("a ( has no )")
		}
		return n, err
	case "{":
		return p.array()
	}
	return nil, fmt.Errorf("%s stands where a value is expected", x.text)
}

// onSheet parses a reference after the name of a sheet.
func (p *formulaParser) onSheet(name string) (*node, error) {
	if strings.HasPrefix(name, "[") || strings.HasPrefix(name, "'[") {
		return nil, fmt.Errorf("%s is in another file, which is not there", name)
	}
	name = unquoteSheet(name)
	i := slices.IndexFunc(p.names, func(n string) bool { return strings.EqualFold(n, name) })
	if i < 0 {
		return nil, fmt.Errorf("there is no sheet %q; the sheets are %q", name, p.names[:min(len(p.names), maxOverview)])
	}
	if len(p.rest) == 0 || p.rest[0].kind != cellLexeme && p.rest[0].kind != linesLexeme {
		return nil, fmt.Errorf("no cell follows the sheet %q", name)
	}
	x := p.rest[0]
	p.rest = p.rest[1:]
	return p.reference(x, i)
}

// reference parses a cell or range that begins with x.
func (p *formulaParser) reference(x lexeme, sheet int) (*node, error) {
	text := x.text
	if x.kind == cellLexeme && p.next() == ":" {
		if len(p.rest) < 2 {
			return nil, errors.New("it ends inside a range")
		}
		if p.rest[1].kind != cellLexeme {
			return nil, fmt.Errorf("a range ends with a cell, not %s", p.rest[1].text)
		}
		text += ":" + p.rest[1].text
		p.rest = p.rest[2:]
	}
	cells, ok := parseArea(text)
	if !ok {
		return nil, fmt.Errorf("%s is no range of cells", text)
	}
	if p.skip("#") {
		return &node{kind: opaqueNode, text: "#"}, nil
	}
	return &node{kind: areaNode, sheet: sheet, cells: cells}, nil
}

// call parses a function. Its name is known, and ( follows.
func (p *formulaParser) call(name string, depth int) (*node, error) {
	name = strings.ToUpper(plainFormula(name))
	f, computed := functions()[name]
	if !computed && !isKnownFunction(name) {
		return nil, fmt.Errorf("there is no function %s; functions have their English names, such as SUM(A2:A9)", name)
	}
	n := &node{kind: callNode, text: name}
	p.rest = p.rest[1:]
	for first := true; !p.skip(")"); first = false {
		if len(p.rest) == 0 {
			return nil, errors.New("a ( has no )")
		}
		if !first && !p.skip(",") {
			if p.next() == ";" {
				return nil, errors.New("a comma separates arguments, not ;")
			}
			return nil, fmt.Errorf("an operator or comma is missing before %s", p.rest[0].text)
		}
		if next := p.next(); next == "," || next == ")" {
			n.args = append(n.args, &node{kind: missingNode})
			continue
		}
		arg, err := p.expression(0, depth+1)
		if err != nil {
			return nil, err
		}
		n.args = append(n.args, arg)
	}
	if computed && (len(n.args) < f.least || len(n.args) > f.most) {
		return nil, fmt.Errorf("%s has %d arguments, and takes %s", name, len(n.args), f.arity())
	}
	return n, nil
}

// array parses the rest of {1,2;3,4}.
func (p *formulaParser) array() (*node, error) {
	n := &node{kind: arrayNode}
	width := 0
	for {
		v, err := p.prefixed(0)
		if err != nil {
			return nil, err
		}
		negative := v.kind == prefixNode && v.args[0].kind == valueNode
		if v.kind != valueNode && !negative {
			return nil, errors.New("an array in { } holds only numbers and texts")
		}
		n.args = append(n.args, v)
		width++
		end := p.next()
		if end != "," && end != ";" && end != "}" {
			return nil, errors.New("a { has no }")
		}
		p.rest = p.rest[1:]
		if end == "," {
			continue
		}
		if n.width == 0 {
			n.width = width
		}
		if n.width != width {
			return nil, errors.New("the rows of an array in { } have the same length")
		}
		if width = 0; end == "}" {
			return n, nil
		}
	}
}
