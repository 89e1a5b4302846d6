package runner

import (
	"context"
	"errors"

	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/people"
)

// ArchiveTask archives a task. It cancels the unfinished turns, and waits until the running turn has
// stopped. But a running turn goes on if its client waits for the result.
func (r *Runner) ArchiveTask(ctx context.Context, c people.Caller, id string) error {
	_, turns, err := r.cfg.Store.TaskTurns(ctx, c, id)
	if err != nil {
		return err
	}
	for _, t := range turns {
		if r.executing(t.ID) && r.Streams.Waited(t.ID) {
			_, _, err = r.cfg.Store.ArchiveTask(ctx, c, id, t.ID)
			return err
		}
	}
	_, err = r.abort(ctx, c, id, func(ctx context.Context, c people.Caller, id string) (store.Task, []string, error) {
		return r.cfg.Store.ArchiveTask(ctx, c, id, "")
	})
	return err
}

// executing reports whether this process executes a turn.
func (r *Runner) executing(turnID string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.executions[turnID] != nil
}

// DeleteWorker deletes a worker. It cancels the unfinished turns of the worker's tasks, and waits until
// the running turns have stopped. If ctx ends before that, the worker is deleted all the same, and its
// turns end without it: see Store.DeleteWorker.
func (r *Runner) DeleteWorker(ctx context.Context, c people.Caller, id string) error {
	if err := r.cfg.Store.DeleteWorker(ctx, c, id); err != nil {
		return err
	}
	// A turn whose acceptance began before the deletion is found, too.
	if err := r.cfg.Store.AwaitWrites(ctx); err != nil {
		return err
	}
	if err := r.abortQueued(ctx, id); err != nil {
		return err
	}
	// What is left runs, is suspended or belongs to a team.
	tasks, err := r.cfg.Store.UnfinishedTasks(ctx, id)
	if err != nil {
		return err
	}
	for _, task := range tasks {
		_, err := r.AbortTask(ctx, c, task)
		if err != nil && !db.IsNotFound(err) { // its retention may be over
			return err
		}
	}
	return nil
}

// abortTogether bounds the tasks of a worker that one write ends, so that no write holds its locks for long.
const abortTogether = 250

// abortQueued ends the turns of a deleted worker that wait in the queue and have never run. There may be as many
// as the queue holds.
func (r *Runner) abortQueued(ctx context.Context, workerID string) error {
	for {
		ended, err := r.cfg.Store.AbortQueued(ctx, workerID, abortTogether)
		if err != nil || len(ended) == 0 {
			return err
		}
		for _, t := range ended { // an error for one turn must not delay the watchers of the others
			err = errors.Join(err, r.notifyEnded(ctx, t))
		}
		if err != nil {
			return err
		}
	}
}
