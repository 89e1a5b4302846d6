//go:build !race

// The race detector makes every parser slower by another factor.

package workbook

import (
	"strings"
	"testing"

	"journeyman/store/growthtest"
)

// parsers returns the readers and writers of workbooks. A workbook is packed, so the sizes are those of the XML in
// it. The confined process ends them after seconds, so they get shorter inputs here.
func parsers(t *testing.T) []growthtest.Parser {
	const most = 512 << 10
	return []growthtest.Parser{
		{
			Name: "xlsx", Fuzz: []string{"FuzzXlsx", "FuzzSheet"}, Most: most,
			Read: func(in []byte) { _, _ = readAll(in, never) }, Shapes: xlsxShapes(t)},
		{
			Name: "ods", Fuzz: []string{"FuzzOds"}, Most: most,
			Read: func(in []byte) { _, _ = Ods(in, Selection{}, never) }, Shapes: odsShapes(t)},
		{
			Name: "number formats", Fuzz: []string{"FuzzNumberFormat"}, Most: most,
			Read: func(in []byte) {
				f := parseFormat(string(in), neutral)
				_ = f.number(1e300, false) + f.number(-0.5, false) + f.textShown("a")
			}, Shapes: map[string]growthtest.Shape{
				"sections": growthtest.Times("", "0;", ""), "places": growthtest.Times("", "#", ""),
				"quotes": growthtest.Times("", `"`, ""), "brackets": growthtest.Times("", "[h]", ""),
				"texts": growthtest.Times("", "@", ""), "months": growthtest.Times("", "mmm ", "")}},
		{
			Name: "formulas", Fuzz: []string{"FuzzFormula"}, Most: most,
			Read: func(in []byte) { _ = shifted(string(in), 1, 1) }, Shapes: map[string]growthtest.Shape{
				"parentheses": growthtest.Nested("", "(", "A1", ")"), "sums": growthtest.Times("", "A1+", "A1"),
				"names": growthtest.Times("", "a", "!A1"), "brackets": growthtest.Times("", "[", ""),
				"quotes": growthtest.Times("", "'", ""), "ranges": growthtest.Times("", "A:", "A"),
				"hashes": growthtest.Times("A1", "#", ""), "open tables": growthtest.Times("", "a[", "")}},
		{
			Name: "write xlsx", Fuzz: []string{"FuzzWrite"}, Most: most, Confined: true,
			Read: func(in []byte) { _, _ = write(string(in)) }, Shapes: map[string]growthtest.Shape{
				"lines":    growthtest.Numbered("a,b\n", "%d,2024-01-01\n", ""),
				"commas":   growthtest.Times("", ",", "\n"),
				"quotes":   growthtest.Times("a,", `"`, ""),
				"rows":     growthtest.Numbered("[[0]", ",[%d]", "]"),
				"sheets":   growthtest.Numbered(`{"a":[]`, `,"%d":[]`, "}"),
				"columns":  growthtest.Numbered("[[0", ",%d", "]]"),
				"nested":   growthtest.Nested("", "[", "1", "]"),
				"formulas": growthtest.Times(`[[1]`, `,[{"formula":"SUM(A1)+B1*2"}]`, "]"),
				"chain":    growthtest.Numbered(`[[1]`, `,[{"formula":"A%d+1"}]`, "]"),
				"lookups":  growthtest.Numbered(`[[1]`, `,[%d,{"formula":"VLOOKUP(-1,A:A,1,FALSE)"}]`, "]"),
				"sums":     growthtest.Times(`[[1]`, `,[1,{"formula":"SUM(A:A)"}]`, "]"),
				"arrays":   growthtest.Times(`[[1]`, `,[1,{"formula":"SUM(A1:A9000*A1:J1)"}]`, "]"),
				"formats":  growthtest.Numbered(`[[1]`, `,[{"value":1,"format":"0\"%d\""}]`, "]"),
				"charts":   growthtest.Times(`{"A":{"rows":[[1]`, `,[1]`, `],"chart":{"kind":"line","values":["A:A","A:A","A:A"]}}}`)}},
		{
			Name: "evaluate", Fuzz: []string{"FuzzEvaluate"}, Most: 7000, // a formula of more than its limit ends at once
			Read: func(in []byte) { _, _, _ = Write([]byte(formulaBook(t, string(in))), now, never) }, Shapes: map[string]growthtest.Shape{
				"parentheses": growthtest.Nested("", "(", "A1", ")"), "signs": growthtest.Times("", "-", "1"),
				"texts": growthtest.Times(`""`, `&REPT("a",32000)`, ""), "percent": growthtest.Times("1", "%", ""),
				"arrays": growthtest.Times("SUM(A1:A99", "*A1:Z99", ")"), "powers": growthtest.Times("2", "^2", ""),
				"replacements": growthtest.Nested("", "SUBSTITUTE(", `REPT("a",32767)`, `,"a","aa")`), "one cell": growthtest.Times("A1", "+A1", ""),
				"wildcards": growthtest.Times(`SEARCH("a`, "*a", `b",REPT("a",32000))`)}},
	}
}

// xlsxShapes returns the shapes of workbooks.
func xlsxShapes(t *testing.T) map[string]growthtest.Shape {
	rows := func(shape growthtest.Shape) growthtest.Shape {
		return func(n int) string { return string(book(t, "<si><t>a</t></si>", "", shape(n))) }
	}
	// blank texts cost most, because they never fill the result.
	shared := func(text string) growthtest.Shape {
		return func(n int) string {
			cells := growthtest.Times("<row>", `<c t="s"><v>0</v></c>`, "</row>")
			return string(book(t, "<si><t>"+strings.Repeat(text, n/2/len(text))+"</t></si>", "", cells(n/2)))
		}
	}
	return map[string]growthtest.Shape{
		"rows":             rows(growthtest.Numbered("", `<row r="%d"><c><v>1</v></c></row>`, "")),
		"cells":            rows(growthtest.Times("<row>", "<c><v>1</v></c>", "</row>")),
		"cells far apart":  rows(growthtest.Times("", `<row><c r="A1"><v>1</v></c><c r="XFD1"><v>1</v></c></row>`, "")),
		"long value":       rows(growthtest.Times("<row><c><v>", "1", "</v></c></row>")),
		"values of a cell": rows(growthtest.Times("<row><c>", "<v>1</v>", "</c></row>")),
		"cells in cells":   rows(growthtest.Times("<row><c><v>", strings.Repeat("1", 1000)+"<c></c>", "</v></c></row>")),
		"formulas":         rows(growthtest.Times("<row>", "<c><f>A1</f></c>", "</row>")),
		"shared formulas": rows(growthtest.Times(`<row><c><f t="shared" si="0" ref="A1:B2">`+strings.Repeat("A1+", 2000)+
			`A1</f><v>1</v></c>`, `<c><f t="shared" si="0"/><v>1</v></c>`, "</row>")),
		"merged cells": rows(growthtest.Times("</sheetData>", `<mergeCell ref="A1:XFD1048576"/>`, "<sheetData>")),
		"hidden":       rows(growthtest.Times("</sheetData>", `<col min="1" max="16384" hidden="1"/>`, "<sheetData>")),
		"links":        rows(growthtest.Times("</sheetData>", `<hyperlink ref="A1" location="a"/>`, "<sheetData>")),
		"blank text":   shared(" "), "line ends": shared("&#13;"), "bars": shared("|"),
		"shared texts": func(n int) string {
			return string(book(t, growthtest.Times("", "<si><t>a</t></si>", "")(n), "", `<row><c t="s"><v>0</v></c></row>`))
		},
		"formats": func(n int) string {
			format := growthtest.Numbered("<numFmts>", `<numFmt numFmtId="%d" formatCode="0"/>`, "</numFmts>")
			return string(book(t, "", format(n/2)+growthtest.Times("<cellXfs>", `<xf numFmtId="1"/>`, "</cellXfs>")(n/2), ""))
		},
		"sheets": func(n int) string {
			sheets := make([]string, min(n/200, 2000))
			for i := range sheets {
				sheets[i] = "<row><c><v>1</v></c></row>"
			}
			return string(book(t, "", "", sheets...))
		}}
}

// odsShapes returns the shapes of OpenDocument workbooks.
func odsShapes(t *testing.T) map[string]growthtest.Shape {
	shapes := map[string]growthtest.Shape{
		"rows":           growthtest.Times("", `<table:table-row><table:table-cell><text:p>a</text:p></table:table-cell></table:table-row>`, ""),
		"cells":          growthtest.Times("<table:table-row>", `<table:table-cell><text:p>a</text:p></table:table-cell>`, "</table:table-row>"),
		"paragraphs":     growthtest.Times("<table:table-row><table:table-cell>", "<text:p>a</text:p>", "</table:table-cell></table:table-row>"),
		"choices":        growthtest.Times("", `<table:table-row><table:table-cell table:content-validation-name="v"/><table:table-cell/></table:table-row>`, ""),
		"repeated rows":  growthtest.Times("", `<table:table-row table:number-rows-repeated="999999"><table:table-cell/></table:table-row>`, ""),
		"repeated cells": growthtest.Times("<table:table-row>", `<table:table-cell table:number-columns-repeated="9999"/>`, "</table:table-row>"),
		"spaces":         growthtest.Times("<table:table-row><table:table-cell><text:p>", `<text:s text:c="99"/>`, "</text:p></table:table-cell></table:table-row>"),
		"formulas":       growthtest.Times(`<table:table-row><table:table-cell table:formula="of:=`, "[.A1];", `"/></table:table-row>`),
		"charts":         growthtest.Times("", `<draw:frame><draw:object xlink:href="Object 1"/></draw:frame>`, "")}
	for name, shape := range shapes {
		shapes[name] = func(n int) string {
			head := `<table:content-validations><table:content-validation table:name="v" table:condition="of:cell-content-is-in-list(1)"/></table:content-validations>`
			return string(odsBook(t, "", head+`<table:table table:name="A">`+shape(n)+`</table:table>`))
		}
	}
	return shapes
}

func TestParsersGrowSlowly(t *testing.T) { growthtest.Check(t, parsers(t)) }
