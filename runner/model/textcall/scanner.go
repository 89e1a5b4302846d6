package textcall

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"journeyman/runner/arguments"
)

// A scanner reads a text that may consist of calls.
type scanner struct {
	rest  string // the text that was not read yet
	tools map[string]json.RawMessage

	calls   []Call
	marked  bool   // a mark of a form was read
	fenced  bool   // a code fence was read
	strict  bool   // the last call has the members of a call and no other ones
	excess  bool   // there are more than maxCalls calls
	loose   bool   // the end of a call is missing, so more arguments may have followed
	open    bool   // the end of the last element around calls is missing
	unknown string // the first name that is no offered tool
	why     string // the reason why a call cannot be read
}

func newScanner(text string, tools []Tool) *scanner {
	s := &scanner{rest: text, tools: map[string]json.RawMessage{}}
	for _, t := range tools {
		s.tools[t.Name] = t.Schema
	}
	return s
}

// done reports whether the whole text was read.
func (s *scanner) done() bool { return s.rest == "" && s.why == "" }

// read reads calls, and what may stand around them.
func (s *scanner) read() {
	for {
		s.rest = strings.TrimLeft(s.rest, " \t\r\n,;)")
		if !strings.HasPrefix(s.rest, ">>>") {
			s.rest = strings.TrimPrefix(s.rest, ">") // the end of an element that was not closed before
		}
		if s.rest == "" || !s.mark() && !s.call() {
			return
		}
	}
}

// mark reads a mark or a code fence.
func (s *scanner) mark() bool {
	if m := fencePattern.FindString(s.rest); m != "" {
		s.fenced, s.rest = true, s.rest[len(m):]
		return true
	}
	if harmonyPattern.MatchString(s.rest) {
		return false // it may begin with the same token
	}
	m := markPattern.FindString(s.rest)
	if m == "" {
		return s.weakMark()
	}
	s.marked = s.marked || !endPattern.MatchString(m)
	s.open = strings.HasPrefix(m, "<") && !closing.MatchString(m)
	s.rest = s.rest[len(strings.TrimRight(m, "[{ \t\r\n")):]
	return true
}

// weakMark reads a mark that ordinary text has, too.
func (s *scanner) weakMark() bool {
	m := weakPattern.FindString(s.rest)
	if m == "" {
		return false
	}
	if c := weakCall.FindStringSubmatch(s.rest); c != nil {
		_, known := s.offered(c[1] + c[2])
		s.marked = s.marked || known
	}
	s.rest = s.rest[len(strings.TrimRight(m, "[`")):]
	return true
}

// call reads one call, or a list of calls.
func (s *scanner) call() bool {
	if m := openPattern.FindStringSubmatch(s.rest); m != nil {
		s.marked, s.rest = true, s.rest[len(m[0])-1:]
		return s.object(m[1])
	}
	if m := functionPattern.FindStringSubmatch(s.rest); m != nil {
		s.marked, s.rest = true, s.rest[len(m[0]):]
		return s.function(m[1])
	}
	for _, p := range []func() bool{s.harmony, s.action, s.nested, s.element} {
		if p() {
			return s.why == ""
		}
	}
	switch s.rest[0] {
	case '{', '[':
		return s.value()
	}
	return s.named()
}

func (s *scanner) harmony() bool {
	m := harmonyPattern.FindStringSubmatch(s.rest)
	if m != nil && !isHarmony(m[0]) && !s.precedes(m[1], s.rest[len(m[0]):]) {
		return false
	}
	return s.header(m)
}

// isHarmony reports whether a header has a special token or the namespace of functions. Ordinary text has to=, too.
func isHarmony(header string) bool {
	return strings.HasPrefix(header, "<|") || strings.Contains(header, "to=functions.")
}

// precedes reports whether an offered tool's name stands before an object.
func (s *scanner) precedes(name, rest string) bool {
	_, known := s.offered(name)
	return known && strings.HasPrefix(rest, "{")
}

func (s *scanner) action() bool { return s.header(actionPattern.FindStringSubmatch(s.rest)) }

func (s *scanner) nested() bool {
	m := nestedPattern.FindStringSubmatch(s.rest)
	if m != nil && !s.marked && !s.precedes(m[1], s.rest[len(m[0]):]) {
		return false
	}
	return s.header(m)
}

// header reads a call whose name stands in m, before JSON.
func (s *scanner) header(m []string) bool {
	if m == nil {
		return false
	}
	s.marked, s.rest = true, s.rest[len(m[0]):]
	s.object(m[1])
	return true
}

// object reads the arguments of a call.
func (s *scanner) object(name string) bool {
	args, ok := s.json()
	if !ok {
		return s.fail("its arguments are not a JSON object")
	}
	return s.add(name, args)
}

func (s *scanner) fail(why string) bool {
	s.why = why
	return false
}

// json reads a JSON value. Literals of Python and of Gemma's forms are read, too.
func (s *scanner) json() (json.RawMessage, bool) {
	s.rest = strings.TrimLeft(s.rest, " \t\r\n")
	if fence := fencePattern.FindString(s.rest); fence != "" {
		s.rest = strings.TrimLeft(s.rest[len(fence):], " \t\r\n")
	}
	raw, rest, ok := arguments.Value(s.rest)
	if ok {
		s.rest = rest
	}
	return raw, ok
}

// value reads JSON that contains the name of a call, or a list in the syntax of Python.
func (s *scanner) value() bool {
	before := s.rest
	raw, ok := s.json()
	if ok {
		return s.described(raw)
	}
	if s.rest = before; s.rest[0] == '[' { // [get(x=1), get(x=2)] of pythonic, llama4_pythonic and olmo3
		s.rest = strings.TrimLeft(s.rest[1:], " \t\r\n")
		for s.rest != "" && s.rest[0] != ']' {
			if !s.named() {
				return false
			}
			s.rest = strings.TrimLeft(s.rest, " \t\r\n,")
		}
		if s.rest != "" {
			s.rest = s.rest[1:]
			return len(s.calls) > 0
		}
	}
	return s.fail("its JSON is not complete or not valid")
}

// named reads a name with arguments.
func (s *scanner) named() bool {
	m := namePattern.FindStringSubmatch(s.rest)
	if m == nil {
		return false
	}
	name, rest := m[1], s.rest[len(m[0]):]
	if _, offered := s.offered(name); !offered && !s.marked {
		return false
	}
	short := strings.TrimSuffix(name, ".call") // llama3_json: brave_search.call(query="…")
	switch {
	case strings.HasPrefix(rest, "("):
		s.rest = rest
		return s.python(short)
	case strings.HasPrefix(rest, "<arg_key>"):
		s.rest = rest
		args, ok := s.pairs(name)
		return ok && s.add(name, args)
	case strings.HasPrefix(rest, "{"), strings.HasPrefix(rest, "```"):
		s.rest = rest
		return s.object(name)
	case s.marked && (rest == "" || strings.HasPrefix(rest, "</")): // glm45: a call without arguments
		s.rest, s.loose = rest, s.loose || rest == ""
		return s.add(name, json.RawMessage(`{}`))
	}
	return false
}

// python reads the arguments of a call in the syntax of Python.
func (s *scanner) python(name string) bool {
	raw, rest, ok := arguments.Named(s.rest)
	if !ok {
		return s.marked && s.fail("its arguments cannot be read")
	}
	s.rest = rest
	return s.add(name, raw)
}

// pairs reads the arguments of glm45: <arg_key>k</arg_key><arg_value>v</arg_value>.
func (s *scanner) pairs(name string) (json.RawMessage, bool) {
	args := map[string]json.RawMessage{}
	for m := argPattern.FindStringSubmatch(s.rest); m != nil; m = argPattern.FindStringSubmatch(s.rest) {
		value, rest, ok := strings.Cut(s.rest[len(m[0]):], "</arg_value>")
		if !ok {
			return nil, s.fail("its end is missing")
		}
		args[m[1]] = s.typed(name, m[1], value)
		s.rest = rest
	}
	s.loose = s.loose || strings.TrimSpace(s.rest) == ""
	raw, _ := json.Marshal(args) // the values are valid JSON
	return raw, true
}

// function reads the body of a call in XML: JSON, or an element for each argument.
func (s *scanner) function(name string) bool {
	s.rest = strings.TrimLeft(s.rest, " \t\r\n")
	var args json.RawMessage
	if !strings.HasPrefix(s.rest, "{") {
		args = s.params(name)
	} else if whole, ok := s.json(); ok {
		args = whole
	} else {
		return s.fail("its arguments are not a JSON object")
	}
	at := functionEnd.FindStringIndex(s.rest)
	if at == nil {
		return s.fail("its end is missing")
	}
	if strings.TrimSpace(s.rest[:at[0]]) != "" {
		return s.fail("its arguments cannot be read")
	}
	s.rest, s.open = s.rest[at[1]:], false
	return s.add(name, args)
}

// element reads a call in XML whose elements have the names of a tool and of its arguments.
func (s *scanner) element() bool {
	m := elementPattern.FindStringSubmatch(s.rest)
	if m == nil {
		return false
	}
	name := m[1]
	body, after, closed := strings.Cut(s.rest[len(m[0]):], "</"+name+">")
	if _, ok := s.tools[name]; !ok || !closed {
		return false
	}
	args := map[string]json.RawMessage{}
	for m = elementPattern.FindStringSubmatch(body); m != nil; m = elementPattern.FindStringSubmatch(body) {
		value, more, ok := strings.Cut(body[len(m[0]):], "</"+m[1]+">")
		if !ok {
			return false
		}
		args[m[1]], body = s.typed(name, m[1], strings.TrimSuffix(value, "\n")), strings.TrimLeft(more, " \t\r\n")
	}
	if body != "" {
		return false // other text
	}
	raw, _ := json.Marshal(args) // the values are valid JSON
	s.rest, s.open = after, false
	return s.add(name, raw)
}

// params reads the elements of a call's arguments. The end of an element may be missing.
func (s *scanner) params(name string) json.RawMessage {
	args := map[string]json.RawMessage{}
	for m := paramPattern.FindStringSubmatch(s.rest); m != nil; m = paramPattern.FindStringSubmatch(s.rest) {
		s.rest = s.rest[len(m[0]):]
		at := paramEnd.FindStringIndex(s.rest)
		if at == nil {
			s.loose = true
			if at = functionEnd.FindStringIndex(s.rest); at == nil {
				at = []int{len(s.rest), len(s.rest)}
			}
			at[1] = at[0]
		}
		value := strings.TrimSuffix(strings.TrimPrefix(s.rest[:at[0]], "\n"), "\n")
		if strings.Contains(m[2], `string="true"`) { // deepseek_v32
			args[m[1]], _ = json.Marshal(value) // marshaling a string never fails
		} else {
			args[m[1]] = s.typed(name, m[1], value)
		}
		s.rest = s.rest[at[1]:]
	}
	raw, _ := json.Marshal(args) // the values are valid JSON
	return raw
}

// typed returns the text of an argument as JSON. The tool's schema decides whether it is a string.
func (s *scanner) typed(name, key, text string) json.RawMessage {
	var schema struct {
		Properties map[string]struct{ Type any }
	}
	offered, _ := s.offered(name)
	_ = json.Unmarshal(s.tools[offered], &schema) // a schema of another form has no properties
	p, known := schema.Properties[key]
	trimmed := strings.TrimSpace(text)
	isText := known && p.Type == "string" || !known && !strings.HasPrefix(trimmed, "{") && !strings.HasPrefix(trimmed, "[")
	if !isText && json.Valid([]byte(trimmed)) {
		return json.RawMessage(trimmed)
	}
	switch {
	case !isText && (trimmed == "True" || trimmed == "False"):
		return json.RawMessage(strings.ToLower(trimmed))
	case !isText && trimmed == "None":
		return json.RawMessage("null")
	}
	raw, _ := json.Marshal(text) // marshaling a string never fails
	return raw
}

// offered returns the name of the offered tool that a name means.
func (s *scanner) offered(name string) (string, bool) {
	return Meant(name, func(n string) bool {
		_, ok := s.tools[n]
		return ok
	})
}

// add adds a call. Its arguments may be a string that contains the object.
func (s *scanner) add(name string, args json.RawMessage) bool {
	var text string
	if json.Unmarshal(args, &text) == nil && string(args) != "null" {
		args = json.RawMessage(text)
	}
	if args = bytes.TrimSpace(args); len(args) == 0 || string(args) == "null" {
		args = json.RawMessage(`{}`)
	}
	if args[0] != '{' || !json.Valid(args) {
		return s.fail("its arguments are not a JSON object")
	}
	known, ok := s.offered(name)
	if !ok {
		if s.unknown == "" {
			s.unknown = name
		}
		return true
	}
	if len(s.calls) == maxCalls {
		s.excess = true
		return s.fail(fmt.Sprintf("it has more than %d calls", maxCalls))
	}
	s.calls = append(s.calls, Call{known, args})
	return true
}

// begun reports whether a text is the beginning of JSON that calls an offered tool.
func (s *scanner) begun(text string) bool {
	m := begunPattern.FindStringSubmatch(text)
	if m == nil || s.done() {
		return false
	}
	_, ok := s.offered(m[1])
	return ok
}
