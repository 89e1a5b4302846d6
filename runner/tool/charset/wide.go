package charset

import (
	"bytes"
	"encoding/binary"
	"net/http"
	"strings"
	"unicode"
)

// Escapes reports whether a text contains the escape sequences of ISO-2022-JP, which is ASCII otherwise.
func Escapes(text []byte) bool {
	for _, sequence := range []string{"\x1b$B", "\x1b$@", "\x1b(J"} {
		if bytes.Contains(text, []byte(sequence)) {
			return !bytes.ContainsFunc(text, func(r rune) bool { return r > unicode.MaxASCII })
		}
	}
	return false
}

// Wide returns the encoding of a text in UTF-16 or UTF-32 that has no byte order mark, and "" for anything else.
func Wide(head []byte) string {
	if len(head) < 4 || !strings.HasPrefix(http.DetectContentType(head), "application/octet-stream") &&
		!strings.HasPrefix(http.DetectContentType(head), "text/plain") {
		return ""
	}
	for _, e := range []struct {
		name string
		unit func([]byte) rune
		size int
	}{
		{UTF32LE, func(b []byte) rune { return rune(binary.LittleEndian.Uint32(b) & 0x7fffffff) }, 4},
		{UTF32BE, func(b []byte) rune { return rune(binary.BigEndian.Uint32(b) & 0x7fffffff) }, 4},
		{UTF16LE, func(b []byte) rune { return rune(binary.LittleEndian.Uint16(b)) }, 2},
		{UTF16BE, func(b []byte) rune { return rune(binary.BigEndian.Uint16(b)) }, 2},
	} {
		if looksWide(head, e.unit, e.size) {
			return e.name
		}
	}
	return ""
}

// looksWide reports whether nearly all units of a file are characters of written languages, with spaces among them.
func looksWide(head []byte, unit func([]byte) rune, size int) bool {
	spaces, written, all, zeros := 0, 0, 0, 0
	for ; len(head) >= size; head = head[size:] {
		r := unit(head)
		all++
		switch {
		case r == ' ' || r == '\n' || r == '\u3000' || r == '、' || r == '。':
			spaces++
			written++
		case r == '\t' || r == '\r' || r >= 0xd800 && r <= 0xdfff || isWritten(r):
			written++
		case r == 0 || unicode.IsControl(r):
			return false
		}
		if r < 0x100 {
			zeros++
		}
	}
	// Text of one byte a character, read as pairs, is made of Chinese characters without a space.
	return len(head) < size && all > 1 && written*100 >= all*97 && (spaces > 0 || zeros*10 > all*9)
}

// isWritten reports whether r is a visible character of a script in common use.
func isWritten(r rune) bool {
	return unicode.IsGraphic(r) && (r < 0x2000 && !(r > 0x7f && r < 0xa0) || r >= 0x2010 && r < 0x2300 ||
		r >= 0x3000 && r < 0x3100 || r >= 0x4e00 && r <= 0x9fff || r >= 0xac00 && r <= 0xd7a3 ||
		r >= 0xff00 && r <= 0xffef || r >= 0x1f300 && r < 0x1faff)
}
