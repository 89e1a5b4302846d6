package office

import (
	"fmt"
	"slices"
	"strings"
)

// A flow converts the paragraphs and tables of a docx document or of a slide. Both use the same
// names of elements, apart from the namespace.
type flow struct {
	d      *document
	styles map[string]int // level of each heading style; nil on slides

	paragraph strings.Builder
	heading   int        // heading level of the paragraph, 0 for text
	item      int        // list level of the paragraph, from 1; 0 outside of lists
	inText    bool       // inside an element t: only its text is used
	skip      int        // number of open elements inside an omitted part
	tables    []tableRow // one row for each open table, the outermost first
}

// A tableRow is the current row of an open table.
type tableRow struct {
	cells []string        // cells that have ended
	cell  strings.Builder // the current cell
	rows  int             // rows that have ended
}

func (f *flow) start(name string, attr attributes) error {
	switch {
	// Fallback contains a copy of a drawing for older programs (ECMA-376 part 3). moveFrom
	// contains moved text at its old place, and moveTo at the new one.
	case f.skip > 0 || name == "Fallback" || name == "moveFrom":
		f.skip++
	case name == "p":
		// A text box of a drawing contains paragraphs inside the paragraph of its anchor.
		err := f.endParagraph()
		f.heading, f.item = 0, 0
		return err
	case name == "pStyle":
		f.heading = f.styles[attr.get("val")]
	case name == "outlineLvl":
		f.heading = 1 + levelOf(attr.get("val"), f.heading-1) // ECMA-376: 0 is the first level
	case name == "numPr":
		f.item = 1
	case name == "ilvl" && f.item > 0:
		f.item = 1 + levelOf(attr.get("val"), 0)
	case name == "t":
		f.inText = true
	// In the properties of a paragraph, before its text, tab defines a tab stop.
	case name == "tab" && f.paragraph.Len() > 0:
		f.paragraph.WriteByte('\t')
	case name == "br" || name == "cr":
		f.paragraph.WriteByte('\n')
	case name == "noBreakHyphen":
		f.paragraph.WriteByte('-')
	case name == "tbl":
		f.tables = append(f.tables, tableRow{})
	}
	return nil
}

// levelOf returns the level from 0 to 8 in text. For any other text it returns none.
func levelOf(text string, none int) int {
	if len(text) == 1 && text[0] >= '0' && text[0] <= '8' {
		return int(text[0] - '0')
	}
	return none
}

func (f *flow) text(text string) error {
	if f.inText && f.skip == 0 {
		f.paragraph.WriteString(text)
		if f.paragraph.Len() > maxText {
			return errEnough
		}
	}
	return nil
}

func (f *flow) end(name string) error {
	// start counted this element, too, so skip is 0 again after the end of the omitted part.
	if f.skip > 0 {
		f.skip--
		return nil
	}
	switch name {
	case "t":
		f.inText = false
	case "p":
		return f.endParagraph()
	case "tc":
		if t := f.table(); t != nil {
			t.cells = append(t.cells, strings.TrimSpace(t.cell.String()))
			t.cell = strings.Builder{}
		}
	case "tr":
		return f.endRow()
	case "tbl":
		if len(f.tables) > 0 {
			f.tables = f.tables[:len(f.tables)-1]
		}
		// An inner table ends within a cell, which must contain no empty line.
		if len(f.tables) == 0 {
			return f.d.write("\n")
		}
	}
	return nil
}

// table returns the current row of the innermost open table, nil outside of tables.
func (f *flow) table() *tableRow {
	if len(f.tables) == 0 {
		return nil
	}
	return &f.tables[len(f.tables)-1]
}

// endParagraph writes the current paragraph. Inside a table it adds the text to the cell.
func (f *flow) endParagraph() error {
	text := strings.TrimSpace(f.paragraph.String())
	f.paragraph.Reset()
	if text == "" {
		return nil
	}
	if t := f.table(); t != nil {
		t.cell.WriteString(text + " ")
		return nil
	}
	switch {
	case f.heading > 0:
		// Markdown has six levels, while Word has nine.
		text = strings.Repeat("#", min(f.heading, 6)) + " " + text + "\n"
	case f.item > 0:
		text = strings.Repeat("  ", f.item-1) + "- " + text
	case f.styles != nil:
		// On slides, paragraphs are short lines, so no empty lines are added.
		text += "\n"
	}
	return f.d.write(text + "\n")
}

// endRow writes a row of a table. The row of an inner table becomes text of the outer cell.
func (f *flow) endRow() error {
	t := f.table()
	if t == nil {
		return nil
	}
	row := tableLine(t.cells)
	t.cells = nil
	t.rows++
	if n := len(f.tables); n > 1 {
		f.tables[n-2].cell.WriteString(row + " ")
		return nil
	}
	return f.d.write(row + "\n")
}

// tableLine returns cells as a line of a Markdown table.
func tableLine(cells []string) string {
	// A line break or a "|" would break the table.
	cells = slices.Clone(cells)
	for i, cell := range cells {
		cells[i] = strings.NewReplacer("\n", " ", "|", `\|`).Replace(cell)
	}
	return "| " + strings.Join(cells, " | ") + " |"
}

// Docx returns the text of a docx document with Markdown syntax for headings, lists and tables.
// When expired returns true, Docx stops and returns the text so far.
func Docx(data []byte, expired func() bool) ([]byte, error) {
	d, err := open(data, expired)
	if err != nil {
		return nil, err
	}
	// Parse the styles first: they determine which paragraphs of the body are headings.
	styles := &styleReader{levels: map[string]int{}}
	if _, err := d.parse("word/styles.xml", styles); err != nil {
		return d.finish(err)
	}
	found, err := d.parse("word/document.xml", &flow{d: d, styles: styles.levels})
	if err == nil && !found {
		err = errDamaged
	}
	for _, part := range []string{"footnotes", "endnotes", "comments"} {
		if err == nil {
			err = d.appendix(part, styles.levels)
		}
	}
	return d.finish(err)
}

// appendix adds the text of a part outside the body, such as footnotes, if it contains any.
func (d *document) appendix(part string, styles map[string]int) error {
	// Parse the part separately: an empty part, which Word often writes, must get no title.
	own := &document{files: d.files, left: d.left, expired: d.expired}
	_, err := own.parse("word/"+part+".xml", &flow{d: own, styles: styles})
	d.left = own.left
	if own.found {
		d.note("[%s]\n\n", part)
		if wrote := d.write(own.out.String()); err == nil {
			err = wrote
		}
	}
	return err
}

// A styleReader finds the styles of headings by their names. It does not use their ids, which
// are in the language of the author's Word.
type styleReader struct {
	ignoreText
	id     string
	levels map[string]int
}

func (v *styleReader) start(name string, attr attributes) error {
	switch name {
	case "style":
		v.id = attr.get("styleId")
	case "name":
		style := strings.ToLower(attr.get("val"))
		if style == "title" {
			v.levels[v.id] = 1
		}
		if number, ok := strings.CutPrefix(style, "heading "); ok {
			v.levels[v.id] = levelOf(number, 0)
		}
	}
	return nil
}

// maxSlides is the maximum number of slides that are read.
const maxSlides = 2000

// Pptx returns the text of a presentation, slide by slide, with the speaker's notes.
func Pptx(data []byte, expired func() bool) ([]byte, error) {
	d, err := open(data, expired)
	if err != nil {
		return nil, err
	}
	const root = "ppt/presentation.xml"
	// The file names do not determine the order of the slides.
	order := &slideOrder{}
	found, err := d.parse(root, order)
	if err == nil && !found {
		err = errDamaged
	}
	var targets map[string]relation
	if err == nil {
		targets, err = d.relations(root)
	}
	for i, id := range order.ids {
		if err != nil {
			break
		}
		if i == maxSlides {
			err = errEnough
			break
		}
		d.note("[slide %d of %d]\n", i+1, len(order.ids))
		err = d.slide(targets[id].target)
	}
	return d.finish(err)
}

// slide writes the text of one slide and of its notes.
func (d *document) slide(name string) error {
	if _, err := d.parse(name, &flow{d: d}); err != nil {
		return err
	}
	related, err := d.relations(name)
	for _, r := range related {
		if r.kind == "notesSlide" && err == nil {
			d.note("[notes]\n")
			_, err = d.parse(r.target, &flow{d: d})
		}
	}
	d.note("\n")
	return err
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
