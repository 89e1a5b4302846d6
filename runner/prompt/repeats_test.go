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
	is.Equal(p.Repeats(1), 3)
	add(`{"a":1}`, `1`) // other arguments
	is.Equal(p.Repeats(1), 1)
	add(`{"a":1}`, `2`) // another result
	is.Equal(p.Repeats(1), 1)
	for range 8 {
		add(`{"a":1}`, `2`)
	}
	is.Equal(p.Repeats(1), 9)
	raw, err := json.Marshal(p.Request().Messages)
	is.NoErr(err)
	is.Equal(strings.Count(string(raw), "(The same call was made 5 times in a row"), 1)
	is.Equal(strings.Count(string(raw), "(The same call was made"), 1)
	p.AddInstruction(store.Turn{Input: "more"}, nil)
	is.Equal(p.Repeats(1), 0)
}

// TestRounds counts rounds of two and three calls. A note says how many rounds there are after the
// calls, by size.
func TestRounds(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		calls string // a letter for each call
		want  [MaxRound]int
		hints []string
	}{
		"none":            {"", [3]int{0, 0, 0}, nil},
		"one":             {"a", [3]int{1, 0, 0}, nil},
		"two":             {"ababab", [3]int{1, 3, 1}, nil},
		"half a round":    {"ababa", [3]int{1, 2, 1}, nil},
		"three":           {"abcabcabc", [3]int{1, 1, 3}, nil},
		"a pair of three": {"aabaabaab", [3]int{1, 1, 3}, nil},
		"after others":    {"xyzzyabab", [3]int{1, 2, 1}, nil},
		"broken":          {"abcabcaxc", [3]int{1, 1, 1}, nil},
		"equal":           {strings.Repeat("a", 12), [3]int{12, 0, 0}, []string{"same call was made 5 ", "same call was made 10 "}},
		"hint of two":     {strings.Repeat("ab", 10), [3]int{1, 10, 1}, []string{"same 2 calls were made 5 ", "same 2 calls were made 10 "}},
		"hint of three":   {strings.Repeat("abc", 5), [3]int{1, 1, 5}, []string{"same 3 calls were made 5 "}},
		"four":            {strings.Repeat("abcd", 20), [3]int{1, 1, 1}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			p := New(store.Claim{}, Files{})
			p.Hints = true
			for i, letter := range tt.calls {
				p.AddStep(store.Step{Seq: int64(i), Parts: []store.Part{{Type: store.PartToolCall, CallID: fmt.Sprint(i),
					ToolName: string(letter), Input: json.RawMessage(`{}`)}},
					Calls: []store.Call{{State: store.CallCompleted, Output: json.RawMessage(`1`)}}})
			}
			for size := 1; size <= MaxRound; size++ {
				is.Equal(p.Repeats(size), tt.want[size-1])
			}
			raw, err := json.Marshal(p.Request().Messages)
			is.NoErr(err)
			is.Equal(strings.Count(string(raw), "in a row, with the same result"), len(tt.hints))
			for _, hint := range tt.hints {
				is.True(strings.Contains(string(raw), hint))
			}
		})
	}
}
