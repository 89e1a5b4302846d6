package runner

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"journeyman/runner/model"
	"journeyman/store"
)

// growing is a part in the making. What it has put into the part never changes,
// so that a view may hold the part while it grows.
type growing struct {
	rest string          // of a character cut in the middle
	text strings.Builder // so far, mended
	json compactor       // of a tool call's arguments
}

// add puts what comes next into p.
func (g *growing) add(p *store.Part, s string) {
	s = g.rest + s
	n := wholeRunes(s)
	g.put(p, s[:n])
	g.rest = s[n:]
}

func (g *growing) put(p *store.Part, s string) {
	s = mended(s)
	g.text.WriteString(s)
	if isCall(*p) {
		p.Input = g.json.append(p.Input, s)
		return
	}
	p.Text = g.text.String()
}

// end completes p, in the form in which it is kept.
func (g *growing) end(p *store.Part) {
	g.put(p, g.rest)
	g.rest = ""
	if isCall(*p) {
		p.Input = cleanInput(json.RawMessage(g.text.String()))
	}
}

// wholeRunes is how much of s is whole: it may end in the middle of a character.
func wholeRunes(s string) int {
	for n := 1; n < utf8.UTFMax && n <= len(s); n++ {
		tail := s[len(s)-n:]
		if utf8.RuneStart(tail[0]) {
			if !utf8.FullRuneInString(tail) {
				return len(s) - n
			}
			break
		}
	}
	return len(s)
}

// mended is s with each byte that is not UTF-8 replaced. Wherever a text is cut
// at whole characters, its mended pieces make the mended text.
func mended(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return string([]rune(s))
}

// newPart begins a part of st, after those that st has. A tool call without a name
// or with the id of another would break the readers of the stream.
func newPart(st store.Step, p model.Part) store.Part {
	part := store.Part{Type: store.PartType(p.Type)}
	if p.Type != model.PartToolCall {
		return part
	}
	part.ToolName = cmp.Or(mended(p.ToolName), "unknown")
	part.CallID = mended(p.CallID)
	taken := func(q store.Part) bool { return q.CallID == part.CallID }
	if part.CallID == "" || slices.ContainsFunc(st.Parts, taken) {
		part.CallID = "call_" + partID(st.Seq, int64(len(st.Parts)))
	}
	return part
}

// follows reports whether the parts of a finished call go on from what was shown
// of it in the making, so that a reader can go on from where it is.
func follows(shown, final []store.Part) bool {
	if len(shown) > len(final) {
		return false
	}
	for i, p := range shown {
		q := final[i]
		if p.Type != q.Type && (p.Text != "" || q.Text != "" || isCall(p) || isCall(q)) || p.CallID != q.CallID || p.ToolName != q.ToolName {
			return false
		}
		same := p.Text == q.Text && string(p.Input) == string(q.Input)
		goesOn := strings.HasPrefix(q.Text, p.Text) && strings.HasPrefix(inputText(q.Input), string(p.Input))
		if last := i == len(shown)-1; !same && !(last && goesOn) {
			return false
		}
	}
	return true
}

func isCall(p store.Part) bool { return p.Type == store.PartToolCall }
