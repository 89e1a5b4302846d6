// Package schedule makes tasks of schedules when their time has come, and prunes
// what is too old to be of use. The rows are the truth: it looks every second for
// those that are due, and the store fires each in one transaction. Nothing is kept
// here that a crash could lose.
//
// It imports store alone. It does not know when a schedule runs next, and it never
// runs a turn: it tells its owner that one was queued.
package schedule

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/jonboulle/clockwork"

	"journeyman/store"
)

// Config is what a Scheduler works with. Store, Log and Fired are needed.
type Config struct {
	Store    *store.Store
	Log      *slog.Logger
	Fired    func()          // called when turns were queued; must not block
	KeepMail time.Duration   // how long mail is kept; 0: for ever
	Clock    clockwork.Clock // that of the store; the real one where nil
}

const (
	tick       = time.Second
	idle       = time.Hour // the ticks come before
	batch      = 500       // schedules fired in one go
	firings    = 32        // transactions asked for at once: the store groups them
	troubled   = time.Minute
	pruneEvery = 10 * time.Minute
	pruneBatch = 250 // mails among them, which are large
	// keepDeliveries is how long webhook executions stay listed.
	keepDeliveries = 30 * 24 * time.Hour
	setBack        = time.Minute // by which a clock must jump for schedules to be looked at anew
)

// A Scheduler fires the schedules of a store. Its methods are safe for concurrent
// use.
type Scheduler struct {
	cfg   Config
	jobs  gocron.Scheduler
	wake  chan struct{} // of size 1: waking twice is waking once
	ctx   context.Context
	stop  context.CancelFunc
	loop  sync.WaitGroup
	alive atomic.Int64 // Unix seconds of the last round

	// Owned by the loop.
	turn   int       // counts rounds, so that organizations take turns
	latest time.Time // on the wall clock, so far
}

// New makes a scheduler. It does nothing before Start.
func New(cfg Config) (*Scheduler, error) {
	if cfg.Clock == nil {
		cfg.Clock = clockwork.NewRealClock()
	}
	jobs, err := gocron.NewScheduler(gocron.WithClock(cfg.Clock), gocron.WithStopTimeout(5*time.Second))
	if err != nil {
		return nil, fmt.Errorf("make scheduler: %w", err)
	}
	s := &Scheduler{cfg: cfg, jobs: jobs, wake: make(chan struct{}, 1)}
	s.ctx, s.stop = context.WithCancel(context.Background())
	return s, nil
}

// Start begins to fire schedules: first, once each, those that came due while
// nobody looked.
func (s *Scheduler) Start(ctx context.Context) error {
	if err := s.realign(ctx); err != nil {
		return err
	}
	for _, job := range []struct {
		every time.Duration
		run   func()
	}{{tick, s.Wake}, {pruneEvery, s.prune}} {
		_, err := s.jobs.NewJob(gocron.DurationJob(job.every), gocron.NewTask(job.run), gocron.WithSingletonMode(gocron.LimitModeReschedule))
		if err != nil {
			return fmt.Errorf("start scheduler: %w", err)
		}
	}
	s.latest = s.now()
	s.alive.Store(s.latest.Unix())
	s.jobs.Start()
	s.loop.Go(s.rounds)
	return nil
}

// Stop ends the scheduler. What is due stays due.
func (s *Scheduler) Stop() error {
	s.stop()
	err := s.jobs.Shutdown()
	s.loop.Wait()
	return err
}

// Wake has it look at once: a schedule was made or changed.
func (s *Scheduler) Wake() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Alive reports whether it looked within the last minute.
func (s *Scheduler) Alive() bool { return s.now().Unix()-s.alive.Load() < 60 }

// now is the wall clock's time: the monotonic one does not know of jumps.
func (s *Scheduler) now() time.Time { return s.cfg.Clock.Now().Round(0) }

// rounds looks at every tick, and between two when a schedule is due there.
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

// round fires what is due, and says when to look again.
func (s *Scheduler) round() (wait time.Duration) {
	now := s.now()
	s.alive.Store(now.Unix())
	if now.Before(s.latest.Add(-setBack)) {
		s.cfg.Log.Warn("the clock was set back", "by", s.latest.Sub(now))
		if err := s.realign(s.ctx); err != nil {
			s.complain("look at schedules anew", err)
		}
		s.latest = now
	} else if now.After(s.latest) {
		s.latest = now
	}
	for s.fireSome() {
	}
	at, ok, err := s.cfg.Store.NextScheduleAt(s.ctx)
	if err != nil {
		s.complain("look for schedules", err)
	}
	if wait = at.Sub(s.now()); ok && wait > 0 && wait < tick {
		return wait
	}
	return idle // what is due and could not fire gets another try at the next tick
}

func (s *Scheduler) realign(ctx context.Context) error {
	n, err := s.cfg.Store.RealignSchedules(ctx)
	if err != nil {
		return fmt.Errorf("look at schedules anew: %w", err)
	}
	if n > 0 {
		s.cfg.Log.Info("schedules have another next time", "count", n)
	}
	return nil
}

// fireSome fires up to a batch of due schedules, as the queue has room. more says
// that others may be due.
func (s *Scheduler) fireSome() (more bool) {
	limit := int(min(batch, s.cfg.Store.ScheduleRoom()))
	if limit <= 0 || s.ctx.Err() != nil {
		return false
	}
	s.turn++
	due, err := s.cfg.Store.DueSchedules(s.ctx, limit, s.turn)
	if err != nil {
		s.complain("look for due schedules", err)
		return false
	}
	settled := s.fireAll(due)
	if settled {
		s.cfg.Fired()
	}
	return settled && len(due) == limit
}

// fireAll fires schedules, some at once: the store makes one commit of those. It
// reports whether any is no longer due.
func (s *Scheduler) fireAll(due []store.DueSchedule) bool {
	next := make(chan store.DueSchedule)
	var settled atomic.Bool
	var group sync.WaitGroup
	for range min(firings, len(due)) {
		group.Go(func() {
			for d := range next {
				if s.fire(d) {
					settled.Store(true)
				}
			}
		})
	}
	for _, d := range due {
		next <- d
	}
	close(next)
	group.Wait()
	return settled.Load()
}

// fire fires one schedule, and reports whether it is no longer due. A failure is
// its own: it is put off.
func (s *Scheduler) fire(d store.DueSchedule) bool {
	f, err := s.cfg.Store.FireSchedule(s.ctx, d)
	switch {
	case err == nil && f.Held != "":
		s.cfg.Log.Warn("a due schedule is held back", "schedule", d.ID, "why", f.Held)
		return true
	case err == nil:
		return true
	case store.IsKind(err, store.Busy), s.ctx.Err() != nil: // it stays due
	default:
		s.complain("fire schedule "+d.ID, err)
		if err := s.cfg.Store.DelaySchedule(s.ctx, d, troubled); err != nil {
			s.complain("put schedule "+d.ID+" off", err)
		}
	}
	return false
}

func (s *Scheduler) complain(doing string, err error) {
	if s.ctx.Err() == nil {
		s.cfg.Log.Error(doing, "err", err)
	}
}

// prune forgets what is too old, some of it at a time.
func (s *Scheduler) prune() {
	prunes := map[string]func() (int64, error){
		"requests":   func() (int64, error) { return s.cfg.Store.PruneIdempotency(s.ctx, pruneBatch) },
		"deliveries": func() (int64, error) { return s.cfg.Store.PruneDeliveries(s.ctx, keepDeliveries, pruneBatch) },
		"sessions":   func() (int64, error) { return s.cfg.Store.PruneSessions(s.ctx, pruneBatch) },
		"links":      func() (int64, error) { return s.cfg.Store.PruneLinks(s.ctx, pruneBatch) },
		"files":      func() (int64, error) { return s.cfg.Store.SweepBlobs(s.ctx) },
	}
	if s.cfg.KeepMail > 0 {
		prunes["mail"] = func() (int64, error) { return s.cfg.Store.PruneEmails(s.ctx, s.cfg.KeepMail, pruneBatch) }
	}
	for what, some := range prunes {
		n, err := some()
		for err == nil && n >= pruneBatch && s.ctx.Err() == nil {
			n, err = some()
		}
		if err != nil {
			s.complain("prune "+what, err)
		}
	}
}
