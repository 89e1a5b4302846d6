package workspace

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"
)

func open(t *testing.T, dir string, limits Limits) *Workspace {
	t.Helper()
	w, err := Open(dir, limits)
	is.New(t).NoErr(err)
	t.Cleanup(func() { w.Close() })
	return w
}

// kind returns the kind of an *Error, 0 for any other error or none.
func kind(err error) Kind {
	var e *Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return 0
}

func TestOpenWorkspace(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	dir := filepath.Join(t.TempDir(), "workspaces", "wrk_1")
	open(t, dir, Limits{})
	info, err := os.Stat(dir)
	is.NoErr(err)
	is.Equal(info.Mode().Perm(), fs.FileMode(0o700))
	open(t, dir, Limits{}) // a second Workspace for the same folder

	file := filepath.Join(t.TempDir(), "file")
	is.NoErr(os.WriteFile(file, nil, 0o600))
	_, err = Open(file, Limits{})
	is.True(err != nil)
}

func TestWriteAndRead(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	w := open(t, t.TempDir(), Limits{})
	is.NoErr(w.WriteFile("a/b/c.txt", []byte("hello")))
	for _, tt := range []struct {
		offset, limit int64
		want          string
	}{
		{0, 100, "hello"}, {0, 5, "hello"}, {1, 3, "ell"}, {4, 9, "o"}, {5, 9, ""}, {99, 9, ""}, {0, 0, ""}, {2, 1 << 62, "llo"},
	} {
		data, err := w.ReadFile("a/b/c.txt", tt.offset, tt.limit)
		is.NoErr(err)
		is.Equal(string(data), tt.want)
	}
	_, err := w.ReadFile("a/b/c.txt", -1, 1)
	is.Equal(kind(err), Invalid)
	_, err = w.ReadFile("a/b/c.txt", 0, -1)
	is.Equal(kind(err), Invalid)

	f, err := w.Open("a/b/c.txt")
	is.NoErr(err)
	is.NoErr(w.WriteFile("a/b/c.txt", []byte("new")))
	data, err := io.ReadAll(f)
	is.NoErr(err)
	is.NoErr(f.Close())
	is.Equal(string(data), "hello") // a reader never sees a mix of old and new
	_, err = f.Write([]byte("x"))
	is.True(err != nil)

	e, err := w.Stat("a/b/c.txt")
	is.NoErr(err)
	is.Equal(e.Path, "a/b/c.txt")
	is.Equal(e.Size, int64(3))
	e, err = w.Stat("a/b/")
	is.NoErr(err)
	is.True(e.Mode.IsDir())
	is.Equal(e.Size, int64(0))
	_, err = w.Stat("a/x")
	is.Equal(kind(err), NotFound)
}

func TestWriteKeepsPermissions(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	dir := t.TempDir()
	w := open(t, dir, Limits{})
	is.NoErr(os.WriteFile(filepath.Join(dir, "run.sh"), []byte("old"), 0o600))
	is.NoErr(os.Chmod(filepath.Join(dir, "run.sh"), 0o755|fs.ModeSetuid))
	is.NoErr(w.WriteFile("run.sh", []byte("new")))
	info, err := os.Stat(filepath.Join(dir, "run.sh"))
	is.NoErr(err)
	is.Equal(info.Mode(), fs.FileMode(0o755)) // still executable, without setuid
}

func TestWriteDoesNotReachHardLinks(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	dir := t.TempDir()
	w := open(t, filepath.Join(dir, "ws"), Limits{})
	outside := filepath.Join(dir, "outside")
	is.NoErr(os.WriteFile(outside, []byte("outside"), 0o644))
	is.NoErr(os.Link(outside, filepath.Join(dir, "ws", "inside")))
	is.NoErr(w.WriteFile("inside", []byte("changed")))
	data, err := os.ReadFile(outside)
	is.NoErr(err)
	is.Equal(string(data), "outside")
}

func TestEdit(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	w := open(t, t.TempDir(), Limits{FileSize: 10})
	is.NoErr(w.WriteFile("f", []byte("old")))
	is.NoErr(w.Edit("f", func(old []byte) ([]byte, error) { return append(old, "+new"...), nil }))
	data, err := w.ReadFile("f", 0, 100)
	is.NoErr(err)
	is.Equal(string(data), "old+new")

	no := errors.New("no")
	is.Equal(w.Edit("f", func([]byte) ([]byte, error) { return nil, no }), no)
	is.Equal(kind(w.Edit("f", func([]byte) ([]byte, error) { return make([]byte, 11), nil })), TooLarge)
	is.Equal(kind(w.Edit("g", func(old []byte) ([]byte, error) { return old, nil })), NotFound)
	is.Equal(kind(w.Edit("..", func(old []byte) ([]byte, error) { return old, nil })), Invalid)
	is.NoErr(os.WriteFile(filepath.Join(w.root.Name(), "big"), make([]byte, 11), 0o644))
	is.Equal(kind(w.Edit("big", func(old []byte) ([]byte, error) { return old[:1], nil })), TooLarge)
	data, err = w.ReadFile("f", 0, 100)
	is.NoErr(err)
	is.Equal(string(data), "old+new") // rejected edits change nothing
}

func TestEditsDoNotLoseOneAnother(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	w := open(t, t.TempDir(), Limits{})
	is.NoErr(w.WriteFile("f", nil))
	errs := make(chan error, 20)
	for range cap(errs) {
		go func() {
			errs <- w.Edit("f", func(old []byte) ([]byte, error) { return append(old, 'x'), nil })
		}()
	}
	for range cap(errs) {
		is.NoErr(<-errs)
	}
	e, err := w.Stat("f")
	is.NoErr(err)
	is.Equal(e.Size, int64(cap(errs)))
}

func TestRemove(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	dir := t.TempDir()
	w := open(t, dir, Limits{Files: 3})
	is.NoErr(w.WriteFile("d/f", []byte("x")))
	is.NoErr(os.Symlink("/", filepath.Join(dir, "link")))
	w.Changed()
	is.Equal(kind(w.WriteFile("g", nil)), TooManyFiles)
	is.Equal(kind(w.Remove("d")), Invalid)
	is.Equal(kind(w.Remove("../x")), Invalid)
	is.NoErr(w.Remove("link")) // removes the link, not its target
	is.NoErr(w.WriteFile("g", nil))
	is.NoErr(w.Remove("d/f"))
	is.NoErr(w.WriteFile("h", nil))
	is.Equal(kind(w.Remove("d/f")), NotFound)
}

func TestWalk(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	dir := t.TempDir()
	w := open(t, dir, Limits{})
	for _, p := range []string{"b.txt", "a/z", "a/b/c", "a.txt", "a-1", "A"} {
		is.NoErr(w.WriteFile(p, []byte(p)))
	}
	is.NoErr(os.Symlink("a", filepath.Join(dir, "link")))
	is.NoErr(os.WriteFile(filepath.Join(dir, "a", scratchPrefix+"1"+scratchSuffix), nil, 0o644))
	walk := func(p string) (paths []string) {
		is.NoErr(w.Walk(p, func(e Entry) error {
			paths = append(paths, e.Path)
			return nil
		}))
		return paths
	}
	is.Equal(walk("."), []string{"A", "a-1", "a.txt", "a", "a/b", "a/b/c", "a/z", "b.txt", "link"})
	is.Equal(walk("a"), []string{"a/b", "a/b/c", "a/z"})
	is.Equal(walk("link"), []string{"link/b", "link/b/c", "link/z"}) // a link in the call is followed
	is.Equal(walk("a/z"), []string{"a/z"})

	modes, sizes := map[string]bool{}, map[string]int64{}
	is.NoErr(w.Walk("a", func(e Entry) error {
		modes[e.Path], sizes[e.Path] = e.Mode.IsDir(), e.Size
		return nil
	}))
	is.True(modes["a/b"])
	is.Equal(sizes["a/z"], int64(len("a/z")))
	is.Equal(kind(w.Walk("..", nil)), Invalid)
	is.Equal(kind(w.Walk("nothing", nil)), NotFound)
}

func TestWalkEnds(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	w := open(t, t.TempDir(), Limits{})
	for _, p := range []string{"a/1", "a/2", "b/1", "c"} {
		is.NoErr(w.WriteFile(p, nil))
	}
	stop := Errorf(NotFound, "stop")
	for name, tt := range map[string]struct {
		at    string
		err   error
		paths string
		want  error
	}{
		"skip a folder":         {"a", fs.SkipDir, "a b b/1 c", nil},
		"skip all":              {"a/1", fs.SkipAll, "a a/1", nil},
		"an error, deep inside": {"a/1", stop, "a a/1", stop},
		"an error at the end":   {"c", stop, "a a/1 a/2 b b/1 c", stop},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			var paths []string
			err := w.Walk(".", func(e Entry) error {
				paths = append(paths, e.Path)
				if e.Path == tt.at {
					return tt.err
				}
				return nil
			})
			is.Equal(err, tt.want)
			is.Equal(strings.Join(paths, " "), tt.paths)
		})
	}
}

func TestWalkOfDeepFolders(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	dir := t.TempDir()
	w := open(t, dir, Limits{})
	is.NoErr(os.MkdirAll(filepath.Join(dir, strings.Repeat("d/", 200)), 0o755))
	deepest := 0
	is.NoErr(w.Walk(".", func(e Entry) error {
		deepest = strings.Count(e.Path, "/") + 1
		return nil
	}))
	is.Equal(deepest, maxDepth)
	is.NoErr(w.WriteFile("f", nil)) // and the content can be measured
}

func TestLimits(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	w := open(t, t.TempDir(), Limits{FileSize: 10, Files: 4, TotalSize: 25})
	is.NoErr(w.WriteFile("a", make([]byte, 9)))
	is.NoErr(w.WriteFile("a", make([]byte, 10)))
	is.Equal(kind(w.WriteFile("a", make([]byte, 11))), TooLarge)
	is.NoErr(w.WriteFile("b", make([]byte, 10)))
	is.Equal(kind(w.WriteFile("c", make([]byte, 6))), Full)
	is.NoErr(w.WriteFile("c", make([]byte, 5)))
	is.Equal(kind(w.WriteFile("c", make([]byte, 6))), Full) // growing counts, too
	is.NoErr(w.WriteFile("c", make([]byte, 4)))             // shrinking is always allowed
	is.NoErr(w.WriteFile("c", make([]byte, 5)))
	is.Equal(kind(w.WriteFile("e/f", nil)), TooManyFiles) // a folder and a file count as two
	is.NoErr(w.Remove("c"))
	is.NoErr(w.WriteFile("e/g", make([]byte, 5))) // the rejected call has created the folder
	is.Equal(kind(w.WriteFile("h", nil)), TooManyFiles)
	is.NoErr(w.WriteFile("a", nil)) // existing files may still change
}

func TestLimitsCountWhatIsThere(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	dir := t.TempDir()
	w := open(t, dir, Limits{Files: 3, TotalSize: 10})
	is.NoErr(os.MkdirAll(filepath.Join(dir, "d"), 0o755))
	is.NoErr(os.WriteFile(filepath.Join(dir, "d", "f"), make([]byte, 8), 0o644))
	is.Equal(kind(w.WriteFile("x", make([]byte, 3))), Full)
	is.NoErr(w.WriteFile("x", make([]byte, 2)))
	is.NoErr(os.Remove(filepath.Join(dir, "d", "f"))) // w does not notice this, as with a command
	is.Equal(kind(w.WriteFile("y", nil)), TooManyFiles)
	w.Changed()
	is.NoErr(w.WriteFile("y", make([]byte, 8)))

	for i := range 40 {
		is.NoErr(os.WriteFile(filepath.Join(dir, fmt.Sprint(i)), nil, 0o644))
	}
	w.Changed()
	is.Equal(kind(w.WriteFile("z", nil)), TooManyFiles)
	is.Equal(kind(w.WriteFile("0", []byte("x"))), Full) // far beyond the limit: no file may grow
	is.NoErr(w.WriteFile("y", []byte("x")))             // but a file may shrink
}

func TestScratchLeftBehind(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	dir := t.TempDir()
	w := open(t, dir, Limits{Files: 1})
	left, busy := scratchPrefix+"LEFT"+scratchSuffix, scratchPrefix+"BUSY"+scratchSuffix
	for _, name := range []string{left, busy} {
		is.NoErr(os.WriteFile(filepath.Join(dir, name), []byte("half"), 0o644))
	}
	old := time.Now().Add(-2 * staleAfter)
	is.NoErr(os.Chtimes(filepath.Join(dir, left), old, old))
	is.NoErr(w.WriteFile("f", nil)) // temporary files do not count
	_, err := os.Stat(filepath.Join(dir, left))
	is.True(errors.Is(err, fs.ErrNotExist)) // a temporary file of a crash is removed
	_, err = os.Stat(filepath.Join(dir, busy))
	is.NoErr(err) // a new temporary file is not removed
	seen := 0
	is.NoErr(w.Walk(".", func(Entry) error { seen++; return nil }))
	is.Equal(seen, 1)
}

func TestClosedWorkspace(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	w, err := Open(t.TempDir(), Limits{})
	is.NoErr(err)
	is.NoErr(w.Close())
	_, err = w.ReadFile("f", 0, 1)
	is.True(errors.Is(err, fs.ErrClosed))
	is.Equal(kind(err), Kind(0)) // an internal error, not for users
	is.True(w.WriteFile("d/f", nil) != nil)
	_, err = w.Place("f", strings.NewReader(""), 0)
	is.True(err != nil)
}

func TestMediaType(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ path, head, want string }{
		"extension":         {"a/report.PDF", "", "application/pdf"},
		"before contents":   {"page.txt", "<html>", "text/plain"},
		"contents":          {"page", "<!DOCTYPE html><p>", "text/html"},
		"no parameters":     {"notes", "plain words", "text/plain"},
		"unknown extension": {"x.qqq", "\x89PNG\r\n\x1a\n", "image/png"},
		"binary":            {"x", "\x00\x01\x02", "application/octet-stream"},
		"empty":             {"x", "", "text/plain"},
		"hidden":            {".json", "{}", "application/json"},
		"dot in a folder":   {"a.html/x", "words", "text/plain"},
		"vector image":      {"x.svg", "<svg/>", "image/svg+xml"},
		"sheet":             {"x.csv", "", "text/csv"},
	} {
		t.Run(name, func(t *testing.T) {
			is.New(t).Equal(MediaType(tt.path, []byte(tt.head)), tt.want)
		})
	}
	for ext, mediaType := range mediaTypes {
		is := is.New(t)
		is.Equal(ext, strings.ToLower(ext)) // otherwise it is never found
		is.True(!slices.Contains([]byte(mediaType), ';'))
	}
}

func BenchmarkOpenWorkspace(b *testing.B) {
	dir := b.TempDir()
	for b.Loop() {
		w, err := Open(dir, Limits{})
		is.New(b).NoErr(err)
		w.Close()
	}
}
