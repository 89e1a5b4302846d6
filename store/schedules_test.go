package store_test

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store"
	"journeyman/store/cron"
	"journeyman/store/db"
	"journeyman/store/ordertest"
	"journeyman/store/people"
	"journeyman/store/storetest"
	"journeyman/store/workers"
)

func cronAt(expr string) store.When { return store.When{Type: store.CronType, Cron: expr} }

func everySeconds(n float64) store.When { return store.When{Type: store.Interval, IntervalSeconds: n} }

func inSeconds(n float64) store.When { return store.When{Type: store.Delayed, DelaySeconds: n} }

// schedule creates a schedule of the worker.
func (f *fixture) schedule(w store.When) store.Schedule {
	f.t.Helper()
	sch, _, err := f.CreateSchedule(f.ctx(), f.owner.Caller,
		store.NewSchedule{WorkerID: f.worker.ID, Input: "Tick", Budget: store.BudgetLow, When: w}, db.IdempotencyKey{})
	is.New(f.t).NoErr(err)
	return sch
}

// fireDue fires the due schedules, and returns the ids of their turns.
func (f *fixture) fireDue() (turns []string) {
	f.t.Helper()
	is := is.New(f.t)
	due, err := f.DueSchedules(f.ctx(), 1000, 0)
	is.NoErr(err)
	for _, d := range due {
		firing, err := f.FireSchedule(f.ctx(), d)
		is.NoErr(err)
		if firing.TurnID != "" {
			turns = append(turns, firing.TurnID)
		}
	}
	return turns
}

// listed returns a schedule from the list, or nil if it is not listed.
func (f *fixture) listed(id string) *store.Schedule {
	f.t.Helper()
	list, err := f.Schedules(f.ctx(), f.owner.Caller, f.worker.ID)
	is.New(f.t).NoErr(err)
	for _, sch := range list {
		if sch.ID == id {
			return &sch
		}
	}
	return nil
}

func TestCreateScheduleOfEachType(t *testing.T) {
	t.Parallel()
	f := newFixture(t) // 2026-03-31T23:59:00Z, a Tuesday
	for name, tt := range map[string]struct {
		when store.When
		next []string // the first of them is NextRunAt
	}{
		"scheduled": {store.When{Type: store.Scheduled, Date: time.Date(2026, 4, 1, 9, 0, 0, 123e6, time.FixedZone("", 7200))},
			[]string{"2026-04-01T07:00:00.123Z"}},
		"delayed":          {inSeconds(90.5), []string{"2026-04-01T00:00:30.5Z"}},
		"delayed by none":  {inSeconds(0), []string{"2026-03-31T23:59:00Z"}},
		"cron":             {cronAt("0 12 * * 3"), []string{"2026-04-01T12:00:00Z", "2026-04-08T12:00:00Z", "2026-04-15T12:00:00Z"}},
		"cron with a zone": {cronAt("CRON_TZ=Asia/Tokyo 0 12 1 * *"), []string{"2026-04-01T03:00:00Z", "2026-05-01T03:00:00Z", "2026-06-01T03:00:00Z"}},
		"interval":         {everySeconds(3600), []string{"2026-04-01T00:59:00Z", "2026-04-01T01:59:00Z", "2026-04-01T02:59:00Z"}},
		"odd interval":     {everySeconds(1.0005), []string{"2026-03-31T23:59:01.001Z", "2026-03-31T23:59:02.002Z", "2026-03-31T23:59:03.003Z"}},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			sch := f.schedule(tt.when)
			again := f.listed(sch.ID)
			is.True(again != nil) // the schedule is listed
			is.Equal(again.When.Type, tt.when.Type)
			is.Equal(again.NextRunAt, sch.NextRunAt)
			runs, err := f.NextRuns(*again, 3)
			is.NoErr(err)
			got := []string{}
			for _, at := range runs {
				got = append(got, at.UTC().Format(time.RFC3339Nano))
			}
			is.Equal(got, tt.next)
			is.Equal(again.NextRunAt.UTC().Format(time.RFC3339Nano), tt.next[0])
		})
	}
}

func TestCreateScheduleRefusals(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	now := f.clock.now()
	for name, tt := range map[string]struct {
		when store.When
		path string
	}{
		"now is not the future":  {store.When{Type: store.Scheduled, Date: now}, "when.date"},
		"less than a tick ahead": {store.When{Type: store.Scheduled, Date: now.Add(time.Microsecond)}, "when.date"},
		"no date":                {store.When{Type: store.Scheduled}, "when.date"},
		"year 10000":             {store.When{Type: store.Scheduled, Date: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)}, "when.date"},
		"year 10000 in UTC":      {store.When{Type: store.Scheduled, Date: time.Date(9999, 12, 31, 23, 0, 0, 0, time.FixedZone("", -2*3600))}, "when.date"},
		"into the past":          {inSeconds(-0.001), "when.delayInSeconds"},
		"no number":              {inSeconds(math.NaN()), "when.delayInSeconds"},
		"for ever":               {inSeconds(math.Inf(1)), "when.delayInSeconds"},
		"too often":              {everySeconds(0.999), "when.intervalSeconds"},
		"too seldom":             {everySeconds(4e9), "when.intervalSeconds"},
		"no cron":                {cronAt("every day"), "when.cron"},
		"no date that comes":     {cronAt("0 0 30 2 *"), "when.cron"},
		"no type":                {store.When{}, "when.type"},
		"unknown type":           {store.When{Type: "hourly"}, "when.type"},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			_, _, err := f.CreateSchedule(f.ctx(), f.owner.Caller,
				store.NewSchedule{WorkerID: f.worker.ID, Budget: "huge", When: tt.when}, db.IdempotencyKey{})
			is.True(db.IsKind(err, db.Invalid))
			paths := []string{}
			for _, d := range details(err) {
				paths = append(paths, d.Path)
			}
			is.Equal(paths, []string{"input", "budget", tt.path}) // every invalid field
		})
	}
}

func TestScheduleAccess(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	sch := f.schedule(everySeconds(60))
	stranger := f.caller("Other", "eve@other.test", people.RoleOwner).Caller
	member := f.caller("Acme", "mo@acme.test", people.RoleMember).Caller
	other := f.newWorker(f.owner, workers.NewWorker{})
	is.True(db.IsKind(errOf(f.Schedules(f.ctx(), stranger, f.worker.ID)), db.Forbidden))
	is.True(db.IsKind(errOf(f.Schedule(f.ctx(), stranger, f.worker.ID, sch.ID)), db.Forbidden))
	is.True(db.IsKind(f.CancelSchedule(f.ctx(), stranger, f.worker.ID, sch.ID), db.Forbidden))
	_, err := f.RunSchedule(f.ctx(), stranger, f.worker.ID, sch.ID, db.IdempotencyKey{})
	is.True(db.IsKind(err, db.Forbidden))
	_, err = f.Schedule(f.ctx(), member, other.ID, sch.ID)
	is.True(db.IsKind(err, db.NotFound)) // the path names another worker
	got, err := f.Schedule(f.ctx(), member, f.worker.ID, sch.ID)
	is.NoErr(err)
	is.Equal(got.ID, sch.ID)
	is.NoErr(f.CancelSchedule(f.ctx(), member, f.worker.ID, sch.ID))
	is.True(db.IsKind(f.CancelSchedule(f.ctx(), member, f.worker.ID, sch.ID), db.NotFound)) // only once
	is.Equal(f.listed(sch.ID),
		nil) // the schedule is still listed
	is.Equal(f.count(`SELECT count(*) FROM schedules WHERE cancelled_at IS NOT NULL`), int64(1)) // the row remains
}

func TestScheduleFires(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	once := f.schedule(inSeconds(10))
	every := f.schedule(everySeconds(10))
	is.Equal(len(f.fireDue()), 0) // nothing is due yet
	f.clock.advance(10 * time.Second)
	at, ok, err := f.NextScheduleAt(f.ctx())
	is.NoErr(err)
	is.True(ok && at.Equal(f.clock.now()))
	turns := f.fireDue()
	is.Equal(len(turns), 2)
	is.Equal(len(f.fireDue()), 0) // only once
	first, err := f.Turn(f.ctx(), turns[0])
	is.NoErr(err)
	task := f.task(first.TaskID)
	is.Equal(first.Input, "Tick")
	is.Equal(first.Budget, store.BudgetLow)
	is.Equal(first.TriggeredBy, people.TriggerSchedule)
	is.Equal(task.TriggeredBy, people.TriggerSchedule)
	is.Equal(task.CreatedByUserID, f.owner.UserID)
	is.Equal(f.listed(once.ID), nil)                                                    // removed from the list
	is.Equal(f.count(`SELECT count(*) FROM schedules WHERE id = ?`, once.ID), int64(1)) // the row remains
	is.Equal(f.listed(every.ID).NextRunAt, f.clock.now().UTC().Add(10*time.Second))
	is.Equal(*f.listed(every.ID).LastRunAt, f.clock.now().UTC())
	_, err = f.UpdateSchedule(f.ctx(), f.owner.Caller, f.worker.ID, once.ID, store.SchedulePatch{})
	is.True(db.IsKind(err, db.NotFound))
	f.checkCounters()
}

// TestScheduleCatchesUp suspends the machine for three days, and sets the clock.
func TestScheduleCatchesUp(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	f.schedule(inSeconds(60))
	minutely := f.schedule(everySeconds(60.5))
	daily := f.schedule(cronAt("30 12 * * *"))
	begin := f.clock.now()
	f.clock.advance(72 * time.Hour)
	is.Equal(len(f.fireDue()), 3) // once per schedule
	is.Equal(len(f.fireDue()), 0)
	f.runAll()
	next := f.listed(minutely.ID).NextRunAt
	is.True(next.After(f.clock.now()))
	ordertest.AtMost(is, next.Sub(f.clock.now()), 60500*time.Millisecond)
	is.Equal(next.Sub(begin)%(60500*time.Millisecond), time.Duration(0)) // from its creation
	is.Equal(f.listed(daily.ID).NextRunAt, time.Date(2026, 4, 4, 12, 30, 0, 0, time.UTC))
	is.NoErr(f.CancelSchedule(f.ctx(), f.owner.Caller, f.worker.ID, minutely.ID))

	f.clock.ms.Store(time.Date(2026, 4, 4, 12, 30, 0, 0, time.UTC).UnixMilli())
	is.Equal(len(f.fireDue()), 1)
	f.runAll()
	f.clock.advance(-2 * time.Hour) // the clock was an hour ahead: the due time has already passed
	is.NoErr(errOf(f.RealignSchedules(f.ctx())))
	f.clock.advance(2*time.Hour + time.Minute)
	is.Equal(len(f.fireDue()), 0)
	f.clock.advance(24 * time.Hour)
	is.Equal(len(f.fireDue()), 1)
}

// TestScheduleAfterAWrongClock sets the clock years ahead for a while.
func TestScheduleAfterAWrongClock(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	daily := f.schedule(cronAt("30 12 * * *"))
	f.clock.advance(20 * 365 * 24 * time.Hour)
	is.Equal(len(f.fireDue()), 1)
	f.clock.advance(-20 * 365 * 24 * time.Hour)
	is.Equal(f.listed(daily.ID).NextRunAt.Year(), 2046)
	n, err := f.RealignSchedules(f.ctx())
	is.NoErr(err)
	is.Equal(n, 1)
	is.Equal(f.listed(daily.ID).NextRunAt.UTC(), time.Date(2026, 4, 1, 12, 30, 0, 0, time.UTC))
	n, err = f.RealignSchedules(f.ctx())
	is.NoErr(err)
	is.Equal(n, 0) // nothing is left to realign
}

// TestNewScheduleAfterAWrongClock sets the clock back by an hour before a new schedule has run.
// Only the age of the schedule shows the error.
func TestNewScheduleAfterAWrongClock(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	f.clock.advance(time.Hour)
	c := f.schedule(everySeconds(1))
	f.clock.advance(-time.Hour)
	n, err := f.RealignSchedules(f.ctx())
	is.NoErr(err)
	is.Equal(n, 1)
	is.Equal(f.listed(c.ID).NextRunAt.UTC(), f.clock.now().Add(time.Second).UTC())
}

func TestScheduleInAnotherTimezone(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	dir, clock := t.TempDir(), newClock()
	open := func(zone string) *store.Store {
		loc, err := cron.LoadZone(zone)
		is.NoErr(err)
		return storetest.Reopen(t, dir, store.Options{Now: clock.now, Timezone: loc})
	}
	s := open("Europe/Berlin")
	f := &fixture{t: t, clock: clock, Store: s}
	f.owner, _ = storetest.Caller(t, s, "Acme", "ann@acme.test", people.RoleOwner)
	f.worker = f.newWorker(f.owner, workers.NewWorker{})
	plain, own, missed := f.schedule(cronAt("0 9 * * *")), f.schedule(cronAt("CRON_TZ=Asia/Tokyo 0 9 * * *")), f.schedule(cronAt("0 2 * * *"))
	is.Equal(plain.NextRunAt.UTC().Hour(), 7)
	is.NoErr(s.Close())
	clock.advance(time.Hour)

	f.Store = open("America/New_York")
	n, err := f.RealignSchedules(t.Context())
	is.NoErr(err)
	is.Equal(n, 2)
	is.Equal(f.Timezone(), "America/New_York")
	is.Equal(f.listed(plain.ID).NextRunAt.UTC().Hour(), 13)
	is.Equal(f.listed(own.ID).NextRunAt, own.NextRunAt)
	is.Equal(f.listed(missed.ID).NextRunAt, missed.NextRunAt) // it is due
	is.Equal(len(f.fireDue()), 2)                             // Tokyo's is due, too
	n, err = f.RealignSchedules(t.Context())
	is.NoErr(err)
	is.Equal(n, 0)
}

func TestUpdateSchedule(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	sch := f.schedule(everySeconds(60))
	patch := func(p store.SchedulePatch) store.Schedule {
		t.Helper()
		got, err := f.UpdateSchedule(f.ctx(), f.owner.Caller, f.worker.ID, sch.ID, p)
		is.NoErr(err)
		is.Equal(*f.listed(sch.ID), got)
		return got
	}
	yes, no, input, budget := true, false, "Tock", store.BudgetHigh
	f.clock.advance(90 * time.Second)
	got := patch(store.SchedulePatch{Input: &input, Budget: &budget})
	is.Equal(got.Input, "Tock")
	is.Equal(got.NextRunAt, sch.NextRunAt) // still due
	got = patch(store.SchedulePatch{Paused: &yes})
	is.Equal(got.NextRunAt, sch.NextRunAt.Add(time.Minute)) // as without the pause
	is.Equal(len(f.fireDue()), 0)
	runs, err := f.NextRuns(got, 5)
	is.NoErr(err)
	is.Equal(len(runs), 0)
	f.clock.advance(time.Hour)
	got = patch(store.SchedulePatch{Paused: &no})
	is.Equal(got.NextRunAt.Sub(sch.NextRunAt), 61*time.Minute) // without the missed runs
	when := cronAt("0 0 * * *")
	got = patch(store.SchedulePatch{When: &when})
	is.Equal(got.When, when)
	is.Equal(got.NextRunAt.UTC(), time.Date(2026, 4, 2, 0, 0, 0, 0, time.UTC))
	when = inSeconds(5)
	is.Equal(patch(store.SchedulePatch{When: &when, Paused: &yes}).NextRunAt, f.clock.now().UTC().Add(5*time.Second))
	f.clock.advance(time.Minute)
	is.Equal(len(f.fireDue()), 0)
	patch(store.SchedulePatch{Paused: &no})
	is.Equal(len(f.fireDue()), 1) // its only time has passed
	when = cronAt("never")
	_, err = f.UpdateSchedule(f.ctx(), f.owner.Caller, f.worker.ID, f.schedule(everySeconds(1)).ID, store.SchedulePatch{When: &when})
	is.True(db.IsKind(err, db.Invalid))
}

func TestRunSchedule(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	sch := f.schedule(inSeconds(60))
	member := f.caller("Acme", "mo@acme.test", people.RoleMember).Caller
	once := db.IdempotencyKey{KeyID: member.KeyID, Key: "k", Hash: hash("run")}
	a, err := f.RunSchedule(f.ctx(), member, f.worker.ID, sch.ID, once)
	is.NoErr(err)
	is.Equal(a.Turn.TriggeredBy, people.TriggerSchedule)
	is.Equal(a.Turn.CreatedByUserID, member.UserID)
	again, err := f.RunSchedule(f.ctx(), member, f.worker.ID, sch.ID, once)
	is.NoErr(err)
	is.True(again.Replayed && again.Turn.ID == a.Turn.ID) // the same key created another turn
	is.Equal(f.listed(sch.ID).NextRunAt, sch.NextRunAt)   // the rhythm is unchanged
	_, err = f.RunSchedule(f.ctx(), member, f.worker.ID, sch.ID, db.IdempotencyKey{})
	is.True(db.IsKind(err, db.Conflict))
	is.True(strings.Contains(err.Error(), a.Turn.TaskID)) // the message names the other task
	f.clock.advance(time.Minute)
	is.Equal(len(f.fireDue()), 0) // one task at a time
	f.runAll()
	is.Equal(len(f.fireDue()), 1)
}

// TestScheduleHeldBack checks each reason to delay a due schedule.
func TestScheduleHeldBack(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		cause func(*testing.T, *fixture, store.Schedule)
		check func(*is.I, *fixture, store.Schedule)
	}{
		"no credits": {
			func(t *testing.T, f *fixture, _ store.Schedule) { f.setCap(0) },
			func(is *is.I, f *fixture, sch store.Schedule) {
				wait := f.listed(sch.ID).NextRunAt.Sub(f.clock.now())
				ordertest.AtLeast(is, wait, 5*time.Minute) // 5 to 10 minutes
				ordertest.Below(is, wait, 10*time.Minute)  // 5 to 10 minutes
				f.setCap(1e6)
				f.clock.advance(wait)
				is.Equal(len(f.fireDue()), 1) // late, but not lost
				is.Equal(f.listed(sch.ID).NextRunAt.Sub(sch.NextRunAt)%time.Minute, time.Duration(0))
			}},
		"worker deleted": {
			func(t *testing.T, f *fixture, _ store.Schedule) {
				is.New(t).NoErr(f.DeleteWorker(f.ctx(), f.owner.Caller, f.worker.ID))
			},
			func(is *is.I, f *fixture, sch store.Schedule) {
				is.Equal(f.count(`SELECT count(*) FROM schedules WHERE next_run_at IS NULL AND cancelled_at IS NOT NULL`), int64(1))
			}},
		"no longer invited": {
			func(t *testing.T, f *fixture, sch store.Schedule) {
				private := workers.Private
				if _, err := f.Workers.UpdateWorker(f.ctx(), f.owner.Caller, f.worker.ID,
					workers.Patch{Visibility: &private}); err != nil {
					t.Fatal(err)
				}
			},
			func(is *is.I, f *fixture, sch store.Schedule) { is.True(f.listed(sch.ID).Paused) }},
		"left the organization": {
			func(t *testing.T, f *fixture, sch store.Schedule) {
				f.exec(`DELETE FROM api_keys WHERE user_id = ?`, sch.CreatedByUserID)
				f.exec(`DELETE FROM memberships WHERE user_id = ?`, sch.CreatedByUserID)
			},
			func(is *is.I, f *fixture, sch store.Schedule) { is.True(f.listed(sch.ID).Paused) }},
		"a zone that is no more": {
			func(t *testing.T, f *fixture, sch store.Schedule) {
				f.exec(`UPDATE schedules SET type = 'cron', interval_seconds = NULL, cron = 'CRON_TZ=Gone/Gone * * * * *'`)
			},
			func(is *is.I, f *fixture, sch store.Schedule) { is.True(f.listed(sch.ID).Paused) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			f := newFixture(t)
			mo := f.caller("Acme", "mo@acme.test", people.RoleMember).Caller
			sch, _, err := f.CreateSchedule(f.ctx(), mo,
				store.NewSchedule{WorkerID: f.worker.ID, Input: "Tick", Budget: store.BudgetLow,
					When: everySeconds(60)}, db.IdempotencyKey{})
			is.NoErr(err)
			f.clock.advance(time.Minute)
			due, err := f.DueSchedules(f.ctx(), 10, 0)
			is.NoErr(err)
			is.Equal(len(due), 1)
			tt.cause(t, f, sch)
			firing, err := f.FireSchedule(f.ctx(), due[0])
			is.NoErr(err)
			is.Equal(firing.TurnID, "")
			is.Equal(f.count(`SELECT count(*) FROM turns`), int64(0))
			tt.check(is, f, sch)
		})
	}
}

func (f *fixture) setCap(credits float64) {
	f.t.Helper()
	storetest.CapCredits(f.t, f.Store, f.owner.Caller, &credits)
}

func (f *fixture) exec(query string, args ...any) {
	f.t.Helper()
	is.New(f.t).NoErr(f.Write(f.ctx(), func(tx db.Tx) error { return errOf(tx.Exec(query, args...)) }))
}

func TestScheduleWithTheQueueFull(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixtureWith(t, store.Options{QueueLimit: 2, QueueTotal: 4})
	sch := f.schedule(everySeconds(1))
	f.clock.advance(5 * time.Second)
	due, err := f.DueSchedules(f.ctx(), 10, 0)
	is.NoErr(err)
	f.accept(f.turn())
	is.Equal(f.ScheduleRoom(), int64(1)) // half of the queue is reserved for others
	none, err := f.DueSchedules(f.ctx(), 10, 0)
	is.NoErr(err)
	is.Equal(len(none), 0) // and half of the organization's queue
	f.accept(f.turn())
	is.True(db.IsKind(errOf(f.FireSchedule(f.ctx(), due[0])), db.Busy))
	is.Equal(f.listed(sch.ID).NextRunAt, sch.NextRunAt) // unchanged
	f.startRunner("r")
	is.Equal(len(f.claim("r", 2)), 2)
	is.Equal(len(f.fireDue()), 1)
	is.NoErr(f.DelaySchedule(f.ctx(), due[0], time.Hour)) // not due at that time: no change
	is.Equal(f.listed(sch.ID).NextRunAt, f.clock.now().UTC().Add(time.Second))
}

// TestDueSchedulesAreShared checks that an organization gets its share despite another's many
// schedules.
func TestDueSchedulesAreShared(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	flood := f.schedule(everySeconds(1))
	f.exec(`WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 50)
		INSERT INTO schedules (id, organization_id, worker_id, created_by_user_id, input, budget, type, interval_seconds, anchor_at, next_run_at, paused, created_at)
		SELECT id || i, organization_id, worker_id, created_by_user_id, input, budget, type, interval_seconds, anchor_at, next_run_at, paused, created_at
		FROM n CROSS JOIN schedules`)
	eve := f.caller("Other", "eve@other.test", people.RoleOwner)
	w := f.newWorker(eve, workers.NewWorker{})
	f.clock.advance(time.Millisecond)
	late, _, err := f.CreateSchedule(f.ctx(), eve.Caller, store.NewSchedule{WorkerID: w.ID, Input: "Me too",
		Budget: store.BudgetLow, When: everySeconds(1)}, db.IdempotencyKey{})
	is.NoErr(err)
	f.clock.advance(time.Minute)
	others := map[bool]int{}
	for turn := range 3 {
		due, err := f.DueSchedules(f.ctx(), 10, turn)
		is.NoErr(err)
		ids := []string{}
		for _, d := range due {
			ids = append(ids, d.ID)
		}
		is.True(strings.Contains(strings.Join(ids, " "), late.ID)) // among the ten
		is.True(strings.Contains(strings.Join(ids, " "), flood.ID))
		one, err := f.DueSchedules(f.ctx(), 1, turn)
		is.NoErr(err)
		others[one[0].ID == late.ID]++
	}
	ordertest.Above(is, others[true], 0)  // with room for one, they alternate
	ordertest.Above(is, others[false], 0) // with room for one, they alternate
}

func TestScheduleLimit(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	f.schedule(everySeconds(1))
	f.exec(`WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
		INSERT INTO schedules (id, organization_id, worker_id, created_by_user_id, input, budget, type, interval_seconds, anchor_at, next_run_at, paused, created_at)
		SELECT id || i, organization_id, worker_id, created_by_user_id, input, budget, type, interval_seconds, anchor_at, next_run_at, paused, created_at
		FROM n CROSS JOIN schedules`, store.MaxSchedules-1)
	_, _, err := f.CreateSchedule(f.ctx(), f.owner.Caller,
		store.NewSchedule{WorkerID: f.worker.ID, Input: "One more", Budget: store.BudgetLow,
			When: everySeconds(1)}, db.IdempotencyKey{})
	is.True(db.IsKind(err, db.Conflict))
	is.Equal(store.MaxSchedules, 100)
	is.NoErr(f.CancelSchedule(f.ctx(), f.owner.Caller, f.worker.ID, f.listed(f.first()).ID))
	f.schedule(everySeconds(1)) // there is room for one again
}

func TestCreateScheduleOnce(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	n := store.NewSchedule{WorkerID: f.worker.ID, Input: "Tick", Budget: store.BudgetLow, When: inSeconds(0)}
	once := db.IdempotencyKey{KeyID: f.owner.KeyID, Key: "k", Hash: hash("a")}
	first, replayed, err := f.CreateSchedule(f.ctx(), f.owner.Caller, n, once)
	is.NoErr(err)
	is.True(!replayed)
	is.Equal(len(f.fireDue()), 1)
	again, replayed, err := f.CreateSchedule(f.ctx(), f.owner.Caller, n, once)
	is.NoErr(err)
	is.True(replayed)
	is.Equal(again.ID, first.ID) // even though it has already run
	once.Hash = hash("b")
	is.True(db.IsKind(errOf(f.CreateSchedule(f.ctx(), f.owner.Caller, n, once)), db.Mismatch))
}

// details returns the invalid fields in err.
func details(err error) []db.Detail {
	var e *db.Error
	if errors.As(err, &e) {
		return e.Details
	}
	return nil
}

// first returns the id of the worker's first schedule.
func (f *fixture) first() string {
	f.t.Helper()
	ids, err := f.Strings(f.ctx(), `SELECT id FROM schedules WHERE next_run_at IS NOT NULL ORDER BY num LIMIT 1`)
	if err != nil || len(ids) != 1 {
		f.t.Fatal(ids, err)
	}
	return ids[0]
}

// TestScheduleRunsOneTaskAtATime lets a schedule become due repeatedly. Meanwhile the task of its
// last run is queued, runs, waits for an approval and has a further turn.
func TestScheduleRunsOneTaskAtATime(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	sch := f.schedule(everySeconds(10))
	other := f.schedule(everySeconds(10))
	_, err := f.UpdateSchedule(f.ctx(), f.owner.Caller, f.worker.ID, other.ID, store.SchedulePatch{Paused: new(bool)})
	is.NoErr(err)
	f.clock.advance(10 * time.Second)
	fired := f.fireDue()
	is.Equal(len(fired), 2) // one for each schedule
	turn, err := f.Turn(f.ctx(), fired[0])
	is.NoErr(err)
	held := func() {
		t.Helper()
		f.clock.advance(25 * time.Second)
		is.Equal(len(f.fireDue()), 0)
		_, ok, err := f.NextScheduleAt(f.ctx())
		is.NoErr(err)
		is.True(!ok) // the scheduler can sleep
		_, err = f.RunSchedule(f.ctx(), f.owner.Caller, f.worker.ID, sch.ID, db.IdempotencyKey{})
		is.True(db.IsKind(err, db.Conflict))
		f.checkCounters()
	}
	held() // the task is queued
	f.startRunner("r")
	claims := f.claim("r", 2)
	held() // the task runs
	follow := f.follow(turn)
	for _, c := range claims {
		f.finish(c)
	}
	is.Equal(len(f.fireDue()), 1) // only the other schedule
	is.NoErr(f.CancelSchedule(f.ctx(), f.owner.Caller, f.worker.ID, other.ID))
	held() // a user has added a turn to the task
	c := f.claim("r", 1)
	is.Equal(c[0].ID, follow.ID)
	f.finish(c[0])
	fired = f.fireDue()
	is.Equal(len(fired), 1) // once for all missed runs
	next := f.listed(sch.ID).NextRunAt
	is.True(next.After(f.clock.now()))
	ordertest.AtMost(is, next.Sub(f.clock.now()), 10*time.Second)
	is.Equal(next.Sub(sch.NextRunAt)%(10*time.Second), time.Duration(0)) // its rhythm continues
	f.checkCounters()
}

// TestCancelledTaskReleasesSchedule ends tasks of schedules in every way except success.
func TestCancelledTaskReleasesSchedule(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*is.I, *fixture, store.Turn){
		"cancelled while it waits": func(is *is.I, f *fixture, turn store.Turn) {
			is.NoErr(errOf(f.AbortTask(f.ctx(), f.owner.Caller, turn.TaskID)))
		},
		"failed": func(is *is.I, f *fixture, _ store.Turn) {
			f.startRunner("r")
			_, err := f.FinishTurn(f.ctx(), f.claimOne("r"), nil, store.Outcome{Status: store.Failed, Failure: &store.Failure{Code: "x"}})
			is.NoErr(err)
		},
		"interrupted three times": func(is *is.I, f *fixture, _ store.Turn) {
			for _, runner := range []string{"a", "b", "c", "d"} {
				f.startRunner(runner)
				f.claim(runner, 1)
			}
		},
		"cancelled while it runs, and the process died": func(is *is.I, f *fixture, turn store.Turn) {
			f.startRunner("r")
			f.claimOne("r")
			is.NoErr(errOf(f.AbortTask(f.ctx(), f.owner.Caller, turn.TaskID)))
			f.startRunner("next")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			f := newFixture(t)
			f.schedule(everySeconds(60))
			f.clock.advance(time.Minute)
			fired := f.fireDue()
			is.Equal(len(fired), 1)
			turn, err := f.Turn(f.ctx(), fired[0])
			is.NoErr(err)
			f.clock.advance(time.Minute)
			is.Equal(len(f.fireDue()), 0)
			end(is, f, turn)
			is.True(f.task(turn.TaskID).Status.Ended())
			is.Equal(len(f.fireDue()), 1)
			f.checkCounters()
		})
	}
}

// TestFullQueueDelaysOnlyOwnSchedules fills the queue of one organization. Its due
// schedules then wait without delaying others.
func TestFullQueueDelaysOnlyOwnSchedules(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixtureWith(t, store.Options{QueueLimit: 10})
	for range 20 {
		f.schedule(everySeconds(1))
	}
	for range 10 {
		f.accept(f.turn())
	}
	eve := f.caller("Other", "eve@other.test", people.RoleOwner)
	w := f.newWorker(eve, workers.NewWorker{})
	f.clock.advance(time.Millisecond)
	late, _, err := f.CreateSchedule(f.ctx(), eve.Caller,
		store.NewSchedule{WorkerID: w.ID, Input: "Me too", Budget: store.BudgetLow,
			When: everySeconds(1)}, db.IdempotencyKey{})
	is.NoErr(err)
	f.clock.advance(time.Minute)
	for _, limit := range []int{5, 100} { // fewer and more than the number of due schedules
		due, err := f.DueSchedules(f.ctx(), limit, 0)
		is.NoErr(err)
		is.Equal(len(due), 1)
		is.Equal(due[0].ID, late.ID)
	}
	is.Equal(len(f.fireDue()), 1)
	f.checkCounters()
}
