package rtf

import (
	"strings"
	"unicode/utf16"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/traditionalchinese"
	"golang.org/x/text/encoding/unicode"

	"journeyman/runner/tool/office/mark"
)

// symbolPage stands for the code page of fonts with signs.
const symbolPage = 42

// charsets are the code pages of the character sets of fonts.
var charsets = map[int]int{0: 1252, 2: symbolPage, 77: 10000, 128: 932, 129: 949, 130: 949, 134: 936, 136: 950,
	161: 1253, 162: 1254, 163: 1258, 177: 1255, 178: 1256, 186: 1257, 204: 1251, 222: 874, 238: 1250, 254: 437, 255: 850}

// codePages are the encodings of code pages with one byte for each character.
var codePages = map[int]*charmap.Charmap{437: charmap.CodePage437, 850: charmap.CodePage850,
	852: charmap.CodePage852, 866: charmap.CodePage866, 874: charmap.Windows874, 1250: charmap.Windows1250,
	1251: charmap.Windows1251, 1252: charmap.Windows1252, 1253: charmap.Windows1253, 1254: charmap.Windows1254,
	1255: charmap.Windows1255, 1256: charmap.Windows1256, 1257: charmap.Windows1257, 1258: charmap.Windows1258,
	10000: charmap.Macintosh, 10007: charmap.MacintoshCyrillic, 20866: charmap.KOI8R, 28591: charmap.ISO8859_1,
	28592: charmap.ISO8859_2, 28605: charmap.ISO8859_15}

// widePages are the encodings of code pages with several bytes for a character.
var widePages = map[int]encoding.Encoding{932: japanese.ShiftJIS, 936: simplifiedchinese.GBK,
	949: korean.EUCKR, 950: traditionalchinese.Big5, 54936: simplifiedchinese.GB18030, 65001: unicode.UTF8}

// flush decodes the bytes so far with the code page of the current font.
func (r *reader) flush() {
	if len(r.raw) == 0 {
		return
	}
	name, page := "", r.codePage
	if f := r.fonts[r.now().font]; f != nil && r.now().target <= shortText { // tables have no font
		name = f.name
		if f.codePage != 0 {
			page = f.codePage
		}
	}
	text := decode(page, r.raw)
	r.raw = r.raw[:0]
	r.high = 0
	r.add(mark.Text(name, text))
}

// decode returns bytes of a code page as text.
func decode(page int, raw []byte) string {
	if wide := widePages[page]; wide != nil {
		text, err := wide.NewDecoder().Bytes(raw)
		if err != nil {
			return strings.ToValidUTF8(string(raw), "\uFFFD")
		}
		return string(text)
	}
	var b strings.Builder
	narrow := codePages[page]
	if narrow == nil {
		narrow = charmap.Windows1252
	}
	for _, c := range raw {
		switch {
		case page == symbolPage && c >= ' ':
			b.WriteRune(0xF000 + rune(c))
		case c < 0x80:
			b.WriteByte(c)
		default:
			b.WriteRune(narrow.DecodeByte(c))
		}
	}
	return b.String()
}

// unicode adds a character that \u gives as a signed number of 16 bits.
func (r *reader) unicode(number int) {
	r.skip = r.now().skipped
	code := rune(uint16(number)) // numbers above 32767 are negative
	if number > 0xFFFF {
		code = rune(min(number, 0x110000))
	}
	switch {
	case utf16.IsSurrogate(code) && code < 0xDC00:
		r.high = code
		return
	case utf16.IsSurrogate(code):
		code = utf16.DecodeRune(r.high, code)
	}
	r.high = 0
	name := ""
	if f := r.fonts[r.now().font]; f != nil {
		name = f.name
	}
	if code == 0 {
		return
	}
	// A letter that \u gives is no sign, also if its font has signs.
	if code < 0xF000 {
		name = ""
	}
	r.add(mark.Text(name, string(code)))
}
