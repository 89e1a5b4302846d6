// Package runner carries turns out. It claims a pending turn, asks the model,
// runs the tools it asks for, and journals each call before the next begins, so
// that a turn killed at any line resumes at the next start. It also tells what a
// turn is doing, as messages and as streams of chunks.
//
// A finished call is never made again. One begun and not finished may have acted
// all the same: its tool says whether repeating it is safe. A turn whose calls
// people have to approve is carried out by nobody until they have. It imports store,
// model, tool and sandbox. Nothing here speaks HTTP to a client or writes SQL.
package runner

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"journeyman/runner/model"
	"journeyman/runner/tool"
	"journeyman/store"
)

// Config is what a Runner works with. All fields but those with a stated default
// are needed.
type Config struct {
	Store         *store.Store
	Model         model.Model // of workers that choose none
	Models        Models      // that workers may choose; none where nil
	Prices        *model.Prices
	Tools         []tool.Tool
	Remote        tool.Source // tools of other people's servers; none where nil
	BaseURL       string      // of the addresses of published files, without a slash at the end
	Log           *slog.Logger
	Concurrency   int                         // turns at once; 64 where 0
	ContextWindow int64                       // of models that Prices says nothing of, in tokens; DefaultContextWindow where 0
	Budgets       map[store.Budget]Limits     // DefaultBudgets where nil
	Retry         func(try int) time.Duration // pause before a model call's try 1, 2, ...; RetryDelay where nil
	Now           func() time.Time            // time.Now where nil
}

// How a runner holds what it has claimed, and finds what it was not told of.
const (
	leaseTime  = 60 * time.Second
	leaseRenew = 15 * time.Second
	pollEvery  = 5 * time.Second
)

// A Runner carries out the turns of a store. Its methods are safe for concurrent
// use.
type Runner struct {
	cfg  Config
	id   string
	wake chan struct{} // of size 1: waking twice is waking once

	ctx     context.Context // of everything the runner does; ends with errStopped
	cancel  context.CancelCauseFunc
	claims  context.Context // ends when no more turns may be claimed
	unclaim context.CancelFunc
	claimer sync.WaitGroup // dispatch
	leaser  sync.WaitGroup // keepLease
	turns   sync.WaitGroup // turns being carried out
	alive   atomic.Int64   // Unix seconds of the dispatcher's last round

	own   pricedModel  // of workers that choose none
	tools []model.Tool // cfg.Tools, as the model is shown them

	mu   sync.Mutex
	live map[string]*liveTurn // by turn id, while carried out here

	ledger  ledger
	schemas schemaCache
	folders workspaces
	ended   signals // of turns, by id: claimed or ended
	final   signals // of turns, by id: ended, and committed
	rings   rings   // of workers, by id: the worker-wide streams
	streams context.Context
	closeSt context.CancelFunc
}

// errStopped is why the work of a runner that stops is cut off. It is not a
// failure: the turn goes back to the queue.
var errStopped = errors.New("the runner stops")

// New makes a runner. It does nothing before Start.
func New(cfg Config) *Runner {
	if cfg.Concurrency == 0 {
		cfg.Concurrency = 64
	}
	if cfg.ContextWindow == 0 {
		cfg.ContextWindow = DefaultContextWindow
	}
	if cfg.Budgets == nil {
		cfg.Budgets = DefaultBudgets()
	}
	if cfg.Retry == nil {
		cfg.Retry = RetryDelay
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	r := &Runner{cfg: cfg, id: store.NewID("run", cfg.Now()), wake: make(chan struct{}, 1),
		live: map[string]*liveTurn{}}
	r.own = r.priced(cfg.Model)
	for _, t := range cfg.Tools {
		s := t.Spec()
		r.tools = append(r.tools, model.Tool{Name: s.Name, Description: s.Description, InputSchema: s.InputSchema})
	}
	r.ctx, r.cancel = context.WithCancelCause(context.Background())
	r.claims, r.unclaim = context.WithCancel(r.ctx)
	r.streams, r.closeSt = context.WithCancel(context.Background())
	r.rings.now, r.rings.m = cfg.Now, map[string]*ring{}
	return r
}

// Start takes back what dead runners left and begins to claim turns.
func (r *Runner) Start(ctx context.Context) error {
	if err := r.cfg.Store.StartRunner(ctx, r.id, leaseTime); err != nil {
		return fmt.Errorf("start runner: %w", err)
	}
	r.alive.Store(r.cfg.Now().Unix())
	r.claimer.Go(r.dispatch)
	r.leaser.Go(r.keepLease)
	return nil
}

// Stop ends the runner in good order: no new turns are claimed, the running ones
// may finish until ctx ends, and the rest go back to the queue.
func (r *Runner) Stop(ctx context.Context) error {
	r.unclaim()
	r.CloseStreams()
	r.claimer.Wait() // a claim under way is seen through: only then is it known which turns run
	done := make(chan struct{})
	go func() { r.turns.Wait(); close(done) }() // ends: turns end soon after cancel
	select {
	case <-done:
	case <-ctx.Done():
	}
	r.cancel(errStopped)
	<-done
	r.leaser.Wait()
	// ctx may be over, and the turns must go back all the same.
	if err := r.cfg.Store.StopRunner(context.WithoutCancel(ctx), r.id); err != nil {
		return fmt.Errorf("stop runner: %w", err)
	}
	return nil
}

// CloseStreams ends every stream, so that a server with open ones can shut down.
func (r *Runner) CloseStreams() { r.closeSt() }

// Wake says that a turn was accepted. It makes the runner prompt; a turn nobody
// told of is found by polling.
func (r *Runner) Wake() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// Alive reports whether the dispatcher went round within the last minute.
func (r *Runner) Alive() bool {
	return r.cfg.Now().Unix()-r.alive.Load() < 60
}

// Running is how many turns are being carried out.
func (r *Runner) Running() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.live)
}

// dispatch claims turns as there is room for them. One claim takes as many as
// wait, so its cost is shared.
func (r *Runner) dispatch() {
	poll := time.NewTicker(pollEvery)
	defer poll.Stop()
	for {
		r.alive.Store(r.cfg.Now().Unix())
		free := r.cfg.Concurrency - r.Running()
		if free > 0 {
			claims, err := r.cfg.Store.ClaimTurns(r.claims, r.id, free)
			if r.claims.Err() != nil {
				return // what was claimed all the same goes back when the runner stops
			}
			if err != nil {
				r.cfg.Log.Error("claim turns", "err", err)
			}
			for _, c := range claims {
				r.begin(c)
			}
			if len(claims) > 0 && len(claims) < free {
				continue // others may have come meanwhile
			}
		}
		select {
		case <-r.wake:
		case <-poll.C:
		case <-r.claims.Done():
			return
		}
	}
}

// begin carries a claimed turn out in its own goroutine.
func (r *Runner) begin(c store.Claim) {
	ctx, cancel := context.WithCancelCause(r.ctx)
	lt := newLiveTurn(c, cancel)
	r.mu.Lock()
	r.live[c.ID] = lt
	r.mu.Unlock()
	r.turns.Go(func() {
		r.carryOut(ctx, c, lt)
		cancel(nil)
		r.mu.Lock()
		if r.live[c.ID] == lt { // else it has rested, and is carried out again
			delete(r.live, c.ID)
		}
		r.mu.Unlock()
		r.rings.forget(lt)
		lt.close()
		r.ended.fire(c.ID)
		r.Wake() // there is room
	})
}

func (r *Runner) keepLease() {
	tick := time.NewTicker(leaseRenew)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if err := r.cfg.Store.RenewLease(r.ctx, r.id, leaseTime); err != nil && r.ctx.Err() == nil {
				r.cfg.Log.Error("renew lease", "err", err)
			}
			r.rings.prune()
			r.expireRests()
		case <-r.ctx.Done():
			return
		}
	}
}

// errAborted is why the work of a cancelled turn is cut off.
var errAborted = errors.New("the task was cancelled")

// AbortTask cancels what of a task has not ended, waits until the running turn has
// stopped, and gives the task. What was produced is kept.
func (r *Runner) AbortTask(ctx context.Context, c store.Caller, id string) (store.Task, error) {
	task, _, err := r.cfg.Store.Task(ctx, c, id)
	if err != nil {
		return task, err
	}
	before, err := r.cfg.Store.Turns(ctx, task.Num)
	if err != nil {
		return task, err
	}
	task, running, err := r.cfg.Store.AbortTask(ctx, c, id)
	if err != nil {
		return task, err
	}
	for _, turnID := range running {
		r.mu.Lock()
		lt := r.live[turnID]
		r.mu.Unlock()
		if lt != nil { // else it has just been claimed, and sees for itself
			lt.cancel(errAborted)
		}
	}
	if err := r.tellAborted(ctx, task.Num, before, running); err != nil {
		return task, err
	}
	for _, turnID := range running {
		if err := r.Wait(ctx, turnID); err != nil {
			return task, err
		}
	}
	task, _, err = r.cfg.Store.Task(ctx, c, id)
	return task, err
}

// tellAborted tells those who watch of the turns of a task that were cancelled while
// they waited: those that had not ended before, and were not running.
func (r *Runner) tellAborted(ctx context.Context, taskNum int64, before []store.Turn, running []string) error {
	told := map[string]bool{}
	for _, t := range before {
		told[t.ID] = t.Status.Ended()
	}
	for _, turnID := range running {
		told[turnID] = true
	}
	turns, err := r.cfg.Store.Turns(ctx, taskNum)
	if err != nil {
		return err
	}
	for _, t := range turns {
		if told[t.ID] || t.Status != store.Aborted {
			continue
		}
		if err := r.tellEnded(ctx, t); err != nil {
			return err
		}
	}
	return nil
}

// tellEnded tells those who watch of a turn that ended while nobody carried it out.
func (r *Runner) tellEnded(ctx context.Context, t store.Turn) error {
	r.ended.fire(t.ID)
	r.final.fire(t.ID)
	if r.rings.get(t.WorkerID) == nil {
		return nil
	}
	v, err := r.lookUp(ctx, t.ID)
	if err != nil {
		return err
	}
	r.feedEnded(v)
	return nil
}

// errStopping ends a wait for a turn that this runner will not end any more.
var errStopping = &store.Error{Kind: store.Busy, Code: "stopping",
	Message: "the service stops before the task has ended; it goes on at the next start"}

// Wait returns once the turn has ended, or ctx has. It fails with a store.Error of
// kind Busy when the runner stops first.
func (r *Runner) Wait(ctx context.Context, turnID string) error {
	again := time.NewTicker(lookAgain)
	defer again.Stop()
	for {
		stopped := r.ctx.Err() != nil // looked at first: what ended before is seen below
		final := r.final.watch(turnID)
		ended, err := r.cfg.Store.TurnEnded(ctx, turnID)
		switch {
		case err != nil || ended:
		case stopped:
			err = errStopping
		default:
			select {
			case <-final:
				ended = true
			case <-again.C:
			case <-r.ctx.Done():
			case <-ctx.Done():
				err = ctx.Err()
			}
		}
		r.final.leave(turnID, final)
		if err != nil || ended {
			return err
		}
	}
}
