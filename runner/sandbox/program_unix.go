//go:build unix

package sandbox

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// StartProgram starts a program in a session of its own. On Linux, this program is started
// again as a keeper, which starts the program. The keeper kills the program and all its
// descendants when this process ends, even by a crash. On other systems the program only reads
// the end of its input.
func StartProgram(prog Program) (*Process, error) {
	inOut, inIn, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	outOut, outIn, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, inOut.Close(), inIn.Close())
	}
	p := &Process{Stdin: inIn, Stdout: outOut, done: make(chan struct{})}
	cmd, theirs, err := p.command(prog)
	if err != nil {
		return nil, errors.Join(err, inOut.Close(), inIn.Close(), outOut.Close(), outIn.Close())
	}
	cmd.Env, cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = prog.Env, prog.Dir, inOut, outIn, prog.Stderr
	cmd.WaitDelay = waitForStderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = cmd.Start()
	for _, f := range append(theirs, inOut, outIn) {
		_ = f.Close() // the other process has its own copy
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start %s: %w", prog.Path, err), p.closeFiles())
	}
	p.kill = func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) } // fails if the process has ended
	go func() {
		_ = cmd.Wait() // the exit status is not needed: standard error has more information
		p.kill()       // kill processes that stayed in its group
		close(p.done)
	}()
	return p, nil
}
