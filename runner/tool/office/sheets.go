package office

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Limits of a workbook.
const (
	maxSheets  = 200
	maxStrings = 1_000_000 // shared strings
	maxShared  = 48 << 20  // total bytes of all shared strings
	maxColumns = 16_384    // columns of a sheet, as in Excel
	widestGap  = 20        // empty cells in a row that are written individually
)

// Xlsx returns the cells of a workbook, sheet by sheet: each row as its number and its values,
// separated by |. Instead of a formula, it returns the value that the formula had when the
// document was saved.
func Xlsx(data []byte, expired func() bool) ([]byte, error) {
	d, err := open(data, expired)
	if err != nil {
		return nil, err
	}
	const root = "xl/workbook.xml"
	book := &workbook{d: d}
	found, err := d.parse(root, book)
	if err == nil && !found {
		err = errDamaged
	}
	var targets map[string]relation
	if err == nil {
		targets, err = d.relations(root)
	}
	// Sheets refer to these strings and formats by number, so parse both first.
	if err == nil {
		_, err = d.parse("xl/sharedStrings.xml", &sharedStrings{book: book})
	}
	if err == nil {
		_, err = d.parse("xl/styles.xml", &dateStyles{book: book, custom: map[string]bool{}})
	}
	for i, s := range book.sheets {
		if err != nil {
			break
		}
		// The sheets so far are useful, so this is not an error.
		if i == maxSheets {
			d.note("[%d more sheets are not read]\n", len(book.sheets)-i)
			break
		}
		d.note("[sheet %q%s]\n", s.name, s.hidden)
		_, err = d.parse(targets[s.id].target, &sheetReader{book: book})
		d.note("\n")
	}
	return d.finish(err)
}

// A workbook is an xlsx document during reading.
type workbook struct {
	ignoreText
	d        *document
	sheets   []sheetRef
	strings  []string
	datesAt  []bool // whether the numbers of each cell format are dates
	oldDates bool   // dates count from 1904, as in old Excel for Mac
}

type sheetRef struct{ name, id, hidden string }

func (w *workbook) start(name string, attr attributes) error {
	switch name {
	case "workbookPr":
		w.oldDates = attr.get("date1904") == "1" || attr.get("date1904") == "true"
	case "sheet":
		s := sheetRef{name: attr.get("name"), id: attr.get("r:id")}
		if state := attr.get("state"); state != "" && state != "visible" {
			s.hidden = ", hidden"
		}
		if w.sheets = append(w.sheets, s); len(w.sheets) > maxEntries {
			return fmt.Errorf("it has more than %d sheets", maxEntries)
		}
	}
	return nil
}

// date returns the date or time that a number represents.
func (w *workbook) date(serial float64) string {
	// Excel counts 29 February 1900, which did not exist. From March 1900 on, dates are correct
	// if day 0 is one day earlier.
	day0 := time.Date(1899, 12, 30, 0, 0, 0, 0, time.UTC)
	if w.oldDates {
		day0 = time.Date(1904, 1, 1, 0, 0, 0, 0, time.UTC)
	}
	days, part := math.Modf(serial)
	at := day0.AddDate(0, 0, int(days)).Add(time.Duration(math.Round(part*86_400)) * time.Second)
	switch {
	case days == 0:
		return at.Format("15:04:05")
	case part == 0:
		return at.Format("2006-01-02")
	}
	return at.Format("2006-01-02 15:04:05")
}

// sharedStrings reads the texts that cells refer to.
type sharedStrings struct {
	book    *workbook
	current strings.Builder // text of the present item
	inText  bool
	skip    bool // inside a phonetic reading, which repeats the text
	size    int  // total bytes of all strings so far
}

func (v *sharedStrings) start(name string, _ attributes) error {
	switch name {
	case "si":
		v.current.Reset()
	case "t":
		v.inText = true
	case "rPh":
		v.skip = true
	}
	return nil
}

func (v *sharedStrings) text(text string) error {
	if v.inText && !v.skip {
		v.current.WriteString(text)
	}
	return nil
}

func (v *sharedStrings) end(name string) error {
	switch name {
	case "t":
		v.inText = false
	case "rPh":
		v.skip = false
	case "si":
		v.size += v.current.Len()
		// Clean it once. Many cells can refer to one long text, and a blank one never fills the result.
		v.book.strings = append(v.book.strings, cellText(v.current.String()))
		// All strings stay in memory until the last sheet has been read.
		if len(v.book.strings) > maxStrings || v.size > maxShared {
			return errors.New("it holds too many texts")
		}
	}
	return nil
}

// dateStyles finds the cell formats of dates.
type dateStyles struct {
	ignoreText
	book   *workbook
	custom map[string]bool // whether each number format of the document shows dates
	inXfs  bool            // inside cellXfs
}

func (v *dateStyles) start(name string, attr attributes) error {
	switch {
	case name == "numFmt":
		v.custom[attr.get("numFmtId")] = isDateFormat(attr.get("formatCode"))
	case name == "cellXfs":
		v.inXfs = true
	// Cells refer to the xf elements in cellXfs. Those in cellStyleXfs belong to named styles.
	case name == "xf" && v.inXfs && len(v.book.datesAt) < 1<<16: // more than Excel allows
		id := attr.get("numFmtId")
		n, _ := strconv.Atoi(id) // 0, the plain format, if id is not a number
		// ECMA-376 part 1, 18.8.30: the formats 14 to 22 and 45 to 47 are built-in date
		// formats.
		v.book.datesAt = append(v.book.datesAt, v.custom[id] || n >= 14 && n <= 22 || n >= 45 && n <= 47)
	}
	return nil
}

func (v *dateStyles) end(name string) error {
	if name == "cellXfs" {
		v.inXfs = false
	}
	return nil
}

// isDateFormat reports whether a number format has a letter for a day, month, year or time. It
// ignores quoted text, escaped characters and [...], such as a color.
func isDateFormat(code string) bool {
	quoted, bracket := false, false
	for i := 0; i < len(code); i++ {
		switch c := code[i]; {
		case c == '"':
			quoted = !quoted
		case c == '\\' || c == '_' || c == '*':
			i++ // the next character is literal
		case c == '[':
			bracket = true
		case c == ']':
			bracket = false
		case !quoted && !bracket && strings.IndexByte("yYmMdDhHsS", c) >= 0:
			return true
		}
	}
	return false
}

// A sheetReader reads the rows of a sheet.
type sheetReader struct {
	book *workbook
	row  int

	line    strings.Builder // text of the row so far
	next    int             // column of the next cell, from 0
	written int             // number of columns that line contains

	at, kind, style string           // attributes r, t and s of the cell
	value, formula  strings.Builder  // value and formula of the cell
	into            *strings.Builder // value or formula; nil to ignore text
}

func (v *sheetReader) start(name string, attr attributes) error {
	switch name {
	case "row":
		v.row++
		// The attribute r is optional: without it, a row follows the previous one.
		if n, err := strconv.Atoi(attr.get("r")); err == nil {
			v.row = n
		}
		v.line.Reset()
		v.next, v.written = 0, 0
	case "c":
		v.at, v.kind, v.style = attr.get("r"), attr.get("t"), attr.get("s")
		v.value.Reset()
		v.formula.Reset()
	case "v", "t":
		v.into = &v.value
	case "f":
		v.into = &v.formula
	}
	return nil
}

func (v *sheetReader) text(text string) error {
	if v.into != nil {
		v.into.WriteString(text)
	}
	return nil
}

func (v *sheetReader) end(name string) error {
	switch name {
	case "v", "t", "f":
		v.into = nil
	case "c":
		return v.endCell()
	case "row":
		if v.line.Len() > 0 {
			return v.book.d.write(strconv.Itoa(v.row) + v.line.String() + "\n")
		}
	}
	return nil
}

// endCell adds a cell to its row. It preserves the positions of empty cells before it.
func (v *sheetReader) endCell() error {
	column := v.next // the attribute r is optional: without it, a cell follows the previous one
	if n := columnOf(v.at); n >= 0 {
		column = n
	}
	v.next = column + 1
	text := v.shown()
	if text == "" {
		return nil
	}
	switch gap := column - v.written; {
	// A hostile document may have many rows with a single cell in the last column.
	case gap > widestGap:
		fmt.Fprintf(&v.line, " | [%d empty cells]", gap)
	case gap > 0:
		v.line.WriteString(strings.Repeat(" | ", gap))
	}
	v.written = column + 1
	v.line.WriteString(" | " + text)
	if v.line.Len() > maxText {
		return errEnough
	}
	return nil
}

// shown returns the value of the cell as text, "" for an empty cell.
func (v *sheetReader) shown() string {
	text := v.value.String()
	switch v.kind {
	case "s":
		i, err := strconv.Atoi(strings.TrimSpace(text))
		if err != nil || i < 0 || i >= len(v.book.strings) {
			return ""
		}
		if text = v.book.strings[i]; text != "" {
			return text
		}
	case "b":
		text = map[string]string{"1": "TRUE", "0": "FALSE"}[text]
	case "", "n":
		text = v.number(text)
	}
	if text == "" && v.formula.Len() > 0 {
		text = "=" + v.formula.String() // no program has computed its value yet
	}
	return cellText(text)
}

// cellText returns a text in the form that it has between the marks of a row.
func cellText(text string) string {
	return strings.NewReplacer("\r", "", "\n", " ", "|", `\|`).Replace(strings.TrimSpace(text))
}

// number converts a number to a date if it has a date format. From other numbers it removes
// rounding errors of binary fractions, such as in 0.30000000000000004.
func (v *sheetReader) number(text string) string {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return text
	}
	// A date is a number with a date format. Excel has no dates after 31 December 9999.
	style, err := strconv.Atoi(v.style)
	if err == nil && style >= 0 && style < len(v.book.datesAt) && v.book.datesAt[style] && n >= 0 && n < 2_958_466 {
		return v.book.date(n)
	}
	if math.Abs(n) < 1e15 {
		return strconv.FormatFloat(round15(n), 'f', -1, 64)
	}
	return text
}

// round15 rounds to 15 significant digits, which is the precision of Excel.
func round15(n float64) float64 {
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(n, 'g', 15, 64), 64)
	if err != nil {
		return n
	}
	return rounded
}

// columnOf returns the column of a cell such as "B7", counted from 0. It returns -1 if at
// contains no column.
func columnOf(at string) int {
	n := 0
	for i := 0; i < len(at) && at[i] >= 'A' && at[i] <= 'Z'; i++ {
		if n = n*26 + int(at[i]-'A') + 1; n > maxColumns {
			return -1
		}
	}
	return n - 1
}
