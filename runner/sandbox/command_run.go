package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"journeyman/runner/workspace"
)

// ErrUnconfined is the error of NewShell on a machine that cannot confine commands.
var ErrUnconfined = errors.New("commands cannot be confined on this machine")

// NewShell creates a Shell with the confinement that Detect found. It returns ErrUnconfined if
// there is none and cfg.Unsafe is not set.
func NewShell(found Confinement, cfg ShellConfig) (*Shell, error) {
	if !found.Possible && !cfg.Unsafe {
		return nil, ErrUnconfined
	}
	cfg.Limits = cfg.Limits.withDefaults()
	hide := cfg.Hide
	cfg.Hide = nil
	for _, folder := range hide {
		real, err := filepath.EvalSymlinks(folder) // symbolic links of the old root do not exist in the new one
		if err == nil {
			real, err = filepath.Abs(real)
		}
		if err != nil {
			return nil, fmt.Errorf("folder to hide: %w", err)
		}
		cfg.Hide = append(cfg.Hide, real)
	}
	return &Shell{cfg: cfg, confined: found.Possible, groups: found.groups, report: found.report}, nil
}

// Confined reports whether commands are confined.
func (s *Shell) Confined() bool { return s.confined }

// Run runs c with w as its only folder. It returns when the command and all processes that it
// started have ended. The Result reports whether the command failed or was killed. The error is
// a *workspace.Error for an invalid command and ctx's cause if ctx has ended. Any other error is a fault
// of the machine.
func (s *Shell) Run(ctx context.Context, w *workspace.Workspace, c Command) (Result, error) {
	if err := c.check(); err != nil {
		return Result{}, err
	}
	c.Timeout = cmp.Or(c.Timeout, DefaultTimeout)
	defer w.Changed()
	folder, err := w.OpenFolder() // the command can make its path unusable, but not the open folder
	if err != nil {
		return Result{}, &StartError{Err: fmt.Errorf("open workspace: %w", err)}
	}
	defer folder.Close()
	begun := time.Now()
	out := newOutputs()
	// The cause shows whether the command's timeout has expired or ctx has ended.
	timed, cancel := context.WithTimeoutCause(ctx, c.Timeout, stopped(StopTimeout))
	defer cancel()
	r, err := s.run(timed, w, folder, c, out)
	note, mendErr := s.settle(w, folder) // also after an error
	if ctx.Err() != nil {
		return Result{}, context.Cause(ctx)
	}
	var why stopped
	if errors.As(err, &why) {
		r.ExitCode, r.Stopped, err = 128+9, Stop(why), nil // as after SIGKILL
	}
	if err = errors.Join(err, mendErr); err != nil {
		return Result{}, fmt.Errorf("run command: %w", err)
	}
	r.Output, r.Errors = out.stdout.text(), out.stderr.text()
	if note == "" && r.Note != "" {
		note = "the workspace was nearly full when this command began, so it could write little; there is room by now"
	}
	r.Note, r.Duration = note, time.Since(begun)
	return r, nil
}

// settle restores the permissions in a workspace after a command, and counts its bytes. It returns a note if the
// workspace is now full or nearly full.
func (s *Shell) settle(w *workspace.Workspace, folder *os.File) (note string, err error) {
	if err := workspace.MendFolder(folder); err != nil {
		return "", fmt.Errorf("mend permissions: %w", err)
	}
	held, err := w.Survey(w.Everything(), w.RestorePermissions)
	if err != nil {
		return "", fmt.Errorf("mend permissions: %w", err)
	}
	w.Count(held.Bytes)
	return w.Fullness(held, s.cfg.Limits.FileSize), nil
}

// check returns a *workspace.Error for a command that the shell cannot run.
func (c Command) check() error {
	switch {
	case strings.TrimSpace(c.Script) == "":
		return workspace.Errorf(workspace.Invalid, "a command cannot be empty")
	case len(c.Script) > MaxScript:
		return workspace.Errorf(workspace.Invalid,
			"a command can have %d bytes and has %d; write a long script to a file and run that",
			MaxScript, len(c.Script))
	case strings.ContainsRune(c.Script, 0):
		return workspace.Errorf(workspace.Invalid, "a command cannot have a NUL character in it")
	case c.Timeout < 0 || c.Timeout > MaxTimeout:
		return workspace.Errorf(workspace.Invalid, "a command can take from 0 to %d seconds", int(MaxTimeout.Seconds()))
	}
	return nil
}
