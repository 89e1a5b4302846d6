package prompt

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/store"
)

// TestRepeats counts equal calls, across steps and within one, and checks the hints.
func TestRepeats(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	p := New(store.Claim{}, Files{})
	p.Hints = true
	seq := int64(0)
	add := func(pairs ...string) {
		st := store.Step{Seq: seq, Finish: "tool-calls"}
		for i := 0; i < len(pairs); i += 2 {
			id := fmt.Sprint(seq, i)
			st.Parts = append(st.Parts, store.Part{Type: store.PartToolCall, CallID: id, ToolName: "it", Input: json.RawMessage(pairs[i])})
			st.Calls = append(st.Calls, store.Call{Seq: int64(i / 2), State: store.CallCompleted, Output: json.RawMessage(pairs[i+1])})
		}
		p.AddStep(st)
		seq++
	}
	add(`{}`, `1`, `{}`, `1`)
	add(`{}`, `1`)
	is.Equal(p.Repeats(), 3)
	add(`{"a":1}`, `1`) // other arguments
	is.Equal(p.Repeats(), 1)
	add(`{"a":1}`, `2`) // another result
	is.Equal(p.Repeats(), 1)
	for range 8 {
		add(`{"a":1}`, `2`)
	}
	is.Equal(p.Repeats(), 9)
	raw, err := json.Marshal(p.Request().Messages)
	is.NoErr(err)
	is.Equal(strings.Count(string(raw), "(The same call was made 5 times in a row"), 1)
	is.Equal(strings.Count(string(raw), "(The same call was made"), 1)
	p.AddInstruction(store.Turn{Input: "more"}, nil)
	is.Equal(p.Repeats(), 0)
}
