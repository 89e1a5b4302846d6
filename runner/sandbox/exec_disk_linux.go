//go:build amd64 || arm64

package sandbox

import (
	"context"
	"fmt"
	"io/fs"
	"math"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// A diskWatch looks after what a command leaves on the disk. It walks through the
// workspace when the file system has moved, or at times; what is hidden from a
// walk, such as a deleted file that is open, may not take the last of the disk.
type diskWatch struct {
	w       *Workspace
	folder  *os.File
	begin   diskRoom  // when the command began
	walked  diskRoom  // at the last walk
	when    time.Time // of the last walk
	reserve int64     // bytes that must stay free
	most    int64     // bytes the workspace may hold
	files   int       // and files
}

// diskRoom is what of a file system is free.
type diskRoom struct{ bytes, files, total int64 }

// How often a diskWatch looks, and how long it goes without a walk.
const (
	diskEvery = 100 * time.Millisecond
	walkEvery = 5 * time.Second
)

// watchDisk counts what w holds, which is as much as a command may leave there if
// it is over the limits already.
func watchDisk(w *Workspace, folder *os.File) (*diskWatch, error) {
	room, err := roomOf(folder)
	if err != nil {
		return nil, err
	}
	d := &diskWatch{w: w, folder: folder, begin: room, walked: room, when: time.Now(), reserve: min(room.total/20, 1<<30),
		most: math.MaxInt64, files: math.MaxInt}
	files, bytes := d.used()
	d.most, d.files = max(w.limits.TotalSize, bytes), max(w.limits.Files, files)
	return d, nil
}

func roomOf(folder *os.File) (diskRoom, error) {
	var st unix.Statfs_t
	if err := unix.Fstatfs(int(folder.Fd()), &st); err != nil {
		return diskRoom{}, fmt.Errorf("room on the disk: %w", err)
	}
	return diskRoom{int64(st.Bavail) * st.Bsize, int64(st.Ffree), int64(st.Blocks) * st.Bsize}, nil
}

// watch stops the command when it takes too much, until ctx ends.
func (d *diskWatch) watch(ctx context.Context, stop context.CancelCauseFunc) {
	tick := time.NewTicker(diskEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			if d.exceeded(now) {
				stop(stopped(StopDisk))
				return
			}
		}
	}
}

func (d *diskWatch) exceeded(now time.Time) bool {
	room, err := roomOf(d.folder)
	if err != nil {
		return false // the folder is open: it can only be the machine's trouble
	}
	if room.bytes < d.reserve && room.bytes < d.begin.bytes {
		return true
	}
	still := d.walked.bytes-room.bytes < d.most/16 && d.walked.files-room.files < int64(d.files/4+1)
	if still && now.Sub(d.when) < walkEvery {
		return false
	}
	files, bytes := d.used()
	d.walked, d.when = room, time.Now() // a long walk is not followed at once by another
	return files > d.files || bytes > d.most
}

// tooDeep is how many folders deep a workspace may be: a walk takes the square of
// it in time.
const tooDeep = 256

// used counts the files and bytes in the workspace, until they are too many.
// Folders that cannot be read count as empty.
func (d *diskWatch) used() (files int, bytes int64) {
	_ = fs.WalkDir(d.w.root.FS(), ".", func(p string, e fs.DirEntry, err error) error {
		if err != nil {
			return nil // gone, or closed to us
		}
		files++
		if info, err := e.Info(); err == nil {
			bytes += entry(p, info).Size
		}
		if strings.Count(p, "/") >= tooDeep {
			files = math.MaxInt
		}
		if files > d.files || bytes > d.most {
			return fs.SkipAll
		}
		return nil
	})
	return files, bytes
}
