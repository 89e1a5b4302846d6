package schedule_test

import (
	"bufio"
	"cmp"
	"context"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"
	"github.com/matryer/is"

	"journeyman/runner/schedule"
	"journeyman/store"
	"journeyman/store/storetest"
)

var killSeed = flag.Uint64("kill-seed", 0, "seed of TestKilledAroundDueTimes, as a failure prints it; 0 for another each time")

const (
	childData  = "SCHEDULE_TEST_DATA"  // set in the child process only: its data folder
	childStart = "SCHEDULE_TEST_START" // the first time of the child's clock, in Unix milliseconds
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(childData); dir != "" {
		if err := runChild(dir, os.Getenv(childStart)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

// runChild runs a scheduler whose clock runs faster than real time, until the parent kills it. It
// prints each time at which all due schedules have fired.
func runChild(dir, start string) error {
	ms, err := strconv.ParseInt(start, 10, 64)
	if err != nil {
		return err
	}
	schema, err := os.ReadFile("../../schema.sql")
	if err != nil {
		return err
	}
	clock := clockwork.NewFakeClockAt(time.UnixMilli(ms))
	ctx := context.Background()
	st, err := store.Open(ctx, dir, string(schema), store.Options{Now: clock.Now, QueueLimit: 1_000_000,
		Database: storetest.DatabaseOf(dir)})
	if err != nil {
		return err
	}
	s, err := schedule.New(schedule.Config{Store: st, Log: slog.New(slog.DiscardHandler), Fired: func() {}, Clock: clock})
	if err != nil {
		return err
	}
	if err := s.Start(ctx); err != nil {
		return err
	}
	for {
		s.Wake()
		if _, err := runAll(ctx, st); err != nil { // a schedule has one task at a time
			return err
		}
		at, ok, err := st.NextScheduleAt(ctx)
		if err != nil {
			return err
		}
		if ok && at.After(clock.Now()) && st.Queued() == 0 { // otherwise a schedule is firing, or waits for its previous task
			fmt.Println(clock.Now().UnixMilli())
			clock.Advance(500 * time.Millisecond)
		}
	}
}

// A kept schedule has due times that the test can compute: first, and then every interval, or only
// once.
type kept struct {
	input string
	first time.Time
	every time.Duration // 0 for once
}

// keep creates the schedules of TestKilledAroundDueTimes.
func keep(f *fixture) (list []kept) {
	for i, seconds := range []float64{1, 1, 1, 2, 3.5, 7, 60} {
		input := fmt.Sprintf("every %d", i)
		sch := f.schedule(input, store.When{Type: store.Interval, IntervalSeconds: seconds})
		list = append(list, kept{input, sch.NextRunAt, time.Duration(seconds * float64(time.Second))})
	}
	sch := f.schedule("minutely", store.When{Type: store.CronType, Cron: "* * * * *"})
	list = append(list, kept{"minutely", sch.NextRunAt, time.Minute})
	for i := range 200 {
		input := fmt.Sprintf("once %d", i)
		sch := f.schedule(input, store.When{Type: store.Delayed, DelaySeconds: 1 + 2.5*float64(i)})
		list = append(list, kept{input, sch.NextRunAt, 0})
	}
	return list
}

// TestKilledAroundDueTimes kills a scheduler repeatedly at random moments. No due time may be lost
// or fire twice. Due times that passed while no process ran fire once, at the next start.
func TestKilledAroundDueTimes(t *testing.T) {
	t.Parallel()
	seed := cmp.Or(*killSeed, rand.Uint64())
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("again with: go test ./runner/schedule -run TestKilledAroundDueTimes -kill-seed %d", seed)
		}
	})
	is := is.New(t)
	random := rand.New(rand.NewPCG(seed, 1))
	f := newFixture(t, store.Options{})
	list := keep(f)
	is.NoErr(f.Close())
	now := begin
	var downs []down
	for n := range storetest.Rounds(50, 3) {
		settled := runAndKill(t, f.Dir(), now, random)
		now = settled.Add(500 * time.Millisecond) // the clock may have reached this time before the kill
		if n == 0 || random.IntN(2) == 0 {        // at least one stop is long enough to miss due times
			now = now.Add(time.Duration(5_000+random.IntN(85_000)) * time.Millisecond)
		}
		downs = append(downs, down{settled, now})
	}
	end := runAndKill(t, f.Dir(), now, random)
	check(t, f.Dir(), list, downs, end)
}

// A down is a period without a running process: from the last time at which nothing was due until
// the next start.
type down struct{ from, to time.Time }

// runAndKill runs a scheduler briefly and kills it. It returns the last time at which all due
// schedules had fired.
func runAndKill(t *testing.T, dir string, start time.Time, random *rand.Rand) (settled time.Time) {
	t.Helper()
	exe, err := os.Executable()
	is.New(t).NoErr(err)
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), childData+"="+dir, childStart+"="+strconv.FormatInt(start.UnixMilli(), 10))
	cmd.Stderr = t.Output()
	out, err := cmd.StdoutPipe()
	is.New(t).NoErr(err)
	is.New(t).NoErr(cmd.Start())
	lines := bufio.NewScanner(out)
	for range 3 + random.IntN(20) {
		if !lines.Scan() {
			t.Fatalf("the scheduler ended by itself: %v", cmd.Wait())
		}
	}
	kill := time.AfterFunc(time.Duration(random.IntN(3_000))*time.Microsecond, func() { _ = cmd.Process.Kill() })
	defer kill.Stop()
	last := lines.Text()
	for lines.Scan() {
		last = lines.Text()
	}
	_ = cmd.Wait() // the error says that the process was killed
	ms, err := strconv.ParseInt(last, 10, 64)
	if err != nil {
		t.Fatalf("%q: %v", last, err)
	}
	return time.UnixMilli(ms).UTC()
}

// check compares the existing tasks with the due times.
func check(t *testing.T, dir string, list []kept, downs []down, end time.Time) {
	t.Helper()
	storetest.Sound(t, dir)
	tasks := map[string][]time.Time{} // creation times by input
	st, err := store.Open(t.Context(), dir, storetest.Schema(t), store.Options{Database: storetest.DatabaseOf(dir)})
	is.New(t).NoErr(err)
	defer st.Close()
	owner, err := st.People.Owner(t.Context(), "ann@acme.test")
	is.New(t).NoErr(err)
	for q := (store.TaskQuery{Limit: 100}); ; {
		page, next, err := st.Tasks(t.Context(), owner, q)
		is.New(t).NoErr(err)
		for _, task := range page {
			tasks[task.Title] = append(tasks[task.Title], task.CreatedAt)
		}
		if q.Cursor = next; next == "" {
			break
		}
	}
	due, missed, total := 0, 0, 0
	for _, k := range list {
		slots := map[int64]int{} // number of firings, by the number of the due time
		for _, at := range tasks[k.input] {
			slots[k.slot(at)]++
			total++
			if at.Before(k.first) {
				t.Errorf("%s: fired at %v, before its time", k.input, at)
			}
		}
		for n := int64(0); !k.at(n).After(end) && (n == 0 || k.every > 0); n++ {
			due++
			fired := slots[n]
			delete(slots, n)
			switch {
			case fired == 0 && k.excused(n, downs):
				missed++
			case fired != 1:
				t.Errorf("%s: due time %d, %v, fired %d times", k.input, n, k.at(n), fired)
			}
		}
		for n := range slots {
			if k.at(n).After(end.Add(500 * time.Millisecond)) { // the process may have run a little longer
				t.Errorf("%s: fired at %v, which was not due", k.input, k.at(n))
			}
		}
	}
	t.Logf("%d due times over %v and %d kills: %d tasks, %d missed while nothing ran", due, end.Sub(begin), len(downs), total, missed)
	if total < 5*len(downs) || missed == 0 {
		t.Error("the test did not work: too few firings, or none was ever missed")
	}
}

// slot returns the number of the last due time before or at t.
func (k kept) slot(t time.Time) int64 {
	if k.every == 0 {
		return 0
	}
	return int64(t.Sub(k.first) / k.every)
}

func (k kept) at(n int64) time.Time { return k.first.Add(time.Duration(n) * k.every) }

// excused reports whether due time n and the next one passed while no process ran. The next start
// fires once for both.
func (k kept) excused(n int64, downs []down) bool {
	return k.every > 0 && slices.ContainsFunc(downs, func(d down) bool {
		return k.at(n).After(d.from) && !k.at(n+1).After(d.to)
	})
}
