package model

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/matryer/is"
)

// TestWithUnmade has texts that end with a call that cannot be made, from any place on.
func TestWithUnmade(t *testing.T) {
	t.Parallel()
	a, b := json.RawMessage(`"a"`), json.RawMessage(`"b"`)
	thought := Part{Type: PartReasoning, Text: "Hm"}
	for name, tt := range map[string]struct {
		parts []Part
		at    int
		want  string
	}{
		"all":               {[]Part{{Type: PartText, Text: "call", Meta: a}}, 0, `unmade-call call "a" `},
		"the end":           {[]Part{{Type: PartText, Text: "So. call", Meta: a}}, 4, `text So.  "a" unmade-call call "a" `},
		"the second":        {[]Part{{Type: PartText, Text: "So.", Meta: a}, thought, {Type: PartText, Text: "call", Meta: b}}, 3, `text So. "a" reasoning Hm  unmade-call call "b" `},
		"end of the second": {[]Part{{Type: PartText, Text: "So.", Meta: a}, {Type: PartText, Text: "Or call", Meta: b}}, 6, `text So. "a" text Or  "b" unmade-call call "b" `},
		"both":              {[]Part{{Type: PartText, Text: "ca"}, thought, {Type: PartText, Text: "ll"}}, 0, `unmade-call ca  reasoning Hm  unmade-call ll  `},
		"empty texts":       {[]Part{{Type: PartText, Meta: a}, {Type: PartText, Text: "call"}, {Type: PartText, Meta: b}}, 0, `text  "a" unmade-call call  text  "b" `},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := ""
			for _, p := range (Response{Parts: tt.parts}).WithUnmade(tt.at).Parts {
				got += fmt.Sprintf("%s %s %s ", p.Type, p.Text, p.Meta)
			}
			is.New(t).Equal(got, tt.want)
		})
	}
}

// A brokenModel emits deltas and fails.
type brokenModel []Delta

func (m brokenModel) Name() string { return "broken:m" }

func (m brokenModel) Generate(_ context.Context, _ Request, emit func(Delta)) (Response, error) {
	for _, d := range m {
		emit(d)
	}
	return Response{}, errors.New("lost")
}

// TestAllTextOfAFailedCallIsCounted checks that each byte that has arrived is emitted or kept back: it costs money.
func TestAllTextOfAFailedCallIsCounted(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		deltas    brokenModel
		open      bool
		all, kept string
	}{
		"text":             {brokenModel{{Type: PartText, Text: "Hello"}}, false, "Hello", ""},
		"beginning":        {brokenModel{{Type: PartText, Text: "<thi"}}, false, "<thi", "<thi"},
		"end":              {brokenModel{{Type: PartText, Text: "So </thi"}}, false, "So </thi", "</thi"},
		"white space":      {brokenModel{{Type: PartText, Text: "\n \n"}}, false, "\n \n", "\n \n"},
		"a call":           {brokenModel{{Type: PartText, Text: "So.\n"}, {Type: PartText, Text: "<tool_call>{</thi"}}, false, "So.\n<tool_call>{</thi", "<tool_call>{</thi"},
		"two texts":        {brokenModel{{Type: PartText, Text: "A </thi"}, {Part: 1, Type: PartReasoning, Text: "Hm"}, {Part: 2, Type: PartText, Text: "B <"}}, false, "A HmB </thi<", "</thi<"},
		"before a call":    {brokenModel{{Type: PartText, Text: "A </thi"}, {Part: 1, Type: PartToolCall, ToolName: "f", Text: "{"}}, false, "A {</thi", "</thi"},
		"open thinking":    {brokenModel{{Type: PartText, Text: "Hm </thi"}}, true, "Hm </thi", "</thi"},
		"end of an answer": {brokenModel{{Type: PartText, Text: "<think>a"}, {Type: PartText, Text: "</think"}}, false, "a</think", "</think"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			emitted := ""
			resp, err := Ask(t.Context(), tt.deltas, Request{ThinkingOpen: tt.open}, func(d Delta) { emitted += d.Text })
			is.True(err != nil)
			is.Equal(resp.KeptBack, tt.kept)
			is.Equal(emitted+resp.KeptBack, tt.all)
		})
	}
}
