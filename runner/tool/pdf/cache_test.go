package pdf

import (
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/matryer/is"
	"github.com/tetratelabs/wazero"
)

// newEntry returns a new folder with an entry of this version, whose code is none.
func newEntry(t *testing.T) (folder, entry string) {
	t.Helper()
	is := is.New(t)
	folder = filepath.Join(t.TempDir(), "cache")
	entry = filepath.Join(folder, entryName())
	is.NoErr(os.MkdirAll(filepath.Join(entry, "wazero"), 0o700))
	is.NoErr(os.WriteFile(filepath.Join(entry, "wazero", "code"), []byte("no code at all"), 0o600))
	sum, err := sumOf(entry)
	is.NoErr(err)
	is.NoErr(os.WriteFile(filepath.Join(entry, sumFile), []byte(sum), 0o600))
	_, err = openCache(folder)
	is.NoErr(err)
	return folder, entry
}

// codeFile returns the path of the code in an entry.
func codeFile(t *testing.T, entry string) (path string) {
	t.Helper()
	is.New(t).NoErr(filepath.WalkDir(entry, func(p string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && d.Name() != sumFile {
			path = p
		}
		return err
	}))
	return path
}

// TestForeignCache checks that code is only executed if nobody else could have written it and if it is complete.
func TestForeignCache(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(folder, entry, code string) error{
		"open folder":    func(folder, _, _ string) error { return os.Chmod(folder, 0o777) },
		"open entry":     func(_, entry, _ string) error { return os.Chmod(entry, 0o770) },
		"open code":      func(_, _, code string) error { return os.Chmod(code, 0o622) },
		"truncated":      func(_, _, code string) error { return os.Truncate(code, 5) },
		"empty":          func(_, _, code string) error { return os.Truncate(code, 0) },
		"no code":        func(_, _, code string) error { return os.Remove(code) },
		"no sum":         func(_, entry, _ string) error { return os.Remove(filepath.Join(entry, sumFile)) },
		"more code":      func(_, _, code string) error { return os.WriteFile(code+"0", nil, 0o600) },
		"one other byte": func(_, _, code string) error { return flip(code, 5) },
		"linked code": func(folder, _, code string) error {
			return firstError(os.Rename(code, folder+"/x"), os.Symlink(folder+"/x", code))
		},
		"linked entry": func(folder, entry, _ string) error {
			return firstError(os.Rename(entry, folder+"/x"), os.Symlink(folder+"/x", entry))
		},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			folder, entry := newEntry(t)
			is.NoErr(change(folder, entry, codeFile(t, entry)))
			_, err := Open(folder)
			is.Equal(err, errCache)
		})
	}
}

func firstError(list ...error) error {
	for _, err := range list {
		if err != nil {
			return err
		}
	}
	return nil
}

// flip changes a byte of a file.
func flip(path string, at int64) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	b := make([]byte, 1)
	if _, err := f.ReadAt(b, at); err != nil {
		return err
	}
	b[0] ^= 0xff
	_, err = f.WriteAt(b, at)
	return err
}

// TestCacheIsSwept checks which other entries are removed: those of earlier versions, and of processes that were
// killed.
func TestCacheIsSwept(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	folder, _ := newEntry(t)
	for name, age := range map[string]time.Duration{
		entryPrefix + "old": unusedTime + time.Hour, entryPrefix + "other-node": time.Hour,
		draftPrefix + "killed": draftTime + time.Hour, draftPrefix + "running": time.Minute, "something else": 1000 * time.Hour,
	} {
		path := filepath.Join(folder, name)
		is.NoErr(os.Mkdir(path, 0o700))
		is.NoErr(os.WriteFile(filepath.Join(path, "code"), []byte("x"), 0o600))
		then := time.Now().Add(-age)
		is.NoErr(os.Chtimes(path, then, then))
	}
	_, err := openCache(folder)
	is.NoErr(err)
	var left []string
	entries, err := os.ReadDir(folder)
	is.NoErr(err)
	for _, e := range entries {
		if e.Name() != entryName() {
			left = append(left, e.Name())
		}
	}
	is.Equal(left, []string{draftPrefix + "running", entryPrefix + "other-node", "something else"})
}

// TestCompileTogether compiles in two places at once, in place of a damaged entry. Afterwards there is a complete one,
// and nothing else is left.
func TestCompileTogether(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	folder, entry := newEntry(t)
	is.NoErr(os.Truncate(codeFile(t, entry), 100))
	var all sync.WaitGroup
	errs := make([]error, 2)
	for i := range errs {
		all.Go(func() { errs[i] = Compile(folder) })
	}
	all.Wait()
	is.Equal(errs, make([]error, 2))
	r, err := Open(folder)
	is.NoErr(err)
	out, err := r.Text([]byte(pages("", line("Hello"))), "", func() bool { return false })
	is.NoErr(err)
	is.Equal(string(out), "Hello\n\n")
	entries, err := os.ReadDir(folder)
	is.NoErr(err)
	is.Equal(len(entries), 1)
}

// TestCompileWithoutRoom compiles into a folder that cannot be written.
func TestCompileWithoutRoom(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	file := filepath.Join(t.TempDir(), "file")
	is.NoErr(os.WriteFile(file, nil, 0o600))
	is.True(Compile(file) != nil)
	is.True(Compile(filepath.Join(file, "below")) != nil)
}

// TestCompilerRunsAlone loads PDFium as a process does that compiles it. PDFium's own memory, which counts as soon as
// it starts, would exceed the limit of that process now and then.
func TestCompilerRunsAlone(t *testing.T) {
	is := is.New(t)
	read(t, func(*Reader) {}) // compiles it for all tests
	dir, err := openCache(testCache)
	is.NoErr(err)
	cache, err := wazero.NewCompilationCacheWithDir(dir)
	is.NoErr(err)
	r, err := load(cache)
	is.NoErr(err)
	is.Equal(len(r.memory.bytes), 0)
}
