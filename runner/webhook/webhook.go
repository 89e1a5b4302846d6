// Package webhook delivers what the store has promised to tell. Each worker's
// endpoint has a lane: its deliveries go out one after the other, in the order in
// which they were promised, and a failed one steps aside until it is tried again.
// Lanes do not wait for one another, and those whose endpoint fails share places
// of their own, so that dead endpoints cannot take all of them.
//
// It imports store and sandbox. What is to be delivered is in the database alone:
// a crash loses nothing, and may at worst repeat an attempt that nobody noted. It
// does not know what a body says: its owner makes that.
package webhook

import (
	"container/heap"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"journeyman/runner/sandbox"
	"journeyman/store"
)

// Config is what a Dispatcher works with. All fields but those with a stated
// default are needed.
type Config struct {
	Store     *store.Store
	Log       *slog.Logger
	Body      func(context.Context, store.Delivery) ([]byte, error) // JSON to send
	UserAgent string
	Dialer    sandbox.Dialer   // public addresses alone where zero
	RootCAs   *x509.CertPool   // whose certificates are trusted; the system's where nil
	Timeout   time.Duration    // of one attempt; 10 s where 0
	Now       func() time.Time // the clock of the store; time.Now where nil
}

const (
	places        = 128 // attempts at once at endpoints that work
	failingPlaces = 32  // and at those whose last attempt failed
	manualPlaces  = 16  // and those that someone asked for
	laneBatch     = 32  // deliveries of one lane before it lets others have its place
	lookAgain     = 30 * time.Second
)

// A Dispatcher makes deliveries. Its methods are safe for concurrent use.
type Dispatcher struct {
	cfg    Config
	client *http.Client
	wake   chan struct{} // of size 1: waking twice is waking once
	manual chan struct{} // holds a token for each attempt that someone asked for

	ctx    context.Context // of everything; its end cuts attempts off
	cancel context.CancelFunc
	begins context.Context // ends when no more attempts may begin
	close  context.CancelFunc
	loop   sync.WaitGroup
	runs   sync.WaitGroup

	mu      sync.Mutex
	lanes   map[string]*lane // by worker: those with deliveries to make
	waiting schedule         // lanes whose time has not come
	ready   [2][]*lane       // lanes that want a place, first come first served; [1]: failing ones
	taken   [2]int           // places
}

// New makes a dispatcher. It does nothing before Start, besides Send.
func New(cfg Config) *Dispatcher {
	if cfg.Timeout == 0 {
		cfg.Timeout = 10 * time.Second
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	d := &Dispatcher{cfg: cfg, client: newClient(cfg), wake: make(chan struct{}, 1), manual: make(chan struct{}, manualPlaces), lanes: map[string]*lane{}}
	d.ctx, d.cancel = context.WithCancel(context.Background())
	d.begins, d.close = context.WithCancel(d.ctx)
	return d
}

// Start begins to make deliveries: first those that an earlier process has left.
func (d *Dispatcher) Start(ctx context.Context) error {
	d.cfg.Store.OnDelivery(d.added)
	if err := d.Look(ctx); err != nil {
		return fmt.Errorf("start deliveries: %w", err)
	}
	d.loop.Go(d.dispatch)
	return nil
}

// Stop ends the dispatcher in good order: no attempt begins, and those under way
// may end until ctx does. The rest is made after the next start.
func (d *Dispatcher) Stop(ctx context.Context) {
	d.close()
	d.loop.Wait()
	done := make(chan struct{})
	go func() { d.runs.Wait(); close(done) }() // ends: attempts do soon after cancel
	select {
	case <-done:
	case <-ctx.Done():
	}
	d.cancel()
	<-done
	d.client.CloseIdleConnections()
}

// A lane is a worker's endpoint while there are deliveries to it.
type lane struct {
	workerID string
	at       time.Time // when its next delivery is due
	index    int       // among those that wait; -1 elsewhere
	again    bool      // a delivery was added since it began to run
	failing  bool      // its last attempt failed
}

// added is told of every new delivery, by the goroutine that commits.
func (d *Dispatcher) added(workerID string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.expect(workerID, d.now())
}

// expect has the lane of a worker run at t, or before if it would. d.mu is held.
func (d *Dispatcher) expect(workerID string, t time.Time) {
	l := d.lanes[workerID]
	switch {
	case l == nil:
		l = &lane{workerID: workerID, at: t}
		d.lanes[workerID] = l
		heap.Push(&d.waiting, l)
	case l.index < 0: // it runs or is about to
		l.again = true
		return
	case t.Before(l.at):
		l.at = t
		heap.Fix(&d.waiting, l.index)
	}
	if d.waiting[0] == l {
		d.signal()
	}
}

func (d *Dispatcher) signal() {
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// now is the wall clock's time, as the rows have it.
func (d *Dispatcher) now() time.Time { return d.cfg.Now().Round(0) }

// Look reads from the database which workers have deliveries to make, and when. It
// happens by itself twice a minute: nobody tells when a clock is set.
func (d *Dispatcher) Look(ctx context.Context) error {
	for after := ""; ; {
		workerID, at, ok, err := d.cfg.Store.NextDelivery(ctx, after)
		if err != nil || !ok {
			return err
		}
		after = workerID
		d.mu.Lock()
		d.expect(workerID, at)
		d.mu.Unlock()
	}
}

// dispatch starts lanes as their times come and places are free.
func (d *Dispatcher) dispatch() {
	relook := time.NewTicker(lookAgain)
	defer relook.Stop()
	for {
		timer := time.NewTimer(d.begin())
		select {
		case <-timer.C:
		case <-d.wake:
		case <-relook.C: // what nobody told of, and clocks that jump
			if err := d.Look(d.begins); err != nil && d.begins.Err() == nil {
				d.cfg.Log.Error("look for deliveries", "err", err)
			}
		case <-d.begins.Done():
			timer.Stop()
			return
		}
		timer.Stop()
	}
}

// begin starts what can start, and says how long nothing else can.
func (d *Dispatcher) begin() time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.now()
	for len(d.waiting) > 0 && !d.waiting[0].at.After(now) {
		l := heap.Pop(&d.waiting).(*lane)
		class := l.class()
		d.ready[class] = append(d.ready[class], l)
	}
	for class, limit := range [2]int{places, failingPlaces} {
		for d.taken[class] < limit && len(d.ready[class]) > 0 && d.begins.Err() == nil {
			l := d.ready[class][0]
			d.ready[class] = d.ready[class][1:]
			d.taken[class]++
			l.again = false
			d.runs.Go(func() { d.run(l, class) })
		}
	}
	if len(d.waiting) == 0 {
		return lookAgain
	}
	return min(max(d.waiting[0].at.Sub(now), time.Millisecond), lookAgain)
}

func (l *lane) class() int {
	if l.failing {
		return 1
	}
	return 0
}

// run makes some deliveries of a lane and says when it is to run again.
func (d *Dispatcher) run(l *lane, class int) {
	failing, err := d.deliver(l)
	var at time.Time
	var more bool
	if err == nil {
		at, more, err = d.cfg.Store.WorkerDelivery(d.ctx, l.workerID)
	}
	if err != nil {
		if d.ctx.Err() == nil {
			d.cfg.Log.Error("deliver", "worker", l.workerID, "err", err)
		}
		at, more = d.now().Add(lookAgain), true
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.taken[class]--
	l.failing = failing
	if l.again && err == nil {
		at, more = d.now(), true
	}
	if more {
		l.at = at
		heap.Push(&d.waiting, l)
	} else {
		delete(d.lanes, l.workerID)
	}
	d.signal()
}

var errBusy = &store.Error{Kind: store.Busy, Message: "too many deliveries are being sent by hand"}

// Send makes one attempt at a delivery now, because someone asked for it, and gives
// the row that says how it went. It is a Busy error where too many are under way.
func (d *Dispatcher) Send(ctx context.Context, del store.Delivery) (store.Execution, error) {
	select {
	case d.manual <- struct{}{}:
		defer func() { <-d.manual }()
	default:
		return store.Execution{}, errBusy
	}
	body, err := d.cfg.Body(ctx, del)
	if err != nil {
		return store.Execution{}, fmt.Errorf("make body: %w", err)
	}
	a := d.attempt(d.ctx, del, body)
	if d.ctx.Err() != nil {
		return store.Execution{}, errors.New("the service stops")
	}
	a.Manual, a.Retry = true, time.Time{}
	return d.cfg.Store.RecordAttempt(context.WithoutCancel(ctx), del, a)
}

// A schedule is lanes in the order of their times, as container/heap wants it.
type schedule []*lane

func (s schedule) Len() int           { return len(s) }
func (s schedule) Less(i, j int) bool { return s[i].at.Before(s[j].at) }
func (s schedule) Swap(i, j int)      { s[i], s[j] = s[j], s[i]; s[i].index, s[j].index = i, j }

// Push is heap.Push's.
func (s *schedule) Push(l any) {
	l.(*lane).index = len(*s)
	*s = append(*s, l.(*lane))
}

// Pop is heap.Pop's.
func (s *schedule) Pop() any {
	last := len(*s) - 1
	l := (*s)[last]
	(*s)[last], l.index = nil, -1
	*s = (*s)[:last]
	return l
}
