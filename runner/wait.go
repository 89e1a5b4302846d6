package runner

import (
	"context"
	"time"

	"journeyman/runner/stream"
	"journeyman/store"
	"journeyman/store/db"
)

// errStopping is the error for a client that waits for a turn when the runner stops.
var errStopping = &db.Error{Kind: db.Busy, Code: "stopping",
	Message: "the service stops before the task has ended; the task continues at the next start"}

// A Watch waits for the end of one turn. Its methods must not be called concurrently.
type Watch struct {
	r      *Runner
	turnID string
	fresh  bool // the watch began before the turn existed, so no end was missed
	end    stream.End
	leave  func()
}

// Watch returns a Watch of a turn that exists. The caller must call Leave.
func (r *Runner) Watch(turnID string) *Watch {
	w := &Watch{r: r, turnID: turnID}
	w.end, w.leave = r.Streams.WatchEnd(turnID)
	return w
}

// Leave ends the Watch.
func (w *Watch) Leave() { w.leave() }

// Wait waits until the turn has ended or ctx is done. It returns a db.Error of kind Busy if the
// runner stops first.
func (r *Runner) Wait(ctx context.Context, turnID string) error {
	w := r.Watch(turnID)
	defer w.Leave()
	_, err := w.Result(ctx)
	return err
}

// Result waits until the turn has ended or ctx is done. It returns the task as the store would
// return it at the end of the turn, or nil if memory does not hold the whole task. Callers must not
// change the task. Result returns a db.Error of kind Busy if the runner stops first.
func (w *Watch) Result(ctx context.Context) (*store.Conversation, error) {
	poll := time.NewTicker(w.r.Streams.PollEvery())
	defer poll.Stop()
	for {
		ended, err := w.ended(ctx)
		if !ended && err == nil {
			select {
			case <-w.end.Committed():
				ended = true
			case <-poll.C:
			case <-w.r.ctx.Done():
			case <-ctx.Done():
				err = ctx.Err()
			}
		}
		if err != nil || ended {
			return w.end.Conversation(), err
		}
	}
}

// ended reads whether the turn has ended, unless the Watch cannot have missed the end. The Watch
// begins before the read, so an end between them closes the channel of the Watch.
func (w *Watch) ended(ctx context.Context) (bool, error) {
	// Read before TurnEnded, so that a turn that ended before the stop is not reported as stopped.
	stopped := w.r.ctx.Err() != nil
	if w.fresh && !stopped {
		w.fresh = false
		return false, nil
	}
	ended, err := w.r.cfg.Store.TurnEnded(ctx, w.turnID)
	if err == nil && !ended && stopped {
		err = errStopping
	}
	return ended, err
}
