package store

import (
	"context"
	"database/sql"
	"math"
	"time"

	"journeyman/store/cron"
	"journeyman/store/db"
	"journeyman/store/people"
	"journeyman/store/workers"
)

// MaxSchedules is the number of schedules that a worker may have.
const MaxSchedules = 100

const maxScheduleSeconds = 100 * 365 * 24 * 3600 // a delay or interval of a century

// CheckWhen adds to f, below the path "when", the fields of w that are invalid. A date
// must be in the future, and a cron expression must have a next time.
func (s *Store) CheckWhen(f *db.Fields, w When) {
	within := func(v, least float64) bool { return v >= least && v <= maxScheduleSeconds } // false for NaN
	switch w.Type {
	case Scheduled:
		f.Check(w.Date.UnixMilli() > s.db.Millis(), "when.date", "must be in the future")
		f.Check(w.Date.UTC().Year() < 10_000, "when.date", "must be before the year 10000 in UTC")
	case Delayed:
		f.Check(within(w.DelaySeconds, 0), "when.delayInSeconds", "must be from 0 to %d", maxScheduleSeconds)
	case CronType:
		if _, err := cron.Parse(w.Cron, s.zone); err != nil {
			f.Add("when.cron", "%s", err.Error())
		}
	case Interval:
		f.Check(within(w.IntervalSeconds, 1), "when.intervalSeconds", "must be from 1 to %d", maxScheduleSeconds)
	default:
		f.Add("when.type", "must be scheduled, delayed, cron or interval")
	}
}

// begin sets the rule of a schedule to w, counted from now.
func (s *Store) begin(c *Schedule, w When, now time.Time) error {
	c.When, c.anchor, c.zone, c.ended = w, now, "", false
	switch w.Type {
	case Scheduled:
		c.anchor = db.FromMillis(w.Date.UnixMilli())
	case Delayed:
		c.anchor = now.Add(time.Duration(math.Round(w.DelaySeconds*1e3)) * time.Millisecond)
	case CronType:
		// The zone is stored, so the schedule keeps its hours if the server's zone
		// changes later.
		if !cron.NamesZone(w.Cron) {
			c.zone = s.zone.String()
		}
	}
	var err error
	c.NextRunAt, err = s.firstRun(*c)
	return err
}

// firstRun returns the first time at which a schedule is due by its rule, even if that time has
// passed.
func (s *Store) firstRun(c Schedule) (time.Time, error) {
	if c.When.Type.Once() {
		return c.anchor, nil
	}
	return s.after(c, c.anchor)
}

// after returns the first time after t at which a repeating schedule is due. For a
// one-time schedule it returns the zero time.
func (s *Store) after(c Schedule, t time.Time) (time.Time, error) {
	switch c.When.Type {
	case CronType:
		expr, err := cron.Parse(c.When.Cron, s.zone)
		if err != nil {
			return time.Time{}, err // the expression was valid when it was stored, but its time zone may be unknown now
		}
		return expr.Next(t), nil
	case Interval:
		every := time.Duration(math.Round(c.When.IntervalSeconds*1e3)) * time.Millisecond
		rounds := max(0, t.Sub(c.anchor)/every) // t may be before the anchor
		return c.anchor.Add((rounds + 1) * every), nil
	}
	return time.Time{}, nil
}

// NextRuns returns the next times at which a schedule will run, at most n. A paused
// schedule has none.
func (s *Store) NextRuns(c Schedule, n int) ([]time.Time, error) {
	if c.Paused || c.ended {
		return nil, nil
	}
	runs := []time.Time{c.NextRunAt}
	t := latest(c.NextRunAt, s.db.Now()) // all missed times together run once
	for len(runs) < n {
		next, err := s.after(c, t)
		if err != nil || next.IsZero() {
			return runs, err
		}
		runs, t = append(runs, next), next
	}
	return runs, nil
}

// PreviewRuns returns the next times at which a schedule with that rule would run, at most n.
func (s *Store) PreviewRuns(w When, n int) ([]time.Time, error) {
	var f db.Fields
	if s.CheckWhen(&f, w); f.Err() != nil {
		return nil, f.Err()
	}
	var c Schedule
	if err := s.begin(&c, w, db.FromMillis(s.db.Millis())); err != nil {
		return nil, err
	}
	return s.NextRuns(c, n)
}

// Timezone returns the time zone of cron schedules that name none.
func (s *Store) Timezone() string { return s.zone.String() }

// CreateSchedule creates a schedule of a worker that the caller may see. If a request
// with the same key has created one before, it returns that schedule, and replayed is
// true. NextRunAt of a schedule that has ended since then is the first time of its rule.
func (s *Store) CreateSchedule(ctx context.Context, c people.Caller, n NewSchedule,
	key db.IdempotencyKey) (sch Schedule, replayed bool, err error) {
	return db.CreateOnce(ctx, s.db, key, func(tx db.Tx, id string) (Schedule, error) {
		sch, err := db.One(ctx, tx, scanSchedule, `SELECT `+scheduleColumns+` FROM schedules WHERE id = ?`, id)
		s.showPaused(&sch)
		if err == nil && sch.ended { // the first answer had a time, and clients rely on it
			sch.NextRunAt, err = s.firstRun(sch)
		}
		return sch, db.NoRecord(err, "schedule")
	}, func(tx db.Tx) (Schedule, string, error) {
		sch, err := s.createSchedule(ctx, tx, c, n)
		return sch, sch.ID, err
	})
}

func (s *Store) createSchedule(ctx context.Context, tx db.Tx, c people.Caller, n NewSchedule) (sch Schedule,
	err error) {
	var f db.Fields
	f.Check(n.Input != "", "input", "is required")
	f.Check(n.Budget.Valid(), "budget", "must be low, standard, high or unlimited")
	s.CheckWhen(&f, n.When)
	if err := f.Err(); err != nil {
		return sch, err
	}
	w, err := workers.Visible(ctx, tx, c, n.WorkerID)
	if err != nil {
		return sch, err
	}
	s.db.MakeStorable(&n.Input)
	sch = Schedule{ID: db.NewID("sch", s.db.Now()), OrganizationID: w.OrganizationID, WorkerID: w.ID,
		CreatedByUserID: c.UserID, Input: n.Input, Budget: n.Budget, Paused: n.Paused,
		CreatedAt: db.FromMillis(s.db.Millis())}
	if err := s.begin(&sch, n.When, sch.CreatedAt); err != nil {
		return sch, err
	}
	return sch, insertSchedule(ctx, tx, &sch)
}

func insertSchedule(ctx context.Context, tx db.Tx, c *Schedule) error {
	n, err := db.One(ctx, tx, db.ScanInt, `SELECT count(*) FROM
		(SELECT 1 FROM schedules WHERE worker_id = ? AND next_run_at IS NOT NULL LIMIT ?) AS counted`,
		c.WorkerID, MaxSchedules)
	if err != nil {
		return err
	}
	if n >= MaxSchedules {
		return db.Errorf(db.Conflict,
			"the worker has %d schedules, the most a worker can have: cancel one that is no longer needed",
			MaxSchedules)
	}
	c.num, err = tx.Insert(`INSERT INTO schedules (id, organization_id, worker_id, created_by_user_id, input, budget,
			type, delay_seconds, cron, interval_seconds, timezone, anchor_at, next_run_at, paused, created_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		append([]any{c.ID, c.OrganizationID, c.WorkerID, c.CreatedByUserID, c.Input, c.Budget},
			append(c.whenArgs(), c.Paused, c.CreatedAt.UnixMilli())...)...)
	return err
}

// whenArgs returns the values of the columns from type to next_run_at.
func (c *Schedule) whenArgs() []any {
	var delay, cron, interval any
	switch c.When.Type {
	case Delayed:
		delay = c.When.DelaySeconds
	case CronType:
		cron = c.When.Cron
	case Interval:
		interval = c.When.IntervalSeconds
	}
	return []any{c.When.Type, delay, cron, interval, db.Nullable(c.zone), c.anchor.UnixMilli(), c.NextRunAt.UnixMilli()}
}

// Schedules returns the schedules of a worker that the caller may see, oldest first.
// One-time schedules that have run are not among them.
func (s *Store) Schedules(ctx context.Context, c people.Caller, workerID string) ([]Schedule, error) {
	w, err := workers.Visible(ctx, s.db, c, workerID)
	if err != nil {
		return nil, err
	}
	list, err := db.All(ctx, s.db, scanSchedule, `SELECT `+scheduleColumns+` FROM schedules INDEXED BY schedules_by_worker
		WHERE worker_id = ? AND next_run_at IS NOT NULL ORDER BY num LIMIT ?`, w.ID, MaxSchedules)
	for i := range list {
		s.showPaused(&list[i])
	}
	return list, err
}

// showPaused sets NextRunAt of a paused schedule to the time at which it would run.
func (s *Store) showPaused(c *Schedule) {
	if !c.Paused || c.When.Type.Once() {
		return
	}
	if next, err := s.after(*c, s.db.Now()); err == nil {
		c.NextRunAt = next
	}
}

// readSchedule returns a schedule that Schedules would list.
func readSchedule(ctx context.Context, q db.Querier, c people.Caller, workerID, id string) (Schedule, error) {
	w, err := workers.Visible(ctx, q, c, workerID)
	if err != nil {
		return Schedule{}, err
	}
	sch, err := db.One(ctx, q, scanSchedule, `SELECT `+scheduleColumns+` FROM schedules WHERE id = ?`, id)
	if err == nil && (sch.WorkerID != w.ID || sch.ended) {
		err = sql.ErrNoRows
	}
	return sch, db.NoRecord(err, "schedule of this worker")
}

// Schedule returns one schedule of a worker that the caller may see.
func (s *Store) Schedule(ctx context.Context, c people.Caller, workerID, id string) (Schedule, error) {
	sch, err := readSchedule(ctx, s.db, c, workerID, id)
	s.showPaused(&sch)
	return sch, err
}

// A SchedulePatch holds the fields of a schedule to change. A nil field stays as it is.
type SchedulePatch struct {
	Input  *string
	Budget *Budget
	When   *When // an interval counts from now
	Paused *bool
}

// onlyPauses reports whether the patch changes nothing else than to pause the schedule.
func (p SchedulePatch) onlyPauses() bool {
	return p.Paused != nil && *p.Paused && p.Input == nil && p.Budget == nil && p.When == nil
}

// UpdateSchedule changes a schedule. A resumed schedule runs next at its first time after now. A
// resumed one-time schedule whose time has passed runs at once. On a full disk, a schedule can only be
// paused, because a pause starts no work.
func (s *Store) UpdateSchedule(ctx context.Context, c people.Caller, workerID, id string,
	p SchedulePatch) (sch Schedule, err error) {
	if !p.onlyPauses() {
		if err := s.Gate.RoomIn(ctx); err != nil {
			return sch, err
		}
	}
	err = s.db.Write(ctx, func(tx db.Tx) error {
		if sch, err = readSchedule(ctx, tx, c, workerID, id); err != nil {
			return err
		}
		// This is read before set changes the schedule.
		resumed := sch.Paused && p.Paused != nil && !*p.Paused
		db.Set(&sch.Input, p.Input)
		db.Set(&sch.Budget, p.Budget)
		db.Set(&sch.Paused, p.Paused)
		s.db.MakeStorable(&sch.Input)
		now := db.FromMillis(s.db.Millis())
		switch {
		case p.When != nil:
			var f db.Fields
			if s.CheckWhen(&f, *p.When); len(f) > 0 {
				return f.Err()
			}
			err = s.begin(&sch, *p.When, now)
		case resumed && !sch.When.Type.Once():
			sch.NextRunAt, err = s.after(sch, now)
		}
		if err != nil {
			return err
		}
		args := append([]any{sch.Input, sch.Budget, sch.Paused}, sch.whenArgs()...)
		_, err = tx.Exec(`UPDATE schedules SET input = ?, budget = ?, paused = ?, type = ?, delay_seconds = ?, cron = ?,
			interval_seconds = ?, timezone = ?, anchor_at = ?, next_run_at = ? WHERE num = ?`, append(args, sch.num)...)
		return err
	})
	s.showPaused(&sch)
	return sch, err
}

// CancelSchedule ends a schedule for good. Its row stays.
func (s *Store) CancelSchedule(ctx context.Context, c people.Caller, workerID, id string) error {
	return s.db.Write(ctx, func(tx db.Tx) error {
		sch, err := readSchedule(ctx, tx, c, workerID, id)
		if err != nil {
			return err
		}
		return s.endSchedule(tx, sch.num)
	})
}

func (s *Store) endSchedule(tx db.Tx, num int64) error {
	_, err := tx.Exec(`UPDATE schedules SET next_run_at = NULL, cancelled_at = ? WHERE num = ?`, s.db.Millis(), num)
	return err
}

// RunSchedule creates a task of a schedule now, for the caller. The schedule's next time
// stays as it is. It returns a Conflict while the schedule's last task has not ended.
func (s *Store) RunSchedule(ctx context.Context, c people.Caller, workerID, id string, key db.IdempotencyKey) (Accepted,
	error) {
	workspace := s.lookAt(Folder{WorkerID: workerID})
	return s.acceptOnce(ctx, key, false, func(tx db.Tx) (Accepted, error) {
		sch, err := readSchedule(ctx, tx, c, workerID, id)
		if err != nil {
			return Accepted{}, err
		}
		if err := checkIdle(ctx, tx, sch); err != nil {
			return Accepted{}, err
		}
		a, err := s.acceptTurn(ctx, tx, sch.turn(c, workspace))
		if err != nil {
			return Accepted{}, err
		}
		// releaseSchedule sets it to NULL again when the task has ended.
		_, err = tx.Exec(`UPDATE schedules SET running_task_num = ? WHERE num = ?`, a.Turn.taskNum, sch.num)
		return a, err
	})
}

// checkIdle returns a Conflict while the task of a schedule's last run has not ended: a
// schedule has one task at a time.
func checkIdle(ctx context.Context, tx db.Tx, c Schedule) error {
	if c.runningTask == 0 {
		return nil
	}
	id, err := db.One(ctx, tx, db.ScanString, `SELECT id FROM tasks WHERE num = ?`, c.runningTask)
	if err != nil {
		return err
	}
	return db.Errorf(db.Conflict, "the schedule's last task %s has not ended: wait for it, or cancel it first", id)
}

// turn returns the instruction of a schedule, for a caller.
func (c *Schedule) turn(caller people.Caller, workspace Listing) NewTurn {
	caller.Trigger = people.TriggerSchedule
	return NewTurn{Caller: caller, WorkerID: c.WorkerID, Input: c.Input, Budget: c.Budget,
		schedule: c, workspace: workspace}
}
