package sandbox

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"
)

// A Command is a shell command to run in a workspace.
type Command struct {
	Script  string        // for sh -c, of at most MaxScript bytes
	Timeout time.Duration // after which it is killed; DefaultTimeout where 0, at most MaxTimeout
}

// The limits of every command.
const (
	MaxScript      = 32 << 10 // bytes in Command.Script
	DefaultTimeout = time.Minute
	MaxTimeout     = 10 * time.Minute

	keptHead = 16 << 10 // bytes of output kept of its beginning
	keptTail = 48 << 10 // and of its end
)

// ShellLimits bound what a confined command may take of the machine. A field that
// is 0 means its default. What it may leave in the workspace is bounded by the
// workspace's own Limits.
type ShellLimits struct {
	Memory    int64 // bytes in memory of all its processes and of /tmp, 1 GiB by default
	Processes int   // processes and threads, 128 by default
	FileSize  int64 // bytes in one file, 256 MiB by default
	OpenFiles int   // open files of a process, 1024 by default
}

func (l ShellLimits) withDefaults() ShellLimits {
	if l.Memory == 0 {
		l.Memory = 1 << 30
	}
	if l.Processes == 0 {
		l.Processes = 128
	}
	if l.FileSize == 0 {
		l.FileSize = 256 << 20
	}
	if l.OpenFiles == 0 {
		l.OpenFiles = 1024
	}
	return l
}

// A Stop says why a command was killed before its end.
type Stop string

// The reasons to kill a command.
const (
	StopTimeout Stop = "timeout"
	StopMemory  Stop = "memory" // over ShellLimits.Memory
	StopDisk    Stop = "disk"   // over the workspace's Limits, or the disk is nearly full
)

// A Result is what became of a command.
type Result struct {
	ExitCode int    // its own, or 128 and the number of the signal that ended it
	Output   string // standard output and error as they came, the middle left out where it is long; valid UTF-8
	LeftOut  int64  // bytes left out of Output
	Stopped  Stop   // "" unless the command was killed
	Duration time.Duration
}

// A Layer is one means of confinement, and whether this machine has it.
type Layer struct {
	Name   string
	Active bool
	Detail string // what it gives, or what the machine said
}

// A Confinement is what keeps commands in their workspace on this machine, as
// found by trying it.
type Confinement struct {
	Possible bool // a command can be kept from all that is not its own
	Layers   []Layer
	Err      error // why it is not possible
}

// ShellConfig is how commands are run.
type ShellConfig struct {
	// Hide are folders of the machine that commands must not see even where they lie
	// in one whose programs they need, such as a data folder below /usr. They must
	// exist.
	Hide   []string
	Limits ShellLimits

	// Unsafe lets commands run as any other program of this user where they cannot
	// be confined.
	Unsafe bool
}

// A Shell runs commands in workspaces, confined as this machine allows. It is
// safe for concurrent use.
type Shell struct {
	cfg      ShellConfig
	confined bool
}

// ErrUnconfined is why there is no Shell on a machine that cannot confine
// commands.
var ErrUnconfined = errors.New("commands cannot be confined on this machine")

// NewShell makes a Shell that confines as found says, which is what Detect gave.
// It is ErrUnconfined where that is impossible and cfg does not permit less.
func NewShell(found Confinement, cfg ShellConfig) (*Shell, error) {
	if !found.Possible && !cfg.Unsafe {
		return nil, ErrUnconfined
	}
	cfg.Limits = cfg.Limits.withDefaults()
	hide := cfg.Hide
	cfg.Hide = nil
	for _, folder := range hide {
		real, err := filepath.EvalSymlinks(folder) // by its own name alone it is found below the new root
		if err == nil {
			real, err = filepath.Abs(real)
		}
		if err != nil {
			return nil, fmt.Errorf("folder to hide: %w", err)
		}
		cfg.Hide = append(cfg.Hide, real)
	}
	return &Shell{cfg: cfg, confined: found.Possible}, nil
}

// Confined says whether commands are confined.
func (s *Shell) Confined() bool { return s.confined }

// Run runs c with w as its only folder and waits until it, and everything it
// started, is gone. That a command fails, or is stopped, is in the Result; an
// error is trouble with the machine, an *Error with the command itself, or that of
// ctx.
func (s *Shell) Run(ctx context.Context, w *Workspace, c Command) (Result, error) {
	if err := c.check(); err != nil {
		return Result{}, err
	}
	if c.Timeout == 0 {
		c.Timeout = DefaultTimeout
	}
	defer w.Changed()
	begun := time.Now()
	out := &capture{}
	timed, cancel := context.WithTimeoutCause(ctx, c.Timeout, stopped(StopTimeout))
	defer cancel()
	r, err := s.run(timed, w, c, out)
	if ctx.Err() != nil {
		return Result{}, context.Cause(ctx)
	}
	var why stopped
	if errors.As(err, &why) {
		r, err = Result{ExitCode: 128 + 9, Stopped: Stop(why)}, nil
	}
	if err != nil {
		return Result{}, fmt.Errorf("run command: %w", err)
	}
	r.Output, r.LeftOut = out.text()
	r.Duration = time.Since(begun)
	return r, nil
}

// check refuses what cannot be handed to a shell.
func (c Command) check() error {
	switch {
	case strings.TrimSpace(c.Script) == "":
		return errorf(Invalid, "a command cannot be empty")
	case len(c.Script) > MaxScript:
		return errorf(Invalid, "a command can have %d bytes and has %d; write a long script to a file and run that", MaxScript, len(c.Script))
	case strings.ContainsRune(c.Script, 0):
		return errorf(Invalid, "a command cannot have a NUL character in it")
	case c.Timeout < 0 || c.Timeout > MaxTimeout:
		return errorf(Invalid, "a command can take from 0 to %d seconds", int(MaxTimeout.Seconds()))
	}
	return nil
}

// stopped is the cause with which a command's context ends when it is stopped.
type stopped Stop

// Error names the reason.
func (s stopped) Error() string { return "command stopped: " + string(s) }
