package office

import (
	"fmt"
	"strings"
	"testing"

	"github.com/matryer/is"
)

// wordParts returns a document with a body, relations and further files.
func wordParts(t testing.TB, body, relations string, more ...string) []byte {
	t.Helper()
	document := `<w:document xmlns:w="w" xmlns:w14="w14" xmlns:m="m" xmlns:a="a" xmlns:c="c" xmlns:v="v" xmlns:wp="wp" xmlns:r="` +
		relsType[:len(relsType)-1] + `"><w:body>` + body + `</w:body></w:document>`
	return pack(t, append([]string{"_rels/.rels", `<Relationships><Relationship Id="r" Type="` + relsType +
		`officeDocument" Target="word/main.xml"/></Relationships>`, "word/main.xml", document,
		"word/_rels/main.xml.rels", `<Relationships>` + relations + `</Relationships>`}, more...)...)
}

// rel returns a relation of a document.
func rel(id, kind, target string) string {
	mode := ""
	if strings.Contains(target, ":") {
		mode = ` TargetMode="External"`
	}
	return `<Relationship Id="` + id + `" Type="` + relsType + kind + `" Target="` + target + `"` + mode + `/>`
}

// listed returns a paragraph of a list.
func listed(list, level int, text string) string {
	return fmt.Sprintf(`<w:p><w:pPr><w:numPr><w:ilvl w:val="%d"/><w:numId w:val="%d"/></w:numPr></w:pPr><w:r><w:t>%s</w:t></w:r></w:p>`,
		level, list, text)
}

// lvl returns a level of a list.
func lvl(level int, format, pattern, more string) string {
	return fmt.Sprintf(`<w:lvl w:ilvl="%d"><w:start w:val="1"/><w:numFmt w:val="%s"/><w:lvlText w:val="%s"/>%s</w:lvl>`, level, format, pattern, more)
}

func TestWordLists(t *testing.T) {
	t.Parallel()
	numbering := `<w:numbering><w:abstractNum w:abstractNumId="0">` + lvl(0, "decimal", "%1.", `<w:pStyle w:val="H1"/>`) +
		lvl(1, "decimal", "%1.%2", `<w:pStyle w:val="H2"/>`) + lvl(2, "lowerLetter", "%3)", "") + lvl(3, "upperRoman", "(%4)", `<w:lvlRestart w:val="0"/>`) +
		lvl(4, "lowerRoman", "%1.%5", "<w:isLgl/>") + `</w:abstractNum>` +
		`<w:abstractNum w:abstractNumId="1">` + lvl(0, "bullet", "\uf0b7", "") + lvl(1, "bullet", "\uf0a8", `<w:rPr><w:rFonts w:ascii="Wingdings"/></w:rPr>`) +
		lvl(2, "none", "Note: ", "") + `</w:abstractNum>` +
		`<w:abstractNum w:abstractNumId="2"><w:numStyleLink w:val="Steps"/></w:abstractNum>` +
		`<w:num w:numId="1"><w:abstractNumId w:val="0"/></w:num><w:num w:numId="2"><w:abstractNumId w:val="1"/></w:num>` +
		`<w:num w:numId="3"><w:abstractNumId w:val="0"/><w:lvlOverride w:ilvl="0"><w:startOverride w:val="7"/></w:lvlOverride></w:num>` +
		`<w:num w:numId="4"><w:abstractNumId w:val="2"/></w:num>` +
		`<w:num w:numId="5"><w:abstractNumId w:val="0"/><w:lvlOverride w:ilvl="0"><w:lvl w:ilvl="0"><w:start w:val="4"/><w:numFmt w:val="decimalZero"/><w:lvlText w:val="§%1"/></w:lvl></w:lvlOverride></w:num></w:numbering>`
	styles := `<w:styles><w:style w:styleId="H1"><w:name w:val="heading 1"/><w:pPr><w:numPr><w:numId w:val="1"/></w:numPr></w:pPr></w:style>` +
		`<w:style w:styleId="H2"><w:name w:val="heading 2"/><w:basedOn w:val="H1"/><w:pPr><w:numPr><w:ilvl w:val="1"/><w:numId w:val="1"/></w:numPr></w:pPr></w:style>` +
		`<w:style w:styleId="Mine"><w:name w:val="Mine"/><w:basedOn w:val="H2"/></w:style>` +
		`<w:style w:styleId="Loop"><w:basedOn w:val="Loop"/></w:style>` +
		`<w:style w:styleId="Steps"><w:pPr><w:numPr><w:numId w:val="1"/></w:numPr></w:pPr></w:style></w:styles>`
	for name, tt := range map[string]struct{ body, want string }{
		"headings": {styled("H1", "One") + styled("H2", "Inner") + styled("Mine", "Again") + styled("H1", "Two") + styled("H2", "Inner"),
			"# 1. One\n\n## 1.1 Inner\n\n## 1.2 Again\n\n# 2. Two\n\n## 2.1 Inner\n\n"},
		"levels": {listed(1, 0, "a") + listed(1, 2, "b") + listed(1, 2, "c") + listed(1, 3, "d") + listed(1, 0, "e") + listed(1, 2, "f") + listed(1, 3, "g"),
			"1. a\n    a) b\n    b) c\n      (I) d\n2. e\n    a) f\n      (II) g\n"},
		"legal":     {listed(1, 0, "a") + listed(1, 4, "b") + listed(1, 4, "c"), "1. a\n        1.1 b\n        1.2 c\n"},
		"bullets":   {listed(2, 0, "a") + listed(2, 1, "b") + listed(2, 2, "c"), "- a\n  ☐ b\n    Note: c\n"},
		"restart":   {listed(1, 0, "a") + listed(3, 0, "b") + listed(3, 0, "c") + listed(1, 0, "d"), "1. a\n7. b\n8. c\n9. d\n"},
		"linked":    {listed(4, 0, "a") + listed(4, 0, "b"), "1. a\n2. b\n"},
		"own level": {listed(5, 0, "a") + listed(5, 0, "b"), "§04 a\n§05 b\n"},
		"empty":     {listed(1, 0, "") + listed(1, 0, "b") + listed(2, 0, ""), "1.\n2. b\n"},
		"no list":   {strings.Replace(styled("H1", "a"), "</w:pPr>", `<w:numPr><w:numId w:val="0"/></w:numPr></w:pPr>`, 1), "# a\n\n"},
		"loop":      {styled("Loop", "a"), "a\n\n"},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			got, err := Docx(wordParts(t, tt.body, rel("n", "numbering", "numbering.xml")+rel("s", "styles", "s.xml"),
				"word/numbering.xml", numbering, "word/s.xml", styles), never)
			is.NoErr(err)
			is.Equal(string(got), tt.want)
		})
	}
}

func TestWordParts(t *testing.T) {
	t.Parallel()
	run := func(text string) string { return "<w:r><w:t>" + text + "</w:t></w:r>" }
	char := func(kind string) string { return `<w:r><w:fldChar w:fldCharType="` + kind + `"/></w:r>` }
	code := func(text string) string { return "<w:r><w:instrText>" + text + "</w:instrText></w:r>" }
	cell := func(properties, content string) string {
		return "<w:tc><w:tcPr>" + properties + "</w:tcPr>" + content + "</w:tc>"
	}
	row := func(cells ...string) string { return "<w:tr>" + strings.Join(cells, "") + "</w:tr>" }
	for name, tt := range map[string]struct {
		body, want string
	}{
		"merged cells": {"<w:tbl>" + row(cell(`<w:gridSpan w:val="2"/>`, para("Sales")), cell(`<w:vMerge w:val="restart"/>`, para("Sum"))) +
			row(cell("", para("1")), cell("", para("2")), cell("<w:vMerge/>", para(""))) + "</w:tbl>", "| Sales |  | Sum |\n| 1 | 2 | ↑ |\n\n"},
		"frame of blocks": {"<w:tbl>" + row(cell("", para("a")+listed(9, 0, "b")+"<w:tbl>"+row(cell("", para("c")), cell("", para("d")))+"</w:tbl>")) + "</w:tbl>" + para("e"),
			"a\n\n- b\n\n| c | d |\n\ne\n\n"},
		"long row": {"<w:tbl>" + row(cell("", para(strings.Repeat("x", 5000))), cell("", para("d"))) + "</w:tbl>", strings.Repeat("x", 5000) + "\n\nd\n\n"},
		"removed row": {"<w:tbl>" + row(cell("", para("a"))) + `<w:tr><w:trPr><w:del w:author="Ann"/></w:trPr>` + cell("", para("b")) + "</w:tr></w:tbl>",
			"| a |\n\n[tracked changes: the text above has what was inserted, and lacks what was deleted]\n\n- Ann deleted the row \"| b |\"\n\n"},
		"hidden":             {`<w:p>` + run("a") + `<w:r><w:rPr><w:vanish/></w:rPr><w:t>secret</w:t></w:r><w:r><w:rPr><w:vanish w:val="0"/></w:rPr><w:t>b</w:t></w:r></w:p>`, "ab\n\n"},
		"changed properties": {`<w:p><w:pPr><w:pPrChange><w:pPr><w:outlineLvl w:val="0"/></w:pPr></w:pPrChange></w:pPr>` + run("text") + "</w:p>", "text\n\n"},
		"deleted end":        {`<w:p><w:pPr><w:rPr><w:del/></w:rPr></w:pPr>` + run("a ") + `</w:p><w:p>` + run("b") + "</w:p>", "a b\n\n"},
		"signs": {`<w:p><w:r><w:sym w:font="Wingdings" w:char="F0FE"/><w:t xml:space="preserve"> soft` + "\u00ad" + `ware</w:t><w:softHyphen/><w:noBreakHyphen/><w:t>x</w:t></w:r></w:p>`,
			"☑ software-x\n\n"},
		"page break": {`<w:p>` + run("a") + `<w:r><w:br w:type="page"/></w:r>` + run("b") + "</w:p>", "a\n[page break]\nb\n\n"},
		"link":       {`<w:p><w:hyperlink r:id="link">` + run("our page") + `</w:hyperlink> <w:hyperlink w:anchor="x">` + run(" there") + `</w:hyperlink></w:p>`, "[our page](https://x.example/a) there\n\n"},
		"fields": {`<w:p>` + char("begin") + code(` HYPERLINK "https://y.example" `) + char("separate") + run("y") + char("end") +
			char("begin") + code(" PAGEREF ") + char("begin") + code("x") + char("separate") + run("hidden") + char("end") + char("separate") + run(" 12") + char("end") + `</w:p>`,
			"[y](https://y.example) 12\n\n"},
		"form": {`<w:p><w:r><w:fldChar w:fldCharType="begin"><w:ffData><w:checkBox><w:default w:val="0"/><w:checked/></w:checkBox></w:ffData></w:fldChar></w:r>` + code("FORMCHECKBOX") + char("end") + run(" yes ") +
			`<w:r><w:fldChar w:fldCharType="begin"><w:ffData><w:ddList><w:result w:val="1"/><w:listEntry w:val="red"/><w:listEntry w:val="blue"/></w:ddList></w:ffData></w:fldChar></w:r>` + char("end") + `</w:p>`,
			"☒ yes blue\n\n"},
		"control": {`<w:sdt><w:sdtPr><w:alias w:val="no"/><w:text/></w:sdtPr><w:sdtContent>` + para("yes") + `</w:sdtContent></w:sdt>`, "yes\n\n"},
		"picture": {`<w:p>` + run("see ") + `<w:r><w:drawing><wp:docPr descr="A  cat"/><a:blip r:embed="pic"/></w:drawing></w:r></w:p>` +
			`<w:p><w:r><w:pict><v:shape><v:imagedata r:id="pic"/></v:shape></w:pict></w:r></w:p>`, "see [image word/media/image1.png: A cat]\n\n[image word/media/image1.png]\n\n"},
		"text box": {`<w:p>` + run("a ") + `<w:r><w:drawing><w:txbxContent>` + para("box") + `</w:txbxContent></w:drawing></w:r>` + run("b") + `</w:p>` + para("c"), "a b\n\nbox\n\nc\n\n"},
		"included": {`<w:altChunk r:id="chunk"/>`, "[included file word/chunk.html]\n\n"},
		"equation": {`<w:p><m:oMath><m:r><m:t>x=</m:t></m:r><m:f><m:num><m:r><m:t>a+b</m:t></m:r></m:num><m:den><m:r><m:t>2</m:t></m:r></m:den></m:f><m:rad><m:deg/><m:e><m:sSup><m:e><m:r><m:t>y</m:t></m:r></m:e><m:sup><m:r><m:t>2</m:t></m:r></m:sup></m:sSup></m:e></m:rad>` +
			`<m:nary><m:naryPr><m:chr m:val="∑"/></m:naryPr><m:sub><m:r><m:t>i=1</m:t></m:r></m:sub><m:sup><m:r><m:t>n</m:t></m:r></m:sup><m:e><m:r><m:t>i</m:t></m:r></m:e></m:nary></m:oMath></w:p>`, "x=(a+b)/2√(y^2)∑_(i=1)^n i\n\n"},
		"notes": {`<w:p>` + run("a") + `<w:r><w:footnoteReference w:id="7"/></w:r>` + run("b") + `<w:r><w:endnoteReference w:id="2"/></w:r></w:p>`,
			"a[^1]b[^i]\n\n[footnotes]\n\n[^1]: seven\n\n[endnotes]\n\n[^i]: end\n\n"},
		"comments": {`<w:p><w:commentRangeStart w:id="5"/>` + run("the price") + `<w:commentRangeEnd w:id="5"/><w:r><w:commentReference w:id="5"/></w:r><w:r><w:commentReference w:id="6"/></w:r></w:p>`,
			"the price[comment 1][comment 2]\n\n[comments]\n\n[comment 1] Ann on \"the price\" (resolved): too high\n\n[comment 2] Bob answers comment 1: agreed\n\n"},
		"header and footer": {para("body") + `<w:sectPr><w:headerReference w:type="default" r:id="head"/><w:headerReference w:type="first" r:id="first"/><w:footerReference w:type="default" r:id="foot"/></w:sectPr>`,
			"[header]\nTop\n\nbody\n\n[footer]\nPage 3\n\n"},
		"moved": {`<w:p><w:moveFrom>` + run("old place") + `</w:moveFrom><w:moveTo>` + run("new place") + `</w:moveTo></w:p>`, "new place\n\n"},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			got, err := Docx(wordParts(t, tt.body, rel("link", "hyperlink", "https://x.example/a")+rel("pic", "image", "media/image1.png")+
				rel("chunk", "aFChunk", "/word/chunk.html")+rel("f", "footnotes", "footnotes.xml")+rel("e", "endnotes", "endnotes.xml")+rel("c", "comments", "comments.xml")+
				rel("x", "commentsExtended", "extended.xml")+rel("head", "header", "h1.xml")+rel("first", "header", "h2.xml")+rel("foot", "footer", "f1.xml"),
				"word/footnotes.xml", `<w:f><w:footnote w:type="separator" w:id="0">`+para("---")+`</w:footnote><w:footnote w:id="7">`+para("seven")+`</w:footnote></w:f>`,
				"word/endnotes.xml", `<w:f><w:endnote w:id="2">`+para("end")+`</w:endnote></w:f>`,
				"word/comments.xml", commentsOf(tt.body), "word/extended.xml", `<e><commentEx paraId="A" done="1"/><commentEx paraId="B" paraIdParent="A"/></e>`,
				"word/h1.xml", "<h>"+para("Top")+"</h>", "word/h2.xml", "<h>"+para("only first")+"</h>",
				"word/f1.xml", `<f><w:p xmlns:w="w">`+run("Page ")+`<w:fldSimple w:instr="PAGE">`+run("3")+`</w:fldSimple></w:p></f>`), never)
			is.NoErr(err)
			is.Equal(string(got), tt.want)
		})
	}
}

// commentsOf returns the comments of a document, if its body has marks of comments.
func commentsOf(body string) string {
	if !strings.Contains(body, "commentReference") {
		return "<c/>"
	}
	return `<c><comment id="5" author="Ann"><p paraId="A"><r><t>too high</t></r></p></comment><comment id="6" author="Bob"><p paraId="B"><r><t>agreed</t></r></p></comment></c>`
}
