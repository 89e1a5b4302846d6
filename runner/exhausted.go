package runner

import (
	"context"
	"errors"
	"time"

	"journeyman/runner/sandbox"
	"journeyman/runner/tool"
	"journeyman/store"
	"journeyman/store/db"
)

// This file keeps turns alive while the machine lacks file descriptors, processes, memory or disk
// space. A turn must not fail for such a reason: seconds later it could succeed.

// exhausted reports whether err was caused by a resource limit of the machine, so that a retry may
// succeed.
func exhausted(err error) bool {
	e, ok := errors.AsType[*db.Error](db.Unavailable(err))
	return ok && e.Code == db.CodeStorage || sandbox.Exhausted(err)
}

// retryWhileExhausted calls do until it no longer fails for lack of resources. It returns the last error
// when ctx ends, so the turn's time budget limits the wait.
func (r *Runner) retryWhileExhausted(ctx context.Context, e *execution, do func() error) error {
	for try := 1; ; try++ {
		err := do()
		if !exhausted(err) || !r.waitForResources(ctx, e, try, err) {
			return err
		}
	}
}

// maxPause limits the pauses of a turn that waits for resources.
const maxPause = 15 * time.Second

// waitForResources waits before a retry. It returns false if ctx ends first.
func (r *Runner) waitForResources(ctx context.Context, e *execution, try int, why error) bool {
	pause := min(r.cfg.Retry(try), maxPause)
	e.log.Warn("the machine has too few resources, the turn waits", "try", try, "pause", pause, "err", why)
	return store.Pause(ctx, pause) == nil && ctx.Err() == nil
}

// runPatiently runs the tool of a call, and retries while the machine lacks resources. It does not
// retry a call that may have had effects: the model gets the error and decides.
func (r *Runner) runPatiently(ctx context.Context, run *callRun) (out []byte, err error) {
	err = r.retryWhileExhausted(ctx, run.host.e, func() error {
		run.host.files, run.host.sources, run.host.images = nil, nil, nil // of the try before
		out, err = run.tool.Run(ctx, run.host, run.Input)
		_, notStarted := errors.AsType[*sandbox.StartError](err)
		if exhausted(err) && !notStarted && !run.tool.Spec().Repeatable {
			return tool.Errorf("the server had too few open files, processes or disk space, or no access to its stored files, " +
				"during this call, which may have taken effect: check before repeating it")
		}
		return err
	})
	return out, err
}

// putBack returns a turn that was stopped by a resource limit to the queue. The turn first waits
// and keeps its slot, because the machine must not get more work at once. putBack returns false if
// the turn is cancelled or the runner stops meanwhile.
func (r *Runner) putBack(ctx context.Context, e *execution, why error) bool {
	if ctx.Err() != nil || !r.waitForResources(ctx, e, int(e.claim.Claims), why) {
		return false
	}
	err := r.persist("put turn back into the queue", func(ctx context.Context) error {
		return r.cfg.Store.ReturnTurn(ctx, e.claim)
	})
	if err != nil { // the row still contains this runner's id: the next start claims the turn again
		e.log.Error("put turn back into the queue", "err", err)
	}
	return true
}
