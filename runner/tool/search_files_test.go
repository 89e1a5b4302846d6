package tool

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/matryer/is"

	"journeyman/runner/workspace"
	"journeyman/store/ordertest"
)

func TestSearchFilesRefuses(t *testing.T) {
	t.Parallel()
	h := newTurn(t, workspace.Limits{})
	for name, tt := range map[string]struct {
		args object
		says string
	}{
		"empty":         {object{"pattern": ""}, "pattern must not be empty"},
		"broken":        {object{"pattern": "(a"}, "pattern: error parsing regexp: missing closing )"},
		"look-around":   {object{"pattern": "a(?=b)"}, "pattern: error parsing regexp"},
		"long":          {object{"pattern": strings.Repeat("a", 1001)}, "pattern can have 1000 characters"},
		"huge program":  {object{"pattern": strings.Repeat(".{999}", 100)}, "too large"},
		"huge repeat":   {object{"pattern": "((a{100}){100}){100}"}, "pattern: error parsing regexp: invalid repeat count"},
		"leads out":     {object{"pattern": "a", "path": "a/../.."}, "outside"},
		"much context":  {object{"pattern": "a", "context": 11}, "context must be at most 10"},
		"broken glob":   {object{"pattern": "a", "glob": "{a"}, "glob: it ends"},
		"missing":       {object{"pattern": "a", "path": "none"}, "no file or folder"},
		"nested deeply": {object{"pattern": strings.Repeat("(", 500) + strings.Repeat(")", 500)}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := h.call(t, "search_files", tt.args); err != nil || tt.says != "" {
				says(t, err, tt.says)
			}
		})
	}
}

// TestSearchEndsWithContext searches a line with the slowest permitted pattern. The search
// would end long after the context.
func TestSearchEndsWithContext(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	h := newTurn(t, workspace.Limits{})
	h.put(t, "f", strings.Repeat("a", maxSearchLine))
	input, err := json.Marshal(object{"pattern": "(?:a?){900}b"})
	is.NoErr(err)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	begin := time.Now()
	_, err = searchFiles{}.Run(ctx, h, input)
	is.True(errors.Is(err, context.DeadlineExceeded))
	ordertest.Below(is, time.Since(begin), 20*time.Second) // the search did not stop in time
}

func TestSearchFiles(t *testing.T) {
	t.Parallel()
	h := newTurn(t, workspace.Limits{})
	h.put(t, "b.txt", "Alpha\nbeta\r\ngamma alpha")
	h.put(t, "a/c.md", "alpha\n\n")
	h.put(t, "latin", "caf\xe9 alpha\n")
	h.put(t, "wide", "\xff\xfea\x00l\x00p\x00h\x00a\x00\n\x00")
	h.put(t, "binary", "alpha\x00")
	h.put(t, "n/ten", "1\n2\n3 x\n4 x\n5\n6\n7\n8\n9\n10 x\n")
	is.New(t).NoErr(os.Symlink("b.txt", filepath.Join(h.dir, "link")))
	for name, tt := range map[string]struct {
		args object
		want string
	}{
		"all": {object{"pattern": "alpha"}, "a/c.md\n1:alpha\nb.txt\n3:gamma alpha\nlatin\n1:café alpha\nwide\n1:alpha\n" +
			"[4 matches in 4 of 5 text files]\n[1 files are not text, or too large, and were not searched]\n"},
		"no case":      {object{"pattern": "(?i)^ALPHA$", "path": "b.txt"}, "b.txt\n1:Alpha\n[1 matches in 1 of 1 text files]\n"},
		"line end":     {object{"pattern": "beta$", "path": "b.txt"}, "b.txt\n2:beta\n[1 matches in 1 of 1 text files]\n"},
		"folder":       {object{"pattern": "a", "path": "a"}, "a/c.md\n1:alpha\n[1 matches in 1 of 1 text files]\n"},
		"empty lines":  {object{"pattern": "^$", "path": "a"}, "a/c.md\n2:\n[1 matches in 1 of 1 text files]\n"},
		"none":         {object{"pattern": "delta", "path": "a"}, "[0 matches in 0 of 1 text files]\n"},
		"through link": {object{"pattern": "beta", "path": "link"}, "link\n2:beta\n[1 matches in 1 of 1 text files]\n"},
		"names":        {object{"pattern": "alpha", "glob": "*.{md,go}"}, "a/c.md\n1:alpha\n[1 matches in 1 of 1 text files]\n"},
		"paths":        {object{"pattern": "x", "path": "n", "glob": "/ten"}, "n/ten\n3:3 x\n4:4 x\n10:10 x\n[3 matches in 1 of 1 text files]\n"},
		"context": {object{"pattern": "x", "path": "n/ten", "context": 1},
			"n/ten\n2-2\n3:3 x\n4:4 x\n5-5\n--\n9-9\n10:10 x\n[3 matches in 1 of 1 text files]\n"},
		"context that meets": {object{"pattern": "x", "path": "n/ten", "context": 3},
			"n/ten\n1-1\n2-2\n3:3 x\n4:4 x\n5-5\n6-6\n7-7\n8-8\n9-9\n10:10 x\n[3 matches in 1 of 1 text files]\n"},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			is.Equal(h.text(t, "search_files", tt.args), tt.want)
		})
	}
}

// TestSearchLongLines searches lines that are longer than what a large pattern may search.
func TestSearchLongLines(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	h := newTurn(t, workspace.Limits{})
	h.put(t, "f", strings.Repeat("x", 200_000)+"needle\nneedle\n")
	large := "(?:a{900}|needle)" // more than 900 instructions
	is.Equal(h.text(t, "search_files", object{"pattern": large}), "f\n2:needle\n[1 matches in 1 of 1 text files]\n"+
		"[1 lines are longer than 73827 bytes, and with this pattern only their beginnings were searched: a simpler pattern reads more]\n")
	text := h.text(t, "search_files", object{"pattern": "needle"})
	is.True(strings.Contains(text, "[2 matches") && !strings.Contains(text, "longer than"))
}

func TestSearchFilesLimits(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	h := newTurn(t, workspace.Limits{})
	h.put(t, "200", strings.Repeat("x\n", maxMatches))
	find := func(pattern, path string) string {
		return h.text(t, "search_files", object{"pattern": pattern, "path": path})
	}
	text := find("x", "200")
	is.True(strings.HasSuffix(text, "\n200:x\n[200 matches in 1 of 1 text files]\n")) // exactly the maximum
	h.put(t, "201", "x\n")
	text = find("x", ".")
	is.True(strings.HasSuffix(text, "\n200:x\n[200 matches in 1 of 2 text files]\n"+
		"[there may be more matches: narrow the pattern, the path or the glob]\n"))
	h.put(t, "wide", strings.Repeat(strings.Repeat("y", 290)+"\n", 500)+"z\n"+strings.Repeat("y\n", 500))
	wide := h.text(t, "search_files", object{"pattern": "y", "path": "wide", "context": 10})
	ordertest.AtMost(is, len(wide), maxFound+1000) // it is too long

	h.put(t, "large", strings.Repeat("y", headSize))
	is.NoErr(os.Truncate(filepath.Join(h.dir, "large"), 25<<20))
	is.True(!strings.Contains(find("y", "large"), "too large"))
	is.NoErr(os.Truncate(filepath.Join(h.dir, "large"), 25<<20+1))
	is.True(strings.Contains(find("y", "large"), "1 files are not text, or too large"))

	h.put(t, "long", strings.Repeat("é", 100_000)+"needle"+strings.Repeat("é", 100_000))
	_, text, _ = strings.Cut(find("needle", "long"), "1:") // also at the end of a long line
	text, _, _ = strings.Cut(text, "\n")
	is.True(strings.Contains(text, "éneedleé"))
	is.True(strings.HasPrefix(text, "…é") && strings.HasSuffix(text, "é…"))
	is.True(utf8.ValidString(text))
	ordertest.AtMost(is, len(text), maxExcerpt+2*len("…"))
	h.put(t, "start", "needle"+strings.Repeat("x", 1000))
	is.True(strings.Contains(find("needle", "start"), "\n1:needlex"))
	h.put(t, "end", strings.Repeat("x", 1000)+"needle")
	is.True(strings.Contains(find("needle", "end"), "xneedle\n"))
}
