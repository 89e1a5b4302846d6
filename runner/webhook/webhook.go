// Package webhook sends the pending deliveries in the store. The deliveries of one worker go to its
// endpoint one after the other, in the order in which their turns ended. A delivery that fails
// waits for its retry and does not hold up the others. Endpoints do not wait for one another.
// Endpoints whose last attempt failed share separate slots, so that dead endpoints cannot occupy
// all slots.
//
// It also sends the alert messages of organizations to their webhook channels.
//
// It may import store, view, trace and sandbox. The due deliveries exist only in the database. A
// crash therefore loses no delivery; at worst the few attempts that were not recorded are repeated.
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

	"journeyman/runner/sandbox"
	"journeyman/runner/trace"
	"journeyman/runner/view"
	"journeyman/store"
)

// Config holds the dependencies and settings of a Dispatcher. Every field without a stated
// default is required.
type Config struct {
	Store     *store.Store
	Log       *slog.Logger
	BaseURL   string // prefix of the URLs in bodies, without a trailing slash
	UserAgent string
	Dialer    sandbox.Dialer   // the zero value reaches public addresses only
	RootCAs   *x509.CertPool   // trusted certificate authorities; nil: the system's
	Timeout   time.Duration    // of one attempt; 0: 10 s
	Now       func() time.Time // the clock of the store; nil: time.Now

	Trace *trace.Tracer // nil: no tracing

	PollAlerts time.Duration // pause between two polls; 0: 500 ms
}

const (
	workingSlots = 128              // concurrent attempts at working endpoints
	failingSlots = 32               // concurrent attempts at endpoints whose last attempt failed
	manualSlots  = 16               // concurrent attempts that users requested
	roomPause    = 5 * time.Second  // pause between two checks of a full disk
	pollEvery    = 30 * time.Second // how often Poll runs by itself
	pollShared   = time.Second      // the same where other nodes store deliveries
	pollLimit    = 1000             // workers that Poll reads with one query
)

// A Dispatcher sends deliveries. Its methods are safe for concurrent use.
type Dispatcher struct {
	cfg    Config
	views  view.Builder
	client *http.Client
	manual chan struct{} // holds a token for each attempt that a user requested
	alerts chan struct{} // holds a token for each alert that is being sent

	// buffers read responses. Most responses are empty, and io.Copy would allocate 32 KiB for each.
	buffers sync.Pool

	ctx     context.Context // of every attempt; cancel interrupts them
	cancel  context.CancelFunc
	open    context.Context // done when no further attempt may begin
	close   context.CancelFunc
	running sync.WaitGroup // the goroutine that looks, and one for each taken slot

	mu        sync.Mutex           // guards the fields below
	endpoints map[string]*endpoint // by worker: those that have deliveries to make
	working   queue
	failing   queue
}

// New creates a dispatcher. Before Start, it sends nothing except by Send.
func New(cfg Config) *Dispatcher {
	if cfg.Timeout == 0 {
		cfg.Timeout = 10 * time.Second
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	cfg.PollAlerts = cmp.Or(cfg.PollAlerts, 500*time.Millisecond)
	d := &Dispatcher{cfg: cfg, views: view.New(cfg.Store, cfg.BaseURL), client: newClient(cfg),
		manual: make(chan struct{}, manualSlots), alerts: make(chan struct{}, alertSlots),
		buffers:   sync.Pool{New: func() any { b := make([]byte, 4<<10); return &b }},
		endpoints: map[string]*endpoint{}, working: queue{slots: workingSlots}, failing: queue{slots: failingSlots}}
	// Attempts that are in progress when maintenance begins are recorded during maintenance.
	d.ctx, d.cancel = context.WithCancel(store.DuringMaintenance(context.Background()))
	d.open, d.close = context.WithCancel(d.ctx)
	return d
}

// Start begins to send deliveries, beginning with those that an earlier process did not send.
func (d *Dispatcher) Start(ctx context.Context) error {
	d.cfg.Store.OnDelivery(d.added)
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
	d.close() // under the lock: no slot can be taken afterwards, so Wait misses none
	d.mu.Unlock()
	done := make(chan struct{})
	go func() { d.running.Wait(); close(done) }() // ends soon after cancel, as the attempts do
	select {
	case <-done:
	case <-ctx.Done():
	}
	d.cancel()
	<-done
	d.client.CloseIdleConnections()
}

// now returns the time of the wall clock, without the monotonic clock: rows hold the
// wall clock's time, and it can jump.
func (d *Dispatcher) now() time.Time { return d.cfg.Now().Round(0) }

// Poll reads from the database which workers have pending deliveries, and when they are due. It
// also runs at the interval of pollPause: no event reports that a clock was set, or what another node
// has stored. A delivery that is due later than the next Poll has no timer.
func (d *Dispatcher) Poll(ctx context.Context) error {
	for after := ""; ; {
		list, err := d.cfg.Store.WaitingWorkers(ctx, after, pollLimit)
		for _, w := range list {
			d.expect(w.ID, w.Due)
			after = w.ID
		}
		if err != nil || len(list) < pollLimit {
			return err
		}
	}
}

// pollPause returns the pause between two runs of Poll.
func (d *Dispatcher) pollPause() time.Duration {
	if d.cfg.Store.Shared() {
		return pollShared
	}
	return pollEvery
}

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

// Send makes one attempt at a delivery at a user's request, and returns the row with its result. It
// returns a Busy error while too many such attempts are in progress.
func (d *Dispatcher) Send(ctx context.Context, del store.Delivery) (store.Execution, error) {
	select {
	case d.manual <- struct{}{}:
		defer func() { <-d.manual }()
	default: // refused, not queued: the user's request would only time out
		return store.Execution{}, store.Errorf(store.Busy, "too many deliveries are being sent by hand")
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
	return d.cfg.Store.RecordAttempt(store.DuringMaintenance(context.WithoutCancel(ctx)), del, a)
}

// logAttempt logs an attempt at a delivery and the time of its retry. It does not log the
// endpoint's response, which the list of executions holds.
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
