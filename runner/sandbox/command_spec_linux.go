//go:build amd64 || arm64

package sandbox

import (
	"encoding/json"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// childArgument, as the only argument of this program, makes it the first process of a command.
// A test program that does not call IsChild rejects it as an unknown flag. Otherwise that
// program would run its tests, and so start itself again.
const childArgument = "-sandboxed-command"

// The files that a child starts with, after the standard three.
const (
	specFile   = 3 // the child reads its childSpec from it; the parent closes it to end the child
	reportFile = 4 // the child writes its childReport to it
)

// insideID is the user and group number of commands inside. It is not 0, because programs that
// run as root try operations that fail here.
const insideID = 1000

// insideFolder is the path of the workspace inside.
const insideFolder = "/workspace"

// The layers of confinement that are optional.
const (
	layerLandlock = "Landlock"
	layerProc     = "private /proc"
	layerLoopback = "loopback"
	layerGroups   = "control group"
)

// A childSpec describes for a child what to run and how to confine it.
type childSpec struct {
	Folder string // absolute path of the workspace
	Script string
	Hide   []string
	Limits ShellLimits
	CPU    time.Duration // for each process
	Leave  bool          // give up the parent's groups, which only root can do

	NoNewFiles bool // the workspace has reached its limit of files
	Counted    bool // a control group limits the memory
	NoLandlock bool // do not use Landlock

	folder int // the workspace, open
	socket int // maximum memory of one socket, in bytes
	abi    int // version of Landlock, 0 for none
}

// exit sends the report and ends this process, and so the command. It uses the system call,
// because os.Exit waits a second in programs with the race detector.
func (r childReport) exit() {
	r.Ended = true
	if r.send() != nil {
		syscall.Exit(1) // the parent notices that there is no report
	}
	syscall.Exit(0)
}

// send writes the report to the parent.
func (r childReport) send() error {
	data, err := json.Marshal(r)
	if err == nil {
		_, err = unix.Write(reportFile, data) // the pipe has room for the report, so this cannot block
	}
	return err
}
