package store_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store/storetest"
)

// accepting accepts a turn. Its write waits between the check of the gate and the commit until
// release is called.
func (f *fixture) accepting() (release func(), accepted <-chan error) {
	f.t.Helper()
	f.startRunner("r")
	taken, let, done := make(chan struct{}, 1), make(chan struct{}), make(chan error, 1)
	s := slots("r", 1)
	take := s.Take
	s.Take = func(bool) bool {
		select {
		case taken <- struct{}{}:
		default: // the write runs again
		}
		<-let
		return take(false)
	}
	f.UseSlots(s)
	n := f.turn()
	go func() {
		done <- errOf(f.CreateTurn(context.Background(), n))
	}()
	<-taken
	return func() { close(let) }, done
}

// released calls fn during a write that accepting delays. It releases the write when fn waits or
// has returned.
func (f *fixture) released(release func(), accepted <-chan error, fn func() error) {
	f.t.Helper()
	is := is.New(f.t)
	returned := make(chan error, 1)
	go func() { returned <- fn() }()
	var err error
	ended := false
	storetest.Eventually(f.t, "the caller to wait or to return", func() bool {
		select {
		case err = <-returned:
			ended = true
		default:
		}
		return ended || f.AwaitsWrites()
	})
	release()
	is.NoErr(<-accepted)
	if !ended {
		err = <-returned
	}
	is.NoErr(err)
}

// TestStopWaitsForAcceptances stops a runner that has given a slot to an uncommitted turn.
// Afterwards the turn is queued, without an interruption.
func TestStopWaitsForAcceptances(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	release, accepted := f.accepting()
	f.released(release, accepted, func() error { return f.StopRunner(context.Background(), "r") })
	is.Equal(f.count(`SELECT count(*) FROM turns WHERE status = 'pending' AND claims = 1`), int64(1))
	f.startRunner("next")
	is.Equal(f.count(`SELECT interruptions FROM turns`), int64(0))
}

// TestMaintenanceWaitsForAcceptances begins maintenance during an acceptance that has passed the
// gate. A later read of the running turns must include its turn.
func TestMaintenanceWaitsForAcceptances(t *testing.T) {
	t.Parallel()
	if os.Getenv("REPEAT_WRITES") != "" {
		t.Skip("the second run of the write comes after the gate has closed")
	}
	is := is.New(t)
	f := newFixture(t)
	release, accepted := f.accepting()
	is.True(f.Gate.BeginMaintenance())
	var running int64
	f.released(release, accepted, func() (err error) {
		if err := f.AwaitWrites(context.Background()); err != nil {
			return err
		}
		running, err = f.RunningTurns(context.Background())
		return err
	})
	is.Equal(running, int64(1))
}

// TestAwaitWrites waits for one write in several goroutines, and ends the wait early.
func TestAwaitWrites(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	is.NoErr(f.AwaitWrites(t.Context())) // no write is running
	release, accepted := f.accepting()
	short, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	is.Equal(f.AwaitWrites(short), context.DeadlineExceeded)
	is.Equal(f.AwaitWrites(short), context.DeadlineExceeded) // the write is still running
	f.released(release, accepted, func() error { return f.AwaitWrites(context.Background()) })
	is.NoErr(f.AwaitWrites(t.Context()))
	is.Equal(f.count(`SELECT count(*) FROM turns WHERE status = 'running'`), int64(1))
}
