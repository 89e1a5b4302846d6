//go:build amd64 || arm64

package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// childArgument makes this program, started by itself, the first process of a
// command. A test program without IsChild would run its tests instead, and start
// itself again from there, if it did not refuse this as an unknown flag.
const childArgument = "-sandboxed-command"

// The files a child starts with, after the standard three.
const (
	specFile   = 3 // its childSpec; open as long as the parent wants it to live
	reportFile = 4 // where its childReport goes
)

// insideID is the user and group that commands see themselves as. It is not 0:
// programs that take themselves for root try what they cannot.
const insideID = 1000

// A childSpec is what a child is to do.
type childSpec struct {
	Folder string // the workspace, as an absolute path
	Script string
	Hide   []string
	Limits ShellLimits
	CPU    time.Duration // of each process
	Leave  bool          // the parent's groups, which only a privileged one may

	folder int // Folder, open
}

// A childReport is what became of it.
type childReport struct {
	Failed   string   // what could not be confined; then nothing was run
	Layers   []string // of confinement that were not to be had
	Landlock int      // version of its interface, 0 for none
	ExitCode int
	Stopped  Stop
}

// IsChild says whether args, which are os.Args, ask this process to be Child. The
// program's main must look before anything else.
func IsChild(args []string) bool {
	return len(args) == 2 && args[1] == childArgument || len(args) > 2 && args[1] == keeperArgument
}

// Child is all that this process does: it keeps a program, or confines itself,
// runs a command, and exits. Then it is the first process of its namespace: with
// it dies all that the command has started.
func Child() {
	if os.Args[1] == keeperArgument {
		keep(os.Args[2:])
	}
	runtime.LockOSThread() // what confines is a matter of threads, and this one starts the command
	unix.CloseOnExec(specFile)
	unix.CloseOnExec(reportFile)
	var r childReport
	err := confineAndRun(&r)
	if err != nil {
		r.Failed = err.Error()
	}
	r.exit()
}

// exit tells the report and ends this process, and so the command. It does so by
// the system call alone: os.Exit would wait a second where there is a race detector.
func (r childReport) exit() {
	data, err := json.Marshal(r)
	if err == nil {
		_, err = unix.Write(reportFile, data) // fits the pipe: it cannot block
	}
	if err != nil {
		syscall.Exit(1) // the parent sees that there is no report
	}
	syscall.Exit(0)
}

func confineAndRun(r *childReport) error {
	var spec childSpec
	life := os.NewFile(specFile, "spec")
	if err := json.NewDecoder(life).Decode(&spec); err != nil {
		return fmt.Errorf("read what to run: %w", err)
	}
	if err := spec.confine(r); err != nil {
		return err
	}
	if !hasProc() {
		r.Layers = append(r.Layers, layerProc)
	}
	go func() {
		// Nothing more comes. What ends this read is the parent's end.
		_, _ = io.Copy(io.Discard, life)
		os.Exit(1)
	}()
	go spec.watchMemory(*r) // ends with the process
	pid, err := spec.start()
	if err != nil {
		return err
	}
	r.ExitCode, err = reap(pid)
	return err
}

// waitThenRun is what a command's shell runs first: it waits to be limited, which
// this process cannot be itself, and becomes the shell of the command.
const waitThenRun = `read -r go <&3 && exec 3<&- && exec "$0" -c "$1"`

// start starts the shell and limits it before it runs the command.
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
	pid, err := syscall.ForkExec("/bin/sh", []string{"/bin/sh", "-c", waitThenRun, shell, spec.Script}, &syscall.ProcAttr{
		Dir: insideFolder, Env: commandEnvironment(insideFolder, "/tmp"), Files: []uintptr{0, 1, 2, gate.Fd()},
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

// addressSpace bounds what a process may map, in multiples of what it may use:
// many programs map far more than they touch.
const addressSpace = 4

// limit sets the limits of the process pid, which those it starts inherit.
func (spec *childSpec) limit(pid int) error {
	memory := addressSpace * spec.Limits.Memory
	if !hasProc() {
		memory = spec.Limits.Memory // nothing else bounds it: watchMemory cannot
	}
	for what, n := range map[int]int64{
		unix.RLIMIT_CPU: int64(spec.CPU.Seconds()) + 1, unix.RLIMIT_FSIZE: spec.Limits.FileSize, unix.RLIMIT_AS: memory,
		unix.RLIMIT_NPROC: int64(spec.Limits.Processes), unix.RLIMIT_NOFILE: int64(spec.Limits.OpenFiles),
		unix.RLIMIT_CORE: 0, unix.RLIMIT_MEMLOCK: 64 << 10, unix.RLIMIT_MSGQUEUE: 0, unix.RLIMIT_SIGPENDING: 1024,
		unix.RLIMIT_RTPRIO: 0, unix.RLIMIT_NICE: 0,
	} {
		var now unix.Rlimit
		if err := unix.Prlimit(pid, what, nil, &now); err != nil {
			return fmt.Errorf("read limit %d: %w", what, err)
		}
		least := min(uint64(n), now.Max) // the service's own may be lower
		if err := unix.Prlimit(pid, what, &unix.Rlimit{Cur: least, Max: least}, nil); err != nil {
			return fmt.Errorf("set limit %d: %w", what, err)
		}
	}
	return nil
}

// hasProc says whether commands see a /proc, and this process theirs.
func hasProc() bool {
	_, err := os.Stat("/proc/self")
	return err == nil
}

// reap waits for the process pid, and for every orphan that is this one's by
// being the first of its namespace, and gives the exit code of pid.
func reap(pid int) (int, error) {
	for {
		var status unix.WaitStatus
		got, err := unix.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return 0, fmt.Errorf("wait for the command: %w", err)
		case got != pid:
		case status.Signaled():
			return 128 + int(status.Signal()), nil
		default:
			return status.ExitStatus(), nil
		}
	}
}
