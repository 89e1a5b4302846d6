//go:build linux

package command_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store/storetest"
)

// TestFaultUpgrade repeatedly kills the program while it upgrades a folder of an older version, and
// then lets it finish. Every task is there, and the copy of the old database is complete.
func TestFaultUpgrade(t *testing.T) {
	faults(t)
	t.Parallel()
	for _, version := range []int{1, 2} {
		for _, copies := range []int{0, 3000} {
			t.Run(fmt.Sprintf("version %d and %d tasks more", version, copies), func(t *testing.T) {
				t.Parallel()
				r := rand.New(rand.NewPCG(uint64(version), uint64(copies)))
				for range max(1, killRounds()/30) {
					killInUpgrade(t, version, copies, r)
				}
			})
		}
	}
}

// killInUpgrade kills the upgrade of one folder several times.
func killInUpgrade(t *testing.T, version, copies int, r *rand.Rand) {
	t.Helper()
	is := is.New(t)
	dir := t.TempDir()
	const counts = `SELECT (SELECT count(*) FROM tasks), (SELECT count(*) FROM turns), (SELECT count(*) FROM steps),
		(SELECT count(*) FROM tool_calls), (SELECT count(*) FROM inbound_emails), (SELECT count(*) FROM api_keys)`
	storetest.Filled(t, filepath.Join(dir, databaseName), version)
	if copies > 0 {
		storetest.Multiply(t, dir, copies)
	}
	before := storetest.Rows(t, dir, counts)[0]
	for range 4 {
		p := invocation{}.start(t, serveArgs(dir)...)
		select {
		case <-p.exited:
			t.Fatalf("the upgrade failed: %s", p.stderr)
		case <-time.After(time.Duration(r.IntN(600)) * time.Millisecond):
		}
		p.kill()
		is.Equal(storetest.Rows(t, dir, `PRAGMA integrity_check`)[0][0], "ok")
	}
	// The old database has an owner's key, so testKey is not accepted: the test reads the database
	// instead.
	s := invocation{}.serve(t, dir, testKey, serveArgs(dir, "--model", "offline")...)
	after := storetest.Rows(t, dir, counts)[0]
	// A schedule of the old database may be due, and then adds a task.
	for i, what := range []string{"tasks", "turns", "steps", "calls", "mails", "keys"} {
		was, _ := strconv.Atoi(before[i])
		if now, _ := strconv.Atoi(after[i]); now < was {
			t.Errorf("%d %s became %d", was, what, now)
		}
	}
	a, err := s.send(t.Context(), http.MethodGet, "/readyz", nil)
	is.NoErr(err)
	is.Equal(a.status, http.StatusOK)
	s.stop(t)
	if copies == 0 {
		storetest.Sound(t, dir)
	}
	aside := t.TempDir()
	old := filepath.Join(dir, fmt.Sprintf("%s.v%d", databaseName, version))
	is.NoErr(os.Rename(old, filepath.Join(aside, databaseName)))
	is.Equal(storetest.Rows(t, aside, counts)[0], before) // the copy
	left, err := filepath.Glob(filepath.Join(dir, "*.tmp"))
	is.NoErr(err)
	is.Equal(len(left), 0) // incomplete copies
}

// shiftTimes moves all times in the database of a stopped program, as if the clock of the machine
// had been moved the other way.
func shiftTimes(t *testing.T, dir string, by time.Duration) {
	t.Helper()
	var script strings.Builder
	for _, r := range storetest.Rows(t, dir, `SELECT s.name, c.name FROM sqlite_schema s, pragma_table_xinfo(s.name) c
		WHERE s.type = 'table' AND c.type = 'INTEGER' AND c.hidden = 0
		AND (c.name GLOB '*_at' OR c.name = 'rests_until')`) {
		fmt.Fprintf(&script, "UPDATE %s SET %s = %[2]s + %d;\n", r[0], r[1], by.Milliseconds())
	}
	storetest.Script(t, dir, script.String())
}

// TestFaultClock sets the clock back by an hour while the program does not run, and forward again.
// Schedules, retries and sign-ins work, and nothing runs twice.
func TestFaultClock(t *testing.T) {
	faults(t)
	t.Parallel()
	w := newWorld(t, "clock", setting{})
	fired := func() int {
		n, err := strconv.Atoi(storetest.Rows(t, w.dir, `SELECT count(*) FROM turns WHERE triggered_by = 'schedule'
			AND input LIKE '%say regular%'`)[0][0])
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	for _, by := range []time.Duration{time.Hour, -time.Hour, -26 * time.Hour} { // offsets of the stored times, not of the clock
		end := w.load()
		w.answersAgain(2 * len(w.clients))
		end()
		w.check()
		w.now.stop(t)
		shiftTimes(t, w.dir, by)
		before := fired()
		w.serve()
		w.ready(http.StatusOK)
		storetest.Eventually(t, "schedules that fire", func() bool { return fired() >= before+2*len(w.hours) })
		if n := fired() - before; n > 60 {
			t.Errorf("schedules fired %d times for the hours that passed", n)
		}
	}
	end := w.load()
	w.answersAgain(2 * len(w.clients))
	end()
	w.check()
	w.now.stop(t)
	storetest.Sound(t, w.dir)
}
