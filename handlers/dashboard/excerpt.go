package dashboard

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// An excerpt is the beginning of a text that may be too long for a page.
type excerpt struct {
	Text string
	Size int64  // of the whole text, in bytes
	More string // address of the whole text; '' where all is shown
	cut  bool
}

// Cut reports whether there is more than is shown.
func (e excerpt) Cut() bool { return e.cut }

// excerptOf cuts text so that it takes at most that many bytes as it is written into
// a page, where a quotation mark becomes five.
func excerptOf(text string, most int) excerpt {
	e := excerpt{Text: text, Size: int64(len(text))}
	if len(text)*maxEscape <= most {
		return e
	}
	left := most
	for i, c := range text {
		if left -= escapedLen(c); left < 0 {
			e.Text, e.cut = text[:i], true
			break
		}
	}
	return e
}

// maxEscape is the most bytes that html/template writes for one of a text.
const maxEscape = 5

// escapedLen is how many bytes html/template writes for a character.
func escapedLen(c rune) int {
	switch c {
	case '<', '>':
		return len("&lt;")
	case '&', '"', '\'', '+', 0:
		return len("&#34;")
	}
	return utf8.RuneLen(c)
}

// escapedSize is how many bytes html/template writes for a text.
func escapedSize(text string) int {
	n := 0
	for _, c := range text {
		n += escapedLen(c)
	}
	return n
}

// prettyJSON gives JSON as people read it: indented, and a string as its text. What
// is no JSON stays as it is.
func prettyJSON(raw json.RawMessage) string {
	trimmed := bytes.TrimSpace(raw)
	var text string
	if len(trimmed) > 0 && trimmed[0] == '"' && json.Unmarshal(trimmed, &text) == nil {
		return text
	}
	var b bytes.Buffer
	if err := json.Indent(&b, trimmed, "", "  "); err != nil {
		return string(raw)
	}
	return readable(strings.ToValidUTF8(b.String(), "\uFFFD"))
}

// readable gives JSON with those characters as they are that were escaped for no
// need, such as < and é. What cannot be seen stays escaped.
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
