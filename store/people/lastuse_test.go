package people

import (
	"strconv"
	"testing"

	"github.com/matryer/is"
)

// TestUsesOfOneMinute uses a hundred keys in each of fifty minutes. Only those of the current minute may take memory.
func TestUsesOfOneMinute(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	var u uses
	for minute := range int64(50) {
		for i := range 100 {
			id := strconv.FormatInt(minute, 10) + "/" + strconv.Itoa(i)
			is.True(u.first(id, minute))
			is.True(!u.first(id, minute)) // the second use in the minute
		}
		is.Equal(len(u.seen), 100)
	}
}
