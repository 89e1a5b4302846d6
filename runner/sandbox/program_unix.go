//go:build unix

package sandbox

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// StartProgram starts a program in a session of its own. On Linux a keeper, which
// is this program started again, kills it and all that it has started when this
// process ends, however that happens; elsewhere it sees the end of its input.
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
		_ = f.Close() // the other process has its own
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start %s: %w", prog.Path, err), inIn.Close(), outOut.Close())
	}
	p.kill = func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) } // it may be gone
	go func() {                                                             // ends with the process
		_ = cmd.Wait() // how it ended is no news: what it said on stderr is
		p.kill()       // what stayed in its group
		close(p.done)
	}()
	return p, nil
}
