package postgres

import (
	"context"
	"errors"
	"testing"

	"github.com/matryer/is"
)

// TestLimiter checks that conflicts lower the limit and successes raise it.
func TestLimiter(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	l := newLimiter(4)
	for range 20 {
		is.NoErr(l.enter(t.Context()))
		l.leave(true, false)
	}
	is.Equal(int(l.limit), 1)
	is.NoErr(l.enter(t.Context()))
	entered := make(chan error, 2)
	for i := range cap(entered) {
		go func() { entered <- l.enter(t.Context()) }()
		for l.length() != i+1 { // until the write waits
			select {
			case <-entered:
				t.Fatal("a second write has entered")
			default:
			}
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	is.True(errors.Is(l.enter(ended), context.Canceled))
	is.Equal(l.length(), 2) // the write has left the queue
	l.leave(false, true)
	is.NoErr(<-entered)
	is.Equal(l.length(), 1)
	l.leave(false, false)
	is.NoErr(<-entered)
	l.leave(false, false)
	is.Equal(l.running, 0)
	for range 100 {
		is.NoErr(l.enter(t.Context()))
		l.leave(false, true)
	}
	is.Equal(int(l.limit), 4) // not more than initially
}
