package sqlite

import (
	"os"

	"golang.org/x/sys/unix"
)

// flushEvery is the number of written bytes after which a flush begins.
const flushEvery = 4 << 20

// A Flusher writes a growing file and makes the kernel flush it to the disk in small parts.
// Otherwise the next sync of any file, such as that of a commit, could wait for all of it at once.
// The file still has to be synced at its end.
type Flusher struct {
	f     *os.File
	begun int64 // number of bytes that the disk was asked to write
	size  int64 // bytes that Write has written
}

// NewFlusher returns a writer to an empty file.
func NewFlusher(f *os.File) *Flusher { return &Flusher{f: f} }

// Write writes b.
func (w *Flusher) Write(b []byte) (int, error) {
	n, err := w.f.Write(b)
	w.size += int64(n)
	w.flush(w.size)
	return n, err
}

// flush begins to write what was added up to size, and waits for the part before it.
func (w *Flusher) flush(size int64) {
	if size-w.begun < flushEvery {
		return
	}
	fd := int(w.f.Fd())
	// An error means that the file system does not support the call. Only the sync at the end matters.
	_ = unix.SyncFileRange(fd, 0, w.begun, unix.SYNC_FILE_RANGE_WAIT_BEFORE|unix.SYNC_FILE_RANGE_WRITE|
		unix.SYNC_FILE_RANGE_WAIT_AFTER)
	_ = unix.SyncFileRange(fd, w.begun, size-w.begun, unix.SYNC_FILE_RANGE_WRITE)
	w.begun = size
}
