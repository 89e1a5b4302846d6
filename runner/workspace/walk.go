package workspace

import (
	"cmp"
	"errors"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// maxFolder is the maximum number of entries that are read in one folder. A command can create
// millions of files in a folder, which must not use up the memory.
const maxFolder = 100_000

// Walk calls visit for every entry below the folder at name, in the order of complete paths.
// Each folder comes right before its contents. For a file, it visits only that file. It does
// not follow links. visit may return fs.SkipDir for a folder, or fs.SkipAll. Walk stops at any
// other error and returns it.
//
// Walk skips files more than 64 folders deep. It visits at most 100,000 entries per folder.
func (w *Workspace) Walk(name string, visit func(Entry) error) error {
	start, err := w.Stat(name)
	if err != nil {
		return err
	}
	hide := func(e Entry) error {
		if isScratch(path.Base(e.Path)) {
			return nil
		}
		return visit(e)
	}
	if start.Mode.IsDir() {
		return w.walk(start.Path, hide)
	}
	if err := hide(start); !errors.Is(err, fs.SkipAll) && !errors.Is(err, fs.SkipDir) {
		return err
	}
	return nil
}

// List returns the entries of the folder at name: first the folders, then the files, each by
// name. It does not resolve links. It returns at most 100,000 entries.
func (w *Workspace) List(name string) ([]Entry, error) {
	p, err := SafePath(name)
	if err != nil {
		return nil, err
	}
	entries, err := w.readFolder(p)
	if err != nil {
		return nil, err
	}
	entries = slices.DeleteFunc(entries, func(e Entry) bool { return isScratch(path.Base(e.Path)) })
	slices.SortFunc(entries, func(a, b Entry) int {
		if a.Mode.IsDir() != b.Mode.IsDir() {
			if a.Mode.IsDir() {
				return -1
			}
			return 1
		}
		return cmp.Compare(a.Path, b.Path)
	})
	return entries, nil
}

// walk is like Walk for the folder at p, but also visits temporary files.
func (w *Workspace) walk(p string, visit func(Entry) error) error {
	entries, err := w.readFolder(p)
	if err != nil {
		return err
	}
	if err := w.visitAll(entries, visit); !errors.Is(err, fs.SkipAll) {
		return err
	}
	return nil
}

func (w *Workspace) visitAll(entries []Entry, visit func(Entry) error) error {
	slices.SortFunc(entries, func(a, b Entry) int { return cmp.Compare(sortKey(a), sortKey(b)) })
	for _, e := range entries {
		err := visit(e)
		if errors.Is(err, fs.SkipDir) && e.Mode.IsDir() {
			continue
		}
		if err == nil && e.Mode.IsDir() && strings.Count(e.Path, "/")+1 < maxDepth {
			err = w.visitFolder(e.Path, visit)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// visitFolder visits the contents of the folder at p. It skips a folder that was deleted or
// became unreadable after its parent was read.
func (w *Workspace) visitFolder(p string, visit func(Entry) error) error {
	entries, err := w.readFolder(p)
	if _, refused := errors.AsType[*Error](err); refused {
		return nil
	}
	if err != nil {
		return err
	}
	return w.visitAll(entries, visit)
}

// sortKey returns the key that sorts a folder among complete paths: "a/b" comes after "a.txt",
// although "a" comes before it.
func sortKey(e Entry) string {
	if e.Mode.IsDir() {
		return e.Path + "/"
	}
	return e.Path
}

// readFolder returns the entries of the folder at p, unsorted.
func (w *Workspace) readFolder(p string) ([]Entry, error) {
	f, err := w.open(p, wantFolder)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	found, err := f.ReadDir(maxFolder)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, explain(p, err)
	}
	entries := make([]Entry, 0, len(found))
	for _, d := range found {
		if info, err := d.Info(); err == nil { // otherwise it was just deleted
			entries = append(entries, entry(path.Join(p, d.Name()), info))
		}
	}
	return entries, nil
}
