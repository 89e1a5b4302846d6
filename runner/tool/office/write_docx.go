package office

import (
	"fmt"
	"strings"

	"github.com/yuin/goldmark/ast"
	table "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/text"

	"journeyman/runner/tool/markdown"
	"journeyman/runner/tool/office/archive"
)

// WriteDocx returns a docx document for a Markdown text: its headings, paragraphs, lists,
// tables, quotes, code and links. Instead of an image it writes the description of the image.
func WriteDocx(source []byte) ([]byte, error) {
	w := docxWriter{source: source}
	// Write the body first: this collects the links and the lists for two other files.
	w.blocks(markdown.Parse(source), paragraphStyle{})
	return zipFiles(
		"[Content_Types].xml", docxTypes, "_rels/.rels", docxRoot, "word/styles.xml", docxStyles,
		"word/numbering.xml", w.numbering(), "word/_rels/document.xml.rels", w.relations(),
		"word/document.xml", xmlHead+`<w:document `+docxSpaces+`><w:body>`+w.out.String()+docxSection+`</w:body></w:document>`)
}

// zipFiles returns an archive of files. Its arguments are a name, its contents, the next name,
// and so on.
func zipFiles(files ...string) ([]byte, error) { return archive.Pack(files...) }

// A docxWriter writes the body of a document.
type docxWriter struct {
	source  []byte
	out     strings.Builder
	links   []string // addresses; address i has the relation id "link<i>"
	ordered []int    // first number of each numbered list; list i has the numId i+2, bullet lists have 1
}

// A paragraphStyle holds the style of a paragraph and its position in a list.
type paragraphStyle struct {
	style string // style id; "" for plain text
	list  int    // numId of its list, 0 for none
	level int    // level of that list, from 0
	inner bool   // further paragraph of an item, without a bullet or number
}

// A runStyle is the style of a piece of text.
type runStyle struct{ bold, italic, strike, code, link bool }

// blocks writes the blocks in n.
func (w *docxWriter) blocks(n ast.Node, p paragraphStyle) {
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		w.block(c, p)
	}
}

// block writes one block.
func (w *docxWriter) block(n ast.Node, p paragraphStyle) {
	switch n := n.(type) {
	case *ast.Heading:
		p.style = fmt.Sprintf("Heading%d", n.Level)
		w.paragraph(n, p)
	case *ast.List:
		w.list(n, p)
	case *ast.Blockquote:
		p.style = "Quote"
		w.blocks(n, p)
	case *ast.FencedCodeBlock:
		w.code(n.Lines(), p)
	case *ast.CodeBlock:
		w.code(n.Lines(), p)
	// Word cannot display HTML, so write its source.
	case *ast.HTMLBlock:
		w.code(n.Lines(), p)
	// Word has no element for a horizontal rule, but a paragraph can have a border.
	case *ast.ThematicBreak:
		w.out.WriteString(`<w:p><w:pPr><w:pBdr>` +
			`<w:bottom w:val="single" w:sz="6" w:space="1" w:color="auto"/></w:pBdr></w:pPr></w:p>`)
	case *table.Table:
		w.table(n)
	default:
		w.paragraph(n, p)
	}
}

// list writes a list and the lists within it.
func (w *docxWriter) list(n *ast.List, p paragraphStyle) {
	level := p.level
	if p.list > 0 {
		level = min(level+1, 8) // ECMA-376: a list has nine levels
	}
	number := 1
	// Bullets have no numbers, so all bullet lists can share one numId.
	if n.IsOrdered() {
		w.ordered = append(w.ordered, n.Start)
		number = len(w.ordered) + 1
	}
	for item := n.FirstChild(); item != nil; item = item.NextSibling() {
		inItem := paragraphStyle{style: p.style, list: number, level: level}
		for c := item.FirstChild(); c != nil; c = c.NextSibling() {
			w.block(c, inItem)
			inItem.inner = true
		}
	}
}

// paragraph writes a block whose content is text.
func (w *docxWriter) paragraph(n ast.Node, p paragraphStyle) {
	w.begin(p)
	w.inlines(n, runStyle{})
	w.out.WriteString(`</w:p>`)
}

// begin writes the start of a paragraph with its properties. They have the order of the schema:
// style, numbering, indentation. Word may reject a document with another order.
func (w *docxWriter) begin(p paragraphStyle) {
	w.out.WriteString(`<w:p><w:pPr>`)
	if p.style != "" {
		fmt.Fprintf(&w.out, `<w:pStyle w:val="%s"/>`, p.style)
	}
	switch {
	case p.list > 0 && p.inner:
		fmt.Fprintf(&w.out, `<w:ind w:left="%d"/>`, (p.level+1)*indentTwips)
	case p.list > 0:
		fmt.Fprintf(&w.out, `<w:numPr><w:ilvl w:val="%d"/><w:numId w:val="%d"/></w:numPr>`, p.level, p.list)
	}
	w.out.WriteString(`</w:pPr>`)
}

// code writes lines unchanged, in one paragraph, so that the lines stay together.
func (w *docxWriter) code(lines *text.Segments, p paragraphStyle) {
	p.style = "Code"
	w.begin(p)
	for i := range lines.Len() {
		line := lines.At(i)
		if i > 0 {
			w.out.WriteString(`<w:r><w:br/></w:r>`)
		}
		w.run(strings.TrimRight(string(line.Value(w.source)), "\r\n"), runStyle{})
	}
	w.out.WriteString(`</w:p>`)
}

// table writes a table. Its first row is the header.
func (w *docxWriter) table(n *table.Table) {
	// The columns share the width of the text. Word adapts them to their contents (type auto).
	w.out.WriteString(`<w:tbl><w:tblPr><w:tblStyle w:val="Grid"/><w:tblW w:w="0" w:type="auto"/></w:tblPr><w:tblGrid>` +
		strings.Repeat(fmt.Sprintf(`<w:gridCol w:w="%d"/>`, textTwips/max(len(n.Alignments), 1)), len(n.Alignments)) +
		`</w:tblGrid>`)
	for row := n.FirstChild(); row != nil; row = row.NextSibling() {
		_, header := row.(*table.TableHeader)
		w.out.WriteString(`<w:tr>`)
		if header {
			// Word repeats such a row at the top of each page.
			w.out.WriteString(`<w:trPr><w:tblHeader/></w:trPr>`)
		}
		for cell := row.FirstChild(); cell != nil; cell = cell.NextSibling() {
			// A cell needs a paragraph, even if it is empty.
			w.out.WriteString(`<w:tc><w:p>`)
			w.inlines(cell, runStyle{bold: header})
			w.out.WriteString(`</w:p></w:tc>`)
		}
		w.out.WriteString(`</w:tr>`)
	}
	w.out.WriteString(`</w:tbl><w:p/>`) // Word joins tables without a paragraph between them
}

// inlines writes the inline nodes in n.
func (w *docxWriter) inlines(n ast.Node, s runStyle) {
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		w.inline(c, s)
	}
}

func (w *docxWriter) inline(n ast.Node, s runStyle) {
	switch n := n.(type) {
	case *ast.Text:
		w.run(markdown.Text(n, w.source), s)
		switch {
		case n.HardLineBreak():
			w.out.WriteString(`<w:r><w:br/></w:r>`)
		case n.SoftLineBreak():
			w.run(" ", s)
		}
	case *ast.String:
		w.run(string(n.Value), s)
	case *ast.CodeSpan:
		s.code = true
		w.inlines(n, s)
	case *ast.Emphasis:
		s.bold, s.italic = s.bold || n.Level > 1, s.italic || n.Level == 1
		w.inlines(n, s)
	case *table.Strikethrough:
		s.strike = true
		w.inlines(n, s)
	case *ast.Link:
		w.link(markdown.Address(n.Destination), s, func(s runStyle) { w.inlines(n, s) })
	case *ast.AutoLink:
		w.link(string(n.URL(w.source)), s, func(s runStyle) { w.run(string(n.Label(w.source)), s) })
	case *ast.RawHTML:
		w.rawHTML(n, s)
	case *table.TaskCheckBox:
		w.run(map[bool]string{true: "☑ ", false: "☐ "}[n.IsChecked], s)
	default: // for example an image, whose children are its description
		w.inlines(n, s)
	}
}

// rawHTML writes the source of a tag, as for a block of HTML. Cells of tables have no other line break than <br>.
func (w *docxWriter) rawHTML(n *ast.RawHTML, s runStyle) {
	source := string(n.Segments.Value(w.source))
	if markdown.Break(source) {
		w.out.WriteString(`<w:r><w:br/></w:r>`)
		return
	}
	w.run(source, s)
}

// link writes a link to a web page or a mail address. For any other link it writes only the
// text.
func (w *docxWriter) link(address string, s runStyle, content func(runStyle)) {
	if !markdown.Web(address) {
		content(s)
		return
	}
	s.link = true
	fmt.Fprintf(&w.out, `<w:hyperlink r:id="link%d">`, len(w.links))
	w.links = append(w.links, address)
	content(s)
	w.out.WriteString(`</w:hyperlink>`)
}

// run writes a piece of text with one style.
func (w *docxWriter) run(content string, s runStyle) {
	w.out.WriteString(`<w:r>`)
	if s != (runStyle{}) {
		w.out.WriteString(`<w:rPr>`)
		for _, p := range []struct {
			set bool
			xml string
		}{
			{s.link, `<w:rStyle w:val="Hyperlink"/>`}, {s.code, `<w:rFonts w:ascii="Consolas" w:hAnsi="Consolas"/>`},
			{s.bold, `<w:b/>`}, {s.italic, `<w:i/>`}, {s.strike, `<w:strike/>`},
		} {
			if p.set {
				w.out.WriteString(p.xml)
			}
		}
		w.out.WriteString(`</w:rPr>`)
	}
	// Without xml:space, Word would remove the spaces at both ends of the text.
	w.out.WriteString(`<w:t xml:space="preserve">` + escape(content) + `</w:t></w:r>`)
}

// escape returns a text as XML. It replaces characters that XML does not allow by U+FFFD.
func escape(content string) string { return archive.Escape(content) }

// relations returns the file that lists the other parts of the document and its links.
func (w *docxWriter) relations() string {
	const kind = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/"
	var b strings.Builder
	b.WriteString(xmlHead + `<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">` +
		`<Relationship Id="styles" Type="` + kind + `styles" Target="styles.xml"/>` +
		`<Relationship Id="numbering" Type="` + kind + `numbering" Target="numbering.xml"/>`)
	for i, address := range w.links {
		fmt.Fprintf(&b, `<Relationship Id="link%d" Type="%shyperlink" Target="%s" TargetMode="External"/>`,
			i, kind, escape(address))
	}
	b.WriteString(`</Relationships>`)
	return b.String()
}

// Lengths in twentieths of a point.
const (
	indentTwips = 720  // indentation of each level of a list
	textTwips   = 9026 // width of the text: see docxSection
)

// numbering returns the file that describes the marks of lists. Each numbered list has its own
// numbers.
func (w *docxWriter) numbering() string {
	var b strings.Builder
	b.WriteString(xmlHead + `<w:numbering ` + docxSpaces + `>`)
	// An abstractNum describes the marks of each level. A num is one list with these marks.
	for id, mark := range []string{"bullet", "decimal"} {
		fmt.Fprintf(&b, `<w:abstractNum w:abstractNumId="%d"><w:multiLevelType w:val="multilevel"/>`, id)
		for level := range 9 {
			shown := "•"
			if mark == "decimal" {
				shown = fmt.Sprintf("%%%d.", level+1)
			}
			fmt.Fprintf(&b, `<w:lvl w:ilvl="%d"><w:start w:val="1"/><w:numFmt w:val="%s"/><w:lvlText w:val="%s"/>`+
				`<w:pPr><w:ind w:left="%d" w:hanging="360"/></w:pPr></w:lvl>`,
				level, mark, shown, (level+1)*indentTwips)
		}
		b.WriteString(`</w:abstractNum>`)
	}
	b.WriteString(`<w:num w:numId="1"><w:abstractNumId w:val="0"/></w:num>`)
	for i, start := range w.ordered {
		fmt.Fprintf(&b, `<w:num w:numId="%d"><w:abstractNumId w:val="1"/>`, i+2)
		// Without startOverride, Word would continue the numbers of the previous list. All
		// levels have it, because a nested list begins at a level above 0.
		for level := range 9 {
			fmt.Fprintf(&b, `<w:lvlOverride w:ilvl="%d"><w:startOverride w:val="%d"/></w:lvlOverride>`,
				level, max(start, 0))
		}
		b.WriteString(`</w:num>`)
	}
	b.WriteString(`</w:numbering>`)
	return b.String()
}
