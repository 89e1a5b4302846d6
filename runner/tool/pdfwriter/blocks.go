package pdfwriter

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/yuin/goldmark/ast"
	table "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/text"

	"journeyman/runner/tool/markdown"
)

// A box is the part of a page in which blocks are written.
type box struct {
	left, width float64
	bars        []float64 // left edges of the bars of quotes
	quoted      bool
	tight       bool // the blocks of a list item without blank lines
	item        bool // the blocks of a list item
}

// inset returns a box that begins further right.
func (b box) inset(by float64) box {
	by = min(by, b.width-minWidth) // lists and quotes may be nested deeper than the page is wide
	b.left, b.width = b.left+max(by, 0), b.width-max(by, 0)
	return b
}

// A marker is the bullet or number of a list item.
type marker struct {
	text  string
	right float64 // its right edge
}

// Sizes in points.
const (
	textSize  = 10.5
	codeSize  = 8.8
	lead      = 1.38 // height of a line, in sizes of its font
	indent    = 20
	minWidth  = 120 // of a box
	maxBars   = 10  // of quotes in quotes
	paragraph = 7   // space between paragraphs
)

// headingSizes are the sizes of the headings by level.
var headingSizes = [...]float64{20, 15.5, 13, 11.5, textSize, textSize}

// pageBreak matches HTML that begins a new page when a browser prints it.
var pageBreak = regexp.MustCompile(`(?i)(page-break-(after|before)\s*:\s*always|break-(after|before)\s*:\s*page)`)

// block writes one block.
func (w *writer) block(n ast.Node, b box) {
	switch n := n.(type) {
	case *ast.Heading:
		w.heading(n, b)
	case *ast.List:
		w.list(n, b)
	case *ast.Blockquote:
		inner := b.inset(14)
		inner.quoted, inner.item = true, false
		if len(b.bars) < maxBars {
			inner.bars = append(append([]float64(nil), b.bars...), b.left+2)
		}
		w.space(paragraph)
		w.blocks(n, inner)
		w.space(paragraph)
	case *ast.FencedCodeBlock:
		w.code(w.lines(n.Lines()), b)
	case *ast.CodeBlock:
		w.code(w.lines(n.Lines()), b)
	case *ast.HTMLBlock:
		w.html(n, b)
	case *ast.ThematicBreak:
		w.space(paragraph)
		w.room(paragraph)
		w.fill(b.left, w.y+paragraph/2, b.width, 0.7, colorRule)
		w.y += paragraph
		w.space(paragraph)
	case *table.Table:
		w.table(n, b)
	default:
		w.text(w.inlines(n, style{}), textSize, b)
	}
}

// lines returns the source of a block.
func (w *writer) lines(lines *text.Segments) string {
	var s strings.Builder
	for i := range lines.Len() {
		line := lines.At(i)
		s.Write(line.Value(w.source))
	}
	return s.String()
}

// heading writes a heading and adds it to the outline. The first one is the title of the document.
func (w *writer) heading(n *ast.Heading, b box) {
	size := headingSizes[n.Level-1]
	spans := w.inlines(n, style{bold: true})
	lines := w.fonts.breakLines(spans, size, b.width)
	w.space(size)
	// A heading stays with the first lines of its text.
	w.room(float64(len(lines))*size*lead + 3*textSize*lead)
	var title strings.Builder
	for _, s := range spans {
		title.WriteString(s.text)
	}
	name := strings.Join(strings.Fields(clean(title.String())), " ")
	if name = basic(name); name != "" {
		w.fonts.use(regularFont, size) // the library encodes the name for the selected font
		w.outline = min(n.Level-1, w.outline+1)
		w.pdf.Bookmark(name, w.outline, w.y)
		if !w.title {
			w.pdf.SetTitle(name, true)
			w.title = true
		}
	}
	w.drawLines(lines, size, b)
	w.space(size * 0.35)
}

// basic replaces the characters that the library cannot write outside of the text.
func basic(name string) string {
	return strings.Map(func(r rune) rune {
		if r > 0xffff {
			return unknown
		}
		return r
	}, name)
}

// list writes a list.
func (w *writer) list(n *ast.List, b box) {
	number := n.Start
	inner := b.inset(indent)
	inner.item, inner.tight = true, n.IsTight
	w.space(map[bool]float64{true: 2, false: paragraph}[b.tight])
	for item := n.FirstChild(); item != nil && w.err == nil; item = item.NextSibling() {
		mark := "•"
		if n.IsOrdered() {
			mark = fmt.Sprintf("%d%c", number, n.Marker)
			number++
		}
		w.markers = append(w.markers, marker{text: mark, right: inner.left - 6})
		before := len(w.markers)
		w.blocks(item, inner)
		if len(w.markers) == before { // the item is empty, or its first block draws no line
			w.drawLines([]line{{}}, textSize, inner)
		}
		w.space(map[bool]float64{true: 2, false: paragraph}[n.IsTight])
	}
	if !b.item {
		w.space(paragraph)
	}
}

// text writes a paragraph and the pictures in it.
func (w *writer) text(spans []span, size float64, b box) {
	var before []span
	flush := func() {
		if len(before) == 0 {
			return
		}
		w.drawLines(w.fonts.breakLines(before, size, b.width), size, b)
		before = nil
	}
	gap := float64(paragraph)
	if b.tight {
		gap = 2
	}
	for _, s := range spans {
		blank := len(before) == 0 && strings.TrimSpace(s.text) == "" && !s.breaks
		switch {
		case s.picture != "" && w.known(s):
			flush()
			w.space(gap)
			w.picture(s.picture, b)
			w.space(gap)
		case !blank || s.picture != "":
			before = append(before, s)
		}
	}
	flush()
	w.space(gap)
}

// drawLines draws lines below each other.
func (w *writer) drawLines(lines []line, size float64, b box) {
	height := size * lead
	shown := colorText
	if b.quoted {
		shown = colorQuote
	}
	for i := range lines {
		top := w.y
		w.room(height)
		if w.err != nil {
			return
		}
		for _, bar := range b.bars {
			from := w.y
			if top < w.y && top > marginTop && i > 0 {
				from = top
			}
			w.fill(bar, from, 2, w.y+height-from, colorRule)
		}
		baseline := w.y + height/2 + size*0.34
		w.drawMarkers(baseline)
		lines[i].drawAt(w, b.left, baseline, size, shown)
		w.y += height
	}
}

// drawMarkers draws the markers of the items that begin with this line.
func (w *writer) drawMarkers(baseline float64) {
	markers := w.markers
	w.markers = nil
	for _, m := range markers {
		l := line{w.fonts.pieces(m.text, style{}, textSize)}
		l.drawAt(w, m.right-l.wide(), baseline, textSize, colorText)
	}
}

// code writes lines without changes.
func (w *writer) code(source string, b box) {
	const pad = 6
	lines := w.fonts.codeLines(source, codeSize, b.width-2*pad)
	height := codeSize * 1.3
	w.space(paragraph)
	for i := range lines {
		above, below := 0.0, 0.0
		if i == 0 {
			above = pad
		}
		if i == len(lines)-1 {
			below = pad
		}
		w.room(above + height + below)
		if w.err != nil {
			return
		}
		for _, bar := range b.bars {
			w.fill(bar, w.y, 2, above+height+below, colorRule)
		}
		w.fill(b.left, w.y, b.width, above+height+below+0.2, colorShade)
		baseline := w.y + above + height/2 + codeSize*0.3
		w.drawMarkers(baseline)
		lines[i].drawAt(w, b.left+pad, baseline, codeSize, colorText)
		w.y += above + height + below
	}
	w.space(paragraph)
}

// html writes the source of a block of HTML. Comments are not shown, and some HTML begins a new page.
func (w *writer) html(n *ast.HTMLBlock, b box) {
	source := w.lines(n.Lines())
	if n.HasClosure() {
		source += string(n.ClosureLine.Value(w.source))
	}
	switch trimmed := strings.TrimSpace(source); {
	case strings.HasPrefix(trimmed, "<!--"):
	case pageBreak.MatchString(source) && len(trimmed) < 200:
		w.newPage()
	default:
		w.code(source, b)
	}
}

// inlines returns the text in n.
func (w *writer) inlines(n ast.Node, s style) (spans []span) {
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		spans = append(spans, w.inline(c, s)...)
	}
	return spans
}

func (w *writer) inline(n ast.Node, s style) []span {
	switch n := n.(type) {
	case *ast.Text:
		spans := []span{{text: markdown.Text(n, w.source), style: s}}
		switch {
		case n.HardLineBreak():
			spans = append(spans, span{breaks: true})
		case n.SoftLineBreak():
			spans = append(spans, span{text: " ", style: s})
		}
		return spans
	case *ast.String:
		return []span{{text: string(n.Value), style: s}}
	case *ast.CodeSpan:
		s.code, s.shaded = true, true
	case *ast.Emphasis:
		s.bold, s.italic = s.bold || n.Level > 1, s.italic || n.Level == 1
	case *table.Strikethrough:
		s.strike = true
	case *ast.Link:
		if address := markdown.Address(n.Destination); markdown.Web(address) {
			s.link = basic(address)
		}
	case *ast.AutoLink:
		if address := string(n.URL(w.source)); markdown.Web(address) {
			s.link = basic(address)
		}
		return []span{{text: string(n.Label(w.source)), style: s}}
	case *ast.RawHTML:
		return w.rawHTML(n, s)
	case *ast.Image:
		return []span{{text: plainText(w.inlines(n, s)), style: s, picture: markdown.Address(n.Destination)}}
	case *table.TaskCheckBox:
		return []span{{text: map[bool]string{true: "☑ ", false: "☐ "}[n.IsChecked], style: s}}
	}
	return w.inlines(n, s)
}

// rawHTML returns the source of a tag. A comment is not shown, and <br> is a line break.
func (w *writer) rawHTML(n *ast.RawHTML, s style) []span {
	source := w.lines(n.Segments)
	switch {
	case markdown.Break(source):
		return []span{{breaks: true}}
	case strings.HasPrefix(source, "<!--"):
		return nil
	}
	return []span{{text: source, style: s}}
}

func plainText(spans []span) string {
	var b strings.Builder
	for _, s := range spans {
		b.WriteString(s.text)
	}
	return b.String()
}
