package workspace

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/matryer/is"
)

func TestSafePath(t *testing.T) {
	t.Parallel()
	longest := strings.Repeat(strings.Repeat("a", 255)+"/", 3) + strings.Repeat("a", 255)
	for name, tt := range map[string]struct{ in, want string }{
		"plain":             {"a.txt", "a.txt"},
		"nested":            {"a/b/c.txt", "a/b/c.txt"},
		"itself":            {".", "."},
		"unclean":           {"./a//b/./c/", "a/b/c"},
		"up and back":       {"a/../b", "b"},
		"dots in names":     {"..a/b../...", "..a/b../..."},
		"encoded dots":      {"%2e%2e/%2e%2e/x", "%2e%2e/%2e%2e/x"},
		"encoded slash":     {"..%2fx", "..%2fx"},
		"encoded NUL":       {"a%00b", "a%00b"},
		"spaces":            {" a b ", " a b "},
		"tilde":             {"~/x", "~/x"},
		"case kept":         {"README.md", "README.md"},
		"unicode":           {"größe/日本.txt", "größe/日本.txt"},
		"full-width dots":   {"\uff0e\uff0e/x", "\uff0e\uff0e/x"},
		"longest name":      {strings.Repeat("a", 255), strings.Repeat("a", 255)},
		"deepest":           {strings.Repeat("a/", 63) + "a", strings.Repeat("a/", 63) + "a"},
		"longest":           {longest + "/", longest},
		"hidden":            {".git/config", ".git/config"},
		"up to the root":    {"a/..", "."},
		"dash":              {"-rf", "-rf"},
		"leading half dots": {"./.././a/../..x/../../work", "REFUSED"},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			got, err := SafePath(tt.in)
			if tt.want == "REFUSED" {
				is.True(err != nil)
				return
			}
			is.NoErr(err)
			is.Equal(got, tt.want)
		})
	}
}

func TestSafePathRefuses(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ in, says string }{
		"empty":              {"", "empty"},
		"parent":             {"..", "outside"},
		"parent of file":     {"../x", "outside"},
		"sneaks out":         {"a/../../b", "outside"},
		"out and in":         {"../workspace/x", "outside"},
		"deep out":           {"a/b/c/../../../../etc/passwd", "outside"},
		"absolute":           {"/etc/passwd", "absolute"},
		"double slash":       {"//etc/passwd", "absolute"},
		"root":               {"/", "absolute"},
		"NUL":                {"a\x00b", "control"},
		"NUL at the end":     {"../x\x00.txt", "control"},
		"newline":            {"a\nb", "control"},
		"carriage return":    {"a\rb", "control"},
		"escape":             {"a\x1b[31mb", "control"},
		"C1 control":         {"a\u0085b", "control"},
		"backslash":          {`..\..\x`, "backslash"},
		"drive":              {`C:\x`, "backslash"},
		"share":              {`\\host\x`, "backslash"},
		"mixed":              {`a/..\..\..\b`, "backslash"},
		"not UTF-8":          {"a\xffb", "UTF-8"},
		"overlong dot":       {"\xc0\xae\xc0\xae/x", "UTF-8"},
		"long name":          {strings.Repeat("a", 256), "255 bytes"},
		"long":               {strings.Repeat("a/", 512) + "a", "1024 bytes"},
		"deep":               {strings.Repeat("a/", 64) + "a", "64 folders"},
		"dots beyond a file": {"a.txt/../../b", "outside"},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			_, err := SafePath(tt.in)
			var e *Error
			is.True(errors.As(err, &e)) // the error may be shown
			is.Equal(e.Kind, Invalid)
			is.True(strings.Contains(e.Message, tt.says)) // the message contains the rule
		})
	}
}

func FuzzSafePath(f *testing.F) {
	for _, seed := range []string{
		"a/b", "..", "a/../../b", "/x", "a\x00", `a\b`, "", ".", "a/./b//c", "%2e%2e/x", "con", "\xff",
	} {
		f.Add(seed)
	}
	dir := filepath.Join("some", "where")
	f.Fuzz(func(t *testing.T, p string) {
		got, err := SafePath(p)
		if err != nil {
			var e *Error
			if !errors.As(err, &e) || got != "" {
				t.Fatalf("SafePath(%q) = %q, %v", p, got, err)
			}
			return
		}
		if !fs.ValidPath(got) || strings.ContainsAny(got, "\x00\n\\") {
			t.Fatalf("SafePath(%q) = %q, no valid path", p, got)
		}
		full := filepath.Join(dir, got)
		if full != dir && !strings.HasPrefix(full, dir+string(filepath.Separator)) {
			t.Fatalf("SafePath(%q) = %q, outside", p, got)
		}
		if again, err := SafePath(got); err != nil || again != got {
			t.Fatalf("SafePath(%q) = %q, %v: not stable", got, again, err)
		}
	})
}
