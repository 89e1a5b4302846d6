package runner

import (
	"context"
	"errors"
	"time"

	"journeyman/runner/sandbox"
	"journeyman/runner/tool"
	"journeyman/store"
)

// This file keeps turns alive while the machine has no open file, no process, no memory or no
// disk space for them. Such an end says nothing about the turn: some seconds later it would have succeeded.

// exhausted reports whether err comes from a limit of the machine that may have room later.
func exhausted(err error) bool {
	e, ok := errors.AsType[*store.Error](store.Unavailable(err))
	return ok && e.Code == store.CodeStorage || sandbox.Exhausted(err)
}

// outlast calls do, and calls it again while the machine is exhausted. It returns the last
// error when ctx ends: the time budget of the turn bounds the wait.
func (r *Runner) outlast(ctx context.Context, e *execution, do func() error) error {
	for try := 1; ; try++ {
		err := do()
		if !exhausted(err) || !r.waitForRoom(ctx, e, try, err) {
			return err
		}
	}
}

// maxPause bounds the pauses of a turn that waits for the machine.
const maxPause = 15 * time.Second

// waitForRoom waits before a try after the first. It returns false if ctx ends first.
func (r *Runner) waitForRoom(ctx context.Context, e *execution, try int, why error) bool {
	pause := min(r.cfg.Retry(try), maxPause)
	r.cfg.Log.Warn("the machine has too few resources, the turn waits",
		append(turnIDs(e.claim.Turn), "try", try, "pause", pause, "err", why)...)
	select {
	case <-time.After(pause):
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// runPatiently runs the tool of a call, and repeats it while the machine is exhausted. A call
// that may have acted is not repeated: the model gets the error and decides.
func (r *Runner) runPatiently(ctx context.Context, run *callRun) (out []byte, err error) {
	err = r.outlast(ctx, run.host.e, func() error {
		run.host.files, run.host.sources, run.host.images = nil, nil, nil // of the try before
		out, err = run.tool.Run(ctx, run.host, run.Input)
		_, notStarted := errors.AsType[*sandbox.StartError](err)
		if exhausted(err) && !notStarted && !run.tool.Spec().Repeatable {
			return tool.Errorf("the server had no open files, processes or disk space left during this call, " +
				"which may have taken effect: check before repeating it")
		}
		return err
	})
	return out, err
}

// putBack returns a turn to the queue whose work the machine's limits stopped. It keeps its
// slot during a pause: a machine without open files must not get more work at once. It returns
// false if ctx ends meanwhile, because the turn was cancelled or the runner stops.
func (r *Runner) putBack(ctx context.Context, e *execution, why error) bool {
	if ctx.Err() != nil || !r.waitForRoom(ctx, e, int(e.claim.Claims), why) {
		return false
	}
	err := r.persist("put turn back into the queue", func(ctx context.Context) error {
		return r.cfg.Store.ReturnTurn(ctx, e.claim)
	})
	if err != nil { // the row still names this runner: the next start claims it again
		r.cfg.Log.Error("put turn back into the queue", append(turnIDs(e.claim.Turn), "err", err)...)
	}
	return true
}
