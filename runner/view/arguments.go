package view

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"unicode/utf8"

	"journeyman/runner/arguments"
)

// CleanInput returns the arguments of a tool call in the form in which they are stored and shown.
// Valid arguments become compact JSON, and so do those that can be mended. Other arguments become a
// JSON string that holds their text.
func CleanInput(raw json.RawMessage) json.RawMessage {
	text := ValidText(string(raw))
	if strings.Trim(text, " \t\r\n") == "" {
		return json.RawMessage(`{}`) // some models call a tool without arguments like this
	}
	if mended, err := arguments.Object([]byte(text)); err == nil && objectProblem(mended) == "" {
		return new(Compactor).Append(nil, string(mended))
	}
	return quote(text)
}

// CleanOutput returns the result of a tool in a form that every stream client can parse. It turns a
// result that such clients refuse into a JSON string that holds its text.
func CleanOutput(out json.RawMessage) json.RawMessage {
	out = json.RawMessage(ValidText(string(out)))
	if key, err := hostileKey(out); key == "" && err == nil {
		return out
	}
	return quote(string(out))
}

// errTooDeep means that JSON has more than maxDepth values inside each other.
var errTooDeep = errors.New("too many values inside each other")

// quote returns a text as a JSON string.
func quote(text string) json.RawMessage {
	quoted, _ := json.Marshal(text) // a string always marshals
	return quoted
}

// ValidText returns s with each byte that is not valid UTF-8 replaced. A text may be split between
// characters: converting the pieces gives the same result as converting the whole text.
// strings.ToValidUTF8 lacks this property, because it replaces a run of invalid bytes only once.
func ValidText(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return string([]rune(s))
}

// InputText returns the compact text of stored arguments, as the model wrote them. Streams send
// this text in pieces.
func InputText(input json.RawMessage) string {
	if raw, ok := invalidArguments(input); ok {
		return string(new(Compactor).Append(nil, raw))
	}
	return string(input)
}

// invalidArguments returns the text of arguments that are not a valid object. ok is false for valid
// arguments.
func invalidArguments(input json.RawMessage) (text string, ok bool) {
	if len(input) == 0 || input[0] != '"' || json.Unmarshal(input, &text) != nil {
		return "", false
	}
	return text, true
}

// InputError returns the reason why stored arguments are invalid, or "" if they are valid.
func InputError(input json.RawMessage) string {
	if text, ok := invalidArguments(input); ok {
		if _, err := arguments.Object([]byte(text)); err != nil {
			return err.Error()
		}
		return objectProblem([]byte(text))
	}
	return objectProblem(input)
}

// objectProblem returns the reason why raw is not a valid object of arguments, or "". It refuses
// keys that change prototypes in JavaScript, because stream clients fail at such a key.
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

// maxDepth bounds the values inside each other in arguments and results: the database stores no JSON with
// more than 1,000 of them.
const maxDepth = 500

// hostileKey returns the first key in valid JSON that clients in JavaScript refuse:
// __proto__, or prototype inside a constructor. It returns an error for a number that
// no float64 can hold, and for more than maxDepth values inside each other.
func hostileKey(raw []byte) (string, error) {
	type level struct{ object, constructor bool }
	open := []level{{}} // the values that enclose the next token, outermost first
	dec := json.NewDecoder(bytes.NewReader(raw))
	key, isKey := "", false // the last key, and whether the next token is a key
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
			if len(open) > maxDepth {
				return "", errTooDeep
			}
			open = append(open, level{tok == json.Delim('{'), tok == json.Delim('{') && key == "constructor"})
		case json.Delim('}'), json.Delim(']'):
			open = open[:len(open)-1]
		}
		key, isKey = "", open[len(open)-1].object
	}
}

// A Compactor writes JSON as it is stored: without spaces between tokens, and with <, >, & and the
// line separators of JavaScript escaped. Append takes the text in pieces, split between characters.
type Compactor struct {
	quoted  bool // inside a string
	escaped bool // after a backslash
}

// Append appends the next piece s to dst.
func (c *Compactor) Append(dst []byte, s string) []byte {
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
