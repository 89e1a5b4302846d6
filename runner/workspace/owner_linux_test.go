package workspace

import (
	"cmp"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/matryer/is"
)

// TestGiveTo changes the owner of a workspace that contains every kind of trap.
func TestGiveTo(t *testing.T) {
	is := is.New(t)
	w := hostile(t)
	outside := filepath.Join(filepath.Dir(w.Dir()), "secret")
	user := cmp.Or(os.Geteuid(), 12345)
	_, err := w.Survey(w.Everything(), w.GiveTo(user))
	is.NoErr(err)
	for p, want := range map[string]int{outside: os.Geteuid(), filepath.Join(w.Dir(), "file"): user, filepath.Join(w.Dir(), "out"): user} {
		info, err := os.Lstat(p)
		is.NoErr(err)
		is.Equal(int(info.Sys().(*syscall.Stat_t).Uid), want)
	}
}
