//go:build !race

// The race detector makes every parser slower by another factor.

package office

import (
	"maps"
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
			Name: "docx", Fuzz: []string{"FuzzDocx", "FuzzFlow", "FuzzWordParts"}, Most: most,
			Read: reader(Docx), Shapes: docxShapes(t)},
		{
			Name: "pptx", Fuzz: []string{"FuzzPptx", "FuzzSlide"}, Most: most,
			Read: reader(Pptx), Shapes: pptxShapes(t)},
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
	maps.Copy(shapes, wordShapes(t))
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

func TestParsersGrowSlowly(t *testing.T) { growthtest.Check(t, parsers(t)) }
