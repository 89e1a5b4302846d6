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

// The encodings of text that are told apart.
const (
	utf8Text    = "utf-8"
	utf16LE     = "utf-16le"
	utf16BE     = "utf-16be"
	windows1252 = "windows-1252" // what remains; Latin-1 is a part of it
)

// headSize is how much of a file decides whether it is text.
const headSize = 8 << 10

// A textFile is a workspace file being read line by line, as UTF-8.
type textFile struct {
	file      *os.File
	lines     *bufio.Reader
	size      int64
	mediaType string
	encoding  string // "" if it is not text; then there are no lines
	kept      []byte // of the last line, kept for its memory
}

// openText opens the file at path and finds out what it holds.
func openText(ws *sandbox.Workspace, path string) (*textFile, error) {
	f, err := ws.Open(path)
	if err != nil {
		return nil, told(err)
	}
	t := &textFile{file: f, lines: bufio.NewReaderSize(f, 64<<10)}
	info, err := f.Stat()
	if err == nil {
		t.size = info.Size()
		err = t.detect(path)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("read %s: %w", path, err), f.Close())
	}
	return t, nil
}

// Close ends the reading.
func (t *textFile) Close() error { return t.file.Close() }

// asPDF puts the text of a PDF document in the place of its bytes.
func (t *textFile) asPDF(ctx context.Context, pdfs pdfReader) error {
	if t.size > sandbox.MaxFilterInput {
		return Errorf("the PDF document has %d bytes; up to %d can be read", t.size, sandbox.MaxFilterInput)
	}
	text, err := pdfs.read(ctx, t.lines)
	t.lines, t.encoding = bufio.NewReader(strings.NewReader(text)), utf8Text
	return err
}

func (t *textFile) detect(path string) error {
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
		decoder := unicode.UTF16(unicode.LittleEndian, unicode.UseBOM).NewDecoder()
		t.lines = bufio.NewReaderSize(decoder.Reader(t.lines), 64<<10)
	}
	return nil
}

// The byte order marks that text can begin with.
const (
	utf8Mark    = "\xef\xbb\xbf"
	utf16LEMark = "\xff\xfe"
	utf16BEMark = "\xfe\xff"
	utf32LEMark = "\xff\xfe\x00\x00"
)

// encodingOf says how text that begins with head is encoded, "" if it is not text.
func encodingOf(head []byte) string {
	begins := func(mark string) bool { return bytes.HasPrefix(head, []byte(mark)) }
	switch {
	case begins(utf16LEMark) && !begins(utf32LEMark):
		return utf16LE
	case begins(utf16BEMark):
		return utf16BE
	case bytes.ContainsFunc(head, isBinary) || begins("%PDF-"):
		return ""
	case utf8.Valid(withoutPartialRune(head)):
		return utf8Text
	case !strings.HasPrefix(http.DetectContentType(head), "text/"):
		return ""
	}
	return windows1252
}

// isBinary holds for control characters that text does not have. Tabs, line ends,
// page feeds, and the escapes that color logs are fine.
func isBinary(r rune) bool {
	return r < ' ' && !strings.ContainsRune("\t\n\v\f\r\b\x1b", r)
}

// withoutPartialRune is b without what may be the beginning of a rune at its end.
func withoutPartialRune(b []byte) []byte {
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

// next reads the next line, with its line end, and gives at most its first most
// bytes, how long it is in all, and at the end io.EOF.
func (t *textFile) next(most int) (line string, length int, err error) {
	t.kept = t.kept[:0]
	for {
		piece, err := t.lines.ReadSlice('\n')
		length += len(piece)
		t.kept = append(t.kept, piece[:min(len(piece), most-len(t.kept))]...)
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err != nil && (length == 0 || !errors.Is(err, io.EOF)) {
			return "", 0, err
		}
		break
	}
	if len(t.kept) < length {
		t.kept = withoutPartialRune(t.kept)
	}
	return t.decode(t.kept), length, nil
}

// decode makes UTF-8 of a line. A line that is none is taken for Windows-1252, even
// far down in a file that had nothing but ASCII before.
func (t *textFile) decode(line []byte) string {
	if utf8.Valid(line) {
		return string(line)
	}
	t.encoding = windows1252
	decoded, err := charmap.Windows1252.NewDecoder().Bytes(line)
	if err != nil {
		return strings.ToValidUTF8(string(line), "\uFFFD") // it has no such error, but may grow one
	}
	return string(decoded)
}

// cut is the longest beginning of s that has at most n bytes and ends no rune in
// its middle.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
