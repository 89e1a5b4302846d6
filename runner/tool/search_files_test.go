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

	"journeyman/runner/sandbox"
)

func TestSearchFiles(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	h := newTurn(t, sandbox.Limits{})
	h.put(t, "b.txt", "Alpha\nbeta\r\ngamma alpha")
	h.put(t, "a/c.md", "alpha\n\n")
	h.put(t, "latin", "caf\xe9 alpha\n")
	h.put(t, "wide", "\xff\xfea\x00l\x00p\x00h\x00a\x00\n\x00")
	h.put(t, "binary", "alpha\x00")
	is.NoErr(os.Symlink("b.txt", filepath.Join(h.dir, "link")))
	found := func(m ...match) search { return search{Searched: 1, Matches: m} }
	for name, tt := range map[string]struct {
		args object
		want search
	}{
		"all": {object{"pattern": "alpha"}, search{Searched: 4, Skipped: 1, Matches: []match{
			{"a/c.md", 1, "alpha"}, {"b.txt", 3, "gamma alpha"}, {"latin", 1, "café alpha"}, {"wide", 1, "alpha"},
		}}},
		"no case":      {object{"pattern": "(?i)^ALPHA$", "path": "b.txt"}, found(match{"b.txt", 1, "Alpha"})},
		"line end":     {object{"pattern": "beta$", "path": "b.txt"}, found(match{"b.txt", 2, "beta"})},
		"folder":       {object{"pattern": "a", "path": "a"}, found(match{"a/c.md", 1, "alpha"})},
		"empty lines":  {object{"pattern": "^$", "path": "a"}, found(match{"a/c.md", 2, ""})},
		"none":         {object{"pattern": "delta", "path": "a"}, search{Searched: 1, Matches: []match{}}},
		"through link": {object{"pattern": "beta", "path": "link"}, found(match{"link", 2, "beta"})},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			out, err := h.call(t, "search_files", tt.args)
			is.NoErr(err)
			var got search
			is.NoErr(json.Unmarshal([]byte(out), &got))
			is.Equal(got, tt.want)
		})
	}
}

func TestSearchFilesRefuses(t *testing.T) {
	t.Parallel()
	h := newTurn(t, sandbox.Limits{})
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

func TestSearchFilesLimits(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	h := newTurn(t, sandbox.Limits{})
	h.put(t, "200", strings.Repeat("x\n", maxMatches))
	find := func(pattern, path string) (got search) {
		out, err := h.call(t, "search_files", object{"pattern": pattern, "path": path})
		is.NoErr(err)
		is.NoErr(json.Unmarshal([]byte(out), &got))
		return got
	}
	got := find("x", "200")
	is.Equal(len(got.Matches), maxMatches)
	is.Equal(got.Note, "") // just all of them
	h.put(t, "201", "x\n")
	got = find("x", ".")
	is.Equal(len(got.Matches), maxMatches)
	is.True(strings.HasPrefix(got.Note, "stopped at 200 matches"))

	h.put(t, "large", strings.Repeat("y", headSize))
	is.NoErr(os.Truncate(filepath.Join(h.dir, "large"), maxSearched))
	is.Equal(find("y", "large").Skipped, 0)
	is.NoErr(os.Truncate(filepath.Join(h.dir, "large"), maxSearched+1))
	is.Equal(find("y", "large").Skipped, 1)

	h.put(t, "long", strings.Repeat("é", 100_000)+"needle"+strings.Repeat("é", 100_000))
	got = find("needle", "long")
	is.Equal(len(got.Matches), 1) // also far along a long line
	text := got.Matches[0].Text
	is.True(strings.Contains(text, "éneedleé"))
	is.True(strings.HasPrefix(text, "…é") && strings.HasSuffix(text, "é…"))
	is.True(utf8.ValidString(text) && len(text) <= maxExcerpt+2*len("…"))
	h.put(t, "start", "needle"+strings.Repeat("x", 1000))
	is.True(strings.HasPrefix(find("needle", "start").Matches[0].Text, "needlex"))
	h.put(t, "end", strings.Repeat("x", 1000)+"needle")
	is.True(strings.HasSuffix(find("needle", "end").Matches[0].Text, "xneedle"))
}

// TestSearchEndsWithContext searches, with the slowest pattern that is let through,
// a line that would take it long after the context has ended.
func TestSearchEndsWithContext(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	h := newTurn(t, sandbox.Limits{})
	h.put(t, "f", strings.Repeat("a", maxSearchLine))
	input, err := json.Marshal(object{"pattern": "(?:a?){900}b"})
	is.NoErr(err)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	begin := time.Now()
	_, err = searchFiles{}.Run(ctx, h, input)
	is.True(errors.Is(err, context.DeadlineExceeded))
	is.True(time.Since(begin) < 5*time.Second)
}
