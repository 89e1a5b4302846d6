// Package charset guesses the encoding of a text, and decodes it.
//
// A guess needs no configuration: each possible encoding decodes the bytes, and the result that looks most like a
// language wins. The package is pure, and reads a limited number of bytes.
package charset

import (
	"bytes"
	"io"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/encoding/unicode/utf32"
	"golang.org/x/text/transform"
)

// The names of encodings that are not tables of characters.
const (
	UTF8      = "utf-8"
	UTF16LE   = "utf-16le"
	UTF16BE   = "utf-16be"
	UTF32LE   = "utf-32le"
	UTF32BE   = "utf-32be"
	ISO2022JP = "iso-2022-jp"
	Western   = "windows-1252" // the encoding of a text that looks like no language
)

// further are encodings that the WHATWG standard does not name.
var further = map[string]encoding.Encoding{
	UTF32LE: utf32.UTF32(utf32.LittleEndian, utf32.IgnoreBOM), UTF32BE: utf32.UTF32(utf32.BigEndian, utf32.IgnoreBOM),
	"utf-32": utf32.UTF32(utf32.LittleEndian, utf32.UseBOM), "utf-16": unicode.UTF16(unicode.LittleEndian, unicode.UseBOM),
	"ibm437": charmap.CodePage437, "cp437": charmap.CodePage437, "ibm850": charmap.CodePage850,
	"cp850": charmap.CodePage850, "ibm852": charmap.CodePage852, "cp852": charmap.CodePage852,
	"cp1047": charmap.CodePage1047, "cp037": charmap.CodePage037, "iso-8859-9": charmap.ISO8859_9,
}

// Examples lists names of encodings for messages.
const Examples = "utf-8, utf-16le, windows-1252, iso-8859-15, windows-1251, koi8-r, shift_jis, euc-jp, gb18030, " +
	"big5, euc-kr"

// Lookup returns the canonical name of an encoding. Names are those of the WHATWG standard, with a few more.
func Lookup(name string) (canonical string, known bool) {
	name = strings.ToLower(strings.TrimSpace(name))
	if _, ok := further[name]; ok {
		return name, true
	}
	e, err := htmlindex.Get(name)
	if err != nil {
		return "", false
	}
	canonical, err = htmlindex.Name(e)
	return canonical, err == nil && canonical != "replacement" && canonical != "x-user-defined"
}

// of returns the encoding with a canonical name.
func of(canonical string) encoding.Encoding {
	if e, ok := further[canonical]; ok {
		return e
	}
	e, err := htmlindex.Get(canonical)
	if err != nil {
		return charmap.Windows1252
	}
	return e
}

// Stateful reports whether a text cannot be decoded line by line, because a line end has other bytes, or because
// a line depends on the lines before.
func Stateful(canonical string) bool {
	return strings.HasPrefix(canonical, "utf-16") || strings.HasPrefix(canonical, "utf-32") || canonical == ISO2022JP ||
		canonical == "cp1047" || canonical == "cp037"
}

// SingleByte reports whether each byte of an encoding is a character.
func SingleByte(canonical string) bool {
	_, ok := of(canonical).(*charmap.Charmap)
	return ok
}

// NewReader returns a reader of the text in r as UTF-8.
func NewReader(canonical string, r io.Reader) io.Reader {
	return transform.NewReader(r, of(canonical).NewDecoder())
}

// Decode returns a text as UTF-8. Bytes that are no text in the encoding become U+FFFD.
func Decode(canonical string, text []byte) string {
	decoded, err := of(canonical).NewDecoder().Bytes(text)
	if err != nil {
		return strings.ToValidUTF8(string(text), string(utf8.RuneError))
	}
	return string(decoded)
}

// Text returns a text of unknown encoding as UTF-8. label, which may be "", is the encoding that its source names.
func Text(text []byte, label string) string {
	for _, mark := range []struct{ bytes, encoding string }{{"\xef\xbb\xbf", UTF8}, {"\xff\xfe\x00\x00", UTF32LE},
		{"\x00\x00\xfe\xff", UTF32BE}, {"\xff\xfe", UTF16LE}, {"\xfe\xff", UTF16BE}} {
		if rest, ok := bytes.CutPrefix(text, []byte(mark.bytes)); ok {
			return Decode(mark.encoding, rest)
		}
	}
	if canonical, known := Lookup(label); label != "" && known {
		return Decode(canonical, text)
	}
	if wide := Wide(text[:min(len(text), sampleSize)]); wide != "" {
		return Decode(wide, text)
	}
	if Escapes(text) {
		return Decode(ISO2022JP, text)
	}
	if utf8.Valid(text) {
		return string(text)
	}
	name, _ := Guess(text)
	return Decode(name, text)
}

// Title returns the usual form of an encoding's name, for messages.
func Title(canonical string) string {
	switch canonical {
	case "shift_jis":
		return "Shift_JIS"
	case "big5":
		return "Big5"
	case UTF8, UTF16LE, UTF16BE, UTF32LE, UTF32BE, "macintosh":
		return canonical
	}
	if strings.HasPrefix(canonical, "windows-") || strings.HasPrefix(canonical, "x-mac") {
		return canonical
	}
	return strings.ToUpper(canonical)
}
