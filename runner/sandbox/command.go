package sandbox

import (
	"cmp"
	"syscall"
	"time"
)

// A Command is a shell command to run in a workspace.
type Command struct {
	Script  string        // for sh -c, at most MaxScript bytes
	Timeout time.Duration // after it the command is killed; 0: DefaultTimeout; at most MaxTimeout
}

// The limits of every command.
const (
	MaxScript      = 32 << 10 // bytes in Command.Script
	DefaultTimeout = time.Minute
	MaxTimeout     = 10 * time.Minute

	waitForOutput = 2 * time.Second // for the output pipe to close after a command was killed
)

// ShellLimits bound the resources that a confined command may use. A zero field means its
// default. Limits of the workspace bound the files that the command leaves there.
type ShellLimits struct {
	Memory    int64 // bytes of all its processes and of its /tmp; 1 GiB by default
	Processes int   // processes and threads; 512 by default: a browser has 200
	FileSize  int64 // bytes in one file; 256 MiB by default, less if the workspace has less room
	OpenFiles int   // of one process; 1024 by default, at most 512 without a control group
}

func (l ShellLimits) withDefaults() ShellLimits {
	return ShellLimits{Memory: cmp.Or(l.Memory, 1<<30), Processes: cmp.Or(l.Processes, 512),
		FileSize: cmp.Or(l.FileSize, 256<<20), OpenFiles: cmp.Or(l.OpenFiles, 1024)}
}

// A Stop says why a command was killed.
type Stop string

// The reasons to kill a command.
const (
	StopTimeout Stop = "timeout"
	StopMemory  Stop = "memory" // it exceeded ShellLimits.Memory, or the machine has little memory left
	StopDisk    Stop = "disk"   // it exceeded the workspace's Limits, or the disk is nearly full
	StopKilled  Stop = "killed" // something else killed it, such as a machine without memory
)

// A Result says how a command ended.
type Result struct {
	ExitCode int    // its own; after a signal 128 and the signal's number
	Output   string // standard output and error in their order, without the middle if long; valid UTF-8
	LeftOut  int64  // bytes that Output leaves out
	Stopped  Stop   // "" unless the command was killed
	Note     string // for the model, about a workspace that is full or nearly so; usually ""
	Duration time.Duration

	report childReport // of a confined command's first process
}

// A childReport says what became of a command. A child sends one when the command
// begins, and one at the end.
type childReport struct {
	Failed   string        // what could not be confined: then the command was not run
	Errno    syscall.Errno // of the system, which refused to start the command; 0 for none
	Layers   []string      // layers of confinement that this machine lacks
	Landlock int           // its version, 0 for none
	Socket   int           // bytes that one socket can take
	Began    bool          // the command was started
	Ended    bool          // ExitCode or Stopped says how
	ExitCode int
	Stopped  Stop
}

// A Layer is one means of confinement.
type Layer struct {
	Name   string
	Active bool   // this machine has it
	Detail string // its effect, or the reason why it is missing
}

// A Bound is one limit of the resources of a command.
type Bound struct {
	What string // such as "memory"
	By   string // the amount, the mechanism that enforces it, and its gaps
}

// A Confinement describes how this machine can confine commands. Detect finds out by
// running one.
type Confinement struct {
	Possible bool // a command can be confined to its workspace
	Layers   []Layer
	Err      error // why it is not possible

	groups *groups     // nil if commands get no control group
	report childReport // of the command that Detect ran
}

// A ShellConfig says how commands are run.
type ShellConfig struct {
	// Hide are folders that commands must not see, even inside a folder of programs: a
	// data folder below /usr, for example. They must exist.
	Hide   []string
	Limits ShellLimits

	// Unsafe lets commands run with all rights of this user if they cannot be confined.
	Unsafe bool
}

// A Shell runs commands in workspaces, confined as this machine allows. It is safe for
// concurrent use.
type Shell struct {
	cfg      ShellConfig
	confined bool
	groups   *groups     // nil if commands get no control group
	report   childReport // of the command that Detect ran
	plain    bool        // behaves as on a kernel without Landlock; for tests
}

// stopped is the cause of a context that ends because its command is killed.
type stopped Stop

// Error returns the reason.
func (s stopped) Error() string { return "command stopped: " + string(s) }
