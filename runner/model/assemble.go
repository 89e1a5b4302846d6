package model

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
)

// Limits of a response.
const (
	maxParts     = 512
	maxPartBytes = 32 << 20 // total bytes of all parts
)

var errTooMuch = errors.New("the answer of the model is too long")

// An assembler builds the parts of a Response and emits their deltas in the order that Model
// promises. The deltas of a part wait until the previous part has ended.
type assembler struct {
	parts    []*partBuilder
	emitting int // index of the part that is being emitted; all parts before it have ended
	size     int
	halved   bool // the text may hold marked halves of characters
	emit     func(Delta)
}

// A partBuilder is a part that may still be incomplete.
type partBuilder struct {
	part      Part
	text      strings.Builder
	emitted   int  // bytes of text emitted so far
	announced bool // a delta of the part was emitted
	ended     bool // the text is complete
	args      jsonEndFinder
	half      rune // first half of a character
}

func (m *partBuilder) isCall() bool { return m.part.Type == PartToolCall }

// begun reports whether a part of the answer has arrived.
func (a *assembler) begun() bool { return len(a.parts) > 0 }

// called reports whether a tool call has arrived.
func (a *assembler) called() bool { return slices.ContainsFunc(a.parts, (*partBuilder).isCall) }

// open begins a part and returns its index.
func (a *assembler) open(p Part) (int, error) {
	if len(a.parts) == maxParts {
		return 0, errTooMuch
	}
	if n := len(a.parts) - 1; n >= 0 && a.parts[n].ended && a.parts[n].isCall() && a.parts[n].text.Len() == 0 {
		// Another part follows the call, so its arguments were not cut off: it has none.
		if err := a.add(n, "{}"); err != nil {
			return 0, err
		}
	}
	a.parts = append(a.parts, &partBuilder{part: p})
	a.emitReady()
	return len(a.parts) - 1, nil
}

// endText ends the open text and reasoning parts. Later text begins a new part.
func (a *assembler) endText() {
	for _, m := range a.parts[min(a.emitting, len(a.parts)):] {
		if !m.isCall() {
			m.ended = true
		}
	}
}

// last returns the index of the last part. ok means that the part has the given type and has
// not ended.
func (a *assembler) last(t PartType) (int, bool) {
	n := len(a.parts) - 1
	return n, n >= 0 && a.parts[n].part.Type == t && !a.parts[n].ended
}

// addText adds text to the last part if it is open and of that type, else to a new part.
func (a *assembler) addText(t PartType, text string) error {
	if text == "" {
		return nil
	}
	i, ok := a.last(t)
	if !ok {
		a.endText()
		var err error
		if i, err = a.open(Part{Type: t}); err != nil {
			return err
		}
	}
	return a.add(i, text)
}

// add adds text to a part, or a piece of arguments to a tool call.
func (a *assembler) add(i int, text string) error {
	if i < a.emitting {
		return nil // deltas of later parts were already emitted; after a complete call only noise follows
	}
	if a.size += len(text); a.size > maxPartBytes {
		return errTooMuch
	}
	m := a.parts[i]
	if a.halved {
		text = m.joinHalves(text)
	}
	m.text.WriteString(text)
	if m.isCall() {
		m.args.read(text)
	}
	a.emitReady()
	return nil
}

// end marks a part as complete.
func (a *assembler) end(i int) {
	a.parts[i].ended = true
	a.emitReady()
}

// emitReady emits all text that the promised order allows.
func (a *assembler) emitReady() {
	for a.emitting < len(a.parts) {
		m := a.parts[a.emitting]
		if m.isCall() && m.part.ToolName == "" && !m.ended {
			return // each delta of a call must contain its name, which has not arrived yet
		}
		if m.ended || m.args.complete {
			m.endHalf(&m.text)
		}
		// An empty part has one delta, too, so that watchers see the part.
		if rest := m.text.String()[m.emitted:]; (rest != "" || !m.announced) && a.emit != nil {
			a.emit(Delta{Part: a.emitting, Type: m.part.Type, Text: rest,
				CallID: m.part.CallID, ToolName: m.part.ToolName})
		}
		m.emitted, m.announced = m.text.Len(), true
		if a.emitting == len(a.parts)-1 || !(m.ended || m.args.complete) {
			return
		}
		a.emitting++
	}
}

// finish emits the remaining deltas and returns the parts. A tool call without arguments gets
// an empty object, unless the answer was cut off within that call. Arguments that are not JSON
// stay unchanged.
func (a *assembler) finish(cutOff bool) ([]Part, error) {
	for i, m := range a.parts {
		inIt := cutOff && i == len(a.parts)-1
		if m.isCall() && strings.TrimSpace(m.text.String()) == "" && !inIt {
			if err := a.add(i, "{}"); err != nil {
				return nil, err
			}
		}
		m.ended = true
	}
	a.emitReady()
	parts := make([]Part, len(a.parts))
	for i, m := range a.parts {
		parts[i] = m.part
		if m.isCall() {
			parts[i].Input = json.RawMessage(m.text.String())
		} else {
			parts[i].Text = m.text.String()
		}
	}
	return parts, nil
}

// hasCall reports whether one of the parts is a tool call.
func (a *assembler) hasCall() bool { return slices.ContainsFunc(a.parts, (*partBuilder).isCall) }

// A jsonEndFinder finds the end of a JSON object or array that arrives in pieces. It reads each
// byte only once, because arguments may arrive in a very large number of pieces.
type jsonEndFinder struct {
	depth              int
	inString, escaping bool
	complete           bool
}

// read reads the next piece.
func (e *jsonEndFinder) read(piece string) {
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
