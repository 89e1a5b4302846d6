// Package webhook sends the pending deliveries in the store. The deliveries of one worker go to its
// endpoint one after the other, in the order in which their turns ended. A delivery that fails
// waits for its retry and does not delay the others. Endpoints do not wait for one another.
// Endpoints whose last attempt failed have slots of their own, so that dead endpoints cannot occupy
// all slots.
//
// It also sends the alert messages of organizations to their webhook channels.
//
// The package may import store, dial, view, workspace and trace. The due deliveries exist only in the
// database, so a crash loses no delivery. After a crash, a few attempts that were not recorded are
// made again.
package webhook

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"journeyman/runner/dial"
	"journeyman/runner/trace"
	"journeyman/runner/view"
	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/gate"
)

// Config holds the dependencies and settings of a Dispatcher. Every field without a stated
// default is required.
type Config struct {
	Store     *store.Store
	Log       *slog.Logger
	BaseURL   string // prefix of the URLs in bodies, without a trailing slash
	UserAgent string
	Dialer    dial.Guard       // the zero value reaches public addresses only
	RootCAs   *x509.CertPool   // trusted certificate authorities; nil: those of the system
	Timeout   time.Duration    // of one attempt; 0: 10 s
	Now       func() time.Time // the clock of the store; nil: time.Now

	Trace *trace.Tracer // nil: no tracing

	PollAlerts time.Duration // pause between two polls for alert messages; 0: 500 ms
}

const (
	workingSlots = 128              // concurrent attempts at working endpoints
	failingSlots = 32               // concurrent attempts at endpoints whose last attempt failed
	manualSlots  = 16               // concurrent attempts that users requested
	roomPause    = 5 * time.Second  // pause between two checks of a full disk
	pollEvery    = 30 * time.Second // pause between two polls
	pollShared   = time.Second      // the same if other nodes store deliveries
	pollLimit    = 1000             // maximum number of workers in one query of Poll
)

// A Dispatcher sends deliveries. Its methods are safe for concurrent use.
type Dispatcher struct {
	cfg    Config
	views  view.Builder
	client *http.Client
	manual chan struct{} // holds a token for each attempt that a user requested
	alerts chan struct{} // holds a token for each alert that is being sent

	// buffers holds memory for reading responses. Most responses are empty, and io.Copy would allocate 32 KiB for each.
	buffers sync.Pool

	ctx     context.Context // of every attempt; cancel interrupts them
	cancel  context.CancelFunc
	open    context.Context    // ends when no further attempt may begin
	close   context.CancelFunc // ends open
	running sync.WaitGroup     // runPolls, runAlerts, and a goroutine for each slot in use

	mu        sync.Mutex           // guards the fields below
	endpoints map[string]*endpoint // by the worker's id; only those with pending deliveries
	working   queue
	failing   queue
}

// New creates a dispatcher. Before Start, only Send and TestAlert send anything.
func New(cfg Config) *Dispatcher {
	cfg.Timeout = cmp.Or(cfg.Timeout, 10*time.Second)
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	cfg.PollAlerts = cmp.Or(cfg.PollAlerts, 500*time.Millisecond)
	d := &Dispatcher{cfg: cfg, views: view.New(cfg.Store, cfg.BaseURL), client: newClient(cfg),
		manual: make(chan struct{}, manualSlots), alerts: make(chan struct{}, alertSlots),
		buffers:   sync.Pool{New: func() any { b := make([]byte, 4<<10); return &b }},
		endpoints: map[string]*endpoint{}, working: queue{slots: workingSlots}, failing: queue{slots: failingSlots}}
	// Attempts that are in progress when maintenance begins are recorded during maintenance.
	d.ctx, d.cancel = context.WithCancel(gate.DuringMaintenance(context.Background()))
	d.open, d.close = context.WithCancel(d.ctx)
	return d
}

// Start begins to send deliveries, beginning with those that an earlier process did not send.
func (d *Dispatcher) Start(ctx context.Context) error {
	d.cfg.Store.Effects.OnDelivery(d.added)
	if err := d.Poll(ctx); err != nil {
		d.Stop(ctx)
		return fmt.Errorf("start deliveries: %w", err)
	}
	d.running.Go(d.runPolls)
	d.running.Go(d.runAlerts)
	return nil
}

// Stop prevents new attempts and waits for the current ones until ctx ends. It then interrupts
// them. The remaining deliveries are sent after the next start.
func (d *Dispatcher) Stop(ctx context.Context) {
	d.mu.Lock()
	d.close() // under the lock, so that no slot is taken after Wait has begun
	d.mu.Unlock()
	done := make(chan struct{})
	go func() { d.running.Wait(); close(done) }() // ends soon after cancel, which interrupts the attempts
	select {
	case <-done:
	case <-ctx.Done():
	}
	d.cancel()
	<-done
	d.client.CloseIdleConnections()
}

// now returns the time of the wall clock, without a monotonic reading. Rows hold the time of the
// wall clock, which can jump.
func (d *Dispatcher) now() time.Time { return d.cfg.Now().Round(0) }

// Poll reads which workers have pending deliveries and when these are due, and schedules them. The
// dispatcher polls regularly, because no event reports that the clock was set or that another node
// has stored a delivery. A delivery that is due after the next poll gets its timer in a later poll.
func (d *Dispatcher) Poll(ctx context.Context) error {
	for after := ""; ; {
		list, err := d.cfg.Store.Effects.WaitingWorkers(ctx, after, pollLimit)
		for _, w := range list {
			d.expect(w.ID, w.Due)
			after = w.ID
		}
		if err != nil || len(list) < pollLimit {
			return err
		}
	}
}

// pollPause returns the pause between two polls.
func (d *Dispatcher) pollPause() time.Duration {
	if d.cfg.Store.Shared() {
		return pollShared
	}
	return pollEvery
}

// runPolls polls until the dispatcher stops.
func (d *Dispatcher) runPolls() {
	tick := time.NewTicker(d.pollPause())
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if !d.cfg.Store.Leads() {
				continue // another node sends the deliveries
			}
			if err := d.Poll(d.open); err != nil && d.open.Err() == nil {
				d.cfg.Log.Error("find due deliveries", "err", err)
			}
		case <-d.open.Done():
			return
		}
	}
}

// Send makes one attempt at a delivery at a user's request, and returns its result. It returns a
// Busy error while too many such attempts are in progress.
func (d *Dispatcher) Send(ctx context.Context, del store.Delivery) (store.Execution, error) {
	select {
	case d.manual <- struct{}{}:
		defer func() { <-d.manual }()
	default: // refuse it: in a queue, the user's request would time out
		return store.Execution{}, db.Errorf(db.Busy,
			"too many manual deliveries are in progress: try again in a moment")
	}
	body, err := d.views.Delivery(ctx, del)
	if err != nil {
		return store.Execution{}, fmt.Errorf("make body: %w", err)
	}
	a := d.send(d.ctx, del, body)
	if d.ctx.Err() != nil {
		return store.Execution{}, errors.New("the service stops")
	}
	d.logAttempt(del, a)
	a.Manual, a.Retry = true, time.Time{}
	// Record the attempt even if the user has disconnected or maintenance has begun.
	return d.cfg.Store.Effects.RecordAttempt(gate.DuringMaintenance(context.WithoutCancel(ctx)), del, a)
}

// logAttempt logs an attempt at a delivery and the time of its retry. It does not log the
// endpoint's response, which users see in the list of executions.
func (d *Dispatcher) logAttempt(del store.Delivery, a store.Attempt) {
	attrs := []any{"delivery", del.ID, "type", del.Type, "worker", del.WorkerID, "attempt", del.Attempts + 1,
		"status", a.ResponseStatus, "took", a.Duration}
	switch {
	case a.Success:
		d.cfg.Log.Debug("delivery sent", attrs...)
	case !a.Retry.IsZero():
		d.cfg.Log.Info("delivery failed, will retry",
			append(attrs, "why", a.ErrorMessage, "next", a.Retry.UTC())...)
	default:
		d.cfg.Log.Warn("delivery failed permanently", append(attrs, "why", a.ErrorMessage)...)
	}
}
