package workbook

import (
	"encoding/xml"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"journeyman/runner/tool/office/archive"
)

// readRelated reads the comments, tables, charts and pictures of a sheet.
func (b *xlsxBook) readRelated(s *sheetText, related map[string]archive.Relation) error {
	all := sorted(related)
	threads := slices.ContainsFunc(all, func(r archive.Relation) bool { return r.Kind == "threadedComment" })
	for _, rel := range all {
		var v archive.Visitor
		switch rel.Kind {
		case "comments":
			v = &commentReader{sheet: s, threads: threads}
		case "threadedComment":
			v = &commentReader{sheet: s, persons: b.persons, threads: true}
		case "table", "pivotTable":
			v = &tableReader{sheet: s}
		case "drawing":
			if err := b.readDrawing(s, rel.Target); err != nil {
				return err
			}
		}
		if v == nil {
			continue
		}
		if _, err := b.r.Parse(rel.Target, v); err != nil {
			return err
		}
	}
	return nil
}

// A commentReader reads the comments of cells: notes, or threads of comments.
type commentReader struct {
	sheet   *sheetText
	persons map[string]string // authors of threads by their ids
	threads bool              // there are threads, whose copies as notes are left out

	authors []string
	ref     string
	author  string
	text    strings.Builder
	in      bool // inside a text or the name of an author

	threaded bool // the present comment is one of a thread
}

// Start reads the attributes of a comment.
func (v *commentReader) Start(name xml.Name, attr archive.Attributes) error {
	switch name.Local {
	case "author":
		v.in = true
		v.text.Reset()
	case "comment":
		v.ref = attr.Get("ref")
		v.author = ""
		if i, err := strconv.Atoi(attr.Get("authorId")); err == nil && i >= 0 && i < len(v.authors) {
			v.author = v.authors[i]
		}
		v.text.Reset()
	case "threadedComment":
		v.ref, v.author, v.threaded = attr.Get("ref"), v.persons[attr.Get("personId")], true
		v.text.Reset()
	case "t":
		v.in = true
	case "text":
		v.in = v.threaded // without an element t inside
	}
	return nil
}

// Text adds to the comment.
func (v *commentReader) Text(text string) error {
	if v.in {
		v.text.WriteString(text)
	}
	return nil
}

// End ends a comment.
func (v *commentReader) End(name xml.Name) error {
	switch name.Local {
	case "author":
		v.in = false
		v.authors = append(v.authors, v.text.String())
	case "t", "text":
		v.in = false
	case "comment":
		// A copy is for programs that do not know threads.
		if !v.threads || !strings.HasPrefix(v.author, "tc=") {
			v.add()
		}
	case "threadedComment":
		v.add()
	}
	return nil
}

func (v *commentReader) add() {
	at, ok := parseCell(v.ref)
	text := strings.TrimSpace(v.text.String())
	if !ok || text == "" {
		return
	}
	// Excel begins a note with the name of its author.
	text = strings.TrimSpace(strings.TrimPrefix(text, v.author+":"))
	by := ""
	if strings.TrimSpace(v.author) != "" {
		by = " by " + v.author
	}
	v.sheet.note("comment", area{at, at}, fmt.Sprintf("on %s%s: %s", at, by, text))
}

// A tableReader reads the name and cells of a table.
type tableReader struct {
	archive.IgnoreText
	sheet *sheetText
	name  string
}

// Start reads a table.
func (v *tableReader) Start(name xml.Name, attr archive.Attributes) error {
	switch name.Local {
	case "table":
		v.add("table", attr.Get("displayName"), attr.Get("ref"))
	case "pivotTableDefinition":
		v.name = attr.Get("name")
	case "location":
		v.add("pivot table", v.name, attr.Get("ref"))
	}
	return nil
}

func (v *tableReader) add(kind, name, ref string) {
	if a, ok := parseArea(ref); ok {
		v.sheet.note(kind, a, fmt.Sprintf("%q in %s", name, a))
	}
}

// readDrawing reads the pictures, charts and text boxes of a sheet.
func (b *xlsxBook) readDrawing(s *sheetText, target string) error {
	related, err := b.r.Relations(target)
	if err != nil {
		return err
	}
	v := &drawingReader{sheet: s, related: related}
	if _, err := b.r.Parse(target, v); err != nil {
		return err
	}
	for _, c := range v.charts {
		chart := &chartReader{}
		if _, err := b.r.Parse(c.file, chart); err != nil {
			return err
		}
		s.note("chart", area{c.at, c.at}, chart.String(c.name, c.at))
	}
	return nil
}

// A chartRef is a chart in a drawing.
type chartRef struct {
	name, file string
	at         cellAt
}

// A drawingReader reads a drawing of a sheet.
type drawingReader struct {
	sheet   *sheetText
	related map[string]archive.Relation
	charts  []chartRef

	from       bool   // inside the position of the upper left corner
	into       string // element whose text counts
	at         cellAt
	name, alt  string
	text       strings.Builder // of a text box
	hasPicture bool
}

// Start reads the attributes of an element of the drawing.
func (v *drawingReader) Start(name xml.Name, attr archive.Attributes) error {
	switch name.Local {
	case "twoCellAnchor", "oneCellAnchor", "absoluteAnchor":
		v.at, v.name, v.alt, v.hasPicture = cellAt{1, 1}, "", "", false
		v.text.Reset()
	case "from":
		v.from = true
	case "cNvPr":
		v.name, v.alt = attr.Get("name"), attr.Get("descr")
	case "blip":
		v.hasPicture = true
	case "chart":
		file := v.related[attr.Get("r:id")].Target
		if file != "" && len(v.charts) < maxNotes {
			v.charts = append(v.charts, chartRef{v.name, file, v.at})
		}
	}
	v.into = name.Local
	return nil
}

// Text reads a position or the text of a box.
func (v *drawingReader) Text(text string) error {
	n, err := strconv.Atoi(strings.TrimSpace(text))
	switch {
	case v.into == "t":
		v.text.WriteString(text)
	case v.from && v.into == "col" && err == nil && n >= 0 && n < maxColumns:
		v.at.column = n + 1
	case v.from && v.into == "row" && err == nil && n >= 0 && n < maxRows:
		v.at.row = n + 1
	}
	return nil
}

// End ends an element of the drawing.
func (v *drawingReader) End(name xml.Name) error {
	v.into = ""
	switch name.Local {
	case "from":
		v.from = false
	case "p":
		v.text.WriteByte('\n')
	case "pic":
		about := ""
		if v.alt != "" {
			about = ": " + v.alt
		}
		v.sheet.note("picture", area{v.at, v.at}, fmt.Sprintf("%q at %s%s", v.name, v.at, about))
	case "sp":
		if text := strings.TrimSpace(v.text.String()); text != "" {
			v.sheet.note("text box", area{v.at, v.at}, fmt.Sprintf("at %s: %s", v.at, text))
		}
		v.text.Reset()
	}
	return nil
}

// A chartReader reads the kind, the title and the series of a chart.
type chartReader struct {
	path   []string // names of the open elements
	kinds  []string
	title  strings.Builder
	axes   []string
	series []chartSeries
	text   strings.Builder // of the present element
}

type chartSeries struct{ name, nameAt, labels, values string }

// Start notices the kind of a chart and its series.
func (v *chartReader) Start(name xml.Name, attr archive.Attributes) error {
	kind, isChart := strings.CutSuffix(name.Local, "Chart")
	switch {
	case isChart && v.inside("plotArea"):
		v.kinds = append(v.kinds, kind)
	case name.Local == "barDir" && attr.Get("val") == "col" && len(v.kinds) > 0:
		v.kinds[len(v.kinds)-1] = "column"
	case name.Local == "ser" && len(v.series) < maxNotes:
		v.series = append(v.series, chartSeries{})
	}
	v.path = append(v.path, name.Local)
	v.text.Reset()
	return nil
}

func (v *chartReader) inside(name string) bool { return slices.Contains(v.path, name) }

// Text adds to the text of the present element.
func (v *chartReader) Text(text string) error {
	v.text.WriteString(text)
	return nil
}

// End reads a title, or the cells or the name of a series.
func (v *chartReader) End(name xml.Name) error {
	text := v.text.String()
	v.text.Reset()
	v.path = v.path[:len(v.path)-1]
	isText := name.Local == "t" || name.Local == "v" || name.Local == "f"
	switch {
	case !isText || v.inside("legend"):
	case v.inside("ser"):
		if len(v.series) > 0 {
			v.series[len(v.series)-1].add(v, name.Local, text)
		}
	case !v.inside("title") || name.Local == "f":
	case v.inside("plotArea"):
		if len(v.axes) < maxNotes {
			v.axes = append(v.axes, text)
		}
	default:
		v.title.WriteString(text)
	}
	return nil
}

// add reads the cells or the name of the series.
func (s *chartSeries) add(v *chartReader, element, text string) {
	switch {
	case v.inside("tx") && element == "f":
		s.nameAt = text
	case v.inside("tx"):
		s.name += text
	case element != "f":
	case v.inside("cat") || v.inside("xVal"):
		s.labels = text
	case v.inside("val") || v.inside("yVal"):
		s.values = text
	}
}

// String returns the note about the chart.
func (v *chartReader) String(name string, at cellAt) string {
	if title := strings.TrimSpace(v.title.String()); title != "" {
		name = title
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%q at %s", name, at)
	if len(v.kinds) > 0 {
		b.WriteString(", " + strings.Join(slices.Compact(v.kinds), " and "))
	}
	for i, s := range v.series {
		if s.name == "" {
			s.name = s.nameAt
		}
		b.WriteString(map[bool]string{true: ": ", false: ", "}[i == 0])
		fmt.Fprintf(&b, "series %q of %s", s.name, s.values)
		if s.labels != "" {
			b.WriteString(" by " + s.labels)
		}
	}
	if len(v.axes) > 0 {
		b.WriteString(", axes " + strings.Join(v.axes, ", "))
	}
	return b.String()
}
