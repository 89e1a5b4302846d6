package workbook

import (
	"encoding/xml"
	"fmt"
	"strings"

	"journeyman/runner/tool/office/archive"
)

// odsPrefixes mark functions that are not in the specification. People do not see them.
var odsPrefixes = strings.NewReplacer("COM.MICROSOFT.", "", "ORG.OPENOFFICE.", "", "ORG.LIBREOFFICE.", "")

// odsFormula returns a formula of OpenDocument, such as of:=SUM([.B2:.B9];1), as Excel writes it.
func odsFormula(formula string) string {
	prefix, text, found := strings.Cut(formula, "=")
	if !found || strings.ContainsAny(prefix, "\"[(") {
		return formula
	}
	var b strings.Builder
	b.WriteByte('=')
	inArray := false
	for i := 0; i < len(text); {
		switch c := text[i]; {
		case c == '"':
			end := quotedEnd(text[i:], '"')
			if end < 0 {
				end = len(text) - i
			}
			b.WriteString(text[i : i+end])
			i += end
			continue
		case c == '[':
			inner, _, closed := strings.Cut(text[i+1:], "]")
			if closed {
				b.WriteString(odsReference(inner))
				i += len(inner) + 2
				continue
			}
			b.WriteByte(c)
		case c == ';' || c == '~':
			b.WriteByte(',')
		case c == '|' && inArray:
			b.WriteByte(';')
		default:
			inArray = c == '{' || inArray && c != '}'
			b.WriteByte(c)
		}
		i++
	}
	return plainFormula(odsPrefixes.Replace(b.String()))
}

// odsReference returns a reference of OpenDocument, such as $Sheet2.A1:.B3, as Excel writes it.
func odsReference(text string) string {
	left, right, isRange := strings.Cut(text, ":")
	// A quoted name of a sheet may have a colon.
	if strings.Count(left, "'")%2 == 1 {
		return text
	}
	sheet, cell := odsCorner(left)
	out := cell
	if isRange {
		second, last := odsCorner(right)
		out += ":" + last
		if second != "" && second != sheet {
			sheet += ":" + second
		}
	}
	if sheet == "" {
		return out
	}
	return sheet + "!" + out
}

// odsCorner splits a reference to a cell at the last point.
func odsCorner(text string) (sheet, cell string) {
	i := strings.LastIndexByte(text, '.')
	if i < 0 {
		return "", text
	}
	return strings.TrimPrefix(text[:i], "$"), text[i+1:]
}

// odsList returns the choices of a condition such as of:cell-content-is-in-list("a";"b"), "" for other conditions.
func odsList(condition string) string {
	_, list, found := strings.Cut(condition, "cell-content-is-in-list(")
	if !found {
		return ""
	}
	return strings.ReplaceAll(strings.ReplaceAll(strings.TrimSuffix(list, ")"), `"`, ""), ";", ",")
}

// An odsChart reads the kind, the title and the series of a chart.
type odsChart struct {
	kind, title string
	series      []string
	depth       int // inside the title
}

// Start reads the attributes of a part of the chart.
func (v *odsChart) Start(name xml.Name, attr archive.Attributes) error {
	a := odsAttributes(attr)
	switch odsName(name) {
	case "chart:chart":
		v.kind = strings.TrimPrefix(a.get("chart:class"), "chart:")
	case "chart:title":
		v.depth = 1
	case "chart:axis":
		v.depth = -1 // its title is not that of the chart
	case "chart:series":
		if len(v.series) < maxNotes {
			v.series = append(v.series, odsReference(a.get("chart:values-cell-range-address")))
		}
	}
	return nil
}

// Text adds to the title.
func (v *odsChart) Text(text string) error {
	if v.depth == 1 && len(v.title) < maxNote {
		v.title += text
	}
	return nil
}

// End ends the title.
func (v *odsChart) End(name xml.Name) error {
	if odsName(name) == "chart:title" {
		v.depth = 0
	}
	return nil
}

// describe returns the note about the chart.
func (v *odsChart) describe(name, place string) string {
	if title := strings.TrimSpace(v.title); title != "" {
		name = title
	}
	return fmt.Sprintf("%q%s, %s of %s", name, place, v.kind, short(v.series, ", ", maxOverview))
}
