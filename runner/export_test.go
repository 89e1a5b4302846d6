package runner

import (
	"context"
	"errors"
	"time"

	"journeyman/runner/budget"
	"journeyman/store"
)

// This file exports internals to the tests of package runner_test.

// Kept returns the numbers of objects in memory: rings, unfinished turns in rings, watched turns,
// and accounts with reservations.
func (r *Runner) Kept() (rings, running, watched, reserved int) {
	rings, running, watched = r.Streams.Held()
	return rings, running, watched, r.ledger.Accounts()
}

// ExpireSuspended ends the suspended turns that have waited too long, like housekeep.
func (r *Runner) ExpireSuspended() { r.expireSuspended() }

// MaxApprovals is the maximum number of approvals of one step. ApprovalWait is the time to decide
// on them.
const (
	MaxApprovals = maxApprovals
	ApprovalWait = approvalWait
)

// Persist writes like a turn's journal. It returns the error of write, without context.
func (r *Runner) Persist(write func(ctx context.Context) error) error {
	return errors.Unwrap(r.persist("write", write))
}

// PersistRetry is the pause before a write to a full disk is retried.
const PersistRetry time.Duration = persistRetry

// Attach puts files into the folder of a turn that is not accepted yet.
func (r *Runner) Attach(ctx context.Context, n *store.NewTurn, files []store.File) error {
	p := placement{r: r}
	defer p.end()
	return p.attach(ctx, []*store.NewTurn{n}, files)
}

// Placing records that a request puts files into a folder, until the caller calls end.
func (r *Runner) Placing(folder store.Folder, files ...store.File) (end func()) {
	p := placement{r: r}
	p.begin(folder, files)
	return p.end
}

// Detach removes the attachments of a turn from its folder.
func (r *Runner) Detach(n *store.NewTurn) { (&placement{r: r}).detach(n) }

// Begin executes a claimed turn, as the store's callback does.
func (r *Runner) Begin(c store.Claim) { r.begin(c) }

// MayAct returns an error if a tool of a turn that a runner has claimed must not begin.
func (r *Runner) MayAct(ctx context.Context, runnerID string) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	return r.mayAct(ctx, &execution{claim: store.Claim{RunnerID: runnerID}, cancel: cancel})
}

// PollHolds is the pause between two looks of a call that waits for those of other nodes.
const PollHolds = budget.PollInterval

// NotifyAborted notifies the watchers of the turns from t on that were cancelled.
func (r *Runner) NotifyAborted(ctx context.Context, t store.Turn) error {
	return r.notifyAborted(ctx, t.WorkerID, t, t.Seq-1)
}

// StopAborted stops the turns of a cancelled task that have no execution, and the turns below them.
func (r *Runner) StopAborted(ctx context.Context, task store.Task, turns, below []store.Turn) error {
	return r.stopAborted(ctx, task, turns, nil, below)
}

// KeepWatched keeps the watched workers on this node.
func (r *Runner) KeepWatched() { r.keepWatched() }

// KeepPlace leads or gives up idle workers, as housekeep does.
func (r *Runner) KeepPlace(id string) error { return r.keepPlace(id) }

// LastEnd is the end of a last call.
var LastEnd = lastEnd
