package webhook

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/matryer/is"
)

// TestAlertBackOff checks the pause between polls while the database fails: it grows to at most a
// minute, and returns to its usual length after a success.
func TestAlertBackOff(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	const usual = 500 * time.Millisecond
	failed := errors.New("the disk is gone")
	var pauses []time.Duration
	pause := usual
	for _, err := range append(slices.Repeat([]error{failed}, 9), nil, failed, nil, nil) {
		pause = nextPause(pause, usual, err)
		pauses = append(pauses, pause)
	}
	const s = time.Second
	is.Equal(pauses, []time.Duration{s, 2 * s, 4 * s, 8 * s, 16 * s, 32 * s, 60 * s, 60 * s, 60 * s,
		usual, s, usual, usual})
}
