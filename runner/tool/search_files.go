package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode/utf8"

	"journeyman/runner/sandbox"
)

// The limits of search_files.
const (
	maxPattern     = 1000     // characters in a pattern
	maxProgram     = 2000     // steps of the program a pattern becomes
	maxMatches     = 200      // matches in an answer
	maxExcerpt     = 300      // bytes of a line in an answer
	maxSearched    = 25 << 20 // bytes in a file that is searched
	maxSearchLine  = 1 << 20  // bytes of a line that are searched
	shortLine      = 4 << 10  // bytes in a line that is surely searched in no time
	excerptContext = 100      // bytes shown before a match in a long line
)

type searchFiles struct{}

// Spec describes search_files.
func (searchFiles) Spec() Spec {
	return Spec{
		Name: "search_files",
		Description: `Search the text files in the workspace, or in one folder or file of it, for lines that match a
regular expression (RE2 syntax: no look-around, no back-references; (?i) ignores case). Gives path, line number and
text of up to 200 matching lines; long lines are cut around the match.`,
		InputSchema: json.RawMessage(`{
  "type": "object",
  "properties": {
    "pattern": {"type": "string", "minLength": 1, "maxLength": 1000,
      "description": "RE2 regular expression, matched against one line at a time"},
    "path": {"type": "string",
      "description": "Folder or file to search, relative to the workspace; default the whole workspace"}
  },
  "required": ["pattern"],
  "additionalProperties": false
}`),
		Repeatable: true,
	}
}

type match struct {
	Path string `json:"path"`
	Line int    `json:"line"`
	Text string `json:"text"`
}

// A search is one call and, in its exported fields, the answer to it.
type search struct {
	Matches  []match `json:"matches"`
	Searched int     `json:"filesSearched"`
	Skipped  int     `json:"filesSkipped"` // not text, too large, or not readable
	Note     string  `json:"note,omitempty"`

	re *regexp.Regexp
	ws *sandbox.Workspace
}

// Run searches files.
func (searchFiles) Run(ctx context.Context, host Host, input json.RawMessage) (json.RawMessage, error) {
	a := parse(input)
	pattern, path := a.text("pattern", true, maxPattern), a.folder()
	if err := a.err(); err != nil {
		return nil, err
	}
	re, err := compile(pattern)
	if err != nil {
		return nil, err
	}
	s := search{Matches: []match{}, re: re, ws: host.Workspace()}
	err = s.ws.Walk(path, func(e sandbox.Entry) error {
		if ctx.Err() != nil || !e.Mode.IsRegular() {
			return ctx.Err()
		}
		return s.file(ctx, e)
	})
	if errors.Is(err, errEnough) {
		s.Note = fmt.Sprintf("stopped at %d matches; there may be more, so narrow the pattern or the path", maxMatches)
		err = nil
	}
	if err != nil {
		return nil, told(err)
	}
	return result(s)
}

// compile makes a matcher of a pattern. Repetition can make a short pattern a huge
// program, which would take minutes for a long line.
func compile(pattern string) (*regexp.Regexp, error) {
	if pattern == "" {
		return nil, Errorf("pattern must not be empty")
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		return nil, Errorf("pattern: %v", err)
	}
	tree, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil, Errorf("pattern: %v", err)
	}
	program, err := syntax.Compile(tree.Simplify())
	if err != nil || len(program.Inst) > maxProgram {
		return nil, Errorf("pattern is too large, by its repetitions or classes; use a simpler one")
	}
	return re, nil
}

// errEnough ends a search that has all the matches it may give.
var errEnough = errors.New("enough matches")

// file searches one file.
func (s *search) file(ctx context.Context, e sandbox.Entry) error {
	if e.Size > maxSearched {
		s.Skipped++
		return nil
	}
	t, err := openText(s.ws, e.Path)
	var refused *Error
	if errors.As(err, &refused) {
		s.Skipped++ // gone, or closed to us, since the folder was read
		return nil
	}
	if err != nil {
		return err
	}
	defer t.Close()
	if t.encoding == "" {
		s.Skipped++
		return nil
	}
	s.Searched++
	for n := 1; ; n++ {
		line, _, err := t.next(maxSearchLine)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("search %s: %w", e.Path, err)
		}
		if ctx.Err() != nil { // at every line: one can take a tenth of a second
			return ctx.Err()
		}
		if err := s.line(ctx, match{Path: e.Path, Line: n}, line); err != nil {
			return err
		}
	}
}

// line searches one line, found where m says.
func (s *search) line(ctx context.Context, m match, line string) error {
	line = strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")
	found := s.find(ctx, line)
	if found == nil {
		return ctx.Err()
	}
	if len(s.Matches) == maxMatches {
		return errEnough
	}
	m.Text = excerpt(line, found[0])
	s.Matches = append(s.Matches, m)
	return nil
}

// find is where the line matches, nil if nowhere. A long line is read rune by rune,
// so that the search ends with ctx.
func (s *search) find(ctx context.Context, line string) []int {
	if len(line) <= shortLine {
		return s.re.FindStringIndex(line)
	}
	found := s.re.FindReaderIndex(&runes{ctx: ctx, r: strings.NewReader(line)})
	if ctx.Err() != nil {
		return nil
	}
	return found
}

// runes are those of a string, which ends when ctx does.
type runes struct {
	ctx context.Context
	r   *strings.Reader
	n   int
}

// ReadRune reads a rune.
func (r *runes) ReadRune() (rune, int, error) {
	if r.n++; r.n%256 == 0 && r.ctx.Err() != nil {
		return 0, 0, io.EOF
	}
	return r.r.ReadRune()
}

// excerpt is the part of a line around what matches at byte at.
func excerpt(line string, at int) string {
	if len(line) <= maxExcerpt {
		return line
	}
	start := min(max(0, at-excerptContext), len(line)-maxExcerpt)
	for start > 0 && !utf8.RuneStart(line[start]) {
		start--
	}
	text := cut(line[start:], maxExcerpt)
	if start+len(text) < len(line) {
		text += "…"
	}
	if start > 0 {
		text = "…" + text
	}
	return text
}
