package webhook_test

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/runner/dial"
	"journeyman/runner/webhook"
	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/people"
	"journeyman/store/storetest"
	"journeyman/store/workers"
)

// A fixture is a dispatcher with a store, whose turns the test ends by itself.
type fixture struct {
	*store.Store
	t     testing.TB
	clock *clock
	owner people.Identity
	hooks *webhook.Dispatcher
	cfg   webhook.Config
}

// A clock shows the real time plus an offset that the test sets.
type clock struct {
	mu   sync.Mutex
	skew time.Duration
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.skew)
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.skew += d
}

func newFixture(t testing.TB) *fixture {
	t.Helper()
	f := &fixture{t: t, clock: &clock{}}
	f.Store = storetest.Open(t, store.Options{Now: f.clock.now, QueueLimit: 100_000})
	f.owner, _ = storetest.Caller(t, f.Store, "Acme", "ann@acme.test", people.RoleOwner)
	f.cfg = webhook.Config{Store: f.Store, Log: slog.New(slog.NewTextHandler(t.Output(), nil)), UserAgent: "Journeyman/test", Now: f.clock.now,
		PollAlerts: 2 * time.Millisecond, Dialer: dial.Guard{AllowPrivate: true}, RootCAs: x509.NewCertPool(), BaseURL: "http://jm.test"}
	is.New(t).NoErr(f.StartRunner(t.Context(), "r", time.Hour))
	return f
}

// start starts the dispatcher.
func (f *fixture) start() {
	f.t.Helper()
	f.hooks = webhook.New(f.cfg)
	is.New(f.t).NoErr(f.hooks.Start(f.t.Context()))
	f.t.Cleanup(f.stop)
}

// stop stops the dispatcher and interrupts its attempts.
func (f *fixture) stop() {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	f.hooks.Stop(ctx)
}

// worker creates a worker whose webhook is url.
func (f *fixture) worker(url string) workers.Worker {
	f.t.Helper()
	w, _, err := f.Workers.CreateWorker(f.t.Context(), f.owner.Caller, workers.NewWorker{}, db.IdempotencyKey{})
	if err == nil {
		_, err = f.Effects.SetWebhook(f.t.Context(), f.owner.Caller, w.ID, url)
	}
	is.New(f.t).NoErr(err)
	return w
}

// end ends n turns of a worker, with inputs "0", "1", ...
func (f *fixture) end(w workers.Worker, n int) {
	f.t.Helper()
	for i := range n {
		f.finish(store.NewTurn{WorkerID: w.ID, Input: fmt.Sprint(i)}, store.Outcome{Status: store.Completed})
	}
}

// finish creates a turn and ends it.
func (f *fixture) finish(n store.NewTurn, out store.Outcome) (taskID string) {
	f.t.Helper()
	is := is.New(f.t)
	n.Caller, n.Budget = f.owner.Caller, store.BudgetLow
	_, err := f.CreateTurn(f.t.Context(), n)
	is.NoErr(err)
	claims, err := f.ClaimTurns(f.t.Context(), "r", 1, 1)
	is.NoErr(err)
	is.Equal(len(claims), 1)
	_, err = f.FinishTurn(f.t.Context(), claims[0], nil, out)
	is.NoErr(err)
	return claims[0].TaskID
}

// executions waits for n executions of a worker and returns them, oldest first.
func (f *fixture) executions(w workers.Worker, n int) (list []store.Execution) {
	f.t.Helper()
	storetest.Eventually(f.t, fmt.Sprintf("%d executions", n), func() bool {
		list = f.page(w)
		return len(list) >= n
	})
	if len(list) != n {
		f.t.Fatalf("%d executions, want %d: %+v", len(list), n, list)
	}
	return list
}

// page returns the newest executions of a worker, oldest first.
func (f *fixture) page(w workers.Worker) []store.Execution {
	f.t.Helper()
	page, _, err := f.Effects.Executions(f.t.Context(), f.owner.Caller, w.ID, 1)
	is.New(f.t).NoErr(err)
	slices.Reverse(page)
	return page
}

// idle waits until no delivery of a worker is due.
func (f *fixture) idle(w workers.Worker) {
	f.t.Helper()
	storetest.Eventually(f.t, "nothing to be due", func() bool {
		at, ok, err := f.Effects.WorkerDelivery(f.t.Context(), w.ID)
		return err == nil && (!ok || at.After(f.clock.now()))
	})
}

// A receiver is an endpoint that records its requests.
type receiver struct {
	*httptest.Server
	mu  sync.Mutex
	got []received
}

type received struct {
	header http.Header
	body   []byte
	at     time.Time
	input  string
	from   string // the client's address of the connection
}

// receive serves handle over TLS. If handle is nil, it serves plain HTTP and answers 200.
func (f *fixture) receive(handle http.HandlerFunc) *receiver {
	f.t.Helper()
	r := &receiver{}
	r.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return
		}
		var v struct{ Turn struct{ Input string } }
		_ = json.Unmarshal(body, &v)
		r.mu.Lock()
		r.got = append(r.got, received{req.Header.Clone(), body, time.Now(), v.Turn.Input, req.RemoteAddr})
		r.mu.Unlock()
		if handle != nil {
			handle(w, req)
		}
	}))
	r.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	if handle == nil {
		r.Start()
	} else {
		r.StartTLS()
		f.cfg.RootCAs.AddCert(r.Certificate())
	}
	f.t.Cleanup(func() {
		r.CloseClientConnections()
		r.Close()
	})
	return r
}

// delivering returns a fixture with a worker whose webhook is a receiver over TLS.
func delivering(t testing.TB, handle http.HandlerFunc) (*fixture, *receiver, workers.Worker) {
	t.Helper()
	f := newFixture(t)
	r := f.receive(handle)
	return f, r, f.worker(r.URL)
}

func (r *receiver) all() []received {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.got)
}

// answering returns a handler that always answers with the same status.
func answering(status int, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i+1 < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(status)
	}
}

// hanging answers only after the client has given up.
func hanging(_ http.ResponseWriter, req *http.Request) { <-req.Context().Done() }

// resetting closes the connection without an answer.
func resetting(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

// endless sends bytes without end.
func endless(w http.ResponseWriter, req *http.Request) {
	chunk := make([]byte, 32<<10)
	for req.Context().Err() == nil {
		if _, err := w.Write(chunk); err != nil {
			return
		}
	}
}

// trickling sends one byte at a time, slowly and without end.
func trickling(w http.ResponseWriter, req *http.Request) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		_, err := w.Write([]byte("."))
		if f, ok := w.(http.Flusher); ok {
			f.Flush()
		}
		select {
		case <-tick.C:
		case <-req.Context().Done():
			return
		}
		if err != nil {
			return
		}
	}
}
