package view

import (
	"bytes"
	"encoding/json"
)

// maxIndent is the number of levels that Indent indents.
const maxIndent = 100

// Indent returns JSON with a line for each value, for people. ok is false for a text that is no JSON, and for
// very deep JSON: the length of its indented text grows with the square of the depth.
func Indent(raw []byte) (text string, ok bool) {
	var b bytes.Buffer
	if isDeeper(raw, maxIndent) || json.Indent(&b, raw, "", "  ") != nil {
		return "", false
	}
	return b.String(), true
}

// isDeeper reports whether a JSON value has more than most lists and objects inside each other.
func isDeeper(raw []byte, most int) bool {
	depth, quoted := 0, false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case quoted && c == '\\':
			i++ // the next byte is escaped
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '[', c == '{':
			if depth++; depth > most {
				return true
			}
		case c == ']', c == '}':
			depth--
		}
	}
	return false
}
