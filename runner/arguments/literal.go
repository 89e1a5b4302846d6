package arguments

import (
	"encoding/json"
	"regexp"
	"strings"
)

// Value reads the JSON value at the beginning of a text, and returns the rest of the text. It accepts what a literal
// is, too. Unlike Object it need not reach the end of the text, and does not keep how the value was written.
func Value(text string) (value json.RawMessage, rest string, ok bool) {
	d := json.NewDecoder(strings.NewReader(text))
	if d.Decode(&value) == nil {
		return value, text[d.InputOffset():], true
	}
	l := literal{rest: text}
	v, ok := l.value(0)
	return l.result(v, ok)
}

// Named reads the arguments of a call in Python at the beginning of a text, (name=value, …), and returns them as an
// object, with the rest of the text.
func Named(text string) (object json.RawMessage, rest string, ok bool) {
	l := literal{rest: text}
	args, ok := l.arguments()
	return l.result(args, ok)
}

// result returns a value as JSON, and the rest of the text.
func (l *literal) result(v any, ok bool) (json.RawMessage, string, bool) {
	if !ok {
		return nil, "", false
	}
	raw, err := json.Marshal(v)
	return raw, l.rest, err == nil
}

// A literal reads values in the syntax of Python, and JSON with small mistakes: single quotation marks, raw line
// breaks, commas at the end, keys without quotation marks. Gemma writes strings between tokens of their own.
type literal struct{ rest string }

// maxDepth limits nested values.
const maxDepth = 32

var (
	wordPattern = regexp.MustCompile(`^[A-Za-z_][\w\-]*`)
	// surrogates matches a character beyond 16 bits, which JSON escapes as two.
	surrogates    = regexp.MustCompile(`^\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}$`)
	numberPattern = regexp.MustCompile(`^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?`)
)

func (l *literal) space() { l.rest = strings.TrimLeft(l.rest, " \t\r\n") }

// skip reads text if it comes next, after white space.
func (l *literal) skip(text string) bool {
	l.space()
	rest, ok := strings.CutPrefix(l.rest, text)
	l.rest = rest
	return ok
}

// value reads any value.
func (l *literal) value(depth int) (any, bool) {
	l.space()
	if l.rest == "" || depth > maxDepth {
		return nil, false
	}
	switch l.rest[0] {
	case '{':
		return l.dict(depth)
	case '[', '(':
		return l.list(depth)
	}
	if text, ok := l.text(); ok {
		return text, true
	}
	if n := numberPattern.FindString(l.rest); n != "" {
		l.rest = l.rest[len(n):]
		return json.Number(n), true
	}
	word := wordPattern.FindString(l.rest)
	l.rest = l.rest[len(word):]
	switch constant(word) {
	case "true":
		return true, true
	case "false":
		return false, true
	case "null":
		return nil, true
	}
	return nil, false
}

// constant returns the word of JSON for a constant of Python. Any other word stays as it is.
func constant(word string) string {
	switch word {
	case "True":
		return "true"
	case "False":
		return "false"
	case "None":
		return "null"
	}
	return word
}

// dict reads an object. The key may be a word.
func (l *literal) dict(depth int) (any, bool) {
	l.skip("{")
	object := map[string]any{}
	for !l.skip("}") {
		l.space()
		key, ok := l.text()
		if !ok {
			key = wordPattern.FindString(l.rest)
			l.rest = l.rest[len(key):]
		}
		if key == "" || !l.skip(":") {
			return nil, false
		}
		if object[key], ok = l.value(depth + 1); !ok {
			return nil, false
		}
		if !l.skip(",") && !strings.HasPrefix(l.rest, "}") {
			return nil, false
		}
	}
	return object, true
}

// list reads a list or a tuple.
func (l *literal) list(depth int) (any, bool) {
	end := "]"
	if l.rest[0] == '(' {
		end = ")"
	}
	l.rest = l.rest[1:]
	values := []any{}
	for !l.skip(end) {
		v, ok := l.value(depth + 1)
		if !ok {
			return nil, false
		}
		values = append(values, v)
		if !l.skip(",") && !strings.HasPrefix(l.rest, end) {
			return nil, false
		}
	}
	return values, true
}

// text reads a string.
func (l *literal) text() (string, bool) {
	for _, quote := range []string{`"""`, `'''`, `<escape>`, `<|"|>`} { // functiongemma, gemma4
		if rest, ok := strings.CutPrefix(l.rest, quote); ok {
			if text, after, ok := strings.Cut(rest, quote); ok {
				l.rest = after
				return text, true
			}
		}
	}
	if l.rest == "" || l.rest[0] != '"' && l.rest[0] != '\'' {
		return "", false
	}
	var b strings.Builder
	for i := 1; i < len(l.rest); i++ {
		switch c := l.rest[i]; {
		case c == l.rest[0]:
			l.rest = l.rest[i+1:]
			return b.String(), true
		case c == '\\' && i+1 < len(l.rest):
			i += unescaped(&b, l.rest[i:]) - 1
		default:
			b.WriteByte(c)
		}
	}
	return "", false
}

// unescaped writes the character that an escape sequence means, and returns the length of the sequence.
func unescaped(b *strings.Builder, text string) int {
	switch c := text[1]; c {
	case 'n':
		b.WriteByte('\n')
	case 't':
		b.WriteByte('\t')
	case 'r':
		b.WriteByte('\r')
	case 'b':
		b.WriteByte('\b')
	case 'f':
		b.WriteByte('\f')
	case 'u':
		var s string
		if pair := text[:min(len(text), 12)]; surrogates.MatchString(pair) &&
			json.Unmarshal([]byte(`"`+pair+`"`), &s) == nil {
			b.WriteString(s)
			return 12
		}
		if len(text) >= 6 && json.Unmarshal([]byte(`"`+text[:6]+`"`), &s) == nil {
			b.WriteString(s)
			return 6
		}
		b.WriteString(`\u`)
	case '\\', '\'', '"', '/':
		b.WriteByte(c)
	default:
		b.WriteByte('\\')
		b.WriteByte(c)
	}
	return 2
}

// arguments reads the arguments of a call in Python: (name=value, …).
func (l *literal) arguments() (map[string]any, bool) {
	l.skip("(")
	args := map[string]any{}
	for !l.skip(")") {
		l.space()
		key := wordPattern.FindString(l.rest)
		l.rest = l.rest[len(key):]
		if key == "" || !l.skip("=") {
			return nil, false
		}
		v, ok := l.value(0)
		if !ok {
			return nil, false
		}
		args[key] = v
		if !l.skip(",") && !strings.HasPrefix(l.rest, ")") {
			return nil, false
		}
	}
	return args, true
}
