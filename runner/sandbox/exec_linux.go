//go:build amd64 || arm64

package sandbox

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// waitForOutput is how long the pipes of a killed command are waited for.
const waitForOutput = 2 * time.Second

// run runs a checked command. An error that is a stopped says why it was killed.
func (s *Shell) run(ctx context.Context, w *Workspace, c Command, out io.Writer) (Result, error) {
	if !s.confined {
		return runUnconfined(ctx, w, c, out)
	}
	r, err := s.runConfined(ctx, w, c, out)
	switch {
	case err != nil:
		return Result{}, err
	case r.Failed != "":
		return Result{}, errors.New(r.Failed)
	case r.Stopped != "":
		return Result{}, stopped(r.Stopped)
	}
	return Result{ExitCode: r.ExitCode}, nil
}

// runConfined has a child run a command, and watches over the disk meanwhile.
func (s *Shell) runConfined(ctx context.Context, w *Workspace, c Command, out io.Writer) (childReport, error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	dir, err := filepath.Abs(w.root.Name())
	if err != nil {
		return childReport{}, err
	}
	folder, err := w.root.Open(".")
	if err != nil {
		return childReport{}, err
	}
	defer folder.Close()
	user := os.Geteuid()
	if user == 0 {
		user = workerUser(w.root.Name(), machineUsers())
		if err := w.giveTo(user); err != nil {
			return childReport{}, err
		}
	}
	disk, err := watchDisk(w, folder)
	if err != nil {
		return childReport{}, err
	}
	done := make(chan struct{})
	go func() { defer close(done); disk.watch(ctx, stop) }()
	defer func() { stop(nil); <-done }()
	r, err := startChild(ctx, out, user, childSpec{Folder: dir, Script: c.Script, Hide: s.cfg.Hide, Limits: s.cfg.Limits,
		CPU: c.Timeout * time.Duration(runtime.NumCPU()), Leave: os.Geteuid() == 0})
	if ctx.Err() != nil {
		return childReport{}, context.Cause(ctx)
	}
	return r, err
}

// startChild starts this program again as the first process of new namespaces,
// tells it what to do, and waits for its end. Should this process end first, the
// child sees it by its end of the spec's pipe.
func startChild(ctx context.Context, out io.Writer, user int, spec childSpec) (r childReport, err error) {
	specOut, specIn, err := os.Pipe()
	if err != nil {
		return r, err
	}
	defer specIn.Close()
	reportOut, reportIn, err := os.Pipe()
	if err != nil {
		return r, errors.Join(err, specOut.Close())
	}
	defer reportOut.Close()
	cmd := exec.CommandContext(ctx, "/proc/self/exe", childArgument)
	cmd.Env = []string{} // not the server's, which holds its keys
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = out, out, waitForOutput
	cmd.ExtraFiles = []*os.File{specOut, reportIn}
	cmd.SysProcAttr = newNamespaceAttr(user)
	err = errors.Join(cmd.Start(), specOut.Close(), reportIn.Close())
	if err != nil {
		return r, fmt.Errorf("start in namespaces: %w", err)
	}
	err = json.NewEncoder(specIn).Encode(spec)
	report, readErr := io.ReadAll(io.LimitReader(reportOut, 64<<10)) // until the child's end
	waitErr := cmd.Wait()
	if json.Unmarshal(firstValue(report), &r) == nil {
		return r, nil
	}
	return r, fmt.Errorf("the command's first process ended early: %w", errors.Join(waitErr, err, readErr))
}

// firstValue is the first of the JSON values in b: a child has written two where
// the command ended at the moment it was stopped.
func firstValue(b []byte) []byte {
	var v json.RawMessage
	if json.NewDecoder(bytes.NewReader(b)).Decode(&v) != nil {
		return nil
	}
	return v
}

// newNamespaceAttr is how a child starts: in namespaces of its own, with rights
// in them to set them up and as this machine's user.
func newNamespaceAttr(user int) *syscall.SysProcAttr {
	mapping := []syscall.SysProcIDMap{{ContainerID: insideID, HostID: user, Size: 1}}
	groups := []syscall.SysProcIDMap{{ContainerID: insideID, HostID: os.Getegid(), Size: 1}}
	if os.Geteuid() == 0 {
		groups[0].HostID = user
	}
	return &syscall.SysProcAttr{
		Setsid: true,
		Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWNET | unix.CLONE_NEWIPC |
			unix.CLONE_NEWUTS,
		UidMappings: mapping, GidMappings: groups, GidMappingsEnableSetgroups: os.Geteuid() == 0,
		AmbientCaps: []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_SETUID, unix.CAP_SETGID, unix.CAP_SETPCAP},
	}
}
