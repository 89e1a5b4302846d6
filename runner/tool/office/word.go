package office

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"journeyman/runner/tool/office/mark"
)

// A word is a docx document during reading.
type word struct {
	d        *document
	main     string              // name of the file with the body
	related  map[string]relation // relations of the body
	styles   styles
	numbers  *numbering
	margins  []string // names of the files of headers and footers, in the order of the sections
	evenOdd  bool     // even pages have their own headers and footers
	notes    [2]noteList
	comments noteList
	changes  []change
	lost     int // changes that are not in changes
}

// The kinds of notes below a text.
const (
	footnotes = iota
	endnotes
)

// A noteList has the notes of one kind to which the text refers, in the order of their marks.
type noteList struct {
	ids   []string
	marks map[string]int    // numbers of the marks by ids
	about map[string]string // commented texts by ids
}

// mark returns the number of a note. It is a new one for the first mark of the note.
func (n *noteList) mark(id string) int {
	if n.marks == nil {
		n.marks = map[string]int{}
	}
	if n.marks[id] == 0 {
		n.ids = append(n.ids, id)
		n.marks[id] = len(n.ids)
	}
	return n.marks[id]
}

// A change is a tracked change of a text.
type change struct{ author, verb, text string }

// The limits of changes and of texts that comments quote.
const (
	maxChanges = 1000
	maxQuoted  = 200 // bytes
)

// Docx returns the text of a docx document with Markdown syntax for headings, lists and tables.
// When expired returns true, Docx stops and returns the text so far.
func Docx(data []byte, expired func() bool) ([]byte, error) {
	d, err := open(data, expired)
	if err != nil {
		return nil, err
	}
	w := &word{d: d, styles: styles{}}
	w.numbers = &numbering{shapes: map[string]*listShape{}, lists: map[string]*list{}, styles: w.styles}
	return d.finish(w.read())
}

// read reads the document. It writes the headers first and the footers last, because the body names them.
func (w *word) read() error {
	if err := w.prepare(); err != nil {
		return err
	}
	body, err := w.part(w.main, w.related)
	if body == nil {
		return errDamaged
	}
	above, below := w.marginTexts("header", err), w.marginTexts("footer", err)
	for _, text := range []string{above, body.Out.String()} {
		if wrote := w.d.write(text); wrote != nil {
			return wrote
		}
	}
	for _, section := range []func() error{
		func() error { return w.noteTexts(footnotes, "footnotes", "decimal") },
		func() error { return w.noteTexts(endnotes, "endnotes", "lowerRoman") },
		w.commentTexts, w.changeTexts} {
		if err == nil {
			err = section()
		}
	}
	if wrote := w.d.write(below); err == nil {
		err = wrote
	}
	return err
}

// prepare finds the parts of the document, and reads those that the body needs.
func (w *word) prepare() error {
	w.main = "word/document.xml"
	roots, err := w.d.relations("")
	if err != nil {
		return err
	}
	for _, r := range sorted(roots, "officeDocument") {
		w.main = r.target
	}
	if w.related, err = w.d.relations(w.main); err != nil {
		return err
	}
	if _, err = w.d.parse(w.target("styles"), &styleReader{all: w.styles}); err != nil {
		return err
	}
	if _, err = w.d.parse(w.target("numbering"), &numberingReader{all: w.numbers}); err != nil {
		return err
	}
	_, err = w.d.parse(w.target("settings"), &settingsReader{word: w})
	return err
}

// A settingsReader reads the settings of a document.
type settingsReader struct {
	ignoreText
	word *word
}

func (v *settingsReader) start(name string, attr attributes) error {
	if name == "evenAndOddHeaders" {
		v.word.evenOdd = isOn(attr)
	}
	return nil
}

// target returns the name of a file to which the body has a relation of this kind.
func (w *word) target(kind string) string {
	for _, r := range sorted(w.related, kind) {
		return r.target
	}
	return "word/" + kind + ".xml"
}

// part reads a file with paragraphs. Without such a file it returns nil.
func (w *word) part(name string, related map[string]relation) (*frame, error) {
	f := &flow{w: w, related: related, frames: []*frame{{}}}
	found, err := w.d.parse(name, f)
	if !found {
		return nil, err
	}
	f.close()
	return f.frames[0], err
}

// own reads a file other than the body, with its own relations.
func (w *word) own(name string) (*frame, error) {
	related, err := w.d.relations(name)
	if err != nil {
		return nil, err
	}
	return w.part(name, related)
}

// marginTexts returns the different headers or footers. err is the error that ended the body; then it
// returns "".
func (w *word) marginTexts(kind string, err error) string {
	var b strings.Builder
	seen := map[string]bool{}
	for _, name := range w.margins {
		if err != nil || !strings.HasPrefix(name, kind+" ") {
			continue
		}
		var text *frame
		if text, err = w.own(strings.TrimPrefix(name, kind+" ")); text == nil {
			continue
		}
		if words := strings.TrimSpace(text.Out.String()); words != "" && !seen[words] {
			seen[words] = true
			fmt.Fprintf(&b, "[%s]\n%s\n\n", kind, words)
		}
	}
	return b.String()
}

// noteTexts writes the notes of one kind that have marks in the text.
func (w *word) noteTexts(kind int, part, format string) error {
	refs := &w.notes[kind]
	if len(refs.ids) == 0 {
		return nil
	}
	text, err := w.own(w.target(part))
	if text == nil {
		return err
	}
	w.d.note("[%s]\n\n", part)
	for i, id := range refs.ids {
		if wrote := w.d.write("[^" + mark.Number(i+1, format) + "]: " + text.notes[id].text + "\n\n"); wrote != nil {
			return wrote
		}
	}
	return err
}

// commentTexts writes the comments: who says what about which text.
func (w *word) commentTexts() error {
	name := w.target("comments")
	text, err := w.own(name)
	if text == nil || len(text.notes) == 0 {
		return err
	}
	threads := &threadReader{threads: map[string]thread{}}
	if _, err := w.d.parse(w.target("commentsExtended"), threads); err != nil {
		return err
	}
	// Comments without a mark come last.
	for _, id := range text.noteOrder {
		w.comments.mark(id)
	}
	numbers := map[string]int{} // of comments, by the ids of their last paragraphs
	for _, id := range w.comments.ids {
		numbers[text.notes[id].paragraph] = w.comments.marks[id]
	}
	w.d.note("[comments]\n\n")
	for _, id := range w.comments.ids {
		n, ok := text.notes[id]
		if !ok {
			continue
		}
		line := "[comment " + strconv.Itoa(w.comments.marks[id]) + "] " + n.author
		t := threads.threads[n.paragraph]
		if parent := numbers[t.parent]; parent > 0 && t.parent != "" {
			line += " answers comment " + strconv.Itoa(parent)
		} else if about := strings.TrimSpace(w.comments.about[id]); about != "" {
			line += " on " + strconv.Quote(about)
		}
		if t.done {
			line += " (resolved)"
		}
		if wrote := w.d.write(line + ": " + n.text + "\n\n"); wrote != nil {
			return wrote
		}
	}
	return err
}

// changeTexts writes the tracked changes.
func (w *word) changeTexts() error {
	if len(w.changes) == 0 {
		return nil
	}
	w.d.note("[tracked changes: the text above has what was inserted, and lacks what was deleted]\n\n")
	for _, c := range w.changes {
		if err := w.d.write("- " + c.author + " " + c.verb + " " + strconv.Quote(c.text) + "\n"); err != nil {
			return err
		}
	}
	if w.lost > 0 {
		w.d.note("- [%d more changes]\n", w.lost)
	}
	return w.d.write("\n")
}

// changed keeps a tracked change.
func (w *word) changed(c change) {
	c.text = strings.TrimSpace(strings.ToValidUTF8(c.text[:min(len(c.text), maxQuoted)], ""))
	switch {
	case c.text == "":
	case len(w.changes) == maxChanges:
		w.lost++
	default:
		w.changes = append(w.changes, c)
	}
}

// A thread is the state of a comment: the paragraph of the comment that it answers, and whether it is done.
type thread struct {
	parent string
	done   bool
}

// A threadReader reads the states of comments by their last paragraphs.
type threadReader struct {
	ignoreText
	threads map[string]thread
}

func (v *threadReader) start(name string, attr attributes) error {
	if name == "commentEx" {
		v.threads[attr.get("paraId")] = thread{attr.get("paraIdParent"), attr.get("done") == "1"}
	}
	return nil
}

// margin keeps a header or footer of a section.
func (w *word) margin(kind, name string) {
	if key := kind + " " + name; name != "" && len(w.margins) < maxMargins && !slices.Contains(w.margins, key) {
		w.margins = append(w.margins, key)
	}
}

// maxMargins is the maximum number of headers and footers that are read.
const maxMargins = 100
