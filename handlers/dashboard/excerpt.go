package dashboard

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// An excerpt is the beginning of a text that may be too long for a page.
type excerpt struct {
	Text string
	Size int    // of the whole text, in bytes
	More string // address of the whole text; '' where all is shown
	cut  bool
}

// Cut reports whether there is more than is shown.
func (e excerpt) Cut() bool { return e.cut }

// excerptOf cuts text so that it takes at most that many bytes as it is written into
// a page, where a quotation mark becomes five.
func excerptOf(text string, most int) excerpt {
	e := excerpt{Text: text, Size: len(text)}
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
	return strings.ToValidUTF8(b.String(), "\uFFFD")
}
