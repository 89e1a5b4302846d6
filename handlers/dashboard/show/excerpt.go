package show

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"journeyman/runner/view"
	"journeyman/store/db"
)

// An Excerpt is the beginning of a text that may be too long for a page.
type Excerpt struct {
	Text string
	Size int64  // of the whole text, in bytes
	More string // address of the whole text; "" if Text is the whole
	Cut  bool   // the text is longer than Text
}

// At returns the excerpt with the address of the whole text, if it is cut.
func (e Excerpt) At(whole string) Excerpt {
	if e.Cut {
		e.More = whole
	}
	return e
}

// ExcerptOf returns the longest beginning of text that takes at most most bytes of HTML.
// html/template escapes the text, which can then need five times its size.
func ExcerptOf(text string, most int) Excerpt {
	e := Excerpt{Text: text, Size: int64(len(text))}
	for i, c := range text {
		if most -= escapedLen(c); most < 0 {
			e.Text, e.Cut = text[:i], true
			break
		}
	}
	return e
}

// escapedLen returns the number of bytes that html/template writes for a character.
func escapedLen(c rune) int {
	switch c {
	case '<', '>':
		return len("&lt;")
	case '&', '"', '\'', '+', 0:
		return len("&#34;")
	}
	return utf8.RuneLen(c)
}

// JSON returns JSON for people: indented, and a single string without its quotation marks. It
// returns a text that is no JSON, and very deep JSON, unchanged.
func JSON(raw json.RawMessage) string {
	trimmed := bytes.TrimSpace(raw)
	var text string
	if len(trimmed) > 0 && trimmed[0] == '"' && json.Unmarshal(trimmed, &text) == nil {
		return text
	}
	lines, ok := view.Indent(trimmed)
	if !ok {
		return string(raw)
	}
	return readable(strings.ToValidUTF8(lines, "\uFFFD"))
}

// readable returns JSON without needless escapes, such as those of < and é. Invisible characters
// and quotation marks stay escaped.
func readable(text string) string {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' || i+1 == len(text) {
			b.WriteByte(text[i])
			continue
		}
		if text[i+1] == 'u' && i+6 <= len(text) {
			c, err := strconv.ParseUint(text[i+2:i+6], 16, 16)
			if err == nil && unicode.IsPrint(rune(c)) && c != '"' && c != '\\' {
				b.WriteRune(rune(c))
				i += 5
				continue
			}
		}
		b.WriteString(text[i : i+2])
		i++
	}
	return b.String()
}

// Cut returns the first n characters of a text, without white space at their end, and whether the
// text is longer.
func Cut(text string, n int) (beginning string, more bool) {
	if beginning = db.FirstRunes(text, n); len(beginning) < len(text) {
		return strings.TrimRight(beginning, " \n"), true
	}
	return text, false
}

// Ellipsis returns the first n characters of a text, with an ellipsis if the text is longer.
func Ellipsis(text string, n int) string {
	beginning, more := Cut(text, n)
	if more {
		return beginning + "…"
	}
	return text
}

// Indented returns JSON with a line for each field.
func Indented(raw json.RawMessage) string {
	lines, ok := view.Indent(raw)
	if !ok {
		return string(raw)
	}
	return lines
}

// inList is the room for a text in a list, in bytes of HTML.
const inList = 200

// Brief returns a text for a list: truncated, with an ellipsis, if it is long.
func Brief(text string) string {
	e := ExcerptOf(text, inList)
	if e.Cut {
		return e.Text + "…"
	}
	return text
}
