package tool

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"journeyman/runner/tool/charset"
	"journeyman/runner/workspace"
)

// headSize is the number of bytes of a file that determine whether it is text.
const headSize = 8 << 10

// A textFile reads a file line by line, as UTF-8.
type textFile struct {
	*content
	lines    *bufio.Reader
	encoding string // canonical name; "" if the file is not text, so that it has no lines
	guess    int    // how sure the encoding is, in percent; 0 if it is no guess
	decodes  bool   // lines are decoded one by one
	kept     []byte // buffer of the last line, reused for the next one
}

// openText opens the file at path and detects its type and encoding. encoding is the canonical name of the encoding
// that the caller knows, "" for none.
func openText(ctx context.Context, docs Documents, ws *workspace.Workspace, path, encoding string) (*textFile, error) {
	c, err := docs.open(ctx, ws, path)
	if err != nil {
		return nil, err
	}
	t := &textFile{content: c}
	t.readAs(c, encoding)
	return t, nil
}

// readAs makes r the source of lines. It skips a byte order mark.
func (t *textFile) readAs(r io.Reader, encoding string) {
	t.lines = bufio.NewReaderSize(r, 64<<10)
	head, _ := t.lines.Peek(headSize) // an error of r comes again with the first line
	t.guess, t.encoding = 0, encoding
	if encoding == "" {
		t.encoding, t.guess = detect(head)
	}
	_, _ = t.lines.Discard(len(markOf(t.encoding, head))) // Peek has read them
	switch {
	case t.encoding == "" || t.encoding == charset.UTF8:
	case charset.Stateful(t.encoding):
		t.lines = bufio.NewReaderSize(charset.NewReader(t.encoding, t.lines), 64<<10)
	default:
		t.decodes = true
	}
}

// asDocument replaces the contents of t, a document, by the text of the selected part of it.
func (t *textFile) asDocument(ctx context.Context, docs Documents, s selection) error {
	document, err := t.bytes()
	if err != nil {
		return err
	}
	s.Name = path.Base(t.path)
	text, err := docs.document(ctx, t.kind, s, document)
	// From now on, next returns the lines of the text.
	t.decodes = false
	t.lines, t.encoding, t.guess = bufio.NewReader(strings.NewReader(text)), charset.UTF8, 0
	return err
}

// The byte order marks at the beginning of text.
const (
	utf8Mark    = "\xef\xbb\xbf"
	utf16LEMark = "\xff\xfe"
	utf16BEMark = "\xfe\xff"
	utf32LEMark = "\xff\xfe\x00\x00"
	utf32BEMark = "\x00\x00\xfe\xff"
)

// markOf returns the byte order mark at the beginning of a text in an encoding, "" for none.
func markOf(encoding string, head []byte) string {
	for _, mark := range []string{utf8Mark, utf32LEMark, utf32BEMark, utf16LEMark, utf16BEMark} {
		// The decoders of UTF-16 and UTF-32 without an order of bytes need the mark.
		if strings.HasPrefix(encoding, "utf-") && encoding != "utf-16" && encoding != "utf-32" &&
			bytes.HasPrefix(head, []byte(mark)) {
			return mark
		}
	}
	return ""
}

// detect returns the encoding of a text that begins with head, "" for a binary file. guess is how sure that is, in
// percent, and 0 for an encoding that is certain.
func detect(head []byte) (encoding string, guess int) {
	const wide = 90 // hardly any other file looks like UTF-16
	encoding = encodingOf(head)
	switch {
	case encoding == "" && !bytes.HasPrefix(head, []byte("%PDF-")):
		if encoding = charset.Wide(head); encoding != "" {
			return encoding, wide
		}
	case encoding == charset.UTF8 && charset.Escapes(head):
		return charset.ISO2022JP, 99
	case encoding == charset.Western:
		return charset.Guess(head)
	}
	return encoding, 0
}

// encodingOf returns the encoding of a text that begins with head, "" for a binary file. Windows-1252 stands for
// any encoding of bytes without a mark.
func encodingOf(head []byte) string {
	begins := func(mark string) bool { return bytes.HasPrefix(head, []byte(mark)) }
	switch {
	// The mark of UTF-32 begins with that of UTF-16.
	case begins(utf32LEMark):
		return charset.UTF32LE
	case begins(utf32BEMark):
		return charset.UTF32BE
	case begins(utf16LEMark):
		return charset.UTF16LE
	case begins(utf16BEMark):
		return charset.UTF16BE
	case bytes.ContainsFunc(head, isBinary) || begins("%PDF-"):
		return ""
	// head may end inside a character.
	case utf8.Valid(withoutPartialRune(head)):
		return charset.UTF8
	case !strings.HasPrefix(http.DetectContentType(head), "text/"):
		return ""
	}
	return charset.Western
}

// isBinary reports whether r is a control character that does not occur in text. Text may
// contain tabs, line ends, form feeds, backspaces and the escape sequences of colored logs.
func isBinary(r rune) bool {
	return r < ' ' && !strings.ContainsRune("\t\n\v\f\r\b\x1b", r)
}

// withoutPartialRune returns b without an incomplete character at its end.
func withoutPartialRune(b []byte) []byte {
	// An incomplete character has at most three bytes.
	for n := 1; n <= min(utf8.UTFMax-1, len(b)); n++ {
		tail := b[len(b)-n:]
		if utf8.RuneStart(tail[0]) {
			if utf8.FullRune(tail) {
				return b
			}
			return b[:len(b)-n]
		}
	}
	return b
}

// next reads the next line with its line end. It returns at most the first most bytes of the
// line, and the length of the whole line. At the end of the file it returns io.EOF.
func (t *textFile) next(most int) (line string, length int, err error) {
	t.kept = t.kept[:0]
	for {
		// ReadSlice allocates no memory for a long line, of which only the beginning is kept.
		piece, err := t.lines.ReadSlice('\n')
		length += len(piece)
		t.kept = append(t.kept, piece[:min(len(piece), most-len(t.kept))]...)
		if errors.Is(err, bufio.ErrBufferFull) { // the line is longer than the buffer
			continue
		}
		// The last line may lack its line end.
		if err != nil && (length == 0 || !errors.Is(err, io.EOF)) {
			return "", 0, err
		}
		break
	}
	// The cut may have split the last character.
	if len(t.kept) < length {
		t.kept = withoutPartialRune(t.kept)
	}
	return t.decode(t.kept), length, nil
}

// decode converts a line to UTF-8. If the file began as ASCII, its first line with other bytes shows the encoding,
// with the bytes after that line.
func (t *textFile) decode(line []byte) string {
	if isASCII(line) || !t.decodes && utf8.Valid(line) {
		return string(line)
	}
	if !t.decodes {
		following, _ := t.lines.Peek(t.lines.Buffered())
		t.encoding, t.guess = charset.Guess(slices.Concat(line, following))
		t.decodes = true
	}
	// Programs of different age may have written to one file. By chance, a line in an encoding of two bytes is
	// valid UTF-8.
	if t.guess > 0 && charset.SingleByte(t.encoding) && utf8.Valid(line) {
		return string(line)
	}
	return charset.Decode(t.encoding, line)
}

func isASCII(line []byte) bool {
	for _, c := range line {
		if c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// encodingNote tells the model how the file is encoded, "" for UTF-8.
func (t *textFile) encodingNote() string {
	switch {
	case t.encoding == charset.UTF8:
		return ""
	case t.guess > 0:
		return fmt.Sprintf("the file is %s (a guess, %d %%), shown as UTF-8: another can be given as encoding",
			charset.Title(t.encoding), t.guess)
	}
	return "the file is " + charset.Title(t.encoding) + ", shown as UTF-8"
}
