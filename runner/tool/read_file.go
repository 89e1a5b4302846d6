package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"journeyman/runner/workspace"
)

// Limits of read_file.
const (
	defaultLines = 2000     // lines per result, unless the call sets a limit
	maxContent   = 64 << 10 // bytes of text per result
	maxLine      = 8 << 10  // bytes of a line, unless the call requests only one line
	maxReadable  = 64 << 20 // size of a file, or the largest of the workspace: all its lines are read, to count them
)

type readFile struct{ docs Documents }

// Spec describes read_file.
func (readFile) Spec() Spec {
	return Spec{
		Name: "read_file",
		Description: `Read a file of the workspace as text, each line as its number, a tab and the line. Up to 2000 lines
and 64 KiB at a time. Documents (PDF, office, mail, HTML, calendar, contacts) give their text without numbers, archives a
list of their files. Cells of a workbook look as on the screen, a formula before its value: =SUM(B2:B9) → 12.50 €.`,
		InputSchema: objectSchema(`
    "path": {"type": "string", "description": "Relative to the workspace; in an archive or mail as bundle.zip/a.txt"},
    "offset": {"type": "integer", "minimum": 1, "description": "First line; default 1"},
    "limit": {"type": "integer", "minimum": 1, "description": "Lines at most; default 2000"},
    "pages": {"type": "string", "description": "Of a PDF, as 3-7 or 1,4-6 or iv; default all"},
    "sheet": {"type": "string", "description": "Name or number, of a workbook; default all"},
    "range": {"type": "string", "description": "Of a workbook, as A1:F20, B:D or 3:9; one cell gives its exact value"},
    "encoding": {"type": "string", "description": "Of a text file, as windows-1252; default a guess"},
    "source": {"type": "boolean", "description": "HTML, RTF, mail, calendar, contacts as stored, to edit"}`,
			"path"),
		Repeatable: true,
		Parallel:   true,
	}
}

// A lineRange is the range of a file's lines that one call returns.
type lineRange struct {
	path     string
	first    int // number of the first line
	limit    int // maximum number of lines
	part     selection
	source   bool // whether to return a document as it is stored
	numbered bool // whether each line begins with its number

	text  strings.Builder
	lines int // lines in text
	total int // lines of the file
	cut   int // number of the first line that was cut, 0 for none
	crlf  int // lines in text that end with CRLF
}

// Run reads a file.
func (r readFile) Run(ctx context.Context, host Host, input json.RawMessage) (json.RawMessage, error) {
	a := parse(input)
	x := lineRange{path: a.path(), first: a.number("offset", 1, 1), limit: a.number("limit", defaultLines, 1),
		part: a.selection(), source: a.boolean("source")}
	if err := a.err(); err != nil {
		return nil, err
	}
	t, err := openText(ctx, r.docs, host.Workspace(), x.path, x.part.Encoding)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	if err := x.convert(ctx, r.docs, t); err != nil {
		return nil, err
	}
	most := max(maxReadable, host.Workspace().FileSize())
	switch {
	case t.encoding == "":
		return nil, refuseBinary(x.path, t.mediaType, t.size)
	case t.size > most:
		return nil, Errorf("%q has %d bytes; read_file reads files of up to %d", x.path, t.size, most)
	}
	if err := x.fill(ctx, t); err != nil {
		return nil, err
	}
	// An empty file has no line 1, but reading it from line 1 is not an error.
	if x.first > 1 && x.first > x.total {
		return nil, Errorf("offset must be at most %d, the number of lines in %q", max(x.total, 1), x.path)
	}
	return result(x.text.String() + x.notes(t))
}

// convert replaces a document by its text. Models call read_file for documents, too, so documents need no separate
// tool.
func (x *lineRange) convert(ctx context.Context, docs Documents, t *textFile) error {
	kind := t.kind
	if x.source && kind.plain {
		kind = documentKind{}
	}
	if x.source && kind.filter != "" {
		return Errorf("source does not apply to %q, which is no text file: leave it out", x.path)
	}
	if err := x.part.supportedBy(kind, x.path); err != nil {
		return err
	}
	x.numbered = kind.filter == "" // documents are not edited by line numbers
	if x.numbered {
		return nil
	}
	return t.asDocument(ctx, docs, x.part)
}

// refuseBinary returns the error for a file that is not text. The error suggests an
// alternative.
func refuseBinary(path, mediaType string, size int64) error {
	advice := "a shell, where there is one, may have a program that reads it"
	switch {
	case strings.HasPrefix(mediaType, "image/"):
		advice = "view_image shows JPEG, PNG, GIF, WebP, BMP and TIFF pictures"
	case slices.Contains([]string{"application/x-7z-compressed", "application/vnd.rar", "application/x-xz"}, mediaType):
		advice = "a shell, where there is one, may unpack it (7z, unrar, xz, tar xf), or ask for it as zip"
	}
	return Errorf("%q is not text: it is %s, %d bytes; %s", path, mediaType, size, advice)
}

// fill reads t to its end, because notes contains the number of all lines. It keeps the
// requested lines that fit.
func (x *lineRange) fill(ctx context.Context, t *textFile) error {
	most := maxLine
	// A call for a single line returns more of a line that was cut.
	if x.limit == 1 {
		most = maxContent
	}
	full := false
	for {
		// Checking at every line would take longer than reading the line.
		if x.total%1000 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		line, length, err := t.next(most)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read %q: %w", x.path, err)
		}
		if x.total++; full || x.total < x.first {
			continue
		}
		shown := x.shown(line, length, most)
		// When a line does not fit, no later line is added, so that the result has no gaps. The
		// first line is added even if it does not fit: otherwise the model could not continue
		// after it.
		full = x.lines >= x.limit || x.text.Len()+len(shown) > maxContent && x.lines > 0
		if full {
			continue
		}
		x.text.WriteString(shown)
		x.lines++
		if strings.HasSuffix(line, "\r\n") {
			x.crlf++
		}
		if length > most && x.cut == 0 {
			x.cut = x.total
		}
	}
}

// shown returns a line in the form for the model. length is the length of the complete line.
func (x *lineRange) shown(line string, length, most int) string {
	text := workspace.Cut(strings.TrimRight(line, "\r\n"), most)
	if length > most {
		text += fmt.Sprintf("… [the line has %d bytes]", length)
	}
	if x.numbered {
		text = strconv.Itoa(x.total) + "\t" + text
	}
	return text + "\n"
}

// notes returns additional information for the model, one item per line.
func (x *lineRange) notes(t *textFile) string {
	var notes []string
	if x.total == 0 {
		notes = append(notes, "the file is empty")
	}
	if next := x.first + x.lines; next <= x.total {
		notes = append(notes, fmt.Sprintf("lines %d to %d of %d; go on with offset %d", x.first, next-1, x.total, next))
	}
	switch {
	case x.cut > 0 && x.limit > 1:
		notes = append(notes, fmt.Sprintf("line %d is cut: read it with limit 1, or search it", x.cut))
	case x.cut > 0:
		notes = append(notes, fmt.Sprintf("line %d is cut: search it for what you need", x.cut))
	}
	// shown removes the line ends, so the model cannot see them.
	if x.crlf > 0 && x.numbered {
		notes = append(notes, "lines end with CRLF")
	}
	if note := t.encodingNote(); note != "" {
		notes = append(notes, note)
	}
	if t.kind.plain && !x.numbered {
		notes = append(notes, "this is the text of the "+t.kind.name+"; source true gives the file as it is, to edit it")
	}
	text := ""
	for _, note := range notes {
		text += "[" + note + "]\n"
	}
	return text
}
