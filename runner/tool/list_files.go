package tool

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strings"

	"journeyman/runner/workspace"
	"journeyman/store/visible"
)

// Limits of list_files.
const (
	maxListed     = 1000     // files per result
	maxListedSize = 64 << 10 // bytes per result
	maxGlob       = 500      // characters
)

type listFiles struct{}

// Spec describes list_files.
func (listFiles) Spec() Spec {
	return Spec{
		Name: "list_files",
		Description: `List the files of the workspace, or of a folder, with all below it, sorted: path, tab, size in
bytes. Up to 1000. Leaves out .git and what .gitignore names.`,
		InputSchema: objectSchema(`
    "path": {"type": "string", "description": "Folder; default all"},
    "glob": {"type": "string", "maxLength": 500, "description": "Only files like *.go or src/**/*.{ts,tsx}, below path"},
    "depth": {"type": "integer", "minimum": 1, "description": "Levels; default all, 1 for no subfolders"}`),
		Repeatable: true,
		Parallel:   true,
	}
}

// A fileList is one call of list_files.
type fileList struct {
	start string // folder or file to list
	depth int    // levels; 0 for all
	glob  pathGlob

	text         strings.Builder
	shown, total int // lines in text, and all lines of the list
}

// Run lists files.
func (listFiles) Run(ctx context.Context, host Host, input json.RawMessage) (json.RawMessage, error) {
	a := parse(input)
	list := fileList{start: a.folder(), depth: a.number("depth", 0, 1)}
	list.glob = a.glob()
	if err := a.err(); err != nil {
		return nil, err
	}
	left, err := walkFiles(ctx, host.Workspace(), list.start, list.visit)
	if err != nil {
		return nil, explain(err)
	}
	if list.total == 0 {
		list.text.WriteString("(no files)\n")
	}
	// The walk continues when the text is full, to count all files.
	if list.shown < list.total {
		fmt.Fprintf(&list.text, "[%d of %d; give a folder as path, or a glob, to see the others]\n",
			list.shown, list.total)
	}
	if left {
		list.text.WriteString("[" + ignoreNote + "]\n")
	}
	return result(list.text.String())
}

// visit adds an entry to the list if it matches.
func (l *fileList) visit(e workspace.Entry) error {
	below := relativeTo(l.start, e.Path)
	deepest := l.depth > 0 && strings.Count(below, "/")+1 >= l.depth
	switch {
	case e.Mode.IsDir() && !deepest:
		return nil // the paths of its files show the folder
	case e.Mode.IsDir():
		// The contents are too deep for the list, so list only the folder.
		if l.glob.matches(below) {
			l.add(visible.Name(e.Path) + "/")
		}
		return fs.SkipDir
	case !l.glob.matches(below):
	case e.Mode&fs.ModeSymlink != 0:
		l.add(visible.Name(e.Path) + "\tlink") // links are not followed
	case e.Mode.IsRegular(): // devices and pipes cannot be read
		l.add(fmt.Sprintf("%s\t%d", visible.Name(e.Path), e.Size))
	}
	return nil
}

// add adds a line to the list if there is room.
func (l *fileList) add(line string) {
	l.total++
	// After one line is omitted, all later ones are omitted: the list must have no gaps.
	if l.total-1 > l.shown || l.shown == maxListed || l.text.Len()+len(line) > maxListedSize {
		return
	}
	l.shown++
	l.text.WriteString(line + "\n")
}

// relativeTo returns the path p relative to the folder start. If p is start itself, which is a
// file, relativeTo returns its name.
func relativeTo(start, p string) string {
	if start = path.Clean(start); start == p {
		return path.Base(p)
	}
	return strings.TrimPrefix(p, start+"/")
}

// A pathGlob matches paths. The zero value matches every path.
type pathGlob struct {
	pattern *regexp.Regexp
	names   bool // pattern applies only to the last name of a path
}

// glob parses the argument glob. A pattern without a slash matches names at any depth, as in
// gitignore(5).
func (a *arguments) glob() (g pathGlob) {
	text := a.text("glob", false, maxGlob)
	if text == "" {
		return g
	}
	var err error
	// A slash at the beginning binds the pattern to the folder. Relative paths have no such
	// slash.
	if g.pattern, err = compileGlob(strings.TrimPrefix(text, "/"), true); err != nil {
		a.wrong("glob: %s", err)
	}
	g.names = !strings.Contains(text, "/")
	return g
}

// matches reports whether the glob matches a path below the folder of the call.
func (g pathGlob) matches(below string) bool {
	if g.names {
		below = path.Base(below)
	}
	return g.pattern == nil || g.pattern.MatchString(below)
}
