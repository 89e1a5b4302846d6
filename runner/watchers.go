package runner

import (
	"context"
	"errors"

	"journeyman/store"
)

// notifyParent notifies the watchers of a turn's parent that the turn has changed.
func (r *Runner) notifyParent(ctx context.Context, t store.Turn) error {
	p, found, err := r.cfg.Store.Parent(ctx, t)
	if err != nil || !found {
		return err
	}
	r.notifyNodes() // the parent may wait in the queue for another node
	return r.Streams.ChildChanged(ctx, p)
}

// notifyEnded notifies the watchers of a turn that has ended without an execution. The end is committed,
// so the watchers get it even if the client that caused it has disconnected.
func (r *Runner) notifyEnded(ctx context.Context, t store.Turn) error {
	r.logEnd(t)
	ctx = context.WithoutCancel(ctx)
	return errors.Join(r.notifyParent(ctx, t), r.Streams.TurnEnded(ctx, t))
}

// notifyAborted notifies the watchers of a task's turns after seq that were cancelled. The task belongs
// to the worker. If the turns cannot be read, the worker-wide streams of the worker end. Their clients
// connect again, and then get the turns.
func (r *Runner) notifyAborted(ctx context.Context, workerID string, task store.TaskRef, seq int64) error {
	turns, err := r.cfg.Store.Turns(context.WithoutCancel(ctx), task) // as in notifyEnded
	if err != nil {
		r.Streams.Leave(workerID)
	}
	for _, t := range turns {
		if t.Seq > seq && t.Status == store.Aborted {
			err = errors.Join(err, r.notifyEnded(ctx, t))
		}
	}
	return err
}
