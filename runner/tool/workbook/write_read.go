package workbook

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// readSheets parses the sheets in a CSV or JSON text. The first character determines the
// format.
func readSheets(content []byte) ([]*sheet, error) {
	content = bytes.TrimPrefix(content, []byte("\xef\xbb\xbf"))
	trimmed := bytes.TrimSpace(content)
	if len(trimmed) == 0 {
		return nil, errors.New("there are no rows")
	}
	if trimmed[0] != '[' && trimmed[0] != '{' {
		s, err := readCSV(content)
		return []*sheet{s}, err
	}
	dec := json.NewDecoder(bytes.NewReader(trimmed))
	dec.UseNumber() // float64 would lose digits of long numbers
	if trimmed[0] == '[' {
		s := &sheet{name: "Sheet1"}
		err := s.readJSON(dec)
		return []*sheet{s}, err
	}
	_, _ = dec.Token() // the opening brace
	var sheets []*sheet
	// Read them one by one, because a map would lose the order of the sheets.
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return nil, fmt.Errorf("the JSON is broken: %w", err)
		}
		s := &sheet{name: fmt.Sprint(name)}
		if err := s.readJSON(dec); err != nil {
			return nil, err
		}
		sheets = append(sheets, s)
	}
	if _, err := dec.Token(); err != nil {
		return nil, fmt.Errorf("the JSON is broken: %w", err)
	}
	return sheets, nil
}

// readJSON decodes a JSON list of rows, or an object with rows and charts.
func (s *sheet) readJSON(dec *json.Decoder) error {
	var raw json.RawMessage
	if err := dec.Decode(&raw); err != nil {
		return fmt.Errorf("the JSON is broken: %w", err)
	}
	var in struct {
		Rows   [][]any `json:"rows"`
		Chart  *chart  `json:"chart"`
		Charts []chart `json:"charts"`
	}
	target := any(&in.Rows)
	if bytes.HasPrefix(raw, []byte("{")) {
		target = &in
	}
	own := json.NewDecoder(bytes.NewReader(raw))
	own.UseNumber()
	own.DisallowUnknownFields()
	if err := own.Decode(target); err != nil {
		return fmt.Errorf(`sheet %q must be a list of rows, each a list of cells, or {"rows": [...], "chart": {...}}: %w`,
			s.name, err)
	}
	if in.Chart != nil {
		in.Charts = append([]chart{*in.Chart}, in.Charts...)
	}
	s.charts = in.Charts
	for i, row := range in.Rows {
		cells := make([]cell, len(row))
		for k, v := range row {
			x, err := readCell(v, i == 0)
			if err != nil {
				return fmt.Errorf("%s!%s: %w", quoteSheet(s.name), cellAt{k + 1, i + 1}, err)
			}
			cells[k] = x
		}
		s.rows = append(s.rows, cells)
		s.width = max(s.width, len(row))
	}
	return nil
}

// separatorOf returns the separator of CSV, and the content without a first line that only names it, as Excel
// writes.
func separatorOf(content []byte) (separator rune, rest []byte) {
	line, after, _ := bytes.Cut(content, []byte("\n"))
	if named, ok := bytes.CutPrefix(bytes.TrimRight(line, "\r"), []byte("sep=")); ok && len(named) == 1 {
		return rune(named[0]), after
	}
	// The most frequent of these characters in the first line, outside of quotation marks, is the separator.
	counts, quoted := map[rune]int{}, false
	for _, r := range string(line) {
		quoted = quoted != (r == '"')
		if !quoted && strings.ContainsRune(",;\t|", r) {
			counts[r]++
		}
	}
	separator = ','
	for _, r := range ";\t|" {
		if counts[r] > counts[separator] {
			separator = r
		}
	}
	return separator, content
}

// readCSV parses rows whose cells are separated by commas, semicolons, tabs or bars.
func readCSV(content []byte) (*sheet, error) {
	separator, content := separatorOf(content)
	r := csv.NewReader(bytes.NewReader(content))
	// Models write rows of different lengths, and quotation marks inside a cell.
	r.FieldsPerRecord, r.LazyQuotes = -1, true
	r.Comma = separator
	s := &sheet{name: "Sheet1"}
	for {
		record, err := r.Read()
		if errors.Is(err, io.EOF) {
			return s, nil
		}
		if err != nil {
			return nil, fmt.Errorf("the CSV is broken: %w", err)
		}
		row := make([]cell, len(record))
		for i, text := range record {
			row[i], _ = readCell(text, len(s.rows) == 0) // a text is always valid
		}
		s.rows = append(s.rows, row)
		s.width = max(s.width, len(row))
	}
}

// checkSheets returns an error for sheets that the format does not allow.
func checkSheets(sheets []*sheet) error {
	if len(sheets) > maxSheets {
		return fmt.Errorf("a workbook can have %d sheets, and this one has %d", maxSheets, len(sheets))
	}
	names := map[string]bool{}
	for _, s := range sheets {
		// For Excel, names that differ only in case are equal.
		folded := strings.ToLower(s.name)
		switch {
		case s.name == "" || utf8.RuneCountInString(s.name) > maxSheetName || strings.ContainsAny(s.name, `[]:*?/\`) ||
			strings.HasPrefix(s.name, "'") || strings.HasSuffix(s.name, "'"):
			return fmt.Errorf(`sheet %q: a name has 1 to %d characters, none of []:*?/\ and no ' at its ends`,
				s.name, maxSheetName)
		case names[folded]:
			return fmt.Errorf("sheet %q is there twice", s.name)
		case len(s.rows) > maxRows:
			return fmt.Errorf("sheet %q has %d rows, more than %d", s.name, len(s.rows), maxRows)
		}
		names[folded] = true
		if err := checkRows(s); err != nil {
			return err
		}
	}
	if len(sheets) == 0 {
		return errors.New("there are no sheets")
	}
	return checkCharts(sheets)
}

// checkRows returns an error for rows and cells that the format does not allow.
func checkRows(s *sheet) error {
	for i, row := range s.rows {
		if len(row) > maxColumns {
			return fmt.Errorf("row %d of sheet %q has %d cells, more than %d", i+1, s.name, len(row), maxColumns)
		}
		for _, x := range row {
			if text, ok := x.value.(string); ok && utf8.RuneCountInString(text) > maxCellText {
				return fmt.Errorf("a cell in row %d of sheet %q has more than %d characters", i+1, s.name, maxCellText)
			}
		}
	}
	return nil
}
