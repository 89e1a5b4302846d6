package workbook

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"journeyman/runner/tool/office/archive"
)

// Limits of charts.
const (
	maxCharts      = 50   // of a sheet
	maxChartSeries = 100  // of a chart
	maxChartPoints = 4000 // values of a series that are stored with the chart
	chartRows      = 16   // height
	chartColumns   = 8    // width
)

// A chart shows cells.
type chart struct {
	Kind   string `json:"kind"`   // one of chartKinds
	Title  string `json:"title"`  // "" for none
	Labels string `json:"labels"` // cells with the labels of the values, or for a scatter chart the x values
	Values ranges `json:"values"` // cells with the values; each column is a series
	At     string `json:"at"`     // upper left cell; beside the cells of the sheet if it is ""

	labels chartCells // "" in its text if there are none
	values []chartCells
	at     cellAt
}

// ranges are the ranges of a chart: a JSON text, or a list of texts.
type ranges []string

// UnmarshalJSON decodes a text or a list of texts.
func (r *ranges) UnmarshalJSON(b []byte) error {
	var one string
	if json.Unmarshal(b, &one) == nil {
		*r = ranges{one}
		return nil
	}
	var all []string
	err := json.Unmarshal(b, &all)
	*r = all
	return err
}

// chartCells are cells of a sheet, one row or column.
type chartCells struct {
	sheet *sheet
	cells area
}

// String returns the cells as a chart refers to them.
func (c chartCells) String() string {
	a := c.cells
	first := fmt.Sprintf("$%s$%d", columnName(a.first.column), a.first.row)
	if a.first == a.last {
		return quoteSheet(c.sheet.name) + "!" + first
	}
	return fmt.Sprintf("%s!%s:$%s$%d", quoteSheet(c.sheet.name), first, columnName(a.last.column), a.last.row)
}

// chartKinds are the elements of the kinds of charts.
var chartKinds = []string{"column", "bar", "line", "pie", "area", "scatter"}

// checkCharts finds the cells of all charts. It returns an error for a chart that cannot be drawn.
func checkCharts(sheets []*sheet) error {
	for _, s := range sheets {
		if len(s.charts) > maxCharts {
			return fmt.Errorf("sheet %q has more than %d charts", s.name, maxCharts)
		}
		for i := range s.charts {
			if err := s.charts[i].check(sheets, s, i); err != nil {
				return fmt.Errorf("chart %d of sheet %q: %w", i+1, s.name, err)
			}
		}
	}
	return nil
}

func (x *chart) check(sheets []*sheet, own *sheet, number int) (err error) {
	if !slices.Contains(chartKinds, x.Kind) {
		return fmt.Errorf("kind must be one of %s", strings.Join(chartKinds, ", "))
	}
	if len(x.Values) == 0 {
		return errors.New(`values must name the cells, such as "B2:B9"`)
	}
	if x.Labels != "" {
		if x.labels, err = findCells(x.Labels, sheets, own); err != nil {
			return fmt.Errorf("labels: %w", err)
		}
	}
	for _, text := range x.Values {
		c, err := findCells(text, sheets, own)
		if err != nil {
			return fmt.Errorf("values: %w", err)
		}
		// Each column is a series, unless the range is a single row.
		single := c.cells.first.row == c.cells.last.row && c.cells.last.column > c.cells.first.column
		for column := c.cells.first.column; column <= c.cells.last.column && !single; column++ {
			part := area{cellAt{column, c.cells.first.row}, cellAt{column, c.cells.last.row}}
			x.values = append(x.values, chartCells{c.sheet, part})
		}
		if single {
			x.values = append(x.values, c)
		}
		if len(x.values) > maxChartSeries {
			return fmt.Errorf("it has more than %d series", maxChartSeries)
		}
	}
	x.at = cellAt{min(own.width+2, maxColumns-chartColumns), 2 + number*(chartRows+1)}
	if x.At != "" {
		at, ok := parseCell(x.At)
		if !ok || at.column > maxColumns-chartColumns || at.row > maxRows-chartRows {
			return fmt.Errorf("at must be a cell, such as E2")
		}
		x.at = at
	}
	return nil
}

// findCells parses a range of cells with contents, with or without a sheet.
func findCells(text string, sheets []*sheet, own *sheet) (chartCells, error) {
	name, cells := "", strings.TrimPrefix(strings.TrimSpace(text), "=")
	if i := strings.LastIndexByte(cells, '!'); i >= 0 {
		name, cells = unquoteSheet(cells[:i]), cells[i+1:]
	}
	c := chartCells{sheet: own}
	if name != "" {
		i := slices.IndexFunc(sheets, func(s *sheet) bool { return strings.EqualFold(s.name, name) })
		if i < 0 {
			return c, fmt.Errorf("there is no sheet %q", name)
		}
		c.sheet = sheets[i]
	}
	a, ok := parseArea(cells)
	if !ok {
		return c, fmt.Errorf(`%q is no range, such as "B2:B9"`, text)
	}
	if a.last.row == maxRows { // whole columns: without the header
		a.first.row, a.last.row = min(2, len(c.sheet.rows)), len(c.sheet.rows)
	}
	if a.last.column > max(c.sheet.width, 1) || a.last.row > max(len(c.sheet.rows), 1) || a.first.row < 1 {
		return c, fmt.Errorf("%q is beyond the %d rows and %d columns of sheet %q", text, len(c.sheet.rows), c.sheet.width,
			c.sheet.name)
	}
	c.cells = a
	return c, nil
}

// points returns the values of the cells, as they look or as plain numbers.
func (c chartCells) points(shown bool) (all []string) {
	for row := c.cells.first.row; row <= c.cells.last.row; row++ {
		for column := c.cells.first.column; column <= c.cells.last.column && len(all) < maxChartPoints; column++ {
			all = append(all, c.sheet.point(cellAt{column, row}, shown))
		}
	}
	return all
}

func (s *sheet) point(at cellAt, shown bool) string {
	v := s.at(at)
	if f, ok := v.(*formulaCell); ok {
		v = f.value
	}
	n, isNumber := v.(float64)
	switch {
	case isNumber && shown:
		return s.rows[at.row-1][at.column-1].shown()
	case isNumber:
		return strconv.FormatFloat(n, 'g', -1, 64)
	case shown:
		return toText(v)
	}
	return ""
}

// name returns the cell above the values, or before them, if it is a text.
func (c chartCells) name() (at chartCells, ok bool) {
	first := c.cells.first
	if c.cells.last.column > first.column {
		first.column--
	} else {
		first.row--
	}
	if first.row < 1 || first.column < 1 {
		return at, false
	}
	_, ok = c.sheet.at(first).(string)
	return chartCells{c.sheet, area{first, first}}, ok
}

// addCharts adds the files of a sheet's charts.
func (b *builder) addCharts(number int, s *sheet) {
	const drawingType = "application/vnd.openxmlformats-officedocument.drawing"
	var anchors, rels strings.Builder
	for i := range s.charts {
		x := &s.charts[i]
		b.charts++
		file := fmt.Sprintf("chart%d.xml", b.charts)
		b.add("xl/charts/"+file, drawingType+"ml.chart+xml", x.xml())
		rels.WriteString(relationTo(fmt.Sprintf("c%d", i+1), "chart", "../charts/"+file))
		fmt.Fprintf(&anchors, `<xdr:twoCellAnchor><xdr:from>`+
			`<xdr:col>%d</xdr:col><xdr:colOff>0</xdr:colOff><xdr:row>%d</xdr:row>`+
			`<xdr:rowOff>0</xdr:rowOff></xdr:from><xdr:to><xdr:col>%d</xdr:col><xdr:colOff>0</xdr:colOff><xdr:row>%d</xdr:row>`+
			`<xdr:rowOff>0</xdr:rowOff></xdr:to><xdr:graphicFrame macro="">`+
			`<xdr:nvGraphicFramePr><xdr:cNvPr id="%d" name="Chart %d"/>`+
			`<xdr:cNvGraphicFramePr/></xdr:nvGraphicFramePr><xdr:xfrm><a:off x="0" y="0"/><a:ext cx="0" cy="0"/></xdr:xfrm>`+
			`<a:graphic><a:graphicData uri="http://schemas.openxmlformats.org/drawingml/2006/chart">`+
			`<c:chart xmlns:c="http://schemas.openxmlformats.org/drawingml/2006/chart" r:id="c%d"/></a:graphicData></a:graphic>`+
			`</xdr:graphicFrame><xdr:clientData/></xdr:twoCellAnchor>`, x.at.column-1, x.at.row-1, x.at.column-1+chartColumns,
			x.at.row-1+chartRows, i+2, i+1, i+1)
	}
	b.add(fmt.Sprintf("xl/worksheets/_rels/sheet%d.xml.rels", number), "", relationsHead+
		relationTo("drawing", "drawing", fmt.Sprintf("../drawings/drawing%d.xml", number))+`</Relationships>`)
	b.add(fmt.Sprintf("xl/drawings/_rels/drawing%d.xml.rels", number), "", relationsHead+rels.String()+`</Relationships>`)
	b.add(fmt.Sprintf("xl/drawings/drawing%d.xml", number), drawingType+"+xml", archive.Head+
		`<xdr:wsDr xmlns:xdr="http://schemas.openxmlformats.org/drawingml/2006/spreadsheetDrawing" `+
		`xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main" `+relationSpace+`>`+anchors.String()+`</xdr:wsDr>`)
}

// xml returns the file of the chart.
func (x *chart) xml() string {
	title := `<c:autoTitleDeleted val="1"/>`
	if x.Title != "" {
		title = `<c:title><c:tx><c:rich><a:bodyPr/><a:p><a:r><a:t>` + archive.Escape(x.Title) +
			`</a:t></a:r></a:p></c:rich></c:tx><c:overlay val="0"/></c:title><c:autoTitleDeleted val="0"/>`
	}
	legend := ""
	if len(x.values) > 1 || x.Kind == "pie" {
		legend = `<c:legend><c:legendPos val="r"/><c:overlay val="0"/></c:legend>`
	}
	return archive.Head + `<c:chartSpace xmlns:c="http://schemas.openxmlformats.org/drawingml/2006/chart" ` +
		`xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main" ` + relationSpace + `><c:chart>` + title +
		`<c:plotArea><c:layout/>` + x.plot() + `</c:plotArea>` + legend + `<c:plotVisOnly val="1"/></c:chart></c:chartSpace>`
}

// plot returns the series and axes of the chart. The schema fixes the order of its elements.
func (x *chart) plot() string {
	series := ""
	for i := range x.values {
		series += x.seriesXML(i)
	}
	const oneColor = `<c:varyColors val="0"/>`
	const ids = `<c:axId val="1"/><c:axId val="2"/>`
	labels, values := "catAx", "valAx"
	bottom, left := "b", "l"
	body := ""
	switch x.Kind {
	case "pie":
		return `<c:pieChart><c:varyColors val="1"/>` + series + `</c:pieChart>`
	case "line":
		body = `<c:lineChart><c:grouping val="standard"/>` + oneColor + series +
			`<c:marker val="1"/>` + ids + `</c:lineChart>`
	case "area":
		body = `<c:areaChart><c:grouping val="standard"/>` + oneColor + series + ids + `</c:areaChart>`
	case "scatter":
		labels = "valAx"
		body = `<c:scatterChart><c:scatterStyle val="lineMarker"/>` + oneColor + series + ids + `</c:scatterChart>`
	default:
		direction := "col"
		if x.Kind == "bar" {
			direction, bottom, left = "bar", "l", "b"
		}
		body = `<c:barChart><c:barDir val="` + direction + `"/><c:grouping val="clustered"/>` + oneColor + series +
			`<c:gapWidth val="100"/>` + ids + `</c:barChart>`
	}
	return body + axis(labels, 1, 2, bottom) + axis(values, 2, 1, left)
}

func axis(element string, id, crosses int, position string) string {
	lines := ""
	if id == 2 {
		lines = "<c:majorGridlines/>"
	}
	return fmt.Sprintf(`<c:%s><c:axId val="%d"/><c:scaling><c:orientation val="minMax"/></c:scaling><c:delete val="0"/>`+
		`<c:axPos val="%s"/>%s<c:numFmt formatCode="General" sourceLinked="1"/><c:tickLblPos val="nextTo"/>`+
		`<c:crossAx val="%d"/></c:%s>`,
		element, id, position, lines, crosses, element)
}

// seriesXML returns a series of the chart.
func (x *chart) seriesXML(i int) string {
	values := x.values[i]
	out := fmt.Sprintf(`<c:ser><c:idx val="%d"/><c:order val="%d"/>`, i, i)
	if at, ok := values.name(); ok {
		out += `<c:tx>` + textsXML(at) + `</c:tx>`
	}
	labels, numbers := "cat", "val"
	if x.Kind == "scatter" {
		labels, numbers = "xVal", "yVal"
	}
	if x.Kind == "line" {
		out += `<c:marker><c:symbol val="circle"/></c:marker>`
	}
	if x.labels.sheet != nil {
		inner := textsXML(x.labels)
		if x.Kind == "scatter" {
			inner = numbersXML(x.labels)
		}
		out += `<c:` + labels + `>` + inner + `</c:` + labels + `>`
	}
	out += `<c:` + numbers + `>` + numbersXML(values) + `</c:` + numbers + `>`
	if x.Kind == "line" || x.Kind == "scatter" {
		out += `<c:smooth val="0"/>`
	}
	return out + `</c:ser>`
}

// textsXML returns a reference to texts, with a copy for programs that do not look at the cells.
func textsXML(c chartCells) string { return cacheXML(c, "str", "") }

// numbersXML returns a reference to numbers, with a copy for programs that do not look at the cells.
func numbersXML(c chartCells) string {
	return cacheXML(c, "num", `<c:formatCode>General</c:formatCode>`)
}

func cacheXML(c chartCells, kind, head string) string {
	var b strings.Builder
	points := c.points(kind == "str")
	cells := archive.Escape(c.String())
	fmt.Fprintf(&b, `<c:%sRef><c:f>%s</c:f><c:%sCache>%s<c:ptCount val="%d"/>`, kind, cells, kind, head, len(points))
	for i, text := range points {
		if text != "" {
			fmt.Fprintf(&b, `<c:pt idx="%d"><c:v>%s</c:v></c:pt>`, i, archive.Escape(text))
		}
	}
	fmt.Fprintf(&b, `</c:%sCache></c:%sRef>`, kind, kind)
	return b.String()
}
