// Package workbook reads workbooks as text, and writes xlsx workbooks.
//
// The readers expect hostile input: they limit the unpacked bytes, the nesting and the result. As a second line of
// defense, they run in a confined process. This package opens no file or connection.
package workbook

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"journeyman/runner/tool/office/archive"
)

// Limits of the text of a workbook.
const (
	maxText     = 8 << 20 // bytes; the rest is omitted
	maxSheets   = 200
	widestGap   = 20       // empty cells in a row that are written individually
	maxLetters  = 100      // letters of columns above the rows
	maxNotes    = 1000     // notes of one kind about a sheet
	maxNote     = 32 << 10 // bytes of a note
	longText    = 48 << 10
	maxOverview = 100 // sheets and names in the overview
)

var errEmpty = errors.New("it holds no text")

// A bookText is the text of the selected part of a workbook.
type bookText struct {
	expired  func() bool
	sheet    string // name or number of the selected sheet, "" for all
	cells    area   // selected cells of each sheet
	out      strings.Builder
	overview []string // a sheet each: its number, name and cells
	notes    []string // about the whole workbook
	found    bool     // out contains text of the workbook, not only notes
}

// line adds a line, and returns archive.ErrEnough if the limit or the time is reached.
func (b *bookText) line(text string) error {
	b.out.WriteString(text)
	b.out.WriteByte('\n')
	if b.out.Len() > maxText || b.expired() {
		return archive.ErrEnough
	}
	return nil
}

// finish returns the text. err is the error that ended the reading, nil at the end of the workbook.
func (b *bookText) finish(err error, sheets int) ([]byte, error) {
	switch {
	case errors.Is(err, archive.ErrEnough):
		b.out.WriteString("\n[the rest of the document is not read: select a part of it with sheet and range]\n")
	case err != nil:
		return nil, err
	case !b.found && b.sheet == "" && b.cells == everything:
		return nil, errEmpty
	}
	var head strings.Builder
	whole := b.sheet == "" && b.cells == everything
	if whole && (sheets > 1 || b.out.Len() > longText) {
		fmt.Fprintf(&head, "[workbook with %s: %s]\n", plural(sheets, "sheet"), short(b.overview, "; ", maxOverview))
		head.WriteString("[read_file with sheet and range, such as sheet \"1\" and range \"A1:F200\", gives a part of it]\n")
	}
	if whole && len(b.notes) > 0 {
		head.WriteString("[" + short(b.notes, "; ", maxOverview) + "]\n")
	}
	if head.Len() > 0 {
		head.WriteByte('\n')
	}
	return []byte(strings.ToValidUTF8(head.String()+b.out.String(), "\uFFFD")), nil
}

func plural(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return strconv.Itoa(n) + " " + word + "s"
}

// short joins at most some items, and says how many there are beyond.
func short(items []string, separator string, most int) string {
	if len(items) <= most {
		return strings.Join(items, separator)
	}
	return strings.Join(items[:most], separator) + fmt.Sprintf("%sand %d more", separator, len(items)-most)
}

// A sheetText is the text of a sheet. Its readers call beginRow, cell for each cell with a content, and endRow, for
// rows from top to bottom and cells from left to right; then note; and last end.
type sheetText struct {
	book          *bookText
	name          string
	facts         []string // what is special about the sheet, such as "hidden"
	rows          strings.Builder
	used          area         // all cells with a content, also outside of the selected area
	columns       int          // last column that a row has individually
	hiddenColumns map[int]bool // up to maxLetters
	hidden        []string     // names of hidden columns
	kinds         []string     // kinds of notes, in order
	notes         map[string][]string
	omitted       map[string]int // notes beyond maxNotes

	line    strings.Builder // of the present row
	row     int
	next    int // first column that line does not contain
	skipped bool
}

func (b *bookText) newSheet(name string) *sheetText {
	return &sheetText{book: b, name: name, columns: b.cells.first.column - 1,
		hiddenColumns: map[int]bool{}, notes: map[string][]string{}, omitted: map[string]int{}}
}

// hideColumns marks columns as hidden.
func (s *sheetText) hideColumns(first, last int) {
	first, last = max(first, 1), min(last, maxColumns)
	if first > last || len(s.hidden) > maxNotes {
		return
	}
	name := columnName(first)
	if last > first {
		name += ":" + columnName(last)
	}
	s.hidden = append(s.hidden, name)
	for c := first; c <= min(last, s.book.cells.first.column+maxLetters); c++ {
		s.hiddenColumns[c] = true
	}
}

// beginRow begins a row.
func (s *sheetText) beginRow(row int, hidden bool) {
	s.line.Reset()
	s.row, s.next = row, s.book.cells.first.column
	s.line.WriteString(strconv.Itoa(row))
	if hidden {
		s.line.WriteString(" hidden")
	}
	s.skipped = true
}

// wants reports whether the cell in a column of the present row is selected.
func (s *sheetText) wants(column int) bool { return s.book.cells.contains(cellAt{column, s.row}) }

// cell adds a cell to the present row. It preserves the positions of empty cells before it.
func (s *sheetText) cell(column int, text string) error {
	if text == "" || column < 1 || column > maxColumns || s.row < 1 || s.row > maxRows {
		return nil
	}
	s.used = s.used.add(cellAt{column, s.row})
	// Cells that do not follow each other would make the row ambiguous.
	if !s.wants(column) || column < s.next {
		return nil
	}
	switch gap := column - s.next; {
	// A hostile document may have many rows with a single cell in the last column.
	case gap > widestGap:
		fmt.Fprintf(&s.line, " | [%s:%s empty]", columnName(s.next), columnName(column-1))
	default:
		s.line.WriteString(strings.Repeat(" | ", gap))
		if s.columns >= s.next-1 {
			s.columns = max(s.columns, column)
		}
	}
	s.next, s.skipped = column+1, false
	s.line.WriteString(" | " + text)
	if s.line.Len()+s.rows.Len() > maxText {
		return archive.ErrEnough
	}
	return nil
}

// endRow adds the present row, unless it is empty.
func (s *sheetText) endRow() error {
	if s.skipped {
		return nil
	}
	s.skipped, s.book.found = true, true
	s.rows.WriteString(s.line.String() + "\n")
	if s.rows.Len()+s.book.out.Len() > maxText || s.book.expired() {
		return archive.ErrEnough
	}
	return nil
}

// note adds a note of some kind to the sheet. The zero area is for notes that belong to no cell.
func (s *sheetText) note(kind string, cells area, text string) {
	if cells != (area{}) && !cells.overlaps(s.book.cells) {
		return
	}
	if s.notes[kind] == nil {
		s.kinds = append(s.kinds, kind)
	}
	if len(s.notes[kind]) == maxNotes {
		s.omitted[kind]++
		return
	}
	s.notes[kind] = append(s.notes[kind], cut(cellText(text), maxNote))
}

// end adds the sheet to the text of the workbook, with its header and notes. err is what ended the reading of the
// sheet; number is its number of all.
func (s *sheetText) end(number int, err error) error {
	b := s.book
	cells := "empty"
	if s.used != (area{}) {
		cells = s.used.String()
	}
	if errors.Is(err, archive.ErrEnough) {
		cells += " and more"
		// The reading may have ended inside a long row.
		if s.line.Len() > 0 && !s.skipped {
			s.rows.WriteString(s.line.String() + "\n")
			b.found = true
		}
	}
	facts := append([]string{cells}, s.facts...)
	b.overview = append(b.overview, fmt.Sprintf("%d %q %s", number, s.name, strings.Join(facts, ", ")))
	if len(s.hidden) > 0 {
		facts = append(facts, "hidden columns "+short(s.hidden, " ", maxNotes))
	}
	fmt.Fprintf(&b.out, "[sheet %q]\n[%s]\n", s.name, strings.Join(facts, "; "))
	if s.rows.Len() > 0 {
		b.out.WriteString(s.letters() + "\n" + s.rows.String())
	} else if b.cells != everything {
		fmt.Fprintf(&b.out, "[no cell of %s has a content]\n", b.cells)
	}
	for _, kind := range s.kinds {
		fmt.Fprintf(&b.out, "[%s %s]\n", kind, strings.Join(s.notes[kind], "; "))
		if n := s.omitted[kind]; n > 0 {
			fmt.Fprintf(&b.out, "[%s: %d more; a range shows those of its cells]\n", kind, n)
		}
	}
	b.found = b.found || len(s.kinds) > 0
	if end := b.line(""); err == nil {
		err = end
	}
	return err
}

// letters returns the line above the rows, with the letters of the columns.
func (s *sheetText) letters() string {
	var b strings.Builder
	b.WriteString("row")
	first := s.book.cells.first.column
	for c := first; c <= s.columns; c++ {
		if c >= first+maxLetters {
			b.WriteString(" | …")
			break
		}
		b.WriteString(" | " + columnName(c))
		if s.hiddenColumns[c] {
			b.WriteString(" hidden")
		}
	}
	return b.String()
}

// shownCell returns a cell: its value, or a formula and its value.
func shownCell(formula, value string) string {
	switch {
	case formula == "":
		return cellText(value)
	case value == "":
		return cellText(formula + ` → ""`)
	}
	return cellText(formula + " → " + value)
}

var cellReplacer = strings.NewReplacer("\r", "", "\n", " ", "|", `\|`)

// cellText returns a text in the form that it has between the marks of a row.
func cellText(text string) string { return cellReplacer.Replace(strings.TrimSpace(text)) }

// cut returns a text, or the beginning of a long one.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

// pick returns the index of the selected sheet, or -1 if all sheets are selected. A name goes before a number.
func pick(selected string, names []string, hidden func(int) bool) (int, error) {
	if selected == "" {
		return -1, nil
	}
	if i := slices.Index(names, selected); i >= 0 {
		return i, nil
	}
	folded := strings.TrimSpace(selected)
	if i := slices.IndexFunc(names, func(n string) bool { return strings.EqualFold(n, folded) }); i >= 0 {
		return i, nil
	}
	if n, err := strconv.Atoi(strings.TrimPrefix(folded, "#")); err == nil && n >= 1 && n <= len(names) {
		return n - 1, nil
	}
	list := make([]string, len(names))
	for i, name := range names {
		list[i] = fmt.Sprintf("%d %q", i+1, name)
		if hidden(i) {
			list[i] += " (hidden)"
		}
	}
	return -1, fmt.Errorf("there is no sheet %q; the sheets are %s", selected, short(list, ", ", maxOverview))
}
