package sandbox

import (
	"errors"
	"io"
	"os"
	"sync"
	"time"
)

// A Program is a long-running program that the operator has configured, such as an MCP server.
// It is not confined: it has all rights of this user.
type Program struct {
	Path   string    // path of the executable, as exec.LookPath returns it
	Args   []string  // without the program name
	Env    []string  // complete environment
	Dir    string    // working folder; "" for the one of this program
	Stderr io.Writer // receives its standard error; must not block
}

// A Process is a running Program with all processes that it has started.
type Process struct {
	Stdin  *os.File // write end of its standard input
	Stdout *os.File // read end of its standard output

	life *os.File      // closing it makes the keeper kill all processes; nil without a keeper
	done chan struct{} // closed when the program has ended, on Linux with all processes that it started
	kill func()        // kills its process group immediately
	once sync.Once
}

const (
	killIn        = 5 * time.Second // time for a keeper to kill all processes
	waitForStderr = time.Second     // time for standard error to close after the program's end
)

// Stop ends the program and returns when it has ended. It first closes the program's input, so
// that the program may exit within grace. Then it kills the program with all processes that it
// has started. Stop may be called more than once, and concurrently.
func (p *Process) Stop(grace time.Duration) {
	p.once.Do(func() {
		_ = p.Stdin.Close() // unwritten bytes are discarded
		if !p.goneIn(grace) {
			if p.life != nil {
				_ = p.life.Close() // makes the keeper kill all processes
			} else {
				p.kill()
			}
			if !p.goneIn(killIn + time.Second) { // the keeper itself does not respond
				p.kill()
			}
		}
		<-p.done
		_ = p.closeFiles() // some are closed already
	})
	<-p.done
}

// closeFiles closes this process's ends of all pipes.
func (p *Process) closeFiles() error {
	err := errors.Join(p.Stdin.Close(), p.Stdout.Close())
	if p.life != nil {
		err = errors.Join(err, p.life.Close())
	}
	return err
}

func (p *Process) goneIn(d time.Duration) bool {
	select {
	case <-p.done:
		return true
	case <-time.After(d):
		return false
	}
}
