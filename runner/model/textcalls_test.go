package model

import (
	"encoding/json"
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
