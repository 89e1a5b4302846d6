// Package runner carries turns out. It claims a pending turn, asks the model, runs the tools
// that the model asks for, and journals each call when it ends, so that a turn killed at any
// line resumes at the next start. Calls that only read, and calls that run other workers, run
// in parallel. A stream.Hub publishes the progress of each turn to its watchers.
//
// A finished call is never made again. A call that has begun and not finished may still have
// acted: its tool reports whether it is safe to repeat. A turn whose calls need approval is
// suspended, and holds no slot until people have decided.
//
// A turn passes through these files in this order: accept, claim, loop, step, call, suspend,
// finish. An execution is a claimed turn between claim and finish.
//
// The package imports store and the rooms below runner that the loop needs. Of the others,
// schedule and webhook act on rows, and backup acts on the data folder: none of them takes part
// in the loop. Nothing here speaks HTTP to a client, contains SQL, or knows a provider's wire
// format.
package runner

import (
	"context"
	"errors"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"journeyman/runner/model"
	"journeyman/runner/stream"
	"journeyman/runner/view"
	"journeyman/store"
	"journeyman/store/histogram"
)

// A Runner executes the turns of a store. Its methods are safe for concurrent use.
type Runner struct {
	Streams *stream.Hub // publishes the progress of turns to watchers

	cfg  Config
	id   string
	wake chan struct{} // buffers one signal: a wake-up during a claim is not lost, and two count as one

	ctx     context.Context // parent of all executions; ends with errStopped
	cancel  context.CancelCauseFunc
	claims  context.Context // ends when no more turns may be claimed
	unclaim context.CancelFunc
	claimer sync.WaitGroup            // counts dispatch
	leaser  sync.WaitGroup            // counts keepLease
	turns   sync.WaitGroup            // counts the executions; only begin adds to it
	alive   atomic.Pointer[time.Time] // of the dispatcher's last round; with a monotonic reading

	setup atomic.Pointer[setup] // replaced by Reload
	tools []model.Tool          // cfg.Tools, as the model sees them

	leanTools []model.Tool // tools, as models with a small window see them

	mu         sync.Mutex            // guards executions and taken
	executions map[string]*execution // by turn id
	taken      int                   // slots of executions, and of claims that are not committed yet

	views        view.Builder
	ledger       ledger
	billed       billedRates
	outages      outages
	failures     failureCounts
	latencies    latencies
	retries      atomic.Int64
	folders      workspaces
	placing      placing
	capabilities capabilityCache
	connected    connectedModels
	underWay     sync.Map // requests for which a model writes a worker now: name to channel; see oneAtATime

	// Unix milliseconds at which the dispatcher resumes suspended turns, noRetry for none. It
	// is 0 at first, so that the first round finds the turns of an earlier process.
	nextRetry atomic.Int64
}

// errStopped is the cause of contexts that end because the runner stops. It is not a
// failure: the turn goes back to the queue.
var errStopped = errors.New("the runner stops")

// New creates a runner. It does nothing before Start.
func New(cfg Config) *Runner {
	cfg.setDefaults()
	r := &Runner{cfg: cfg, id: store.NewID("run", cfg.Now()), wake: make(chan struct{}, 1),
		executions: map[string]*execution{}, views: view.New(cfg.Store, cfg.BaseURL)}
	r.Streams = stream.New(cfg.Store, r.views, cfg.Now)
	cfg.Store.OnChange(r.Streams.RecordsChanged)
	r.setup.Store(newSetup(append([]model.Model{cfg.Model}, cfg.Fallbacks...), cfg.Models, cfg.Prices))
	r.tools = toolSpecs(cfg.Tools)
	r.leanTools = leanSpecs(r.tools)
	// No caller's context: turns outlive the requests that started them, until Stop.
	// Turns that run when maintenance begins may end in it.
	r.ctx, r.cancel = context.WithCancelCause(store.DuringMaintenance(context.Background()))
	r.claims, r.unclaim = context.WithCancel(r.ctx)
	return r
}

// Wake makes the runner look for new turns at once. Without it, the runner finds them at
// the next poll.
func (r *Runner) Wake() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// ClockSet informs the runner that the times at which suspended turns are due have changed.
func (r *Runner) ClockSet() {
	r.nextRetry.Store(0)
	r.Wake()
}

// Alive reports whether the dispatcher has looked for turns within the last minute.
func (r *Runner) Alive() bool {
	last := r.alive.Load()
	return last != nil && r.cfg.Now().Sub(*last) < time.Minute
}

// noteAlive records that the dispatcher looks for turns now.
func (r *Runner) noteAlive() {
	now := r.cfg.Now() // its monotonic reading, if it has one, does not follow a clock that is set
	r.alive.Store(&now)
}

// Running returns how many turns are executed now.
func (r *Runner) Running() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.executions)
}

// Latencies returns how long steps, model calls and tool calls have taken since the start.
func (r *Runner) Latencies() map[Latency]histogram.Reading {
	r.latencies.mu.Lock()
	all := maps.Clone(r.latencies.by)
	r.latencies.mu.Unlock()
	list := make(map[Latency]histogram.Reading, len(all))
	for kind, h := range all {
		list[kind] = h.Read()
	}
	return list
}

// Retries returns how many model calls were made again since the start, after a failure of
// the same call.
func (r *Runner) Retries() int64 { return r.retries.Load() }

// FailedCalls returns how many model calls have failed since the start, by kind.
func (r *Runner) FailedCalls() map[Failing]int64 {
	r.failures.mu.Lock()
	defer r.failures.mu.Unlock()
	return maps.Clone(r.failures.by)
}
