//go:build amd64 || arm64

package sandbox

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"journeyman/runner/workspace"

	"github.com/matryer/is"
	"golang.org/x/sys/unix"
)

// A prison is a server with all objects that a hostile command would like to reach. The escape
// tests attack it.
type prison struct {
	shell     *Shell
	dir       string // the data folder: database, control socket, workspaces
	w         *workspace.Workspace
	loopback  net.Listener
	abstract  net.Listener
	reached   chan string // receives the name of each object that a command reached
	keptOpen  *os.File    // open in the server, and not closed at an exec
	neighbour string      // a secret in another worker's workspace
}

const theSecret = "the secret that no command may learn"

// newPrison creates such a server in a folder that other users may enter, so that file
// permissions alone protect nothing.
func newPrison(t *testing.T) *prison {
	t.Helper()
	is := is.New(t)
	p := &prison{dir: t.TempDir(), reached: make(chan string, 100)}
	is.NoErr(os.Chmod(p.dir, 0o755))
	is.NoErr(os.WriteFile(p.path("journeyman.db"), []byte(theSecret), 0o666))
	p.neighbour = p.path("workspaces/wrk_2/secret")
	is.NoErr(os.MkdirAll(filepath.Dir(p.neighbour), 0o777))
	is.NoErr(os.WriteFile(p.neighbour, []byte(theSecret), 0o666))
	p.w = open(t, p.path("workspaces/wrk_1"), workspace.Limits{TotalSize: 64 << 20, Files: 500})
	// The test program itself runs inside.
	is.NoErr(copyFile("/proc/self/exe", p.path("workspaces/wrk_1/escape")))
	p.listen(t)
	var err error
	p.keptOpen, err = os.Open(p.path("journeyman.db"))
	is.NoErr(err)
	t.Cleanup(func() { p.keptOpen.Close() })
	_, err = unix.FcntlInt(p.keptOpen.Fd(), unix.F_SETFD, 0) // like a file inherited from the server's parent
	is.NoErr(err)
	return p
}

func (p *prison) path(name string) string { return filepath.Join(p.dir, name) }

// listen opens the server's sockets.
func (p *prison) listen(t *testing.T) {
	t.Helper()
	is := is.New(t)
	var err error
	p.loopback, err = net.Listen("tcp", "127.0.0.1:0")
	is.NoErr(err)
	p.abstract, err = net.Listen("unix", "@journeyman-"+strconv.Itoa(os.Getpid()))
	is.NoErr(err)
	short, err := os.MkdirTemp("/tmp", "jm")
	is.NoErr(err)
	t.Cleanup(func() { os.RemoveAll(short) })
	control, err := net.Listen("unix", filepath.Join(short, "s"))
	is.NoErr(err)
	is.NoErr(os.Symlink(filepath.Join(short, "s"), p.path("control.sock")))
	for _, ln := range []net.Listener{p.loopback, p.abstract, control} {
		t.Cleanup(func() { ln.Close() })
		go func() {
			for {
				c, err := ln.Accept()
				if err != nil {
					return // closed at the end of the test
				}
				p.reached <- ln.Addr().String()
				c.Close()
			}
		}()
	}
}

func copyFile(from, to string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o755)
}

// run runs a script, with the locations of all objects in variables.
func (p *prison) run(t *testing.T, script string, timeout time.Duration) Result {
	t.Helper()
	known := fmt.Sprintf("DB=%s NEXT=%s PID=%d CONTROL=%s ABSTRACT=%s LOOPBACK=%s\n", p.path("journeyman.db"), p.neighbour,
		os.Getpid(), p.path("control.sock"), p.abstract.Addr(), p.loopback.Addr())
	r := ran(t, p.shell, p.w, Command{Script: known + script, Timeout: timeout})
	return r
}
