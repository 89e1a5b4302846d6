// Package workspace holds the folders of workers and tasks. A Workspace is a folder with limits, and no path leads
// out of it, even if a model, a mail or a client wrote the path. The package checks paths, reads, writes and removes
// files, counts what a folder holds, and repairs what commands leave behind.
//
// It imports no other package of this program, and it runs no command. No other package may join an untrusted path
// to a folder's path: it must use a Workspace. Callers show every Error unchanged, so an Error never contains a file
// or folder outside the workspace.
package workspace

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
// SafePath describes. It follows symbolic links that stay inside. It is safe for concurrent
// use. Several Workspaces may use the same folder. Each then counts the content separately.
type Workspace struct {
	root   *os.Root
	limits Limits
	use    usage

	// writes is held from reading a file's old state until the new file has replaced it.
	// Otherwise edits would overwrite each other and use would be wrong.
	writes sync.Mutex
}

// Limits limit the size of a workspace. A write beyond them is rejected. Files that already
// exceed them can still be read. A zero field means its default.
type Limits struct {
	FileSize  int64 // maximum bytes in one file, 25 MiB by default
	Files     int   // maximum number of files and folders, 10,000 by default
	TotalSize int64 // maximum bytes in all files, 1 GiB by default
	Quota     Quota // of several workspaces together; nil for none
}

// A Quota limits the bytes of several workspaces together. It is safe for concurrent use, and does not block.
type Quota interface {
	Left() int64        // the bytes that may still be added; negative if there are too many
	Take(n int64) error // adds n bytes, or none and returns an error for users if there is no room
	Add(n int64)        // adds n bytes in any case, or removes some if n is negative
}

// MaxTotalSize is the default of Limits.TotalSize.
const MaxTotalSize = 1 << 30

// FileSize returns the maximum number of bytes in one file of the workspace.
func (w *Workspace) FileSize() int64 { return w.limits.FileSize }

// WithDefaults returns the limits with defaults in place of zeros.
func (l Limits) WithDefaults() Limits {
	return Limits{FileSize: cmp.Or(l.FileSize, 25<<20), Files: cmp.Or(l.Files, 10_000),
		TotalSize: cmp.Or(l.TotalSize, MaxTotalSize), Quota: l.Quota}
}

// usage is the size of a workspace. The first write measures it, later writes update it.
type usage struct {
	mu    sync.Mutex // guards the fields below
	known bool       // false until measured
	files int
	bytes int64

	// While commands run, surveys count their bytes for the quota: see Workspace.count. Writes of this process have
	// counted already.
	surveyed bool
	counted  int64 // bytes of the workspace that the quota has
}

// An Entry is a file, a folder or another object in a workspace.
type Entry struct {
	Path     string      // relative to the workspace, "." for the workspace itself
	Size     int64       // in bytes, 0 unless a regular file
	Mode     fs.FileMode // its type and permissions
	Modified time.Time

	room int64 // bytes that it counts towards Limits.TotalSize
}

// The permissions that this service needs to work with a workspace.
const (
	neededOfFile   = 0o400
	neededOfFolder = 0o700
)

// Open opens the workspace in dir. If the folder does not exist, it creates one that
// only this user can read. It restores the owner's permissions of the folder, because a command
// can remove them. Open reads nothing in the folder, because the first write measures
// its content. The caller closes the Workspace.
func Open(dir string, limits Limits) (*Workspace, error) {
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
	return &Workspace{root: root, limits: limits.WithDefaults()}, nil
}

// makeRoot creates the folder so that it survives a power failure. An fsync of a file does not
// persist the names of its parent folders, so each new name is synced.
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

// syncFolder makes the names in an open folder survive a power failure. Windows has no such
// function.
func syncFolder(f *os.File) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	err := f.Sync()
	if errors.Is(err, syscall.EINVAL) {
		return nil // network file systems that sync automatically reject the call
	}
	return err
}

// Dir returns the path of the workspace's folder.
func (w *Workspace) Dir() string { return w.root.Name() }

// OpenFolder opens the folder of the workspace itself. The caller closes it.
func (w *Workspace) OpenFolder() (*os.File, error) { return w.root.Open(".") }

// Limits returns the limits of the workspace, with their defaults.
func (w *Workspace) Limits() Limits { return w.limits }

// Close releases the folder. Files opened from w stay readable.
func (w *Workspace) Close() error { return w.root.Close() }

// Stat returns the file or folder at name. It follows symbolic links.
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
	// Also check before opening, because opening a device can have effects.
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
		return nil, Errorf(Invalid, "an offset and a limit cannot be negative")
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
		return Errorf(Invalid, "%q is a folder, not a file", p)
	case mode&fs.ModeSymlink != 0:
		return Errorf(Invalid, "%q is a symbolic link, not a file", p)
	}
	return Errorf(Invalid, "%q is a device, pipe or socket, not a file", p)
}

// wantFolder returns an error for anything but a folder.
func wantFolder(p string, mode fs.FileMode) error {
	if mode.IsDir() {
		return nil
	}
	return Errorf(Invalid, "%q is not a folder", p)
}

func entry(p string, info fs.FileInfo) Entry {
	e := Entry{Path: p, Mode: info.Mode(), Modified: info.ModTime()}
	if e.Mode.IsRegular() {
		e.Size, e.room = info.Size(), room(info)
	}
	return e
}

// preallocated is how much larger than its size an ordinary file may be on the disk. File
// systems round up, and some reserve space for a growing file.
const preallocated = 64 << 10

// room returns how many bytes a regular file counts as: its size, or the size of its blocks if
// that is clearly more. Otherwise a command could fill the disk with uncounted blocks beyond a
// file's end.
func room(info fs.FileInfo) int64 {
	if taken := blocksOf(info); taken > info.Size()+preallocated {
		return taken
	}
	return info.Size()
}
