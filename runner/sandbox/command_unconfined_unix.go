//go:build unix

package sandbox

import (
	"context"
	"errors"
	"os/exec"
	"syscall"

	"journeyman/runner/workspace"
)

// runUnconfined runs a command with all rights of this service's user, in a process group of
// its own. A process that leaves the group is not killed with it.
func runUnconfined(ctx context.Context, w *workspace.Workspace, c Command, out *outputs) (Result, error) {
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", c.Script)
	cmd.Dir = w.Dir()
	cmd.Env = commandEnvironment(cmd.Dir, "/tmp")
	cmd.Stdout, cmd.Stderr = &out.stdout, &out.stderr
	// Killing the shell alone would leave its background processes running.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	killGroup := func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.Cancel, cmd.WaitDelay = killGroup, waitForOutput
	if err := cmd.Start(); err != nil {
		return Result{}, &StartError{Err: err}
	}
	err := cmd.Wait()
	_ = killGroup() // kill remaining background processes; usually there are none
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return Result{}, context.Cause(ctx)
	case errors.As(err, &exit):
		return Result{ExitCode: exitCode(exit.Sys().(syscall.WaitStatus))}, nil
	case errors.Is(err, exec.ErrWaitDelay):
		return Result{}, nil // the command succeeded; a process that it started still holds the pipe
	}
	return Result{}, err
}
