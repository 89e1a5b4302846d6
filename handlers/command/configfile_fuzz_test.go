package command

import (
	"strings"
	"testing"
)

// FuzzParseConfig parses random configuration files. Each entry has a line and a value, and an
// error is one line.
func FuzzParseConfig(f *testing.F) {
	for _, seed := range []string{"a: 1\nb: [x, 'y']\n", "a:\n  - 1\n  - 2\n", "a: |\n  text\n", "a: &x 1\nb: *x\n",
		"{a: 1, <<: {b: 2}}", "? a\n: b\n", "a: !!str 3\n", "- - -", "a: [", "\ufeffa: 1", "---\n...\n", "{ < 2\r\r\x06}"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		entries, err := parseConfig(raw)
		if err != nil && strings.ContainsRune(err.Error(), '\n') {
			t.Errorf("the error has several lines: %q", err)
		}
		for name, e := range entries {
			if err == nil && (e.line < 1 || !e.list && len(e.values) != 1) {
				t.Errorf("the entry %q has line %d and %d values", name, e.line, len(e.values))
			}
		}
	})
}
