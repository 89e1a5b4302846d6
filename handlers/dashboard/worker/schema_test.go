package worker

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func FuzzParseSchema(f *testing.F) {
	for _, text := range []string{"", "{", "{\n\"ü\": x}", `{"type":"object"}`, "[]", "{\"a\": \"\x00\"}", "\n\n\n]",
		"\xff"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		raw, err := parseSchema(text)
		if err == nil && raw != nil {
			err = checkSchemaText(text)
		}
		if err != nil {
			if len(err.Error()) > 2000 || utf8.ValidString(text) && !utf8.ValidString(err.Error()) {
				t.Errorf("%q: %q", text, err)
			}
			return
		}
		if raw == nil && strings.TrimSpace(text) != "" {
			t.Errorf("%q is no schema", text)
		}
	})
}
