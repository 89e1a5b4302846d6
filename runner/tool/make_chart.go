package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"journeyman/runner/sandbox"
	"journeyman/runner/tool/chart"
	"journeyman/runner/workspace"
	"journeyman/store/visible"
)

// Limits of the arguments of make_chart. The package chart has stricter ones for each kind.
const (
	maxChartSeries = 12
	maxChartValues = 20_000
	maxChartTable  = 5 << 20 // bytes of a CSV file
)

type makeChart struct{ docs Documents }

// Spec describes make_chart.
func (makeChart) Spec() Spec {
	return Spec{
		Name: "make_chart",
		Description: `Draw numbers as a chart: a .png or .svg file of the workspace, from labels and series, or from a CSV
file.`,
		InputSchema: objectSchema(`
    "path": {"type": "string"},
    "kind": {"type": "string", "enum": ["`+strings.Join(chart.Kinds(), `", "`)+`"]},
    "title": {"type": "string"}, "xTitle": {"type": "string"}, "yTitle": {"type": "string"},
    "labels": {"type": "array"},
    "series": {"type": "array", "description":
      "[{name, values: [a number or null for each label]}]; of a scatter [{name, points: [[x, y]]}]"},
    "file": {"type": "string", "description": "CSV in place of labels and series, with names in the first row, labels in the first column"},
    "columns": {"type": "array", "description": "Names of columns to draw, if not all"}`,
			"path", "kind"),
		Repeatable: true,
	}
}

// Run draws a chart.
func (m makeChart) Run(ctx context.Context, host Host, input json.RawMessage) (json.RawMessage, error) {
	a := parse(input)
	file, in, table := a.path(), chart.Input{}, ""
	in.Kind = a.text("kind", true, 100)
	in.Title, in.XTitle, in.YTitle = a.text("title", false, 200), a.text("xTitle", false, 200), a.text("yTitle", false, 200)
	in.Labels = a.labels("labels", maxChartValues)
	in.Series = a.series("series")
	table = a.optionalPath("file")
	in.Columns = a.texts("columns", maxChartSeries, 200)
	in.Format = strings.TrimPrefix(strings.ToLower(path.Ext(file)), ".")
	switch {
	case a.err() != nil:
	case !slices.Contains(chart.Kinds(), in.Kind):
		a.wrong("kind must be one of %s", strings.Join(chart.Kinds(), ", "))
	case in.Format != "png" && in.Format != "svg":
		a.wrong("path must end in .png or .svg")
	case table != "" && in.Series != nil:
		a.wrong("file is in place of labels and series: give one of them")
	case table == "" && in.Columns != nil:
		a.wrong("columns are columns of file, which is missing")
	}
	if err := a.err(); err != nil {
		return nil, err
	}
	var err error
	if table != "" {
		if in.Table, err = m.docs.readTable(ctx, host.Workspace(), table); err != nil {
			return nil, err
		}
	}
	report, picture, err := m.docs.chart(ctx, in)
	if err != nil {
		return nil, err
	}
	if err := host.Workspace().WriteFile(file, picture); err != nil {
		return nil, explain(err)
	}
	return result(struct {
		Path  string   `json:"path"`
		Size  int      `json:"size"`
		Notes []string `json:"notes,omitempty"` // what the chart lacks
	}{visible.Name(file), len(picture), report.Notes})
}

// readTable returns the text of a CSV file in any encoding that read_file knows.
func (d Documents) readTable(ctx context.Context, ws *workspace.Workspace, file string) (string, error) {
	t, err := openText(ctx, d, ws, file, "")
	if err != nil {
		return "", err
	}
	defer t.Close()
	switch {
	case t.encoding == "":
		return "", Errorf("file: %s is %s, and not a CSV file", visible.Name(file), t.mediaType)
	case t.size > maxChartTable:
		return "", Errorf("file: %s has %d bytes; a table can have %d: make one of fewer rows or columns",
			visible.Name(file), t.size, maxChartTable)
	}
	var b strings.Builder
	for {
		line, _, err := t.next(maxChartTable)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return "", fmt.Errorf("read %q: %w", file, err)
		}
		b.WriteString(line)
	}
	if strings.TrimSpace(b.String()) == "" {
		return "", Errorf("file: %s is empty", visible.Name(file))
	}
	return b.String(), nil
}

// chart returns a chart. It also uses a confined process, because a table can be hostile.
func (d Documents) chart(ctx context.Context, in chart.Input) (chart.Report, []byte, error) {
	input, err := json.Marshal(in)
	if err != nil {
		return chart.Report{}, nil, fmt.Errorf("make chart: %w", err)
	}
	out, err := d.pool.Run(ctx, chartMaker, input)
	if fe, ok := errors.AsType[*sandbox.FilterError](err); ok {
		return chart.Report{}, nil, Errorf("the chart cannot be drawn: %s", fe.Message)
	}
	if err != nil {
		return chart.Report{}, nil, err
	}
	return chart.Split(out)
}

// labels returns a list of strings. Numbers, such as years, become strings.
func (a *arguments) labels(name string, most int) []string {
	var list []json.RawMessage
	if !a.has(name, false) || !a.read(name, &list, "a list of strings") {
		return nil
	}
	if len(list) > most {
		a.wrong("%s%s can have %d entries and has %d", a.within, name, most, len(list))
		return nil
	}
	texts := make([]string, len(list))
	for i, raw := range list {
		if kind := kindOf(raw); kind == "a number" {
			texts[i] = string(raw)
		} else if json.Unmarshal(raw, &texts[i]) != nil || kind == "null" {
			a.wrong("%s%s[%d] must be a string, not %s", a.within, name, i, kind)
		}
	}
	return texts
}

// series returns the series of a chart.
func (a *arguments) series(name string) []chart.Series {
	if !a.has(name, false) {
		return nil
	}
	list := []chart.Series{}
	for _, o := range a.objects(name, maxChartSeries) {
		s := chart.Series{Name: o.text("name", false, 200)}
		var points [][]float64
		if o.has("values", false) {
			o.read("values", &s.Values, "a list of numbers, or null for gaps,")
		}
		if o.has("points", false) {
			o.read("points", &points, "a list of [x, y]")
		}
		if n := len(s.Values) + len(points); n > maxChartValues {
			o.wrong("%svalues can have %d entries and has %d", o.within, maxChartValues, n)
			continue
		}
		for i, p := range points {
			if len(p) != 2 {
				o.wrong("%spoints[%d] must be [x, y]", o.within, i)
				break
			}
			s.Points = append(s.Points, [2]float64{p[0], p[1]})
		}
		list = append(list, s)
	}
	return list
}
