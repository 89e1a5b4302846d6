// Package schedule starts the turns of due schedules and deletes old rows. Only the database
// knows the due schedules: this package looks every second, and the store starts each schedule's
// turn in one transaction. A crash loses nothing.
//
// It may import store only. It does not compute when a schedule is due, and never runs
// a turn: it tells its owner that turns were queued.
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
)

// Config holds the dependencies and settings of a Scheduler. Store, Log and Fired are required.
type Config struct {
	Store    *store.Store
	Log      *slog.Logger
	Fired    func()        // called after turns were queued; must not block
	KeepMail time.Duration // age at which mail is deleted; 0: never

	KeepTasks      time.Duration // age at which ended tasks are deleted; 0: never, unless their worker says so
	KeepDeliveries time.Duration // age at which webhook executions are deleted; 0: never
	KeepAudit      time.Duration // age at which entries of the audit log are deleted; 0: never

	ClockSet func() // called after the clock was set back; must not block; may be nil

	Jobs []Job // further work; they run one beside another, each once at a time

	// Clock counts the time that passes, whatever is done to the machine's clock. nil: the real
	// one, whose times carry a monotonic reading.
	Clock clockwork.Clock

	// Now is the clock of the store: the time of day, which can jump. nil: that of Clock.
	Now func() time.Time
}

// A Job is work that the scheduler repeats for another package.
type Job struct {
	Every time.Duration         // between the end of one run and the next
	Run   func(context.Context) // ctx ends when the scheduler stops
}

const (
	tick       = time.Second      // pause between two looks
	idle       = 10 * time.Second // longer than a tick: the next tick wakes the loop
	batch      = 500              // schedules in one round
	concurrent = 32               // transactions under way, which the store commits together
	retryPause = time.Minute      // for a schedule whose turn could not be started
	leastJump  = time.Minute      // of the clock that counts as one; less is drift
	pruneEvery = 10 * time.Minute // pause between two prunings
	checkEvery = 24 * time.Hour   // pause between two looks for damage in the whole database
	pruneBatch = 250              // rows in one transaction; few, because mails are large

	keepAlerts = 30 * 24 * time.Hour // age at which messages of alerts are deleted

	measureEvery = 6 * time.Hour // pause between two measurements of the data folder
)

// A Scheduler starts the turns of due schedules. Its methods are safe for concurrent use.
type Scheduler struct {
	cfg   Config
	jobs  gocron.Scheduler
	wake  chan struct{} // of size 1: two wakes before a round are one
	ctx   context.Context
	stop  context.CancelFunc
	loop  sync.WaitGroup
	begun time.Time    // with a monotonic reading: what passed counts from
	alive atomic.Int64 // what passed returned in the last round

	// Owned by the loop.
	turn int           // counts batches, so that each organization comes first in turn
	wall time.Time     // the time of day in the last round
	mono time.Duration // what passed returned then
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

// Start begins to look for due schedules. A schedule that came due while no process ran
// starts one turn, however often it came due.
func (s *Scheduler) Start(ctx context.Context) error {
	if err := s.realign(ctx); err != nil {
		return err
	}
	for _, job := range []struct {
		every time.Duration
		run   func()
		more  []gocron.JobOption
	}{
		{tick, s.Wake, nil}, {pruneEvery, s.prune, nil},
		// Also at the start, because a server that restarts every day must be checked, too.
		{checkEvery, s.check, []gocron.JobOption{gocron.WithStartAt(gocron.WithStartImmediately())}},
		{measureEvery, s.measure, []gocron.JobOption{gocron.WithStartAt(gocron.WithStartImmediately())}},
	} {
		_, err := s.jobs.NewJob(gocron.DurationJob(job.every), gocron.NewTask(job.run),
			append(job.more, gocron.WithSingletonMode(gocron.LimitModeReschedule))...)
		if err != nil {
			return fmt.Errorf("start scheduler: %w", err)
		}
	}
	for _, job := range s.cfg.Jobs {
		_, err := s.jobs.NewJob(gocron.DurationJob(job.Every), gocron.NewTask(func() { job.Run(s.ctx) }),
			gocron.WithSingletonMode(gocron.LimitModeReschedule))
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
	s.stop() // first, so that a prune under way ends early
	err := s.jobs.Shutdown()
	s.loop.Wait()
	return err
}

// Wake makes the scheduler look at once, because a schedule was created or changed.
func (s *Scheduler) Wake() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Alive reports whether the scheduler has looked within the last minute.
func (s *Scheduler) Alive() bool { return s.passed()-time.Duration(s.alive.Load()) < time.Minute }

// now returns the time of day, without the monotonic reading, which does not show jumps.
func (s *Scheduler) now() time.Time { return s.cfg.Now().Round(0) }

// passed returns how much time has passed since New, whatever was done to the clock.
func (s *Scheduler) passed() time.Duration { return s.cfg.Clock.Now().Sub(s.begun) }

// A steadyClock shows the time of day as it would be if nobody had set the clock since begun.
// gocron computes its next runs from times of day: after a jump back it would stand still until
// the clock has caught up, and longer, because its timers run on.
type steadyClock struct {
	clockwork.Clock
	begun time.Time
}

// Now returns the time of begun plus the time that has passed since.
func (c steadyClock) Now() time.Time { return c.begun.Round(0).Add(c.Clock.Now().Sub(c.begun)) }

// Since returns how long ago a time of this clock was.
func (c steadyClock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// Until returns how far ahead a time of this clock is.
func (c steadyClock) Until(t time.Time) time.Duration { return t.Sub(c.Now()) }

// rounds looks at every tick, and between two ticks when a schedule is due there.
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
	if s.paused() {
		return idle // due schedules and jumps of the clock wait for the end of the maintenance
	}
	s.noticeJump()
	// Repeated until the queue is full or nothing is due: after an outage many schedules are due.
	for s.fireSome() {
	}
	at, ok, err := s.cfg.Store.NextScheduleAt(s.ctx)
	if err != nil {
		s.complain("look for schedules", err)
	}
	if wait = at.Sub(s.now()); ok && wait > 0 && wait < tick {
		return wait
	}
	return idle // a due schedule that could not start waits for the next tick, which wakes the loop
}

// noticeJump compares the time of day with the time that has passed since the last round.
func (s *Scheduler) noticeJump() {
	wall, mono := s.now(), s.passed()
	jump := wall.Sub(s.wall) - (mono - s.mono)
	switch {
	case jump >= leastJump:
		// Schedules that have come due meanwhile fire now, each once.
		s.cfg.Log.Warn("the clock jumped ahead, or the machine slept", "by", jump, "is", wall.UTC())
	case jump <= -leastJump:
		s.cfg.Log.Warn("the clock was set back", "by", -jump, "is", wall.UTC())
		// Times that were computed while the clock was ahead lie too far in the future now.
		n, err := s.cfg.Store.ClockSetBack(s.ctx, -jump)
		if err = errors.Join(err, s.realign(s.ctx)); err != nil {
			s.complain("correct due times", err)
			return // wall and mono stay: the next round sees the jump again
		}
		s.cfg.Log.Info("due times are corrected", "count", n)
		if s.cfg.ClockSet != nil {
			s.cfg.ClockSet()
		}
	}
	s.wall, s.mono = wall, mono
}

// realign corrects the next times of schedules that have become wrong. The cause is a change of
// the default time zone, or a clock that was set back.
func (s *Scheduler) realign(ctx context.Context) error {
	n, err := s.cfg.Store.RealignSchedules(ctx)
	if err != nil {
		return fmt.Errorf("look at schedules anew: %w", err)
	}
	if n > 0 {
		s.cfg.Log.Info("next runs of schedules are corrected", "count", n)
	}
	return nil
}

// fireSome starts a batch of due schedules if the queue has room. It reports whether
// more may be due.
func (s *Scheduler) fireSome() (more bool) {
	limit := int(min(batch, s.cfg.Store.ScheduleRoom()))
	if limit <= 0 || s.ctx.Err() != nil {
		return false
	}
	// In each batch the store begins with another organization, so that none waits forever.
	s.turn++
	due, err := s.cfg.Store.DueSchedules(s.ctx, limit, s.turn)
	if err != nil {
		s.complain("look for due schedules", err)
		return false
	}
	settled := s.fireAll(due)
	// One call suffices, because the runner claims every turn that is queued.
	if settled {
		s.cfg.Fired()
	}
	return settled && len(due) == limit
}

// fireAll starts schedules concurrently, so that the store can commit them together. It
// reports whether at least one is no longer due.
func (s *Scheduler) fireAll(due []store.DueSchedule) bool {
	var settled atomic.Bool
	var group errgroup.Group
	group.SetLimit(concurrent)
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

// fire starts one schedule, and reports whether it is no longer due. After a failure it
// only delays this schedule.
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
	// A full queue and a stop are no failures of the schedule, so its time is not moved.
	case store.IsKind(err, store.Busy), s.ctx.Err() != nil: // the schedule stays due
	default:
		s.complain("fire schedule "+d.ID, err)
		if err := s.cfg.Store.DelaySchedule(s.ctx, d, retryPause); err != nil {
			s.complain("put schedule "+d.ID+" off", err)
		}
	}
	return false
}

// paused reports whether nothing may be changed now.
func (s *Scheduler) paused() bool { return s.cfg.Store.Writable() != nil }

// complain logs an error, unless the scheduler stops or maintenance has begun meanwhile.
func (s *Scheduler) complain(doing string, err error) {
	if s.ctx.Err() == nil && !store.IsMaintenance(err) {
		s.cfg.Log.Error(doing, "err", err)
	}
}

// check looks for damage in the database, and for files that a killed process has left unfinished in
// workspaces. The store remembers and logs damage that it finds.
func (s *Scheduler) check() {
	if err := s.cfg.Store.CheckDatabase(s.ctx); err != nil {
		s.complain("check the database", err)
	}
	if s.paused() {
		return // the next check removes them
	}
	n, err := s.cfg.Store.SweepWorkspaces(s.ctx, s.begun)
	if err != nil {
		s.complain("remove unfinished files", err)
	}
	if n > 0 {
		s.cfg.Log.Info("unfinished files of a killed process are removed", "count", n)
	}
}
