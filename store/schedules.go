package store

import (
	"context"
	"database/sql"
	"errors"
	"math"
	"strings"
	"time"
)

// A ScheduleType is what decides when a schedule runs.
type ScheduleType string

// The types of the interface. The first two run once.
const (
	Scheduled ScheduleType = "scheduled"
	Delayed   ScheduleType = "delayed"
	CronType  ScheduleType = "cron"
	Interval  ScheduleType = "interval"
)

// Once reports whether a schedule of the type runs one time only.
func (t ScheduleType) Once() bool { return t == Scheduled || t == Delayed }

const (
	maxSchedules       = 10_000                // of one worker: its list is one answer
	maxScheduleSeconds = 100 * 365 * 24 * 3600 // a delay or interval of a century
)

// When says when a schedule runs. The fields beside Type belong to one type each.
type When struct {
	Type            ScheduleType
	Date            time.Time // scheduled
	DelaySeconds    float64   // delayed
	Cron            string    // cron
	IntervalSeconds float64   // interval
}

// CheckWhen notes in f, below the path "when", what breaks a rule. A date must be
// in the future and a cron expression must come true one day.
func (s *Store) CheckWhen(f *Fields, w When) {
	within := func(v, least float64) bool { return v >= least && v <= maxScheduleSeconds } // nor is NaN
	switch w.Type {
	case Scheduled:
		f.Check(w.Date.UnixMilli() > s.millis(), "when.date", "must be in the future")
		f.Check(w.Date.Year() < 10_000, "when.date", "must be before the year 10000")
	case Delayed:
		f.Check(within(w.DelaySeconds, 0), "when.delayInSeconds", "must be from 0 to %d", maxScheduleSeconds)
	case CronType:
		if _, err := parseCron(w.Cron, s.zone); err != nil {
			f.Add("when.cron", "%s", err.Error())
		}
	case Interval:
		f.Check(within(w.IntervalSeconds, 1), "when.intervalSeconds", "must be from 1 to %d", maxScheduleSeconds)
	default:
		f.Add("when.type", "must be scheduled, delayed, cron or interval")
	}
}

// A Schedule makes a new task of its worker when its time has come.
type Schedule struct {
	num             int64
	ID              string
	OrganizationID  string
	WorkerID        string
	CreatedByUserID string
	Input           string
	Budget          Budget
	When            When
	NextRunAt       time.Time // of a paused one that repeats: when it would run
	LastRunAt       *time.Time
	Paused          bool
	CreatedAt       time.Time

	anchor time.Time // what a rhythm counts from; the one time of a one-time schedule
	zone   string    // that NextRunAt was computed in; '' where cron names its own
	ended  bool      // fired for the last time, or cancelled
}

const scheduleColumns = `num, id, organization_id, worker_id, created_by_user_id, input, budget, type, coalesce(delay_seconds, 0),
	coalesce(cron, ''), coalesce(interval_seconds, 0), coalesce(timezone, ''), anchor_at, next_run_at, last_run_at, paused, created_at`

func scanSchedule(row scanner) (c Schedule, err error) {
	var anchor, created int64
	var next, last sql.NullInt64
	err = row.Scan(&c.num, &c.ID, &c.OrganizationID, &c.WorkerID, &c.CreatedByUserID, &c.Input, &c.Budget, &c.When.Type, &c.When.DelaySeconds,
		&c.When.Cron, &c.When.IntervalSeconds, &c.zone, &anchor, &next, &last, &c.Paused, &created)
	c.anchor, c.LastRunAt, c.CreatedAt = fromMillis(anchor), fromNull(last), fromMillis(created)
	c.ended = !next.Valid
	if next.Valid {
		c.NextRunAt = fromMillis(next.Int64)
	}
	if c.When.Type == Scheduled {
		c.When.Date = c.anchor
	}
	return c, err
}

// begin sets when a schedule runs, from now on.
func (s *Store) begin(c *Schedule, w When, now time.Time) error {
	c.When, c.anchor, c.zone, c.ended = w, now, "", false
	switch w.Type {
	case Scheduled:
		c.anchor = fromMillis(w.Date.UnixMilli())
	case Delayed:
		c.anchor = now.Add(time.Duration(math.Round(w.DelaySeconds*1e3)) * time.Millisecond)
	case CronType:
		if !strings.HasPrefix(w.Cron, cronZone) {
			c.zone = s.zone.String()
		}
	}
	next, err := s.after(*c, now)
	if w.Type.Once() {
		next = c.anchor
	}
	c.NextRunAt = next
	return err
}

// after gives the first time after t at which a repeating schedule is due, the
// zero time for others.
func (s *Store) after(c Schedule, t time.Time) (time.Time, error) {
	switch c.When.Type {
	case CronType:
		cron, err := parseCron(c.When.Cron, s.zone)
		if err != nil {
			return time.Time{}, err // it was valid once: a zone may have lost its name
		}
		return cron.next(t), nil
	case Interval:
		every := time.Duration(math.Round(c.When.IntervalSeconds*1e3)) * time.Millisecond
		rounds := max(0, t.Sub(c.anchor)/every)
		if t.Before(c.anchor) {
			return c.anchor.Add(every), nil
		}
		return c.anchor.Add((rounds + 1) * every), nil
	}
	return time.Time{}, nil
}

// NextRuns lists the next times, at most n, at which a schedule will run; none
// while it is paused.
func (s *Store) NextRuns(c Schedule, n int) ([]time.Time, error) {
	if c.Paused || c.ended {
		return nil, nil
	}
	runs := []time.Time{c.NextRunAt}
	if c.When.Type.Once() {
		return runs, nil
	}
	step := func(t time.Time) (time.Time, error) { return s.after(c, t) }
	if c.When.Type == CronType {
		cron, err := parseCron(c.When.Cron, s.zone)
		if err != nil {
			return nil, err
		}
		step = func(t time.Time) (time.Time, error) { return cron.next(t), nil }
	}
	t := latest(c.NextRunAt, s.now()) // what was missed runs once
	for len(runs) < n {
		next, err := step(t)
		if err != nil || next.IsZero() {
			return runs, err
		}
		runs, t = append(runs, next), next
	}
	return runs, nil
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// Timezone is the time zone of cron schedules that name none.
func (s *Store) Timezone() string { return s.zone.String() }

// NewSchedule holds the fields of a schedule to make.
type NewSchedule struct {
	WorkerID string
	Input    string
	Budget   Budget
	When     When
}

// CreateSchedule makes a schedule of a worker that the caller may see. A request
// made before, as once tells, gives the schedule it made, and replayed is true.
func (s *Store) CreateSchedule(ctx context.Context, c Caller, n NewSchedule, once Once) (sch Schedule, replayed bool, err error) {
	err = s.write(ctx, func(tx *Tx) error {
		id, err := s.lookup(ctx, tx, once)
		if err != nil {
			return err
		}
		if replayed = id != ""; replayed {
			sch, err = one(ctx, tx, scanSchedule, `SELECT `+scheduleColumns+` FROM schedules WHERE id = ?`, id)
			return notFound(err, "schedule")
		}
		var f Fields
		f.Check(n.Input != "", "input", "is required")
		f.Check(n.Budget.Valid(), "budget", "must be low, standard, high or unlimited")
		s.CheckWhen(&f, n.When)
		if err := f.Err(); err != nil {
			return err
		}
		w, err := s.visibleWorker(ctx, tx, c, n.WorkerID)
		if err != nil {
			return err
		}
		sch = Schedule{ID: NewID("sch", s.now()), OrganizationID: w.OrganizationID, WorkerID: w.ID, CreatedByUserID: c.UserID,
			Input: n.Input, Budget: n.Budget, CreatedAt: fromMillis(s.millis())}
		if err := s.begin(&sch, n.When, sch.CreatedAt); err != nil {
			return err
		}
		if err := s.insertSchedule(ctx, tx, &sch); err != nil {
			return err
		}
		return s.remember(tx, once, sch.ID)
	})
	return sch, replayed, err
}

func (s *Store) insertSchedule(ctx context.Context, tx *Tx, c *Schedule) error {
	n, err := one(ctx, tx, scanInt, `SELECT count(*) FROM (SELECT 1 FROM schedules WHERE worker_id = ? AND next_run_at IS NOT NULL LIMIT ?)`,
		c.WorkerID, maxSchedules)
	if err != nil {
		return err
	}
	if n == maxSchedules {
		return Errorf(Conflict, "the worker has %d schedules, the most a worker can have", maxSchedules)
	}
	c.num, err = tx.Insert(`INSERT INTO schedules (id, organization_id, worker_id, created_by_user_id, input, budget, type, delay_seconds, cron,
			interval_seconds, timezone, anchor_at, next_run_at, paused, created_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, ?)`,
		append([]any{c.ID, c.OrganizationID, c.WorkerID, c.CreatedByUserID, c.Input, c.Budget}, append(c.whenArgs(), c.CreatedAt.UnixMilli())...)...)
	return err
}

// whenArgs are the columns from type to next_run_at.
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
	return []any{c.When.Type, delay, cron, interval, nullable(c.zone), c.anchor.UnixMilli(), c.NextRunAt.UnixMilli()}
}

// Schedules lists the schedules of a worker that the caller may see, in the order
// of their creation. One-time schedules that have run are not among them.
func (s *Store) Schedules(ctx context.Context, c Caller, workerID string) ([]Schedule, error) {
	w, err := s.visibleWorker(ctx, s, c, workerID)
	if err != nil {
		return nil, err
	}
	list, err := all(ctx, s, scanSchedule, `SELECT `+scheduleColumns+` FROM schedules INDEXED BY schedules_by_worker
		WHERE worker_id = ? AND next_run_at IS NOT NULL ORDER BY num LIMIT ?`, w.ID, maxSchedules)
	for i := range list {
		s.showPaused(&list[i])
	}
	return list, err
}

// showPaused gives a paused schedule the time at which it would run.
func (s *Store) showPaused(c *Schedule) {
	if !c.Paused || c.When.Type.Once() {
		return
	}
	if next, err := s.after(*c, s.now()); err == nil {
		c.NextRunAt = next
	}
}

// schedule gives a schedule in the worker's list.
func (s *Store) schedule(ctx context.Context, q querier, c Caller, workerID, id string) (Schedule, error) {
	w, err := s.visibleWorker(ctx, q, c, workerID)
	if err != nil {
		return Schedule{}, err
	}
	sch, err := one(ctx, q, scanSchedule, `SELECT `+scheduleColumns+` FROM schedules WHERE id = ?`, id)
	if err == nil && (sch.WorkerID != w.ID || sch.ended) {
		err = sql.ErrNoRows
	}
	return sch, notFound(err, "schedule of this worker")
}

// Schedule gives one schedule of a worker that the caller may see.
func (s *Store) Schedule(ctx context.Context, c Caller, workerID, id string) (Schedule, error) {
	sch, err := s.schedule(ctx, s, c, workerID, id)
	s.showPaused(&sch)
	return sch, err
}

// A SchedulePatch holds the fields to change; nil leaves one as it is.
type SchedulePatch struct {
	Input  *string
	Budget *Budget
	When   *When // begins anew: an interval counts from now
	Paused *bool
}

// UpdateSchedule changes a schedule. One that is resumed goes on with the first time
// after now, or, if it has one time only and that has passed, at once.
func (s *Store) UpdateSchedule(ctx context.Context, c Caller, workerID, id string, p SchedulePatch) (sch Schedule, err error) {
	err = s.write(ctx, func(tx *Tx) error {
		if sch, err = s.schedule(ctx, tx, c, workerID, id); err != nil {
			return err
		}
		resumed := sch.Paused && p.Paused != nil && !*p.Paused
		set(&sch.Input, p.Input)
		set(&sch.Budget, p.Budget)
		set(&sch.Paused, p.Paused)
		now := fromMillis(s.millis())
		switch {
		case p.When != nil:
			var f Fields
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
		_, err = tx.Exec(`UPDATE schedules SET input = ?, budget = ?, paused = ?, type = ?, delay_seconds = ?, cron = ?, interval_seconds = ?,
			timezone = ?, anchor_at = ?, next_run_at = ? WHERE num = ?`, append(args, sch.num)...)
		return err
	})
	s.showPaused(&sch)
	return sch, err
}

// CancelSchedule ends a schedule. Its row stays.
func (s *Store) CancelSchedule(ctx context.Context, c Caller, workerID, id string) error {
	return s.write(ctx, func(tx *Tx) error {
		sch, err := s.schedule(ctx, tx, c, workerID, id)
		if err != nil {
			return err
		}
		return s.endSchedule(tx, sch.num)
	})
}

func (s *Store) endSchedule(tx *Tx, num int64) error {
	_, err := tx.Exec(`UPDATE schedules SET next_run_at = NULL, cancelled_at = ? WHERE num = ?`, s.millis(), num)
	return err
}

// RunSchedule makes a task of a schedule now, for the caller. When it runs next
// stays as it is.
func (s *Store) RunSchedule(ctx context.Context, c Caller, workerID, id string, once Once) (a Accepted, err error) {
	err = s.write(ctx, func(tx *Tx) error {
		turnID, err := s.lookup(ctx, tx, once)
		if err != nil {
			return err
		}
		if a.Replayed = turnID != ""; a.Replayed {
			a.Turn, err = one(ctx, tx, scanTurn, `SELECT `+turnColumns+` FROM turns WHERE id = ?`, turnID)
			return err
		}
		sch, err := s.schedule(ctx, tx, c, workerID, id)
		if err != nil {
			return err
		}
		if a.Turn, err = s.acceptTurn(ctx, tx, sch.turn(c)); err != nil {
			return err
		}
		return s.remember(tx, once, a.Turn.ID)
	})
	return a, err
}

// turn is what a schedule asks of its worker.
func (c *Schedule) turn(caller Caller) NewTurn {
	caller.Trigger = TriggerSchedule
	return NewTurn{Caller: caller, WorkerID: c.WorkerID, Input: c.Input, Budget: c.Budget}
}

// role is that of a user in an organization, ” for none.
func (s *Store) role(ctx context.Context, q querier, organizationID, userID string) (Role, error) {
	role, err := one(ctx, q, scanString, `SELECT role FROM memberships WHERE organization_id = ? AND user_id = ?`, organizationID, userID)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	return Role(role), err
}
