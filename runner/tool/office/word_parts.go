package office

import (
	"slices"
	"strconv"
	"strings"

	"journeyman/runner/tool/office/block"
	"journeyman/runner/tool/office/mark"
)

// Limits of what one place of a text can hold.
const (
	maxRanges    = 100  // open texts with comments
	maxFieldCode = 2000 // bytes
	maxChoices   = 100  // choices of a form field
)

// property reads a property of a paragraph, text, row, cell or section.
func (f *flow) property(name string, attr attributes) {
	top := f.top()
	switch f.owner {
	case "pPr":
		f.paragraphProperty(name, attr)
	case "rPr":
		top.run.property(name, attr, f.w.styles)
	case "tcPr":
		cellProperty(&top.Cell, name, attr)
	case "trPr":
		if n := len(top.tables); n > 0 {
			rowProperty(top.tables[n-1], name, attr)
		}
	case "sectPr":
		f.section.property(name, attr)
	}
}

// property reads a property of a text.
func (r *run) property(name string, attr attributes, all styles) {
	switch name {
	case "vanish":
		r.hidden = isOn(attr)
	case "rStyle":
		r.hidden = r.hidden || all.hidden(attr.get("val"))
	case "rFonts":
		r.font = attr.get("ascii")
	}
}

// cellProperty reads a property of a cell.
func cellProperty(c *block.Cell, name string, attr attributes) {
	switch name {
	case "gridSpan":
		n, _ := strconv.Atoi(attr.get("val"))
		c.Span = min(max(n, 1), block.MaxSpan)
	case "vMerge":
		c.Above = attr.get("val") != "restart"
	}
}

// rowProperty reads a property of the current row.
func rowProperty(t *block.Grid, name string, attr attributes) {
	switch name {
	case "gridBefore":
		n, _ := strconv.Atoi(attr.get("val"))
		t.Before = min(max(n, 0), block.MaxSpan)
	case "del":
		t.Removed, t.Author = true, attr.get("author")
	}
}

// property reads a property of a section.
func (s *section) property(name string, attr attributes) {
	switch name {
	case "titlePg":
		s.first = isOn(attr)
	case "headerReference", "footerReference":
		s.refs = append(s.refs, marginRef{strings.TrimSuffix(name, "Reference"), attr.get("type"), attr.get("r:id")})
	}
}

// paragraphProperty reads a property of a paragraph, or of the last section that ends with it.
func (f *flow) paragraphProperty(name string, attr attributes) {
	p := &f.top().para
	switch name {
	case "pStyle":
		p.style = attr.get("val")
		p.hidden = f.w.styles.hidden(p.style)
	case "outlineLvl":
		p.heading = levelOf(attr.get("val"), -1) + 1 // ECMA-376: 0 is the first level, 9 is text
	case "numPr":
		p.item = true
	case "ilvl":
		p.level = levelOf(attr.get("val"), 0)
	case "numId":
		p.list = attr.get("val")
	case "del":
		p.joined = true
	default:
		f.section.property(name, attr)
	}
}

// endSection keeps the headers and footers that the pages of a section show.
func (f *flow) endSection() {
	for _, ref := range f.section.refs {
		if ref.pages == "first" && !f.section.first || ref.pages == "even" && !f.w.evenOdd {
			continue
		}
		f.w.margin(ref.kind, f.related[ref.id].target)
	}
	f.section = section{}
}

// beginParagraph begins a paragraph. It continues one whose end was deleted.
func (f *flow) beginParagraph(attr attributes) {
	top := f.top()
	next := paragraph{heading: -1, level: -1, open: true}
	if top.para.joined {
		next.text, next.after = top.para.text, top.para.after
	} else {
		f.endParagraph() // a text box can be a paragraph inside the paragraph of its anchor
	}
	top.para = next
	top.run = run{}
	top.note.paragraph = attr.get("paraId")
}

// endParagraph writes the current paragraph to its frame.
func (f *flow) endParagraph() {
	top := f.top()
	p := top.para
	if p.joined {
		return
	}
	top.para = paragraph{heading: -1, level: -1}
	text := strings.TrimSpace(string(p.text))
	heading := p.heading
	if heading < 0 {
		heading = f.w.styles.heading(p.style)
	}
	number, level, item := f.number(&p)
	if item && number != "" && (text != "" || number != "-") {
		text = strings.TrimSpace(number + " " + text)
	}
	f.size += len(number)
	switch {
	case text == "":
	case heading > 0:
		// Markdown has six levels, while Word has nine.
		line := strings.Join(strings.Fields(text), " ")
		top.Add(strings.Repeat("#", min(heading, 6))+" "+line, block.Plain)
	case item && number != "":
		top.Add(strings.Repeat("  ", level)+text, block.Item)
	default:
		top.Add(text, block.Plain)
	}
	if p.after != nil {
		top.AddAll(p.after.Out.String(), p.after.Count)
	}
}

// number returns the mark of a paragraph in a list, and counts it. item is false for other paragraphs.
func (f *flow) number(p *paragraph) (number string, level int, item bool) {
	id, level, owner := f.w.styles.list(p.style)
	if id != "" {
		level = f.w.numbers.level(id, owner, level)
	}
	if p.list != "" {
		id, level = p.list, 0
	}
	if p.level >= 0 {
		level = p.level
	}
	if !p.open || !p.item && id == "" || id == "0" {
		return "", 0, false
	}
	return f.w.numbers.next(id, level), level, true
}

// endCell adds the innermost frame to its row.
func (f *flow) endCell() {
	inner := f.pop()
	top := f.top()
	if n := len(top.tables); n > 0 {
		top.tables[n-1].Add(&inner.Cell)
		return
	}
	top.AddAll(inner.Out.String(), inner.Count)
}

// endRow writes a row, unless it was deleted.
func (f *flow) endRow() {
	top := f.top()
	n := len(top.tables)
	if n == 0 {
		return
	}
	if t := top.tables[n-1]; t.Removed {
		f.w.changed(change{t.Author, "deleted the row", t.Line()})
		*t = block.Grid{}
		return
	}
	top.tables[n-1].WriteRow(&top.Blocks)
	if top.Out.Len() > 2*maxText {
		f.err = errEnough // only marks and empty cells make a result so much longer than its text
	}
}

// endTable ends the innermost table.
func (f *flow) endTable() {
	top := f.top()
	if n := len(top.tables); n > 0 {
		top.tables = top.tables[:n-1]
	}
	top.End(block.Plain)
}

// beginNote begins a note or a comment.
func (f *flow) beginNote(attr attributes) {
	f.push()
	f.top().note = note{id: attr.get("id"), author: attr.get("author")}
	// Lines between the text and its notes are stored as notes, too.
	if kind := attr.get("type"); kind != "" && kind != "normal" {
		f.top().note.id = ""
	}
}

// endNote keeps a note or a comment.
func (f *flow) endNote() {
	inner := f.pop()
	n, root := inner.note, f.frames[0]
	if n.id == "" {
		return
	}
	if n.author == "" {
		n.author = "somebody"
	}
	n.text = strings.TrimSpace(inner.Out.String())
	if root.notes == nil {
		root.notes = map[string]note{}
	}
	root.notes[n.id] = n
	root.noteOrder = append(root.noteOrder, n.id)
}

// noteMark adds the mark of a footnote or an endnote.
func (f *flow) noteMark(kind int, format string, attr attributes) {
	f.add("[^" + mark.Number(f.w.notes[kind].mark(attr.get("id")), format) + "]")
}

// quote adds text to the texts with comments that have not ended.
func (f *flow) quote(text string) {
	for i := range f.about {
		f.about[i].text = appendUpTo(f.about[i].text, text, maxQuoted)
	}
}

// endQuoted ends a text with a comment.
func (f *flow) endQuoted(id string) {
	i := slices.IndexFunc(f.about, func(q quoted) bool { return q.id == id })
	if i < 0 {
		return
	}
	if f.w.comments.about == nil {
		f.w.comments.about = map[string]string{}
	}
	f.w.comments.about[id] = strings.ToValidUTF8(f.about[i].text, "")
	f.about = slices.Delete(f.about, i, i+1)
}

// beginChange begins an insertion or a deletion.
func (f *flow) beginChange(verb string, attr attributes) {
	author := attr.get("author")
	if author == "" {
		author = "somebody"
	}
	f.changes = append(f.changes, change{author: author, verb: verb})
}

// endChange ends an insertion or a deletion.
func (f *flow) endChange() {
	if n := len(f.changes); n > 0 {
		f.w.changed(f.changes[n-1])
		f.changes = f.changes[:n-1]
	}
}
