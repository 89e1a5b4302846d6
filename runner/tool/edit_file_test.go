package tool

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/matryer/is"

	"journeyman/runner/workspace"
)

func TestEditFile(t *testing.T) {
	t.Parallel()
	h := newTurn(t, workspace.Limits{})
	for name, tt := range map[string]struct {
		data, old, new string
		all            bool
		want           string // contents of the file afterwards, if says is empty
		says           string
	}{
		"once":            {"one two three", "two", "2", false, "one 2 three", ""},
		"delete":          {"one two", " two", "", false, "one", ""},
		"everything":      {"x", "x", "", false, "", ""},
		"all":             {"a b a b a", "a", "aa", true, "aa b aa b aa", ""},
		"all of one":      {"a", "a", "b", true, "b", ""},
		"lines":           {"a\nb\nc\n", "a\nb\n", "x\n", false, "x\nc\n", ""},
		"dollar signs":    {"cost: 5", "5", "$1 ${x} \\1", false, "cost: $1 ${x} \\1", ""},
		"CRLF":            {"a\r\nb\r\nc\r\n", "a\nb", "x\ny\nz", false, "x\r\ny\r\nz\r\nc\r\n", ""},
		"CRLF as such":    {"a\r\nb\r\n", "a\r\nb", "x\r\ny", false, "x\r\ny\r\n", ""},
		"mixed line ends": {"a\r\nb\nc", "b\nc", "x\ny", false, "a\r\nx\ny", ""},
		"mark kept":       {"\xef\xbb\xbfa", "a", "b", false, "\xef\xbb\xbfb", ""},

		"space at line ends":  {"a  \nb\t\nc\n", "a\nb\n", "x\n", false, "x\nc\n", ""},
		"space in old":        {"a\nb\nc\n", "a \nb\t\n", "x\n", false, "x\nc\n", ""},
		"typographic quotes":  {"say “hello” – it’s 5 o’clock…\n", `"hello" - it's 5 o'clock...`, `"bye"`, false, "say \"bye\"\n", ""},
		"quotes of the model": {"say \"hello\"\n", "say “hello”", "say bye", false, "say bye\n", ""},
		"hard space":          {"10 kg\n", "10 kg", "11 kg", false, "11 kg\n", ""},
		"indentation": {"if a {\n\t\tb()\n\t\tif c {\n\t\t\td()\n\t\t}\n}\n", "b()\nif c {\n\td()\n}", "e()\nif f {\n\tg()\n}", false,
			"if a {\n\t\te()\n\t\tif f {\n\t\t\tg()\n\t\t}\n}\n", ""},
		"spaces for tabs": {"x:\n\t\ta\n\t\tb\n", "    a\n    b\n", "    c\n    d\n", false, "x:\n\t\tc\n\t\td\n", ""},
		"CRLF loosely":    {"a \r\nb\r\n", "a\nb\n", "x\n", false, "x\r\n", ""},
		"twice loosely":   {"a \nb\na\t\nb\n", "a\nb", "x", false, "", "it does 2 times, first on lines 1 and 3"},
		"only spaces":     {"a  \n\n b", " \n ", "x", false, "", "old does not occur in"},

		"missing": {"abc", "x", "y", false, "", "old does not occur in \"f\"; the nearest lines are:\n1\tabc\n"},
		"nearly": {"one\ntwo\nfunc main() { run(1) }\nfour\n", "func main() { run(2) }", "y", false, "",
			"1\tone\n2\ttwo\n3\tfunc main() { run(1) }\n4\tfour\n"},
		"empty file":      {"", "x", "y", false, "", "old does not occur in"},
		"twice":           {"x\ny\nx\n", "x", "z", false, "", "old occurs 2 times in \"f\", first on lines 1, 3;"},
		"line ends twice": {"\n\n", "\n", "z", false, "", "first on lines 1, 2;"},
		"many times": {strings.Repeat("x\n", 9), "x", "z", false, "",
			"old occurs 9 times in \"f\", first on lines 1, 2, 3, 4, 5;"},
		"overlapping":      {"aaa", "aa", "b", false, "", "old occurs 2 times"},
		"empty old":        {"abc", "", "x", false, "", "old must not be empty"},
		"empty old, all":   {"abc", "", "x", true, "", "old must not be empty"},
		"nothing changes":  {"abc", "b", "b", false, "", "nothing would change"},
		"Latin-1":          {"caf\xe9", "caf", "x", false, "", "not UTF-8 text"},
		"Latin-1 far down": {strings.Repeat("x", headSize) + "y\xe9", "y", "z", false, "", "not UTF-8 text"},
		"binary":           {"a\x00b", "a", "x", false, "", "not UTF-8 text"},
		"UTF-16":           {"\xff\xfea\x00", "a", "b", false, "", "not UTF-8 text"},
		"bomb":             {strings.Repeat("a", 1<<20), "a", strings.Repeat("b", 1<<20), true, "", "1099511627776 bytes"},
		"too large":        {strings.Repeat("a", 1<<20), "a", strings.Repeat("b", 26), true, "", "larger than a file can be"},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			h.put(t, "f", tt.data)
			out, err := h.call(t, "edit_file", object{"path": "f", "old": tt.old, "new": tt.new, "all": tt.all})
			if tt.says != "" {
				says(t, err, tt.says)
				is.Equal(h.get(t, "f"), tt.data) // a refused edit changes nothing
				return
			}
			is.NoErr(err)
			is.Equal(h.get(t, "f"), tt.want)
			is.True(strings.Contains(out, fmt.Sprintf(`%d bytes now`, len(tt.want))))
		})
	}
}

func TestEditFileAnswer(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	h := newTurn(t, workspace.Limits{})
	h.put(t, "f", "1\n2 x x\n3\n4 x\n5\n6\n7\n8\n9\n10\n11\n12 y")
	is.Equal(h.text(t, "edit_file", object{"path": "f", "old": "x", "new": "z", "all": true}),
		"f: 3 replaced, 34 bytes now\n--- a/f\n+++ b/f\n@@ -1,7 +1,7 @@\n 1\n-2 x x\n+2 z z\n 3\n-4 x\n+4 z\n 5\n 6\n 7\n")
	is.Equal(h.text(t, "edit_file", object{"path": "f", "edits": []object{{"old": "1\n2", "new": "2"}, {"old": "12 y", "new": "12"}}}),
		"f: 2 replaced, 30 bytes now\n--- a/f\n+++ b/f\n@@ -1,4 +1,3 @@\n-1\n 2 z z\n 3\n 4 z\n"+
			"@@ -9,4 +8,4 @@\n 9\n 10\n 11\n-12 y\n\\ No newline at end of file\n+12\n\\ No newline at end of file\n")
	is.True(strings.HasPrefix(h.text(t, "edit_file", object{"path": "f", "old": "2 z z \n", "new": "2\n"}),
		"f: 1 replaced, 26 bytes now\n[old was found with other white space or quotes: check the diff]\n--- a/f")) // it is reported
	before := h.get(t, "f")
	for name, tt := range map[string]struct {
		args object
		says string
	}{
		"missing file":  {object{"path": "missing", "old": "x", "new": "y"}, "no file"},
		"all or none":   {object{"path": "f", "edits": []object{{"old": "3", "new": "three"}, {"old": "nowhere", "new": ""}}}, "edits[1].old does not occur"},
		"both forms":    {object{"path": "f", "old": "3", "new": "4", "edits": []object{{"old": "3", "new": "x"}}}, "give either old and new, or edits"},
		"no edits":      {object{"path": "f", "edits": []object{}}, "edits must not be empty"},
		"neither form":  {object{"path": "f"}, "old is required; new is required"},
		"half an edit":  {object{"path": "f", "edits": []object{{"old": "3"}}}, "edits[0].new is required"},
		"an empty edit": {object{"path": "f", "edits": []object{{"old": "", "new": "x"}}}, "edits[0].old must not be empty"},
		"too many":      {object{"path": "f", "edits": make([]object, maxEdits+1)}, "edits can have 100 entries"},
	} {
		t.Run(name, func(t *testing.T) {
			h.refuses(t, "edit_file", tt.args, tt.says)
		})
	}
	is.Equal(h.get(t, "f"), before)
}

// TestDiffsApply makes random edits and applies the diffs in the results with patch. The old
// file must become the new one.
func TestDiffsApply(t *testing.T) {
	t.Parallel()
	patch, err := exec.LookPath("git")
	if err != nil {
		t.Skip("git is not installed")
	}
	rounds := 20
	if os.Getenv("LONG") != "" {
		rounds = 1000
	}
	for round := range rounds {
		r := rand.New(rand.NewPCG(11, uint64(round)))
		before, after := randomEdit(r)
		diff := unifiedDiff("f", before, after)
		if (diff == "") != (before == after) {
			t.Fatalf("%q to %q: the diff is %q", before, after, diff)
		}
		if diff == "" || len(diff) > maxDiff {
			continue
		}
		dir := t.TempDir()
		is.New(t).NoErr(os.WriteFile(filepath.Join(dir, "f"), []byte(before), 0o600))
		cmd := exec.Command(patch, "apply", "--unidiff-zero", "--whitespace=nowarn", "-")
		cmd.Dir, cmd.Stdin = dir, strings.NewReader(diff)
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%q to %q: %v: %s\n%s", before, after, err, out, diff)
		}
		got, err := os.ReadFile(filepath.Join(dir, "f"))
		if err != nil || string(got) != after {
			t.Fatalf("%q to %q: patched to %q, %v", before, after, got, err)
		}
	}
}

// randomEdit returns two versions of a text.
func randomEdit(r *rand.Rand) (before, after string) {
	line := func() string { return []string{"a", "b", "c", "", "d e"}[r.IntN(5)] + "\n" }
	for range r.IntN(60) {
		before += line()
	}
	lines := strings.SplitAfter(before, "\n")
	for range 1 + r.IntN(6) {
		at := r.IntN(len(lines))
		switch r.IntN(3) {
		case 0:
			lines[at] = line()
		case 1:
			lines[at] = ""
		case 2:
			lines[at] += line()
		}
	}
	after = strings.Join(lines, "")
	if r.IntN(2) == 0 {
		after = strings.TrimSuffix(after, "\n")
	}
	if r.IntN(2) == 0 {
		before = strings.TrimSuffix(before, "\n")
	}
	return before, after
}

// TestDiffOfLongFiles compares files whose equal lines are left out before the comparison.
func TestDiffOfLongFiles(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	lines := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "%d\n", i+1)
		}
		return b.String()
	}
	before := lines(200_000)
	after := strings.Replace(before, "\n100000\n", "\nx\ny\n", 1)
	is.Equal(unifiedDiff("f", before, after), "--- a/f\n+++ b/f\n@@ -99997,7 +99997,8 @@\n 99997\n 99998\n 99999\n-100000\n+x\n+y\n"+
		" 100001\n 100002\n 100003\n")
	is.Equal(unifiedDiff("f", before, before+"x"), "--- a/f\n+++ b/f\n@@ -199998,3 +199998,4 @@\n 199998\n 199999\n 200000\n+x\n"+
		"\\ No newline at end of file\n")
	is.True(strings.HasPrefix(unifiedDiff("f", before, "x\n"+before), "--- a/f\n+++ b/f\n@@ -1,3 +1,4 @@\n+x\n 1\n 2\n 3\n"))
	is.Equal(unifiedDiff("f", before, strings.ReplaceAll(before, "\n", "x\n")),
		"[the diff has more than 100000 lines; read the file to see them]\n")
}

func FuzzEditFile(f *testing.F) {
	for _, seed := range []string{
		`{"path":"f","old":"two","new":"2"}`, `{"path":"f","old":"o","new":"","all":true}`, `{"path":"f","old":"","new":"x"}`,
		`{"path":"../f","old":"a","new":"b"}`, `{"path":7}`, `[]`, `null`, ``, `{"path":"f","old":"\ud800","new":"b"}`,
		`{"path":"f","old":"e\n","new":"\n","all":"yes"}`, `{"path":"f","old":null,"new":"x"}`, `{"PATH":"f"}`,
		`{"path":"f","edits":[{"old":"one \n","new":"1\n"},{"old":"two","new":"2"}]}`, `{"path":"f","old":" one\n two","new":"  x\n y"}`,
	} {
		f.Add(seed, "one\ntwo\nthree\n")
	}
	h := newTurn(f, workspace.Limits{})
	f.Fuzz(func(t *testing.T, input, data string) {
		h.put(t, "f", data)
		out, err := editFile{}.Run(t.Context(), h, json.RawMessage(input))
		after := h.get(t, "f")
		if err != nil {
			var told *Error
			if !errors.As(err, &told) || after != data {
				t.Fatalf("%q in %q: %v, and the file is %q", input, data, err, after)
			}
			return
		}
		var text string
		if json.Unmarshal(out, &text) != nil || !utf8.ValidString(after) ||
			!strings.Contains(text, fmt.Sprintf(" replaced, %d bytes now\n", len(after))) {
			t.Fatalf("%q in %q: %s, and the file is %q", input, data, out, after)
		}
	})
}
