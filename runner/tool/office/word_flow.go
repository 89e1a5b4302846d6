package office

import (
	"strconv"
	"strings"

	"journeyman/runner/tool/office/block"
	"journeyman/runner/tool/office/mark"
)

// A flow converts the paragraphs and tables of one file of a docx document.
type flow struct {
	w       *word
	related map[string]relation
	frames  []*frame // open containers of blocks, the whole file first
	skip    int      // number of open elements inside an omitted part
	props   int      // number of open elements with properties
	owner   string   // the outermost of them
	size    int      // bytes of text so far
	fields  []field  // open fields
	codes   int      // number of open fields whose result has not begun
	math    equation
	changes []change // open insertions and deletions
	about   []quoted // texts with comments that have not ended
	section section
	err     error // from a file that the text refers to
}

// A frame is a container of blocks: the whole file, a cell, a text box, a note or a comment.
type frame struct {
	block.Cell // its blocks, and its properties if the frame is a cell
	para       paragraph
	run        run
	picture    picture
	tables     []*block.Grid
	note       note            // if the frame is a note or a comment
	notes      map[string]note // in the frame of the whole file
	noteOrder  []string        // their ids
}

// A paragraph is the current paragraph of a frame.
type paragraph struct {
	text    []byte
	after   *block.Blocks // nil, or text boxes and charts, which follow the paragraph
	style   string
	heading int    // -1 if only the style says it
	list    string // id of its numbering, "" if only the style says it
	level   int    // of its numbering, -1 if only the style says it
	item    bool   // it has a numbering of its own
	open    bool   // between start and end of the paragraph
	hidden  bool   // its style hides it
	inText  bool   // inside an element whose characters are text
	joined  bool   // its end was deleted: the next paragraph continues it
	links   []link // open links
}

// A run is a text with the same properties.
type run struct {
	hidden bool
	font   string
}

// A link is an open hyperlink.
type link struct {
	target string
	from   int // where its text begins in the paragraph
}

// A note is a footnote, an endnote or a comment.
type note struct{ id, author, text, paragraph string }

// A quoted is a text with a comment.
type quoted struct{ id, text string }

// A section is the current section of the document.
type section struct {
	first bool // the first page has its own header and footer
	refs  []marginRef
}

// A marginRef is a header or footer of a section: its kind, its pages and its relation.
type marginRef struct{ kind, pages, id string }

// top returns the innermost open frame.
func (f *flow) top() *frame { return f.frames[len(f.frames)-1] }

// push opens a frame inside the current paragraph or table.
func (f *flow) push() { f.frames = append(f.frames, &frame{}) }

// pop closes the innermost frame.
func (f *flow) pop() *frame {
	f.close()
	top := f.top()
	if len(f.frames) > 1 {
		f.frames = f.frames[:len(f.frames)-1]
	}
	return top
}

// close ends the innermost frame.
func (f *flow) close() {
	f.top().para.joined = false
	f.endParagraph()
}

func (f *flow) start(name string, attr attributes) error {
	switch {
	// Fallback contains a copy of a drawing for older programs (ECMA-376 part 3). moveFrom
	// contains moved text at its old place, and moveTo at the new one. Elements such as pPrChange contain
	// properties that were replaced, and rt contains the reading of a text.
	case f.skip > 0 || name == "Fallback" || name == "moveFrom" || name == "rt" || strings.HasSuffix(name, "PrChange"):
		f.skip++
		return nil
	case len(f.math.open) > 0 || name == "oMath":
		f.math.start(name, attr)
		return nil
	case isProperties(name):
		if f.props++; f.props == 1 {
			f.owner = name
		}
	case f.props > 0:
		f.property(name, attr)
	default:
		if begin := wordStarts[name]; begin != nil {
			begin(f, attr)
		}
	}
	return f.state()
}

// state returns the error that ends the reading, nil to go on.
func (f *flow) state() error {
	if f.size > maxText {
		return errEnough
	}
	return f.err
}

// isProperties reports whether an element has properties, and no text.
func isProperties(name string) bool {
	switch name {
	case "pPr", "rPr", "tblPr", "trPr", "tcPr", "sectPr", "sdtPr", "tblPrEx":
		return true
	}
	return false
}

// wordStarts has what the elements outside of properties begin.
var wordStarts = map[string]func(f *flow, attr attributes){
	"p":             (*flow).beginParagraph,
	"r":             func(f *flow, _ attributes) { f.top().run = run{hidden: f.top().para.hidden} },
	"t":             func(f *flow, _ attributes) { f.top().para.inText = true },
	"delText":       func(f *flow, _ attributes) { f.top().para.inText = true },
	"instrText":     func(f *flow, _ attributes) { f.top().para.inText = true },
	"tab":           func(f *flow, _ attributes) { f.add("\t") },
	"ptab":          func(f *flow, _ attributes) { f.add("\t") },
	"cr":            func(f *flow, _ attributes) { f.add("\n") },
	"noBreakHyphen": func(f *flow, _ attributes) { f.add("-") },
	"br": func(f *flow, attr attributes) {
		f.add("\n")
		if attr.get("type") == "page" && len(f.frames) == 1 {
			f.add("[page break]\n")
		}
	},
	"sym": func(f *flow, attr attributes) {
		if code, err := strconv.ParseUint(attr.get("char"), 16, 16); err == nil {
			f.add(string(mark.Symbol(attr.get("font"), rune(code))))
		}
	},
	"tbl": func(f *flow, _ attributes) {
		f.endParagraph()
		f.top().tables = append(f.top().tables, &block.Grid{})
	},
	"tc":          func(f *flow, _ attributes) { f.push(); f.top().Span = 1 },
	"txbxContent": func(f *flow, _ attributes) { f.push() },
	"footnote":    (*flow).beginNote, "endnote": (*flow).beginNote, "comment": (*flow).beginNote,
	"footnoteReference": func(f *flow, attr attributes) { f.noteMark(footnotes, "decimal", attr) },
	"endnoteReference":  func(f *flow, attr attributes) { f.noteMark(endnotes, "lowerRoman", attr) },
	"commentReference": func(f *flow, attr attributes) {
		f.add("[comment " + strconv.Itoa(f.w.comments.mark(attr.get("id"))) + "]")
	},
	"commentRangeStart": func(f *flow, attr attributes) {
		if len(f.about) < maxRanges {
			f.about = append(f.about, quoted{id: attr.get("id")})
		}
	},
	"commentRangeEnd": func(f *flow, attr attributes) { f.endQuoted(attr.get("id")) },
	"hyperlink": func(f *flow, attr attributes) {
		f.openLink(f.related[attr.get("r:id")].target)
	},
	"fldSimple": func(f *flow, attr attributes) { f.openLink(linkOf(attr.get("instr"))) },
	"fldChar":   (*flow).fieldMark,
	"ins":       func(f *flow, attr attributes) { f.beginChange("inserted", attr) },
	"del":       func(f *flow, attr attributes) { f.beginChange("deleted", attr) },
	"drawing":   func(f *flow, _ attributes) { f.top().picture = picture{} },
	"pict":      func(f *flow, _ attributes) { f.top().picture = picture{} },
	"object":    func(f *flow, _ attributes) { f.top().picture = picture{} },
	"docPr":     func(f *flow, attr attributes) { f.top().picture.describe(attr) },
	"cNvPr":     func(f *flow, attr attributes) { f.top().picture.describe(attr) },
	"shape":     func(f *flow, attr attributes) { f.top().picture.alt = attr.get("alt") },
	"blip":      func(f *flow, attr attributes) { f.refer(attr.get("r:embed"), attr.get("r:link")) },
	"imagedata": func(f *flow, attr attributes) { f.refer(attr.get("r:id"), attr.get("r:href")) },
	"textpath":  func(f *flow, attr attributes) { f.add(attr.get("string")) },
	"OLEObject": func(f *flow, attr attributes) { f.file("embedded file", attr.get("r:id")) },
	"altChunk":  func(f *flow, attr attributes) { f.endParagraph(); f.file("included file", attr.get("r:id")) },
	"chart":     func(f *flow, attr attributes) { f.attach(f.w.d.chart, attr.get("r:id")) },
	"relIds":    func(f *flow, attr attributes) { f.attach(f.w.d.diagram, attr.get("r:dm")) },
	"checkBox":  func(f *flow, _ attributes) { f.form(func(v *field) { v.box = "☐" }) },
	"checked":   func(f *flow, attr attributes) { f.form(func(v *field) { v.choose(attr) }) },
	"default":   func(f *flow, attr attributes) { f.form(func(v *field) { v.choose(attr) }) },
	"result":    func(f *flow, attr attributes) { f.form(func(v *field) { v.choose(attr) }) },
	"listEntry": func(f *flow, attr attributes) { f.form(func(v *field) { v.entry(attr.get("val")) }) },
}

func (f *flow) text(text string) error {
	if f.skip > 0 {
		return nil
	}
	if len(f.math.open) > 0 {
		f.math.write(text)
		f.size += len(text)
	} else if f.top().para.inText {
		f.add(strings.ReplaceAll(mark.Text(f.top().run.font, text), "\n", " "))
	}
	return f.state()
}

// add adds text to the current paragraph, or to the field or the deletion in which it is.
func (f *flow) add(text string) {
	p := &f.top().para
	f.size += len(text)
	if f.top().run.hidden {
		return
	}
	if f.codes > 0 {
		field := &f.fields[len(f.fields)-1]
		field.code = appendUpTo(field.code, text, maxFieldCode)
		return
	}
	if n := len(f.changes); n > 0 {
		f.changes[n-1].text = appendUpTo(f.changes[n-1].text, text, maxQuoted)
		if f.changes[n-1].verb == "deleted" {
			return
		}
	}
	p.text = append(p.text, text...)
	f.quote(text)
}

// appendUpTo appends more to text, but not beyond a number of bytes.
func appendUpTo(text, more string, most int) string {
	return text + more[:min(len(more), max(most-len(text), 0))]
}

// wordEnds has what the ends of elements outside of properties end.
var wordEnds = map[string]func(*flow){
	"t": func(f *flow) { f.top().para.inText = false }, "delText": func(f *flow) { f.top().para.inText = false },
	"instrText": func(f *flow) { f.top().para.inText = false },
	"p":         (*flow).endParagraph,
	"tc":        (*flow).endCell,
	"tr":        (*flow).endRow,
	"tbl":       (*flow).endTable,
	"txbxContent": func(f *flow) {
		box := f.pop()
		f.top().para.follow(box.Out.String(), box.Count)
	},
	"footnote": (*flow).endNote, "endnote": (*flow).endNote, "comment": (*flow).endNote,
	"hyperlink": (*flow).closeLink, "fldSimple": (*flow).closeLink,
	"ins": (*flow).endChange, "del": (*flow).endChange,
	"drawing": (*flow).endPicture, "pict": (*flow).endPicture, "object": (*flow).endPicture,
}

func (f *flow) end(name string) error {
	switch {
	// start counted this element, too, so skip is 0 again after the end of the omitted part.
	case f.skip > 0:
		f.skip--
		return nil
	case len(f.math.open) > 0:
		f.add(f.math.end())
	case isProperties(name):
		f.props--
		if name == "sectPr" {
			f.endSection()
		}
	case f.props > 0:
	default:
		if end := wordEnds[name]; end != nil {
			end(f)
		}
	}
	return nil
}
