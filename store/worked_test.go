package store_test

import (
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store"
)

// TestWorkedInMilliseconds checks that a journal in memory and the same journal from the database, whose times are in
// milliseconds, give the same time of work. A notice about the budget would otherwise move when a turn resumes.
func TestWorkedInMilliseconds(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	at := time.Date(2026, 11, 29, 6, 0, 0, 999_600, time.UTC)
	truncated := func(t time.Time) time.Time { return time.UnixMilli(t.UnixMilli()) }
	var live, resumed []store.Step
	for range 50 {
		st := store.Step{StartedAt: at, CompletedAt: at.Add(1_700_000),
			Calls: []store.Call{{StartedAt: at.Add(1_800_000), CompletedAt: at.Add(4_300_000)}, {StartedAt: at.Add(2_900_001), CompletedAt: at.Add(5_100_000)}}}
		live = append(live, st)
		st.StartedAt, st.CompletedAt, st.Calls = truncated(st.StartedAt), truncated(st.CompletedAt), append([]store.Call(nil), st.Calls...)
		for i := range st.Calls {
			st.Calls[i].StartedAt, st.Calls[i].CompletedAt = truncated(st.Calls[i].StartedAt), truncated(st.Calls[i].CompletedAt)
		}
		resumed = append(resumed, st)
		at = at.Add(7_300_001)
	}
	is.Equal(store.Worked(live), store.Worked(resumed))
}
