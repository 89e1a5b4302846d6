package workbook

import (
	"fmt"
	"strconv"
	"strings"
)

// Limits of a sheet, as in Excel.
const (
	maxColumns = 16_384
	maxRows    = 1_048_576
)

// A cellAt is the position of a cell. Both numbers count from 1.
type cellAt struct{ column, row int }

// String returns a name such as "B7".
func (c cellAt) String() string { return columnName(c.column) + strconv.Itoa(c.row) }

// An area is a rectangle of cells, with both corners.
type area struct{ first, last cellAt }

// everything is the area of all cells that a sheet can have.
var everything = area{cellAt{1, 1}, cellAt{maxColumns, maxRows}}

// String returns a name such as "A1:F20", or "B7" for a single cell.
func (a area) String() string {
	if a.first == a.last {
		return a.first.String()
	}
	return a.first.String() + ":" + a.last.String()
}

func (a area) contains(c cellAt) bool {
	return c.column >= a.first.column && c.column <= a.last.column && c.row >= a.first.row && c.row <= a.last.row
}

func (a area) overlaps(b area) bool {
	return a.first.column <= b.last.column && b.first.column <= a.last.column &&
		a.first.row <= b.last.row && b.first.row <= a.last.row
}

func (a area) size() int {
	return (a.last.column - a.first.column + 1) * (a.last.row - a.first.row + 1)
}

// add returns the smallest area with a and c. The zero area contains no cell.
func (a area) add(c cellAt) area {
	if a == (area{}) {
		return area{c, c}
	}
	return area{cellAt{min(a.first.column, c.column), min(a.first.row, c.row)},
		cellAt{max(a.last.column, c.column), max(a.last.row, c.row)}}
}

// columnName returns the name of a column, counted from 1: A for 1, Z for 26, AA for 27.
func columnName(n int) string {
	name := ""
	// Names are numbers in base 26 without a zero: their digits are 1 (A) to 26 (Z).
	for ; n > 0; n = (n - 1) / 26 {
		name = string(rune('A'+(n-1)%26)) + name
	}
	return name
}

// cutColumn parses the letters at the beginning of text as a column. It returns 0 if there is none.
func cutColumn(text string) (column int, rest string) {
	i := 0
	for ; i < len(text); i++ {
		c := text[i] &^ 0x20 // upper case
		if c < 'A' || c > 'Z' {
			break
		}
		if column = column*26 + int(c-'A') + 1; column > maxColumns {
			return 0, text
		}
	}
	return column, text[i:]
}

// cutRow parses the digits at the beginning of text as a row. It returns 0 if there is none.
func cutRow(text string) (row int, rest string) {
	i := 0
	for ; i < len(text) && text[i] >= '0' && text[i] <= '9'; i++ {
		if row = row*10 + int(text[i]-'0'); row > maxRows {
			return 0, text
		}
	}
	return row, text[i:]
}

// parseCell parses a name such as "B7" or "$B$7".
func parseCell(name string) (cellAt, bool) {
	column, rest := cutColumn(strings.TrimPrefix(name, "$"))
	row, rest := cutRow(strings.TrimPrefix(rest, "$"))
	return cellAt{column, row}, column > 0 && row > 0 && rest == ""
}

// parseArea parses a range: "A1:F20", "B7", "B:D", "B" for a column, or "3:9".
func parseArea(name string) (area, bool) {
	left, right, isRange := strings.Cut(name, ":")
	if !isRange {
		right = left
	}
	a, aOK := parseCorner(left)
	b, bOK := parseCorner(right)
	onlyRows, onlyColumns := a.column == 0 && b.column == 0, a.row == 0 && b.row == 0
	whole := onlyRows || onlyColumns
	if !aOK || !bOK || !whole && (a.column*b.column == 0 || a.row*b.row == 0) || onlyRows && !isRange {
		return area{}, false
	}
	if onlyRows {
		a.column, b.column = 1, maxColumns
	}
	if onlyColumns {
		a.row, b.row = 1, maxRows
	}
	return area{a, a}.add(b), true
}

// parseCorner parses "A1", "A" or "1". The part that is absent is 0.
func parseCorner(name string) (cellAt, bool) {
	name = strings.TrimSpace(name)
	column, rest := cutColumn(strings.TrimPrefix(name, "$"))
	row, rest := cutRow(strings.TrimPrefix(rest, "$"))
	return cellAt{column, row}, rest == "" && column+row > 0
}

// A Selection is the part of a workbook to read. The zero value is the whole workbook.
type Selection struct {
	Sheet string // name of a sheet, or its number from 1
	Range string // such as "A1:F20", "B:D" or "3:9", also with the sheet: "Sales!A1:F20"; or a defined name
}

// split returns the sheet and the cells that s selects. names are the defined names of the workbook.
func (s Selection) split(names map[string]string) (sheet string, cells area, err error) {
	sheet, cells = s.Sheet, everything
	if s.Range == "" {
		return sheet, cells, nil
	}
	text := strings.TrimPrefix(strings.TrimSpace(s.Range), "=")
	if defined, ok := names[strings.ToLower(text)]; ok {
		text = defined
	}
	if i := strings.LastIndexByte(text, '!'); i >= 0 {
		sheet, text = unquoteSheet(text[:i]), text[i+1:]
	}
	cells, ok := parseArea(text)
	if !ok {
		return "", area{}, fmt.Errorf(
			`range %q is none: it is such as "A1:F20", "B7", "B:D" for columns or "3:9" for rows`, s.Range)
	}
	return sheet, cells, nil
}

// unquoteSheet returns the name of a sheet as it is without a formula's quotation marks.
func unquoteSheet(name string) string {
	if len(name) > 1 && name[0] == '\'' && name[len(name)-1] == '\'' {
		return strings.ReplaceAll(name[1:len(name)-1], "''", "'")
	}
	return name
}
