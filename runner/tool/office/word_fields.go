package office

import (
	"strconv"
	"strings"

	"journeyman/runner/tool/office/block"
)

// A field is an open field, such as the number of a page or a link. Only its result is text.
type field struct {
	code    string
	result  bool // its result has begun
	link    bool // it is a link
	box     string
	entries []string // choices of a form field
	chosen  int
}

// form changes the innermost field.
func (f *flow) form(change func(*field)) {
	if n := len(f.fields); n > 0 {
		change(&f.fields[n-1])
	}
}

// choose sets the state of a box or the chosen entry.
func (v *field) choose(attr attributes) {
	if v.box != "" {
		v.box = "☐"
		if isOn(attr) {
			v.box = "☒"
		}
		return
	}
	v.chosen, _ = strconv.Atoi(attr.get("val"))
}

// entry adds a choice.
func (v *field) entry(text string) {
	if len(v.entries) < maxChoices {
		v.entries = append(v.entries, text)
	}
}

// shown returns what a form field shows beside its result.
func (v *field) shown() string {
	if v.chosen >= 0 && v.chosen < len(v.entries) {
		return v.entries[v.chosen]
	}
	return v.box
}

// fieldMark begins a field, its result, or ends it.
func (f *flow) fieldMark(attr attributes) {
	n := len(f.fields)
	switch kind := attr.get("fldCharType"); {
	case kind == "begin":
		f.fields = append(f.fields, field{})
		f.codes++
	case n == 0:
	case kind == "separate" && !f.fields[n-1].result:
		f.beginResult(&f.fields[n-1])
	case kind == "end":
		v := f.fields[n-1]
		f.fields = f.fields[:n-1]
		if !v.result {
			f.codes--
		}
		f.add(v.shown())
		if v.link {
			f.closeLink()
		}
	}
}

// beginResult begins the result of a field.
func (f *flow) beginResult(v *field) {
	v.result = true
	f.codes--
	if target := linkOf(v.code); target != "" {
		v.link = true
		f.openLink(target)
	}
}

// linkOf returns the address in the code of a field, such as HYPERLINK "https://…". It returns "" for other
// fields and for places in the same document.
func linkOf(code string) string {
	name, rest, _ := strings.Cut(strings.TrimSpace(code), " ")
	if !strings.EqualFold(name, "HYPERLINK") {
		return ""
	}
	rest = strings.TrimSpace(rest)
	if quoted, ok := strings.CutPrefix(rest, `"`); ok {
		target, _, _ := strings.Cut(quoted, `"`)
		return target
	}
	target, _, _ := strings.Cut(rest, " ")
	if strings.HasPrefix(target, `\`) {
		return ""
	}
	return target
}

// openLink begins a link in the current paragraph.
func (f *flow) openLink(target string) {
	p := &f.top().para
	p.links = append(p.links, link{target, len(p.text)})
}

// closeLink ends a link. It adds the target, unless the text says it.
func (f *flow) closeLink() {
	p := &f.top().para
	n := len(p.links)
	if n == 0 {
		return
	}
	l := p.links[n-1]
	p.links = p.links[:n-1]
	if l.from > len(p.text) {
		return
	}
	linked := block.Link(string(p.text[l.from:]), l.target)
	f.size += len(l.target)
	p.text = append(p.text[:l.from], linked...)
}

// A picture is the current picture or drawing of a frame.
type picture struct{ alt, target string }

// describe reads the description that an author gave a picture.
func (p *picture) describe(attr attributes) {
	for _, text := range []string{attr.get("descr"), attr.get("title")} {
		if p.alt == "" {
			p.alt = strings.Join(strings.Fields(text), " ")
		}
	}
}

// text returns a note with the file of the picture, "" if it has no file.
func (p *picture) text() string { return block.Image(p.target, p.alt) }

// refer sets the file of the current picture.
func (f *flow) refer(ids ...string) {
	for _, id := range ids {
		if p := &f.top().picture; p.target == "" {
			p.target = f.related[id].target
		}
	}
}

// endPicture adds the note about the current picture.
func (f *flow) endPicture() {
	f.add(f.top().picture.text())
	f.top().picture = picture{}
}

// file adds a note about a file that the document includes.
func (f *flow) file(kind, id string) {
	if target := f.related[id].target; target != "" {
		f.add("[" + kind + " " + target + "]")
	}
}

// attach adds the text of a chart or diagram after the current paragraph.
func (f *flow) attach(read func(name string) (string, error), id string) {
	text, err := read(f.related[id].target)
	if err != nil {
		f.err = err
	}
	f.top().para.follow(text, 1)
	f.size += len(text)
}

// follow adds blocks after the paragraph.
func (p *paragraph) follow(text string, count int) {
	if p.after == nil {
		p.after = &block.Blocks{}
	}
	p.after.AddAll(text, count)
}
