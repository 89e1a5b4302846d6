package backup

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"journeyman/store"
	"journeyman/store/cron"
	"journeyman/store/db"
)

// Repeat holds the flags of scheduled backups.
type Repeat struct {
	Every   string        `help:"Interval of automatic backups: a duration such as 24h, or a cron expression such as '0 3 * * *'." placeholder:"TIME"`
	Keep    int           `default:"7" min:"0" help:"Number of backups to keep; 0 keeps all. The newest backup always stays."`
	KeepFor time.Duration `default:"0s" min:"0" help:"Age at which backups are deleted, such as 720h; 0s keeps them forever. The newest backup always stays."`
}

const (
	// retryAfter is the pause after a failed or interrupted backup, unless the next one is due
	// earlier.
	retryAfter = 15 * time.Minute

	// leastEvery is the shortest time between two backups.
	leastEvery = time.Minute
)

// Config holds the dependencies and settings of a Keeper.
type Config struct {
	Store  *store.Store
	Log    *slog.Logger
	Target *Target
	Repeat Repeat
	Zone   *time.Location   // for cron expressions without a time zone
	Now    func() time.Time // nil: time.Now
}

// A Keeper makes a server's backups on schedule and on request, one at a time. It stores their
// results in the data folder, so that a restart keeps the schedule. A nil Keeper makes none.
type Keeper struct {
	cfg   Config
	every time.Duration  // 0 without an interval
	cron  *cron.Schedule // nil without an expression

	mu        sync.Mutex // guards the fields below; held while runs are read or stored
	runs      []store.BackupRun
	running   bool
	requested string // the user who requested a backup that has not begun; "" if there is no request
}

// NewKeeper returns a keeper. It makes no backup before the first call of Tick.
func NewKeeper(cfg Config) (k *Keeper, err error) {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	k = &Keeper{cfg: cfg}
	if err := k.parseEvery(cfg.Repeat.Every); err != nil {
		return nil, fmt.Errorf("--backup-every: %w", err)
	}
	if k.runs, err = cfg.Store.BackupRuns(); err != nil {
		return nil, err
	}
	return k, nil
}

// Check returns an error unless a keeper can work at the interval. zone is that of expressions without a time zone.
func (r Repeat) Check(zone *time.Location) error {
	if err := (&Keeper{cfg: Config{Zone: zone}}).parseEvery(r.Every); err != nil {
		return fmt.Errorf("--backup-every: %w", err)
	}
	return nil
}

func (k *Keeper) parseEvery(text string) (err error) {
	if text == "" {
		return nil
	}
	if k.every, err = time.ParseDuration(text); err == nil {
		if k.every < leastEvery {
			return fmt.Errorf("must be at least %v", leastEvery)
		}
		return nil
	}
	k.every = 0
	if k.cron, err = cron.Parse(text, k.cfg.Zone); err != nil {
		return fmt.Errorf("%q is neither a duration such as 24h nor a cron expression: it %w", text, err)
	}
	return nil
}

// Tick makes a backup if one is due or requested. The caller calls it every few seconds, never
// concurrently. The end of ctx interrupts the backup.
func (k *Keeper) Tick(ctx context.Context) {
	if k == nil {
		return
	}
	run, interrupted, begun := k.begin()
	if !begun {
		return
	}
	if interrupted != "" {
		if err := k.cfg.Target.Forget(ctx, interrupted); err != nil {
			k.cfg.Log.Warn("files of an interrupted backup cannot be removed", "backup", interrupted, "err", err)
		}
	}
	// Prune after a damaged backup, too: as long as nobody repairs the damage, damaged backups must
	// not fill the destination.
	written, err := k.cfg.Target.Write(ctx, run.Name, store.BackupSize(ctx, k.cfg.Store.Dir()), k.cfg.Store)
	complete := err == nil
	if complete && written.Report.Damaged > 0 {
		err = errors.New(written.Report.String())
	}
	if err == nil {
		err = k.cfg.Store.NoteBackup()
	}
	run.Size = written.Size
	k.end(ctx, run, err)
	if complete {
		k.prune(ctx, run.Name)
	}
}

// begin records the start of a backup. begun is false if no backup is due. interrupted is the name
// of the previous backup if it never ended.
func (k *Keeper) begin() (run store.BackupRun, interrupted string, begun bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.cfg.Now()
	due, ok := k.next(now)
	if k.requested == "" && (!ok || due.After(now)) {
		return run, "", false
	}
	if last := k.last(); last != nil && last.EndedAt == nil {
		interrupted, last.Error = last.Name, interruptedText
		last.EndedAt = new(last.StartedAt)
	}
	name := k.cfg.Target.NewName(now)
	run = store.BackupRun{Name: name, Path: k.cfg.Target.Path(name), StartedAt: now.UTC(), By: k.requested}
	k.requested, k.running = "", true
	k.runs = append(k.runs, run)
	k.save()
	return run, interrupted, true
}

// interruptedText is the error of a backup that never ended.
const interruptedText = "the server ended before the backup was complete"

// end records the result of the current backup. If it failed, end raises an alert.
func (k *Keeper) end(ctx context.Context, run store.BackupRun, err error) {
	run.EndedAt = new(k.cfg.Now().UTC())
	if err == nil {
		k.cfg.Log.Info("backup complete", "to", run.Path, "bytes", run.Size, "took", run.EndedAt.Sub(run.StartedAt))
	} else {
		run.Error = err.Error()
		if ctx.Err() != nil {
			run.Error = interruptedText
		}
		k.cfg.Log.Error("backup failed", "to", run.Path, "err", err)
	}
	k.mu.Lock()
	*k.last() = run
	k.running = false
	k.save()
	k.mu.Unlock()
	if err == nil || ctx.Err() != nil { // stopping the server raises no alert
		return
	}
	if err := k.cfg.Store.Effects.AlertBackup(ctx); err != nil {
		k.cfg.Log.Error("raise the alert of a failed backup", "err", err)
	}
}

// save stores the runs. The caller holds mu. A failure is only logged, because a backup without a
// record is better than a failed backup.
func (k *Keeper) save() {
	if n := len(k.runs); n > store.MaxBackupRuns {
		k.runs = k.runs[n-store.MaxBackupRuns:]
	}
	if err := k.cfg.Store.SaveBackupRuns(k.runs); err != nil {
		k.cfg.Log.Error("store the result of a backup", "err", err)
	}
}

func (k *Keeper) prune(ctx context.Context, made string) {
	keep := Keep{Newest: k.cfg.Repeat.Keep, For: k.cfg.Repeat.KeepFor}
	n, err := k.cfg.Target.Prune(ctx, k.cfg.Now(), keep, made)
	if n > 0 {
		k.cfg.Log.Info("old backups deleted", "count", n)
	}
	if err != nil && ctx.Err() == nil {
		k.cfg.Log.Error("delete old backups", "err", err)
	}
}

// last returns the newest run, or nil. The caller holds mu.
func (k *Keeper) last() *store.BackupRun {
	if len(k.runs) == 0 {
		return nil
	}
	return &k.runs[len(k.runs)-1]
}

// next returns the time at which the next backup is due. ok is false without a schedule. A time in
// the past means that a backup was missed; it is made once. The caller holds mu. It compares the
// result with the same now, because a second reading of the clock would return a later time.
func (k *Keeper) next(now time.Time) (at time.Time, ok bool) {
	if k.every == 0 && k.cron == nil {
		return at, false
	}
	last := k.last()
	switch {
	case last == nil && k.cron != nil:
		// Record the start of the wait for the first backup. Otherwise each call would compute a
		// later time.
		k.runs = append(k.runs, store.BackupRun{StartedAt: now.UTC(), EndedAt: new(now.UTC()), Waits: true})
		k.save()
		return k.cron.Next(now), true
	case last == nil:
		return now, true
	case last.StartedAt.After(now): // the clock was set back
		return now, true
	case k.cron != nil:
		at = k.cron.Next(last.StartedAt)
	default:
		at = last.StartedAt.Add(k.every)
	}
	// A backup with damaged files is complete: repeating it would not repair the files.
	if !k.running && (last.EndedAt == nil || last.Error != "" && last.Size == 0) {
		if retry := last.StartedAt.Add(retryAfter); retry.Before(at) {
			at = retry
		}
	}
	return at, true
}

// Request makes the next Tick write a backup for a user. It returns Conflict if a backup is running
// or was already requested.
func (k *Keeper) Request(by string) error {
	if k == nil {
		return db.Errorf(db.Conflict, "backups have no place: the server was started without --backup-to")
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.running || k.requested != "" {
		return db.Errorf(db.Conflict, "a backup is being made already")
	}
	k.requested = by
	return nil
}

// A State describes the backups of a server.
type State struct {
	Place   string            // where they are stored; "" if the server makes none
	Sealed  bool              // whether they are encrypted
	Running bool              // a backup is running or requested
	Runs    []store.BackupRun // the latest runs, the newest first
	Next    *time.Time        // nil without a schedule
	Keep    Repeat
}

// Good returns the newest run that made a backup, or nil.
func (s State) Good() *store.BackupRun {
	for i, r := range s.Runs {
		if r.Good() {
			return &s.Runs[i]
		}
	}
	return nil
}

// State returns the current state.
func (k *Keeper) State() State {
	if k == nil {
		return State{}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	s := State{Place: k.cfg.Target.Path(""), Sealed: k.cfg.Target.seal.enabled(), Running: k.running || k.requested != "",
		Keep: k.cfg.Repeat}
	if at, ok := k.next(k.cfg.Now()); ok {
		s.Next = &at
	}
	for i := len(k.runs) - 1; i >= 0; i-- {
		if r := k.runs[i]; !r.Waits {
			if r.EndedAt == nil && !k.running {
				r.Error = interruptedText // of a process that was killed
			}
			s.Runs = append(s.Runs, r)
		}
	}
	return s
}
