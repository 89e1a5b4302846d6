//go:build amd64 || arm64

package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// IsChild reports whether args, which are os.Args, request that this process calls Child. The
// program's main must call IsChild before anything else.
func IsChild(args []string) bool {
	return len(args) == 2 && args[1] == childArgument || len(args) > 2 && args[1] == keeperArgument
}

// Child executes the role that the arguments of this process select, and exits. It either runs
// as the keeper of a program, or confines itself and runs a command. In the second case it is
// the first process of its namespace. When it ends, the kernel kills all processes of the
// command.
func Child() {
	if os.Args[1] == keeperArgument {
		keep(os.Args[2:])
	}
	// Handle all signals, so that they cannot end this process. They must not be ignored
	// instead: the command would inherit ignored signals.
	signal.Notify(make(chan os.Signal, 1))
	runtime.LockOSThread() // confinement applies to a thread, and this thread starts the command
	unix.CloseOnExec(specFile)
	unix.CloseOnExec(reportFile)
	var r childReport
	err := confineAndRun(&r)
	if err != nil {
		r.Failed = err.Error()
	}
	r.exit()
}

// confineAndRun confines this process, runs the command, and fills in the report.
func confineAndRun(r *childReport) error {
	var spec childSpec
	life := os.NewFile(specFile, "spec")
	if err := json.NewDecoder(life).Decode(&spec); err != nil {
		return fmt.Errorf("read what to run: %w", err)
	}
	if err := spec.confine(r); err != nil {
		return err
	}
	r.Began = true
	if err := r.send(); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	go func() {
		_, _ = io.Copy(io.Discard, life) // returns when the parent closes the pipe or ends
		os.Exit(1)
	}()
	pid, err := spec.start()
	if err != nil {
		r.Errno, _ = errors.AsType[syscall.Errno](err)
		return err
	}
	ended := make(chan error, 1)
	go func() {
		var err error
		r.ExitCode, err = reap(pid)
		ended <- err
	}()
	if spec.Counted {
		return <-ended
	}
	// On older kernels with Landlock, only the thread that started the command can see the
	// command's processes. This is that thread.
	return memoryWatch{limit: spec.Limits.Memory, socket: int64(spec.socket)}.watch(r, ended)
}

// waitThenRun is the script that a command's shell runs first. It waits until the child has set
// its limits, and then executes the command's shell. The child cannot set these limits for
// itself, because they would limit its own work too.
const waitThenRun = `read -r go <&3 && exec 3<&- && exec "$0" -c "$1"`

// start starts the shell, sets its limits, and lets it run the command.
func (spec *childSpec) start() (int, error) {
	shell := "/bin/sh"
	if _, err := os.Stat("/bin/bash"); err == nil {
		shell = "/bin/bash"
	}
	gate, opener, err := os.Pipe()
	if err != nil {
		return 0, err
	}
	defer gate.Close()
	defer opener.Close()
	args := []string{"/bin/sh", "-c", waitThenRun, shell, spec.Script}
	pid, err := syscall.ForkExec("/bin/sh", args, &syscall.ProcAttr{Dir: insideFolder,
		Env: commandEnvironment(insideFolder, "/tmp"), Files: []uintptr{0, 1, 2, gate.Fd()},
		Sys: &syscall.SysProcAttr{Setsid: true}})
	if err != nil {
		return 0, fmt.Errorf("start shell: %w", err)
	}
	if err := spec.limit(pid); err != nil {
		return 0, err
	}
	_, err = opener.WriteString("go\n")
	return pid, err
}

// niceness is the nice value of commands. Their priority is below that of the service and of
// the processes that watch commands.
const niceness = 10

// limit sets the limits of the process pid, which its children inherit.
func (spec *childSpec) limit(pid int) error {
	// A service that was started with a lower priority cannot raise that of its children.
	reversed, err := unix.Getpriority(unix.PRIO_PROCESS, pid)
	if err == nil {
		err = unix.Setpriority(unix.PRIO_PROCESS, pid, max(niceness, 20-reversed)) // the kernel returns 20 - nice
	}
	if err != nil {
		return fmt.Errorf("lower priority: %w", err)
	}
	// Address space is not limited: programs reserve much more than they use.
	limits := map[int]uint64{
		unix.RLIMIT_CPU: uint64(spec.CPU.Seconds()) + 1, unix.RLIMIT_FSIZE: uint64(spec.Limits.FileSize),
		unix.RLIMIT_NPROC: uint64(spec.Limits.Processes), unix.RLIMIT_NOFILE: uint64(spec.Limits.OpenFiles),
		unix.RLIMIT_CORE: 0, unix.RLIMIT_MEMLOCK: 64 << 10, unix.RLIMIT_MSGQUEUE: 0, unix.RLIMIT_SIGPENDING: 1024,
		unix.RLIMIT_RTPRIO: 0, unix.RLIMIT_NICE: 0,
	}
	if !spec.Counted && !hasProc() {
		limits[unix.RLIMIT_DATA] = uint64(spec.Limits.Memory) // without /proc the memoryWatch cannot count processes
	}
	return limitProcess(pid, limits)
}

// reap waits for the process pid and returns its exit code. It also collects all orphans, which
// become children of this process: it is the first process of the namespace.
func reap(pid int) (int, error) {
	for {
		var status syscall.WaitStatus
		got, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return 0, fmt.Errorf("wait for the command: %w", err)
		case got == pid:
			return exitCode(status), nil
		}
	}
}
