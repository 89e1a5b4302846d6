package workbook

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"journeyman/runner/tool/office/archive"
)

// Limits of the format. Excel reports a workbook that exceeds them as damaged.
const (
	maxCellText  = 32_767 // characters
	maxSheetName = 31     // characters
	widestColumn = 60     // characters; a limit of this program, so that a long text does not hide other columns
	maxWriteNote = 20     // formulas that a note names
)

// Write returns a workbook, and notes about it for its author. The content is CSV or JSON. JSON is a list of rows, or
// an object of such lists by the names of their sheets; instead of a list, {"rows": [...], "chart": {...}} is a sheet
// with a chart. The first row of a sheet is its header. Texts that are plain numbers or ISO dates become numbers and
// dates. A cell may be an object: {"formula": "SUM(A2:A9)", "format": "0%", "bold": true}, or with "value". A text
// such as "=A1" stays a text, because untrusted data must not become a formula.
//
// Formulas are computed, so that programs that do not compute, such as pandas, find values.
func Write(content []byte, now time.Time, expired func() bool) (document []byte, notes []string, err error) {
	sheets, err := readSheets(content)
	if err == nil {
		err = checkSheets(sheets)
	}
	if err != nil {
		return nil, nil, err
	}
	b := &builder{sheets: sheets, styles: []cellStyle{{}}}
	if err := b.calculate(now, expired); err != nil {
		return nil, nil, err
	}
	document, err = b.build()
	return document, b.notes, err
}

// A sheet is a sheet for writing.
type sheet struct {
	name   string
	rows   [][]cell
	width  int // columns of the longest row
	charts []chart
}

// A cell is a cell for writing.
type cell struct {
	value   any    // float64, string, bool, or nil for an empty cell; unused for a formula
	digits  string // a number with all its digits
	formula *formulaCell
	style   cellStyle
}

// A cellStyle is how a cell looks.
type cellStyle struct {
	format string // "" for the general number format
	bold   bool
}

// The formats of dates.
const (
	dateFormat  = "yyyy\\-mm\\-dd"
	clockFormat = "yyyy\\-mm\\-dd hh:mm"
)

// at returns the value of a cell: a *formulaCell, or the value of another cell.
func (s *sheet) at(at cellAt) any {
	if at.row > len(s.rows) || at.column > len(s.rows[at.row-1]) {
		return nil
	}
	c := &s.rows[at.row-1][at.column-1]
	if c.formula != nil {
		return c.formula
	}
	return c.value
}

// A builder makes the files of a workbook.
type builder struct {
	sheets []*sheet
	styles []cellStyle // the first is the plain one
	index  map[cellStyle]int
	notes  []string
	files  []string // names and contents
	types  strings.Builder
	charts int
}

// style returns the number of a style.
func (b *builder) style(s cellStyle) int {
	if s == (cellStyle{}) {
		return 0
	}
	if b.index == nil {
		b.index = map[cellStyle]int{}
	}
	i, ok := b.index[s]
	if !ok {
		i = len(b.styles)
		b.index[s] = i
		b.styles = append(b.styles, s)
	}
	return i
}

// calculate parses and computes all formulas.
func (b *builder) calculate(now time.Time, expired func() bool) error {
	names := make([]string, len(b.sheets))
	for i, s := range b.sheets {
		names[i] = s.name
	}
	c := &calculator{sheets: b.sheets, now: now, expired: expired}
	err := b.eachFormula(func(sheet int, at cellAt, x *cell) (err error) {
		f := x.formula
		if f.tree, err = parseFormula(f.text, names, sheet); err != nil {
			return fmt.Errorf("%s: the formula %q is not valid: %w", c.place(sheet, at), cut(f.text, 200), err)
		}
		f.addAreas(f.tree)
		return nil
	})
	if err != nil {
		return err
	}
	var failed, wrong, texts []string
	err = b.eachFormula(func(sheet int, at cellAt, x *cell) error {
		if err := c.compute(sheet, at, x.formula); err != nil {
			return err
		}
		if x.style.format == "" {
			x.style.format = b.dateOf(x.formula.tree, 0)
		}
		e, isError := x.formula.value.(cellError)
		switch {
		case x.formula.failed != "":
			failed = append(failed, c.place(sheet, at)+": "+x.formula.failed)
		case isError:
			wrong = append(wrong, c.place(sheet, at)+" "+string(e))
		}
		return nil
	})
	b.eachCell(func(sheet int, at cellAt, x *cell) {
		if text, ok := x.value.(string); ok && x.formula == nil && len(text) > 1 && text[0] == '=' {
			texts = append(texts, c.place(sheet, at))
		}
	})
	b.note("formulas without a stored value, which other programs compute when they open the file", failed)
	b.note("formulas whose result is an error", wrong)
	b.note(`texts that begin with "=", which are no formulas; a formula is {"formula": "..."}`, texts)
	return err
}

func (b *builder) note(about string, places []string) {
	if len(places) > 0 {
		b.notes = append(b.notes, about+": "+short(places, "; ", maxWriteNote))
	}
}

// eachCell calls f for each cell.
func (b *builder) eachCell(f func(sheet int, at cellAt, x *cell)) {
	for i, s := range b.sheets {
		for row := range s.rows {
			for column := range s.rows[row] {
				f(i, cellAt{column + 1, row + 1}, &s.rows[row][column])
			}
		}
	}
}

// eachFormula calls f for each cell with a formula, until it returns an error.
func (b *builder) eachFormula(f func(sheet int, at cellAt, x *cell) error) (err error) {
	b.eachCell(func(sheet int, at cellAt, x *cell) {
		if x.formula != nil && err == nil {
			err = f(sheet, at, x)
		}
	})
	return err
}

// dateOf returns the format of dates if a formula has a date as its result, otherwise "".
func (b *builder) dateOf(n *node, depth int) string {
	switch {
	case depth > maxDepth:
	case n.kind == callNode && slices.Contains([]string{"DATE", "TODAY", "EDATE", "EOMONTH", "DATEVALUE"}, n.text):
		return dateFormat
	case n.kind == callNode && n.text == "NOW":
		return clockFormat
	case n.kind == callNode && (n.text == "MIN" || n.text == "MAX") && len(n.args) > 0:
		return b.dateOf(n.args[0], depth+1)
	case n.kind == areaNode:
		s := b.sheets[n.sheet]
		if first := n.cells.first; first.row <= len(s.rows) && first.column <= len(s.rows[first.row-1]) {
			if f := s.rows[first.row-1][first.column-1].style.format; f == dateFormat || f == clockFormat {
				return f
			}
		}
	// A date and a number of days make a date. Two dates make a number of days.
	case n.kind == binaryNode && (n.text == "+" || n.text == "-"):
		left, right := b.dateOf(n.args[0], depth+1), b.dateOf(n.args[1], depth+1)
		if left == "" && n.text == "+" {
			return right
		}
		if right == "" {
			return left
		}
	}
	return ""
}

// quoteSheet returns the name of a sheet as formulas have it.
func quoteSheet(name string) string {
	_, isCell := parseCell(name)
	if isNameStart(name) && nameEnd(name) == len(name) && !strings.ContainsAny(name, "$?") && !isCell {
		return name
	}
	return "'" + strings.ReplaceAll(name, "'", "''") + "'"
}

// sheetXML returns the file of a sheet. The first row stays visible when a reader scrolls.
func (b *builder) sheetXML(s *sheet) string {
	var rows strings.Builder
	widths := make([]int, s.width)
	for i := range widths {
		widths[i] = 8
	}
	for i, row := range s.rows {
		fmt.Fprintf(&rows, `<row r="%d">`, i+1)
		for k := range row {
			// Excel does not adapt the columns to their contents when it opens a file.
			widths[k] = max(widths[k], min(utf8.RuneCountInString(row[k].shown())+2, widestColumn))
			b.writeCell(&rows, cellAt{k + 1, i + 1}, &row[k])
		}
		rows.WriteString(`</row>`)
	}
	var cols strings.Builder
	for k, width := range widths {
		fmt.Fprintf(&cols, `<col min="%d" max="%d" width="%d" customWidth="1"/>`, k+1, k+1, width)
	}
	columns, drawing := cols.String(), ""
	if columns != "" {
		columns = "<cols>" + columns + "</cols>"
	}
	if len(s.charts) > 0 {
		drawing = `<drawing r:id="drawing"/>`
	}
	// The schema of ECMA-376 fixes the order: sheetViews, cols, sheetData, drawing.
	return archive.Head + `<worksheet ` + mainSpace + ` ` + relationSpace + `><sheetViews>` +
		`<sheetView workbookViewId="0">` +
		`<pane ySplit="1" topLeftCell="A2" activePane="bottomLeft" state="frozen"/></sheetView>` +
		`</sheetViews>` + columns + `<sheetData>` + rows.String() + `</sheetData>` + drawing + `</worksheet>`
}

// shown returns a cell as it looks.
func (x *cell) shown() string {
	v := x.value
	if x.formula != nil {
		v = x.formula.value
	}
	if n, isNumber := v.(float64); isNumber && x.style.format != "" {
		return parseFormat(x.style.format, neutral).number(n, false)
	}
	return toText(v)
}

// writeCell writes a cell.
func (b *builder) writeCell(out *strings.Builder, at cellAt, x *cell) {
	style := ""
	if n := b.style(x.style); n > 0 {
		style = fmt.Sprintf(` s="%d"`, n)
	}
	if x.formula != nil {
		x.formula.write(out, at, style)
		return
	}
	switch v := x.value.(type) {
	// An empty cell has no element.
	case nil:
	case bool:
		fmt.Fprintf(out, `<c r="%s"%s t="b"><v>%d</v></c>`, at, style, map[bool]int{true: 1}[v])
	case float64:
		fmt.Fprintf(out, `<c r="%s"%s><v>%s</v></c>`, at, style, x.digits)
	case string:
		fmt.Fprintf(out, `<c r="%s"%s t="inlineStr"><is><t xml:space="preserve">%s</t></is></c>`, at, style,
			archive.Escape(v))
	}
}

// write writes a cell with a formula and its value.
func (f *formulaCell) write(out *strings.Builder, at cellAt, style string) {
	kind, value := "", ""
	switch v := f.value.(type) {
	case float64:
		value = strconv.FormatFloat(v, 'g', -1, 64)
	case string:
		kind, value = ` t="str"`, v
	case bool:
		kind, value = ` t="b"`, map[bool]string{true: "1", false: "0"}[v]
	case cellError:
		kind, value = ` t="e"`, string(v)
	}
	if f.failed != "" {
		kind, value = "", ""
	} else {
		value = "<v>" + archive.Escape(value) + "</v>"
	}
	array := ""
	// Without the mark, Excel computes only with the cell in the row of the formula.
	if f.array {
		array = fmt.Sprintf(` t="array" ref="%s"`, at)
	}
	stored := archive.Escape(storedFormula(f.text))
	fmt.Fprintf(out, `<c r="%s"%s%s><f%s>%s</f>%s</c>`, at, style, kind, array, stored, value)
}
