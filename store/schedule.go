package store

import (
	"time"

	"journeyman/store/cron"
	"journeyman/store/db"
)

// A ScheduleType is the kind of rule that decides when a schedule runs.
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

// When is the rule that decides when a schedule runs. Each field but Type belongs to one
// type.
type When struct {
	Type            ScheduleType
	Date            time.Time // scheduled
	DelaySeconds    float64   // delayed
	Cron            string    // cron
	IntervalSeconds float64   // interval
}

// CronWords returns in English when a cron schedule runs, or "" if one short phrase cannot
// describe it.
func (w When) CronWords() string { return cron.Words(w.Cron) }

// A Schedule creates a new task of its worker at each time that its rule names.
type Schedule struct {
	num             int64
	ID              string
	OrganizationID  string
	WorkerID        string
	CreatedByUserID string
	Input           string
	Budget          Budget
	When            When
	NextRunAt       time.Time // of a paused schedule that repeats: the time at which it would run
	LastRunAt       *time.Time
	Paused          bool
	CreatedAt       time.Time

	anchor time.Time // the start of the intervals; the only time of a one-time schedule
	zone   string    // the zone in which NextRunAt was computed; '' if the cron expression names one
	ended  bool      // it has run for the last time, or was cancelled

	runningTask int64 // num of the task of its last run; 0 once that has ended
}

const scheduleColumns = `num, id, organization_id, worker_id, created_by_user_id, input, budget,
	type, coalesce(delay_seconds, 0), coalesce(cron, ''), coalesce(interval_seconds, 0), coalesce(timezone, ''),
	anchor_at, next_run_at, last_run_at, paused, created_at, coalesce(running_task_num, 0)`

func scanSchedule(row db.Scanner) (c Schedule, err error) {
	err = row.Scan(&c.num, &c.ID, &c.OrganizationID, &c.WorkerID, &c.CreatedByUserID, &c.Input, &c.Budget,
		&c.When.Type, &c.When.DelaySeconds, &c.When.Cron, &c.When.IntervalSeconds, &c.zone, db.AsTime(&c.anchor),
		db.AsTime(&c.NextRunAt), db.AsTimeOrNil(&c.LastRunAt), &c.Paused, db.AsTime(&c.CreatedAt), &c.runningTask)
	c.ended = c.NextRunAt.IsZero()
	if c.When.Type == Scheduled {
		c.When.Date = c.anchor
	}
	return c, err
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// NewSchedule holds the fields of a schedule to create.
type NewSchedule struct {
	WorkerID string
	Input    string
	Budget   Budget
	When     When
	Paused   bool
}
