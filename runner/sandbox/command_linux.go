//go:build amd64 || arm64

package sandbox

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"journeyman/runner/workspace"
)

// run runs a command that Command.check has accepted. An error of type stopped is the reason
// why the command was killed.
func (s *Shell) run(ctx context.Context, w *workspace.Workspace, folder *os.File, c Command, out *outputs) (
	Result, error) {
	if !s.confined {
		return runUnconfined(ctx, w, c, out)
	}
	held, err := prepare(w)
	if err != nil {
		return Result{}, &StartError{Err: err}
	}
	r, err := s.runConfined(ctx, w, folder, held, c, out)
	result := Result{ExitCode: r.ExitCode, Note: w.Fullness(held, s.cfg.Limits.FileSize), report: r}
	switch {
	case err != nil:
		return result, err
	case r.Failed != "":
		return result, r.failure()
	case r.Stopped != "":
		return result, stopped(r.Stopped)
	}
	return result, nil
}

// failure returns the cause of the failure: a StartError if the system did not start the
// command.
func (r childReport) failure() error {
	if r.Errno == 0 {
		return errors.New(r.Failed)
	}
	return &StartError{Err: fmt.Errorf("%s (%w)", r.Failed, r.Errno)}
}

// commandUser returns the user that runs commands in w. If the service runs as root, each
// worker has a user of its own.
func commandUser(w *workspace.Workspace) int {
	if user := os.Geteuid(); user != 0 {
		return user
	}
	return workerUser(w.Dir(), machineUsers())
}

// prepare makes w usable for the user of its commands, and returns the content of w.
func prepare(w *workspace.Workspace) (workspace.Holding, error) {
	steps := []func(string, fs.FileInfo) error{w.RestorePermissions}
	if user := commandUser(w); user != os.Geteuid() {
		steps = append(steps, w.GiveTo(user))
	}
	held, err := w.Survey(w.Everything(), steps...)
	if err != nil {
		return held, fmt.Errorf("make workspace ready: %w", err)
	}
	w.Count(held.Bytes)
	return held, nil
}

// runConfined runs a command in w in a child process. held is the content of w. Meanwhile it
// watches the disk and the machine's memory.
func (s *Shell) runConfined(ctx context.Context, w *workspace.Workspace, folder *os.File, held workspace.Holding,
	c Command, out *outputs) (childReport, error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	dir, err := filepath.Abs(w.Dir())
	if err != nil {
		return childReport{}, err
	}
	disk, err := watchDisk(w, folder, held)
	if err != nil {
		return childReport{}, &StartError{Err: err}
	}
	// The watch uses the open folder, so it must end before the caller closes the folder.
	done := make(chan struct{})
	go func() { defer close(done); watch(ctx, stop, disk, watchMachine()) }()
	defer func() { stop(nil); <-done }()
	r, err := s.startLimited(ctx, out, commandUser(w), childSpec{Folder: dir, Script: c.Script, Hide: s.cfg.Hide,
		Limits: s.limitsIn(w.Limits(), held), NoNewFiles: held.Files >= w.Limits().Files || held.Deep,
		CPU: c.Timeout * time.Duration(runtime.NumCPU()), Leave: os.Geteuid() == 0, NoLandlock: s.noLandlock})
	if ctx.Err() != nil {
		return childReport{}, context.Cause(ctx)
	}
	return r, err
}

// uncountedFiles is the maximum number of open files per process without a control group. Each
// file can have a buffer in the kernel, which no figure of the process includes.
const uncountedFiles = 512

// limitsIn returns the limits of a command in a workspace with the limits of and the content held. No file may
// grow beyond the free room of the workspace.
func (s *Shell) limitsIn(of workspace.Limits, held workspace.Holding) ShellLimits {
	l := s.cfg.Limits
	l.FileSize = max(min(l.FileSize, of.Left(held.Bytes)), 0)
	if s.groups == nil {
		l.OpenFiles = min(l.OpenFiles, uncountedFiles)
	}
	return l
}

// startLimited starts a child, in a control group of its own if the machine supports that.
func (s *Shell) startLimited(ctx context.Context, out *outputs, user int, spec childSpec) (r childReport, err error) {
	attr := newNamespaceAttr(user)
	if s.groups == nil {
		return startChild(ctx, out, attr, spec)
	}
	g, err := s.groups.begin(spec.Limits.Memory, spec.Limits.Processes)
	if err != nil {
		return r, &StartError{Err: err}
	}
	attr.UseCgroupFD, attr.CgroupFD, spec.Counted = true, int(g.folder.Fd()), true
	r, err = startChild(ctx, out, attr, spec)
	if err == nil && r.Stopped == StopKilled && g.outOfMemory() {
		r.Stopped = StopMemory
	}
	return r, errors.Join(err, g.end())
}

// startChild starts this program again as the first process of new namespaces. It sends the
// spec to the child and waits for its end. If this process ends first, the child reads the end
// of the spec's pipe.
func startChild(ctx context.Context, out *outputs, attr *syscall.SysProcAttr,
	spec childSpec) (r childReport, err error) {
	specOut, specIn, err := os.Pipe()
	if err != nil {
		return r, &StartError{Err: err}
	}
	defer specIn.Close()
	reportOut, reportIn, err := os.Pipe()
	if err != nil {
		return r, &StartError{Err: errors.Join(err, specOut.Close())}
	}
	defer reportOut.Close()
	cmd := exec.CommandContext(ctx, "/proc/self/exe", childArgument)
	cmd.Env = []string{} // the server's environment contains keys
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &out.stdout, &out.stderr, waitForOutput
	cmd.ExtraFiles = []*os.File{specOut, reportIn}
	cmd.SysProcAttr = attr
	// Close them here too: only the child may hold them, so that the report pipe ends with the
	// child.
	err = errors.Join(cmd.Start(), specOut.Close(), reportIn.Close())
	if err != nil {
		return r, &StartError{Err: fmt.Errorf("start in namespaces: %w", err)}
	}
	err = json.NewEncoder(specIn).Encode(spec)
	reports, readErr := io.ReadAll(io.LimitReader(reportOut, 64<<10)) // until the child's end
	waitErr := cmd.Wait()
	if r = lastReport(reports); r.Began || r.Failed != "" {
		return r, nil
	}
	return r, fmt.Errorf("the command's first process ended early: %w", errors.Join(waitErr, err, readErr))
}

// lastReport returns the report about the end of a command. If a command ends while it is being
// stopped, there are two such reports, and the first one counts. If there is none, something
// has killed the child.
func lastReport(reports []byte) (r childReport) {
	for dec := json.NewDecoder(bytes.NewReader(reports)); !r.Ended; {
		var next childReport
		if dec.Decode(&next) != nil {
			break
		}
		r = next
	}
	if r.Began && !r.Ended {
		r.Stopped = StopKilled
	}
	return r
}

// newNamespaceAttr returns the attributes with which a child starts: in namespaces of its own,
// as the given user of the machine. It has the capabilities that it needs to configure the
// namespaces.
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
		AmbientCaps: []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN, unix.CAP_SETUID, unix.CAP_SETGID,
			unix.CAP_SETPCAP, unix.CAP_SYS_CHROOT},
	}
}
