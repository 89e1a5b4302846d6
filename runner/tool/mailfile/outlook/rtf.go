package outlook

import (
	"encoding/binary"
	"strconv"
	"strings"
	"unicode/utf16"

	"journeyman/runner/tool/mailfile/mailtext"
)

// dictionary is the text with which the window of the decompression begins (MS-OXRTFCP, section 2.1.2.1).
const dictionary = `{\rtf1\ansi\mac\deff0\deftab720{\fonttbl;}{\f0\fnil \froman \fswiss \fmodern \fscript ` +
	`\fdecor MS Sans SerifSymbolArial` + "Times New RomanCourier{\\colortbl\\red0\\green0\\blue0\r\n\\par \\pard\\plain\\f0\\fs20\\b\\i\\u\\tab\\tx"

const (
	windowSize   = 4096
	compressed   = 0x75465a4c // "LZFu"
	uncompressed = 0x414c454d // "MELA"
)

// decompress returns the RTF of a property.
func (r *reader) decompress(raw []byte) ([]byte, error) {
	const header = 16
	if len(raw) < header {
		return nil, errDamaged
	}
	size := binary.LittleEndian.Uint32(raw[4:])
	in := raw[header:]
	switch binary.LittleEndian.Uint32(raw[8:]) {
	case uncompressed:
		return in[:min(uint64(size), uint64(len(in)))], nil
	case compressed:
	default:
		return nil, errDamaged
	}
	if uint64(size) > 17*uint64(len(in)) { // each byte becomes fewer
		return nil, errDamaged
	}
	if err := r.take(int(size)); err != nil {
		return nil, err
	}
	var window [windowSize]byte
	at := copy(window[:], dictionary)
	out := make([]byte, 0, size)
	put := func(c byte) {
		out = append(out, c)
		window[at%windowSize] = c
		at++
	}
	for len(in) > 0 {
		flags := in[0]
		in = in[1:]
		for bit := 0; bit < 8 && len(in) > 0; bit++ {
			if flags>>bit&1 == 0 {
				put(in[0])
				in = in[1:]
				continue
			}
			if len(in) < 2 {
				return out, nil
			}
			token := int(in[0])<<8 | int(in[1])
			in = in[2:]
			from, length := token>>4, token&15+2
			if from == at%windowSize { // the end
				return out, nil
			}
			for i := range length {
				put(window[(from+i)%windowSize])
			}
		}
	}
	return out, nil
}

// An rtfGroup is the state of a group in braces.
type rtfGroup struct {
	skip     bool // a destination that is no text
	htmlRTF  bool // text that is only for programs without HTML
	isTag    bool // a piece of the page
	unicode  int  // bytes that follow each character of Unicode, for old programs
	codepage int  // of the font
}

// An rtfReader reads the text of a document in RTF, or the page of which the document was made (MS-OXRTFEX).
type rtfReader struct {
	out      strings.Builder
	pending  []byte // bytes in the code page of the font
	group    rtfGroup
	stack    []rtfGroup
	isPage   bool
	codepage int         // of the document
	fonts    map[int]int // code page by number of the font
	font     int         // that the table of fonts is describing
	ignore   int         // bytes to leave out: the form of a character for old programs
	high     rune        // the first half of a character of Unicode
}

const maxGroups = 1000 // groups inside each other

// readRTF returns the text of a document in RTF, and whether it is a page.
func (r *reader) readRTF(in []byte) (text string, isPage bool, err error) {
	d := &rtfReader{group: rtfGroup{unicode: 1}, codepage: 1252, fonts: map[int]int{}}
	for n := 0; len(in) > 0; n++ {
		if n%4096 == 0 && r.expired() {
			return "", false, errExpired
		}
		switch c := in[0]; c {
		case '{':
			d.flush()
			if len(d.stack) >= maxGroups {
				return "", false, errTooBig
			}
			d.stack = append(d.stack, d.group)
			in = in[1:]
		case '}':
			d.flush()
			if len(d.stack) > 0 {
				d.group, d.stack = d.stack[len(d.stack)-1], d.stack[:len(d.stack)-1]
			}
			in = in[1:]
		case '\\':
			in = d.control(in[1:])
		case '\r', '\n', 0:
			in = in[1:]
		default:
			d.char(c)
			in = in[1:]
		}
	}
	d.flush()
	return d.out.String(), d.isPage, nil
}

// visible reports whether text belongs to the output.
func (d *rtfReader) visible() bool {
	return !d.group.skip && !d.group.htmlRTF
}

// char reads one byte of text.
func (d *rtfReader) char(c byte) {
	if d.ignore > 0 {
		d.ignore--
		return
	}
	if d.visible() {
		d.pending = append(d.pending, c)
	}
}

// write adds text to the output.
func (d *rtfReader) write(text string) {
	if d.flush(); d.visible() {
		d.out.WriteString(text)
	}
}

// flush decodes the bytes so far.
func (d *rtfReader) flush() {
	if len(d.pending) > 0 {
		codepage := d.group.codepage
		if codepage == 0 || d.group.isTag {
			codepage = d.codepage
		}
		d.out.WriteString(mailtext.Decode(d.pending, labelOf(codepage)))
		d.pending = d.pending[:0]
	}
}

// control reads what follows a backslash, and returns the rest.
func (d *rtfReader) control(in []byte) []byte {
	if len(in) == 0 {
		return nil
	}
	switch c := in[0]; {
	case c == '\'':
		if len(in) >= 3 {
			if v, err := strconv.ParseUint(string(in[1:3]), 16, 8); err == nil {
				d.char(byte(v))
			}
			return in[3:]
		}
		return nil
	case c == '\\' || c == '{' || c == '}':
		d.char(c)
		return in[1:]
	case c == '*':
		return d.destination(in[1:])
	case c == '~':
		d.write("\u00a0")
		return in[1:]
	case c == '_':
		d.write("-")
		return in[1:]
	case c == '\r' || c == '\n':
		d.write("\r\n")
		return in[1:]
	case c < 'a' || c > 'z':
		return in[1:]
	}
	word, number, rest := controlWord(in)
	return d.word(word, number, rest)
}

// controlWord reads a control word and its number, -1 if it has none.
func controlWord(in []byte) (word string, number int, rest []byte) {
	end := 0
	for end < len(in) && end < 32 && in[end] >= 'a' && in[end] <= 'z' {
		end++
	}
	word, in = string(in[:end]), in[end:]
	end = 0
	for end < len(in) && end < 11 && (in[end] >= '0' && in[end] <= '9' || end == 0 && in[end] == '-') {
		end++
	}
	number, err := strconv.Atoi(string(in[:end]))
	if err != nil {
		number = -1
	}
	if in = in[end:]; len(in) > 0 && in[0] == ' ' {
		in = in[1:]
	}
	return word, number, in
}

// destination reads the word after \*: its group is left out, unless it is a piece of the page.
func (d *rtfReader) destination(in []byte) []byte {
	d.flush()
	for len(in) > 0 && (in[0] == ' ' || in[0] == '\r' || in[0] == '\n') {
		in = in[1:]
	}
	if len(in) == 0 || in[0] != '\\' {
		d.group.skip = true
		return in
	}
	word, _, rest := controlWord(in[1:])
	if word == "htmltag" && d.isPage {
		d.group.isTag = true
		return rest
	}
	d.group.skip = true
	return rest
}

// word carries out a control word.
func (d *rtfReader) word(word string, number int, rest []byte) []byte {
	if text, is := rtfSigns[word]; is {
		if d.isPage && !d.group.isTag && (word == "par" || word == "line") {
			text = "\r\n"
		}
		d.write(text)
		return rest
	}
	switch word {
	case "fromhtml":
		d.isPage = true
	case "fonttbl":
		d.flush()
		d.group.skip = true
	case "colortbl", "stylesheet", "info", "pict", "object", "header", "footer", "headerl", "headerr",
		"footerl", "footerr",
		"listtable", "generator", "fldinst", "themedata", "datastore", "xmlnstbl", "mhtmltag":
		d.flush()
		d.group.skip = true
	case "htmlrtf":
		d.flush()
		d.group.htmlRTF = number != 0
	case "ansicpg":
		d.codepage = number
	case "uc":
		d.group.unicode = min(max(number, 0), 8)
	case "u":
		d.flush()
		if r := rune(int16(number)) & 0xffff; d.visible() { // #nosec G115 -- RTF writes characters as signed numbers
			d.writeUnicode(r)
		}
		d.ignore = d.group.unicode
	case "f":
		d.flush()
		d.font = number
		d.group.codepage = d.fonts[number]
	case "fcharset":
		if d.group.skip && len(d.fonts) < 1000 {
			d.fonts[d.font] = codepageOfCharset(number)
		}
	case "plain":
		d.flush()
		d.group.codepage = 0
	case "bin":
		return rest[min(max(number, 0), len(rest)):]
	}
	return rest
}

// writeUnicode writes a unit of UTF-16. Two units may be one character.
func (d *rtfReader) writeUnicode(unit rune) {
	switch {
	case unit >= 0xd800 && unit < 0xdc00:
		d.high = unit
	case unit >= 0xdc00 && unit < 0xe000 && d.high != 0:
		d.out.WriteRune(utf16.DecodeRune(d.high, unit))
		d.high = 0
	default:
		d.out.WriteRune(unit)
		d.high = 0
	}
}

// rtfSigns has the texts of control words.
var rtfSigns = map[string]string{"par": "\r\n", "line": "\r\n", "sect": "\r\n", "page": "\r\n",
	"row": "\r\n", "tab": "\t", "cell": "\t",
	"lquote": "‘", "rquote": "’", "ldblquote": "“", "rdblquote": "”", "bullet": "•", "endash": "–", "emdash": "—",
	"emspace": "\u2003", "enspace": "\u2002", "zwj": "\u200d", "zwnj": "\u200c"}

// codepageOfCharset returns the code page of the charset of a font.
func codepageOfCharset(n int) int {
	return map[int]int{77: 10000, 128: 932, 129: 949, 134: 936, 136: 950,
		161: 1253, 162: 1254, 163: 1258, 177: 1255, 178: 1256,
		186: 1257, 204: 1251, 222: 874, 238: 1250, 254: 437, 255: 850}[n]
}
