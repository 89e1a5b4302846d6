//go:build amd64 || arm64

package sandbox

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"journeyman/runner/workspace"

	"github.com/matryer/is"
	"golang.org/x/sys/unix"
)

// bombSize is the memory that a bomb must allocate to count as escaped, in bytes. It is large
// enough for a clear result, and small enough not to harm the test machine.
const bombSize = 3 << 29

// bombs allocate memory that the figures of their process do not include, one step at a time.
// Each step returns the number of bytes that it has allocated.
var bombs = map[string]func() (int64, error){
	"shared memory given back": func() (int64, error) { return hideMapping(-1, unix.MAP_SHARED|unix.MAP_ANONYMOUS) },
	"no first thread": func() (int64, error) {
		endFirstThread()
		b, err := unix.Mmap(-1, 0, step, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
		if err != nil {
			return 0, err
		}
		touch(b)
		return step, nil
	},
	"memory in files": func() (int64, error) {
		fd, err := unix.MemfdCreate("x", 0)
		if err != nil {
			return 0, err
		}
		if err := unix.Ftruncate(fd, step); err != nil {
			return 0, err
		}
		return hideMapping(fd, unix.MAP_SHARED)
	},
	"zeros mapped": func() (int64, error) {
		fd, err := unix.Open("/dev/zero", unix.O_RDWR, 0)
		if err != nil {
			return 0, err
		}
		defer unix.Close(fd)
		return hideMapping(fd, unix.MAP_SHARED)
	},
	"System V memory": func() (int64, error) {
		id, err := unix.SysvShmGet(unix.IPC_PRIVATE, step, 0o600)
		if err != nil {
			return 0, err
		}
		b, err := unix.SysvShmAttach(id, 0, 0)
		if err != nil {
			return 0, err
		}
		touch(b)
		return step, unix.SysvShmDetach(b)
	},
	"page tables": func() (int64, error) {
		const sparse = 64 << 30
		b, err := unix.Mmap(-1, 0, sparse, unix.PROT_READ, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
		if err != nil {
			return 0, err
		}
		_ = unix.Madvise(b, unix.MADV_NOHUGEPAGE) // it fails on systems without huge pages, where it is not needed
		var seen byte
		for i := 0; i < len(b); i += 2 << 20 {
			seen |= b[i]
		}
		return sparse/(2<<20)*4096 + int64(seen), nil
	},
	"pages in pipes": func() (int64, error) {
		var p [2]int
		if err := unix.Pipe2(p[:], unix.O_NONBLOCK|unix.O_CLOEXEC); err != nil {
			return 0, err
		}
		b, err := unix.Mmap(-1, 0, 64<<10, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
		if err != nil {
			return 0, err
		}
		touch(b)
		iov := unix.Iovec{Base: &b[0]}
		iov.SetLen(len(b))
		n, err := unix.Vmsplice(p[1], []unix.Iovec{iov}, 0)
		return int64(n), errors.Join(err, unix.Munmap(b))
	},
	"pipes": func() (int64, error) {
		var p [2]int
		if err := unix.Pipe2(p[:], unix.O_NONBLOCK|unix.O_CLOEXEC); err != nil {
			return 0, err
		}
		return fill(p[1]), nil
	},
	"pairs of sockets":     func() (int64, error) { return pair(unix.SOCK_STREAM) },
	"pairs with packets":   func() (int64, error) { return pair(unix.SOCK_SEQPACKET) },
	"pairs with datagrams": func() (int64, error) { return pair(unix.SOCK_DGRAM) },
	"sockets with larger buffers": func() (int64, error) {
		p, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return 0, err
		}
		if err := unix.SetsockoptInt(p[0], unix.SOL_SOCKET, unix.SO_SNDBUF, 64<<20); err != nil {
			return 0, err
		}
		return fill(p[0]), nil
	},
	"datagrams of closed sockets": func() (int64, error) {
		name := fmt.Sprintf("@%d.%d", os.Getpid(), time.Now().UnixNano())
		receiver, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err == nil {
			err = unix.Bind(receiver, &unix.SockaddrUnix{Name: name})
		}
		var sum int64
		for err == nil {
			var sender int
			if sender, err = unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0); err != nil {
				break
			}
			if unix.Sendto(sender, make([]byte, 200<<10), 0, &unix.SockaddrUnix{Name: name}) != nil {
				return sum, unix.Close(sender) // the receiver's queue is full
			}
			sum += 200 << 10
			err = unix.Close(sender)
		}
		return sum, err
	},
	"TCP connections": func() (int64, error) {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return 0, err
		}
		defer ln.Close()
		c, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			return 0, err
		}
		accepted, err := ln.Accept()
		if err != nil {
			return 0, err
		}
		hoard = append(hoard, c, accepted)
		return writeAll(c) + writeAll(accepted), nil
	},
	"UDP datagrams": func() (int64, error) {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
		if err == nil {
			err = unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}})
		}
		if err != nil {
			return 0, err
		}
		own, err := unix.Getsockname(fd)
		for range 10 {
			err = errors.Join(err, unix.Sendto(fd, make([]byte, 50<<10), 0, own))
		}
		return 200 << 10, err // the rest was dropped
	},
}

// step is the number of bytes that a bomb maps per step.
const step = 16 << 20

// hoard contains connections that must stay open.
var hoard []net.Conn

// hideMapping fills a mapping and releases its pages, which nevertheless stay in memory.
func hideMapping(fd, flags int) (int64, error) {
	b, err := unix.Mmap(fd, 0, step, unix.PROT_READ|unix.PROT_WRITE, flags)
	if err != nil {
		return 0, err
	}
	touch(b)
	return step, unix.Madvise(b, unix.MADV_DONTNEED)
}

// endFirstThread ends the first thread of this process, whose figures then have no memory.
var endFirstThread = sync.OnceFunc(func() {
	for ended := false; !ended; {
		first := make(chan bool)
		go func() {
			runtime.LockOSThread() // so that each goroutine has another thread
			here := unix.Gettid() == unix.Getpid()
			first <- here
			if here {
				_, _, _ = unix.Syscall(unix.SYS_EXIT, 0, 0, 0) // of the thread alone
			}
			select {}
		}()
		ended = <-first
	}
})

func touch(b []byte) {
	for i := 0; i < len(b); i += 4096 {
		b[i] = 1
	}
}

func pair(kind int) (int64, error) {
	p, err := unix.Socketpair(unix.AF_UNIX, kind|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	return fill(p[0]) + fill(p[1]), nil
}

// fill writes until the buffer is full.
func fill(fd int) (sum int64) {
	for b := make([]byte, 64<<10); ; {
		n, err := unix.Write(fd, b)
		if err != nil {
			return sum
		}
		sum += int64(n)
	}
}

func writeAll(c net.Conn) (sum int64) {
	_ = c.SetWriteDeadline(time.Now().Add(2 * time.Millisecond)) // never fails for an open connection
	for b := make([]byte, 64<<10); ; {
		n, err := c.Write(b)
		sum += int64(n)
		if err != nil {
			return sum
		}
	}
}

// bomb allocates memory in one way. When it cannot open more files, it continues in a child
// process, which does not inherit its files. It returns nil if it could allocate bombSize.
func bomb(name string, taken int64) error {
	var spare [6]int // files that starting a child needs
	for i := range spare {
		spare[i], _ = unix.Dup(0)
	}
	for taken < bombSize {
		n, err := bombs[name]()
		taken += n
		if errors.Is(err, unix.EMFILE) {
			for _, fd := range spare {
				_ = unix.Close(fd)
			}
			return goOn(name, taken)
		}
		if err != nil {
			return fmt.Errorf("after %d MiB: %w", taken>>20, err)
		}
	}
	time.Sleep(2 * time.Second) // gives the memory watch time to stop this process; not reached if it works
	return nil
}

// goOn starts a child process that continues.
func goOn(name string, taken int64) error {
	args := []string{os.Args[0], "escape", "bomb", name, strconv.FormatInt(taken, 10)}
	pid, err := syscall.ForkExec(args[0], args, &syscall.ProcAttr{Env: os.Environ(), Files: []uintptr{0, 1, 2}})
	if err != nil {
		return err
	}
	var status unix.WaitStatus
	if _, err := unix.Wait4(pid, &status, 0, nil); err != nil {
		return err
	}
	if status.ExitStatus() != 0 {
		return fmt.Errorf("a child ended with %d", status.ExitStatus())
	}
	return nil
}

// escapeByHiddenMemory allocates memory that no process's figures include, and measures how
// much of the machine's memory is missing.
func (p *prison) escapeByHiddenMemory(t *testing.T) {
	for name := range bombs {
		t.Run(name, func(t *testing.T) {
			peak := watchPeak(t)
			r := p.run(t, "exec ./escape escape bomb '"+name+"' 0", patience)
			took := peak()
			t.Logf("%s: %d MiB of the machine's memory, %v: %d %q %.100s", name, took>>20, r.Duration, r.ExitCode, r.Stopped, r.Output)
			if r.Stopped != StopMemory && (r.ExitCode != 3 || r.Stopped != "") {
				t.Fatalf("it ended with %d %q after %v:\n%.500s", r.ExitCode, r.Stopped, r.Duration, r.Output)
			}
		})
	}
}

// watchPeak returns a function that returns the maximum decrease of the machine's available
// memory since then. Other programs of the machine disturb this figure.
func watchPeak(t *testing.T) func() int64 {
	t.Helper()
	_, begin := machineMemory()
	least := begin
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				_, now := machineMemory()
				least = min(least, now)
			}
		}
	}()
	return func() int64 { close(stop); <-done; return begin - least }
}

// TestWorkspaceLimitHolds runs many commands that end before the diskWatch can check them.
func TestWorkspaceLimitHolds(t *testing.T) {
	t.Parallel()
	s := shell(t, ShellConfig{})
	const (
		limit, files = 20 << 20, 40
		noNewFiles   = "can make no new ones"
	)
	// Without LONG, half of the scripts run.
	often := []string{"written files", "blocks", "sparse files", "empty files"}
	for name, tt := range map[string]struct{ script, full string }{
		"written files":  {`dd if=/dev/zero of=f$RANDOM bs=64k count=64 2>/dev/null`, "can write no file"},
		"appended files": {`for i in 1 2 3 4; do head -c 1M /dev/zero >> f$i; done`, "can write no file"},
		"blocks beyond":  {`fallocate -n -l 4M f$RANDOM`, ""},
		"blocks":         {`fallocate -l 4M f$RANDOM`, ""},
		"larger blocks":  {`fallocate -l 1G f$RANDOM`, ""},
		"sparse files":   {`truncate -s 4M f$RANDOM`, "can write no file"},
		"empty files":    {`for i in 1 2 3 4 5 6; do : > f$RANDOM$i; done`, noNewFiles},
		"folders":        {`for i in 1 2 3 4 5 6; do mkdir d$RANDOM$i; done`, noNewFiles},
		"links":          {`for i in 1 2 3 4 5 6; do ln -s x l$RANDOM$i; done`, noNewFiles},
	} {
		if rounds(1, 0) == 0 && !slices.Contains(often, name) {
			continue
		}
		if tt.full == noNewFiles && slices.Contains(s.report.Layers, layerLandlock) {
			continue // the doctor command reports this
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			w := open(t, filepath.Join(t.TempDir(), "ws"), workspace.Limits{TotalSize: limit, Files: files})
			var last Result
			for range rounds(30, 9) { // the limit is reached after 7
				r := ran(t, s, w, Command{Script: tt.script, Timeout: 20 * time.Second})
				last = r
			}
			held, err := w.Survey(w.Everything())
			is.NoErr(err)
			if held.Bytes > limit || held.Files > files+6 {
				t.Fatalf("it holds %+v", held)
			}
			if !strings.Contains(last.Note, tt.full) {
				t.Fatalf("it ended with %d and notes %q", last.ExitCode, last.Note)
			}
			r := ran(t, s, w, Command{Script: "rm -rf * 2>/dev/null; echo x > f && mkdir d; cat f"})
			if tt.full == "" {
				is.Equal(r.Output, "x\n")
			}
			is.Equal(strings.Contains(r.Note, "there is room by now"), tt.full != "") // and why it could not write
			r = ran(t, s, w, Command{Script: "echo x > g && mkdir e && cat g"})
			is.Equal(r.Output, "x\n")
			is.Equal(r.Note, "")
		})
	}
}

// TestSignalsToTheFirst sends every signal to the first process of a command's namespace, which
// is this program.
func TestSignalsToTheFirst(t *testing.T) {
	t.Parallel()
	s := shell(t, ShellConfig{})
	w := open(t, filepath.Join(t.TempDir(), "ws"), workspace.Limits{})
	for _, script := range []string{
		"kill -TERM 1",
		"for i in $(seq 1 64); do kill -$i 1; done",
		"for i in $(seq 300); do kill -TERM 1; kill -SEGV 1; done",
	} {
		r := ran(t, s, w, Command{Script: script + " 2>/dev/null; trap 'echo heard' INT; kill -INT $$; echo alive"})
		if r.Output != "heard\nalive\n" || r.ExitCode != 0 { // the command still receives its own signals
			t.Fatalf("%s ended with %d %q: %q", script, r.ExitCode, r.Stopped, r.Output)
		}
	}
}

// TestFirstKilled kills the first process from outside, as a kernel without free memory does.
func TestFirstKilled(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	s := shell(t, ShellConfig{})
	w := open(t, filepath.Join(t.TempDir(), "ws"), workspace.Limits{})
	marker := fmt.Sprintf("888.%d", os.Getpid())
	type ended struct {
		r   Result
		err error
	}
	done := make(chan ended, 1)
	go func() {
		r, err := s.Run(t.Context(), w, Command{Script: "echo begun; sleep " + marker})
		done <- ended{r, err}
	}()
	eventually(t, "the processes", func() bool { return len(processes(t, marker)) > 0 })
	pid, err := strconv.Atoi(strings.Split(processes(t, marker)[0], "/")[2])
	is.NoErr(err)
	first := parentOf(pid)
	if parentOf(first) != os.Getpid() {
		first = parentOf(first) // the shell started the sleep as a child: go up to the shell's parent
	}
	is.Equal(parentOf(first), os.Getpid())
	is.NoErr(unix.Kill(first, unix.SIGKILL))
	e := <-done
	is.NoErr(e.err) // an error of the command, not of the machine
	is.Equal(e.r.Stopped, StopKilled)
	is.Equal(e.r.Output, "begun\n")
}
