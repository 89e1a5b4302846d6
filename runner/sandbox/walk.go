package sandbox

import (
	"cmp"
	"errors"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// maxFolder is how many entries of one folder are looked at, so that a folder
// filled by a runaway command cannot take all memory.
const maxFolder = 100_000

// List gives what is directly in the folder at name, sorted by name.
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
	slices.SortFunc(entries, func(a, b Entry) int { return cmp.Compare(a.Path, b.Path) })
	return entries, nil
}

// Walk calls visit for everything below the folder at name, in the order of whole
// paths, a folder right before what is in it. A file at name is visited alone.
// Links are visited and not followed. visit may return fs.SkipDir for a folder, or
// fs.SkipAll; any other error ends the walk and is returned.
//
// Beyond 64 folders deep, or 100,000 entries in a folder, nothing is seen.
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

// walk is Walk of the folder at p, with files in the making.
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

// visitFolder visits what is in the folder at p. One that is gone, or closed to
// us, since its parent was read is passed over.
func (w *Workspace) visitFolder(p string, visit func(Entry) error) error {
	entries, err := w.readFolder(p)
	var refused *Error
	if errors.As(err, &refused) {
		return nil
	}
	if err != nil {
		return err
	}
	return w.visitAll(entries, visit)
}

// sortKey makes a folder stand where its files stand among all paths: "a/b" comes
// after "a.txt", though "a" comes before.
func sortKey(e Entry) string {
	if e.Mode.IsDir() {
		return e.Path + "/"
	}
	return e.Path
}

// readFolder gives what is in the folder at p, in no order.
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
		if info, err := d.Info(); err == nil { // else it has just gone
			entries = append(entries, entry(path.Join(p, d.Name()), info))
		}
	}
	return entries, nil
}
