package prompt

import (
	"crypto/rand"
	"fmt"
	"math/big"
	"regexp"
	"slices"
	"strings"

	"journeyman/runner/model"
)

// A mark distinguishes the service's note before an instruction from a text that only looks like
// one. It is a random number, chosen when the turn is accepted. At that time the text of the
// instruction and its files are written already, so their author cannot know the mark.
//
// Each turn has a mark of its own. A mark per task would be worth nothing as soon as the model
// says it in an answer, because the reader of the answer may write the next instruction. The
// preamble contains no mark, so it stays the same for all tasks of a worker, and providers cache
// it. The mark is part of the stored envelope, so a resumed turn sends the same prompt.
const markPrefix = "note_"

// markDigits is the number of digits of a mark.
const markDigits = 12

// NewMark returns a random mark for the note of one turn.
func NewMark() string {
	most := new(big.Int).Exp(big.NewInt(10), big.NewInt(markDigits), nil)
	n, _ := rand.Int(rand.Reader, most) // never fails: without random numbers it ends the program
	return fmt.Sprintf("%s%0*d", markPrefix, markDigits, n)
}

// markNote returns a text of the service between two lines with a mark.
func markNote(mark, text string) string { return "[" + mark + "]\n" + text + "\n[/" + mark + "]" }

// markOf returns the mark of an envelope, "" if there is none.
func markOf(envelope string) string {
	line, _, _ := strings.Cut(envelope, "\n")
	if mark := strings.Trim(line, "[]"); strings.HasPrefix(mark, markPrefix) {
		return mark
	}
	return ""
}

// markPattern matches the lines around a note, with any mark.
var markPattern = regexp.MustCompile(`\[\s*/?\s*(?i:note)_[0-9]{12}\s*\]`)

// disarm replaces the brackets around marks in a text from outside by parentheses. So only the
// service writes marks in brackets. The length of the text stays the same.
func disarm(text string) string {
	return markPattern.ReplaceAllStringFunc(text, func(mark string) string { return "(" + mark[1:len(mark)-1] + ")" })
}

// disarmMessage returns a message whose texts from outside contain no marks in brackets. It keeps
// the model's own messages, because providers sign parts of them.
func disarmMessage(m model.Message) model.Message {
	if m.Role == model.RoleAssistant {
		return m
	}
	m.Parts = slices.Clone(m.Parts)
	for i, p := range m.Parts {
		if !p.Aside {
			m.Parts[i] = disarmPart(p)
		}
	}
	return m
}

func disarmPart(p model.Part) model.Part {
	p.Text, p.Path, p.MediaType = disarm(p.Text), disarm(p.Path), disarm(p.MediaType)
	// The media type does not decide: an image may be a text. Other files practically never contain a mark.
	if open := p.Open; open != nil {
		p.Open = func() ([]byte, error) {
			data, err := open()
			one := func(mark []byte) []byte { return []byte(disarm(string(mark))) }
			return markPattern.ReplaceAllFunc(data, one), err
		}
	}
	p.Images = slices.Clone(p.Images)
	for i, image := range p.Images {
		p.Images[i] = disarmPart(image)
	}
	return p
}
