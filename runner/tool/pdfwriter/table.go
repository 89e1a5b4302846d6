package pdfwriter

import (
	"github.com/yuin/goldmark/ast"
	table "github.com/yuin/goldmark/extension/ast"
)

// A grid is a table whose columns have a width.
type grid struct {
	box     box
	size    float64 // of the font
	widths  []float64
	aligned []table.Alignment
	header  [][]line // lines of each cell of the header
}

// pad returns the space at the sides of the text of a cell.
func (g *grid) pad() float64 { return g.size / 2 }

// tableSizes are the sizes of the font of a table. A smaller one is used if a word does not fit otherwise.
var tableSizes = [...]float64{9.5, 8, 6.8, 5.8, 5}

// table writes a table. Its header is repeated on each page.
func (w *writer) table(n *table.Table, b box) {
	var rows [][][]span
	for row := n.FirstChild(); row != nil; row = row.NextSibling() {
		_, header := row.(*table.TableHeader)
		rows = append(rows, w.cells(row, style{bold: header}, len(n.Alignments)))
	}
	g := w.newGrid(rows, n.Alignments, b)
	w.space(paragraph)
	for i, cells := range rows {
		lines := make([][]line, len(cells))
		for column, spans := range cells {
			lines[column] = w.fonts.breakLines(spans, g.size, g.widths[column]-2*g.pad())
		}
		if i == 0 {
			g.header = lines
			// The header stays with the first row.
			w.room(g.height(lines) + 2*g.size*lead)
			w.row(g, lines, true)
			continue
		}
		w.splitRow(g, lines)
		if w.err != nil {
			return
		}
	}
	w.space(paragraph * 1.5)
}

// cells returns the texts of a row. A row may have fewer cells than the header.
func (w *writer) cells(row ast.Node, s style, count int) [][]span {
	cells := make([][]span, 0, count)
	for cell := row.FirstChild(); cell != nil && len(cells) < count; cell = cell.NextSibling() {
		spans := w.inlines(cell, s)
		for _, s := range spans {
			if s.picture != "" {
				w.lack("The picture %q is in a table, where only its description is shown.", s.picture)
			}
		}
		cells = append(cells, spans)
	}
	for len(cells) < count {
		cells = append(cells, nil)
	}
	return cells
}

// newGrid chooses the widths of the columns.
func (w *writer) newGrid(rows [][][]span, aligned []table.Alignment, b box) *grid {
	g := &grid{box: b, aligned: aligned}
	for _, g.size = range tableSizes {
		most, least := make([]float64, len(aligned)), make([]float64, len(aligned))
		for _, cells := range rows {
			for i, spans := range cells {
				all, longest := w.fonts.widths(spans, g.size)
				most[i], least[i] = max(most[i], all+2*g.pad()+1), max(least[i], longest+2*g.pad()+1)
			}
		}
		fits := false
		if g.widths, fits = share(most, least, b.width); fits {
			break
		}
	}
	return g
}

// share divides a width among columns. fits is false if a word has to be split.
func share(most, least []float64, width float64) (widths []float64, fits bool) {
	sum := func(values []float64) (total float64) {
		for _, v := range values {
			total += v
		}
		return total
	}
	if sum(most) <= width {
		return most, true
	}
	widths = make([]float64, len(most))
	if needed := sum(least); needed <= width {
		wish := max(sum(most)-needed, 1)
		for i := range widths {
			widths[i] = least[i] + (width-needed)*(most[i]-least[i])/wish
		}
		return widths, true
	}
	// Columns with short words keep their width, and the others share the rest.
	left, open := width, len(least)
	for done := false; !done; {
		done = true
		for i := range widths {
			if widths[i] == 0 && open > 0 && least[i] <= left/float64(open) {
				widths[i], left, open, done = least[i], left-least[i], open-1, false
			}
		}
	}
	for i := range widths {
		if widths[i] == 0 {
			widths[i] = left / float64(max(open, 1))
		}
	}
	return widths, false
}

// height returns the height of a row.
func (g *grid) height(lines [][]line) float64 {
	count := 1
	for _, cell := range lines {
		count = max(count, len(cell))
	}
	return float64(count)*g.size*lead + g.pad()
}

// splitRow writes a row. A row that does not fit on a page continues on the next one.
func (w *writer) splitRow(g *grid, lines [][]line) {
	for w.err == nil {
		free := pageBottom - w.y
		if g.height(lines) <= free {
			w.row(g, lines, false)
			return
		}
		whole := pageBottom - marginTop - g.height(g.header)
		fit := int((free - g.pad()) / (g.size * lead))
		// Only a row that is higher than a page is split.
		if g.height(lines) > whole && fit > 0 {
			head, rest := split(lines, fit)
			w.row(g, head, false)
			lines = rest
		}
		w.newPage()
		if g.height(g.header) < (pageBottom-marginTop)/3 {
			w.row(g, g.header, true)
		}
	}
}

// split divides the lines of a row after some lines.
func split(lines [][]line, after int) (head, rest [][]line) {
	for _, cell := range lines {
		n := min(after, len(cell))
		head, rest = append(head, cell[:n]), append(rest, cell[n:])
	}
	return head, rest
}

// row draws one row.
func (w *writer) row(g *grid, lines [][]line, header bool) {
	if w.err != nil {
		return
	}
	height := g.height(lines)
	total := 0.0
	for _, width := range g.widths {
		total += width
	}
	if header {
		w.fill(g.box.left, w.y, total, height, colorShade)
	}
	x := g.box.left
	for i, cell := range lines {
		for at := range cell {
			left := x + g.pad()
			free := g.widths[i] - 2*g.pad() - cell[at].wide()
			switch g.aligned[i] {
			case table.AlignRight:
				left += free
			case table.AlignCenter:
				left += free / 2
			}
			baseline := w.y + g.pad()/2 + (float64(at)+0.5)*g.size*lead + g.size*0.34
			w.drawMarkers(baseline)
			cell[at].drawAt(w, left, baseline, g.size, colorText)
		}
		x += g.widths[i]
	}
	w.border(g, total, height)
	w.y += height
}

// border draws the lines around the cells of a row.
func (w *writer) border(g *grid, total, height float64) {
	w.pdf.SetDrawColor(colorRule.r, colorRule.g, colorRule.b)
	w.pdf.SetLineWidth(0.6)
	w.pdf.Rect(g.box.left, w.y, total, height, "D")
	x := g.box.left
	for _, width := range g.widths[:len(g.widths)-1] {
		x += width
		w.pdf.Line(x, w.y, x, w.y+height)
	}
}
