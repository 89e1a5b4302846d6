//go:build linux

package command_test

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store/storetest"
)

// shiftTimes moves all times in the database of a stopped program, as if the clock of the machine
// had been moved the other way.
func shiftTimes(t *testing.T, dir string, by time.Duration) {
	t.Helper()
	var script strings.Builder
	for _, r := range storetest.Rows(t, dir, `SELECT s.name, c.name FROM sqlite_schema s, pragma_table_xinfo(s.name) c
		WHERE s.type = 'table' AND c.type = 'INTEGER' AND c.hidden = 0
		AND (c.name GLOB '*_at' OR c.name = 'suspended_until')`) {
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
		is.New(t).NoErr(err)
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
