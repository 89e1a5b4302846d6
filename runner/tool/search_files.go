package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"regexp/syntax"
	"strconv"
	"strings"
	"unicode/utf8"

	"journeyman/runner/workspace"
	"journeyman/store/visible"
)

// Limits of search_files.
const (
	maxPattern     = 1000     // characters in a pattern
	maxProgram     = 2000     // instructions in the program that a pattern compiles to
	maxMatches     = 200      // matches per result
	maxExcerpt     = 300      // bytes of a line in the result
	maxContext     = 10       // lines before and after a match
	maxFound       = 64 << 10 // bytes per result
	maxSearchLine  = 1 << 20  // bytes of a line that are searched; fewer with a large pattern
	maxSteps       = 64 << 20 // product of a program's instructions and the bytes of a line
	shortLine      = 4 << 10  // bytes of a line that any pattern can search quickly
	excerptContext = 100      // bytes before a match in a long line that are shown
)

type searchFiles struct{ docs Documents }

// Spec describes search_files.
func (searchFiles) Spec() Spec {
	return Spec{
		Name: "search_files",
		Description: `Search text files, documents and archives for lines that match a regular expression (RE2: no
look-around or back-references; (?i) ignores case). Gives each file's path, the page or sheet, then "line number:text" of
up to 200 matches. Leaves out .git and what .gitignore names.`,
		InputSchema: objectSchema(`
    "pattern": {"type": "string", "minLength": 1, "maxLength": 1000, "description": "Matched against one line at a time"},
    "path": {"type": "string", "description": "Folder or file; default the whole workspace"},
    "glob": {"type": "string", "maxLength": 500, "description": "Only files like *.go or src/**/*.{ts,tsx}, below path"},
    "context": {"type": "integer", "minimum": 0, "maximum": 10,
      "description": "Lines to show around each match, as \"number-text\"; default 0"}`,
			"pattern"),
		Repeatable: true,
		Parallel:   true,
	}
}

// A search holds the arguments and the state of one call of search_files.
type search struct {
	re      *regexp.Regexp
	line    int // bytes of a line that are searched
	ws      *workspace.Workspace
	docs    Documents
	start   string
	glob    pathGlob
	context int

	text    strings.Builder
	matches int
	files   int // files with matches
	read    int // files that were searched
	skipped int // files that are binary, too large or unreadable
	long    int // lines of which only the beginning was searched
	budget  documentBudget
}

// Run searches files.
func (t searchFiles) Run(ctx context.Context, host Host, input json.RawMessage) (json.RawMessage, error) {
	a := parse(input)
	pattern := a.text("pattern", true, maxPattern)
	s := search{ws: host.Workspace(), docs: t.docs, start: a.folder(), glob: a.glob(), context: a.number("context", 0, 0)}
	if s.context > maxContext {
		a.wrong("context must be at most %d", maxContext)
	}
	if err := a.err(); err != nil {
		return nil, err
	}
	var err error
	if s.re, s.line, err = compile(pattern); err != nil {
		return nil, err
	}
	left, err := s.walk(ctx)
	// A full result is a success, with a note that more matches may exist.
	more := errors.Is(err, errEnough)
	if err != nil && !more {
		return nil, explain(err)
	}
	return result(s.text.String() + s.notes(more, left))
}

// walk searches all files below the start, or in the container that the start names. left reports whether files
// were left out by rules.
func (s *search) walk(ctx context.Context) (left bool, err error) {
	if _, err := s.ws.Stat(s.start); err != nil {
		if container, member, ok := splitMember(s.ws, s.start); ok {
			return false, s.within(ctx, container, member)
		}
	}
	return walkFiles(ctx, s.ws, s.start, func(e workspace.Entry) error {
		if !e.Mode.IsRegular() || !s.glob.matches(relativeTo(s.start, e.Path)) {
			return nil
		}
		return s.file(ctx, e)
	})
}

// notes returns additional information for the model, one item per line.
func (s *search) notes(more, left bool) string {
	what := "text files"
	if s.budget.searched > 0 {
		what = "text files and documents"
	}
	notes := fmt.Sprintf("[%d matches in %d of %d %s]\n", s.matches, s.files, s.read, what)
	if s.skipped > 0 {
		notes += fmt.Sprintf("[%d files are not text, or too large, and were not searched]\n", s.skipped)
	}
	notes += s.budget.notes()
	if s.long > 0 {
		notes += fmt.Sprintf("[%d lines are longer than %d bytes, and with this pattern only their beginnings were "+
			"searched: a simpler pattern reads more]\n", s.long, s.line)
	}
	if more {
		notes += "[there may be more matches: narrow the pattern, the path or the glob]\n"
	}
	if left {
		notes += "[" + ignoreNote + "]\n"
	}
	return notes
}

// compile compiles a pattern. It rejects a pattern that compiles to a very large program, such
// as one with nested repetitions: searching a long line with it would take minutes. line is how many bytes
// of a line are searched with the pattern.
func compile(pattern string) (re *regexp.Regexp, line int, err error) {
	if pattern == "" {
		return nil, 0, Errorf("pattern must not be empty")
	}
	tree, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil, 0, Errorf("pattern: %v", err)
	}
	// The time of a search is proportional to the program's size times the length of the text.
	program, err := syntax.Compile(tree.Simplify())
	if err != nil || len(program.Inst) > maxProgram {
		return nil, 0, Errorf("pattern is too large, by its repetitions or classes; use a simpler one")
	}
	re, err = regexp.Compile(pattern)
	return re, min(maxSearchLine, maxSteps/len(program.Inst)), err
}

// errEnough ends a search when the result is full.
var errEnough = errors.New("enough matches")

// file searches one file.
func (s *search) file(ctx context.Context, e workspace.Entry) error {
	if e.Size > s.ws.FileSize() {
		s.skipped++
		return nil
	}
	t, err := openText(ctx, s.docs, s.ws, e.Path, "")
	if _, refused := errors.AsType[*Error](err); refused {
		s.skipped++ // the file was deleted or became unreadable after Walk read the folder
		return nil
	}
	if err != nil {
		return err
	}
	defer t.Close()
	if !t.kind.isText() {
		return s.document(ctx, t.content, "")
	}
	if t.encoding == "" {
		s.skipped++
		return nil
	}
	s.read++
	f := &searchedFile{search: s, path: e.Path}
	if err := f.lines(ctx, t); err != nil || t.kind.filter == "" || f.shown > 0 {
		return err
	}
	// The source of a page or a mail shows some words in another form than a person sees.
	return s.textOf(ctx, t.content)
}

// lines searches all lines of a file.
func (f *searchedFile) lines(ctx context.Context, t *textFile) error {
	for f.line = 1; ; f.line++ {
		line, length, err := t.next(f.search.line)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("search %q: %w", f.path, err)
		}
		// Check at every line, because searching one line can take a tenth of a second.
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if length > f.search.line {
			f.long++
		}
		// The line end is removed, so that "$" matches before CRLF, too.
		line = strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")
		mark := f.document && placePattern.MatchString(line)
		if mark {
			f.place, f.before, f.after = line, nil, 0
		}
		if err := f.next(ctx, line); err != nil {
			return err
		}
		if mark {
			f.before = nil // the place is shown anyway
		}
	}
}

// A searchedFile is the state of searching one file.
type searchedFile struct {
	*search
	path   string
	line   int      // number of the current line
	before []string // the last lines that were not added, at most context of them
	after  int      // how many of the next lines to add, as context of the last match
	shown  int      // number of the last line that was added

	document bool   // whether the text has lines that mark a place
	place    string // the page or sheet of the current line, until it is shown; "" for none
}

// next searches the current line. It adds the line if it matches or is the context of a match.
func (f *searchedFile) next(ctx context.Context, line string) error {
	found := f.find(ctx, line)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case found != nil:
		return f.match(line, found[0])
	case f.after > 0:
		f.after--
		f.show(f.line, "-", excerpt(line, 0))
	// The line may be the context of a later match.
	case f.context > 0:
		if len(f.before) == f.context {
			f.before = f.before[1:]
		}
		f.before = append(f.before, excerpt(line, 0))
	}
	return nil
}

// match adds the context lines before a match, and then the matching line. at is the index of
// the match.
func (f *searchedFile) match(line string, at int) error {
	// Check only at a further match: a result that is exactly full is complete. The sum
	// reserves room for this match with its context.
	if f.matches == maxMatches || f.text.Len() > maxFound-(2*maxContext+1)*2*maxExcerpt {
		return errEnough
	}
	f.matches++
	if f.shown == 0 {
		f.files++
		f.text.WriteString(visible.Name(f.path) + "\n")
	}
	first := f.line - len(f.before)
	if f.shown > 0 && f.context > 0 && f.shown+1 < first {
		f.text.WriteString("--\n") // grep also writes this line between groups
	}
	if f.place != "" && f.place != line { // a mark that matches is shown as a line
		f.text.WriteString(f.place + "\n")
	}
	f.place = ""
	for i, text := range f.before {
		f.show(first+i, "-", text)
	}
	f.before, f.after = f.before[:0], f.context
	f.show(f.line, ":", excerpt(line, at))
	return nil
}

func (f *searchedFile) show(number int, mark, text string) {
	f.text.WriteString(strconv.Itoa(number) + mark + text + "\n")
	f.shown = number
}

// find returns the position of a match in the line, nil if there is none. It searches a long
// line through runes, which is slower, but ends when ctx ends.
func (s *search) find(ctx context.Context, line string) []int {
	if len(line) <= shortLine {
		return s.re.FindStringIndex(line)
	}
	found := s.re.FindReaderIndex(&runes{ctx: ctx, r: strings.NewReader(line)})
	// runes has cut the line, so "$" could have matched in its middle.
	if ctx.Err() != nil {
		return nil
	}
	return found
}

// runes reads the characters of a string until ctx ends. It is an io.RuneReader.
type runes struct {
	ctx context.Context
	r   *strings.Reader
	n   int // calls of ReadRune: each 256th call checks ctx
}

// ReadRune returns the next character, and io.EOF when ctx has ended.
func (r *runes) ReadRune() (rune, int, error) {
	if r.n++; r.n%256 == 0 && r.ctx.Err() != nil {
		return 0, 0, io.EOF
	}
	return r.r.ReadRune()
}

// excerpt returns the part of a line around the match at byte at.
func excerpt(line string, at int) string {
	if len(line) <= maxExcerpt {
		return line
	}
	// The excerpt begins shortly before the match, so that it contains the match.
	start := min(max(0, at-excerptContext), len(line)-maxExcerpt)
	for start > 0 && !utf8.RuneStart(line[start]) {
		start--
	}
	text := workspace.Cut(line[start:], maxExcerpt)
	if start+len(text) < len(line) {
		text += "…"
	}
	if start > 0 {
		text = "…" + text
	}
	return text
}
