package opendocument

import (
	"encoding/xml"
	"path"
	"strconv"
	"strings"

	"journeyman/runner/tool/office/archive"
	"journeyman/runner/tool/office/block"
)

// maxRanges is the maximum number of open texts with comments or changes.
const maxRanges = 100

// onPage reports whether the current element can be a shape on a slide.
func (f *flow) onPage() bool { return f.d.kind != "" && len(f.frames) == 1 && len(f.d.pages) > 0 }

// collect reads an element with a short text, which goes to use.
func (f *flow) collect(use func(f *flow, text string)) {
	f.push()
	f.top().para.open, f.top().apart = true, true
	f.atEnd(func(f *flow) {
		text := strings.Join(strings.Fields(string(f.top().para.text)), " ")
		f.top().para = paragraph{}
		f.pop()
		use(f, text)
	})
}

// author sets the author of the open comment or change.
func (f *flow) author(name string) {
	switch {
	case name == "":
	case f.comment != nil:
		f.comment.author = name
	case f.region != nil:
		f.region.author = name
	}
}

// date leaves out the date of a comment or change. Other dates are fields, which are text.
func (f *flow) date(archive.Attributes) {
	if f.comment != nil || f.region != nil {
		f.collect(func(*flow, string) {})
	}
}

// describe sets the description of the current drawing.
func (f *flow) describe(text string) {
	if i := &f.top().image; i.alt == "" {
		i.alt = text
	}
}

// beginNote begins a footnote or an endnote.
func (f *flow) beginNote(attr archive.Attributes) {
	kind := attr.Get("note-class")
	if kind != "endnote" {
		kind = "footnote"
	}
	f.d.notes[kind] = append(f.d.notes[kind], note{})
	at := len(f.d.notes[kind]) - 1
	f.push() // the body of the note
	f.atEnd(func(f *flow) {
		inner := f.pop()
		n := &f.d.notes[kind][at]
		n.mark = strings.TrimSpace(inner.note)
		n.text = strings.TrimSpace(inner.Out.String())
		f.add("[^" + n.mark + "]")
	})
}

// endCitation keeps the mark of the open note.
func (f *flow) endCitation() {
	mark := string(f.top().para.text)
	f.top().para = paragraph{}
	f.pop()
	f.top().note = mark[:min(len(mark), 50)]
}

// beginComment begins a comment.
func (f *flow) beginComment(attr archive.Attributes) {
	if f.comment != nil || len(f.d.comments) == maxNotes {
		f.push()
		f.atEnd(func(f *flow) { f.pop() })
		return
	}
	f.d.comments = append(f.d.comments, comment{author: "somebody"})
	number := len(f.d.comments)
	c := &comment{author: "somebody", done: attr.Get("resolved") == "true"}
	f.comment = c
	name := attr.Get("name")
	f.push()
	f.atEnd(func(f *flow) {
		inner := f.pop()
		f.comment = nil
		c.text = strings.TrimSpace(inner.Out.String())
		c.about = f.d.comments[number-1].about
		f.d.comments[number-1] = *c
		if name == "" || f.d.kind != "" {
			f.add(commentMark(number))
			return
		}
		f.d.numbers[name] = number
		if len(f.about) < maxRanges {
			f.about = append(f.about, name)
		}
	})
}

// endComment ends the text that a comment is about.
func (f *flow) endComment(name string) {
	if number := f.d.numbers[name]; number > 0 {
		f.about = remove(f.about, name)
		f.add(commentMark(number))
	}
}

// beginRegion begins the description of a tracked change.
func (f *flow) beginRegion(id string) {
	if len(f.d.order) == maxNotes {
		return
	}
	f.region = &change{author: "somebody"}
	f.d.changes[id] = f.region
	f.d.order = append(f.d.order, id)
	f.changed = append(f.changed[:0], id) // collects the text that was deleted
	f.atEnd(func(f *flow) { f.region, f.changed = nil, f.changed[:0] })
}

// verb sets the kind of a tracked change.
func (f *flow) verb(verb string) {
	if f.region != nil {
		f.region.verb = verb
	}
}

// beginChange begins a text that was inserted.
func (f *flow) beginChange(id string) {
	if len(f.changed) < maxRanges {
		f.changed = append(f.changed, id)
	}
}

// endChange ends it.
func (f *flow) endChange(id string) { f.changed = remove(f.changed, id) }

// beginBox begins a text box. Its blocks follow the paragraph in which it is.
func (f *flow) beginBox() {
	f.push()
	f.atEnd(func(f *flow) {
		inner := f.pop()
		f.follow(inner.Out.String(), inner.Count)
	})
}

// follow adds blocks after the current paragraph.
func (f *flow) follow(text string, count int) {
	top := f.top()
	if !top.para.open {
		top.AddAll(text, count)
		return
	}
	if top.para.after == nil {
		top.para.after = &block.Blocks{}
	}
	top.para.after.AddAll(text, count)
}

// beginImage keeps the file of a picture. Further ones in the same frame are copies in other formats.
func (f *flow) beginImage(attr archive.Attributes) {
	i := &f.top().image
	if i.done {
		return
	}
	i.done = true
	i.file = attr.Get("href")
	i.embedded = i.file == ""
}

// beginFrame begins the frame of a picture or text box.
func (f *flow) beginFrame() {
	top := f.top()
	top.image = image{}
	f.atEnd(func(f *flow) {
		i := top.image
		top.image = image{}
		text := block.Image(i.file, i.alt)
		switch {
		case i.embedded && i.alt != "":
			text = "[image: " + i.alt + "]"
		case i.embedded:
			text = "[image]"
		}
		if text == "" {
			return
		}
		if top.para.open {
			f.add(text)
			return
		}
		f.d.size += len(text)
		top.Add(text, block.Plain)
	})
}

// beginShape begins a shape on a slide.
func (f *flow) beginShape(attr archive.Attributes) {
	place, kind := placeOf(attr), attr.Get("class")
	empty := attr.Get("placeholder") == "true" || kind == "page-number"
	on := f.d.pages[len(f.d.pages)-1]
	f.push()
	f.beginFrame()
	framed := f.open[len(f.open)-1]
	f.atEnd(func(f *flow) {
		framed(f)
		inner := f.pop()
		if !empty {
			on.shapes = append(on.shapes, &shape{place, inner.Out.String()})
		}
	})
}

// beginPage begins a slide.
func (f *flow) beginPage(attr archive.Attributes) {
	if f.part != "body" || f.d.kind == "" || len(f.frames) > 1 {
		return
	}
	if len(f.d.pages) == maxSlides {
		f.err = archive.ErrEnough
		return
	}
	p := &page{hidden: f.d.styles.hidden("drawing-page", attr.Get("style-name"))}
	f.d.pages = append(f.d.pages, p)
	f.atEnd(func(f *flow) {
		f.endParagraph()
		p.AddAll(f.frames[0].Out.String(), f.frames[0].Count) // text outside of shapes
		f.frames[0] = &frame{}
	})
}

// beginPageNotes begins the notes of a slide.
func (f *flow) beginPageNotes(archive.Attributes) {
	if !f.onPage() {
		return
	}
	on := f.d.pages[len(f.d.pages)-1]
	f.push()
	f.atEnd(func(f *flow) {
		on.notes = strings.TrimSpace(f.pop().Out.String())
	})
}

// beginMargin begins a header or footer.
func (f *flow) beginMargin(kind string, attr archive.Attributes) {
	if f.part != "master-styles" {
		return
	}
	shown := attr.Get("display") != "false"
	f.push()
	f.atEnd(func(f *flow) {
		text := f.pop().Out.String()
		if all := f.d.styles.margins; shown && len(all[kind]) < maxRanges {
			all[kind] = append(all[kind], marginText{f.master, text})
		}
	})
}

// object adds the text of an embedded chart or formula, which is a document of its own.
func (f *flow) object(href string) {
	i := &f.top().image
	if i.done {
		return
	}
	i.done = true
	folder := strings.TrimPrefix(path.Clean("/"+href), "/")
	name := folder + "/content.xml"
	if f.d.r.Files[name] == nil {
		if href != "" {
			f.follow("[embedded file "+folder+"]", 1)
		}
		return
	}
	text, ok := f.d.drawings[name]
	if !ok {
		v := &objectReader{flow: newFlow(&document{r: f.d.r, styles: newStyles(), notes: map[string][]note{},
			numbers: map[string]int{}, changes: map[string]*change{}, drawings: map[string]string{name: ""}}, "body")}
		if _, err := f.d.r.Parse(name, v); err != nil {
			f.err = err
		}
		text = v.text()
		f.d.drawings[name] = text
	}
	f.d.size += len(text)
	f.follow(text, 1)
}

// An objectReader reads a chart or a formula.
type objectReader struct {
	flow    *flow
	formula strings.Builder
	chart   string // its kind, "" if the object is no chart
	math    bool   // inside a formula
	source  bool   // inside the source of a formula
}

// Start begins an element.
func (v *objectReader) Start(name xml.Name, attr archive.Attributes) error {
	switch name.Local {
	case "math":
		v.math = true
	case "annotation":
		v.source = v.math
	case "chart":
		if kind := attr.Get("class"); kind != "" {
			v.chart = kind[strings.LastIndex(kind, ":")+1:]
		}
	}
	if v.math {
		return nil
	}
	return v.flow.Start(name, attr)
}

// End ends an element.
func (v *objectReader) End(name xml.Name) error {
	if v.math {
		v.source = v.source && name.Local != "annotation"
		v.math = name.Local != "math"
		return nil
	}
	return v.flow.End(name)
}

// Text keeps the source of a formula, or text of a chart.
func (v *objectReader) Text(text string) error {
	if !v.math {
		return v.flow.Text(text)
	}
	if v.source && v.formula.Len() < maxText/100 {
		v.formula.WriteString(text)
	}
	return nil
}

// text returns the object as text.
func (v *objectReader) text() string {
	if formula := strings.Join(strings.Fields(v.formula.String()), " "); formula != "" {
		return "[formula: " + formula + "]"
	}
	v.flow.endParagraph()
	text := strings.TrimSpace(v.flow.frames[0].Out.String())
	if v.chart != "" {
		text = "[chart, " + v.chart + "]\n" + text
	}
	return text
}

// commentMark returns the mark of a comment in the text.
func commentMark(number int) string { return "[comment " + strconv.Itoa(number) + "]" }

// pagesOf begins a document of slides or drawings.
func (f *flow) pagesOf(kind string) {
	if f.part == "body" && len(f.frames) == 1 && f.d.kind == "" {
		f.d.kind = kind
	}
}
