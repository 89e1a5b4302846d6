//go:build amd64 || arm64

package sandbox

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store/ordertest"
)

// kept starts a shell script as a program, and stops it at the end of the test.
func kept(t *testing.T, script string, stderr io.Writer) *Process {
	t.Helper()
	p, err := StartProgram(Program{Path: "/bin/sh", Args: []string{"-c", script}, Env: []string{"PATH=/usr/bin:/bin", "GREETING=hello"},
		Dir: t.TempDir(), Stderr: stderr})
	is.New(t).NoErr(err)
	t.Cleanup(func() { p.Stop(0) })
	return p
}

// pidsOf reads n lines with process ids.
func pidsOf(t *testing.T, r io.Reader, n int) []int {
	t.Helper()
	var pids []int
	for lines := bufio.NewScanner(r); len(pids) < n && lines.Scan(); {
		pid, err := strconv.Atoi(strings.TrimSpace(lines.Text()))
		is.New(t).NoErr(err)
		pids = append(pids, pid)
	}
	if len(pids) < n {
		t.Fatalf("%d of %d process ids", len(pids), n)
	}
	return pids
}

// goneSoon waits until all the processes have ended.
func goneSoon(t *testing.T, pids []int) {
	t.Helper()
	for _, pid := range pids {
		eventually(t, fmt.Sprintf("process %d to end", pid), func() bool {
			state, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
			return err != nil || bytes.Contains(state, []byte(") Z "))
		})
	}
}

// daemons leaves processes behind in every way that a shell offers.
const daemons = `sleep 1000 & echo $!
setsid sleep 1000 & echo $!
(setsid sh -c 'sleep 1000 & echo $!; exec sleep 1000' & echo $!)
trap "" TERM HUP INT
`

func TestProgramSession(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	var stderr bytes.Buffer // it is complete when the program is done
	p := kept(t, `echo "$GREETING $HOME"; echo trouble >&2; cat; echo bye`, &stderr)
	out := bufio.NewReader(p.Stdout)
	line, err := out.ReadString('\n')
	is.NoErr(err)
	is.Equal(line, "hello \n") // only the configured environment, without HOME
	_, err = p.Stdin.WriteString("ping\n")
	is.NoErr(err)
	line, err = out.ReadString('\n')
	is.NoErr(err)
	is.Equal(line, "ping\n")
	is.NoErr(p.Stdin.Close()) // ends its cat
	rest, err := io.ReadAll(out)
	is.NoErr(err)
	is.Equal(string(rest), "bye\n")
	<-p.done
	is.Equal(stderr.String(), "trouble\n")
	p.Stop(time.Minute) // it has already ended
	p.Stop(0)
}

func TestNothingOutlivesAProgram(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		after string // what the program does after it has started its daemons
		stop  func(*Process)
	}{
		"that is stopped":       {"sleep 1000", func(p *Process) { p.Stop(0) }},
		"that leaves by itself": {"cat >/dev/null", func(p *Process) { p.Stop(time.Minute) }},
		"that ended before":     {"read go; exit 3", func(p *Process) { _, _ = p.Stdin.WriteString("go\n"); <-p.done }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := kept(t, daemons+tt.after, nil)
			pids := pidsOf(t, p.Stdout, 4)
			tt.stop(p)
			goneSoon(t, pids)
		})
	}
}

func TestMissingProgramDoesNotStart(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	var stderr bytes.Buffer // it is complete when the program is done
	p, err := StartProgram(Program{Path: "/nowhere/at/all", Stderr: &stderr})
	is.NoErr(err) // the keeper has started
	<-p.done
	is.True(strings.Contains(stderr.String(), "no such file")) // the error is in its standard error
	p.Stop(0)
	_, err = StartProgram(Program{Path: "/bin/sh", Dir: "/nowhere/at/all"})
	is.True(err != nil)
}

// TestUnstartedProgramLeavesNoFiles starts programs in a folder that does not exist. No file stays open.
// The test is not parallel, because other tests open files.
func TestUnstartedProgramLeavesNoFiles(t *testing.T) {
	is := is.New(t)
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // the collector closes files that nothing refers to
	count := func() int {
		entries, err := os.ReadDir("/proc/self/fd")
		is.NoErr(err)
		return len(entries)
	}
	before := count()
	for range 10 {
		_, err := StartProgram(Program{Path: "/bin/sh", Dir: "/nowhere/at/all"})
		is.True(err != nil)
	}
	ordertest.AtMost(is, count(), before) // earlier tests may close files meanwhile
}

// TestProgramEndsWithItsParent kills, with SIGKILL, a process that runs a program.
func TestProgramEndsWithItsParent(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	cmd := exec.Command(os.Args[0], "run-program", daemons+"sleep 1000")
	out, err := cmd.StdoutPipe()
	is.NoErr(err)
	is.NoErr(cmd.Start())
	pids := pidsOf(t, out, 4)
	is.NoErr(cmd.Process.Signal(syscall.SIGKILL))
	_ = cmd.Wait() // it was killed
	goneSoon(t, pids)
}

// runProgram runs a script as a program until its end, and copies its output.
func runProgram(script string) int {
	p, err := StartProgram(Program{Path: "/bin/sh", Args: []string{"-c", script}, Env: []string{"PATH=/usr/bin:/bin"}})
	if err != nil {
		return 1
	}
	_, _ = io.Copy(os.Stdout, p.Stdout) // until it is killed
	return 0
}
