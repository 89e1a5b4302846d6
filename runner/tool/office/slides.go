package office

import (
	"fmt"
	"slices"
	"strings"

	"journeyman/runner/tool/office/block"
)

// maxSlides is the maximum number of slides that are read.
const maxSlides = 2000

// A presentation is a pptx document during reading.
type presentation struct {
	d       *document
	authors map[string]string                  // names of the authors of comments, by their ids
	layouts map[string]map[string]block.Bounds // places that layouts and masters give to the shapes of slides
}

// Pptx returns the text of a presentation, slide by slide, with the speaker's notes.
func Pptx(data []byte, expired func() bool) ([]byte, error) {
	d, err := open(data, expired)
	if err != nil {
		return nil, err
	}
	p := &presentation{d: d, authors: map[string]string{}, layouts: map[string]map[string]block.Bounds{}}
	return d.finish(p.read())
}

// read reads the slides in the order of the presentation. The names of their files do not determine it.
func (p *presentation) read() error {
	root := "ppt/presentation.xml"
	roots, err := p.d.relations("")
	if err != nil {
		return err
	}
	for _, r := range sorted(roots, "officeDocument") {
		root = r.target
	}
	order := &slideOrder{}
	found, err := p.d.parse(root, order)
	if err == nil && !found {
		err = errDamaged
	}
	if err != nil {
		return err
	}
	targets, err := p.d.relations(root)
	for _, r := range append(sorted(targets, "commentAuthors"), sorted(targets, "authors")...) {
		if err == nil {
			_, err = p.d.parse(r.target, &authorReader{names: p.authors})
		}
	}
	first := map[string]int{}
	for i, id := range order.ids {
		if err != nil {
			return err
		}
		if i == maxSlides {
			return errEnough
		}
		title, target := fmt.Sprintf("slide %d of %d", i+1, len(order.ids)), targets[id].target
		if first[target] > 0 {
			p.d.note("[%s: the same as slide %d]\n\n", title, first[target])
			continue
		}
		first[target] = i + 1
		err = p.slide(target, title)
	}
	return err
}

// slide writes the text of one slide, its notes and its comments.
func (p *presentation) slide(name, title string) error {
	related, err := p.d.relations(name)
	if err != nil {
		return err
	}
	v := &slideReader{d: p.d, related: related}
	_, err = p.d.parse(name, v)
	if v.hidden {
		title += ", hidden"
	}
	p.d.note("[%s]\n", title)
	if err == nil {
		err = p.place(v, name)
	}
	before := p.d.out.Len()
	for _, s := range inOrder(v.shapes) {
		if wrote := p.d.write(s.text()); wrote != nil {
			return wrote
		}
	}
	for _, kind := range []string{"notesSlide", "comments"} {
		for _, r := range sorted(related, kind) {
			if err == nil {
				err = p.beside(r)
			}
		}
	}
	if p.d.out.Len() == before {
		p.d.note("\n")
	}
	return err
}

// sorted returns the relations of one kind in the order of their targets.
func sorted(related map[string]relation, kind string) (found []relation) {
	for _, r := range related {
		if r.kind == kind {
			found = append(found, r)
		}
	}
	slices.SortFunc(found, func(a, b relation) int { return strings.Compare(a.target, b.target) })
	return found
}

// beside writes the notes or the comments of a slide.
func (p *presentation) beside(r relation) error {
	if r.kind == "comments" {
		v := &slideComments{names: p.authors}
		_, err := p.d.parse(r.target, v)
		if wrote := p.d.write(v.out.String()); err == nil {
			err = wrote
		}
		return err
	}
	related, err := p.d.relations(r.target)
	if err != nil {
		return err
	}
	v := &slideReader{d: p.d, related: related}
	_, err = p.d.parse(r.target, v)
	var text strings.Builder
	for _, s := range v.shapes {
		// The page of the notes also has the slide, its number, a date, a header and a footer.
		if !s.standard || s.kind == "body" {
			text.WriteString(s.text())
		}
	}
	if words := strings.TrimSpace(text.String()); words != "" {
		p.d.note("[notes]\n")
		if wrote := p.d.write(words + "\n\n"); err == nil {
			err = wrote
		}
	}
	return err
}

// place sets the places of shapes that the layout or its master determines.
func (p *presentation) place(v *slideReader, name string) error {
	for range 2 { // the layout, then its master
		name = nextLayout(p.d, name)
		if p.d.files[name] == nil {
			return nil
		}
		places, ok := p.layouts[name]
		if !ok {
			layout := &slideReader{d: p.d, places: true}
			if _, err := p.d.parse(name, layout); err != nil {
				return err
			}
			places = layout.standardPlaces()
			p.layouts[name] = places
		}
		for _, s := range v.shapes {
			if s.standard && !s.place.Known {
				s.place.Bounds, s.place.Known = s.placeIn(places)
			}
		}
	}
	return nil
}

// nextLayout returns the file of the layout of a slide, or of the master of a layout. Without one it
// returns "".
func nextLayout(d *document, name string) string {
	related, err := d.relations(name)
	if err != nil {
		return "" // the place is not essential
	}
	for _, kind := range []string{"slideLayout", "slideMaster"} {
		for _, r := range sorted(related, kind) {
			if !strings.Contains(name, "slideMasters/") {
				return r.target
			}
		}
	}
	return ""
}

// A slideOrder finds the relation ids of the slides, in the order of the presentation.
type slideOrder struct {
	ignoreText
	ids []string
}

func (v *slideOrder) start(name string, attr attributes) error {
	if name == "sldId" {
		v.ids = append(v.ids, attr.get("r:id"))
	}
	if len(v.ids) > maxEntries {
		return fmt.Errorf("it has more than %d slides", maxEntries)
	}
	return nil
}

// An authorReader reads the names of authors.
type authorReader struct {
	ignoreText
	names map[string]string
}

func (v *authorReader) start(name string, attr attributes) error {
	if name == "cmAuthor" || name == "author" {
		v.names[attr.get("id")] = attr.get("name")
	}
	return nil
}

// A slideComments reads the comments of a slide.
type slideComments struct {
	names  map[string]string
	out    strings.Builder
	inText bool
}

func (v *slideComments) start(name string, attr attributes) error {
	switch name {
	case "cm", "reply":
		verb := map[string]string{"cm": "", "reply": " answers"}[name]
		author := v.names[attr.get("authorId")]
		if author == "" {
			author = "somebody"
		}
		if v.out.Len() > 0 {
			v.out.WriteByte('\n')
		}
		v.out.WriteString("[comment] " + author + verb + ": ")
	case "t", "text":
		v.inText = true
	}
	return nil
}

func (v *slideComments) end(name string) error {
	switch name {
	case "t", "text":
		v.inText = false
	case "cmLst":
		v.out.WriteString("\n\n")
	}
	return nil
}

func (v *slideComments) text(text string) error {
	if v.inText && v.out.Len() <= maxText {
		v.out.WriteString(text)
	}
	return nil
}
