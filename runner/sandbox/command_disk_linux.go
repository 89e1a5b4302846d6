//go:build amd64 || arm64

package sandbox

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"journeyman/runner/workspace"
)

// A diskWatch limits the disk space that a command uses. It surveys the workspace when the file
// system has less free space, and at intervals. A survey misses some usage, such as a deleted
// file that is still open. Therefore the diskWatch also stops a command before the disk is
// full.
type diskWatch struct {
	w       *workspace.Workspace
	folder  *os.File
	begin   diskRoom          // free space when the command began
	walked  diskRoom          // free space at the last survey
	held    workspace.Holding // result of the last survey
	when    time.Time         // end of the last survey
	took    time.Duration     // duration of the last survey
	reserve int64             // bytes that must stay free on the disk
	most    workspace.Holding // limits of the workspace
	least   int64             // bytes of the workspace when the command began
}

// diskRoom is the free space of a file system, and its total size in bytes.
type diskRoom struct{ bytes, files, total int64 }

const (
	walkEvery = 5 * time.Second // maximum time between surveys
	walkPause = 4               // minimum pause between surveys, as a multiple of a survey's duration
	leastStep = 4 << 20         // minimum decrease of free bytes that triggers a survey
)

// watchDisk creates a diskWatch for a command that begins now, in a workspace with the content
// held. If that already exceeds the limits, it must not grow.
func watchDisk(w *workspace.Workspace, folder *os.File, held workspace.Holding) (*diskWatch, error) {
	now, err := roomOf(folder)
	if err != nil {
		return nil, err
	}
	return &diskWatch{w: w, folder: folder, begin: now, walked: now, held: held, when: time.Now(),
		reserve: min(now.total/20, 1<<30), most: mostOf(w.Limits(), held), least: held.Bytes}, nil
}

// mostOf returns the limits of a workspace with the content held, or that content if it is more.
func mostOf(l workspace.Limits, held workspace.Holding) workspace.Holding {
	bytes := held.Bytes + max(l.Left(held.Bytes), 0)
	return workspace.Holding{Files: max(l.Files, held.Files), Bytes: bytes, Deep: held.Deep}
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
		return false // only a fault of the machine can cause this, because the folder is open
	}
	// Compare with the start too: otherwise no command could run on a disk that was already
	// full.
	if room.bytes < d.reserve && room.bytes < d.begin.bytes {
		return true
	}
	idle := now.Sub(d.when)
	// A survey of a large folder takes long, and must not take most of this process's time.
	if !d.moved(room) && idle < walkEvery || idle < walkPause*d.took {
		return false
	}
	d.held, _ = d.w.Survey(d.most) // Survey fails only if a function passed to it fails, and there is none
	d.walked, d.when = room, time.Now()
	d.took = d.when.Sub(now)
	// Other workspaces may have used up the quota meanwhile. A command that has written nothing goes on.
	if over := d.w.Count(d.held.Bytes); over && d.held.Bytes > d.least {
		return true
	}
	return d.held.Exceeds(d.most)
}

// moved reports whether a quarter of the remaining room was taken since the last survey. The
// limits may then be near.
func (d *diskWatch) moved(room diskRoom) bool {
	bytes := max((d.most.Bytes-d.held.Bytes)/4, leastStep)
	files := max((d.most.Files-d.held.Files)/4, 0) + 1
	return d.walked.bytes-room.bytes >= bytes || d.walked.files-room.files >= int64(files)
}
