package rtf

import (
	"fmt"
	"strconv"
	"strings"

	"journeyman/runner/tool/office/block"
	"journeyman/runner/tool/office/mark"
)

// beginTarget handles the first word of a group, which says what the group is. It reports whether it was
// such a word.
func (r *reader) beginTarget(name string) bool {
	g := r.now()
	switch name {
	case "fonttbl":
		g.target = fontTable
	case "stylesheet":
		g.target = styleTable
	case "revtbl":
		g.target = authorTable
	case "colortbl", "info", "listtable", "listoverridetable", "nonshppict", "shprslt", "nonesttables", "objdata",
		"filetbl", "rsidtbl", "xe", "tc", "pgdsctbl", "template", "fontemb", "background":
		g.target = nothing
	case "upr":
		g.upper, g.target = g.target, nothing
	case "ud":
		g.target = g.upper
	case "shppict", "shp", "shpinst", "do", "nesttableprops", "picprop", "sp", "formfield", "shpgrp", "generator":
		g.target = properties
	case "field":
		r.beginField()
	default:
		return r.beginText(name)
	}
	return true
}

// beginText handles the first word of a group with text of its own.
func (r *reader) beginText(name string) bool {
	g := r.now()
	switch name {
	case "listtext", "pntext":
		r.short(func(text string) { r.top().para.mark = itemMark(text) })
	case "fldinst":
		r.short(func(text string) { r.field(func(f *field) { f.code.WriteString(text) }) })
	case "fldrslt":
		r.field(func(f *field) { f.from = len(r.top().para.text) })
	case "atnauthor":
		r.short(func(text string) { r.author = text })
	case "atrfstart":
		r.short(func(text string) { r.beginRange(text) })
	case "atrfend":
		r.short(func(text string) { r.endRange(text) })
	case "atnref":
		r.short(func(text string) { r.property = text })
	case "sn":
		r.short(func(text string) { r.property = text })
	case "sv":
		r.short(func(text string) {
			if r.property == "wzDescription" {
				r.alt = strings.Join(strings.Fields(text), " ")
			}
		})
	case "pict":
		r.beginPicture()
	case "footnote":
		r.beginFrame(r.endNote)
	case "annotation":
		r.property = ""
		r.beginFrame(r.endComment)
	case "shptxt", "dptxbxtext":
		r.beginFrame(func(f *frame) { r.follow(f) })
	case "header", "headerl", "headerr", "headerf", "footer", "footerl", "footerr", "footerf":
		kind := strings.TrimSuffix(strings.TrimSuffix(name, "l"), "r")
		if name == "header" || name == "footer" {
			kind = name
		}
		r.beginFrame(func(f *frame) {
			if len(r.margins[kind]) < maxShort {
				r.margins[kind] = append(r.margins[kind], strings.TrimSpace(f.Out.String()))
			}
		})
	default:
		if g.star { // readers that do not know the group skip it
			g.target = nothing
			return true
		}
		return false
	}
	return true
}

// short collects the text of the current group, which goes to use at its end.
func (r *reader) short(use func(text string)) {
	g := r.now()
	outer := g.target
	b := &strings.Builder{}
	g.target, g.short = shortText, b
	g.end = func() {
		if outer != nothing {
			use(strings.TrimSpace(b.String()))
		}
	}
}

// beginFrame begins a container of blocks. At its end, use gets it.
func (r *reader) beginFrame(use func(*frame)) {
	g := r.now()
	g.target, g.hidden, g.verb = body, false, ""
	r.frames = append(r.frames, newFrame())
	depth := len(r.frames)
	g.end = func() {
		if len(r.frames) != depth {
			return
		}
		r.close()
		f := r.top()
		r.frames = r.frames[:depth-1]
		use(f)
	}
}

// endNote keeps a footnote or endnote, and adds its mark to the text.
func (r *reader) endNote(f *frame) {
	kind, format := "footnote", "decimal"
	if f.endnote {
		kind, format = "endnote", "lowerRoman"
	}
	if len(r.notes[kind]) == maxNotes {
		return
	}
	r.notes[kind] = append(r.notes[kind], strings.TrimSpace(f.Out.String()))
	r.add("[^" + mark.Number(len(r.notes[kind]), format) + "]")
}

// endComment keeps a comment, and adds its mark to the text.
func (r *reader) endComment(f *frame) {
	if len(r.comments) == maxNotes {
		return
	}
	author := r.author
	if author == "" {
		author = "somebody"
	}
	r.comments = append(r.comments, comment{author, r.ranges[r.property], strings.TrimSpace(f.Out.String())})
	r.author = ""
	r.add("[comment " + strconv.Itoa(len(r.comments)) + "]")
}

// beginRange begins a text with a comment.
func (r *reader) beginRange(number string) {
	if len(r.openRanges) < 100 && len(r.ranges) < maxNotes {
		r.openRanges = append(r.openRanges, number)
		r.ranges[number] = ""
	}
}

// endRange ends it.
func (r *reader) endRange(number string) {
	for i, open := range r.openRanges {
		if open == number {
			r.openRanges = append(r.openRanges[:i], r.openRanges[i+1:]...)
			return
		}
	}
}

// follow adds the blocks of a text box after the current paragraph.
func (r *reader) follow(f *frame) {
	p := &r.top().para
	if p.after == nil {
		p.after = &block.Blocks{}
	}
	p.after.AddAll(f.Out.String(), f.Count)
}

// beginPicture begins a picture. Its data is no text.
func (r *reader) beginPicture() {
	g := r.now()
	outer := g.target
	g.target, r.alt = properties, ""
	g.end = func() {
		text := "[image]"
		if r.alt != "" {
			text = "[image: " + r.alt + "]"
		}
		if outer == nothing {
			return
		}
		g := r.now()
		g.target = body
		r.add(text)
	}
}

// beginField begins a field. Only its result is text.
func (r *reader) beginField() {
	r.fields = append(r.fields, &field{checked: 25})
	f := r.fields[len(r.fields)-1]
	f.from = len(r.top().para.text)
	n := len(r.fields)
	r.now().end = func() {
		r.fields = r.fields[:n-1]
		r.endField(f)
	}
}

// endField adds the target of a link, or the state of a box.
func (r *reader) endField(f *field) {
	words := strings.Fields(f.code.String())
	p := &r.top().para
	switch {
	case len(words) == 0 || f.from > len(p.text):
	case strings.EqualFold(words[0], "FORMCHECKBOX"):
		if f.checked == 1 || f.checked == 25 && f.usual == 1 {
			r.add("☒")
		} else {
			r.add("☐")
		}
	case strings.EqualFold(words[0], "HYPERLINK") && len(words) > 1 && !strings.HasPrefix(words[1], `\`):
		target := strings.Trim(words[1], `"`)
		r.size += len(target)
		linked := block.Link(string(p.text[f.from:]), target)
		p.text = append(p.text[:f.from], linked...)
	}
}

// field changes the innermost field.
func (r *reader) field(change func(*field)) {
	if n := len(r.fields); n > 0 {
		change(r.fields[n-1])
	}
}

// box changes the state of a box to tick.
func (r *reader) box(change func(*field)) { r.field(change) }

// itemMark returns the mark of an item of a list. Bullets have no meaning, other signs have.
func itemMark(text string) string {
	for _, c := range text {
		if c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c > 0x3000 {
			return text
		}
	}
	if text == "" {
		return ""
	}
	return mark.Bullet("", text)
}

// appendix adds notes, comments and tracked changes.
func (r *reader) appendix(b *strings.Builder) {
	for _, kind := range []struct{ name, format string }{{"footnote", "decimal"}, {"endnote", "lowerRoman"}} {
		if len(r.notes[kind.name]) > 0 {
			fmt.Fprintf(b, "[%ss]\n\n", kind.name)
		}
		for i, text := range r.notes[kind.name] {
			fmt.Fprintf(b, "[^%s]: %s\n\n", mark.Number(i+1, kind.format), text)
		}
	}
	if len(r.comments) > 0 {
		b.WriteString("[comments]\n\n")
	}
	for i, c := range r.comments {
		fmt.Fprintf(b, "[comment %d] %s", i+1, c.author)
		if about := strings.TrimSpace(strings.ToValidUTF8(c.about, "")); about != "" {
			b.WriteString(" on " + strconv.Quote(about))
		}
		b.WriteString(": " + c.text + "\n\n")
	}
	if len(r.changes) > 0 {
		b.WriteString("[tracked changes: the text above has what was inserted, and lacks what was deleted]\n\n")
		for _, c := range r.changes {
			b.WriteString("- " + c.author + " " + c.verb + " " + strconv.Quote(strings.ToValidUTF8(c.text, "")) + "\n")
		}
		b.WriteByte('\n')
	}
}
