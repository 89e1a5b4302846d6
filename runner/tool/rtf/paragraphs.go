package rtf

import (
	"strings"

	"journeyman/runner/tool/office/block"
)

// add adds text to the current paragraph, or to what the current group collects.
func (r *reader) add(text string) {
	g := r.now()
	switch g.target {
	case body:
	case shortText:
		if g.short.Len() < maxShort {
			g.short.WriteString(text)
		}
		return
	case fontTable, styleTable, authorTable:
		r.tableText(text)
		return
	default:
		return
	}
	r.size += len(text)
	if g.hidden {
		return
	}
	r.change(g, text)
	if g.verb == "deleted" {
		return
	}
	p := &r.top().para
	p.text = append(p.text, text...)
	for _, number := range r.openRanges {
		r.ranges[number] = upTo(r.ranges[number], text)
	}
}

// upTo appends text to a quoted one, but not beyond the limit.
func upTo(quoted, text string) string {
	return quoted + text[:min(len(text), max(maxQuoted-len(quoted), 0))]
}

// change keeps a text that was inserted or deleted.
func (r *reader) change(g *group, text string) {
	running := r.changing
	if r.changing = g.verb != ""; !r.changing {
		return
	}
	author := "somebody"
	if g.author >= 0 && g.author < len(r.authors) {
		author = r.authors[g.author]
	}
	if n := len(r.changes); running && n > 0 && r.changes[n-1].author == author && r.changes[n-1].verb == g.verb {
		r.changes[n-1].text = upTo(r.changes[n-1].text, text)
	} else if n < maxNotes && strings.TrimSpace(text) != "" {
		r.changes = append(r.changes, change{author, g.verb, upTo("", text)})
	}
}

// resetParagraph sets the properties of a paragraph to those of plain text.
func (r *reader) resetParagraph() {
	if t := r.now().target; t != body {
		return // such as the properties of the mark of an item
	}
	p := &r.top().para
	p.style, p.heading, p.level, p.inTable, p.nested = 0, -1, 0, false, false
}

// endParagraph writes the current paragraph.
func (r *reader) endParagraph() {
	f := r.top()
	p := f.para
	// The next paragraph has the same properties, unless the document changes them.
	f.para = paragraph{style: p.style, heading: p.heading, level: p.level, inTable: p.inTable, nested: p.nested}
	out := &f.Blocks
	switch {
	case p.nested:
		out = &f.inCell.Blocks
	case p.inTable:
		out = &f.cell.Blocks
	}
	r.write(out, &p)
	if p.after != nil {
		out.AddAll(p.after.Out.String(), p.after.Count)
	}
}

// write writes a paragraph to the blocks of its frame or cell.
func (r *reader) write(out *block.Blocks, p *paragraph) {
	text := strings.TrimSpace(string(p.text))
	heading := p.heading
	if s := r.styles[p.style]; heading < 0 && s != nil {
		heading = s.heading
	}
	if p.mark != "" && text != "" {
		text = p.mark + " " + text
	}
	switch {
	case text == "":
	case heading > 0:
		out.Add(strings.Repeat("#", min(heading, 6))+" "+strings.Join(strings.Fields(text), " "), block.Plain)
	case p.mark != "":
		r.size += 2 * p.level
		out.Add(strings.Repeat("  ", p.level)+text, block.Item)
	default:
		out.Add(text, block.Plain)
	}
}

// pageBreak adds a line for the end of a page.
func (r *reader) pageBreak() {
	if len(r.frames) == 1 && !r.top().para.inTable {
		r.endParagraph()
		r.add("[page break]")
		r.endParagraph()
	}
}

// endCellDefinition ends the properties of a cell of the row.
func (r *reader) endCellDefinition() {
	f := r.top()
	if len(f.above) < maxShort {
		f.above = append(f.above, f.merged)
	}
	f.merged = false
}

// endCell adds the current cell to the row.
func (r *reader) endCell() {
	f := r.top()
	f.para.inTable = true
	r.endParagraph()
	f.row = append(f.row, f.cell)
	f.cell = &block.Cell{Span: 1}
	r.size += 2
}

// close ends the current paragraph of the innermost frame, and a table whose end is missing.
func (r *reader) close() {
	r.endParagraph()
	f := r.top()
	if len(f.inner) > 0 || f.inCell.Count > 0 {
		r.endInnerCell()
		r.endInnerRow()
	}
	if f.cell.Count > 0 {
		r.endCell()
	}
	r.endRow()
	f.Blocks.End(block.Plain)
}

// endRow writes the current row.
func (r *reader) endRow() {
	f := r.top()
	g := &block.Grid{}
	for i, c := range f.row {
		c.Above = i < len(f.above) && f.above[i]
		g.Add(c)
	}
	f.row = nil
	g.WriteRow(&f.Blocks)
}

// endInnerCell adds the current cell of a table inside a cell.
func (r *reader) endInnerCell() {
	f := r.top()
	f.para.nested = true
	r.endParagraph()
	f.inner = append(f.inner, f.inCell)
	f.inCell = &block.Cell{Span: 1}
	r.size += 2
}

// endInnerRow writes the row of a table inside a cell.
func (r *reader) endInnerRow() {
	f := r.top()
	g := &block.Grid{}
	for _, c := range f.inner {
		g.Add(c)
	}
	f.inner = nil
	g.WriteRow(&f.cell.Blocks)
}
