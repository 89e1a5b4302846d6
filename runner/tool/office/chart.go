package office

import (
	"strconv"
	"strings"

	"journeyman/runner/tool/office/block"
)

// The limits of a chart.
const (
	maxSeries    = 100
	maxPoints    = 2000 // of a series
	maxPointText = 1000 // bytes of a name or a value
)

// A series is a row of values in a chart.
type series struct {
	name  string
	names []string // of the values
	value []string
}

// A chartReader reads the title and the stored values of a chart.
type chartReader struct {
	kind   string // such as "bar"
	title  string
	axes   []string // titles of the axes
	series []series
	open   []string // open elements that say what a text means
	point  int      // number of the current value in its series
	inText bool
	size   int // bytes of text so far
}

// chart returns a chart as its title and a table of its values.
func (d *document) chart(name string) (string, error) {
	return d.once(name, func() (string, error) {
		v := &chartReader{}
		found, err := d.parse(name, v)
		if !found {
			return "", err
		}
		return v.table(), err
	})
}

// once returns the text of a chart or diagram. It reads a file only once, however often the document shows it.
func (d *document) once(name string, read func() (string, error)) (string, error) {
	if text, ok := d.drawings[name]; ok {
		return text, nil
	}
	text, err := read()
	if d.drawings == nil {
		d.drawings = map[string]string{}
	}
	d.drawings[name] = text
	return text, err
}

func (v *chartReader) start(name string, attr attributes) error {
	switch name {
	case "ser":
		if len(v.series) < maxSeries {
			v.series = append(v.series, series{})
		}
		v.open = append(v.open, name)
	case "title", "tx", "cat", "xVal", "val", "yVal", "bubbleSize", "valAx", "catAx", "dateAx", "serAx", "dLbls":
		v.open = append(v.open, name)
		if name == "title" && v.within("valAx", "catAx", "dateAx", "serAx") && len(v.axes) < maxSeries {
			v.axes = append(v.axes, "")
		}
	case "pt":
		v.point = maxPoints
		if n, err := strconv.Atoi(attr.get("idx")); err == nil && n >= 0 {
			v.point = n
		}
	case "v", "t":
		v.inText = true
	default:
		if kind, ok := strings.CutSuffix(name, "Chart"); ok && v.kind == "" {
			v.kind = strings.TrimSuffix(kind, "3D")
		}
	}
	return nil
}

func (v *chartReader) end(name string) error {
	switch name {
	case "v", "t":
		v.inText = false
	}
	if n := len(v.open); n > 0 && v.open[n-1] == name {
		v.open = v.open[:n-1]
	}
	return nil
}

// within reports whether one of these elements is open.
func (v *chartReader) within(names ...string) bool {
	// A chart has at most a few of them inside each other.
	for _, open := range v.open[:min(len(v.open), 10)] {
		for _, name := range names {
			if open == name {
				return true
			}
		}
	}
	return false
}

func (v *chartReader) text(text string) error {
	if !v.inText || v.size > maxText {
		return nil
	}
	v.size += len(text)
	switch n := len(v.series); {
	case v.within("dLbls"):
	case !v.within("ser"):
		v.titleText(text)
	case n == 0:
	case v.within("tx"):
		v.series[n-1].name = appendUpTo(v.series[n-1].name, text, maxPointText)
	case v.within("cat", "xVal"):
		setPoint(&v.series[n-1].names, v.point, text)
	case v.within("val", "yVal"):
		setPoint(&v.series[n-1].value, v.point, text)
	}
	return nil
}

// titleText adds text to the title of the chart or of an axis.
func (v *chartReader) titleText(text string) {
	switch n := len(v.axes); {
	case !v.within("title"):
	case v.within("valAx", "catAx", "dateAx", "serAx"):
		v.axes[n-1] = appendUpTo(v.axes[n-1], text, maxPointText)
	default:
		v.title = appendUpTo(v.title, text, maxPointText)
	}
}

// setPoint sets a value of a series. Categories can have several texts, the innermost first.
func setPoint(values *[]string, at int, text string) {
	if at >= maxPoints {
		return
	}
	for len(*values) <= at {
		*values = append(*values, "")
	}
	if old := (*values)[at]; old != "" {
		text += " " + old
	}
	(*values)[at] = appendUpTo("", text, maxPointText)
}

// table returns the chart as a title and a table: a column for each series.
func (v *chartReader) table() string {
	title := "[chart"
	if v.kind != "" {
		title += ", " + v.kind
	}
	if v.title != "" {
		title += ": " + v.title
	}
	lines := []string{title + "]"}
	for _, axis := range v.axes {
		lines = append(lines, "[axis: "+axis+"]")
	}
	head, rows := []string{""}, 0
	var names []string
	for _, s := range v.series {
		head = append(head, s.name)
		rows = max(rows, len(s.value), len(s.names))
		if len(s.names) > len(names) {
			names = s.names
		}
	}
	if rows == 0 {
		return strings.Join(append(lines, "[the file has no values of this chart]"), "\n")
	}
	lines = append(lines, block.Line(head))
	for i := range rows {
		row := []string{pointAt(names, i)}
		for _, s := range v.series {
			row = append(row, pointAt(s.value, i))
		}
		lines = append(lines, block.Line(row))
	}
	return strings.Join(lines, "\n")
}

// pointAt returns a value, "" if the series is shorter.
func pointAt(values []string, at int) string {
	if at < len(values) {
		return values[at]
	}
	return ""
}
