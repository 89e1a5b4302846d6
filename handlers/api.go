// Package handlers is the HTTP API: it decodes, asks the store, wakes the runner
// and answers, in the words of the interface. It decides who is calling, how fast
// they may, and how an error becomes a response: each in one place.
//
// It imports store and runner. It holds no SQL and no rule about workers or
// turns, and it never runs a turn: it commits a row and wakes the runner.
package handlers

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"github.com/julienschmidt/httprouter"

	"journeyman/runner"
	"journeyman/store"
)

// Config is what the API works with. All fields are needed unless a default is
// stated.
type Config struct {
	Store        *store.Store
	Runner       *runner.Runner
	Log          *slog.Logger
	BaseURL      string // without a slash at the end
	MailDomain   string // of worker addresses
	RateLimit    int    // requests a minute for each key; 0: no limit
	Uploads      UploadLimits
	Timing       Timing
	MetricsToken string           // for /metrics; '' opens it to this machine
	MaxStreams   int              // event streams open at once; 10,000 where 0
	Now          func() time.Time // of rate limits and request ids; time.Now where nil

	Webhooks        Webhooks
	ScheduleChanged func()      // tells the scheduler; does nothing where nil
	SchedulerAlive  func() bool // asked for readiness; not part of it where nil
	Inbox           Inbox       // takes mail in; needed by the endpoints for it alone
}

// Timing says how long things may take. Zero fields have the defaults, which are
// right for a service.
type Timing struct {
	SilentFor  time.Duration // before an answer that is waited for begins with a space; 25 s
	SpaceEvery time.Duration // between such spaces; 10 s
	BeatEvery  time.Duration // between the comments of a stream that has nothing to say; 15 s
	CheckEvery time.Duration // between looks whether the reader of a stream may still read it; 5 s
	ReadIn     time.Duration // for a client to send the next piece of a body; 1 minute
	WriteIn    time.Duration // for the reader of a stream to take a piece, or it is cut off; 10 s
}

func (t Timing) withDefaults() Timing {
	return Timing{
		SilentFor:  cmp.Or(t.SilentFor, 25*time.Second),
		SpaceEvery: cmp.Or(t.SpaceEvery, 10*time.Second),
		BeatEvery:  cmp.Or(t.BeatEvery, 15*time.Second),
		CheckEvery: cmp.Or(t.CheckEvery, 5*time.Second),
		ReadIn:     cmp.Or(t.ReadIn, time.Minute),
		WriteIn:    cmp.Or(t.WriteIn, 10*time.Second),
	}
}

// UploadLimits bound what a request may carry. Zero fields have the defaults.
type UploadLimits struct {
	FileSize    int64 // bytes of one file; 25 MiB
	Files       int   // files in one request; 20
	RequestSize int64 // bytes of one multipart request; 100 MiB
}

func (l UploadLimits) withDefaults() UploadLimits {
	if l.FileSize == 0 {
		l.FileSize = runner.MaxFileSize
	}
	if l.Files == 0 {
		l.Files = 20
	}
	if l.RequestSize == 0 {
		l.RequestSize = 100 << 20
	}
	return l
}

// An API serves the interface. It is an http.Handler.
type API struct {
	cfg     Config
	store   *store.Store
	runner  *runner.Runner
	router  *httprouter.Router
	limiter *limiter
	streams *streams
	flights flights
	mcp     http.Handler
	metrics *metrics.Set
}

// New makes the API.
func New(cfg Config) *API {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.ScheduleChanged == nil {
		cfg.ScheduleChanged = func() {}
	}
	cfg.Uploads, cfg.Timing = cfg.Uploads.withDefaults(), cfg.Timing.withDefaults()
	a := &API{cfg: cfg, store: cfg.Store, runner: cfg.Runner, limiter: newLimiter(cfg.RateLimit, cfg.Now), streams: newStreams(cfg.Timing, cmp.Or(cfg.MaxStreams, 10_000))}
	a.metrics = a.newMetrics()
	a.mcp = a.newMCP()
	a.routes()
	return a
}

// ServeHTTP answers a request.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id := store.NewID("req", a.cfg.Now())
	w.Header().Set("X-Request-Id", id)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	if r.ContentLength != 0 {
		// Also of a body that nobody reads: net/http does, before it answers.
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(a.cfg.Timing.ReadIn)) // see patientReader
	}
	a.router.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), requestIDKey{}, id)))
}

type requestIDKey struct{}

// A request is an HTTP request and what is known of it.
type request struct {
	*http.Request
	id     string
	route  string         // the pattern that matched
	who    store.Identity // zero on open endpoints
	params httprouter.Params
	readIn time.Duration // for the next piece of the body
}

// A handle answers a request. One that has begun to write returns nil.
type handle func(w http.ResponseWriter, r *request) error

// on registers a handle that needs a valid API key.
func (a *API) on(method, pattern string, h handle) {
	a.open(method, pattern, func(w http.ResponseWriter, r *request) error {
		var err error
		if r.who, err = a.authenticate(w, r); err != nil {
			return err
		}
		return h(w, r)
	})
}

// onPage is on for what pages need, too: a browser that is signed in may read it.
// It is for GET alone, since any site can have a browser send its cookies.
func (a *API) onPage(pattern string, h handle) {
	a.open(http.MethodGet, pattern, func(w http.ResponseWriter, r *request) error {
		var err error
		if r.who, err = a.signedIn(w, r); err != nil {
			return err
		}
		return h(w, r)
	})
}

// open registers a handle for everybody. What can be got has a HEAD too, for which
// net/http drops the body (RFC 9110, section 9.3.2).
func (a *API) open(method, pattern string, h handle) {
	serve := func(w http.ResponseWriter, r *http.Request, ps httprouter.Params) {
		a.serve(w, &request{Request: r, id: requestID(r), route: pattern, params: ps, readIn: a.cfg.Timing.ReadIn}, h)
	}
	a.router.Handle(method, pattern, serve)
	if method == http.MethodGet {
		a.router.Handle(http.MethodHead, pattern, serve)
	}
}

func requestID(r *http.Request) string {
	id, _ := r.Context().Value(requestIDKey{}).(string)
	return id
}

// serve is the only place where an error becomes a response.
func (a *API) serve(w http.ResponseWriter, r *request, h handle) {
	begun := a.cfg.Now()
	err := a.recovered(w, r, h)
	a.measure(r, err, a.cfg.Now().Sub(begun))
	if err == nil {
		a.cfg.Log.Debug("request", "id", r.id, "method", r.Method, "path", r.URL.Path, "took", a.cfg.Now().Sub(begun))
		return
	}
	if r.Context().Err() != nil && errors.Is(err, r.Context().Err()) {
		return // the client has gone: nobody is there to answer
	}
	p := problemOf(err)
	if p.Status >= 500 {
		a.cfg.Log.ErrorContext(r.Context(), "request failed", "id", r.id, "method", r.Method, "path", r.URL.Path, "err", err)
	}
	p.respond(w, r.id)
}

// recovered runs h; its panic is its own failure only.
func (a *API) recovered(w http.ResponseWriter, r *request, h handle) (err error) {
	defer func() {
		switch p := recover(); p {
		case nil:
		case http.ErrAbortHandler:
			panic(p) // net/http's own way of cutting a response off
		default:
			a.cfg.Log.Error("handler panicked", "id", r.id, "panic", p, "stack", string(debug.Stack()))
			err = errPanic
		}
	}()
	return h(w, r)
}

var errPanic = errors.New("handler panicked")

// respond writes v as the whole JSON response.
func respond(w http.ResponseWriter, status int, v any) error {
	body, err := marshal(v)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body) // the client may have gone
	return nil
}

// marshal leaves < > & readable: these are no pages.
func marshal(v any) ([]byte, error) {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return []byte(b.String()), err
}

// clientAddr is where a request comes from, without the port.
func clientAddr(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}
