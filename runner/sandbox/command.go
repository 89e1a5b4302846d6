// Package sandbox isolates the actions of workers from the machine. A Shell runs commands that have access to one
// workspace only, have no network and are killed after their timeout. A FilterPool parses hostile documents in
// processes that can only compute.
//
// All dangerous code is in this package and in the packages dial and workspace, so that it can be reviewed as a
// whole. So the package imports no other package of this program but workspace, and does not depend on turns, tools
// or HTTP.
package sandbox

import (
	"cmp"
	"syscall"
	"time"
)

// A Command is a shell command to run in a workspace.
type Command struct {
	Script  string        // for sh -c, at most MaxScript bytes
	Timeout time.Duration // the command is then killed; 0 means DefaultTimeout; at most MaxTimeout
}

// The limits of every command.
const (
	MaxScript      = 32 << 10 // bytes in Command.Script
	DefaultTimeout = time.Minute
	MaxTimeout     = 10 * time.Minute

	waitForOutput = 2 * time.Second // time for the output pipe to close after a command was killed
)

// ShellLimits limit the resources that a confined command may use. A zero field means its
// default. Limits of the workspace limit the files that the command leaves there.
type ShellLimits struct {
	Memory    int64 // bytes used by all its processes and its /tmp; 1 GiB by default
	Processes int   // processes and threads; 512 by default, because a browser needs 200
	FileSize  int64 // bytes in one file; 256 MiB by default, less if the workspace has less room
	OpenFiles int   // per process; 1024 by default, at most 512 without a control group
}

// maxCommandFile is the default of ShellLimits.FileSize.
const maxCommandFile = 256 << 20

// CommandFile returns the limit of the files of a command if workspaces have files of up to size bytes.
func CommandFile(size int64) int64 { return max(size, maxCommandFile) }

func (l ShellLimits) withDefaults() ShellLimits {
	return ShellLimits{Memory: cmp.Or(l.Memory, 1<<30), Processes: cmp.Or(l.Processes, 512),
		FileSize: cmp.Or(l.FileSize, maxCommandFile), OpenFiles: cmp.Or(l.OpenFiles, 1024)}
}

// A Stop is the reason why a command was killed.
type Stop string

// The reasons to kill a command.
const (
	StopTimeout Stop = "timeout"
	StopMemory  Stop = "memory" // it exceeded ShellLimits.Memory, or the machine has little memory left
	StopDisk    Stop = "disk"   // it exceeded the workspace's Limits, or the disk is nearly full
	StopKilled  Stop = "killed" // killed by something else, such as the kernel of a machine without free memory
)

// A Result is the outcome of a command.
type Result struct {
	ExitCode int    // exit code of the shell; after a signal 128 plus the signal's number
	Output   string // standard output; valid UTF-8; a long text lacks its middle
	Errors   string // standard error; likewise
	Stopped  Stop   // "" unless the command was killed
	Note     string // remark for the model about a full or nearly full workspace; usually ""
	Duration time.Duration

	report childReport // report of a confined command's first process
}

// A childReport describes the state of a command. A child sends one when the command begins,
// and one when it has ended.
type childReport struct {
	Failed   string        // the confinement that failed: then the command was not run
	Errno    syscall.Errno // the system's error when it started the command; 0 for none
	Layers   []string      // layers of confinement that this machine lacks
	Landlock int           // version of Landlock, 0 for none
	Socket   int           // maximum memory of one socket, in bytes
	Began    bool          // the command was started
	Ended    bool          // the command has ended: ExitCode or Stopped is valid
	ExitCode int
	Stopped  Stop
}

// A Layer is one means of confinement.
type Layer struct {
	Name   string
	Active bool   // available on this machine
	Detail string // its effect, or why it is missing
}

// A Bound is one resource limit of a command.
type Bound struct {
	What string // such as "memory"
	By   string // the value, the mechanism that enforces it, and its gaps
}

// A Confinement describes how this machine can confine commands. Detect determines it by
// running a command.
type Confinement struct {
	Possible bool // a command can be confined to its workspace
	Layers   []Layer
	Err      error // reason if Possible is false

	groups *groups     // nil if commands get no control group
	report childReport // report of the command that Detect ran
}

// A ShellConfig configures a Shell.
type ShellConfig struct {
	// Hide lists folders that commands must not see, even inside a folder with programs. An
	// example is a data folder below /usr. They must exist.
	Hide   []string
	Limits ShellLimits

	// Unsafe allows commands with all rights of this user if they cannot be confined.
	Unsafe bool
}

// A Shell runs commands in workspaces, confined as this machine allows. It is safe for
// concurrent use.
type Shell struct {
	cfg        ShellConfig
	confined   bool
	groups     *groups     // nil if commands get no control group
	report     childReport // report of the command that Detect ran
	noLandlock bool        // behave like a kernel without Landlock; for tests
}

// stopped is the cause of a context that ends because its command is killed.
type stopped Stop

// Error returns the reason.
func (s stopped) Error() string { return "command stopped: " + string(s) }
