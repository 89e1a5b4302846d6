//go:build amd64 || arm64

package sandbox

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// A diskWatch bounds the disk space that a command uses. It surveys the workspace when the file
// system has less room, and at times anyway. A survey does not find everything, such as a deleted
// file that is still open. Therefore the diskWatch also stops a command that takes the last of
// the disk.
type diskWatch struct {
	w       *Workspace
	folder  *os.File
	begin   diskRoom      // free when the command began
	walked  diskRoom      // free at the last survey
	held    holding       // found by the last survey
	when    time.Time     // end of the last survey
	took    time.Duration // time that the last survey took
	reserve int64         // bytes that must stay free on the disk
	most    holding       // the limits of the workspace
}

// diskRoom is the free room of a file system, and its total size in bytes.
type diskRoom struct{ bytes, files, total int64 }

const (
	walkEvery = 5 * time.Second // longest time without a survey
	walkPause = 4               // least pause between surveys, as a multiple of a survey's time
	leastStep = 4 << 20         // fewest bytes taken on the file system that cause a survey
)

// watchDisk creates a diskWatch for a command that begins now, in a workspace that
// holds this much. If that exceeds the limits already, it may not become more.
func watchDisk(w *Workspace, folder *os.File, held holding) (*diskWatch, error) {
	now, err := roomOf(folder)
	if err != nil {
		return nil, err
	}
	return &diskWatch{w: w, folder: folder, begin: now, walked: now, held: held, when: time.Now(),
		reserve: min(now.total/20, 1<<30), most: w.most(held)}, nil
}

// most returns the limits of w, or its current usage if that is more.
func (w *Workspace) most(held holding) holding {
	return holding{max(w.limits.Files, held.files), max(w.limits.TotalSize, held.bytes), held.deep}
}

func roomOf(folder *os.File) (diskRoom, error) {
	var st unix.Statfs_t
	if err := unix.Fstatfs(int(folder.Fd()), &st); err != nil {
		return diskRoom{}, fmt.Errorf("room on the disk: %w", err)
	}
	return diskRoom{int64(st.Bavail) * st.Bsize, int64(st.Ffree), int64(st.Blocks) * st.Bsize}, nil
}

// exceeded reports whether the command has taken too much by now.
func (d *diskWatch) exceeded(now time.Time) bool {
	room, err := roomOf(d.folder)
	if err != nil {
		return false // only the machine's trouble can cause that: the folder is open
	}
	// Not where the disk was that full before: then no command could run at all.
	if room.bytes < d.reserve && room.bytes < d.begin.bytes {
		return true
	}
	idle := now.Sub(d.when)
	// A survey of a large folder takes long, and must not be most of what this process does.
	if !d.moved(room) && idle < walkEvery || idle < walkPause*d.took {
		return false
	}
	d.held, _ = d.w.survey(d.most) // without functions to call it cannot fail
	d.walked, d.when = room, time.Now()
	d.took = d.when.Sub(now)
	return d.held.exceeds(d.most)
}

// moved reports whether so much room was taken since the last survey that the limits may be near:
// a quarter of the room at that time.
func (d *diskWatch) moved(room diskRoom) bool {
	bytes := max((d.most.bytes-d.held.bytes)/4, leastStep)
	files := max((d.most.files-d.held.files)/4, 0) + 1
	return d.walked.bytes-room.bytes >= bytes || d.walked.files-room.files >= int64(files)
}
