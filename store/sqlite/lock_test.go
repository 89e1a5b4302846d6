package sqlite_test

import (
	"errors"
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
