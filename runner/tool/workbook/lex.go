package workbook

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxFormula is the length of the longest formula, in characters, as in Excel.
const maxFormula = 8192

// Kinds of lexemes of a formula.
const (
	spaceLexeme    = iota
	numberLexeme   // 1.5E3
	textLexeme     // "text", with its quotation marks
	boolLexeme     // TRUE
	errorLexeme    // #N/A
	sheetLexeme    // Sheet1! or 'My sheet'!
	cellLexeme     // $B$7
	linesLexeme    // B:D or 3:9
	functionLexeme // SUM, before a parenthesis
	nameLexeme     // a defined name
	tableLexeme    // Sales[Qty]
	operatorLexeme // one of the operators, separators and brackets
)

// A lexeme is a piece of a formula.
type lexeme struct {
	kind int
	text string
}

// A lexer splits a formula into its pieces. Their texts together are the formula.
type lexer struct {
	rest string
	out  []lexeme
}

// errorValues are the texts of errors in formulas and cells.
var errorValues = []string{"#NULL!", "#DIV/0!", "#VALUE!", "#REF!", "#NAME?", "#NUM!", "#N/A", "#SPILL!", "#CALC!",
	"#GETTING_DATA", "#FIELD!", "#BLOCKED!", "#UNKNOWN!", "#CONNECT!"}

// lex splits a formula, which has no = before it.
func lex(formula string) ([]lexeme, error) {
	l := lexer{rest: formula}
	for l.rest != "" {
		if err := l.next(); err != nil {
			return nil, err
		}
	}
	return l.out, nil
}

func (l *lexer) add(kind, length int) {
	l.out = append(l.out, lexeme{kind, l.rest[:length]})
	l.rest = l.rest[length:]
}

func (l *lexer) next() error {
	c := l.rest[0]
	switch {
	case c == ' ' || c == '\n' || c == '\r' || c == '\t':
		l.add(spaceLexeme, len(l.rest)-len(strings.TrimLeft(l.rest, " \n\r\t")))
	case c == '"':
		end := quotedEnd(l.rest, '"')
		if end < 0 {
			return fmt.Errorf("a text has no closing quotation mark")
		}
		l.add(textLexeme, end)
	case c == '\'':
		end := quotedEnd(l.rest, '\'')
		if end < 0 || !strings.HasPrefix(l.rest[end:], "!") {
			return fmt.Errorf("the name of a sheet in quotation marks has no ! behind it")
		}
		l.add(sheetLexeme, end+1)
	case c == '#':
		return l.errorValue()
	case c >= '0' && c <= '9' || c == '.' && len(l.rest) > 1 && l.rest[1] >= '0' && l.rest[1] <= '9':
		l.number()
	case c == '[':
		return l.external()
	case c == '$' || isNameStart(l.rest):
		l.name()
	case strings.HasPrefix(l.rest, "<>") || strings.HasPrefix(l.rest, "<=") || strings.HasPrefix(l.rest, ">="):
		l.add(operatorLexeme, 2)
	case strings.IndexByte("+-*/^&=<>%,;(){}:@", c) >= 0:
		l.add(operatorLexeme, 1)
	default:
		r, _ := utf8.DecodeRuneInString(l.rest)
		return fmt.Errorf("%q has no meaning in a formula", r)
	}
	return nil
}

// quotedEnd returns the length of the quoted text at the beginning of text, -1 if it does not end. Two
// quotation marks stand for one.
func quotedEnd(text string, mark byte) int {
	for i := 1; i < len(text); i++ {
		if text[i] != mark {
			continue
		}
		if i+1 == len(text) || text[i+1] != mark {
			return i + 1
		}
		i++
	}
	return -1
}

func (l *lexer) errorValue() error {
	for _, e := range errorValues {
		if len(l.rest) >= len(e) && strings.EqualFold(l.rest[:len(e)], e) {
			l.add(errorLexeme, len(e))
			return nil
		}
	}
	// After a cell, # stands for all cells into which a result spills.
	if n := len(l.out); n > 0 && l.out[n-1].kind == cellLexeme {
		l.add(operatorLexeme, 1)
		return nil
	}
	return fmt.Errorf("# begins no error value")
}

// number adds a number, or rows such as 3:9.
func (l *lexer) number() {
	digits := func(i int) int {
		for i < len(l.rest) && l.rest[i] >= '0' && l.rest[i] <= '9' {
			i++
		}
		return i
	}
	end := digits(0)
	if n := linesEnd(l.rest, cutRow); n > 0 {
		l.add(linesLexeme, n)
		return
	}
	if end < len(l.rest) && l.rest[end] == '.' {
		end = digits(end + 1)
	}
	if end < len(l.rest) && l.rest[end]|0x20 == 'e' {
		power := end + 1
		if power < len(l.rest) && (l.rest[power] == '+' || l.rest[power] == '-') {
			power++
		}
		if last := digits(power); last > power {
			end = last
		}
	}
	l.add(numberLexeme, end)
}

// linesEnd returns the length of whole columns or rows, such as B:D, at the beginning of text, 0 if there are none.
func linesEnd(text string, cut func(string) (int, string)) int {
	first, rest := cut(strings.TrimPrefix(text, "$"))
	after, isRange := strings.CutPrefix(rest, ":")
	last, rest := cut(strings.TrimPrefix(after, "$"))
	if first == 0 || !isRange || last == 0 ||
		rest != "" && (isNamePart(rest) || rest[0] == '(' || rest[0] == '$' || rest[0] == '!') {
		return 0
	}
	return len(text) - len(rest)
}

// external adds the name of a sheet in another file, such as [1]Sheet1!, or a column of the own table, such as
// [@Qty].
func (l *lexer) external() error {
	end := bracketEnd(l.rest)
	if end < 0 {
		return fmt.Errorf("[ has no ]")
	}
	name := nameEnd(l.rest[end:])
	if strings.HasPrefix(l.rest[end+name:], "!") {
		l.add(sheetLexeme, end+name+1)
		return nil
	}
	l.add(tableLexeme, end)
	return nil
}

// bracketEnd returns the length of the brackets at the beginning of text, -1 if they do not end.
func bracketEnd(text string) int {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\'': // the next character is part of a name
			i++
		case '[':
			depth++
		case ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return -1
}

func isNameStart(text string) bool {
	r, _ := utf8.DecodeRuneInString(text)
	return r == '_' || r == '\\' || unicode.IsLetter(r)
}

func isNamePart(text string) bool {
	r, _ := utf8.DecodeRuneInString(text)
	return isNameStart(text) || r == '.' || r == '?' || unicode.IsDigit(r)
}

// nameEnd returns the length of the name at the beginning of text.
func nameEnd(text string) int {
	end := 0
	for end < len(text) && (isNamePart(text[end:]) || text[end] == '$') {
		_, size := utf8.DecodeRuneInString(text[end:])
		end += size
	}
	return end
}

// name adds the lexeme that begins with a letter or $.
func (l *lexer) name() {
	if n := linesEnd(l.rest, cutColumn); n > 0 {
		l.add(linesLexeme, n)
		return
	}
	if n := linesEnd(l.rest, cutRow); n > 0 { // such as $3:$9
		l.add(linesLexeme, n)
		return
	}
	end := nameEnd(l.rest)
	text, after := l.rest[:end], l.rest[end:]
	_, isCell := parseCell(text)
	switch {
	case strings.HasPrefix(after, "!"):
		l.add(sheetLexeme, end+1)
	case strings.HasPrefix(after, "("):
		l.add(functionLexeme, end)
	case strings.HasPrefix(after, "["):
		if inner := bracketEnd(after); inner > 0 {
			end += inner
		}
		l.add(tableLexeme, end)
	case isCell:
		l.add(cellLexeme, end)
	case strings.EqualFold(text, "TRUE") || strings.EqualFold(text, "FALSE"):
		l.add(boolLexeme, end)
	default:
		// A range of sheets, such as Jan:Dec!A1.
		if second, ok := strings.CutPrefix(after, ":"); ok {
			if n := nameEnd(second); n > 0 && strings.HasPrefix(second[n:], "!") {
				l.add(sheetLexeme, end+1+n+1)
				return
			}
		}
		l.add(nameLexeme, end)
	}
}

// shifted returns a formula as it is in a cell that is some columns and rows away. Parts of references with $ stay.
// A formula that is longer than programs accept stays as it is.
func shifted(formula string, columns, rows int) string {
	if len(formula) > maxFormula*utf8.UTFMax {
		return formula
	}
	lexemes, err := lex(formula)
	if err != nil {
		return formula
	}
	var b strings.Builder
	for _, x := range lexemes {
		switch x.kind {
		case cellLexeme:
			b.WriteString(shiftCorner(x.text, columns, rows))
		case linesLexeme:
			left, right, _ := strings.Cut(x.text, ":")
			b.WriteString(shiftCorner(left, columns, rows) + ":" + shiftCorner(right, columns, rows))
		default:
			b.WriteString(x.text)
		}
	}
	return b.String()
}

// shiftCorner shifts a reference such as $B7, B or 7.
func shiftCorner(name string, columns, rows int) string {
	fixedColumn := strings.HasPrefix(name, "$")
	column, rest := cutColumn(strings.TrimPrefix(name, "$"))
	out := ""
	if column > 0 {
		if !fixedColumn {
			column += columns
		}
		if column < 1 || column > maxColumns {
			return "#REF!"
		}
		out = map[bool]string{true: "$"}[fixedColumn] + columnName(column)
	}
	fixedRow := strings.HasPrefix(rest, "$") || column == 0 && fixedColumn
	row, _ := cutRow(strings.TrimPrefix(rest, "$"))
	if row == 0 {
		return out
	}
	if !fixedRow {
		row += rows
	}
	if row < 1 || row > maxRows {
		return "#REF!"
	}
	return out + map[bool]string{true: "$"}[fixedRow] + fmt.Sprint(row)
}
