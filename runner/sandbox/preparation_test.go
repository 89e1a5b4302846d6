//go:build linux && (amd64 || arm64)

package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/matryer/is"
	"golang.org/x/sys/unix"
)

// loaded is the program that a process of these tests has loaded, with its folder.
var loaded struct{ program, folder string }

// preparedFilters are the filters of a preparation, and a filter that uses it.
func preparedFilters() map[string]Filter {
	return map[string]Filter{
		"load": func(folder []byte) ([]byte, error) {
			loaded.program, loaded.folder = "compiled here", string(folder)
			if len(folder) == 0 {
				return nil, nil
			}
			b, err := os.ReadFile(filepath.Join(string(folder), "program"))
			loaded.program = string(b)
			return nil, err
		},
		"make": func(folder []byte) ([]byte, error) {
			// A process that compiles can only write into the folder.
			if os.WriteFile(filepath.Join(string(folder), "..", "outside"), nil, 0o600) == nil {
				return nil, errors.New("it can write outside")
			}
			if _, err := os.ReadFile("/etc/passwd"); err == nil {
				return nil, errors.New("it can read outside")
			}
			f, err := os.OpenFile(filepath.Join(string(folder), "made"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
			if err != nil {
				return nil, err
			}
			fmt.Fprintln(f, "once")
			return nil, errors.Join(f.Close(), os.WriteFile(filepath.Join(string(folder), "program"), []byte("kept"), 0o600))
		},
		"make too much": func([]byte) ([]byte, error) {
			all := [][]byte{}
			for len(all) < 1000 {
				all = append(all, []byte(strings.Repeat("x", 10<<20)))
			}
			return all[0], nil
		},
		"use": func(in []byte) ([]byte, error) {
			if _, err := os.ReadFile(filepath.Join(loaded.folder, "program")); err == nil {
				return nil, errors.New("the filter can still read files")
			}
			// What it has loaded is all the code that it can run.
			const code = unix.PROT_READ | unix.PROT_EXEC
			if _, err := unix.Mmap(-1, 0, 4096, code, unix.MAP_PRIVATE|unix.MAP_ANON); err == nil {
				return nil, errors.New("the filter can map memory for code")
			}
			b, err := unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
			if err != nil || unix.Mprotect(b, code) == nil {
				return nil, errors.New("the filter can make memory executable")
			}
			return append([]byte(loaded.program+": "), in...), nil
		},
		"use too much": func([]byte) ([]byte, error) { panic("broken") },
	}
}

var preparation = Preparation{Load: "load", Make: "make", Memory: 100, MakeMemory: 100}

func TestPreparation(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	folder := filepath.Join(t.TempDir(), "cache")
	p := NewFilterPoolWithin(8<<30, folder)
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			out, err := p.RunPrepared(t.Context(), preparation, "use", []byte("a document"))
			if err != nil || string(out) != "kept: a document" {
				t.Errorf("%d: %q %v", i, out, err)
			}
		})
	}
	all.Wait()
	info, err := os.Stat(folder)
	is.NoErr(err)
	is.Equal(info.Mode().Perm(), os.FileMode(0o700))
	// Another failure than that of the preparation is about the document.
	_, err = p.RunPrepared(t.Context(), preparation, "use too much", nil)
	var fe *FilterError
	is.True(errors.As(err, &fe))
	is.True(strings.Contains(fe.Message, "damaged"))
}

// TestPreparationIsNotKept uses folders that cannot keep the program: each process compiles it for itself.
func TestPreparationIsNotKept(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	file := filepath.Join(t.TempDir(), "file")
	is.NoErr(os.WriteFile(file, nil, 0o600))
	for _, folder := range []string{"", filepath.Join(file, "cache")} {
		p := NewFilterPoolWithin(8<<30, folder)
		for range 2 {
			out, err := p.RunPrepared(t.Context(), preparation, "use", []byte("a document"))
			is.NoErr(err)
			is.Equal(string(out), "compiled here: a document")
		}
	}
	err := NewFilterPoolWithin(8<<30, filepath.Join(file, "cache")).Prepare(t.Context(), preparation)
	is.True(errors.Is(err, ErrUnprepared))
}

// TestPreparationWithoutMemory compiles a program that takes more memory than permitted.
func TestPreparationWithoutMemory(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	p := NewFilterPoolWithin(8<<30, filepath.Join(t.TempDir(), "cache"))
	large := preparation
	large.Make = "make too much"
	_, err := p.RunPrepared(t.Context(), large, "use", []byte("a document"))
	var fe *FilterError
	is.True(errors.As(err, &fe))
	is.True(strings.HasPrefix(fe.Message, "its reader must be compiled once, which takes 100 MiB of memory: it takes more"))
}
