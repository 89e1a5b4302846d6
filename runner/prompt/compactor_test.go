package prompt

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/runner/model"
	"journeyman/store"
	"journeyman/store/ordertest"
)

// A sample describes a conversation for a test.
type sample struct {
	turns      int // earlier turns
	words      int // words of each input and answer
	attachment int // size of the text file attached to each turn, 0 for none
	steps      int // steps of the turn in progress
	output     int // bytes of the tool output of each of those steps
}

// textFiles are files whose text is as long as their size.
var textFiles = Files{Open: func(f store.File) ([]byte, error) { return bytes.Repeat([]byte("word"), int(f.Size/4)), nil }}

func (s sample) prompt() *Prompt {
	p := New(store.Claim{Turn: store.Turn{Seq: int64(s.turns)}, Instructions: "Be brief."}, textFiles)
	var attached []store.File
	if s.attachment > 0 {
		attached = []store.File{{Path: "notes.txt", MediaType: "text/plain", Size: int64(s.attachment)}}
	}
	text := strings.Repeat("word ", s.words)
	for i := range s.turns {
		t := store.Turn{Num: int64(i), Seq: int64(i), Input: fmt.Sprintf("input %d %s", i, text)}
		p.AddInstruction(t, attached)
		p.AddSteps(t, []store.Step{{Finish: "stop", Parts: []store.Part{{Type: store.PartText, Text: "answer " + text}}}})
	}
	p.AddInstruction(store.Turn{Seq: int64(s.turns), Input: "the newest input " + text}, attached)
	for i := range s.steps {
		id := fmt.Sprintf("call_%d", i)
		p.AddStep(store.Step{Seq: int64(i), Finish: "tool-calls",
			Parts: []store.Part{{Type: store.PartToolCall, CallID: id, ToolName: "it", Input: json.RawMessage(`{}`)}},
			Calls: []store.Call{{State: store.CallCompleted, Output: json.RawMessage(`"` + strings.Repeat("row ", s.output/4) + `"`)}}})
	}
	return p
}

// compact applies all proposals, with a model that always writes a short summary.
func compact(p *Prompt, w Window) (made []store.Compaction) {
	c := NewCompactor(p, w)
	for proposal := range c.Proposals() {
		m := proposal.Compaction
		if proposal.Summary != nil {
			m = proposal.Summarised("A record.")
		}
		made = append(made, c.Apply(m))
	}
	return made
}

// TestProposals checks which strategies a conversation needs, and their order.
func TestProposals(t *testing.T) {
	t.Parallel()
	const cut, files, summary = store.CompactionCut, store.CompactionFiles, store.CompactionSummary
	for name, tt := range map[string]struct {
		sample sample
		want   []store.CompactionKind
	}{
		"it fits":                        {sample{turns: 2, words: 10, attachment: 100, steps: 2, output: 100}, nil},
		"files of earlier turns":         {sample{turns: 5, words: 10, attachment: 5000}, []store.CompactionKind{files}},
		"old tool output":                {sample{turns: 1, words: 10, steps: 8, output: 6000}, []store.CompactionKind{cut}},
		"many turns":                     {sample{turns: 40, words: 200}, []store.CompactionKind{summary}},
		"the newest output alone":        {sample{words: 10, steps: 1, output: 100_000}, []store.CompactionKind{cut}},
		"the newest file alone":          {sample{words: 10, attachment: 60_000}, []store.CompactionKind{files}},
		"nothing that may be left out":   {sample{words: 20_000}, nil},
		"output first, then old turns":   {sample{turns: 40, words: 200, steps: 3, output: 6000}, []store.CompactionKind{cut, summary}},
		"a conversation of many windows": {sample{turns: 300, words: 500}, []store.CompactionKind{summary}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			w := Window{Size: 8000, MaxOutput: 1000}
			p := tt.sample.prompt()
			made := compact(p, w)
			var kinds []store.CompactionKind
			for _, m := range made {
				kinds = append(kinds, m.Kind)
				ordertest.Below(is, m.TokensAfter, m.TokensBefore) // each proposal makes the request smaller
			}
			is.Equal(slices.Compact(kinds), tt.want)
			if tt.want != nil {
				ordertest.AtMost(is, p.Calibrated(p.Estimate()), w.Room()) // the prompt now fits
			}
			req := p.Request()
			newest := func(p model.Part) bool { return strings.HasPrefix(p.Text, "the newest input") }
			is.True(slices.ContainsFunc(req.Messages[req.TurnStart].Parts, newest)) // the instruction is complete

			// A turn that resumes restores its compactions from the journal, and must send
			// the same request.
			again := tt.sample.prompt()
			for _, m := range made {
				again.Restore(m)
			}
			is.Equal(asJSON(t, again.Request()), asJSON(t, req))
		})
	}
}

func asJSON(t *testing.T, req model.Request) string {
	t.Helper()
	raw, err := json.Marshal(req)
	is.New(t).NoErr(err)
	return string(raw)
}

// TestSummaryOmitted checks that a note is used if the model writes no summary. Any number of
// such notes keeps the earlier summary.
func TestSummaryOmitted(t *testing.T) {
	t.Parallel()
	for omissions := 1; omissions <= 3; omissions++ {
		t.Run(fmt.Sprint(omissions), func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			p := sample{turns: 300, words: 500}.prompt()
			c := NewCompactor(p, Window{Size: 8000, MaxOutput: 1000})
			n := 0
			for proposal := range c.Proposals() {
				m := proposal.Summarised("  \n")
				if n == 0 {
					m = proposal.Summarised("The first record.")
				}
				c.Apply(m)
				if n++; n == 1+omissions {
					break
				}
			}
			is.Equal(n, 1+omissions)
			text := p.Request().Messages[0].Parts[0].Text
			is.Equal(strings.Count(text, "The first record."), 1)
			is.Equal(strings.Count(text, "earlier steps of this task were left out"), 1) // a single note
		})
	}
}

func TestWindow(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	w := Window{Size: 9000, MaxOutput: 1000}
	is.Equal(w.Room(), int64(8000))
	is.Equal(w.Output(1000), 1000)
	is.Equal(w.Output(7000), 256) // the minimum output
	w.Refuse(6000, &model.Error{})
	is.Equal(w.Size, int64(4500)) // three quarters of the rejected request
	w.Refuse(4000, &model.Error{Window: 3000})
	is.Equal(w.Size, int64(3000)) // the window that the provider states
	w.Refuse(2000, &model.Error{})
	is.Equal(w.Size, int64(minWindow))
	resumed := Window{Size: 9000, MaxOutput: 1000}
	resumed.Remember(w.Room())
	ordertest.Between(is, resumed.Size, minWindow-4, minWindow+4) // equal, except for rounding
}
