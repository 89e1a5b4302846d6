//go:build unix

package sandbox

import (
	"context"
	"errors"
	"io"
	"os/exec"
	"syscall"
	"time"
)

// runUnconfined runs a command as any program of this user, in a process group of
// its own. A process that leaves the group is not killed with it.
func runUnconfined(ctx context.Context, w *Workspace, c Command, out io.Writer) (Result, error) {
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", c.Script)
	cmd.Dir = w.root.Name()
	cmd.Env = commandEnvironment(cmd.Dir, "/tmp")
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	killGroup := func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.Cancel, cmd.WaitDelay = killGroup, 2*time.Second
	if err := cmd.Start(); err != nil {
		return Result{}, err
	}
	err := cmd.Wait()
	_ = killGroup() // what it left behind; mostly nothing
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return Result{}, context.Cause(ctx)
	case errors.As(err, &exit):
		return Result{ExitCode: exitCode(exit.Sys().(syscall.WaitStatus))}, nil
	case errors.Is(err, exec.ErrWaitDelay):
		return Result{}, nil // it ended well; something it started holds the pipe
	}
	return Result{}, err
}

func exitCode(status syscall.WaitStatus) int {
	if status.Signaled() {
		return 128 + int(status.Signal())
	}
	return status.ExitStatus()
}

// commandEnvironment is all that a command finds in its environment.
func commandEnvironment(dir, home string) []string {
	return []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=" + home, "TMPDIR=/tmp", "PWD=" + dir,
		"LANG=C.UTF-8", "TERM=dumb", "USER=worker", "LOGNAME=worker", "SHELL=/bin/sh"}
}
