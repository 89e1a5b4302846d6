package sandbox

import (
	"io"
	"os"
	"sync"
	"time"
)

// A Program is a long-running program that the operator has configured, such as an MCP
// server. It is not confined: it has all rights of this user.
type Program struct {
	Path   string    // of the executable, as exec.LookPath returns it
	Args   []string  // after its name
	Env    []string  // its whole environment
	Dir    string    // its working folder; "": this program's
	Stderr io.Writer // receives its standard error; must not block
}

// A Process is a running Program with all processes that it has started.
type Process struct {
	Stdin  *os.File // write end of its standard input
	Stdout *os.File // read end of its standard output

	life *os.File      // the keeper kills once this is closed; nil without a keeper
	done chan struct{} // closed when the program is gone; on Linux also all that it started
	kill func()        // kills its process group at once
	once sync.Once
}

const (
	killIn        = 5 * time.Second // time for a keeper to kill all processes
	waitForStderr = time.Second     // for standard error to close after the program has ended
)

// Stop ends the program and returns when it is gone. The program first sees the end of
// its input and may leave within grace. Then it is killed with all processes that it
// has started. Stop may be called more than once, and concurrently.
func (p *Process) Stop(grace time.Duration) {
	p.once.Do(func() {
		_ = p.Stdin.Close() // nobody needs the unwritten bytes
		if !p.goneIn(grace) {
			if p.life != nil {
				_ = p.life.Close() // the keeper kills
			} else {
				p.kill()
			}
			if !p.goneIn(killIn + time.Second) { // the keeper itself hangs
				p.kill()
			}
		}
		<-p.done
		if p.life != nil {
			_ = p.life.Close()
		}
		_ = p.Stdout.Close()
	})
	<-p.done
}

func (p *Process) goneIn(d time.Duration) bool {
	select {
	case <-p.done:
		return true
	case <-time.After(d):
		return false
	}
}
