package model

import (
	"encoding/json"
	"errors"
	"strings"
)

// Limits of a response in the making.
const (
	maxParts     = 512
	maxPartBytes = 32 << 20 // of all parts together
)

var errTooMuch = errors.New("the answer of the model is too long")

// An assembler puts a Response's parts together and emits their deltas in the
// order that Model promises: what comes for a later part waits until the part
// before it has ended.
type assembler struct {
	parts  []*making
	speaks int // index of the part whose deltas are emitted as they come
	size   int
	emit   func(Delta)
}

// A making is a part in the making.
type making struct {
	part  Part
	text  strings.Builder
	said  int  // bytes of text that were emitted
	shown bool // something was emitted of it
	ended bool // nothing more comes
	args  jsonEnd
}

// open begins a part and gives its index.
func (a *assembler) open(p Part) (int, error) {
	if len(a.parts) == maxParts {
		return 0, errTooMuch
	}
	a.parts = append(a.parts, &making{part: p})
	a.speak()
	return len(a.parts) - 1, nil
}

// endSpoken ends the text and reasoning so far: what comes next is another part.
func (a *assembler) endSpoken() {
	for _, m := range a.parts[min(a.speaks, len(a.parts)):] {
		if m.part.Type != PartToolCall {
			m.ended = true
		}
	}
}

// last is the index of the last part if that is of the given type and may go on.
func (a *assembler) last(t PartType) (int, bool) {
	n := len(a.parts) - 1
	return n, n >= 0 && a.parts[n].part.Type == t && !a.parts[n].ended
}

// say adds text to the running part of that type, or to a new one.
func (a *assembler) say(t PartType, text string) error {
	if text == "" {
		return nil
	}
	i, ok := a.last(t)
	if !ok {
		a.endSpoken()
		var err error
		if i, err = a.open(Part{Type: t}); err != nil {
			return err
		}
	}
	return a.add(i, text)
}

// add adds to a part: text, or a piece of a tool call's arguments.
func (a *assembler) add(i int, text string) error {
	if i < a.speaks {
		return nil // after its closing bracket: a part that has ended cannot be added to
	}
	if a.size += len(text); a.size > maxPartBytes {
		return errTooMuch
	}
	m := a.parts[i]
	m.text.WriteString(text)
	if m.part.Type == PartToolCall {
		m.args.read(text)
	}
	a.speak()
	return nil
}

// end says that nothing more comes for a part.
func (a *assembler) end(i int) {
	a.parts[i].ended = true
	a.speak()
}

// speak emits what may be emitted by now.
func (a *assembler) speak() {
	for a.speaks < len(a.parts) {
		m := a.parts[a.speaks]
		if m.part.Type == PartToolCall && m.part.ToolName == "" && !m.ended {
			return // its name is still to come
		}
		// Of an empty part, too, one delta tells that it is there.
		if rest := m.text.String()[m.said:]; (rest != "" || !m.shown) && a.emit != nil {
			a.emit(Delta{Part: a.speaks, Type: m.part.Type, Text: rest, CallID: m.part.CallID, ToolName: m.part.ToolName})
		}
		m.said, m.shown = m.text.Len(), true
		if a.speaks == len(a.parts)-1 || !(m.ended || m.args.complete) {
			return
		}
		a.speaks++
	}
}

// finish emits what is left and gives the parts. A tool call without arguments
// has an empty object of them; arguments that are not JSON stay as they are.
func (a *assembler) finish() ([]Part, error) {
	for i, m := range a.parts {
		if m.part.Type == PartToolCall && strings.TrimSpace(m.text.String()) == "" {
			if err := a.add(i, "{}"); err != nil {
				return nil, err
			}
		}
		m.ended = true
	}
	a.speak()
	parts := make([]Part, len(a.parts))
	for i, m := range a.parts {
		parts[i] = m.part
		if m.part.Type == PartToolCall {
			parts[i].Input = json.RawMessage(m.text.String())
		} else {
			parts[i].Text = m.text.String()
		}
	}
	return parts, nil
}

// has says whether there is a part of that type.
func (a *assembler) has(t PartType) bool {
	for _, m := range a.parts {
		if m.part.Type == t {
			return true
		}
	}
	return false
}

// A jsonEnd finds where a JSON object or array that comes in pieces ends. It
// looks at each byte once: checking the whole again and again would take a long
// time for arguments in many pieces.
type jsonEnd struct {
	depth              int
	inString, escaping bool
	complete           bool
}

// read takes the next piece.
func (e *jsonEnd) read(piece string) {
	for i := 0; i < len(piece); i++ {
		switch c := piece[i]; {
		case e.escaping:
			e.escaping = false
		case e.inString:
			e.escaping, e.inString = c == '\\', c != '"'
		case c == '"':
			e.inString = true
		case c == '{' || c == '[':
			e.depth++
		case c == '}' || c == ']':
			e.depth--
			e.complete = e.complete || e.depth == 0
		}
	}
}
