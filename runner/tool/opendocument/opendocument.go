// Package opendocument reads the text of OpenDocument texts, presentations and drawings: odt, odp, odg, their
// templates, and those that are one XML file.
//
// It expects hostile input: it limits the unpacked bytes, the nesting and the result. As a second line of
// defense, it runs in a confined process. It opens no file or connection.
package opendocument

import (
	"encoding/xml"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"journeyman/runner/tool/office/archive"
	"journeyman/runner/tool/office/block"
)

// The limits of a document.
const (
	maxText    = 8 << 20 // bytes of text; the rest is omitted
	maxSlides  = 2000
	maxNotes   = 20_000 // footnotes, comments and changes
	maxQuoted  = 200    // bytes of a text that a comment or a change quotes
	maxDepth   = 10     // levels of lists
	maxSpan    = 63     // columns of a cell
	maxRepeats = 1000   // equal cells or rows
)

// Reasons why a document cannot be read.
var (
	errProtected = errors.New("a password protects it")
	errEmpty     = errors.New("it holds no text")
)

// A document is an OpenDocument file during reading.
type document struct {
	r        archive.Reader
	styles   *styles
	pages    []*page // slides, or one page with a whole text
	kind     string  // "slide" or "page" for pages, "" for a text
	notes    map[string][]note
	comments []comment
	numbers  map[string]int // of comments, by their names
	changes  map[string]*change
	order    []string // ids of changes
	drawings map[string]string
	size     int // bytes of text so far
}

// A page is a slide, or a whole text.
type page struct {
	block.Blocks
	shapes []*shape
	notes  string
	hidden bool
}

// A note is a footnote or an endnote.
type note struct{ mark, text string }

// A comment is a text of a reader about a part of the document.
type comment struct {
	author, about, text string
	done                bool
}

// A change is a tracked insertion or deletion.
type change struct{ author, verb, text string }

// Text returns the text of a document with Markdown syntax for headings, lists and tables. When expired
// returns true, it stops and returns the text so far.
func Text(data []byte, expired func() bool) ([]byte, error) {
	r, err := archive.OpenFlat(data, flatFile, expired)
	if err != nil {
		return nil, err
	}
	d := &document{r: r, styles: newStyles(), notes: map[string][]note{}, numbers: map[string]int{},
		changes: map[string]*change{}, drawings: map[string]string{}}
	err = d.read()
	if err != nil && !errors.Is(err, archive.ErrEnough) {
		return nil, err
	}
	text := d.text()
	if len(text) > 2*maxText {
		text, err = text[:2*maxText], archive.ErrEnough
	}
	switch {
	case err != nil:
		text += "\n[the rest of the document is not read]\n"
	case !d.found():
		return nil, errEmpty
	}
	return []byte(strings.ToValidUTF8(text, "\uFFFD")), nil
}

// flatFile is the file of a document that is a single XML file.
const flatFile = "flat.xml"

// read reads the styles, then the contents.
func (d *document) read() error {
	lock := &manifestReader{}
	if _, err := d.r.Parse("META-INF/manifest.xml", lock); err != nil {
		return err
	}
	if lock.encrypted {
		return errProtected
	}
	styles, content := "styles.xml", "content.xml"
	if d.r.Files[flatFile] != nil {
		styles, content = flatFile, flatFile
	}
	for _, name := range []string{styles, content} {
		if _, err := d.r.Parse(name, &styleReader{all: d.styles}); err != nil {
			return err
		}
	}
	if _, err := d.r.Parse(styles, newFlow(d, "master-styles")); err != nil {
		return err
	}
	body := newFlow(d, "body")
	found, err := d.r.Parse(content, body)
	switch {
	case errors.Is(err, archive.ErrEnough):
		body.frames = body.frames[:1] // the text so far is useful
		body.endPart()
	case err == nil && !found:
		return archive.ErrDamaged
	}
	return err
}

// found reports whether the document has text, not only marks of its pages.
func (d *document) found() bool {
	for _, p := range d.pages {
		if p.Count > 0 || p.notes != "" || len(p.shapes) > 0 && p.shapeText() != "" {
			return true
		}
	}
	return len(d.styles.margins["header"])+len(d.styles.margins["footer"])+len(d.comments) > 0
}

// text returns the whole text.
func (d *document) text() string {
	var b strings.Builder
	if d.kind == "" {
		d.margin(&b, "header")
	}
	for i, p := range d.pages {
		if d.kind != "" {
			hidden := ""
			if p.hidden {
				hidden = ", hidden"
			}
			fmt.Fprintf(&b, "[%s %d of %d%s]\n", d.kind, i+1, len(d.pages), hidden)
		}
		text := p.Out.String() + p.shapeText()
		if p.Count > 0 && len(p.shapes) == 0 {
			text = strings.TrimRight(text, "\n") + "\n\n"
		}
		b.WriteString(text)
		if p.notes != "" {
			b.WriteString("[notes]\n" + p.notes + "\n\n")
		} else if text == "" && d.kind != "" {
			b.WriteByte('\n')
		}
	}
	d.appendix(&b)
	if d.kind == "" {
		d.margin(&b, "footer")
	}
	return b.String()
}

// margin adds the different headers or footers.
func (d *document) margin(b *strings.Builder, kind string) {
	seen := map[string]bool{}
	for _, m := range d.styles.margins[kind] {
		if text := strings.TrimSpace(m.text); text != "" && !seen[text] && d.styles.shows(m.master) {
			seen[text] = true
			fmt.Fprintf(b, "[%s]\n%s\n\n", kind, text)
		}
	}
}

// appendix adds notes, comments and tracked changes.
func (d *document) appendix(b *strings.Builder) {
	for _, kind := range []string{"footnote", "endnote"} {
		if len(d.notes[kind]) > 0 {
			fmt.Fprintf(b, "[%ss]\n\n", kind)
		}
		for _, n := range d.notes[kind] {
			fmt.Fprintf(b, "[^%s]: %s\n\n", n.mark, n.text)
		}
	}
	if len(d.comments) > 0 {
		b.WriteString("[comments]\n\n")
	}
	for i, c := range d.comments {
		fmt.Fprintf(b, "[comment %d] %s", i+1, c.author)
		if about := strings.TrimSpace(strings.ToValidUTF8(c.about, "")); about != "" {
			b.WriteString(" on " + strconv.Quote(about))
		}
		if c.done {
			b.WriteString(" (resolved)")
		}
		b.WriteString(": " + c.text + "\n\n")
	}
	first := true
	for _, id := range d.order {
		c := d.changes[id]
		text := strings.TrimSpace(strings.ToValidUTF8(c.text, ""))
		if text == "" || c.verb == "" {
			continue
		}
		if first {
			b.WriteString("[tracked changes: the text above has what was inserted, and lacks what was deleted]\n\n")
			first = false
		}
		b.WriteString("- " + c.author + " " + c.verb + " " + strconv.Quote(text) + "\n")
	}
	if !first {
		b.WriteByte('\n')
	}
}

// A manifestReader finds out whether the files of a document are encrypted.
type manifestReader struct {
	archive.IgnoreText
	encrypted bool
}

// Start looks at an element of the manifest.
func (v *manifestReader) Start(name xml.Name, _ archive.Attributes) error {
	v.encrypted = v.encrypted || name.Local == "encryption-data"
	return nil
}
