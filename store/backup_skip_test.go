package store

import (
	"errors"
	"testing"

	"github.com/matryer/is"
)

// TestSkip checks that a backup omits files that a worker made unreadable. It fails if a file in
// the database is unreadable.
func TestSkip(t *testing.T) {
	t.Parallel()
	why := errors.New("input/output error")
	for name, left := range map[string]bool{"workspaces/wrk_1/a": true, "workspaces": true, "files": false, "files/ab/abcd": false, databaseName: false} {
		is := is.New(t)
		var a archiver
		err := a.skip(name, why)
		is.Equal(err == nil, left)
		is.True(left || errors.Is(err, why))
	}
}
