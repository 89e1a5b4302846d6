// Package vobject reads calendars (iCalendar, RFC 5545) and contacts (vCard 2.1 to 4.0, RFC 6350) as text for people.
//
// Both formats are nested objects of lines NAME;PARAMETER=VALUE:VALUE. The package is pure, reads the input once from
// beginning to end, and limits the objects and the text.
package vobject

import (
	"encoding/base64"
	"io"
	"mime/quotedprintable"
	"strings"

	"journeyman/runner/tool/charset"
)

// The limits of a file.
const (
	maxText    = 8 << 20  // bytes of text
	maxNesting = 20       // objects in objects
	maxLines   = 500_000  // lines of properties
	maxValue   = 64 << 10 // bytes of a value that is shown
)

// A property is a line of an object.
type property struct {
	name       string // in upper case, without its group
	parameters map[string]string
	value      string // as it is written, with escapes
}

// An object is a calendar, an event, a contact or a part of one.
type object struct {
	name       string // in upper case
	properties []property
	parts      []*object
}

// get returns the first property of that name, a property without a value for none.
func (o *object) get(name string) property {
	for _, p := range o.properties {
		if p.name == name {
			return p
		}
	}
	return property{}
}

// all returns all properties of that name.
func (o *object) all(name string) (found []property) {
	for _, p := range o.properties {
		if p.name == name {
			found = append(found, p)
		}
	}
	return found
}

// parse returns the objects of a file. It forgives missing ends.
func parse(text string, expired func() bool) *object {
	root := &object{}
	stack := []*object{root}
	lines := 0
	for line := range unfolded(text) {
		if lines++; lines > maxLines || lines%1000 == 0 && expired() {
			break
		}
		p, ok := parseLine(line)
		if !ok {
			continue
		}
		top := stack[len(stack)-1]
		switch p.name {
		case "BEGIN":
			o := &object{name: strings.ToUpper(strings.TrimSpace(p.value))}
			if len(stack) <= maxNesting {
				top.parts, stack = append(top.parts, o), append(stack, o)
			}
		case "END":
			if len(stack) > 1 && top.name == strings.ToUpper(strings.TrimSpace(p.value)) {
				stack = stack[:len(stack)-1]
			}
		default:
			top.properties = append(top.properties, p)
		}
	}
	return root
}

// unfolded yields the logical lines of a file. A line that begins with white space continues the one before, and a
// line of quoted-printable text that ends with = continues on the next one.
func unfolded(text string) func(func(string) bool) {
	return func(yield func(string) bool) {
		var line strings.Builder
		soft := false // the line ends with a soft line break of quoted-printable
		for next := range strings.Lines(text) {
			next = strings.TrimRight(next, "\r\n")
			switch {
			case soft:
				line.WriteString("\n" + next)
			case strings.HasPrefix(next, " ") || strings.HasPrefix(next, "\t"):
				line.WriteString(next[1:])
			case line.Len() > 0 && !yield(line.String()):
				return
			default:
				line.Reset()
				line.WriteString(next)
			}
			// Only the beginning of the line names the encoding: looking at all of it for each line takes long.
			soft = strings.HasSuffix(next, "=") && isQuotedPrintable(line.String()[:min(line.Len(), 300)])
		}
		if line.Len() > 0 {
			yield(line.String())
		}
	}
}

func isQuotedPrintable(line string) bool {
	head, _, _ := strings.Cut(line, ":")
	return strings.Contains(strings.ToUpper(head), "QUOTED-PRINTABLE")
}

// parseLine splits a line into its parts. A colon or semicolon in quotes belongs to a parameter.
func parseLine(line string) (p property, ok bool) {
	p.parameters = map[string]string{}
	quoted, from := false, 0
	var parts []string
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == ';':
			parts, from = append(parts, line[from:i]), i+1
		case c == ':':
			parts, p.value, ok = append(parts, line[from:i]), line[i+1:], true
		}
		if ok || len(parts) > 100 {
			break
		}
	}
	if !ok || len(parts) == 0 {
		return p, false
	}
	_, name, grouped := strings.Cut(parts[0], ".")
	if !grouped {
		name = parts[0]
	}
	p.name = strings.ToUpper(strings.TrimSpace(name))
	for _, parameter := range parts[1:] {
		key, value, named := strings.Cut(parameter, "=")
		if !named { // vCard 2.1 writes TYPE=HOME as HOME
			key, value = "TYPE", key
			if strings.EqualFold(parameter, "quoted-printable") || strings.EqualFold(parameter, "base64") {
				key = "ENCODING"
			}
		}
		key, value = strings.ToUpper(key), strings.Trim(value, `"`)
		if p.parameters[key] != "" {
			value = p.parameters[key] + "," + value
		}
		p.parameters[key] = value
	}
	return p, p.name != ""
}

// text returns the value of a property for a person: decoded, and without escapes.
func (p property) text() string { return unescape(p.decoded()) }

// fields returns the parts of a value that semicolons separate.
func (p property) fields() []string {
	fields := splitEscaped(p.decoded(), ';')
	for i := range fields {
		fields[i] = strings.TrimSpace(unescape(fields[i]))
	}
	return fields
}

// decoded returns the value without the encoding of vCard 2.1.
func (p property) decoded() string {
	value := p.value
	if len(value) > maxValue {
		value = strings.ToValidUTF8(value[:maxValue], "") + "…"
	}
	switch strings.ToUpper(p.parameters["ENCODING"]) {
	case "QUOTED-PRINTABLE", "Q":
		decoded, _ := io.ReadAll(quotedprintable.NewReader(strings.NewReader(value))) // what is readable is enough
		return charset.Text(decoded, p.parameters["CHARSET"])
	case "BASE64", "B":
		decoded, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(value), ""))
		if err != nil || strings.ContainsRune(string(decoded), 0) {
			return ""
		}
		return charset.Text(decoded, p.parameters["CHARSET"])
	}
	return value
}

// splitEscaped splits a value at a separator that no backslash precedes.
func splitEscaped(value string, separator byte) (parts []string) {
	from := 0
	for i := 0; i < len(value); i++ {
		switch value[i] {
		case '\\':
			i++
		case separator:
			parts, from = append(parts, value[from:i]), i+1
		}
	}
	return append(parts, value[min(from, len(value)):])
}

// unescape replaces the escapes of a value.
func unescape(value string) string {
	return strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\N`, "\n", `\,`, ",", `\;`, ";", `\:`, ":").Replace(value)
}

// A page collects lines of text.
type page struct{ strings.Builder }

// field adds a line "label: value", with the further lines of the value indented. It adds nothing for an empty value.
func (p *page) field(label, value string) {
	value = strings.TrimSpace(strings.ReplaceAll(value, "\r", ""))
	if value == "" || p.Len() > maxText {
		return
	}
	p.WriteString(label + ": " + strings.ReplaceAll(value, "\n", "\n  ") + "\n")
}

// full reports whether the text has reached its limit.
func (p *page) full() bool { return p.Len() > maxText }
