// Package rtf reads the text of RTF documents.
//
// It expects hostile input: it limits the nesting and the result. As a second line of defense, it runs in a
// confined process. It opens no file or connection.
package rtf

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"journeyman/runner/tool/office/block"
)

// The limits of a document.
const (
	maxText    = 8 << 20 // bytes of text; the rest is omitted
	maxNesting = 1000    // depth of groups
	maxFonts   = 10_000  // fonts, styles and authors
	maxNotes   = 20_000  // notes, comments and changes
	maxQuoted  = 200     // bytes of a text that a comment or a change quotes
	maxShort   = 2000    // bytes of a text such as the code of a field
)

// Reasons why a document cannot be read.
var (
	errDamaged = errors.New("it is damaged")
	errNesting = fmt.Errorf("its groups are nested more than %d deep", maxNesting)
	errEmpty   = errors.New("it holds no text")
)

// Text returns the text of an RTF document with Markdown syntax for headings, lists and tables. When expired
// returns true, it stops and returns the text so far.
func Text(data []byte, expired func() bool) ([]byte, error) {
	data = bytes.TrimLeft(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")), " \r\n\t\x00")
	if !bytes.HasPrefix(data, []byte(`{\rtf`)) {
		return nil, errDamaged
	}
	r := newReader(data)
	complete, err := r.read(expired)
	if err != nil {
		return nil, err
	}
	text := r.whole()
	switch {
	case !complete:
		text += "\n[the rest of the document is not read]\n"
	case strings.TrimSpace(text) == "":
		return nil, errEmpty
	}
	return []byte(strings.ToValidUTF8(text, "\uFFFD")), nil
}

// A reader is an RTF document during reading.
type reader struct {
	data   []byte
	at     int
	groups []group  // open groups; the last one is the current one
	frames []*frame // open containers of blocks, the whole document first
	raw    []byte   // characters whose code page has not been applied
	high   rune     // first half of a character that \u gives in two halves, 0 for none
	skip   int      // characters to skip, because \u gave them already
	size   int      // bytes of text so far

	codePage   int // of fonts that name none
	fonts      map[int]*font
	mainFont   int
	styles     map[int]*style
	authors    []string // of tracked changes
	titlePage  bool     // the first page has its own header and footer
	margins    map[string][]string
	notes      map[string][]string
	comments   []comment
	author     string            // of the next comment
	ranges     map[string]string // texts with comments, by their numbers
	openRanges []string
	changes    []change
	changing   bool // the last text belongs to the last change
	fields     []*field
	property   string // name of the current property of a drawing
	alt        string // description of the current picture
}

// A group is the state of an open group. A group inside of it inherits the state.
type group struct {
	target  target
	star    bool // \* began the group: readers that do not know its first word skip it
	first   bool // no control word was read yet
	upper   target
	font    int
	skipped int // characters after \u that only old readers show
	hidden  bool
	verb    string // "inserted" or "deleted" for a tracked change
	author  int
	short   *strings.Builder // short text of some targets
	end     func()           // what happens at the end of the group; nil for nothing
}

// A target is what the characters of a group are.
type target int

const (
	body       target = iota // text
	nothing                  // no text, nor are the groups in it
	properties               // no text, but groups in it can be
	shortText                // text for group.short
	fontTable
	styleTable
	authorTable
)

// A font has the code page of its characters.
type font struct {
	name     string
	codePage int
}

// A style is a paragraph style.
type style struct{ heading int }

// A frame is a container of blocks: the document, a note, a header or a text box.
type frame struct {
	block.Blocks
	para    paragraph
	cell    *block.Cell // the current cell
	row     []*block.Cell
	above   []bool // by cell of the row: it belongs to the cell above it
	merged  bool   // the next cell does
	inner   []*block.Cell
	inCell  *block.Cell // the current cell of a table inside a cell
	endnote bool
}

// A paragraph is the current paragraph of a frame.
type paragraph struct {
	text    []byte
	after   *block.Blocks
	mark    string // of an item of a list
	level   int
	heading int // -1 if only the style says it
	style   int
	inTable bool
	nested  bool // it is in a table inside a cell
}

// A comment is a text of a reader about a part of the document.
type comment struct{ author, about, text string }

// A change is a tracked insertion or deletion.
type change struct{ author, verb, text string }

// A field is an open field.
type field struct {
	code    strings.Builder
	from    int // where its result begins
	checked int // state of a box: 0, 1, or 25 for the default state
	usual   int // default state
}

func newReader(data []byte) *reader {
	return &reader{data: data, codePage: 1252, fonts: map[int]*font{}, styles: map[int]*style{},
		frames: []*frame{newFrame()}, groups: []group{{skipped: 1}}, margins: map[string][]string{},
		notes: map[string][]string{}, ranges: map[string]string{}}
}

func newFrame() *frame {
	return &frame{para: paragraph{heading: -1}, cell: &block.Cell{Span: 1}, inCell: &block.Cell{Span: 1}}
}

// top returns the innermost open frame, and now the innermost open group.
func (r *reader) top() *frame { return r.frames[len(r.frames)-1] }
func (r *reader) now() *group { return &r.groups[len(r.groups)-1] }

// read reads all groups. complete is false if it stopped before the end.
func (r *reader) read(expired func() bool) (complete bool, err error) {
	for n := 0; r.at < len(r.data); n++ {
		if r.size > maxText || n%5000 == 0 && expired() {
			return false, nil
		}
		c := r.data[r.at]
		r.at++
		switch c {
		case '{':
			r.flush()
			r.skip = 0
			if len(r.groups) > maxNesting {
				return false, errNesting
			}
			inner := *r.now()
			inner.end, inner.star, inner.first = nil, false, true
			r.groups = append(r.groups, inner)
		case '}':
			r.flush()
			r.skip = 0
			r.endGroup()
		case '\\':
			r.control()
		case '\r', '\n', 0:
		default:
			r.character(c)
		}
	}
	r.flush()
	for len(r.groups) > 1 {
		r.endGroup()
	}
	return true, nil
}

// endGroup ends the current group.
func (r *reader) endGroup() {
	n := len(r.groups)
	if n < 2 {
		return
	}
	if end := r.groups[n-1].end; end != nil {
		end()
	}
	r.groups = r.groups[:n-1]
}

// character adds a byte of text.
func (r *reader) character(c byte) {
	if r.skip > 0 {
		r.skip--
		return
	}
	r.now().first = false
	r.raw = append(r.raw, c)
}

// whole returns the text of the document.
func (r *reader) whole() string {
	for len(r.frames) > 1 {
		r.frames = r.frames[:len(r.frames)-1] // the document ended inside of them
	}
	r.close()
	f := r.top()
	var b strings.Builder
	r.margin(&b, "header")
	b.WriteString(f.Out.String())
	r.appendix(&b)
	r.margin(&b, "footer")
	return b.String()
}

// margin adds the different headers or footers.
func (r *reader) margin(b *strings.Builder, kind string) {
	seen := map[string]bool{}
	all := r.margins[kind]
	if r.titlePage {
		all = append(r.margins[kind+"f"], all...)
	}
	for _, text := range all {
		if !seen[text] && text != "" {
			seen[text] = true
			fmt.Fprintf(b, "[%s]\n%s\n\n", kind, text)
		}
	}
}
