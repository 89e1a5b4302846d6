package offline

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"journeyman/store/db"
)

// cutBytes returns at most n bytes of s. It does not split a character unless n is too small
// for one character.
func cutBytes(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for end := n; end > 0 && end > n-utf8.UTFMax; end-- {
		if utf8.RuneStart(s[end]) {
			return s[:end]
		}
	}
	return s[:n]
}

// shorten returns s on one line of at most n characters. It adds an ellipsis if it omits text.
func shorten(s string, n int) string {
	s = strings.Join(strings.Fields(cutBytes(s, n*(utf8.UTFMax+1))), " ")
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	cut := db.FirstRunes(s, n-1)
	if i := strings.LastIndexByte(cut, ' '); i > len(cut)/2 {
		cut = cut[:i]
	}
	return strings.TrimRight(cut, " ,;:.") + "…"
}

// firstLine returns the first line of text that is not empty, without the marks of a heading.
func firstLine(text string) string {
	for ln := range strings.Lines(text) {
		if ln = strings.TrimSpace(strings.TrimLeft(strings.TrimSpace(ln), "#")); ln != "" {
			return ln
		}
	}
	return ""
}

// marshalJSON returns v as one line of JSON, without escaping <, > and &. v consists of
// strings, numbers, slices and maps, which can always be marshaled.
func marshalJSON(v any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return []byte("null")
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
