package chart

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// readTable sets the labels and the series from a CSV table. Its first row has the names of the series, and its first
// column the labels, or the x of a scatter chart.
func (in *Input) readTable() error {
	separator := separatorOf(in.Table)
	r := csv.NewReader(strings.NewReader(in.Table))
	r.Comma, r.FieldsPerRecord, r.LazyQuotes, r.TrimLeadingSpace = separator, -1, true, true
	head, err := r.Read()
	if err != nil || len(head) < 2 {
		return fmt.Errorf("file: a table has a row of names, and a column of labels before the columns of numbers")
	}
	columns, err := in.pick(head)
	if err != nil {
		return err
	}
	in.Series = make([]Series, len(columns))
	for i, column := range columns {
		in.Series[i].Name = strings.TrimSpace(head[column])
	}
	for {
		row, err := r.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("file: %w", err)
		}
		line, _ := r.FieldPos(0)
		if err := in.addRow(row, columns, head, line, separator != ','); err != nil {
			return err
		}
	}
}

// pick returns the columns to draw.
func (in *Input) pick(head []string) (columns []int, err error) {
	if len(in.Columns) == 0 {
		for i := 1; i < len(head); i++ {
			columns = append(columns, i)
		}
		return columns, nil
	}
	for _, name := range in.Columns {
		i := slices.IndexFunc(head, func(h string) bool { return strings.TrimSpace(h) == strings.TrimSpace(name) })
		if i < 1 {
			return nil, fmt.Errorf("columns: the table has no column %q after its first one; it has: %s", name,
				strings.Join(head[1:], ", "))
		}
		columns = append(columns, i)
	}
	return columns, nil
}

// addRow adds the values of a row. An empty cell is a gap.
func (in *Input) addRow(row []string, columns []int, head []string, line int, comma bool) error {
	if len(in.Labels) > mostLabels[in.Kind] { // check reports the error
		return nil
	}
	x, isNumber := number(row[0], comma)
	if in.Kind == scatter && !isNumber {
		return fmt.Errorf("file: line %d: %q in the first column is no number, which a scatter chart needs", line, row[0])
	}
	in.Labels = append(in.Labels, strings.TrimSpace(row[0]))
	for i, column := range columns {
		s := &in.Series[i]
		if column >= len(row) || strings.TrimSpace(row[column]) == "" {
			s.Values = append(s.Values, nil)
			continue
		}
		y, ok := number(row[column], comma)
		if !ok {
			return fmt.Errorf("file: line %d: %.40q in the column %q is no number; columns can name those to draw",
				line, row[column], head[column])
		}
		if in.Kind == scatter {
			s.Points = append(s.Points, [2]float64{x, y})
		}
		s.Values = append(s.Values, &y)
	}
	if in.Kind == scatter {
		for i := range in.Series {
			in.Series[i].Values = nil
		}
	}
	return nil
}

// separatorOf returns the separator that is most frequent in the first line.
func separatorOf(table string) rune {
	first, _, _ := strings.Cut(table, "\n")
	best := ','
	for _, r := range ";\t" {
		if strings.Count(first, string(r)) > strings.Count(first, string(best)) {
			best = r
		}
	}
	return best
}

// number parses a number as tables show it, such as "1,200.50", "-3 %" or "12,5 €". comma is true if a single comma
// before digits is a decimal comma, because another character separates the cells.
func number(cell string, comma bool) (float64, bool) {
	cell = strings.Map(func(r rune) rune {
		switch {
		case strings.ContainsRune(" \u00a0\u202f'’%€$£", r):
			return -1
		case r == '−':
			return '-'
		}
		return r
	}, cell)
	point, decimal := strings.LastIndexByte(cell, '.'), strings.LastIndexByte(cell, ',')
	switch {
	case decimal > point && (comma || point >= 0): // 1.200,50
		cell = strings.ReplaceAll(cell, ".", "")
		cell = strings.Replace(cell, ",", ".", 1)
	case point > decimal && decimal >= 0, decimal >= 0: // 1,200.50 or 1,200
		cell = strings.ReplaceAll(cell, ",", "")
	}
	v, err := strconv.ParseFloat(cell, 64)
	return v, err == nil && v-v == 0 // neither NaN nor infinite
}
