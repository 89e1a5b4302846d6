package store_test

import (
	"testing"

	"github.com/matryer/is"
)

// TestAnnouncedTurns queues a turn on one node for a worker on another, which has not counted it. After the
// announcement it claims the turn. What it does not find, it forgets.
func TestAnnouncedTurns(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	a, b := newPair(t)
	b.accept(b.turn())
	is.Equal(len(b.claim("b", 1)), 1) // places the worker on b
	a.accept(a.turn())
	is.Equal(len(b.claim("b", 1)), 0)
	b.Announce(3)
	is.Equal(b.Queued(), int64(3))
	is.Equal(len(b.claim("b", 2)), 1)
	is.Equal(b.Queued(), int64(0))
}
