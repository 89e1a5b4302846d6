package opendocument

import (
	"strconv"
	"strings"

	"journeyman/runner/tool/office/archive"
	"journeyman/runner/tool/office/block"
)

// An openList is a list whose end is not read yet. Lists inside it share its numbers.
type openList struct {
	style  *listStyle
	id     string
	name   string // of its style
	counts [maxDepth + 1]int
	depth  int  // levels that are open
	marked bool // the current item has shown its mark
	items  int  // open items
}

// beginParagraph begins a paragraph, or a heading of a level from 1.
func (f *flow) beginParagraph(attr archive.Attributes, level int) {
	f.endParagraph()
	name := attr.Get("style-name")
	f.top().para = paragraph{heading: level, style: name, open: true, hidden: f.d.styles.hidden("paragraph", name),
		plain: attr.Get("is-list-header") == "true"}
	f.top().spans = nil
	if font := f.d.styles.font("paragraph", name); font != "" {
		f.top().spans = []span{{font: font}}
	}
	f.atEnd((*flow).endParagraph)
}

// endParagraph writes the current paragraph to its frame.
func (f *flow) endParagraph() {
	top := f.top()
	p := top.para
	top.para = paragraph{}
	if !p.open {
		return
	}
	text := strings.TrimSpace(string(p.text))
	mark, depth := "", 0
	if p.heading > 0 {
		mark = f.headingMark(&p)
	}
	if mark == "" {
		mark, depth = f.itemMark(&p)
	}
	if p.heading == 0 && f.d.styles.isTitle(p.style) {
		p.heading = 1
	}
	f.d.size += len(mark) + 2*depth
	if mark != "" && (text != "" || mark != "-") {
		text = strings.TrimSpace(mark + " " + text)
	}
	switch {
	case text == "":
	case p.heading > 0:
		line := strings.Join(strings.Fields(text), " ")
		top.Add(strings.Repeat("#", min(p.heading, 6))+" "+line, block.Plain)
	case depth > 0:
		top.Add(strings.Repeat("  ", depth-1)+text, block.Item)
	case f.d.kind != "":
		top.Add(text, block.Item) // the lines of a text box are short
	default:
		top.Add(text, block.Plain)
	}
	if p.after != nil {
		top.AddAll(p.after.Out.String(), p.after.Count)
	}
}

// headingMark returns the number of a heading.
func (f *flow) headingMark(p *paragraph) string {
	l := f.d.styles.outline
	if p.plain || l[p.heading].format == "" {
		return ""
	}
	f.outline[p.heading] = next(f.outline[p.heading], l[p.heading].start)
	return f.marked(l, p.heading, &f.outline)
}

// next returns the number after n, which is 0 before the first one.
func next(n, start int) int {
	if n == 0 {
		return max(start, 1)
	}
	return n + 1
}

// marked returns the mark of a level, and lets the numbers of deeper levels begin again.
func (f *flow) marked(l *listStyle, at int, counts *[maxDepth + 1]int) string {
	clear(counts[min(at+1, maxDepth+1):])
	shown := *counts
	for i := range at {
		if shown[i] == 0 {
			shown[i] = max(l[i].start, 1)
		}
	}
	return l.mark(at, shown)
}

// itemMark returns the mark of a paragraph in a list, and its depth. Only the first paragraph of an item has a
// mark.
func (f *flow) itemMark(p *paragraph) (mark string, depth int) {
	lists := f.top().lists
	if len(lists) == 0 {
		return "", 0
	}
	l := lists[len(lists)-1]
	if l.style == nil {
		l.style = f.d.styles.lists[f.d.styles.list(p.style)]
	}
	at := min(max(l.depth, 1), maxDepth)
	if l.marked || l.items == 0 {
		return "", at
	}
	l.marked = true
	l.counts[at] = next(l.counts[at], l.level(at).start)
	if l.style == nil {
		return "-", at
	}
	return f.marked(l.style, at, &l.counts), at
}

// level returns a level of the list.
func (l *openList) level(at int) level {
	if l.style == nil {
		return level{start: 1}
	}
	return l.style[at]
}

// beginList begins a list, or a list inside of an item.
func (f *flow) beginList(attr archive.Attributes) {
	f.endParagraph()
	top := f.top()
	if n := len(top.lists); n > 0 {
		l := top.lists[n-1]
		l.depth++
		f.atEnd(func(f *flow) { l.depth--; l.marked = true })
		return
	}
	name := attr.Get("style-name")
	l := &openList{style: f.d.styles.lists[name], name: name, id: attr.Get("id"), depth: 1}
	if id := attr.Get("continue-list"); id != "" {
		l.counts = f.lists["id "+id]
	} else if attr.Get("continue-numbering") == "true" {
		l.counts = f.lists["style "+name]
	}
	top.lists = append(top.lists, l)
	f.atEnd(func(f *flow) {
		f.lists["style "+l.name] = l.counts
		if l.id != "" && len(f.lists) < maxNotes {
			f.lists["id "+l.id] = l.counts
		}
		top.lists = top.lists[:max(len(top.lists)-1, 0)]
	})
}

// beginItem begins an item of a list.
func (f *flow) beginItem(attr archive.Attributes) {
	f.endParagraph()
	lists := f.top().lists
	if len(lists) == 0 {
		return
	}
	l := lists[len(lists)-1]
	l.marked = false
	l.items++
	if n, err := strconv.Atoi(attr.Get("start-value")); err == nil && n > 0 {
		l.counts[min(l.depth, maxDepth)] = n - 1
		if n == 1 {
			l.counts[min(l.depth, maxDepth)] = 0
		}
	}
	f.atEnd(func(f *flow) { f.endParagraph(); l.items--; l.marked = true })
}

// header begins a part of a list without a mark.
func (f *flow) header() {
	if lists := f.top().lists; len(lists) > 0 {
		lists[len(lists)-1].marked = true
	}
}

// beginSpan begins a text with its own style.
func (f *flow) beginSpan(attr archive.Attributes) {
	top := f.top()
	s := span{}
	if n := len(top.spans); n > 0 {
		s = top.spans[n-1]
	}
	name := attr.Get("style-name")
	s.hidden = s.hidden || f.d.styles.hidden("text", name)
	if font := f.d.styles.font("text", name); font != "" {
		s.font = font
	}
	top.spans = append(top.spans, s)
	f.atEnd(func(*flow) { top.spans = top.spans[:max(len(top.spans)-1, 0)] })
}

// beginLink begins a hyperlink.
func (f *flow) beginLink(attr archive.Attributes) {
	target := attr.Get("href")
	if strings.HasPrefix(target, "#") {
		target = "" // a place in the same document
	}
	top := f.top()
	top.para.links = append(top.para.links, link{target, len(top.para.text)})
	f.atEnd(func(f *flow) {
		p := &top.para
		n := len(p.links)
		if n == 0 {
			return
		}
		l := p.links[n-1]
		p.links = p.links[:n-1]
		if l.from <= len(p.text) {
			f.d.size += len(l.target)
			linked := block.Link(string(p.text[l.from:]), l.target)
			p.text = append(p.text[:l.from], linked...)
		}
	})
}

// beginTable begins a table.
func (f *flow) beginTable(archive.Attributes) {
	f.endParagraph()
	top := f.top()
	top.tables = append(top.tables, &openTable{})
	top.image.done = true // the frame of a table also has a picture of it
	f.atEnd(func(*flow) {
		top.tables = top.tables[:max(len(top.tables)-1, 0)]
		top.Blocks.End(block.Plain)
	})
}

// beginRow begins a row.
func (f *flow) beginRow(archive.Attributes) {
	top := f.top()
	f.atEnd(func(f *flow) {
		if n := len(top.tables); n > 0 {
			t := top.tables[n-1]
			t.spanned = 0
			f.d.size += 2 * t.repeats
			t.repeats = 0
			t.WriteRow(&top.Blocks)
		}
	})
}

// beginCell begins a cell. One that is covered belongs to the cell left of it, or above it.
func (f *flow) beginCell(attr archive.Attributes, covered bool) {
	top := f.top()
	var t *openTable
	if n := len(top.tables); n > 0 {
		t = top.tables[n-1]
	}
	f.push()
	f.atEnd(func(f *flow) {
		inner := f.pop()
		if t == nil {
			top.AddAll(inner.Out.String(), inner.Count)
			return
		}
		repeats, _ := strconv.Atoi(attr.Get("number-columns-repeated"))
		for range min(max(repeats, 1), maxSpan) {
			c := &block.Cell{Span: 1, Above: covered && t.spanned == 0}
			c.AddAll(inner.Out.String(), inner.Count)
			t.spanned = max(t.spanned-1, 0)
			t.repeats++
			t.Add(c)
			if f.d.size += inner.Out.Len(); f.d.size > maxText {
				break
			}
		}
		if columns, _ := strconv.Atoi(attr.Get("number-columns-spanned")); !covered {
			t.spanned = min(max(columns-1, 0), maxSpan)
		}
	})
}
