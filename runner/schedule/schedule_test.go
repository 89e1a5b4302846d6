package schedule_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"
	"github.com/matryer/is"

	"journeyman/runner/schedule"
	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/people"
	"journeyman/store/storetest"
	"journeyman/store/workers"
)

var begin = time.Date(2026, 3, 31, 23, 59, 0, 0, time.UTC)

// A fixture is a scheduler on a store, with a clock that the test moves.
type fixture struct {
	*store.Store
	t      testing.TB
	clock  *clockwork.FakeClock // measures elapsed time
	offset atomic.Int64         // added to the wall clock, in nanoseconds: set changes it
	owner  people.Identity
	worker workers.Worker
	fired  atomic.Int64
	made   int   // schedules
	ran    int64 // turns
}

func newFixture(t testing.TB, opt store.Options) *fixture {
	t.Helper()
	f := &fixture{t: t, clock: clockwork.NewFakeClockAt(begin)}
	opt.Now = f.now
	f.Store = storetest.Open(t, opt)
	f.owner, _ = storetest.Caller(t, f.Store, "Acme", "ann@acme.test", people.RoleOwner)
	var err error
	f.worker, _, err = f.Workers.CreateWorker(t.Context(), f.owner.Caller, workers.NewWorker{}, db.IdempotencyKey{})
	is.New(t).NoErr(err)
	return f
}

// now returns the wall clock time.
func (f *fixture) now() time.Time { return f.clock.Now().Add(time.Duration(f.offset.Load())) }

// set moves the wall clock; no time elapses.
func (f *fixture) set(by time.Duration) { f.offset.Add(int64(by)) }

// start starts a scheduler. The test's cleanup stops it.
func (f *fixture) start() *schedule.Scheduler {
	f.t.Helper()
	s, err := schedule.New(schedule.Config{Store: f.Store, Log: slog.New(slog.NewTextHandler(f.t.Output(), nil)),
		Fired: func() { f.fired.Add(1) }, Clock: f.clock, Now: f.now, KeepMail: 45 * 24 * time.Hour, KeepDeliveries: 30 * 24 * time.Hour})
	if err == nil {
		err = s.Start(f.t.Context())
	}
	is.New(f.t).NoErr(err)
	f.t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			f.t.Error(err)
		}
	})
	return s
}

// schedule creates a schedule. It creates a new worker when the last one has reached its limit of
// schedules.
func (f *fixture) schedule(input string, w store.When) store.Schedule {
	f.t.Helper()
	if f.made++; f.made%100 == 0 {
		var err error
		f.worker, _, err = f.Workers.CreateWorker(f.t.Context(), f.owner.Caller, workers.NewWorker{}, db.IdempotencyKey{})
		is.New(f.t).NoErr(err)
	}
	sch, _, err := f.CreateSchedule(f.t.Context(), f.owner.Caller,
		store.NewSchedule{WorkerID: f.worker.ID, Input: input, Budget: store.BudgetLow, When: w}, db.IdempotencyKey{})
	is.New(f.t).NoErr(err)
	return sch
}

// turns runs queued turns until n turns have run in total.
func (f *fixture) turns(n int64) {
	f.t.Helper()
	storetest.Eventually(f.t, fmt.Sprintf("%d turns", n), func() bool {
		ran, err := runAll(f.t.Context(), f.Store)
		is.New(f.t).NoErr(err)
		f.ran += ran
		return f.ran == n
	})
}

// runAll runs the queued turns and returns their number.
func runAll(ctx context.Context, st *store.Store) (n int64, err error) {
	runner := fmt.Sprint("r", os.Getpid()) // turns that a killed process claimed belong to another runner
	if err := st.StartRunner(ctx, runner, time.Hour); err != nil {
		return 0, err
	}
	for {
		claims, err := st.ClaimTurns(ctx, runner, 100, 100)
		if err != nil || len(claims) == 0 {
			return n, err
		}
		for _, c := range claims {
			if _, err := st.FinishTurn(ctx, c, nil, store.Outcome{Status: store.Completed}); err != nil {
				return n, err
			}
			n++
		}
	}
}

// queued waits until n turns are in the queue. On a server, the count includes turns that are not
// committed yet.
func (f *fixture) queued(n int64) {
	f.t.Helper()
	storetest.Eventually(f.t, fmt.Sprintf("%d waiting turns", n), func() bool {
		return f.Queued() == n && f.AwaitWrites(f.t.Context()) == nil && f.Queued() == n
	})
}

// timers is the number of timers while the scheduler waits: one of its loop, and one of gocron for
// each of the five jobs that Start creates.
const timers = 6

// advance moves the clock after the scheduler's loop and all jobs of gocron wait for it. Otherwise the
// loop could set a timer from the time before, or gocron could skip a tick.
func (f *fixture) advance(d time.Duration) {
	f.t.Helper()
	is.New(f.t).NoErr(f.clock.BlockUntilContext(f.t.Context(), timers))
	f.clock.Advance(d)
}

func TestFiresOnTime(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t, store.Options{})
	f.schedule("soon", store.When{Type: store.Delayed, DelaySeconds: 0.25})
	f.schedule("every", store.When{Type: store.Interval, IntervalSeconds: 2})
	s := f.start()
	is.True(s.Alive())
	f.advance(249 * time.Millisecond)
	f.turns(0)
	f.advance(time.Millisecond) // it wakes between two ticks
	f.turns(1)
	f.advance(1750 * time.Millisecond)
	f.turns(2)
	for i := range int64(5) {
		f.advance(time.Second)
		f.advance(time.Second)
		f.turns(3 + i)
	}
	storetest.Eventually(f.t, "the runner to be told", func() bool { return f.fired.Load() >= 7 })
}

func TestWakesForANewSchedule(t *testing.T) {
	t.Parallel()
	f := newFixture(t, store.Options{})
	s := f.start()
	f.schedule("now", store.When{Type: store.Delayed})
	s.Wake()
	f.turns(1) // the clock does not move
}

// TestCatchesUpAfterSuspend lets the machine sleep for three days, with and without a running
// scheduler.
func TestCatchesUpAfterSuspend(t *testing.T) {
	t.Parallel()
	f := newFixture(t, store.Options{})
	f.schedule("a", store.When{Type: store.Interval, IntervalSeconds: 60})
	f.schedule("b", store.When{Type: store.CronType, Cron: "*/5 * * * *"})
	f.schedule("c", store.When{Type: store.Scheduled, Date: begin.Add(time.Hour)})
	f.clock.Advance(72 * time.Hour)
	f.start()
	f.turns(3) // one each
	f.advance(72 * time.Hour)
	f.turns(5)
	f.advance(30 * time.Second)
	f.turns(5)
}

func TestClockSetBack(t *testing.T) {
	t.Parallel()
	f := newFixture(t, store.Options{})
	f.schedule("hourly", store.When{Type: store.CronType, Cron: "0 * * * *"})
	s := f.start()
	f.advance(time.Minute) // 00:00
	f.turns(1)
	f.set(-2 * time.Hour)
	s.Wake()
	f.advance(time.Hour)
	f.advance(time.Hour) // 00:00 again
	s.Wake()
	f.advance(time.Hour)
	f.turns(2)                 // the third is too early
	f.set(30 * 24 * time.Hour) // a month ahead, by mistake
	s.Wake()
	f.turns(3)
	f.set(-30 * 24 * time.Hour)
	s.Wake()
	storetest.Eventually(f.t, "the schedule to be looked at anew", func() bool {
		at, _, err := f.NextScheduleAt(t.Context())
		return err == nil && at.Sub(begin) == 2*time.Hour+time.Minute
	})
	f.advance(time.Hour)
	s.Wake()
	f.turns(4)
}

// TestJumpsOfTheClock sets the clock back and ahead while schedules run. They continue at their
// interval immediately, also after the clock is correct again, and the scheduler stays alive.
func TestJumpsOfTheClock(t *testing.T) {
	t.Parallel()
	for name, jump := range map[string]time.Duration{"an hour": time.Hour, "three days": 72 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, store.Options{})
			f.schedule("every", store.When{Type: store.Interval, IntervalSeconds: 60})
			f.schedule("cron", store.When{Type: store.CronType, Cron: "* * * * *"})
			s := f.start()
			n := int64(0)
			minute := func() { // both fire once
				t.Helper()
				for range 60 {
					f.advance(time.Second)
				}
				n += 2
				f.turns(n)
				// On a busy machine the clock can be a minute ahead of a round that still runs.
				s.Wake()
				storetest.Eventually(f.t, "the scheduler to be alive", s.Alive)
			}
			minute()
			back := func() {
				t.Helper()
				f.set(-jump)
				s.Wake()
				storetest.Eventually(f.t, "near due times", func() bool {
					at, _, err := f.NextScheduleAt(t.Context())
					return err == nil && at.Sub(f.now()) <= time.Minute
				})
			}
			back()
			minute()
			minute()
			f.schedule("late", store.When{Type: store.Delayed, DelaySeconds: 90})
			back()
			minute()
			n++ // 90 s after it was made
			minute()
			f.set(2 * jump) // correct again: all schedules are due, and each fires once
			s.Wake()
			n += 2
			f.turns(n)
			minute()
			minute()
		})
	}
}

// TestAlive checks that Alive depends on elapsed time, not on the wall clock.
func TestAlive(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t, store.Options{})
	s, err := schedule.New(schedule.Config{Store: f.Store, Log: slog.New(slog.DiscardHandler), Fired: func() {},
		Clock: f.clock, Now: f.now})
	is.NoErr(err)
	is.NoErr(s.Start(t.Context()))
	is.NoErr(s.Stop()) // it no longer runs rounds
	is.True(s.Alive())
	f.set(24 * time.Hour)
	is.True(s.Alive()) // a jump ahead looks like a stopped scheduler
	f.clock.Advance(59 * time.Second)
	is.True(s.Alive())
	f.set(-48 * time.Hour)
	f.clock.Advance(2 * time.Second)
	is.True(!s.Alive()) // a jump back hides a stopped scheduler
}

// TestRunnerIsToldOnce makes more schedules due than one query returns. The runner starts after all
// of them are in the queue.
func TestRunnerIsToldOnce(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t, store.Options{})
	const n = 600
	for range n {
		f.schedule("all at once", store.When{Type: store.Delayed, DelaySeconds: 1})
	}
	queued := make(chan int64, n)
	s, err := schedule.New(schedule.Config{Store: f.Store, Log: slog.New(slog.DiscardHandler),
		Fired: func() { queued <- f.Queued() }, Clock: f.clock, Now: f.now})
	is.NoErr(err)
	is.NoErr(s.Start(t.Context()))
	f.advance(time.Second)
	is.Equal(<-queued, int64(n)) // the runner started before the others were queued
	is.NoErr(s.Stop())
	is.Equal(len(queued), 0)
}

// TestQueueIsNotFlooded makes more schedules due than the queue accepts. Schedules fill only half
// of the queue, and the remaining ones follow when it has room.
func TestQueueIsNotFlooded(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t, store.Options{QueueLimit: 20})
	for range 25 {
		f.schedule("all at once", store.When{Type: store.Delayed, DelaySeconds: 1})
	}
	f.start()
	f.advance(time.Second)
	f.queued(10)
	is.NoErr(f.StartRunner(t.Context(), "r", time.Hour))
	for _, left := range []int64{10, 5, 0} {
		_, err := f.ClaimTurns(t.Context(), "r", 10, 10)
		is.NoErr(err)
		f.advance(time.Second)
		f.queued(left)
	}
}

// TestOneTaskAtATime lets a schedule become due twenty times while the task of its first run is
// queued. After that task has run, the schedule fires once for all of them.
func TestOneTaskAtATime(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t, store.Options{})
	f.schedule("every", store.When{Type: store.Interval, IntervalSeconds: 1})
	f.start()
	for range 20 {
		f.advance(time.Second)
		f.queued(1)
	}
	f.advance(0) // the scheduler has looked at the last second, so it fires nothing when the task ends
	n, err := runAll(t.Context(), f.Store)
	is.NoErr(err)
	is.Equal(n, int64(1))
	f.advance(time.Second)
	f.queued(1)
	n, err = runAll(t.Context(), f.Store)
	is.NoErr(err)
	is.Equal(n, int64(1)) // one run for all missed due times
	f.advance(500 * time.Millisecond)
	f.queued(0) // not before its next time
	f.advance(500 * time.Millisecond)
	f.queued(1)
}

func TestStopsWhileIdle(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t, store.Options{})
	s, err := schedule.New(schedule.Config{Store: f.Store, Log: slog.New(slog.DiscardHandler), Fired: func() {}})
	is.NoErr(err)
	is.NoErr(s.Start(t.Context()))
	f.schedule("later", store.When{Type: store.Delayed, DelaySeconds: 3600})
	s.Wake()
	is.NoErr(s.Stop())
	is.Equal(f.Queued(), int64(0))
}

// TestPrunes checks that old rows are deleted, and only those.
func TestPrunes(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t, store.Options{})
	useless := func(folder int) string {
		return filepath.Join(f.Dir(), "files", fmt.Sprintf("%02x", folder), fmt.Sprintf("%02x%062x", folder, 0))
	}
	for folder := range 256 { // a round looks at some of the folders
		is.NoErr(os.MkdirAll(filepath.Dir(useless(folder)), 0o700))
		is.NoErr(os.WriteFile(useless(folder), nil, 0o600))
		old := f.clock.Now().Add(-48 * time.Hour)
		is.NoErr(os.Chtimes(useless(folder), old, old))
	}
	f.start()
	f.advance(10 * time.Minute)
	storetest.Eventually(f.t, "a file of no use to be swept", func() bool {
		for folder := range 256 {
			if _, err := os.Stat(useless(folder)); errors.Is(err, os.ErrNotExist) {
				return true
			}
		}
		return false
	})
}

// TestPrunesByAge moves the clock of a stopped scheduler: a running one would need too long for the
// ticks of months.
func TestPrunesByAge(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t, store.Options{})
	_, err := f.Effects.SetWebhook(t.Context(), f.owner.Caller, f.worker.ID, "https://a.example/")
	is.NoErr(err)
	d, err := f.Effects.CreateTestDelivery(t.Context(), f.owner.Caller, f.worker.ID)
	is.NoErr(err)
	_, err = f.Effects.RecordAttempt(t.Context(), d, store.Attempt{Manual: true, StartedAt: f.clock.Now()})
	is.NoErr(err)
	mail := store.NewEmail{Worker: f.worker, Status: store.EmailIgnored, MessageID: "a@b.test", Verdicts: []byte(`{}`)}
	list, _, err := f.ReceiveEmails(t.Context(), []store.NewEmail{mail}, []byte("raw"), store.MailLimits{})
	is.NoErr(err)
	s, err := schedule.New(schedule.Config{Store: f.Store, Log: slog.New(slog.NewTextHandler(t.Output(), nil)), Clock: f.clock, KeepMail: 45 * 24 * time.Hour, KeepDeliveries: 30 * 24 * time.Hour})
	is.NoErr(err)
	for days, kept := range []struct{ execution, mail bool }{{true, true}, {false, true}, {false, false}} {
		if days > 0 {
			f.clock.Advance(30 * 24 * time.Hour)
		}
		f.clock.Advance(10 * time.Minute)
		s.Prune()
		_, n, err := f.Effects.Executions(t.Context(), f.owner.Caller, f.worker.ID, 1)
		is.NoErr(err)
		is.Equal(n == 1, kept.execution)
		_, err = f.Effects.Email(t.Context(), f.owner.Caller, list[0].ID)
		is.Equal(db.IsNotFound(err), !kept.mail)
	}
}
