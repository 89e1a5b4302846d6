// Package textcall finds tool calls that models write as text, because their server does not read the form in which
// the model makes calls.
//
// A text is calls if it consists of nothing but one or several calls in known forms, and each of them names an
// offered tool. A text looks like a call that cannot be made if it begins with the mark of a form, such as
// <tool_call>, or contains such a mark at the beginning of a line or before a call at its end. JSON without a mark
// looks like a call only if it has the members of a call and no other ones. Code within other text is an example,
// and so is a mark within a sentence: such text is an answer.
//
// The package is pure. It knows the forms, and never runs a call. Package arguments reads the values in them.
package textcall

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
)

// A Tool is a tool that the model may call.
type Tool struct {
	Name   string
	Schema json.RawMessage // of the arguments; it decides whether the text of an argument is a string
}

// A Call is a tool call. Its arguments are a JSON object.
type Call struct {
	Name      string
	Arguments json.RawMessage
}

// maxCalls limits the calls of a text.
const maxCalls = 64

// Find returns the calls that a text consists of. Otherwise why is the reason why a text that looks like a call
// cannot be made, "" for a text that is an answer.
func Find(text string, tools []Tool) (calls []Call, why string) {
	calls, why, _ = find(text, tools)
	return calls, why
}

// Begin returns the place in a text at which its calls begin, or what looks like them: 0 unless other text stands
// before them, and the length of the text if it is an answer.
func Begin(text string, tools []Tool) int {
	_, _, at := find(text, tools)
	return at
}

func find(text string, tools []Tool) (calls []Call, why string, at int) {
	s := newScanner(text, tools)
	s.read()
	switch {
	case s.done() && len(s.calls) > 0 && s.unknown == "":
		return s.calls, "", 0
	case s.marked || s.excess || s.unmarkedCall():
		return nil, s.reason(), 0
	case s.begun(strings.TrimSpace(text)):
		return nil, "its JSON is not complete or not valid", 0
	}
	if at = amid(text, tools); at < len(text) {
		why = otherText
	}
	return nil, why, at
}

// otherText is the reason why a call within other text is not made.
const otherText = "other text stands beside it"

// Whole reports whether the calls that a text consists of have their ends. Otherwise arguments may be missing, if the
// output limit of the model ended the text.
func Whole(text string, tools []Tool) bool {
	s := newScanner(text, tools)
	s.read()
	return s.done() && !s.loose && !s.open
}

// maxMark limits the mark at the beginning of a text, in bytes.
const maxMark = 256

// isMark reports whether text begins with a mark that only calls have.
func isMark(text string) bool {
	m := markPattern.FindString(text)
	return m != "" && !endPattern.MatchString(m) || functionPattern.MatchString(text) ||
		isHarmony(harmonyPattern.FindString(text))
}

// unmarkedCall reports whether a text without marks is a call by its form. A text in a code fence that names no
// offered tool is an answer.
func (s *scanner) unmarkedCall() bool {
	return s.done() && s.unknown != "" && !s.fenced && len(s.tools) > 0 && s.strict
}

// reason returns why the calls cannot be made.
func (s *scanner) reason() string {
	switch {
	case s.unknown != "":
		return fmt.Sprintf("there is no tool %q", shorten(s.unknown))
	case s.why != "":
		return s.why
	case len(s.calls) > 0:
		return otherText
	}
	return "it cannot be read"
}

// shorten limits a name that the model has written.
func shorten(name string) string {
	if len(name) > 80 {
		return strings.ToValidUTF8(name[:80], "") + "…"
	}
	return name
}

// maxMarks limits the marks in a text that are tried.
const maxMarks = 16

// amid returns the place of a call within other text, the length of the text if it is an answer.
func amid(text string, tools []Tool) int {
	fence, tried := false, 0
	meant := func(at int, first bool) bool {
		tried++
		return tried <= maxMarks && looks(text[at:], first, tools)
	}
	for at, line := 0, ""; at < len(text); at += len(line) {
		line, _, _ = strings.Cut(text[at:], "\n")
		line = text[at:min(at+len(line)+1, len(text))]
		if mark := strings.TrimSpace(line); strings.HasPrefix(mark, "```") {
			if fence = !fence; fence && isCallFence(mark) && meant(at, true) {
				return at
			}
		}
		ticks, indent := 0, len(line)-len(strings.TrimLeftFunc(line, unicode.IsSpace))
		for i := 0; !fence && i < len(line); i++ {
			if line[i] == '`' {
				ticks++
			}
			if ticks%2 == 0 && mayBegin(line, i, indent) && meant(at+i, i <= indent) {
				return at + i
			}
		}
	}
	return len(text)
}

// isCallFence reports whether a code fence says that it contains a call, as those of Gemma do.
func isCallFence(mark string) bool {
	switch strings.TrimLeft(mark, "`") {
	case "tool_call", "tool_calls", "tool_code", "function_call":
		return true
	}
	return false
}

// mayBegin reports whether a call may begin at place i of a line: with a mark, or with JSON after the indentation.
func mayBegin(line string, i, indent int) bool {
	switch line[i] {
	case '{':
		return i == indent
	case '<', '[':
		return isMark(line[i:])
	}
	return false
}

// looks reports whether a text within an answer is meant as a call, and no example. first means that it begins a
// line.
func looks(text string, first bool, tools []Tool) bool {
	s := newScanner(text, tools)
	s.read()
	offered := len(s.calls) > 0
	if text[0] == '{' || !first {
		return offered && s.done() && s.unknown == "" && (s.marked || s.strict)
	}
	return offered || s.done() || s.why != ""
}
