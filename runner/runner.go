// Package runner executes turns. It claims a pending turn, asks the model, and runs the tools that
// the model asks for. Each call is journaled when it ends, so that a turn killed at any point
// resumes at the next start. Calls that only read, and calls that run other workers, run in
// parallel. A stream.Hub publishes the progress of each turn to its watchers.
//
// A finished call is never made again. A call that has begun but not finished may still have had
// effects: its tool reports whether repeating it is safe. A turn whose calls need approval is
// suspended, and holds no slot until people have decided.
//
// A turn passes through these files in this order: accept, claim, loop, step, modelcall, call, suspend,
// finish. An execution is a claimed turn between claim and finish.
//
// The package imports store and those packages below runner that the loop needs. The other packages
// are not part of the loop: schedule and webhook work on rows, and backup works on the data folder.
// Nothing here speaks HTTP to a client, contains SQL, or knows a provider's wire format.
package runner

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"journeyman/runner/budget"
	"journeyman/runner/models"
	"journeyman/runner/stream"
	"journeyman/runner/toolset"
	"journeyman/runner/view"
	"journeyman/store/gate"
)

// A Runner executes the turns of a store. Its methods are safe for concurrent use.
type Runner struct {
	Streams *stream.Hub       // publishes the progress of turns to watchers
	Models  *models.Directory // opens the models of organizations

	cfg  Config
	wake chan struct{} // buffers one signal, so that a wake-up during a claim is not lost

	nodeSignals
	lifetime
	renewed atomic.Pointer[time.Time] // time just before the last renewal of the lease
	alive   atomic.Pointer[time.Time] // the dispatcher's last round; with a monotonic reading

	tools func() toolset.Own // computes its result once

	programs programs

	mu         sync.Mutex            // guards the fields below
	id         string                // of the lease
	fenced     bool                  // the lease is lost: no turn may run
	executions map[string]*execution // by turn id
	taken      int                   // slots of executions and of uncommitted claims
	strangers  int                   // those of them that are for turns of people who are not members

	views    view.Builder
	ledger   *budget.Ledger
	metrics  *metrics.Set     // see Metrics
	retries  *metrics.Counter // of model calls
	folders  workspaces
	placing  placing
	forms    formCache
	underWay sync.Map // requests that must not run in parallel: name to channel; see oneAtATime

	// Unix milliseconds at which the dispatcher next resumes suspended turns, or noRetry. It is 0
	// at first, so that the first round finds the suspended turns of an earlier process.
	nextRetry atomic.Int64
}

// A lifetime says how long a runner and its goroutines run.
type lifetime struct {
	ctx     context.Context // parent of all executions; ends with errStopped
	cancel  context.CancelCauseFunc
	claims  context.Context // ends when no more turns may be claimed
	unclaim context.CancelFunc
	claimer sync.WaitGroup // counts dispatch
	leaser  sync.WaitGroup // counts keepLease, housekeep, findPrograms, followNodes and followWatchers
	turns   sync.WaitGroup // counts the executions, and the start of programs within one
}

// nodeSignals are what this node reads from the other nodes, and what it has for them.
type nodeSignals struct {
	lookNow    chan struct{} // makes followNodes read the store; buffers one signal, like wake
	hasChanges chan struct{} // see HasChanges; buffers one signal, like wake

	changesMu sync.Mutex // guards changes
	changes   Changes    // for the other nodes
}

// errStopped is the cause of contexts that end because the runner stops. It is not a failure: the
// turn returns to the queue.
var errStopped = errors.New("the runner stops")

// New creates a runner. The runner does nothing before Start.
func New(cfg Config) *Runner {
	cfg.setDefaults()
	r := &Runner{cfg: cfg, wake: make(chan struct{}, 1),
		nodeSignals: nodeSignals{lookNow: make(chan struct{}, 1), hasChanges: make(chan struct{}, 1)},
		executions:  map[string]*execution{}, views: view.New(cfg.Store, cfg.BaseURL), metrics: metrics.NewSet()}
	for _, name := range startedCounters() { // so that a first resumption is an increase
		r.metrics.NewCounter(name)
	}
	r.retries = r.metrics.NewCounter("journeyman_model_retries_total")
	r.Streams = stream.New(cfg.Store, r.views, cfg.Now)
	r.ledger = budget.NewLedger(r.storeHold)
	cfg.Store.OnChange(r.recordsChanged)
	r.Streams.OnEnd(r.broadcastEnd)
	r.Models = models.New(cfg.directory(r.oneAtATime))
	// The tools are built at their first use, because this would delay the start.
	r.tools = sync.OnceValue(func() toolset.Own { return toolset.NewOwn(cfg.ownTools()) })
	// The parent is not a caller's context, because turns outlive the requests that started them.
	// Turns that run when maintenance begins may finish during it.
	r.ctx, r.cancel = context.WithCancelCause(gate.DuringMaintenance(context.Background()))
	r.claims, r.unclaim = context.WithCancel(r.ctx)
	return r
}

// Wake makes the runner claim new turns at once. Without Wake, the runner finds them at its next poll.
func (r *Runner) Wake() { signal(r.wake) }

// signal sends a signal to a channel that buffers one, unless it already has one.
func signal(to chan<- struct{}) {
	select {
	case to <- struct{}{}:
	default:
	}
}

// ClockSet makes the runner read the due times of suspended turns again, because they have changed.
func (r *Runner) ClockSet() {
	r.nextRetry.Store(0)
	r.Wake()
}

// Alive reports whether the dispatcher has polled for turns within the last minute.
func (r *Runner) Alive() bool {
	last := r.alive.Load()
	return last != nil && r.cfg.Now().Sub(*last) < time.Minute
}

// noteAlive records that the dispatcher polls for turns now.
func (r *Runner) noteAlive() {
	now := r.cfg.Now() // a monotonic reading, if present, is not affected when the clock is set
	r.alive.Store(&now)
}

// Running returns the number of turns in execution.
func (r *Runner) Running() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.executions)
}
