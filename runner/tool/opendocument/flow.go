package opendocument

import (
	"encoding/xml"
	"slices"
	"strconv"
	"strings"

	"journeyman/runner/tool/office/archive"
	"journeyman/runner/tool/office/block"
	"journeyman/runner/tool/office/mark"
)

// A flow converts the paragraphs, lists and tables of one part of a document.
type flow struct {
	d       *document
	part    string // element whose content is read
	inPart  bool
	frames  []*frame        // open containers of blocks, the whole part first
	skip    int             // open elements inside an omitted part
	open    []func(f *flow) // what happens at the ends of the open elements; nil for nothing
	comment *comment        // the open comment
	about   []string        // names of comments on texts that have not ended
	changed []string        // ids of insertions that have not ended
	region  *change         // the change whose description is open
	outline [maxDepth + 1]int
	lists   map[string][maxDepth + 1]int // numbers of the lists so far, by their ids and styles
	master  string                       // kind of the pages whose headers are read
	err     error
}

// A frame is a container of blocks.
type frame struct {
	block.Blocks
	para   paragraph
	lists  []*openList
	tables []*openTable
	image  image
	spans  []span
	note   string // mark of the note, if the frame is one
	apart  bool   // its text is no text of the document
}

// A paragraph is the current paragraph of a frame.
type paragraph struct {
	text    []byte
	after   *block.Blocks
	heading int
	plain   bool // a heading without a number
	style   string
	open    bool
	hidden  bool
	links   []link
}

// A span is a text with its own style.
type span struct {
	hidden bool
	font   string
}

// A link is an open hyperlink.
type link struct {
	target string
	from   int
}

// An image is the current frame of a drawing. Its first content is what a reader sees.
type image struct {
	alt, file string
	embedded  bool // the file is inside the XML
	done      bool // the frame has a content
}

// An openTable is a table whose end is not read yet.
type openTable struct {
	block.Grid
	spanned int // columns that the last cell still covers
	repeats int
}

func newFlow(d *document, part string) *flow {
	return &flow{d: d, part: part, frames: []*frame{{}}, lists: map[string][maxDepth + 1]int{}}
}

// top returns the innermost open frame.
func (f *flow) top() *frame { return f.frames[len(f.frames)-1] }

// push opens a frame.
func (f *flow) push() { f.frames = append(f.frames, &frame{}) }

// pop closes the innermost frame.
func (f *flow) pop() *frame {
	f.endParagraph()
	top := f.top()
	if len(f.frames) > 1 {
		f.frames = f.frames[:len(f.frames)-1]
	}
	return top
}

// Start begins an element.
func (f *flow) Start(name xml.Name, attr archive.Attributes) error {
	switch {
	case f.skip > 0:
		f.skip++
		return nil
	case !f.inPart:
		f.inPart = name.Local == f.part
		return nil
	case isOmitted(name.Local) || name.Local == "section" && attr.Get("display") == "none":
		f.skip++
		return nil
	}
	f.open = append(f.open, nil)
	begin := starts[keyOf(name)]
	switch {
	case f.onPage() && isShape(name.Local):
		f.beginShape(attr)
	case name.Local == "frame":
		f.beginFrame()
	case isShape(name.Local):
		f.beginBox() // a shape in a text, or in another shape
	case begin != nil:
		begin(f, attr)
	}
	return f.state()
}

// keyOf returns the name of an element in starts. Descriptions of drawings and of comments have a prefix,
// because fields of a text have the same names.
func keyOf(name xml.Name) string {
	switch {
	case strings.Contains(name.Space, "purl.org/dc/"):
		return "dc:" + name.Local
	case strings.Contains(name.Space, ":svg-compatible:"):
		return "svg:" + name.Local
	}
	return name.Local
}

// state returns the error that ends the reading, nil to go on.
func (f *flow) state() error {
	if f.d.size > maxText {
		return archive.ErrEnough
	}
	return f.err
}

// atEnd sets what happens at the end of the current element.
func (f *flow) atEnd(end func(f *flow)) { f.open[len(f.open)-1] = end }

// End ends an element.
func (f *flow) End(name xml.Name) error {
	switch n := len(f.open); {
	case f.skip > 0:
		f.skip--
	case n > 0:
		end := f.open[n-1]
		f.open = f.open[:n-1]
		if end != nil {
			end(f)
		}
	case f.inPart && name.Local == f.part:
		f.inPart = false
		f.endPart()
	}
	return f.state()
}

// endPart keeps a text that has no pages.
func (f *flow) endPart() {
	f.endParagraph()
	if f.part == "body" && f.d.kind == "" {
		f.d.pages = append(f.d.pages, &page{})
		f.d.pages[0].AddAll(f.frames[0].Out.String(), f.frames[0].Count)
	}
}

// isOmitted reports whether an element has no text for readers.
func isOmitted(name string) bool {
	switch name {
	case "binary-data", "forms", "settings", "scripts", "ruby-text", "index-title-template",
		"table-of-content-source", "alphabetical-index-source", "illustration-index-source", "table-index-source",
		"object-index-source", "user-index-source", "bibliography-source", "sequence-decls", "variable-decls",
		"user-field-decls", "hidden-text", "page-thumbnail", "handout-master", "event-listeners", "date-time-decl",
		"footer-decl", "header-decl":
		return true
	}
	return false
}

// starts has what elements begin.
var starts = map[string]func(f *flow, attr archive.Attributes){
	"p": func(f *flow, attr archive.Attributes) { f.beginParagraph(attr, 0) },
	"h": func(f *flow, attr archive.Attributes) {
		n, _ := strconv.Atoi(attr.Get("outline-level"))
		f.beginParagraph(attr, min(max(n, 1), maxDepth))
	},
	"s": func(f *flow, attr archive.Attributes) {
		n, err := strconv.Atoi(attr.Get("c"))
		if err != nil {
			n = 1
		}
		f.add(strings.Repeat(" ", min(max(n, 0), maxSpan)))
	},
	"tab":                func(f *flow, _ archive.Attributes) { f.add("\t") },
	"line-break":         func(f *flow, _ archive.Attributes) { f.add("\n") },
	"span":               (*flow).beginSpan,
	"a":                  (*flow).beginLink,
	"list":               (*flow).beginList,
	"list-item":          (*flow).beginItem,
	"list-header":        func(f *flow, _ archive.Attributes) { f.header() },
	"table":              (*flow).beginTable,
	"table-row":          (*flow).beginRow,
	"table-cell":         func(f *flow, attr archive.Attributes) { f.beginCell(attr, false) },
	"covered-table-cell": func(f *flow, attr archive.Attributes) { f.beginCell(attr, true) },
	"note":               (*flow).beginNote,
	"note-citation":      func(f *flow, _ archive.Attributes) { f.push(); f.top().para.open = true; f.atEnd((*flow).endCitation) },
	"annotation":         (*flow).beginComment,
	"annotation-end":     func(f *flow, attr archive.Attributes) { f.endComment(attr.Get("name")) },
	"dc:creator":         func(f *flow, _ archive.Attributes) { f.collect((*flow).author) },
	"dc:date":            (*flow).date,
	"svg:title":          func(f *flow, _ archive.Attributes) { f.collect((*flow).describe) },
	"svg:desc":           func(f *flow, _ archive.Attributes) { f.collect((*flow).describe) },
	"changed-region":     func(f *flow, attr archive.Attributes) { f.beginRegion(attr.Get("id")) },
	"insertion":          func(f *flow, _ archive.Attributes) { f.verb("inserted") },
	"deletion":           func(f *flow, _ archive.Attributes) { f.verb("deleted") },
	"tracked-changes":    func(f *flow, _ archive.Attributes) { f.push(); f.atEnd(func(f *flow) { f.pop() }) },
	"change-start":       func(f *flow, attr archive.Attributes) { f.beginChange(attr.Get("change-id")) },
	"change-end":         func(f *flow, attr archive.Attributes) { f.endChange(attr.Get("change-id")) },
	"text-box":           func(f *flow, _ archive.Attributes) { f.top().image.done = true; f.beginBox() },
	"image":              (*flow).beginImage,
	"object":             func(f *flow, attr archive.Attributes) { f.object(attr.Get("href")) },
	"object-ole":         func(f *flow, attr archive.Attributes) { f.object(attr.Get("href")) },
	"presentation":       func(f *flow, _ archive.Attributes) { f.pagesOf("slide") },
	"drawing":            func(f *flow, _ archive.Attributes) { f.pagesOf("page") },
	"page":               (*flow).beginPage,
	"notes":              (*flow).beginPageNotes,
	"master-page":        func(f *flow, attr archive.Attributes) { f.master = attr.Get("name") },
	"header":             func(f *flow, attr archive.Attributes) { f.beginMargin("header", attr) },
	"header-left":        func(f *flow, attr archive.Attributes) { f.beginMargin("header", attr) },
	"header-first":       func(f *flow, attr archive.Attributes) { f.beginMargin("header", attr) },
	"footer":             func(f *flow, attr archive.Attributes) { f.beginMargin("footer", attr) },
	"footer-left":        func(f *flow, attr archive.Attributes) { f.beginMargin("footer", attr) },
	"footer-first":       func(f *flow, attr archive.Attributes) { f.beginMargin("footer", attr) },
}

// Text adds characters to the current paragraph.
func (f *flow) Text(text string) error {
	if f.skip > 0 || !f.inPart || !f.top().para.open {
		return nil
	}
	p := &f.top().para
	// White space is one space, and none at the beginning.
	words := strings.Join(strings.Fields(text), " ")
	if isSpace(text[:1]) && len(p.text) > 0 && !isSpace(string(p.text[len(p.text)-1:])) {
		words = " " + words
	}
	if last := text[len(text)-1:]; isSpace(last) && strings.TrimSpace(words) != "" {
		words += " "
	}
	font := ""
	if n := len(f.top().spans); n > 0 {
		font = f.top().spans[n-1].font
	}
	f.add(mark.Text(font, words))
	return f.state()
}

// isSpace reports whether a byte is white space of XML.
func isSpace(b string) bool { return b == " " || b == "\n" || b == "\t" || b == "\r" }

// add adds text to the current paragraph, and to what quotes it.
func (f *flow) add(text string) {
	top := f.top()
	f.d.size += len(text)
	if top.para.hidden || len(top.spans) > 0 && top.spans[len(top.spans)-1].hidden {
		return
	}
	top.para.text = append(top.para.text, text...)
	if top.apart {
		return
	}
	for _, name := range f.about {
		c := &f.d.comments[f.d.numbers[name]-1]
		c.about = upTo(c.about, text)
	}
	for _, id := range f.changed {
		if c := f.d.changes[id]; c != nil {
			c.text = upTo(c.text, text)
		}
	}
}

// upTo appends text to a quoted one, but not beyond the limit.
func upTo(quoted, text string) string {
	return quoted + text[:min(len(text), max(maxQuoted-len(quoted), 0))]
}

// remove removes an open name. It removes nothing if the name is not open.
func remove(names []string, name string) []string {
	if i := slices.Index(names, name); i >= 0 {
		return slices.Delete(names, i, i+1)
	}
	return names
}
