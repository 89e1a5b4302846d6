package mailtext

import (
	"cmp"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
)

// Params splits a field such as Content-Type into its value, in lower case, and its parameters
// by lower-case name. Package mime refuses many fields of real programs. So this function accepts
// values without the necessary quotes, parameters in pieces and in other charsets (RFC 2231), and
// misplaced encoded words (RFC 2047). It never fails: it leaves out invalid parts.
func Params(header string) (value string, params map[string]string) {
	value, rest, _ := strings.Cut(header, ";")
	value = strings.ToLower(strings.TrimSpace(value))
	value, _, _ = strings.Cut(value, " ") // a comment, or a missing semicolon
	pieces := map[string]string{}         // by full name, such as filename*0*
	for rest != "" && len(pieces) < 100 {
		var name, text string
		name, text, rest = nextParam(rest)
		// The first of equal names counts.
		if _, seen := pieces[name]; name != "" && !seen {
			pieces[name] = text
		}
	}
	return value, joinParams(pieces)
}

// nextParam cuts the first parameter off s. Its name is empty if it has no value.
func nextParam(s string) (name, value, rest string) {
	s = strings.TrimLeft(s, "; \t\r\n")
	end := strings.IndexAny(s, "=;")
	if end < 0 || s[end] == ';' {
		_, rest, _ = strings.Cut(s, ";")
		return "", "", rest
	}
	name = strings.ToLower(strings.TrimSpace(s[:end]))
	s = strings.TrimLeft(s[end+1:], " \t\r\n")
	if strings.HasPrefix(s, `"`) {
		value, rest = quotedString(s[1:])
		_, rest, _ = strings.Cut(rest, ";")
		return name, value, rest
	}
	value, rest, _ = strings.Cut(s, ";")
	return name, strings.TrimSpace(value), rest
}

// quotedString reads the rest of a quoted string, whose closing quote may be missing.
func quotedString(s string) (value, rest string) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			return b.String(), s[i+1:]
		case c == '\\' && i+1 < len(s):
			i++
			b.WriteByte(s[i])
		case c != '\r' && c != '\n':
			b.WriteByte(c)
		}
	}
	return b.String(), ""
}

// A section is a piece of a parameter's value (RFC 2231, section 3).
type section struct {
	number  int
	encoded bool // text has %XX sequences; in the first section it begins with a charset
	text    string
}

// joinParams joins the sections of each parameter. A parameter in sections takes
// precedence over a plain one of the same name, which is for older programs.
func joinParams(pieces map[string]string) map[string]string {
	params, sections := map[string]string{}, map[string][]section{}
	for name, text := range pieces {
		base, suffix, extended := strings.Cut(name, "*")
		if !extended || base == "" {
			continue
		}
		number, encoded := strings.CutSuffix(suffix, "*")
		s := section{encoded: encoded || suffix == "", text: text}
		s.number, _ = strconv.Atoi(number)
		sections[base] = append(sections[base], s)
	}
	for base, list := range sections {
		slices.SortFunc(list, func(a, b section) int { return cmp.Compare(a.number, b.number) })
		params[base] = joinSections(list)
	}
	for name, text := range pieces {
		if _, better := params[name]; !better && !strings.Contains(name, "*") {
			params[name] = Words(text)
		}
	}
	return params
}

// joinSections decodes and joins sections that are in order.
func joinSections(list []section) string {
	var raw []byte
	label := ""
	for i, s := range list {
		if !s.encoded {
			raw = append(raw, s.text...)
			continue
		}
		if parts := strings.SplitN(s.text, "'", 3); i == 0 && len(parts) == 3 {
			label, s.text = parts[0], parts[2]
		}
		raw = append(raw, percentDecoded(s.text)...)
	}
	return Decode(raw, label)
}

func percentDecoded(s string) []byte {
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			if c, err := hex.DecodeString(s[i+1 : i+3]); err == nil {
				b = append(b, c[0])
				i += 2
				continue
			}
		}
		b = append(b, s[i])
	}
	return b
}
