package tool

import (
	"context"
	"io"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"journeyman/runner/workspace"
)

// Limits of .gitignore files. A file that exceeds them has no effect.
const (
	maxIgnoreFile  = 64 << 10 // bytes
	maxIgnoreRules = 1000     // rules per file
	ignoreFile     = ".gitignore"

	// maxIgnoreWork limits the comparisons of one walk: the sum of the bytes of a pattern times the bytes of a
	// path. They take up to two seconds. Beyond it, only patterns without special characters apply.
	maxIgnoreWork = 128 << 20
)

// An ignorer determines which entries of one walk the .gitignore files of a workspace exclude.
type ignorer struct {
	ws      *workspace.Workspace
	folders []ignoreRules // rules of the folders above the current entry, outermost first
	off     bool          // the path of the call is ignored itself, so the walk shows everything
	omitted bool          // the walk has omitted an entry
	work    int           // comparisons so far
}

// ignoreRules are the rules of one .gitignore file.
type ignoreRules struct {
	folder string // folder of the file; "." for the workspace
	rules  []ignoreRule
}

// An ignoreRule is a line of a .gitignore file.
type ignoreRule struct {
	plain      string         // a pattern without special characters; matches only itself
	anyStart   bool           // plain follows a star, as in *.log; matches names that end with it
	pattern    *regexp.Regexp // nil for a plain pattern
	size       int            // bytes of pattern
	wholePath  bool           // the pattern applies to the path below the folder; otherwise only to the name
	foldersToo bool           // the pattern applies to files and folders; otherwise only to folders
	negated    bool           // the rule includes matching entries again
}

// newIgnorer returns the ignorer of a walk that begins at the path start.
func newIgnorer(ws *workspace.Workspace, start string) *ignorer {
	g := &ignorer{ws: ws}
	for at := range parents(start) {
		// The call contains start, so start must be shown even if it is ignored.
		g.off = g.off || at != "." && (path.Base(at) == ".git" || g.ignored(workspace.Entry{Path: at, Mode: fs.ModeDir}))
		g.enter(at)
	}
	return g
}

// parents yields the folders above a path, the outermost first, and then the path itself.
func parents(p string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		if !yield(".") || p == "." {
			return
		}
		for i, c := range p + "/" {
			if c == '/' && !yield(p[:i]) {
				return
			}
		}
	}
}

// skip reports whether the walk omits an entry. It must be called in the order of the walk.
func (g *ignorer) skip(e workspace.Entry) bool {
	within := func(r ignoreRules) bool { return r.folder == "." || strings.HasPrefix(e.Path, r.folder+"/") }
	// The walk has left these folders, so their rules no longer apply.
	for len(g.folders) > 0 && !within(g.folders[len(g.folders)-1]) {
		g.folders = g.folders[:len(g.folders)-1]
	}
	if !g.off && (path.Base(e.Path) == ".git" || g.ignored(e)) {
		g.omitted = true
		return true
	}
	if e.Mode.IsDir() {
		g.enter(e.Path)
	}
	return false
}

// ignored reports whether the last matching rule ignores an entry. Rules of inner folders come
// after those of outer folders (gitignore(5)).
func (g *ignorer) ignored(e workspace.Entry) bool {
	for _, f := range slices.Backward(g.folders) {
		below := strings.TrimPrefix(e.Path, f.folder+"/")
		name := path.Base(below)
		for _, r := range slices.Backward(f.rules) {
			subject := below
			if !r.wholePath {
				subject = name
			}
			if !e.Mode.IsDir() && !r.foldersToo || r.pattern != nil && !g.affords(r.size*len(subject)) {
				continue
			}
			if r.matches(subject) {
				return !r.negated
			}
		}
	}
	return false
}

// affords adds a comparison to the work of the walk. It reports false if that is too much.
func (g *ignorer) affords(work int) bool {
	if g.work+work > maxIgnoreWork {
		return false
	}
	g.work += work
	return true
}

// matches reports whether the pattern matches a name or path.
func (r ignoreRule) matches(subject string) bool {
	switch {
	case r.pattern != nil:
		return r.pattern.MatchString(subject)
	case r.anyStart:
		return strings.HasSuffix(subject, r.plain)
	}
	return subject == r.plain
}

// enter adds the rules of a folder, if it has any.
func (g *ignorer) enter(folder string) {
	f, err := g.ws.Open(path.Join(folder, ignoreFile))
	if err != nil {
		return // without a readable .gitignore, no entry is ignored
	}
	defer f.Close()
	// Read one byte more than the limit, to detect a file that is too long.
	text, err := io.ReadAll(io.LimitReader(f, maxIgnoreFile+1))
	if err != nil || len(text) > maxIgnoreFile {
		return
	}
	if rules := parseIgnore(string(text)); len(rules) > 0 {
		g.folders = append(g.folders, ignoreRules{folder, rules})
	}
}

// parseIgnore returns the rules in a .gitignore file, in the syntax of gitignore(5). It returns none if there
// are too many: each entry is compared with every rule, so they would make a walk slow.
func parseIgnore(text string) (rules []ignoreRule) {
	for line := range strings.Lines(strings.TrimPrefix(text, utf8Mark)) {
		line = trimSpaces(strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r"))
		if strings.HasPrefix(line, "#") {
			continue
		}
		r := ignoreRule{foldersToo: true}
		line, r.negated = strings.CutPrefix(line, "!")
		// gitignore(5): a slash at the end makes the pattern match folders only.
		if bare, ok := strings.CutSuffix(line, "/"); ok {
			line, r.foldersToo = bare, false
		}
		// A slash at the beginning or in the middle binds the pattern to its folder.
		r.wholePath = strings.Contains(line, "/")
		line = strings.TrimPrefix(line, "/")
		if line == "" {
			continue
		}
		r.plain, r.anyStart = strings.CutPrefix(line, "*")
		if r.anyStart && r.wholePath || strings.ContainsAny(r.plain, `*?[\`) || !utf8.ValidString(line) {
			// Like git, ignore an invalid pattern and keep the others.
			var err error
			if r.pattern, err = compileGlob(line, false); err != nil {
				continue
			}
			r.size = len(line)
		}
		if rules = append(rules, r); len(rules) > maxIgnoreRules {
			return nil
		}
	}
	return rules
}

// trimSpaces removes the spaces at the end of a line. It keeps a space after a backslash.
func trimSpaces(line string) string {
	bare := strings.TrimRight(line, " ")
	// An even number of backslashes escape each other, and not the space.
	slashes := len(bare) - len(strings.TrimRight(bare, `\`))
	if slashes%2 == 1 && len(bare) < len(line) {
		return bare + " "
	}
	return bare
}

// walkFiles calls visit for the entries below a path, except .git and ignored entries. left
// reports whether it has omitted any. visit returns errors as for Workspace.Walk.
func walkFiles(ctx context.Context, ws *workspace.Workspace, start string, visit func(workspace.Entry) error) (
	left bool, err error) {
	clean, err := workspace.SafePath(start)
	if err != nil {
		return false, err
	}
	g := newIgnorer(ws, clean)
	err = ws.Walk(clean, func(e workspace.Entry) error {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case e.Path == clean || !g.skip(e):
			return visit(e)
		case e.Mode.IsDir():
			// git cannot re-include a file below an ignored folder, so the walk need not enter it.
			return fs.SkipDir
		}
		return nil
	})
	return g.omitted, err
}

// ignoreNote tells the model which entries walkFiles omits.
const ignoreNote = "left out: .git and what .gitignore names; give one as path to see it"
