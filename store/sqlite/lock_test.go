package sqlite_test

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store/sqlite"
)

func TestLockOutlastsAFork(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		held time.Duration // how long a copy of the descriptor stays open
		err  error
	}{
		"a child between fork and exec": {20 * time.Millisecond, nil},
		"another process":               {time.Hour, sqlite.ErrLocked},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			dir := t.TempDir()
			first, err := sqlite.Lock(dir)
			is.NoErr(err)
			released := time.AfterFunc(tt.held, func() { _ = first.Close() })
			second, err := sqlite.Lock(dir)
			is.True(errors.Is(err, tt.err))
			if released.Stop() {
				is.NoErr(first.Close())
			}
			if err == nil {
				is.NoErr(second.Close())
			}
		})
	}
}

// TestLockNode locks a folder for several nodes. A node keeps off others of its name, and a process that
// needs the folder alone.
func TestLockNode(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	dir := t.TempDir()
	locked := func() bool {
		held, err := sqlite.Locked(dir)
		is.NoErr(err)
		return held
	}
	is.True(!locked())
	a, err := sqlite.LockNode(dir, "a")
	is.NoErr(err)
	is.True(locked())
	_, err = sqlite.LockNode(dir, "a")
	is.True(errors.Is(err, sqlite.ErrLocked)) // the same name
	b, err := sqlite.LockNode(dir, "b")
	is.NoErr(err)
	for _, text := range []string{"", "a longer note", "note"} { // the last one is kept
		is.NoErr(a.SetNote(text))
	}
	is.NoErr(a.Close())
	is.True(locked())
	a, err = sqlite.LockNode(dir, "a")
	is.NoErr(err)
	note, err := a.Note()
	is.NoErr(err)
	is.Equal(note, "note")
	is.NoErr(a.Close())
	note, err = b.Note()
	is.NoErr(err)
	is.Equal(note, "") // each node has its own
	_, err = sqlite.Lock(dir)
	is.True(errors.Is(err, sqlite.ErrLocked)) // b still uses the folder
	is.NoErr(b.Close())
	is.True(!locked())

	alone, err := sqlite.Lock(dir)
	is.NoErr(err)
	is.True(locked())
	_, err = sqlite.LockNode(dir, "a")
	is.True(errors.Is(err, sqlite.ErrLocked))
	is.NoErr(alone.Close())
	is.True(!locked())
	held, err := sqlite.Locked(filepath.Join(dir, "none"))
	is.NoErr(err)
	is.True(!held)
}
