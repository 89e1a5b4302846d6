//go:build amd64 || arm64

package sandbox

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// waitForStderr is how long the standard error of a program that has ended is
// waited for.
const waitForStderr = time.Second

// keeperArgument makes this program, started by itself, the keeper of the program
// that the arguments after it name.
const keeperArgument = "-kept-program"

// lifeFile is what a keeper reads until its parent's end.
const lifeFile = 3

// command is what starts prog: a keeper. theirs are the files it has then.
func (p *Process) command(prog Program) (cmd *exec.Cmd, theirs []*os.File, err error) {
	lifeOut, lifeIn, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	p.life = lifeIn
	cmd = exec.Command("/proc/self/exe", append([]string{keeperArgument, prog.Path}, prog.Args...)...)
	cmd.ExtraFiles = []*os.File{lifeOut}
	return cmd, []*os.File{lifeOut}, nil
}

// keep runs the program that args name, until it ends or the parent does. What it
// has started is killed then: orphans are this process's children, wherever in the
// tree they were, so none is lost from sight.
func keep(args []string) {
	unix.CloseOnExec(lifeFile)
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		os.Exit(1)
	}
	pid, err := syscall.ForkExec(args[0], args, &syscall.ProcAttr{Env: os.Environ(), Files: []uintptr{0, 1, 2}})
	if err != nil {
		_, _ = os.Stderr.WriteString("start " + args[0] + ": " + err.Error() + "\n") // there is nobody else to tell
		os.Exit(127)
	}
	leaveStandardFiles()
	orphaned := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, os.NewFile(lifeFile, "life")) // nothing comes but its end
		close(orphaned)
	}()
	ended, gone := make(chan int, 1), make(chan struct{})
	go reapAll(pid, ended, gone)
	code := 1
	select {
	case code = <-ended:
	case <-orphaned:
	}
	for end := time.Now().Add(killIn); time.Now().Before(end); {
		killBelow()
		select {
		case <-gone:
			os.Exit(code)
		case <-time.After(5 * time.Millisecond):
		}
	}
	os.Exit(code)
}

// leaveStandardFiles closes this process's ends of what is the program's alone: who
// reads from it must see when it has closed its own.
func leaveStandardFiles() {
	null, err := unix.Open(os.DevNull, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		os.Exit(1)
	}
	for fd := range 3 {
		if err := unix.Dup3(null, fd, 0); err != nil {
			os.Exit(1)
		}
	}
}

// reapAll waits for every child until there is none, and tells of pid's end.
func reapAll(pid int, ended chan<- int, gone chan<- struct{}) {
	for {
		var status unix.WaitStatus
		got, err := unix.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil: // no child is left
			close(gone)
			return
		case got == pid && status.Signaled():
			ended <- 128 + int(status.Signal())
		case got == pid:
			ended <- status.ExitStatus()
		}
	}
}

// killBelow kills all that descends from this process.
func killBelow() {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return
	}
	children := map[int][]int{}
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			parent := parentOf(pid)
			children[parent] = append(children[parent], pid)
		}
	}
	for below := children[os.Getpid()]; len(below) > 0; {
		pid := below[0]
		below = append(below[1:], children[pid]...)
		_ = unix.Kill(pid, unix.SIGKILL) // it may be gone, or another user's
	}
}

// parentOf is the process that pid is a child of, 0 where it is gone.
func parentOf(pid int) int {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0
	}
	// The second field is a name in parentheses, which may hold anything.
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	if len(fields) < 2 {
		return 0
	}
	parent, err := strconv.Atoi(fields[1])
	if err != nil {
		return 0
	}
	return parent
}
