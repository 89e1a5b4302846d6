package runner

import (
	"context"
	"fmt"
	"time"

	"journeyman/store"
	"journeyman/store/db"
)

// journal writes a step to the journal and adds it to the turn.
func (r *Runner) journal(e *execution, st store.Step) error {
	// persist ignores a cancellation of the turn: a paid call must be journaled.
	err := r.persist("journal step", func(ctx context.Context) error {
		return r.cfg.Store.JournalStep(ctx, e.claim, st)
	})
	if err != nil {
		return err
	}
	// Memory and watchers change only after the commit. So they never show a step that a crash
	// would undo.
	e.steps, e.attempts = append(e.steps, st), 0
	e.used = e.used.Add(st.Usage).Add(store.Usage{Steps: 1})
	e.live.Journaled(st)
	return nil
}

// persist calls write, and retries while the disk is full, because a paid model call must not be
// lost. what names the write in errors.
func (r *Runner) persist(what string, write func(ctx context.Context) error) error {
	for try := 0; ; try++ {
		// A stop must not cancel this write: the call is already paid, or has had effects.
		err := write(context.WithoutCancel(r.ctx))
		if err == nil {
			return nil
		}
		// During a stop, persist does not wait: the next start repeats calls without a journal
		// entry.
		if !db.IsKind(err, db.Busy) || r.ctx.Err() != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		if try%60 == 0 { // about once a minute
			r.cfg.Log.Error("the store accepts no writes, will retry", "err", err)
		}
		_ = store.Pause(r.ctx, persistRetry) // after a stop, one last try follows
	}
}

// persistRetry is the pause before a write is retried.
const persistRetry = time.Second
