package runner

import (
	"context"

	"journeyman/store"
)

// notifyParent notifies the watchers of a turn's parent that the turn has changed.
func (r *Runner) notifyParent(ctx context.Context, t store.Turn) error {
	p, found, err := r.cfg.Store.Parent(ctx, t)
	if err != nil || !found {
		return err
	}
	return r.Streams.ChildChanged(ctx, p)
}

// notifyEnded notifies the watchers of a turn that has ended without an execution.
func (r *Runner) notifyEnded(ctx context.Context, t store.Turn) error {
	r.logEnd(t)
	if err := r.notifyParent(ctx, t); err != nil {
		return err
	}
	return r.Streams.TurnEnded(ctx, t)
}

// notifyAborted notifies the watchers of a task's turns after seq that were cancelled.
func (r *Runner) notifyAborted(ctx context.Context, task store.TaskRef, seq int64) error {
	turns, err := r.cfg.Store.Turns(ctx, task)
	if err != nil {
		return err
	}
	for _, t := range turns {
		if t.Seq <= seq || t.Status != store.Aborted {
			continue
		}
		if err := r.notifyEnded(ctx, t); err != nil {
			return err
		}
	}
	return nil
}
