package startheap_test

import (
	"runtime/debug"
	"testing"

	"github.com/matryer/is"

	"journeyman/handlers/command/startheap"
)

// TestSettle is not parallel, because the growth of the heap belongs to the process.
func TestSettle(t *testing.T) {
	is := is.New(t)
	growth := func() int {
		percent := debug.SetGCPercent(100)
		debug.SetGCPercent(percent)
		return percent
	}
	is.True(growth() > 100) // a start collects garbage
	startheap.Settle()
	is.Equal(growth(), 100)
}
