package workspace

import (
	"io/fs"
	"path"
	"time"
)

// Changed marks the folder as changed by something other than w, such as a command. The next
// write measures the content of the folder again.
func (w *Workspace) Changed() {
	w.use.mu.Lock()
	defer w.use.mu.Unlock()
	w.use.known = false
}

// reserve adds files and bytes to the usage. It returns an error if a limit would be exceeded.
// Negative numbers are always accepted.
func (w *Workspace) reserve(files int, bytes int64) error {
	w.use.mu.Lock()
	defer w.use.mu.Unlock()
	if !w.use.known {
		if err := w.measure(); err != nil {
			return err
		}
	}
	if files > 0 && w.use.files+files > w.limits.Files {
		return Errorf(TooManyFiles, "the workspace can hold %d files and folders and has %d",
			w.limits.Files, w.use.files)
	}
	if bytes > 0 && w.use.bytes+bytes > w.limits.TotalSize {
		return Errorf(Full, "the workspace can hold %d bytes and has %d; that would take %d more",
			w.limits.TotalSize, w.use.bytes, bytes)
	}
	if err := w.limits.take(bytes); err != nil {
		return err
	}
	w.use.files += files
	w.use.bytes += bytes
	w.use.counted += bytes
	return nil
}

// Count counts the bytes that a survey has found and that the quota has not yet. It reports whether the quota has more
// than it has room for. The first survey has nothing to compare with, and counts nothing.
func (w *Workspace) Count(bytes int64) (over bool) {
	if w.limits.Quota == nil {
		return false
	}
	w.use.mu.Lock()
	defer w.use.mu.Unlock()
	if w.use.surveyed {
		w.limits.add(bytes - w.use.counted)
	}
	w.use.surveyed, w.use.counted = true, bytes
	return w.limits.Quota.Left() < 0
}

// take adds bytes to the quota. Negative numbers are always accepted.
func (l Limits) take(bytes int64) error {
	if bytes <= 0 {
		l.add(bytes)
		return nil
	}
	if l.Quota == nil {
		return nil
	}
	if err := l.Quota.Take(bytes); err != nil {
		return Errorf(OverQuota, "%s", err)
	}
	return nil
}

// add adds bytes to the quota without a check.
func (l Limits) add(bytes int64) {
	if l.Quota != nil {
		l.Quota.Add(bytes)
	}
}

// Left returns how many bytes a workspace with bytes may still take.
func (l Limits) Left(bytes int64) int64 {
	left := l.TotalSize - bytes
	if l.Quota != nil {
		left = min(left, l.Quota.Left())
	}
	return left
}

// release subtracts files and bytes from the usage, after a failed write or a removal.
func (w *Workspace) release(files int, bytes int64) {
	w.use.mu.Lock()
	defer w.use.mu.Unlock()
	w.use.files -= files
	w.use.bytes -= bytes
	w.use.counted -= bytes
	w.limits.add(-bytes)
}

// staleAfter is the age from which a temporary file must be left over from a crash.
const staleAfter = time.Hour

// measure measures the content of the folder. w.use.mu is held. In a folder far beyond its
// limits, it stops counting and treats the folder as full.
func (w *Workspace) measure() error {
	w.use.files, w.use.bytes = 0, 0
	err := w.walk(".", func(e Entry) error {
		if isScratch(path.Base(e.Path)) {
			if time.Since(e.Modified) > staleAfter {
				_ = w.root.Remove(e.Path) // after a failure, the file only takes space
			}
			return nil
		}
		w.use.files++
		w.use.bytes += e.room
		if w.use.files > 10*w.limits.Files {
			w.use.bytes = max(w.use.bytes, w.limits.TotalSize)
			return fs.SkipAll
		}
		return nil
	})
	w.use.known = err == nil
	return err
}
