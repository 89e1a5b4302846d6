package runner

import (
	"context"
	"errors"
	"slices"

	"journeyman/store"
	"journeyman/store/people"
)

// errAborted is the cause of the context of a cancelled turn.
var errAborted = errors.New("the task was cancelled")

// AbortTask cancels the unfinished turns of a task, and waits until the running turn has stopped.
// It returns the task. The output of the turns so far is kept.
func (r *Runner) AbortTask(ctx context.Context, c people.Caller, id string) (store.Task, error) {
	before, _, err := r.cfg.Store.Task(ctx, c, id)
	if err != nil || before.Unfinished == 0 {
		return before, err
	}
	return r.abort(ctx, c, id, r.cfg.Store.AbortTask)
}

// abort stops the turns that write has cancelled in the store, and returns the task. write is AbortTask
// or ArchiveTask of the store.
func (r *Runner) abort(ctx context.Context, c people.Caller, id string,
	write func(context.Context, people.Caller, string) (store.Task, []string, error)) (store.Task, error) {
	before, turns, err := r.cfg.Store.TaskTurns(ctx, c, id)
	if err != nil {
		return before, err
	}
	// Read before write: it ends some of these turns, and ended turns would not be found.
	below, err := r.cfg.Store.Unfinished(ctx, before)
	if err != nil {
		return before, err
	}
	task, running, err := write(ctx, c, id)
	if err != nil {
		return task, err
	}
	r.WakeAll() // a turn that waited for one of these may now continue
	if err := r.stopAborted(ctx, task, turns, running, below); err != nil {
		return task, err
	}
	for _, turnID := range running {
		// finish also notifies the watchers of the turns behind this one, which end with it.
		if err := r.Wait(ctx, turnID); err != nil {
			return task, err
		}
	}
	task, _, err = r.cfg.Store.Task(ctx, c, id)
	return task, err
}

// stopAborted stops the running turns of a cancelled task, and the turns below its turns. It notifies
// the watchers of turns without an execution. turns and below are from before the cancel. The cancel
// is committed, so the turns stop even if the client has disconnected.
func (r *Runner) stopAborted(ctx context.Context, task store.Task, turns []store.Turn, running []string,
	below []store.Turn) error {
	ctx = context.WithoutCancel(ctx)
	if err := r.stopExecutions(ctx, running); err != nil {
		return err
	}
	// The executions of running turns notify the watchers when they stop.
	below = slices.DeleteFunc(below, func(t store.Turn) bool { return slices.Contains(running, t.ID) })
	err := r.stopBelow(ctx, below)
	if task.Unfinished > 0 {
		return err
	}
	// No turn of the task runs, so the cancel has ended all of them. No execution exists that could
	// notify the watchers.
	first := slices.IndexFunc(turns, func(t store.Turn) bool { return !t.Status.Ended() })
	if first < 0 {
		first = len(turns) // nothing was unfinished
	}
	return errors.Join(err, r.notifyAborted(ctx, task.WorkerID, task, int64(first)-1))
}

// stopExecutions stops cancelled turns all at once, so that the turns of a team need not wait for
// each other.
func (r *Runner) stopExecutions(ctx context.Context, turnIDs []string) error {
	missing := slices.DeleteFunc(slices.Clone(turnIDs), r.stopExecution)
	if len(missing) == 0 {
		return nil
	}
	// A turn may be claimed in the store before begin has registered its execution. After the
	// pending writes, begin has run.
	if err := r.cfg.Store.AwaitWrites(ctx); err != nil {
		return err
	}
	elsewhere := false
	for _, turnID := range missing {
		// If this finds nothing, the turn has ended, or its runner is dead or another node's.
		elsewhere = !r.stopExecution(turnID) || elsewhere
	}
	if elsewhere {
		r.notifyNodes()
	}
	return nil
}

// stopExecution stops a cancelled turn. found is false if this runner does not execute the turn.
func (r *Runner) stopExecution(turnID string) (found bool) {
	r.mu.Lock()
	e := r.executions[turnID]
	r.mu.Unlock()
	if e != nil {
		e.cancel(errAborted)
	}
	return e != nil
}

// stopBelow stops the executions of turns below a turn that has ended or was cancelled. It notifies
// the watchers of turns that ended without an execution. list holds the turns that were unfinished
// before.
func (r *Runner) stopBelow(ctx context.Context, list []store.Turn) error {
	var running []string
	var errs []error // an error of one turn must not keep the others running
	for _, t := range list {
		now, err := r.cfg.Store.Turn(ctx, t.ID)
		if err != nil {
			r.Streams.Leave(t.WorkerID) // as in notifyAborted
			errs = append(errs, err)
			continue
		}
		if !now.AbortRequested || r.stopExecution(t.ID) {
			continue // not cancelled, or its execution notifies the watchers
		}
		if !now.Status.Ended() {
			running = append(running, t.ID)
			continue
		}
		errs = append(errs, r.notifyEnded(ctx, now))
	}
	return errors.Join(append(errs, r.stopExecutions(ctx, running))...)
}
