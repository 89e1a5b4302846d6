//go:build linux && (amd64 || arm64)

package sandbox

import (
	"testing"

	"github.com/matryer/is"

	"journeyman/store/ordertest"
)

// TestUsage runs a filter in a context that gets what its process has used.
func TestUsage(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	var used []Usage
	ctx := ReportUsage(t.Context(), func(u Usage) { used = append(used, u) })
	_, err := NewFilterPool().Run(ctx, "upper", []byte("a"))
	is.NoErr(err)
	is.Equal(len(used), 1)
	is.Equal(used[0].Filter, "upper")
	ordertest.Above(is, used[0].Memory, 1<<20)
	ordertest.Below(is, used[0].Memory, used[0].Limit)
	ordertest.Above(is, used[0].Time, 0)
	_, err = NewFilterPool().Run(ctx, "fails", nil)
	is.True(err != nil)
	is.Equal(len(used), 1) // it had no output
	is.Equal(parseUsage("a warning"), int64(0))
}
