package tool

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"

	"journeyman/runner/sandbox"
)

// The encodings of text that are recognized.
const (
	utf8Text    = "utf-8"
	utf16LE     = "utf-16le"
	utf16BE     = "utf-16be"
	windows1252 = "windows-1252" // any other text; includes Latin-1
)

// headSize is the number of bytes of a file that determine whether it is text.
const headSize = 8 << 10

// A textFile reads a file of the workspace line by line, as UTF-8.
type textFile struct {
	file      *os.File
	lines     *bufio.Reader
	size      int64
	mediaType string
	encoding  string // "" if the file is not text, so that it has no lines
	kept      []byte // buffer of the last line, reused for the next one
}

// openText opens the file at path and detects its type and encoding.
func openText(ws *sandbox.Workspace, path string) (*textFile, error) {
	f, err := ws.Open(path)
	if err != nil {
		return nil, explain(err)
	}
	t := &textFile{file: f, lines: bufio.NewReaderSize(f, 64<<10)}
	info, err := f.Stat()
	if err == nil {
		t.size = info.Size()
		err = t.detect(path)
	}
	if err != nil {
		// The caller gets no textFile, so close the file here.
		return nil, errors.Join(fmt.Errorf("read %q: %w", path, err), f.Close())
	}
	return t, nil
}

// Close closes the file.
func (t *textFile) Close() error { return t.file.Close() }

// asDocument replaces the contents of t, a document, by the text of the selected part of it.
func (t *textFile) asDocument(ctx context.Context, docs Documents, s selection) error {
	if t.size > sandbox.MaxFilterInput {
		return Errorf("the document has %d bytes; up to %d can be read", t.size, sandbox.MaxFilterInput)
	}
	document, err := io.ReadAll(io.LimitReader(t.lines, sandbox.MaxFilterInput))
	if err != nil {
		return fmt.Errorf("read %q: %w", t.file.Name(), err)
	}
	text, err := docs.document(ctx, t.mediaType, s, document)
	// From now on, next returns the lines of the text.
	t.lines, t.encoding = bufio.NewReader(strings.NewReader(text)), utf8Text
	return err
}

// detect sets the media type and the encoding, and skips a byte order mark.
func (t *textFile) detect(path string) error {
	// Peek does not consume the bytes, so next still returns the first line.
	head, err := t.lines.Peek(headSize)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	t.mediaType = sandbox.MediaType(path, head)
	t.encoding = encodingOf(head)
	switch t.encoding {
	case utf8Text:
		if bytes.HasPrefix(head, []byte(utf8Mark)) {
			_, err := t.lines.Discard(len(utf8Mark))
			return err
		}
	case utf16LE, utf16BE:
		// The byte order mark overrides the little-endian default.
		decoder := unicode.UTF16(unicode.LittleEndian, unicode.UseBOM).NewDecoder()
		t.lines = bufio.NewReaderSize(decoder.Reader(t.lines), 64<<10)
	}
	return nil
}

// The byte order marks at the beginning of text.
const (
	utf8Mark    = "\xef\xbb\xbf"
	utf16LEMark = "\xff\xfe"
	utf16BEMark = "\xfe\xff"
	utf32LEMark = "\xff\xfe\x00\x00"
)

// encodingOf returns the encoding of a text that begins with head, "" for a binary file.
func encodingOf(head []byte) string {
	begins := func(mark string) bool { return bytes.HasPrefix(head, []byte(mark)) }
	switch {
	// The mark of UTF-32 begins with that of UTF-16. UTF-32 contains NUL bytes, so it is
	// treated as binary.
	case begins(utf16LEMark) && !begins(utf32LEMark):
		return utf16LE
	case begins(utf16BEMark):
		return utf16BE
	case bytes.ContainsFunc(head, isBinary) || begins("%PDF-"):
		return ""
	// head may end inside a character.
	case utf8.Valid(withoutPartialRune(head)):
		return utf8Text
	case !strings.HasPrefix(http.DetectContentType(head), "text/"):
		return ""
	}
	return windows1252
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

// decode converts a line to UTF-8. A line that is not valid UTF-8 is decoded as Windows-1252,
// even if all earlier lines were ASCII.
func (t *textFile) decode(line []byte) string {
	if utf8.Valid(line) {
		return string(line)
	}
	t.encoding = windows1252
	decoded, _ := charmap.Windows1252.NewDecoder().Bytes(line) // cannot fail: each byte is one character
	return string(decoded)
}
