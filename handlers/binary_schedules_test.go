package handlers_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store"
	"journeyman/store/storetest"
)

const (
	scheduleKills = 5
	oneTimers     = 80 // one-time schedules, due a quarter of a second apart
)

// TestKillNineAroundDueTimes kills the program while schedules come due: every
// quarter of a second one that runs once, and every two seconds some that repeat.
// Nothing that came due is lost and nothing runs twice.
func TestKillNineAroundDueTimes(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	dir := t.TempDir()
	s := serve(t, dir)
	worker := s.mustPost(t, "/api/workers", map[string]any{}).ID
	firstRun := map[string]time.Time{}
	schedule := func(input string, when map[string]any) {
		a, err := s.post(t.Context(), "/api/workers/"+worker+"/schedules", map[string]any{"input": input, "when": when, "budget": "low"})
		is.NoErr(err)
		var made struct{ NextRunAt time.Time }
		decodeReply(t, a, &made)
		firstRun[input] = made.NextRunAt
	}
	for i := range oneTimers {
		schedule(fmt.Sprintf("once %d", i), map[string]any{"type": "delayed", "delayInSeconds": float64(i) / 4})
	}
	for i := range 4 {
		schedule(fmt.Sprintf("every %d", i), map[string]any{"type": "interval", "intervalSeconds": 2})
	}
	first := time.Now()
	for range scheduleKills {
		select {
		case <-time.After(time.Duration(2000+rand.IntN(1500)) * time.Millisecond):
		case <-t.Context().Done():
		}
		s.kill()
		s = serve(t, dir)
	}
	last := time.Now()
	deadline := first.Add(oneTimers*time.Second/4 + patience)
	for left := 1; left > 0 && time.Now().Before(deadline); {
		a, err := s.send(t.Context(), http.MethodGet, "/api/workers/"+worker+"/schedules", nil)
		is.NoErr(err)
		left = s.countSchedules(t, a) - 4
		<-time.After(100 * time.Millisecond)
	}
	s.stop(t)
	storetest.Sound(t, dir)
	fired := firings(t, dir)
	for i := range oneTimers {
		is.Equal(len(fired[fmt.Sprintf("once %d", i)]), 1) // fired
	}
	for i := range 4 {
		name := fmt.Sprintf("every %d", i)
		is.True(len(fired[name]) > scheduleKills)
		after, due := 0, map[time.Duration]time.Time{}
		for _, at := range fired[name] {
			if at.After(last) {
				after++
			}
			n := at.Sub(firstRun[name]) / (2 * time.Second) // the last due time until then
			if before, twice := due[n]; twice || at.Before(firstRun[name]) {
				t.Errorf("%s: due time %d ran at %v and %v", name, n, before, at)
			}
			due[n] = at
		}
		is.True(after > 0) // it goes on
	}
}

// countSchedules is how many schedules an answer lists.
func (s *instance) countSchedules(t testing.TB, a reply) int {
	t.Helper()
	var list struct{ Schedules []struct{} }
	decodeReply(t, a, &list)
	return len(list.Schedules)
}

// firings gives when the tasks of schedules were made, by title.
func firings(t *testing.T, dir string) map[string][]time.Time {
	t.Helper()
	is := is.New(t)
	st, err := store.Open(t.Context(), dir, storetest.Schema(t), store.Options{})
	is.NoErr(err)
	defer st.Close()
	owner, err := st.Authenticate(t.Context(), testKey)
	is.NoErr(err)
	found := map[string][]time.Time{}
	for q := (store.TaskQuery{Limit: 100, TriggeredBy: store.TriggerSchedule}); ; {
		tasks, next, err := st.Tasks(t.Context(), owner.Caller, q)
		is.NoErr(err)
		for _, task := range tasks {
			found[task.Title] = append(found[task.Title], task.CreatedAt)
		}
		if q.Cursor = next; next == "" {
			return found
		}
	}
}

// decodeReply reads the JSON of an answer.
func decodeReply(t testing.TB, a reply, v any) {
	t.Helper()
	if err := json.Unmarshal(a.body, v); err != nil || a.status != http.StatusOK {
		t.Fatalf("status %d, %v: %s", a.status, err, a.body)
	}
}
