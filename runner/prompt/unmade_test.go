package prompt

import (
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/runner/model"
	"journeyman/store"
)

// TestUnmadeCallsAreNotQuoted checks that a call that could not be made is in the requests of its own turn, as the
// model wrote it, and in no later turn and no summary.
func TestUnmadeCallsAreNotQuoted(t *testing.T) {
	t.Parallel()
	const call = "<tool_call>{"
	unmade := store.Part{Type: store.PartUnmade, Text: call}
	words := store.Part{Type: store.PartText, Text: "I write. "}
	for name, tt := range map[string]struct {
		parts        []store.Part
		now, quoted  string
		later, final string // of the next turn, if the turn went on after the step, and if it ended with it
	}{
		"alone":         {[]store.Part{unmade}, call, "", "", "(no answer)"},
		"after words":   {[]store.Part{words, unmade}, "I write. " + call, "I write. ", "I write. ", "I write. (no answer)"},
		"two texts":     {[]store.Part{words, {Type: store.PartReasoning, Text: "So."}, unmade}, "I write. So." + call, "I write. ", "I write. ", "I write. (no answer)"},
		"between":       {[]store.Part{{Type: store.PartReasoning, Text: "So."}, words, {Type: store.PartReasoning, Text: "Hm.", Meta: []byte(`{"signature":"s"}`)}, unmade}, "So.I write. Hm." + call, "I write. ", "So.I write. ", "So.I write. (no answer)"},
		"after thought": {[]store.Part{{Type: store.PartReasoning, Text: "So."}, unmade}, "So." + call, "", "", "(no answer)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			told := store.Step{Finish: store.FinishMistake, Parts: tt.parts, Feedback: "Write {it} so."}
			answer := store.Step{Seq: 1, Finish: "stop", Parts: []store.Part{{Type: store.PartText, Text: "Done."}}}
			p := New(store.Claim{}, Files{})
			p.AddInstruction(store.Turn{Input: "Go."}, nil)
			p.AddStep(told)
			is.Equal(wordsOf(p.Request()), tt.now)
			quote := string(quotePassage(p.conversation.passages[1]))
			is.True(!strings.Contains(quote, "tool_call"))
			is.True(!strings.Contains(quote, "{it}"))
			is.True(strings.Contains(quote, unmadeNote)) // a summary of nothing else has something to read
			is.Equal(strings.Contains(quote, words.Text), tt.quoted != "")

			later := New(store.Claim{Turn: store.Turn{Seq: 1}}, Files{})
			later.AddInstruction(store.Turn{Input: "Go."}, nil)
			later.AddSteps(store.Turn{}, []store.Step{told, answer})
			later.AddInstruction(store.Turn{Seq: 1, Input: "On."}, nil)
			is.Equal(wordsOf(later.Request()), tt.later+"Done.")

			ended := New(store.Claim{Turn: store.Turn{Seq: 1}}, Files{})
			ended.AddInstruction(store.Turn{Input: "Go."}, nil)
			ended.AddSteps(store.Turn{}, []store.Step{told})
			is.Equal(wordsOf(ended.Request()), tt.final)
		})
	}
}

// TestCutMarksAreNotQuoted has texts that the output limit cuts within the mark of a call, which the next step goes on
// with. Later turns have only the words before the mark.
func TestCutMarksAreNotQuoted(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		cut, rest string
		unmade    bool
		later     string
	}{
		"within the mark":  {"<tool_c", "all>{bad", true, "Done."},
		"after words":      {"I write.\n<tool_c", "all>{bad", true, "I write.\nDone."},
		"after the mark":   {"I write.\n<tool_call>{", "bad", true, "I write.\nDone."},
		"within JSON":      {"{\"name\":\"f", "\",\"arguments\":{", true, "Done."},
		"no call":          {"I write a <b", ">word</b>.", false, "I write a <b>word</b>.Done."},
		"words in between": {"I write.", " So.", false, "I write. So.Done."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			cut := store.Step{Finish: store.FinishContinued, Parts: []store.Part{{Type: store.PartText, Text: tt.cut}}, Feedback: "Go on."}
			rest := store.Step{Seq: 1, Finish: "stop", Parts: []store.Part{{Type: store.PartText, Text: tt.rest}}, Feedback: "On."}
			if tt.unmade {
				rest.Finish, rest.Parts[0].Type = store.FinishMistake, store.PartUnmade
			}
			answer := store.Step{Seq: 2, Finish: "stop", Parts: []store.Part{{Type: store.PartText, Text: "Done."}}}
			p := New(store.Claim{Turn: store.Turn{Seq: 1}}, Files{})
			p.AddInstruction(store.Turn{Input: "Go."}, nil)
			p.AddSteps(store.Turn{}, []store.Step{cut, rest, answer})
			is.Equal(wordsOf(p.Request()), tt.later)
			is.Equal(cut.Parts[0].Text, tt.cut) // the journal stays as it is
		})
	}
}

// TestUnmadeCallsKeepTheirKind checks that the words before a call and the call are one text again only if they were one:
// the phase of a text of the Responses API is its own.
func TestUnmadeCallsKeepTheirKind(t *testing.T) {
	t.Parallel()
	comment, final := []byte(`{"phase":"commentary"}`), []byte(`{"phase":"final_answer"}`)
	for name, tt := range map[string]struct {
		words, call []byte // their Meta
		now, later  string
	}{
		"halves":          {comment, comment, `I write. call{"phase":"commentary"};`, `I write. {"phase":"commentary"};`},
		"halves, no kind": {nil, nil, `I write. call;`, `I write. ;`},
		"two texts":       {comment, final, `I write. {"phase":"commentary"};call{"phase":"final_answer"};`, `I write. {"phase":"commentary"};`},
		"one without":     {comment, nil, `I write. {"phase":"commentary"};call;`, `I write. {"phase":"commentary"};`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			st := store.Step{Parts: []store.Part{{Type: store.PartText, Text: "I write. ", Meta: tt.words},
				{Type: store.PartUnmade, Text: "call", Meta: tt.call}}}
			p := New(store.Claim{}, Files{})
			for want, messages := range map[string][]model.Message{tt.now: p.stepMessages(st), tt.later: p.lastingMessages(st)} {
				got := ""
				for _, part := range messages[0].Parts {
					got += part.Text + string(part.Meta) + ";"
				}
				is.Equal(got, want)
			}
		})
	}
}

// wordsOf returns the texts of the assistant. No two of its messages may follow each other.
func wordsOf(req model.Request) string {
	var b strings.Builder
	for i, m := range req.Messages {
		if m.Role != model.RoleAssistant {
			continue
		}
		if i > 0 && req.Messages[i-1].Role == model.RoleAssistant {
			b.WriteString("(twice)")
		}
		for _, p := range m.Parts {
			b.WriteString(p.Text)
		}
	}
	return b.String()
}
