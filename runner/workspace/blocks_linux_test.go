package workspace

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/matryer/is"
	"golang.org/x/sys/unix"

	"journeyman/store/ordertest"
)

// TestBlocksCount allocates blocks beyond the end of a file, which commands of an earlier
// release could do.
func TestBlocksCount(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	w := open(t, filepath.Join(t.TempDir(), "ws"), Limits{TotalSize: 8 << 20})
	allocateBeyond(t, w, "f", 16<<20)
	w.Changed()
	held, err := w.Survey(w.Everything())
	is.NoErr(err)
	ordertest.AtLeast(is, held.Bytes, 16<<20)
	is.Equal(kind(w.WriteFile("g", []byte("x"))), Full)
}

// TestBlocksAreReleased removes and replaces a file with blocks beyond its end. The space that the
// workspace counted for the blocks is then free.
func TestBlocksAreReleased(t *testing.T) {
	t.Parallel()
	for name, free := range map[string]func(w *Workspace) error{
		"removed":  func(w *Workspace) error { return w.Remove("f") },
		"replaced": func(w *Workspace) error { return w.WriteFile("f", []byte("x")) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			w := open(t, t.TempDir(), Limits{TotalSize: 8 << 20})
			allocateBeyond(t, w, "f", 16<<20)
			w.Changed()
			is.Equal(kind(w.WriteFile("g", []byte("x"))), Full) // it has measured the blocks
			is.NoErr(free(w))
			is.NoErr(w.WriteFile("g", []byte("x")))
		})
	}
}

// allocateBeyond creates an empty file with n bytes of blocks. It skips the test on file systems
// without such files.
func allocateBeyond(t *testing.T, w *Workspace, name string, n int64) {
	t.Helper()
	is := is.New(t)
	is.NoErr(w.WriteFile(name, nil))
	f, err := w.root.OpenFile(name, os.O_WRONLY, 0)
	is.NoErr(err)
	defer f.Close()
	err = unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_KEEP_SIZE, 0, n)
	if errors.Is(err, unix.EOPNOTSUPP) {
		t.Skip("the file system of the test's folder allocates no blocks beyond the end of a file")
	}
	is.NoErr(err)
}
