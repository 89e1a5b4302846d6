package view_test

import (
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/runner/view"
)

// TestTimestamp compares timestamps with those of the standard library's layout.
func TestTimestamp(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	east := time.FixedZone("east", 2*60*60)
	for want, at := range map[string]time.Time{
		"2026-03-31T23:59:07.000Z":  time.Date(2026, 4, 1, 1, 59, 7, 999_999, east),
		"1969-12-31T23:59:59.999Z":  time.UnixMilli(-1),
		"2026-01-02T03:04:05.120Z":  time.Date(2026, 1, 2, 3, 4, 5, 120_000_000, time.UTC),
		"10000-01-01T00:00:00.007Z": time.Date(10000, 1, 1, 0, 0, 0, 7_000_000, time.UTC),
	} {
		is.Equal(view.Timestamp(at), want)
		is.Equal(view.Timestamp(at), at.UTC().Format("2006-01-02T15:04:05.000Z"))
	}
}
