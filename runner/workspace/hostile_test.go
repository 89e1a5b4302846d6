//go:build unix

package workspace

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/matryer/is"

	"journeyman/store/ordertest"
)

// long skips a slow test, unless the environment variable LONG is set. CI runs these tests in a
// separate section.
func long(t *testing.T) {
	t.Helper()
	if os.Getenv("LONG") == "" {
		t.Skip("takes long: LONG=1 runs it")
	}
}

// hostile creates a workspace with a secret beside it. The workspace contains every trap that a
// command in it could create.
func hostile(t *testing.T) *Workspace {
	t.Helper()
	is := is.New(t)
	dir := t.TempDir()
	w := open(t, filepath.Join(dir, "ws"), Limits{})
	is.NoErr(os.WriteFile(filepath.Join(dir, "secret"), []byte("secret"), 0o644))
	is.NoErr(os.Mkdir(filepath.Join(dir, "ws2"), 0o755)) // shares a prefix with the workspace
	is.NoErr(os.WriteFile(filepath.Join(dir, "ws2", "secret"), []byte("secret"), 0o644))
	in := func(p string) string { return filepath.Join(dir, "ws", p) }
	is.NoErr(os.MkdirAll(in("folder/below"), 0o755))
	is.NoErr(os.WriteFile(in("file"), []byte("inside"), 0o644))
	for name, target := range map[string]string{
		"out": "../secret", "outabs": filepath.Join(dir, "secret"), "outdir": "..", "sibling": "../ws2",
		"chain1": "chain2", "chain2": "folder/chain3", "folder/chain3": "../out",
		"loop1": "loop2", "loop2": "loop1", "self": "self", "dangling": "nothing",
		"in": "file", "indir": "folder", "folder/up": "../file", "root": "/", "proc": "/proc/self/root",
		"outandin": "../ws/file",
	} {
		is.NoErr(os.Symlink(target, in(name)))
	}
	is.NoErr(syscall.Mkfifo(in("fifo"), 0o644))
	socket, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	is.NoErr(err)
	t.Cleanup(func() { syscall.Close(socket) })
	t.Chdir(dir) // a socket's address has room for a short path only
	is.NoErr(syscall.Bind(socket, &syscall.SockaddrUnix{Name: "ws/socket"}))
	return w
}

func TestHostileFiles(t *testing.T) {
	w := hostile(t)
	for name, tt := range map[string]struct {
		path, says string
		kind       Kind
	}{
		"link out":               {"out", "outside", Invalid},
		"absolute link out":      {"outabs", "outside", Invalid},
		"below a link out":       {"outdir/secret", "outside", Invalid},
		"sibling with prefix":    {"sibling/secret", "outside", Invalid},
		"chain of links out":     {"chain1", "outside", Invalid},
		"link to the root":       {"root/etc/passwd", "outside", Invalid},
		"link through proc":      {"proc/etc/passwd", "outside", Invalid},
		"out and in again":       {"outandin", "outside", Invalid},
		"links in a loop":        {"loop1", "too many", Invalid},
		"link to itself":         {"self", "too many", Invalid},
		"dangling":               {"dangling", "no file", NotFound},
		"pipe":                   {"fifo", "pipe", Invalid},
		"below a pipe":           {"fifo/x", "not a folder", Invalid},
		"socket":                 {"socket", "socket", Invalid},
		"folder":                 {"folder", "folder", Invalid},
		"link to a folder":       {"indir", "folder", Invalid},
		"workspace":              {".", "workspace itself", Invalid},
		"folder by its slash":    {"file/", "names a folder", Invalid},
		"below a file":           {"file/x", "not a folder", Invalid},
		"other case":             {"FILE", "no file", NotFound},
		"up through link":        {"indir/../../secret", "outside", Invalid},
		"missing":                {"missing", "no file", NotFound},
		"missing folder":         {"missing/x", "no file", NotFound},
		"name of our own making": {".journeyman-x.tmp", "kept", Invalid},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			_, err := w.ReadFile(tt.path, 0, 100)
			var e *Error
			is.True(errors.As(err, &e))
			is.Equal(e.Kind, tt.kind)
			is.True(strings.Contains(e.Message, tt.says))
			is.True(!strings.Contains(e.Message, os.TempDir())) // the error contains no path of the machine
			_, err = w.Open(tt.path)
			is.True(errors.As(err, &e))
			is.Equal(e.Kind, tt.kind)
		})
	}
}

// TestSwappedIn opens a file that was replaced after its check.
func TestSwappedIn(t *testing.T) {
	w := hostile(t)
	for name, p := range map[string]string{"pipe": "fifo", "folder": "folder", "socket": "socket", "link out": "out"} {
		t.Run(name, func(t *testing.T) {
			_, err := w.open(p, wantFile) // if this waited for a writer, the test would hang
			is.New(t).Equal(kind(err), Invalid)
		})
	}
}

func TestLinksInside(t *testing.T) {
	w := hostile(t)
	for _, p := range []string{"in", "folder/up", "indir/up"} {
		is := is.New(t)
		data, err := w.ReadFile(p, 0, 100)
		is.NoErr(err) // links that stay inside are followed
		is.Equal(string(data), "inside")
	}
}

func TestHostileWrites(t *testing.T) {
	w := hostile(t)
	secret := filepath.Join(filepath.Dir(w.root.Name()), "secret")
	for name, tt := range map[string]struct{ path, says string }{
		"link out":          {"out", "outside"},
		"absolute link out": {"outabs", "outside"},
		"chain":             {"chain1", "outside"},
		"below a link out":  {"outdir/secret", "outside"},
		"new below it":      {"outdir/new/file", "outside"},
		"root":              {"root/tmp/x", "outside"},
		"dangling":          {"dangling", "no file"},
		"link inside":       {"in", `write to that file instead`},
		"pipe":              {"fifo", "pipe"},
		"socket":            {"socket", "socket"},
		"folder":            {"folder", "folder"},
		"below a file":      {"file/x", "not a folder"},
		"far below a file":  {"file/x/y/z", "not a folder"},
		"parent":            {"../new", "outside"},
		"absolute":          {"/tmp/new", "absolute"},
		"slash":             {"new/", "names a folder"},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			err := w.WriteFile(tt.path, []byte("changed"))
			var e *Error
			is.True(errors.As(err, &e))
			is.True(strings.Contains(e.Message, tt.says))
			data, err := os.ReadFile(secret)
			is.NoErr(err)
			is.Equal(string(data), "secret")
		})
	}
	is := is.New(t)
	left, err := filepath.Glob(filepath.Join(w.root.Name(), ".journeyman-*"))
	is.NoErr(err)
	is.Equal(len(left), 0) // rejected calls leave no file
}

// TestSwappedLink reads and writes while a folder is repeatedly replaced by a link that leads
// outside. At any timing, the secret must be neither read nor changed.
func TestSwappedLink(t *testing.T) {
	long(t)
	t.Parallel()
	is := is.New(t)
	dir := t.TempDir()
	w := open(t, filepath.Join(dir, "ws"), Limits{})
	is.NoErr(os.Mkdir(filepath.Join(dir, "out"), 0o755))
	is.NoErr(os.WriteFile(filepath.Join(dir, "out", "f"), []byte("a longer secret"), 0o644))
	is.NoErr(w.WriteFile("d/f", []byte("inside")))
	real, swapped := filepath.Join(dir, "ws", "d"), filepath.Join(dir, "ws", "was")

	done := make(chan struct{})
	var swapper sync.WaitGroup
	swapper.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
			}
			os.Rename(real, swapped)
			os.Symlink("../out", real)
			os.RemoveAll(real)
			os.Rename(swapped, real)
		}
	})
	reads := 0
	for range 3000 {
		data, err := w.ReadFile("d/f", 0, 100)
		if err == nil {
			reads++
			is.Equal(string(data), "inside")
		}
		_ = w.WriteFile("d/f", []byte("inside"))
		_ = w.Walk(".", func(e Entry) error {
			is.True(e.Path != "d/f" || e.Size == int64(len("inside"))) // not even the size of the secret
			return nil
		})
	}
	close(done)
	swapper.Wait()
	ordertest.Above(is, reads, 0) // otherwise the test shows nothing
	data, err := os.ReadFile(filepath.Join(dir, "out", "f"))
	is.NoErr(err)
	is.Equal(string(data), "a longer secret")
	list, err := os.ReadDir(filepath.Join(dir, "out"))
	is.NoErr(err)
	is.Equal(len(list), 1) // no file was created there
}
