// Package dashboard is the web pages: people sign in, look at what ran and what
// it cost, and change what their role permits. Pages are made on the server from
// the embedded templates, read well without JavaScript, and load nothing from
// anywhere else.
//
// It imports handlers, store and runner. It serves no JSON and holds no SQL and
// no rule about who may do what: the store answers that for every caller. A page
// never writes user-made text but through html/template, or as Markdown that has
// been sanitised.
package dashboard

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"html/template"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"runtime/debug"
	"strings"
	"time"

	"github.com/julienschmidt/httprouter"

	"journeyman/handlers"
	"journeyman/runner"
	"journeyman/store"
)

//go:embed templates assets
var embedded embed.FS

// Config is what the pages work with. All fields are needed unless a default is
// stated.
type Config struct {
	Store      *store.Store
	Runner     *runner.Runner
	API        *handlers.API
	Log        *slog.Logger
	BaseURL    string // without a slash at the end
	MailDomain string // of worker addresses
	Version    string
	Model      string           // of workers that name none
	MCPServers []string         // names of those whose tools workers may have
	Now        func() time.Time // time.Now where nil
	FormTime   time.Duration    // for a form without files to arrive in; a minute where 0

	Inbox    handlers.Inbox                                       // takes held mail in
	ReadMail func(raw []byte) (text string, attachments []string) // what a person would read in a mail
	MailAddr string                                               // where mail is taken in over SMTP, '' for nowhere
	System   System
}

// A Dashboard serves the pages. It is an http.Handler.
type Dashboard struct {
	cfg       Config
	store     *store.Store
	router    *httprouter.Router
	origins   *http.CrossOriginProtection
	templates map[string]*template.Template // by file name, each with the layout
	assets    assets
	throttle  *throttle
	secure    bool // cookies go over https alone
}

// New makes the pages. An error is a template or an address that cannot be read.
func New(cfg Config) (*Dashboard, error) {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	cfg.FormTime = cmp.Or(cfg.FormTime, time.Minute)
	d := &Dashboard{cfg: cfg, store: cfg.Store, router: httprouter.New(), origins: http.NewCrossOriginProtection(),
		throttle: newThrottle(cfg.Now),
		secure:   strings.HasPrefix(cfg.BaseURL, "https://")}
	// A proxy may ask us under another name than the browser knows.
	base, err := url.Parse(cfg.BaseURL)
	if err != nil {
		return nil, err
	}
	if err := d.origins.AddTrustedOrigin(base.Scheme + "://" + base.Host); err != nil {
		return nil, err
	}
	if d.assets, err = loadAssets(); err != nil {
		return nil, err
	}
	if d.templates, err = d.parseTemplates(); err != nil {
		return nil, err
	}
	d.routes()
	return d, nil
}

// policy is what a page may load: our own files, and pictures of workers. No script
// or style stands in a page, so none that somebody smuggles in runs.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"frame-src 'self'; object-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"

// ServeHTTP answers a request.
func (d *Dashboard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("X-Request-Id", store.NewID("req", d.cfg.Now()))
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Frame-Options", "DENY")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	if r.ContentLength != 0 {
		// A browser that stands still must not hold the connection, nor one whose form
		// nobody reads: net/http does, before it answers. It lifts the deadline itself
		// at the end of the body.
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(d.cfg.FormTime))
	}
	d.router.ServeHTTP(w, r)
}

// A request is an HTTP request and who makes it.
type request struct {
	*http.Request
	who       store.Identity // zero where nobody is signed in
	sessionID string
	params    httprouter.Params
}

// A handle answers a request. One that has begun to write returns nil.
type handle func(w http.ResponseWriter, r *request) error

// on registers a page for who is signed in. Others go to the sign-in page and come
// back from it.
func (d *Dashboard) on(method, pattern string, h handle) {
	d.open(method, pattern, func(w http.ResponseWriter, r *request) error {
		if r.who.UserID == "" {
			return d.toSignIn(w, r)
		}
		return h(w, r)
	})
}

// may is on for those whose role has the right.
func (d *Dashboard) may(right store.Right, method, pattern string, h handle) {
	d.on(method, pattern, func(w http.ResponseWriter, r *request) error {
		if err := r.who.Allow(right); err != nil {
			return err
		}
		return h(w, r)
	})
}

// open registers a page for everybody.
func (d *Dashboard) open(method, pattern string, h handle) {
	serve := func(w http.ResponseWriter, req *http.Request, ps httprouter.Params) {
		r := &request{Request: req, params: ps}
		err := d.identify(r)
		if err == nil {
			err = d.recovered(w, r, h)
		}
		if err != nil {
			d.refuse(w, r, err)
		}
	}
	d.router.Handle(method, pattern, serve)
	if method == http.MethodGet {
		d.router.Handle(http.MethodHead, pattern, serve)
	}
}

// identify finds whose browser it is, and refuses what another site has it send.
func (d *Dashboard) identify(r *request) error {
	if err := d.origins.Check(r.Request); err != nil {
		return store.Errorf(store.Forbidden, "the request was sent by another site: open the page here and try again")
	}
	cookie, err := r.Cookie(handlers.SessionCookie)
	if err != nil {
		return nil //nolint:nilerr // nobody is signed in
	}
	who, sessionID, err := d.store.SessionIdentity(r.Context(), cookie.Value)
	if store.IsKind(err, store.Unauthorized) {
		return nil
	}
	who.RemoteAddr = remoteAddr(r.Request)
	r.who, r.sessionID = who, sessionID
	return err
}

// remoteAddr is where a request comes from, without the port.
func remoteAddr(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}

// recovered runs h; its panic is its own failure only.
func (d *Dashboard) recovered(w http.ResponseWriter, r *request, h handle) (err error) {
	defer func() {
		switch p := recover(); p {
		case nil:
		case http.ErrAbortHandler:
			panic(p) // net/http's own way of cutting a response off
		default:
			d.cfg.Log.Error("page panicked", "path", r.URL.Path, "panic", p, "stack", string(debug.Stack()))
			err = errors.New("page panicked")
		}
	}()
	return h(w, r)
}

// refuse is the only place where an error becomes a page.
func (d *Dashboard) refuse(w http.ResponseWriter, r *request, err error) {
	if r.Context().Err() != nil && errors.Is(err, context.Canceled) {
		return // the browser has gone
	}
	p := failure{Status: http.StatusInternalServerError, Message: "Something went wrong here. The log says more under this request's id.",
		RequestID: w.Header().Get("X-Request-Id")}
	var e *store.Error
	if errors.As(err, &e) {
		p.Status, p.Message, p.Details = handlers.StatusOf(e), sentence(e.Message), e.Details
	} else {
		d.cfg.Log.ErrorContext(r.Context(), "page failed", "id", p.RequestID, "method", r.Method, "path", r.URL.Path, "err", err)
	}
	if err := d.render(w, r, p.Status, "error.html", http.StatusText(p.Status), p); err != nil {
		d.cfg.Log.Error("error page", "err", err)
		http.Error(w, p.Message, p.Status)
	}
}

// A failure is what the error page shows.
type failure struct {
	Status    int
	Message   string
	Details   []store.Detail
	RequestID string
}

// sentence makes a message of the store one for a page.
func sentence(text string) string {
	if text == "" {
		return ""
	}
	text = strings.ToUpper(text[:1]) + text[1:]
	if !strings.HasSuffix(text, ".") {
		text += "."
	}
	return text
}
