package runner

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
)

// cleanInput gives a tool call's arguments in a form that can be kept and shown:
// compact if a tool could run with them, else their text as a JSON string.
func cleanInput(raw json.RawMessage) json.RawMessage {
	text := mended(string(raw))
	if strings.Trim(text, " \t\r\n") == "" {
		return json.RawMessage(`{}`) // how some models call a tool without arguments
	}
	if objectProblem([]byte(text)) == "" {
		return new(compactor).append(nil, text)
	}
	quoted, err := json.Marshal(text)
	if err != nil { // a string always marshals
		return json.RawMessage(`""`)
	}
	return quoted
}

// inputText is the text that a model wrote for arguments that were kept, compact.
// It is what a stream shows of them, piece by piece.
func inputText(input json.RawMessage) string {
	if raw, ok := unusable(input); ok {
		return string(new(compactor).append(nil, raw))
	}
	return string(input)
}

// unusable gives the text of arguments that no tool can run with.
func unusable(input json.RawMessage) (text string, ok bool) {
	if len(input) == 0 || input[0] != '"' || json.Unmarshal(input, &text) != nil {
		return "", false
	}
	return text, true
}

// inputError says why no tool can run with these arguments, ” if one can.
func inputError(input json.RawMessage) string {
	if text, ok := unusable(input); ok {
		return objectProblem([]byte(text))
	}
	return objectProblem(input)
}

// objectProblem says why raw is not an object of arguments. Keys that change
// objects in JavaScript are refused: they would stop the reader of a stream.
func objectProblem(raw []byte) string {
	const bad = "the arguments are not a JSON object"
	if first := bytes.TrimLeft(raw, " \t\r\n"); len(first) == 0 || first[0] != '{' || !json.Valid(raw) {
		return bad
	}
	key, err := hostileKey(raw)
	switch {
	case err != nil:
		return bad
	case key != "":
		return "the arguments have a key " + key
	}
	return ""
}

// hostileKey gives the first key in valid JSON that readers in JavaScript refuse:
// __proto__, and prototype in a constructor. It fails at numbers that no program
// can hold.
func hostileKey(raw []byte) (string, error) {
	type level struct{ object, constructor bool }
	open := []level{{}} // what is being read, the whole text first
	dec := json.NewDecoder(bytes.NewReader(raw))
	key, isKey := "", false // the last one, and whether one comes next
	for {
		tok, err := dec.Token()
		if errors.Is(err, io.EOF) {
			return "", nil
		}
		if err != nil {
			return "", err
		}
		name, text := tok.(string)
		if text && isKey {
			if name == "__proto__" || name == "prototype" && open[len(open)-1].constructor {
				return name, nil
			}
			key, isKey = name, false
			continue
		}
		switch tok {
		case json.Delim('{'), json.Delim('['):
			open = append(open, level{tok == json.Delim('{'), tok == json.Delim('{') && key == "constructor"})
		case json.Delim('}'), json.Delim(']'):
			open = open[:len(open)-1]
		}
		key, isKey = "", open[len(open)-1].object
	}
}

// A compactor writes JSON as it is kept: no spaces between tokens, and <, >, & and
// the line separators of JavaScript escaped. It takes the text in pieces of whole
// characters.
type compactor struct {
	quoted  bool // within a string
	escaped bool // after a backslash
}

func (c *compactor) append(dst []byte, s string) []byte {
	const hex = "0123456789abcdef"
	for _, r := range s {
		switch {
		case !c.quoted && (r == ' ' || r == '\t' || r == '\n' || r == '\r'):
			continue
		case r == '<' || r == '>' || r == '&':
			dst = append(dst, '\\', 'u', '0', '0', hex[r>>4], hex[r&15])
		case r == '\u2028' || r == '\u2029':
			dst = append(dst, '\\', 'u', '2', '0', '2', hex[r&15])
		default:
			dst = append(dst, string(r)...)
		}
		switch {
		case c.escaped:
			c.escaped = false
		case c.quoted && r == '\\':
			c.escaped = true
		case r == '"':
			c.quoted = !c.quoted
		}
	}
	return dst
}
