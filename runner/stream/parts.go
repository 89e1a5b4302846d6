package stream

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"journeyman/runner/model"
	"journeyman/runner/view"
	"journeyman/store"
)

// Parts returns the parts of a model's response in the form in which step seq stores them.
// Their ids and order match the events that clients have already received.
func Parts(seq int64, resp model.Response) []store.Part {
	st := store.Step{Seq: seq}
	for i, p := range resp.Parts {
		part := newPart(st, p)
		part.Text, part.Meta = view.ValidText(p.Text), p.Meta
		if part.IsCall() {
			part.Input = view.CleanInput(p.Input)
		}
		if part.IsCall() && len(p.Input) == 0 && resp.Finish == model.FinishLength && i == len(resp.Parts)-1 {
			part.Input = json.RawMessage(`""`) // the call was cut off before its arguments
		}
		st.Parts = append(st.Parts, part)
	}
	return st.Parts
}

// newPart returns the next part of a step. It corrects values that stream clients reject: a
// call without a name, or with the id of another call.
func newPart(st store.Step, p model.Part) store.Part {
	part := store.Part{Type: store.PartType(p.Type)}
	if !part.IsCall() {
		return part
	}
	part.ToolName = cmp.Or(view.ValidText(p.ToolName), "unknown")
	part.CallID = view.ValidText(p.CallID)
	taken := func(q store.Part) bool { return q.CallID == part.CallID }
	if part.CallID == "" || slices.ContainsFunc(st.Parts, taken) {
		part.CallID = "call_" + view.PartID(st.Seq, len(st.Parts))
	}
	return part
}

// A partBuilder builds a part from deltas. It only appends to the part, so that snapshots may
// share the part's data.
type partBuilder struct {
	rest string          // the first bytes of a character that is split between two deltas
	text strings.Builder // all text before rest, as valid UTF-8
	json view.Compactor  // compacts the arguments of a tool call
}

// add appends the next delta to p.
func (b *partBuilder) add(p *store.Part, delta string) {
	delta = b.rest + delta
	n := wholeRunes(delta)
	b.append(p, delta[:n])
	b.rest = delta[n:]
}

func (b *partBuilder) append(p *store.Part, text string) {
	text = view.ValidText(text)
	b.text.WriteString(text)
	if p.IsCall() {
		p.Input = b.json.Append(p.Input, text)
		return
	}
	p.Text = b.text.String()
}

// end completes p, which then has the form in which it is stored.
func (b *partBuilder) end(p *store.Part) {
	b.append(p, b.rest)
	b.rest = ""
	if p.IsCall() {
		p.Input = view.CleanInput(json.RawMessage(b.text.String()))
	}
}

// wholeRunes returns the length of s without an incomplete character at its end.
func wholeRunes(s string) int {
	// An incomplete character has at most UTFMax-1 bytes.
	for i := max(len(s)-utf8.UTFMax+1, 0); i < len(s); i++ {
		if utf8.RuneStart(s[i]) && !utf8.FullRuneInString(s[i:]) {
			return i
		}
	}
	return len(s)
}

// extends reports whether the final parts begin with the parts that clients have received. Then
// each client can continue from its position.
func extends(seen, final []store.Part) bool {
	if len(seen) > len(final) {
		return false
	}
	for i, p := range seen {
		q := final[i]
		neverShown := p.Text == "" && q.Text == "" && !p.IsCall() && !q.IsCall() // clients lack its type
		if p.Type != q.Type && !neverShown || p.CallID != q.CallID || p.ToolName != q.ToolName {
			return false
		}
		same := p.Text == q.Text && string(p.Input) == string(q.Input)
		longer := strings.HasPrefix(q.Text, p.Text) && strings.HasPrefix(view.InputText(q.Input), string(p.Input))
		if last := i == len(seen)-1; !same && !(last && longer) {
			return false
		}
	}
	return true
}
