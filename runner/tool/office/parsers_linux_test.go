//go:build !race

// The race detector makes every parser slower by another factor.

package office

import (
	"strings"
	"testing"

	"journeyman/store/growthtest"
)

// parsers returns the readers and writers of office documents. A document is packed, so the sizes are those of
// the XML in it. The confined process ends them after seconds, so they get shorter inputs here.
func parsers(t *testing.T) []growthtest.Parser {
	const most = 512 << 10
	reader := func(read func([]byte, func() bool) ([]byte, error)) func([]byte) {
		return func(in []byte) { _, _ = read(in, never) }
	}
	return []growthtest.Parser{
		{
			Name: "docx", Fuzz: []string{"FuzzDocx", "FuzzFlow"}, Most: most,
			Read: reader(Docx), Shapes: docxShapes(t)},
		{
			Name: "xlsx", Fuzz: []string{"FuzzXlsx", "FuzzSheet"}, Most: most,
			Read: reader(Xlsx), Shapes: xlsxShapes(t)},
		{
			Name: "pptx", Fuzz: []string{"FuzzPptx"}, Most: most,
			Read: reader(Pptx), Shapes: map[string]growthtest.Shape{
				"slides": func(n int) string {
					count := n / 200
					relations := growthtest.Numbered("<Relationships>",
						`<Relationship Id="r%d" Type="slide" Target="slides/s.xml"/>`, "</Relationships>")
					slides := growthtest.Numbered(`<p xmlns:r="`+relsType[:len(relsType)-1]+`">`,
						`<sldId r:id="r%d"/>`, "</p>")
					return string(pack(t, "ppt/presentation.xml", slides(count*60),
						"ppt/_rels/presentation.xml.rels", relations(count*60),
						"ppt/slides/s.xml", "<s><p><r><t>"+strings.Repeat("a", n/2)+"</t></r></p></s>"))
				}}},
		{
			Name: "write docx", Fuzz: []string{"FuzzWriteDocx"}, Most: 32 << 10, Confined: true,
			Read: func(in []byte) { _, _ = WriteDocx(in) }, Shapes: map[string]growthtest.Shape{
				"stars":      growthtest.Times("", "*a **b ", ""),
				"brackets":   growthtest.Times("", "[", ""),
				"links":      growthtest.Times("", "[a](", ""),
				"backquotes": growthtest.Numbered("", "`%d``", ""),
				"quotes":     growthtest.Times("", ">", "x"),
				"lists":      growthtest.Times("", "- ", "x"),
				"tables":     growthtest.Times("|a|\n|-|\n", "|b|\n", ""),
				"references": growthtest.Numbered("", "[%[1]d]: /x\n[%[1]d]\n", ""),
				"less":       growthtest.Times("", "<", "")}},
		{
			Name: "write xlsx", Fuzz: []string{"FuzzWriteXlsx"}, Most: most,
			Read: func(in []byte) { _, _ = WriteXlsx(in) }, Shapes: map[string]growthtest.Shape{
				"lines":   growthtest.Numbered("a,b\n", "%d,2024-01-01\n", ""),
				"commas":  growthtest.Times("", ",", "\n"),
				"quotes":  growthtest.Times("a,", `"`, ""),
				"rows":    growthtest.Numbered("[[0]", ",[%d]", "]"),
				"sheets":  growthtest.Numbered(`{"a":[]`, `,"%d":[]`, "}"),
				"columns": growthtest.Numbered("[[0", ",%d", "]]"),
				"nested":  growthtest.Nested("", "[", "1", "]")}},
	}
}

// docxShapes returns the shapes of docx documents.
func docxShapes(t *testing.T) map[string]growthtest.Shape {
	shapes := map[string]growthtest.Shape{
		"paragraphs": growthtest.Times("", para("a"), ""),
		"runs":       growthtest.Times("<w:p>", "<w:r><w:t>a</w:t></w:r>", "</w:p>"),
		"text":       growthtest.Times("<w:p><w:r><w:t>", "a", "</w:t></w:r></w:p>"),
		"bars": growthtest.Times("<w:tbl><w:tr><w:tc><w:p><w:r><w:t>", "|",
			"</w:t></w:r></w:p></w:tc></w:tr></w:tbl>"),
		"cells":      growthtest.Times("<w:tbl><w:tr>", "<w:tc></w:tc>", "</w:tr></w:tbl>"),
		"rows":       growthtest.Times("<w:tbl>", "<w:tr><w:tc>"+para("a")+"</w:tc></w:tr>", "</w:tbl>"),
		"entities":   growthtest.Times("<w:p><w:r><w:t>", "&amp;", "</w:t></w:r></w:p>"),
		"attributes": growthtest.Numbered("<w:p", ` a%d="b"`, "/>"),
		"namespaces": growthtest.Numbered("<w:p", ` xmlns:a%d="b"`, "/>"),
		"comments":   growthtest.Times("", "<!-- a -->", ""),
		"breaks":     growthtest.Times("<w:p><w:r>", "<w:br/>", "</w:r></w:p>"),
		"tables in tables": func(n int) string {
			const depth = 20
			left, right := "<w:tbl><w:tr><w:tc>", "</w:tc></w:tr></w:tbl>"
			return strings.Repeat(left, depth) + para(strings.Repeat("a|", n/2)) + strings.Repeat(right, depth)
		},
		"paragraphs in paragraphs": growthtest.Times("", strings.Repeat("<w:p>", 150)+strings.Repeat("</w:p>", 150), "")}
	for name, shape := range shapes {
		shapes[name] = func(n int) string { return string(docx(t, shape(n))) }
	}
	shapes["styles"] = func(n int) string {
		styles := growthtest.Numbered("<w:styles>",
			`<w:style w:styleId="s%d"><w:name w:val="heading 1"/></w:style>`, "</w:styles>")
		return string(pack(t, "word/document.xml", "<d>"+styled("s1", "a")+"</d>", "word/styles.xml", styles(n)))
	}
	shapes["files"] = func(n int) string {
		files := []string{"word/document.xml", "<d>" + para("a") + "</d>"}
		for i := range min(n/100, maxEntries-1) {
			files = append(files, "f"+strings.Repeat("x", i%90), "")
		}
		return string(pack(t, files...))
	}
	return shapes
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
		"blank text":       shared(" "), "line ends": shared("&#13;"), "bars": shared("|"),
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

func TestParsersGrowSlowly(t *testing.T) { growthtest.Check(t, parsers(t)) }
