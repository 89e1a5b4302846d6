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

// keeperArgument, as the first argument of this program, makes it a keeper. The other arguments
// are the command line of the program that it runs.
const keeperArgument = "-kept-program"

// lifeFile is a pipe from the keeper's parent. The keeper reads its end when the parent ends.
const lifeFile = 3

// command returns the command that starts prog as a child of a keeper. The caller closes theirs
// after the start.
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

// keep runs the program in args until the program or the parent ends. Then it kills all
// descendants of this process. As a subreaper it becomes the parent of every orphaned
// descendant. So no process can escape by leaving its group or session.
func keep(args []string) {
	unix.CloseOnExec(lifeFile)
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		os.Exit(1)
	}
	pid, err := syscall.ForkExec(args[0], args, &syscall.ProcAttr{Env: os.Environ(), Files: []uintptr{0, 1, 2}})
	if err != nil {
		_, _ = os.Stderr.WriteString("start " + args[0] + ": " + err.Error() + "\n") // the only way to report
		os.Exit(127)
	}
	leaveStandardFiles() // after the start, because the program has its own copies
	orphaned := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, os.NewFile(lifeFile, "life")) // returns when the parent ends
		close(orphaned)
	}()
	ended, gone := make(chan int, 1), make(chan struct{})
	go reapAll(pid, ended, gone)
	code := 1
	select {
	case code = <-ended:
	case <-orphaned:
	}
	// A process can fork while the list is read, so repeat the killing.
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

// leaveStandardFiles replaces this process's standard files by /dev/null. Otherwise the reader
// of the program's output would not notice that the program has closed it.
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

// reapAll waits for all children. It sends the exit code of pid to ended.
func reapAll(pid int, ended chan<- int, gone chan<- struct{}) {
	for {
		var status syscall.WaitStatus
		got, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil: // no children remain
			close(gone)
			return
		case got == pid:
			ended <- exitCode(status)
		}
	}
}

// killBelow kills all descendants of this process.
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
	// Kill parents before their children, so that they start no further ones.
	for below := children[os.Getpid()]; len(below) > 0; {
		pid := below[0]
		below = append(below[1:], children[pid]...)
		_ = unix.Kill(pid, unix.SIGKILL) // fails if it has ended, or belongs to another user
	}
}

// parentOf returns the parent of a process, 0 if the process has ended.
func parentOf(pid int) int {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0
	}
	// The second field is the program's name in parentheses, which may contain any character.
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	if len(fields) < 2 {
		return 0
	}
	parent, _ := strconv.Atoi(fields[1]) // the kernel always writes a number
	return parent
}
