//go:build linux && (amd64 || arm64)

package sandbox

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"
	"golang.org/x/sys/unix"
)

// testFilters behave like filters under attack by a hostile document.
var testFilters = map[string]Filter{
	"upper": func(in []byte) ([]byte, error) { return bytes.ToUpper(in), nil },
	"fails": func([]byte) ([]byte, error) { return nil, errors.New("page 7 is torn") },
	"panic": func([]byte) ([]byte, error) { panic("secret of the panic") },
	"hang":  func([]byte) ([]byte, error) { select {} },
	"loop": func(in []byte) ([]byte, error) {
		for n := byte(0); ; n++ {
			if n == 0 && len(in) > 0 { // impossible
				return in, nil
			}
		}
	},
	"memory": func(in []byte) ([]byte, error) {
		all := [][]byte{in}
		for all[0] != nil || len(all) < 1000 {
			all = append(all, bytes.Repeat([]byte("x"), 10<<20))
		}
		return all[0], nil
	},
	"one large": func([]byte) ([]byte, error) { return bytes.Repeat([]byte("x"), 8<<30), nil },
	"much":      func([]byte) ([]byte, error) { return bytes.Repeat([]byte("x"), maxFilterOut+1), nil },
	"environment": func([]byte) ([]byte, error) {
		return []byte(strings.Join(os.Environ(), " ")), nil
	},
	"file": func([]byte) ([]byte, error) { return os.ReadFile("/etc/passwd") },
	"write": func([]byte) ([]byte, error) {
		return nil, os.WriteFile(os.TempDir()+"/filter-was-here", []byte("x"), 0o600)
	},
	"connect": func(in []byte) ([]byte, error) {
		c, err := net.Dial("tcp", string(in))
		if err == nil {
			_ = c.Close()
		}
		return []byte("connected"), err
	},
	"victim":  func([]byte) ([]byte, error) { select {} },
	"open":    func([]byte) ([]byte, error) { os.Exit(filterOpen); return nil, nil }, // as BeFilter does
	"program": func([]byte) ([]byte, error) { return exec.Command("/bin/sh", "-c", "echo started").Output() },
}

func TestFilter(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	out, err := NewFilterPool().Run(t.Context(), "upper", []byte("quiet"))
	is.NoErr(err)
	is.Equal(string(out), "QUIET")
	out, err = NewFilterPool().Run(t.Context(), "much", nil)
	is.NoErr(err)
	is.Equal(len(out), maxFilterOut)
	out, err = NewFilterPool().Run(t.Context(), "environment", nil)
	is.NoErr(err)
	is.True(!strings.Contains(string(out), "PATH=")) // the server's environment is not inherited
	for name, says := range map[string]string{
		"fails": "page 7 is torn", "panic": "damaged", "none": "damaged", "memory": "MiB of memory",
		"one large": "", // the race detector prints another message
	} {
		_, err := NewFilterPool().Run(t.Context(), name, nil)
		var fe *FilterError
		if !errors.As(err, &fe) || !strings.Contains(fe.Message, says) {
			t.Errorf("%s: %v does not say %q", name, err, says)
		}
	}
}

// TestFilterIsKilled kills the process of a filter as the kernel does when the machine has no memory left. The
// error is not about the document.
func TestFilterIsKilled(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	failed := make(chan error, 1)
	go func() {
		_, err := NewFilterPool().Run(t.Context(), "victim", nil)
		failed <- err
	}()
	eventually(t, "the process", func() bool {
		paths, err := filepath.Glob("/proc/[0-9]*/cmdline")
		is.NoErr(err)
		for _, path := range paths {
			line, err := os.ReadFile(path)
			if err != nil || !bytes.Contains(line, []byte("\x00"+filterArgument+"\x00victim\x00")) {
				continue // it has ended, or is another one
			}
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			is.NoErr(err)
			parent, err := procFigures(filepath.Dir(path)+"/status", "PPid")
			if err == nil && parent[0] == int64(os.Getpid()) {
				is.NoErr(unix.Kill(pid, unix.SIGKILL))
				return true
			}
		}
		return false
	})
	var fe *FilterError
	err := <-failed
	is.True(errors.As(err, &fe))
	is.True(strings.Contains(fe.Message, "too little free memory") && !strings.Contains(fe.Message, "damaged"))
}

// TestFilterIsNotConfined checks the error of a machine that cannot confine the process. It is no FilterError, because
// the document has not caused it.
func TestFilterIsNotConfined(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	out, err := NewFilterPool().Run(t.Context(), "open", []byte("a document"))
	is.Equal(out, nil)
	var fe *FilterError
	is.True(err != nil && !errors.As(err, &fe))
	is.True(strings.Contains(err.Error(), "this machine cannot confine the process"))
}

func TestFilterIsStopped(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"hang", "loop"} {
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		_, err := NewFilterPool().Run(ctx, name, nil)
		cancel()
		is.New(t).True(errors.Is(err, context.DeadlineExceeded))
	}
}
