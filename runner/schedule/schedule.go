// Package schedule starts the turns of due schedules and deletes old rows. The due schedules exist
// only in the database: this package polls it every second, and the store starts each schedule's
// turn in one transaction. A crash therefore loses nothing.
//
// It may import store only. It does not compute due times and never runs a turn. It calls
// Config.Fired after turns were queued.
package schedule

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/jonboulle/clockwork"
	"golang.org/x/sync/errgroup"

	"journeyman/store"
	"journeyman/store/db"
)

// Config holds the dependencies and settings of a Scheduler. Store, Log and Fired are required.
type Config struct {
	Store    *store.Store
	Log      *slog.Logger
	Fired    func()        // called after turns were queued, once for many; must not block
	KeepMail time.Duration // age at which mail is deleted; 0: never

	KeepTasks      time.Duration // age at which ended tasks are deleted; 0: never, unless their worker sets an age
	KeepDeliveries time.Duration // age at which webhook executions are deleted; 0: never
	KeepAudit      time.Duration // age at which entries of the audit log are deleted; 0: never

	ClockSet func() // called after the clock was set back; must not block; may be nil

	Jobs []Job // additional periodic work; different jobs run concurrently, each at most once at a time

	// Clock measures elapsed time, which changes of the machine's clock do not affect. nil: the
	// real clock, whose times have a monotonic reading.
	Clock clockwork.Clock

	// Now returns the wall clock time, as the store uses it, which can jump. nil: the time of
	// Clock.
	Now func() time.Time
}

// A Job is a function that the scheduler calls periodically for another package.
type Job struct {
	Every time.Duration         // pause between the end of one run and the start of the next
	Run   func(context.Context) // ctx ends when the scheduler stops
}

const (
	tick       = time.Second      // pause between two polls
	idle       = 10 * time.Second // longer than a tick, so that the tick wakes the loop
	batch      = 500              // schedules that one query returns
	quietTime  = 4 * time.Second  // maximum time between the start of a turn and the call of Fired
	retryPause = time.Minute      // for a schedule whose turn could not be started
	leastJump  = time.Minute      // smallest jump of the clock that is handled; less counts as drift
	pruneEvery = 10 * time.Minute // pause between two prunings
	checkEvery = 24 * time.Hour   // pause between two integrity checks of a table
	checkPause = 10 * time.Minute // pause between two searches for tables whose check is due
	sweepEvery = 24 * time.Hour   // pause between two deletions of unfinished files
	pruneBatch = 250              // rows in one transaction; few, because mails are large

	keepAlerts = 30 * 24 * time.Hour // age at which messages of alerts are deleted

	measureEvery = 6 * time.Hour // pause between two measurements of the data folder

	organizationsEvery = time.Minute // pause between two calls of MeasureOrganizations, which decides whether to measure
)

// A Scheduler starts the turns of due schedules. Its methods are safe for concurrent use.
type Scheduler struct {
	cfg   Config
	jobs  gocron.Scheduler
	wake  chan struct{} // capacity 1: two wakes before a round count as one
	ctx   context.Context
	stop  context.CancelFunc
	loop  sync.WaitGroup
	begun time.Time    // start of the time that passed returns; with a monotonic reading
	alive atomic.Int64 // result of passed in the last round

	// Owned by the loop.
	turn int           // number of batches so far; it determines which organization comes first
	wall time.Time     // wall clock time of the last round
	mono time.Duration // result of passed in the last round
}

// New creates a scheduler. It does nothing before Start.
func New(cfg Config) (*Scheduler, error) {
	if cfg.Clock == nil {
		cfg.Clock = clockwork.NewRealClock()
	}
	if cfg.Now == nil {
		cfg.Now = cfg.Clock.Now
	}
	begun := cfg.Clock.Now()
	jobs, err := gocron.NewScheduler(gocron.WithClock(steadyClock{cfg.Clock, begun}),
		gocron.WithStopTimeout(5*time.Second))
	if err != nil {
		return nil, fmt.Errorf("create scheduler: %w", err)
	}
	s := &Scheduler{cfg: cfg, jobs: jobs, wake: make(chan struct{}, 1), begun: begun}
	s.ctx, s.stop = context.WithCancel(context.Background())
	return s, nil
}

// Start begins to poll for due schedules. A schedule that became due while no process ran starts
// one turn, even if it missed several due times.
func (s *Scheduler) Start(ctx context.Context) error {
	if err := s.realign(ctx); err != nil {
		return err
	}
	type job struct {
		every time.Duration
		run   func()
		more  []gocron.JobOption
	}
	now := []gocron.JobOption{gocron.WithStartAt(gocron.WithStartImmediately())}
	jobs := []job{{tick, s.Wake, nil}, {pruneEvery, s.prune, nil}, {checkPause, s.check, now},
		{sweepEvery, s.sweep, now}, {measureEvery, s.measure, now}, {organizationsEvery, s.measureOrganizations, now}}
	for _, more := range s.cfg.Jobs {
		jobs = append(jobs, job{more.Every, func() { more.Run(s.ctx) }, nil})
	}
	for _, j := range jobs {
		_, err := s.jobs.NewJob(gocron.DurationJob(j.every), gocron.NewTask(j.run),
			append(j.more, gocron.WithSingletonMode(gocron.LimitModeReschedule))...)
		if err != nil {
			return fmt.Errorf("start scheduler: %w", err)
		}
	}
	// Set before the first round, so that Alive is true from the start.
	s.wall, s.mono = s.now(), s.passed()
	s.alive.Store(int64(s.mono))
	s.jobs.Start()
	s.loop.Go(s.rounds)
	return nil
}

// Stop ends the scheduler. Due schedules stay due.
func (s *Scheduler) Stop() error {
	s.stop() // first, so that a running prune ends early
	err := s.jobs.Shutdown()
	s.loop.Wait()
	return err
}

// Wake makes the scheduler poll immediately, because a schedule was created or changed.
func (s *Scheduler) Wake() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Alive reports whether the scheduler has polled within the last minute.
func (s *Scheduler) Alive() bool { return s.passed()-time.Duration(s.alive.Load()) < time.Minute }

// now returns the wall clock time. It removes the monotonic reading, which would hide jumps of the
// clock.
func (s *Scheduler) now() time.Time { return s.cfg.Now().Round(0) }

// passed returns the elapsed time since New, which changes of the clock do not affect.
func (s *Scheduler) passed() time.Duration { return s.cfg.Clock.Now().Sub(s.begun) }

// A steadyClock shows the wall clock time as if nobody had set the clock since begun. gocron
// computes its next runs from wall clock times: after the clock was set back, gocron would run
// nothing until the clock has caught up.
type steadyClock struct {
	clockwork.Clock
	begun time.Time
}

// Now returns the time of begun plus the time that has passed since.
func (c steadyClock) Now() time.Time { return c.begun.Round(0).Add(c.Clock.Now().Sub(c.begun)) }

// Since returns the duration from a time of this clock until now.
func (c steadyClock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// Until returns the duration from now until a time of this clock.
func (c steadyClock) Until(t time.Time) time.Duration { return t.Sub(c.Now()) }

// rounds runs a round at each tick, and between two ticks when a schedule is due.
func (s *Scheduler) rounds() {
	for {
		timer := s.cfg.Clock.NewTimer(s.round())
		select {
		case <-timer.Chan():
		case <-s.wake:
		case <-s.ctx.Done():
			timer.Stop()
			return
		}
		timer.Stop()
	}
}

// round starts the due schedules, and returns how long to wait for the next round.
func (s *Scheduler) round() (wait time.Duration) {
	s.alive.Store(int64(s.passed()))
	if !s.cfg.Store.Leads() {
		s.wall, s.mono = s.now(), s.passed()
		return tick // another node runs the schedules
	}
	if s.paused() {
		return idle // due schedules and clock jumps wait until maintenance ends
	}
	s.detectJump()
	s.fireDue()
	at, ok, err := s.cfg.Store.NextScheduleAt(s.ctx)
	if err != nil {
		s.logError("read the next due time", err)
	}
	if wait = at.Sub(s.now()); ok && wait > 0 && wait < tick {
		return wait
	}
	return idle // a due schedule that could not start waits for the next tick
}

// detectJump compares the wall clock with the time elapsed since the last round.
func (s *Scheduler) detectJump() {
	wall, mono := s.now(), s.passed()
	jump := wall.Sub(s.wall) - (mono - s.mono)
	switch {
	case jump >= leastJump:
		// Schedules that became due in the skipped time fire now, each once.
		s.cfg.Log.Warn("the clock jumped ahead, or the machine slept", "by", jump, "is", wall.UTC())
	case jump <= -leastJump:
		s.cfg.Log.Warn("the clock was set back", "by", -jump, "is", wall.UTC())
		// Times that were computed while the clock was ahead are too far in the future now.
		n, err := s.cfg.Store.ClockSetBack(s.ctx, -jump)
		if err = errors.Join(err, s.realign(s.ctx)); err != nil {
			s.logError("correct due times", err)
			return // wall and mono do not change, so that the next round detects the jump again
		}
		s.cfg.Log.Info("due times are corrected", "count", n)
		if s.cfg.ClockSet != nil {
			s.cfg.ClockSet()
		}
	}
	s.wall, s.mono = wall, mono
}

// realign corrects the due times of schedules after the default time zone changed or the clock was
// set back.
func (s *Scheduler) realign(ctx context.Context) error {
	n, err := s.cfg.Store.RealignSchedules(ctx)
	if err != nil {
		return fmt.Errorf("correct the due times of schedules: %w", err)
	}
	if n > 0 {
		s.cfg.Log.Info("next runs of schedules are corrected", "count", n)
	}
	return nil
}

// fireDue starts due schedules until the queue is full or none is due. After an outage, many
// schedules are due. Running turns would delay the start of the others. So Fired is called after
// all have started, or every quietTime.
func (s *Scheduler) fireDue() {
	lastFired, settled := s.passed(), false
	for more := true; more; {
		var some bool
		some, more = s.fireSome()
		settled = settled || some
		if now := s.passed(); settled && (!more || now-lastFired >= quietTime) {
			s.cfg.Fired()
			lastFired, settled = now, false
		}
	}
}

// fireSome starts a batch of due schedules if the queue has room. It reports whether at least one
// schedule is no longer due, and whether more schedules may be due.
func (s *Scheduler) fireSome() (settled, more bool) {
	limit := int(min(batch, s.cfg.Store.ScheduleRoom()))
	if limit <= 0 || s.ctx.Err() != nil {
		return false, false
	}
	// Each batch begins with another organization, so that none waits forever.
	s.turn++
	due, err := s.cfg.Store.DueSchedules(s.ctx, limit, s.turn)
	if err != nil {
		s.logError("read due schedules", err)
		return false, false
	}
	settled = s.fireAll(due)
	return settled, settled && len(due) == limit
}

// fireAll starts schedules concurrently, so that the store can commit them together. Running turns
// wait for each commit of the store, so a few large commits delay them less than many small ones.
// fireAll reports whether at least one schedule is no longer due.
func (s *Scheduler) fireAll(due []store.DueSchedule) bool {
	var settled atomic.Bool
	var group errgroup.Group
	group.SetLimit(s.cfg.Store.SharedWrites())
	for _, d := range due {
		group.Go(func() error {
			if s.fire(d) {
				settled.Store(true)
			}
			return nil // fire logs its errors: one schedule must not stop the others
		})
	}
	_ = group.Wait()
	return settled.Load()
}

// fire starts one schedule, and reports whether it is no longer due. A failure delays only this
// schedule.
func (s *Scheduler) fire(d store.DueSchedule) bool {
	f, err := s.cfg.Store.FireSchedule(s.ctx, d)
	switch {
	case err == nil && f.Held != "":
		s.cfg.Log.Warn("a due schedule waits", "schedule", d.ID, "why", f.Held)
		return true
	case err == nil:
		if f.TurnID != "" {
			s.cfg.Log.Info("turn accepted", "by", "schedule", "schedule", d.ID, "turn", f.TurnID,
				"organization", d.OrganizationID)
		}
		return true
	// A full queue or a stop is no failure of the schedule, so its due time does not change.
	case db.IsKind(err, db.Busy), s.ctx.Err() != nil: // the schedule stays due
	default:
		s.logError("fire schedule "+d.ID, err)
		if err := s.cfg.Store.DelaySchedule(s.ctx, d, retryPause); err != nil {
			s.logError("delay schedule "+d.ID, err)
		}
	}
	return false
}

// paused reports whether maintenance forbids changes now.
func (s *Scheduler) paused() bool { return s.cfg.Store.Gate.Writable() != nil }

// logError logs an error, unless the scheduler stops or maintenance has begun.
func (s *Scheduler) logError(doing string, err error) {
	if s.ctx.Err() == nil && !db.IsMaintenance(err) {
		s.cfg.Log.Error(doing, "err", err)
	}
}

// check checks the tables that were not checked within the last day. The store records and logs the
// damage.
func (s *Scheduler) check() {
	if err := s.cfg.Store.CheckDueTables(s.ctx, checkEvery); err != nil {
		s.logError("check the database", err)
	}
}

// sweep deletes unfinished files of killed processes from workspaces.
func (s *Scheduler) sweep() {
	if s.paused() {
		return // the next sweep deletes the files
	}
	n, err := s.cfg.Store.SweepWorkspaces(s.ctx, s.begun)
	if err != nil {
		s.logError("remove unfinished files", err)
	}
	if n > 0 {
		s.cfg.Log.Info("unfinished files of a killed process are removed", "count", n)
	}
}
