package runner

import (
	"context"

	"journeyman/store"
)

// ArchiveTask archives a task. It cancels the unfinished turns, and waits until the running turn has
// stopped.
func (r *Runner) ArchiveTask(ctx context.Context, c store.Caller, id string) error {
	_, err := r.abort(ctx, c, id, r.cfg.Store.ArchiveTask)
	return err
}

// DeleteWorker deletes a worker. It cancels the unfinished turns of the worker's tasks, and waits until
// the running turns have stopped. If ctx ends before that, the worker is deleted all the same, and its
// turns end without it: see Store.DeleteWorker.
func (r *Runner) DeleteWorker(ctx context.Context, c store.Caller, id string) error {
	if err := r.cfg.Store.DeleteWorker(ctx, c, id); err != nil {
		return err
	}
	// A turn whose acceptance began before the deletion is found, too.
	if err := r.cfg.Store.AwaitWrites(ctx); err != nil {
		return err
	}
	tasks, err := r.cfg.Store.UnfinishedTasks(ctx, id)
	if err != nil {
		return err
	}
	for _, task := range tasks {
		_, err := r.AbortTask(ctx, c, task)
		if err != nil && !store.IsNotFound(err) { // its retention may be over
			return err
		}
	}
	return nil
}
