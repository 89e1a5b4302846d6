package webhook

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/matryer/is"
)

// TestAlertBackOff looks for alerts while the database fails and recovers: ever less often, at most
// a minute apart, and as often as before afterwards.
func TestAlertBackOff(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	const usual = 500 * time.Millisecond
	failed := errors.New("the disk is gone")
	var pauses []time.Duration
	pause := usual
	for _, err := range append(slices.Repeat([]error{failed}, 9), nil, failed, nil, nil) {
		pause = nextLook(pause, usual, err)
		pauses = append(pauses, pause)
	}
	const s = time.Second
	is.Equal(pauses, []time.Duration{s, 2 * s, 4 * s, 8 * s, 16 * s, 32 * s, 60 * s, 60 * s, 60 * s,
		usual, s, usual, usual})
}
