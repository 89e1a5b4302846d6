// Package sandbox keeps what workers do away from the machine that they share. A Workspace is a
// folder with limits that no path can leave, whoever wrote the path: a model, a mail or a
// client. A Shell runs commands that see this folder only, have no network and are killed at
// their time-out. A Dialer connects to hosts that strangers name, but not to the operator's own
// network. A FilterPool parses hostile documents in processes that can only compute.
//
// All dangerous code is in this one package, so that it can be reviewed in one place. So the
// package imports no other package of ours and knows nothing of turns, tools or HTTP. No other
// package may join a foreign path to a folder's name: it asks a Workspace. Callers show every
// Error as it stands, so an Error never names a file or folder outside the workspace.
package sandbox

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// A Workspace is a worker's folder. Paths are relative to it and separated by slashes, as
// SafePath describes. Symbolic links are followed while they stay inside. It is safe for
// concurrent use. Several Workspaces may use the same folder: each then counts the content of the
// folder for itself.
type Workspace struct {
	root   *os.Root
	limits Limits
	use    usage

	// writes is held from reading a file's old state until the new file is in its
	// place. Otherwise edits would overwrite each other and use would be wrong.
	writes sync.Mutex
}

// Limits bound the size of a workspace. A write beyond them is refused. Files that exceed them
// already stay readable. A zero field means its default.
type Limits struct {
	FileSize  int64 // most bytes in one file, 25 MiB by default
	Files     int   // most files and folders, 10,000 by default
	TotalSize int64 // most bytes in all files, 1 GiB by default
}

func (l Limits) withDefaults() Limits {
	return Limits{FileSize: cmp.Or(l.FileSize, 25<<20), Files: cmp.Or(l.Files, 10_000),
		TotalSize: cmp.Or(l.TotalSize, 1<<30)}
}

// usage is the size of a workspace. The first write counts it, later writes update it.
type usage struct {
	mu    sync.Mutex // guards the fields below
	known bool       // false until counted
	files int
	bytes int64
}

// An Entry is a file, a folder or anything else in a workspace.
type Entry struct {
	Path     string      // relative to the workspace, "." for the workspace itself
	Size     int64       // in bytes, 0 unless a regular file
	Mode     fs.FileMode // its type and permissions
	Modified time.Time

	room int64 // bytes that it takes of Limits.TotalSize
}

// The permissions that this service needs to work with a workspace.
const (
	neededOfFile   = 0o400
	neededOfFolder = 0o700
)

// OpenWorkspace opens the workspace in dir. It creates the folder, readable by this user only, if
// there is none. A command can take away its owner's permissions of the folder: they are
// restored. OpenWorkspace reads nothing in the folder, because the first write counts its
// content. The caller closes the Workspace.
func OpenWorkspace(dir string, limits Limits) (*Workspace, error) {
	if info, err := os.Lstat(dir); err == nil && info.IsDir() && info.Mode()&neededOfFolder != neededOfFolder {
		if err := os.Chmod(dir, info.Mode()|neededOfFolder); err != nil {
			return nil, fmt.Errorf("open workspace: %w", err)
		}
	}
	root, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		root, err = makeRoot(dir)
	}
	if err != nil {
		return nil, fmt.Errorf("open workspace: %w", err)
	}
	return &Workspace{root: root, limits: limits.withDefaults()}, nil
}

// makeRoot creates the folder so that it survives a power cut. The fsync of a file
// does not save the names of the folders above it, so each new name is synced.
func makeRoot(dir string) (*os.Root, error) {
	existing := filepath.Dir(dir)
	for existing != filepath.Dir(existing) {
		if _, err := os.Stat(existing); err == nil {
			break
		}
		existing = filepath.Dir(existing)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	// From the parent of the new folder up to the first folder that existed before.
	for parent := filepath.Dir(dir); ; parent = filepath.Dir(parent) {
		if err := syncPath(parent); err != nil {
			return nil, err
		}
		if len(parent) <= len(existing) {
			return os.OpenRoot(dir)
		}
	}
}

func syncPath(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	return syncFolder(f)
}

// syncFolder makes the names in an open folder survive a power cut. Windows has no
// way to ask for that.
func syncFolder(f *os.File) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	err := f.Sync()
	if errors.Is(err, syscall.EINVAL) {
		return nil // network file systems that sync by themselves refuse the call
	}
	return err
}

// Close releases the folder. Files opened from w stay readable.
func (w *Workspace) Close() error { return w.root.Close() }

// Stat describes the file or folder at name. It follows symbolic links.
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
	// Checked before opening too: opening a device can have effects.
	if err := wantFile(p, info.Mode()); err != nil {
		return nil, err
	}
	return w.open(p, wantFile)
}

// open opens the entry at p for reading if want accepts it. A command may replace a file by a
// pipe at any time. Therefore open never blocks, and checks the opened file.
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

// ReadFile reads at most limit bytes of the file at name, starting at offset. It
// returns no bytes if offset is beyond the end of the file.
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

// wantFile returns an error for anything but a regular file.
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

// wantFolder returns an error for anything but a folder.
func wantFolder(p string, mode fs.FileMode) error {
	if mode.IsDir() {
		return nil
	}
	return errorf(Invalid, "%q is not a folder", p)
}

func entry(p string, info fs.FileInfo) Entry {
	e := Entry{Path: p, Mode: info.Mode(), Modified: info.ModTime()}
	if e.Mode.IsRegular() {
		e.Size, e.room = info.Size(), room(info)
	}
	return e
}

// preallocated is by how much an ordinary file may be larger on the disk than its
// size: file systems round up, and some reserve room for a growing file.
const preallocated = 64 << 10

// room returns how many bytes a regular file counts as: its size, or its blocks on the
// disk if they are clearly more. Without that, blocks that a command allocates beyond
// a file's end would fill the disk uncounted.
func room(info fs.FileInfo) int64 {
	if taken := blocksOf(info); taken > info.Size()+preallocated {
		return taken
	}
	return info.Size()
}
