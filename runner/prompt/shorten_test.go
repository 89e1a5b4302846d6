package prompt

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"journeyman/runner/model"
)

// FuzzShorten cuts random texts and arguments.
func FuzzShorten(f *testing.F) {
	for _, seed := range []string{"", "plain", strings.Repeat("é", 999), "\xff\xfe" + strings.Repeat("x", 2000), `{"a":"` + strings.Repeat("b", 3000) + `","n":1e400}`,
		`{"a":[{"b":"` + strings.Repeat("🜁", 900) + `"}]}`, `[1,2]`, `{"a":` + strings.Repeat("[", 2000), `{` + strings.Repeat(`"k":1,`, 900) + `"z":2}`, `null`} {
		f.Add(seed, uint16(300))
	}
	f.Fuzz(func(t *testing.T, text string, most uint16) {
		checkShortened(t, text, int(most))
	})
}

func checkShortened(t *testing.T, text string, most int) {
	t.Helper()
	before := []model.Message{{Role: model.RoleAssistant, Parts: []model.Part{{Type: model.PartToolCall, Input: []byte(text)}}},
		{Role: model.RoleTool, Parts: []model.Part{{Type: model.PartToolResult, Text: text}}}}
	after, n := cutMessages(before, most)
	if string(before[0].Parts[0].Input) != text || before[1].Parts[0].Text != text {
		t.Fatal("the given messages were changed")
	}
	cutText, input := after[1].Parts[0].Text, after[0].Parts[0].Input
	if len(text) <= most+120 {
		if n != 0 || cutText != text {
			t.Fatalf("a short text was cut to %q", cutText)
		}
		return
	}
	if n != 2 || len(cutText) > most+120 {
		t.Fatalf("%d cut, %d bytes left of %d", n, len(cutText), len(text))
	}
	if utf8.ValidString(text) && !utf8.ValidString(cutText) {
		t.Fatalf("a character was cut in two: %q", cutText)
	}
	if !isObject(input) || len(input) > 2*most+200 {
		t.Fatalf("arguments of %d bytes, %.100q", len(input), input)
	}
}

func isObject(raw json.RawMessage) bool {
	return json.Valid(raw) && raw[0] == '{'
}
