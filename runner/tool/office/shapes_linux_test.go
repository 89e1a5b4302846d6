//go:build !race

package office

import (
	"fmt"
	"strings"
	"testing"

	"journeyman/store/growthtest"
)

// wordShapes returns the shapes of what a document has besides its paragraphs.
func wordShapes(t *testing.T) map[string]growthtest.Shape {
	times, numbered := growthtest.Times, growthtest.Numbered
	cell := `<w:tc><w:tcPr><w:gridSpan w:val="63"/><w:vMerge/></w:tcPr></w:tc>`
	shapes := map[string]growthtest.Shape{
		"merged cells":     times("<w:tbl><w:tr>", cell, "</w:tr></w:tbl>"),
		"merged rows":      times("<w:tbl>", "<w:tr>"+cell+"</w:tr>", "</w:tbl>"),
		"bars in tables":   times(strings.Repeat("<w:tbl><w:tr><w:tc/><w:tc>", 40)+"<w:p><w:r><w:t>", "|", "</w:t></w:r></w:p>"+strings.Repeat("</w:tc></w:tr></w:tbl>", 40)),
		"numbers":          times("", listed(1, 8, "a"), ""),
		"levels":           times("", listed(1, 0, "a")+listed(1, 8, "a"), ""),
		"notes":            numbered("<w:p>", `<w:footnoteReference w:id="%d"/>`, "</w:p>"),
		"comments":         numbered("<w:p>", `<w:commentRangeStart w:id="%d"/>`, "<w:r><w:t>a</w:t></w:r></w:p>"),
		"ends of comments": numbered("<w:p>", `<w:commentRangeEnd w:id="%[1]d"/><w:commentReference w:id="%[1]d"/>`, "</w:p>"),
		"fields":           times("<w:p>", `<w:fldChar w:fldCharType="begin"/><w:instrText>a</w:instrText>`, "</w:p>"),
		"choices":          times(`<w:p><w:fldChar w:fldCharType="begin"/>`, `<w:listEntry w:val="a"/>`, "</w:p>"),
		"links":            times("<w:p>", `<w:hyperlink r:id="x"><w:r><w:t>a</w:t></w:r></w:hyperlink>`, "</w:p>"),
		"open links":       times("<w:p>", `<w:fldChar w:fldCharType="begin"/><w:instrText>HYPERLINK a</w:instrText><w:fldChar w:fldCharType="separate"/>`, "</w:p>"),
		"changes":          times("<w:p>", "<w:ins><w:r><w:t>a</w:t></w:r></w:ins>", "</w:p>"),
		"joined":           times("", "<w:p><w:pPr><w:rPr><w:del/></w:rPr></w:pPr><w:r><w:t>a</w:t></w:r></w:p>", ""),
		"sections":         numbered("", `<w:sectPr><w:headerReference r:id="h%d"/></w:sectPr>`, ""),
		"text boxes":       times("<w:p>", "<w:txbxContent>"+para("a")+"</w:txbxContent>", "</w:p>"),
		"equations":        times("<w:p><m:oMath>", "<m:f><m:num><m:t>a</m:t></m:num></m:f>", "</m:oMath></w:p>"),
		"deep equation":    times("<w:p><m:oMath>"+strings.Repeat("<m:e>", 180)+"<m:t>", "a", "</m:t>"+strings.Repeat("</m:e>", 180)+"</m:oMath></w:p>"),
		"charts":           times("<w:p>", `<c:chart r:id="chart"/>`, "</w:p>")}
	relations := rel("chart", "chart", "main.xml") + rel("n", "numbering", "n.xml") + rel("f", "footnotes", "main.xml") + rel("c", "comments", "main.xml")
	numbering := `<w:numbering><w:abstractNum w:abstractNumId="0">` + lvl(0, "upperRoman", "%1", "") +
		lvl(8, "lowerLetter", strings.Repeat("%9", 90), `<w:start w:val="780"/>`) + `</w:abstractNum><w:num w:numId="1"><w:abstractNumId w:val="0"/></w:num></w:numbering>`
	for name, shape := range shapes {
		shapes[name] = func(n int) string { return string(wordParts(t, shape(n), relations, "word/n.xml", numbering)) }
	}
	shapes["lists"] = func(n int) string {
		lists := numbered("<w:numbering>", `<w:abstractNum w:abstractNumId="%[1]d">`+lvl(0, "decimal", "%%1", "")+`</w:abstractNum><w:num w:numId="%[1]d"><w:abstractNumId w:val="%[1]d"/></w:num>`, "</w:numbering>")
		return string(wordParts(t, listed(7, 0, "a"), relations, "word/n.xml", lists(n)))
	}
	shapes["loops of styles"] = func(n int) string {
		styles := numbered("<w:styles>", `<w:style w:styleId="s%[1]d"><w:basedOn w:val="s%[1]d"/></w:style>`, "</w:styles>")
		return string(wordParts(t, strings.Repeat(styled("s1", "a"), n/100), rel("s", "styles", "s.xml"), "word/s.xml", styles(n/2)))
	}
	return shapes
}

// pptxShapes returns the shapes of presentations.
func pptxShapes(t *testing.T) map[string]growthtest.Shape {
	times, numbered := growthtest.Times, growthtest.Numbered
	at := func(content string) string {
		return `<p:sp><a:off x="%[1]d" y="%[1]d"/><a:ext cx="9" cy="9"/>` + content + `</p:sp>`
	}
	shapes := map[string]growthtest.Shape{
		"shapes":           numbered("", at("<a:p><a:t>a</a:t></a:p>"), ""),
		"few shapes":       times(strings.Repeat(fmt.Sprintf(at("<a:p><a:t>a</a:t></a:p>"), 1), 290)+"<p:sp><a:p><a:t>", "a", "</a:t></a:p></p:sp>"),
		"groups":           times(strings.Repeat("<p:grpSp>", 150), `<p:sp><a:off x="1" y="1"/></p:sp>`, strings.Repeat("</p:grpSp>", 150)),
		"paragraphs":       times("<p:sp>", `<a:p><a:pPr lvl="8"><a:buAutoNum type="romanUcParenBoth" startAt="3888"/></a:pPr><a:r><a:t>a</a:t></a:r></a:p>`, "</p:sp>"),
		"cells":            times("<p:graphicFrame><a:tbl><a:tr>", `<a:tc vMerge="1"/>`, "</a:tr></a:tbl></p:graphicFrame>"),
		"rows":             times("<p:graphicFrame><a:tbl>", `<a:tr><a:tc vMerge="1"/></a:tr>`, "</a:tbl></p:graphicFrame>"),
		"links":            times("<p:sp><a:p>", `<a:r><a:hlinkClick r:id="link"/><a:t>a</a:t></a:r>`, "</a:p></p:sp>"),
		"own charts":       times("<p:sp>", `<c:chart r:id="self"/>`, "</p:sp>"),
		"own diagrams":     times("<p:sp>", `<c:relIds r:dm="self"/>`, "</p:sp>"),
		"series":           times(`<p:sp><c:chart r:id="self"/>`, `<c:ser><c:tx><c:v>a</c:v></c:tx><c:val><c:pt idx="1999"><c:v>1</c:v></c:pt></c:val></c:ser>`, "</p:sp>"),
		"texts of a title": times(`<p:sp><c:chart r:id="self"/><c:title>`, "<a:t>a</a:t>", "</c:title></p:sp>"),
		"points":           numbered(`<p:sp><c:relIds r:dm="self"/>`, `<c:pt modelId="%[1]d"><a:t>a</a:t></c:pt><c:cxn srcId="%[1]d" destId="0"/>`, "</p:sp>"),
		"texts of a point": times(`<p:sp><c:relIds r:dm="self"/><c:pt modelId="a">`, "<a:t>a</a:t>", "</c:pt></p:sp>")}
	for name, shape := range shapes {
		shapes[name] = func(n int) string { return string(onSlide(t, shape(n))) }
	}
	shapes["slides"] = func(n int) string {
		relations := numbered("<Relationships>", `<Relationship Id="r%d" Type="slide" Target="slides/s.xml"/>`, "</Relationships>")
		slides := numbered(`<p xmlns:r="`+relsType[:len(relsType)-1]+`">`, `<sldId r:id="r%d"/>`, "</p>")
		return string(pack(t, "ppt/presentation.xml", slides(n/2), "ppt/_rels/presentation.xml.rels", relations(n/2),
			"ppt/slides/s.xml", "<s><sp><p><r><t>"+strings.Repeat("a", n/2)+"</t></r></p></sp></s>"))
	}
	shapes["files of slides"] = func(n int) string {
		files := []string{"ppt/presentation.xml", numbered(`<p xmlns:r="`+relsType[:len(relsType)-1]+`">`, `<sldId r:id="r%d"/>`, "</p>")(n / 10),
			"ppt/_rels/presentation.xml.rels", numbered("<r>", `<Relationship Id="r%[1]d" Type="slide" Target="slides/s%[1]d.xml"/>`, "</r>")(n / 2)}
		for i := range min(n/200, 2000) {
			files = append(files, fmt.Sprintf("ppt/slides/s%d.xml", i), "<s><sp><p><t>a</t></p></sp></s>",
				fmt.Sprintf("ppt/slides/_rels/s%d.xml.rels", i), "<r>"+rel("l", "slideLayout", fmt.Sprintf("s%d.xml", i+1))+"</r>")
		}
		return string(pack(t, files...))
	}
	return shapes
}
