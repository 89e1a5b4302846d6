// Package arguments reads the arguments of tool calls that a model wrote almost as JSON. It is pure.
//
// Object mends the whole arguments of a call, and keeps the rest as the model wrote it. It mends only what has one
// meaning: arguments that were cut off, or that could mean two things, are given back to the model. Value and Named
// read a value within other text, whose end they must find: there the form of the call around it decides what is
// meant. Fit gives arguments the types that a tool wants.
package arguments

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Object returns the JSON object that text means. It accepts code fences around it, an object within a JSON string,
// null and nothing as no arguments, trailing commas, raw line breaks in strings, quotation marks and constants of
// Python, and names without quotation marks. Its error names the position and the text there.
func Object(text []byte) (json.RawMessage, error) {
	const layers = 3 // of fences and strings around each other
	inner := text
	for range layers {
		inner = unfenced(bytes.TrimSpace(bytes.TrimPrefix(bytes.TrimSpace(inner), []byte("\ufeff"))))
		var encoded string
		switch {
		case len(inner) == 0 || string(inner) == "null":
			return json.RawMessage(`{}`), nil
		case inner[0] == '{' && json.Valid(inner):
			return json.RawMessage(inner), nil
		case inner[0] == '{':
			if mended, ok := mend(inner); ok {
				return mended, nil
			}
			return nil, problem(inner)
		case inner[0] != '"' || json.Unmarshal(inner, &encoded) != nil:
			return nil, problem(inner)
		}
		inner = []byte(encoded)
	}
	return nil, problem(inner)
}

// unfenced returns the text within a code fence, or text itself.
func unfenced(text []byte) []byte {
	for _, fence := range []string{"```", "~~~"} {
		inner, opened := bytes.CutPrefix(text, []byte(fence))
		inner, closed := bytes.CutSuffix(inner, []byte(fence))
		if !opened || !closed {
			continue
		}
		// The first line holds the name of the language.
		if first, rest, found := bytes.Cut(inner, []byte("\n")); found && !bytes.ContainsAny(first, "{\"") {
			return bytes.TrimSpace(rest)
		}
		return bytes.TrimSpace(bytes.TrimPrefix(inner, []byte("json")))
	}
	return text
}

// problem returns the error for text that is no JSON object.
func problem(text []byte) error {
	var v json.RawMessage
	err := json.Unmarshal(text, &v)
	var syntax *json.SyntaxError
	if !errors.As(err, &syntax) {
		return errors.New("the arguments are not a JSON object, but " + kind(text))
	}
	const around = 20 // bytes of the text before and after the position
	at := min(max(int(syntax.Offset)-1, 0), len(text))
	from, to := max(at-around, 0), min(at+around, len(text))
	near := strings.ToValidUTF8(string(text[from:to]), "")
	return fmt.Errorf("the arguments are not a JSON object: %w at character %d, near %q",
		syntax, utf8.RuneCount(text[:at])+1, near)
}

// kind returns the name of a JSON value's type.
func kind(raw []byte) string {
	switch raw[0] {
	case '"':
		return "a string"
	case '[':
		return "a list"
	case 't', 'f':
		return "true or false"
	case 'n':
		return "null"
	}
	return "a number"
}

// mend returns text as valid JSON. ok is false if it cannot be mended.
func mend(text []byte) (_ json.RawMessage, ok bool) {
	m := &mender{in: text}
	for m.at < len(m.in) {
		switch c := m.in[m.at]; {
		case c == '"' || c == '\'':
			if !m.str(c) {
				return nil, false
			}
		case c == ',':
			m.at++
			if next := m.next(); next != '}' && next != ']' {
				m.out.WriteByte(c)
			}
		case c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z':
			m.word()
		default:
			m.out.WriteByte(c)
			m.at++
		}
	}
	return m.out.Bytes(), json.Valid(m.out.Bytes())
}

// A mender reads text and writes JSON.
type mender struct {
	in  []byte
	at  int
	out bytes.Buffer
}

// next returns the next byte that is no space, 0 at the end.
func (m *mender) next() byte {
	rest := bytes.TrimLeft(m.in[m.at:min(m.at+maxSpace, len(m.in))], " \t\r\n")
	if len(rest) == 0 {
		return 0
	}
	return rest[0]
}

// maxSpace is the longest space that is skipped, so that the time is linear.
const maxSpace = 1000

// word writes a constant or a name without quotation marks.
func (m *mender) word() {
	from := m.at
	for m.at < len(m.in) && isWord(m.in[m.at]) {
		m.at++
	}
	word := string(m.in[from:m.at])
	if m.next() == ':' {
		word = `"` + word + `"`
	} else {
		word = constant(word)
	}
	m.out.WriteString(word)
}

func isWord(c byte) bool {
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

// str writes a string that begins with the quotation mark. It returns false if the string has no end, or several
// meanings.
func (m *mender) str(quote byte) bool {
	m.out.WriteByte('"')
	lone, letters := false, false // backslashes that begin no escape, and those that begin one of a letter
	for m.at++; m.at < len(m.in); m.at++ {
		switch c := m.in[m.at]; {
		case c == quote:
			m.at++
			m.out.WriteByte('"')
			// A mark of Python within a text would end it too early.
			return !(lone && letters) && (quote == '"' || strings.IndexByte(",:}]", m.next()) >= 0)
		case c == '"':
			m.out.WriteString(`\"`)
		case c < ' ':
			m.out.WriteString(escaped(c))
		case c == '\\' && m.at+1 < len(m.in):
			m.at++
			switch next := m.in[m.at]; {
			case next == '\'':
				m.out.WriteByte(next)
			case strings.IndexByte(`"\/bfnrtu`, next) >= 0:
				m.out.Write([]byte{c, next})
				letters = letters || next >= 'a'
			case next < ' ':
				return false
			default: // such as \d in a pattern
				m.out.WriteString(`\\`)
				m.out.WriteByte(next)
				lone = true
			}
		default:
			m.out.WriteByte(c)
		}
	}
	return false
}

// escaped returns a control character as JSON writes it.
func escaped(c byte) string {
	switch c {
	case '\n':
		return `\n`
	case '\r':
		return `\r`
	case '\t':
		return `\t`
	}
	return fmt.Sprintf(`\u%04x`, c)
}
