package startheap_test

import (
	"os"
	"runtime/debug"
	"strconv"
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
	usual := 100
	if n, err := strconv.Atoi(os.Getenv("GOGC")); err == nil {
		usual = n
	}
	is.Equal(growth(), 400)
	startheap.Settle()
	is.Equal(growth(), usual)
}
