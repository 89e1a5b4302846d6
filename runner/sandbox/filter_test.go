//go:build linux && (amd64 || arm64)

package sandbox

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"
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

func TestFilterIsStopped(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"hang", "loop"} {
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		_, err := NewFilterPool().Run(ctx, name, nil)
		cancel()
		is.New(t).True(errors.Is(err, context.DeadlineExceeded))
	}
}
