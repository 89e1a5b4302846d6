// Package chart draws charts as PNG or SVG. It runs in a confined process, because it reads tables of other people.
// The same input gives the same bytes. It imports no other package of this program.
package chart

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"unicode/utf8"
)

// An Input is a chart to draw.
type Input struct {
	Kind   string   `json:"kind"`   // one of Kinds
	Format string   `json:"format"` // png or svg
	Title  string   `json:"title,omitempty"`
	XTitle string   `json:"xTitle,omitempty"`
	YTitle string   `json:"yTitle,omitempty"`
	Labels []string `json:"labels,omitempty"`
	Series []Series `json:"series,omitempty"`

	Table   string   `json:"table,omitempty"`   // CSV, in place of labels and series
	Columns []string `json:"columns,omitempty"` // columns of Table to draw; all of them if empty
}

// A Series is a row of values.
type Series struct {
	Name   string       `json:"name,omitempty"`
	Values []*float64   `json:"values,omitempty"` // one for each label; nil is a gap
	Points [][2]float64 `json:"points,omitempty"` // x and y, of a scatter chart
}

// The kinds of charts.
const (
	bar        = "bar"
	stacked    = "stacked"
	horizontal = "horizontal"
	lines      = "line"
	area       = "area"
	pie        = "pie"
	scatter    = "scatter"
)

// Kinds returns the kinds of charts.
func Kinds() []string { return []string{bar, stacked, horizontal, lines, area, pie, scatter} }

// Limits of a chart.
const (
	maxSeries = 12
	maxName   = 200  // characters of a name, label or title
	maxValue  = 1e15 // a float64 has 15 digits
)

// mostLabels is the maximum number of labels, or of points of a scatter chart.
var mostLabels = map[string]int{bar: 200, stacked: 200, horizontal: 30, lines: 5000, area: 5000, pie: 20, scatter: 20_000}

// A Report describes a chart. Write puts it before the picture as one line of JSON.
type Report struct {
	Notes []string `json:"notes,omitempty"` // what the chart lacks
}

// Write returns the Report of a chart, and the chart. in is an Input.
func Write(in []byte) ([]byte, error) {
	var input Input
	if err := json.Unmarshal(in, &input); err != nil {
		return nil, fmt.Errorf("read input: %w", err)
	}
	if input.Table != "" {
		if err := input.readTable(); err != nil {
			return nil, err
		}
	}
	if err := input.check(); err != nil {
		return nil, err
	}
	t := newType()
	var c canvas = newSVG(t)
	if input.Format == "png" {
		c = newRaster(t)
	}
	input.draw(c, t)
	picture, err := c.bytes()
	if err != nil {
		return nil, err
	}
	head, err := json.Marshal(Report{Notes: t.notes()})
	if err != nil {
		return nil, fmt.Errorf("write report: %w", err)
	}
	return append(append(head, '\n'), picture...), nil
}

// Split returns the parts of a result of Write.
func Split(out []byte) (r Report, picture []byte, err error) {
	head, picture, _ := bytes.Cut(out, []byte("\n"))
	if err := json.Unmarshal(head, &r); err != nil {
		return Report{}, nil, fmt.Errorf("read report of a chart: %w", err)
	}
	return r, picture, nil
}

// check returns an error for data that cannot be drawn. Its message names the argument and the rule.
func (in *Input) check() error {
	if !slices.Contains(Kinds(), in.Kind) {
		return fmt.Errorf("kind: there is no kind %q", in.Kind)
	}
	if n := len(in.Series); n > maxSeries {
		return fmt.Errorf("series can have %d entries and has %d", maxSeries, n)
	}
	if n := len(in.Labels); n > mostLabels[in.Kind] {
		return fmt.Errorf("labels can have %d entries in a %s chart and has %d: group the data first",
			mostLabels[in.Kind], in.Kind, n)
	}
	texts := append([]string{in.Title, in.XTitle, in.YTitle}, in.Labels...)
	total := 0
	for i, s := range in.Series {
		texts = append(texts, s.Name)
		n, err := s.check(fmt.Sprintf("series[%d]", i), in)
		if err != nil {
			return err
		}
		total += n
	}
	for _, text := range texts {
		if n := utf8.RuneCountInString(text); n > maxName {
			return fmt.Errorf("a title, name or label can have %d characters and %.20q has %d", maxName, text, n)
		}
	}
	switch {
	case total == 0:
		return fmt.Errorf("there are no values to draw")
	case in.Kind == scatter && total > mostLabels[scatter]:
		return fmt.Errorf("a scatter chart can have %d points and has %d", mostLabels[scatter], total)
	case in.Kind == pie:
		return in.checkPie()
	}
	return nil
}

// check returns the number of values of a series.
func (s *Series) check(name string, in *Input) (count int, err error) {
	if in.Kind == scatter {
		if len(s.Values) > 0 {
			return 0, fmt.Errorf("%s: a scatter chart has points [x, y], not values", name)
		}
		for i, p := range s.Points {
			if math.Abs(p[0]) > maxValue || math.Abs(p[1]) > maxValue {
				return 0, fmt.Errorf("%s.points[%d] is beyond %g: use a larger unit", name, i, maxValue)
			}
		}
		return len(s.Points), nil
	}
	if len(s.Points) > 0 {
		return 0, fmt.Errorf("%s: only a scatter chart has points; use values", name)
	}
	if len(s.Values) != len(in.Labels) {
		return 0, fmt.Errorf("%s.values has %d entries and labels has %d: each label needs a value, or null",
			name, len(s.Values), len(in.Labels))
	}
	for i, v := range s.Values {
		if v == nil {
			continue
		}
		count++
		if math.IsNaN(*v) || math.Abs(*v) > maxValue {
			return 0, fmt.Errorf("%s.values[%d] is beyond %g: use a larger unit", name, i, maxValue)
		}
	}
	return count, nil
}

// checkPie checks what a pie needs: one series of values above zero.
func (in *Input) checkPie() error {
	if len(in.Series) != 1 {
		return fmt.Errorf("a pie has one series, and there are %d: use bar or stacked", len(in.Series))
	}
	sum := 0.0
	for i, v := range in.Series[0].Values {
		if v == nil {
			continue
		}
		if *v < 0 {
			return fmt.Errorf("series[0].values[%d] is negative, which a pie cannot show: use bar", i)
		}
		sum += *v
	}
	if sum == 0 {
		return fmt.Errorf("the values of a pie must not all be zero")
	}
	return nil
}
