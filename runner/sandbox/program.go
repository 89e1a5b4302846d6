package sandbox

import (
	"io"
	"os"
	"sync"
	"time"
)

// A Program is a long-lived program that the operator wants to run beside this
// one. It is not confined: it may do what this user may.
type Program struct {
	Path   string    // of the executable, as exec.LookPath gives it
	Args   []string  // after its name
	Env    []string  // all of its environment
	Dir    string    // where it starts; where this program did if empty
	Stderr io.Writer // for its standard error; must not block
}

// A Process is a running Program, with all that it has started.
type Process struct {
	Stdin  *os.File // what it reads
	Stdout *os.File // what it writes

	life *os.File      // nil where no keeper watches over it
	done chan struct{} // closed when it is gone
	kill func()        // the process group, at once
	once sync.Once
}

// killIn is how long a keeper has to end what it keeps.
const killIn = 5 * time.Second

// Done is closed when the program has ended. On Linux all that it had started is
// gone then.
func (p *Process) Done() <-chan struct{} { return p.done }

// Stop ends the program: it sees the end of its input, has until grace is over to
// leave, and is killed with all that it has started. Stop returns when it is gone.
// It may be called more than once, and concurrently.
func (p *Process) Stop(grace time.Duration) {
	p.once.Do(func() {
		_ = p.Stdin.Close() // what is unwritten is of no use any more
		if !p.goneIn(grace) {
			if p.life != nil {
				_ = p.life.Close() // the keeper kills
			} else {
				p.kill()
			}
			if !p.goneIn(killIn + time.Second) {
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
