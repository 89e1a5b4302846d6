package runner

import (
	"context"

	"journeyman/store"
)

// tellParent notifies the watchers of a turn's parent that the turn has changed.
func (r *Runner) tellParent(ctx context.Context, t store.Turn) error {
	p, found, err := r.cfg.Store.Parent(ctx, t)
	if err != nil || !found {
		return err
	}
	return r.Streams.ChildChanged(ctx, p)
}

// tellEnded notifies the watchers of a turn that it ended while it had no execution.
func (r *Runner) tellEnded(ctx context.Context, t store.Turn) error {
	r.logEnd(t)
	if err := r.tellParent(ctx, t); err != nil {
		return err
	}
	return r.Streams.TurnEnded(ctx, t)
}

// tellAborted notifies the watchers of a task which turns after seq were cancelled.
func (r *Runner) tellAborted(ctx context.Context, task store.TaskRef, seq int64) error {
	turns, err := r.cfg.Store.Turns(ctx, task)
	if err != nil {
		return err
	}
	for _, t := range turns {
		if t.Seq <= seq || t.Status != store.Aborted {
			continue
		}
		if err := r.tellEnded(ctx, t); err != nil {
			return err
		}
	}
	return nil
}
