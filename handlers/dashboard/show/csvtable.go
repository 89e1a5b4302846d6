package show

import (
	"encoding/csv"
	"errors"
	"io"
	"strings"
)

// The limits of a table in a preview.
const (
	tableRows    = 200
	tableColumns = 40
	tableCell    = 300 // characters
)

// A Table is the beginning of a file of comma-separated values.
type Table struct {
	Head []string
	Rows [][]string
	Cut  bool // the file has more rows or columns, or longer cells
}

// widestTable is the most columns of a text that is a table, as in Excel. The reader needs memory for each cell.
const widestTable = 16_384

// ReadTable reads the beginning of a table, and detects the separator of its cells. ok is false for
// a text that is no table.
func ReadTable(text string) (t Table, ok bool) {
	mark := separator(text)
	for line := range strings.Lines(text) {
		if strings.Count(line, string(mark)) > widestTable {
			return t, false
		}
	}
	r := csv.NewReader(strings.NewReader(strings.TrimPrefix(text, "\uFEFF")))
	r.Comma, r.LazyQuotes, r.FieldsPerRecord, r.ReuseRecord = mark, true, -1, true
	width := 0
	for len(t.Rows) <= tableRows { // one row more for the head
		record, err := r.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return t, false
		}
		row := t.cells(record)
		width = max(width, len(row))
		t.Rows = append(t.Rows, row)
	}
	if _, err := r.Read(); err == nil {
		t.Cut = true
	}
	if len(t.Rows) == 0 {
		return t, false
	}
	// Rows of equal length keep the columns of the page aligned.
	for i, row := range t.Rows {
		t.Rows[i] = append(row, make([]string, width-len(row))...)
	}
	t.Head, t.Rows = t.Rows[0], t.Rows[1:]
	return t, true
}

// cells returns the cells of a record that the table shows.
func (t *Table) cells(record []string) []string {
	if len(record) > tableColumns {
		record, t.Cut = record[:tableColumns], true
	}
	row := make([]string, len(record))
	for i, cell := range record {
		if row[i] = Ellipsis(cell, tableCell); row[i] != cell {
			t.Cut = true
		}
	}
	return row
}

// separatorLines is the number of lines that separator examines.
const separatorLines = 20

// separator returns the most probable separator of cells: the character that occurs in every line
// as often as in the first.
func separator(text string) rune {
	best, most := ',', 0
	for _, candidate := range ",;\t|" {
		first, equal, lines := 0, 0, 0
		for line := range strings.Lines(text) {
			n := countOutside(line, candidate)
			if lines == 0 {
				first = n
			}
			if lines++; n == first {
				equal++
			}
			if lines == separatorLines {
				break
			}
		}
		// Equal lines count more than many cells: a sentence has commas, too.
		if score := equal*1000 + min(first, 999); first > 0 && score > most {
			best, most = candidate, score
		}
	}
	return best
}

// countOutside returns how often a character occurs outside quotation marks.
func countOutside(line string, c rune) (n int) {
	quoted := false
	for _, r := range line {
		switch {
		case r == '"':
			quoted = !quoted
		case r == c && !quoted:
			n++
		}
	}
	return n
}
