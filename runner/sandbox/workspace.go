// Package sandbox confines what workers do to the machine they share. A Workspace
// is a folder that no path given by a model, a mail or a client can leave, with
// limits on what may pile up in it. A Shell runs commands that have that folder
// and no other, no network, and an end. A Dialer connects to hosts that others
// have named, and not to those of one's own network.
//
// This is the room where danger is reviewed, so it imports nothing of ours and
// knows nothing of turns, tools or HTTP. No other package may join a path it was
// given to a folder's name: it asks a Workspace. Names of the machine's own files
// and folders stay out of every Error here, which callers show as they stand.
package sandbox

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// A Workspace is a worker's folder. Paths are relative to it and separated by
// slashes, as SafePath describes; symbolic links are followed while they stay
// inside. It is safe for concurrent use, also by several Workspaces on the same
// folder, whose limits are then each its own count.
type Workspace struct {
	root   *os.Root
	limits Limits
	use    usage

	// writes is held from looking at what a file was to putting the new one in
	// its place, so that edits don't lose one another and usage stays right.
	writes sync.Mutex
}

// An Entry is a file, a folder or anything else in a workspace.
type Entry struct {
	Path     string      // relative to the workspace, "." for the workspace itself
	Size     int64       // in bytes, 0 unless a regular file
	Mode     fs.FileMode // its type and permissions
	Modified time.Time
}

// OpenWorkspace opens the workspace in dir and makes the folder, readable by this
// user alone, where there is none. It reads nothing in it: what is there is
// counted at the first write. The caller closes the Workspace.
func OpenWorkspace(dir string, limits Limits) (*Workspace, error) {
	root, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		root, err = makeRoot(dir)
	}
	if err != nil {
		return nil, fmt.Errorf("open workspace: %w", err)
	}
	return &Workspace{root: root, limits: limits.withDefaults()}, nil
}

// makeRoot makes the folder so that it outlives a power cut: a file's own fsync
// does not save the name of the folder it is in.
func makeRoot(dir string) (*os.Root, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	parent, err := os.Open(filepath.Dir(dir))
	if err != nil {
		return nil, err
	}
	defer parent.Close()
	if err := syncFolder(parent); err != nil {
		return nil, err
	}
	return os.OpenRoot(dir)
}

// Close ends the use of w. Files opened from it stay readable.
func (w *Workspace) Close() error { return w.root.Close() }

// Stat describes what is at name, at the end of any links.
func (w *Workspace) Stat(name string) (Entry, error) {
	p, err := SafePath(name)
	if err != nil {
		return Entry{}, err
	}
	info, err := w.root.Stat(p)
	if err != nil {
		return Entry{}, explain(p, err)
	}
	return entry(p, info), nil
}

// Open opens the regular file at name for reading. The caller closes it.
func (w *Workspace) Open(name string) (*os.File, error) {
	p, err := filePath(name)
	if err != nil {
		return nil, err
	}
	info, err := w.root.Stat(p)
	if err != nil {
		return nil, explain(p, err)
	}
	if err := wantFile(p, info.Mode()); err != nil {
		return nil, err // before opening: opening a device can have effects
	}
	return w.open(p, wantFile)
}

// open opens what is at p for reading if want accepts it. It never waits, even
// if a pipe was put there since it was looked at, and looks again at what it got.
func (w *Workspace) open(p string, want func(string, fs.FileMode) error) (*os.File, error) {
	f, err := w.root.OpenFile(p, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, explain(p, err)
	}
	info, err := f.Stat()
	if err == nil {
		err = want(p, info.Mode())
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// ReadFile reads at most limit bytes of the file at name, from offset on. Past the
// end of the file it gives none.
func (w *Workspace) ReadFile(name string, offset, limit int64) ([]byte, error) {
	if offset < 0 || limit < 0 {
		return nil, errorf(Invalid, "an offset and a limit cannot be negative")
	}
	f, err := w.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.NewSectionReader(f, offset, limit))
	if err != nil {
		return nil, explain(name, err)
	}
	return data, nil
}

// wantFile refuses what is not a regular file.
func wantFile(p string, mode fs.FileMode) error {
	switch {
	case mode.IsRegular():
		return nil
	case mode.IsDir():
		return errorf(Invalid, "%q is a folder, not a file", p)
	case mode&fs.ModeSymlink != 0:
		return errorf(Invalid, "%q is a symbolic link, not a file", p)
	}
	return errorf(Invalid, "%q is a device, pipe or socket, not a file", p)
}

// wantFolder refuses what is not a folder.
func wantFolder(p string, mode fs.FileMode) error {
	if mode.IsDir() {
		return nil
	}
	return errorf(Invalid, "%q is not a folder", p)
}

func entry(p string, info fs.FileInfo) Entry {
	e := Entry{Path: p, Mode: info.Mode(), Modified: info.ModTime()}
	if e.Mode.IsRegular() {
		e.Size = info.Size()
	}
	return e
}
