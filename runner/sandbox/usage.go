package sandbox

import (
	"io/fs"
	"path"
	"sync"
	"time"
)

// Limits bound what a workspace may hold. They are refusals to write: what else
// came to be there stays readable. A field that is 0 means its default.
type Limits struct {
	FileSize  int64 // most bytes in one file, 25 MiB by default
	Files     int   // most files and folders, 10,000 by default
	TotalSize int64 // most bytes in all files, 1 GiB by default
}

func (l Limits) withDefaults() Limits {
	if l.FileSize == 0 {
		l.FileSize = 25 << 20
	}
	if l.Files == 0 {
		l.Files = 10_000
	}
	if l.TotalSize == 0 {
		l.TotalSize = 1 << 30
	}
	return l
}

// usage is what a workspace holds, counted at the first write and kept up since.
type usage struct {
	mu    sync.Mutex // guards what follows
	known bool       // false until counted
	files int
	bytes int64
}

// Changed tells w that others, such as a command it does not know of, may have
// written to the folder. What is there is counted anew at the next write.
func (w *Workspace) Changed() {
	w.use.mu.Lock()
	defer w.use.mu.Unlock()
	w.use.known = false
}

// reserve takes room for more files and bytes, or refuses. Negative numbers give
// room back and are never refused.
func (w *Workspace) reserve(files int, bytes int64) error {
	w.use.mu.Lock()
	defer w.use.mu.Unlock()
	if !w.use.known {
		if err := w.measure(); err != nil {
			return err
		}
	}
	if files > 0 && w.use.files+files > w.limits.Files {
		return errorf(TooManyFiles, "the workspace can hold %d files and folders and has %d", w.limits.Files, w.use.files)
	}
	if bytes > 0 && w.use.bytes+bytes > w.limits.TotalSize {
		return errorf(Full, "the workspace can hold %d bytes and has %d; that would take %d more",
			w.limits.TotalSize, w.use.bytes, bytes)
	}
	w.use.files += files
	w.use.bytes += bytes
	return nil
}

// release gives back what was reserved for a write that came to nothing.
func (w *Workspace) release(files int, bytes int64) {
	w.use.mu.Lock()
	defer w.use.mu.Unlock()
	w.use.files -= files
	w.use.bytes -= bytes
}

// staleAfter is when a file in the making has surely been left by a crash.
const staleAfter = time.Hour

// measure counts what is in the folder. w.use.mu is held. It gives up on a folder
// far over its limits, and takes it for full.
func (w *Workspace) measure() error {
	w.use.files, w.use.bytes = 0, 0
	err := w.walk(".", func(e Entry) error {
		if isScratch(path.Base(e.Path)) {
			if time.Since(e.Modified) > staleAfter {
				w.root.Remove(e.Path) // as good as can be: it takes room, not more
			}
			return nil
		}
		w.use.files++
		w.use.bytes += e.Size
		if w.use.files > 10*w.limits.Files {
			w.use.bytes = max(w.use.bytes, w.limits.TotalSize)
			return fs.SkipAll
		}
		return nil
	})
	w.use.known = err == nil
	return err
}
