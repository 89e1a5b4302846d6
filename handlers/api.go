// Package handlers is the HTTP API. A handler decodes a request, calls the store or the runner, and
// writes the response that openapi.yaml describes. The package identifies callers, limits request
// rates, and maps errors to responses, each in one place.
//
// It imports events, metrics, serve, store and its rooms, runner, sandbox, share, view and trace. It holds no SQL and
// no rule about workers or turns, and it never runs a turn: Runner.Accept takes instructions.
package handlers

import (
	"cmp"
	"log/slog"
	"net/http"
	"net/url"
	"runtime/debug"
	"slices"
	"strconv"
	"time"

	"github.com/julienschmidt/httprouter"

	"journeyman/handlers/events"
	"journeyman/handlers/metrics"
	"journeyman/runner"
	"journeyman/runner/share"
	"journeyman/runner/view"
	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/people"
)

// An API is the http.Handler of the JSON API.
type API struct {
	cfg           Config // with its defaults
	base          string // path of the base URL, without a slash at the end
	store         *store.Store
	runner        *runner.Runner
	views         view.Builder // the JSON of tasks, turns and workers
	router        *httprouter.Router
	auth          auth
	oauthRequests *limiter // limits the requests to the OAuth endpoints of each client network
	registrations *limiter // limits the registrations of OAuth clients from each client network
	streams       *events.Server
	shares        shares
	meter         *metrics.Meter
}

// ServeHTTP answers a request.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Request-Id", db.NewID("req", a.cfg.Now()))
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	if r.ContentLength != 0 {
		// A body that no handler reads has a deadline too: net/http reads it before it answers.
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(a.cfg.Timing.ReadIn)) // see patientReader
	}
	if a.cfg.Trace != nil {
		r = r.WithContext(a.cfg.Trace.Extract(r.Context(), r.Header))
	}
	Logged(a.cfg.Log, a.cfg.Now, w, r, a.router.ServeHTTP)
}

// A request is an HTTP request with its route and its caller.
type request struct {
	*http.Request
	id     string
	route  string          // the pattern that matched
	who    people.Identity // zero on open endpoints
	params httprouter.Params
	query  url.Values    // nil on open endpoints
	sdk    view.SDK      // 0 on endpoints that are not in sdkRoutes
	readIn time.Duration // for the next piece of the body
	bodies *share.Shares // for a large body, while it is in memory
}

// param returns the value of a named parameter of the route.
func (r *request) param(name string) string { return r.params.ByName(name) }

// A handle answers a request. It returns nil once it has begun to write the response.
type handle func(w http.ResponseWriter, r *request) error

// on registers a handle that needs a valid API key.
func (a *API) on(method, pattern string, h handle) { a.onWith(a.auth.key, method, pattern, h) }

// onWith registers a handle. key identifies the caller, whom the handle needs.
func (a *API) onWith(key func(http.ResponseWriter, *http.Request) (people.Identity, error),
	method, pattern string, h handle) {
	takesSDK := slices.Contains(sdkRoutes, method+" "+pattern)
	a.open(method, pattern, func(w http.ResponseWriter, r *request) error {
		var err error
		if r.who, err = key(w, r.Request); err != nil {
			return err
		}
		if err := a.refuseInMaintenance(method, pattern); err != nil {
			return err
		}
		return a.shared(w, r, takesSDK, h)
	})
}

// refuseInMaintenance returns an error for a request that may write during maintenance. It runs
// before the body is read. Requests to /mcp pass, because some only read: the store refuses the
// others.
func (a *API) refuseInMaintenance(method, pattern string) error {
	if method == http.MethodGet || pattern == "/mcp" {
		return nil
	}
	return a.store.Gate.Maintenance()
}

// onPage registers a GET handle that needs a valid API key or a browser session. Other methods
// accept no session, because any site can make a browser send its cookies.
func (a *API) onPage(pattern string, h handle) {
	a.onWith(a.orSignIn, http.MethodGet, pattern, h)
}

// shared reads the query and runs h. takesSDK means that h uses the version of the AI SDK. shared
// counts h among the concurrent requests of its caller, which are limited: each holds a connection,
// some for hours.
func (a *API) shared(w http.ResponseWriter, r *request, takesSDK bool, h handle) error {
	release, err := a.shares.requests.Take(holderOf(r.who))
	if err != nil {
		return err
	}
	defer release()
	// net/http would drop the malformed part of a query, and a list would lack a filter.
	if r.query, err = url.ParseQuery(r.URL.RawQuery); err != nil {
		return db.Errorf(db.Invalid, "the query is malformed: %s", err)
	}
	if takesSDK {
		if r.sdk, err = sdkOf(r); err != nil {
			return err
		}
	}
	return h(w, r)
}

// open registers a handle for everybody. Each GET has a HEAD too, for which net/http drops
// the body (RFC 9110, section 9.3.2).
func (a *API) open(method, pattern string, h handle) {
	serve := func(w http.ResponseWriter, r *http.Request, ps httprouter.Params) {
		a.serve(w, &request{Request: r, id: requestID(r), route: pattern, params: ps,
			readIn: a.cfg.Timing.ReadIn, bodies: a.shares.uploads}, h)
	}
	a.router.Handle(method, pattern, serve)
	if method == http.MethodGet {
		a.router.Handle(http.MethodHead, pattern, serve)
	}
}

// serve is the only place where an error becomes a response.
func (a *API) serve(w http.ResponseWriter, r *request, h handle) {
	begun := a.cfg.Now()
	var err error
	// Deferred, so that the requests of disconnected clients and aborted answers count, too.
	defer func() {
		if rec := recordOf(r.Request); rec != nil && err == nil {
			err = rec.err // of an aborted stream
		}
		a.meter.Observe(methodLabel(r.Method), r.route, statusLabel(err), a.cfg.Now().Sub(begun))
		Describe(r.Context(), r.route, r.who, r.params.ByName)
	}()
	err = Recovered(a.cfg.Log, "handler", r.id, func() error { return h(w, r) }, "route", r.route)
	if err == nil {
		return
	}
	if Left(r.Context(), err) {
		return
	}
	DescribeRefusal(r.Context(), err)
	ProblemOf(err).respond(w, r.id)
}

// statusLabel returns the result of a handler for labels of metrics.
func statusLabel(err error) string {
	if err == nil {
		return "ok"
	}
	return strconv.Itoa(ProblemOf(err).Status)
}

// Recovered runs a handler of a request and turns its panic into an error, so that it ends one
// request only. The log gets the panic with further attributes. what names the kind of handler.
func Recovered(log *slog.Logger, what, requestID string, handler func() error, attributes ...any) (err error) {
	defer func() {
		switch p := recover(); p {
		case nil:
		case http.ErrAbortHandler:
			panic(p) // net/http then closes the connection
		default:
			log.Error(what+" panicked", append(attributes, "request", requestID, "panic", p,
				"stack", string(debug.Stack()))...)
			err = errPanic
		}
	}()
	return handler()
}

// holderOf returns the holder of an identity. A user who is signed in counts as one holder, with
// any number of browsers.
func holderOf(who people.Identity) share.Holder {
	return share.Holder{Key: cmp.Or(who.KeyID, who.UserID), Address: who.RemoteAddr, Organization: who.OrganizationID}
}
