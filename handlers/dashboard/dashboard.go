// Package dashboard serves the web pages. Users sign in, see tasks and their costs, and change what
// their role permits. The server creates the pages from embedded templates. They work without
// JavaScript and load nothing from other sites.
//
// It imports handlers, store, runner and rooms below runner. It serves no JSON and holds no
// SQL. It holds no rule about rights either: the store decides what each caller may do. A page
// writes the text of users through html/template only, or as sanitised Markdown.
//
// Each group of pages has a file: its routes, the data of its templates, then its handlers. A
// template of the same name is in templates/.
package dashboard

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"html/template"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/julienschmidt/httprouter"

	"journeyman/handlers"
	"journeyman/handlers/dashboard/show"
	"journeyman/handlers/dashboard/text"
	"journeyman/handlers/serve"
	"journeyman/runner"
	"journeyman/runner/backup"
	"journeyman/runner/sandbox"
	"journeyman/runner/tool/mcp"
	"journeyman/store"
)

//go:embed templates assets starters
var embedded embed.FS

// Config holds the dependencies and settings of the pages. Every field without a stated default
// must be set.
type Config struct {
	Store      *store.Store
	Runner     *runner.Runner
	API        *handlers.API
	Log        *slog.Logger
	BaseURL    string // ends without a slash
	MailDomain string // of the workers' mail addresses
	Version    string
	Servers    *mcp.Pool        // the MCP servers that workers may use
	Now        func() time.Time // time.Now if nil
	FormTime   time.Duration    // in which a form without files must arrive; a minute if 0

	Webhooks        handlers.Webhooks
	Alerts          Alerts
	Backups         *backup.Keeper // nil: the server makes none
	ScheduleChanged func()         // is called after a schedule changed

	Inbox    handlers.Inbox // accepts held mail
	MailAddr string         // address of the SMTP listener; "" without one

	// ReadMail returns the readable text of a mail and the names of its attachments.
	ReadMail func(ctx context.Context, raw []byte) (text string, attachments []string)
	System   func() System // the first call may take long

	// Examine checks the server and its machine. If it is nil, the pages offer no checks.
	Examine func(ctx context.Context) []handlers.Checks

	// ReadDocument returns the text of a PDF or office document. known is false for another media
	// type. If it is nil, the pages show no text of documents.
	ReadDocument func(ctx context.Context, mediaType string, document []byte) (text string, known bool, err error)
}

// A Dashboard serves the pages. It is an http.Handler.
type Dashboard struct {
	cfg       Config
	store     *store.Store
	router    *httprouter.Router
	origins   *http.CrossOriginProtection
	languages []*text.Language
	templates map[string]func() (*template.Template, error) // by code of the language
	assets    assets
	icons     map[string]bool // the names of the sprite's symbols
	throttle  *throttle
	doctor    *doctor
	once      *oneTime
	archives  chan struct{} // holds a token for each archive that is being sent
	documents *sandbox.Lane // a unit for each document that a preview reads
	host      string        // of the base URL
	basePath  string        // path of the base URL, without a slash at the end
	secure    bool          // browsers send cookies over https only
}

// New returns the pages. It returns an error if cfg.BaseURL or a catalogue of texts cannot be parsed.
func New(cfg Config) (*Dashboard, error) {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	cfg.FormTime = cmp.Or(cfg.FormTime, time.Minute)
	d := &Dashboard{cfg: cfg, store: cfg.Store, router: httprouter.New(), origins: http.NewCrossOriginProtection(),
		throttle: newThrottle(cfg.Now, cfg.API.Nodes), doctor: &doctor{examine: cfg.Examine, now: cfg.Now, log: cfg.Log},
		once: &oneTime{now: cfg.Now}, archives: make(chan struct{}, maxArchives),
		documents: sandbox.NewLane(maxDocuments),
		secure:    strings.HasPrefix(cfg.BaseURL, "https://")}
	// A proxy may send another host name than the browser does: forms from the base URL
	// are always accepted.
	base, err := url.Parse(cfg.BaseURL)
	if err != nil {
		return nil, err
	}
	d.host, d.basePath = base.Host, handlers.BasePath(cfg.BaseURL)
	if err := d.origins.AddTrustedOrigin(base.Scheme + "://" + base.Host); err != nil {
		return nil, err
	}
	if d.assets, err = loadAssets(); err != nil {
		return nil, err
	}
	d.icons = iconNames(d.assets["icons.svg"].data)
	d.setTemplates()
	d.routes()
	return d, nil
}

// policy is the Content-Security-Policy of the pages. A page may load only files of this
// server. It permits no inline script or style. So a browser does not run a script that an
// attacker puts into a page.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"frame-src 'self'; object-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"

// policyFor returns the policy of a page whose form is answered with a redirect to target.
func policyFor(target string) string {
	return strings.Replace(policy, "form-action 'self'", "form-action 'self' "+target, 1)
}

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
		// Without a deadline, a browser that stops sending would hold its connection. net/http
		// also reads a form that no handler reads. It removes the deadline at the end of the
		// body.
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(d.cfg.FormTime))
	}
	handlers.Logged(d.cfg.Log, d.cfg.Now, w, r, d.router.ServeHTTP)
}

// A request is an HTTP request and the user who makes it.
type request struct {
	*http.Request
	who       store.Identity // zero if nobody is signed in
	sessionID string
	lang      *text.Language
	basePath  string // of the Dashboard
	params    httprouter.Params
	head      workerHead // of the worker that the page is about; set by ofWorker
	since     string     // the position in the stream of changes at which the page was read
	release   func()     // ends the count among the concurrent requests; further calls do nothing
}

// A handle answers a request. It returns nil once it has begun to write.
type handle func(w http.ResponseWriter, r *request) error

// on registers a page for users who are signed in. Other browsers are redirected to the sign-in
// page, which leads back to the page.
func (d *Dashboard) on(method, pattern string, h handle) {
	if method == http.MethodGet {
		h = d.orElsewhere(h)
	}
	d.open(method, pattern, func(w http.ResponseWriter, r *request) error {
		if r.who.UserID == "" {
			if r.Header.Get("Authorization") != "" && handlers.RefuseProgram(w, r.Request, errNoPage) {
				return nil
			}
			return d.toSignIn(w, r)
		}
		return h(w, r)
	})
}

// errNoPage is the answer to a program that sends its API key to a page.
var errNoPage = store.Errorf(store.NotFound,
	"this address is a page for people: the addresses of the API begin with /api/")

// may registers a page for users who have the right.
func (d *Dashboard) may(right store.Right, method, pattern string, h handle) {
	d.on(method, pattern, func(w http.ResponseWriter, r *request) error {
		if err := r.who.Allow(right); err != nil {
			return err
		}
		return h(w, r)
	})
}

// open registers a page for everybody, signed in or not.
func (d *Dashboard) open(method, pattern string, h handle) {
	serve := func(w http.ResponseWriter, req *http.Request, ps httprouter.Params) {
		r := &request{Request: req, params: ps, lang: d.language(req, ""), basePath: d.basePath}
		err := d.identify(r)
		if err == nil {
			err = d.refuseInMaintenance(method, pattern)
		}
		if err == nil {
			err = d.shared(w, r, h)
		}
		handlers.Describe(r.Context(), pattern, r.who, ps.ByName)
		if err != nil {
			d.refuse(w, r, err)
		}
	}
	d.router.Handle(method, pattern, serve)
	// httprouter does not answer HEAD by itself.
	if method == http.MethodGet {
		d.router.Handle(http.MethodHead, pattern, serve)
	}
}

// shared runs h. It returns an error if the user has too many concurrent requests.
func (d *Dashboard) shared(w http.ResponseWriter, r *request, h handle) error {
	if r.who.UserID != "" {
		release, err := d.cfg.API.HoldPage(r.who)
		if err != nil {
			return err
		}
		r.release = sync.OnceFunc(release)
		defer r.release()
		// Before the page is read, so that it gets every later change.
		r.since = d.cfg.Runner.Streams.ChangesNow(r.who.OrganizationID)
	}
	return handlers.Recovered(d.cfg.Log, "page", requestID(w), func() error { return h(w, r) })
}

// identify stores the signed-in user in r. It returns an error for a request that another site made
// the browser send.
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
		return nil // the session ended: the browser is not signed in
	}
	who.RemoteAddr = serve.ClientAddr(r.Request)
	r.who, r.sessionID = who, sessionID
	r.lang = d.language(r.Request, who.Language)
	return err
}

// refuse writes the error page. No other place turns an error into a page.
func (d *Dashboard) refuse(w http.ResponseWriter, r *request, err error) {
	if handlers.Left(r.Context(), err) {
		return // the browser closed the connection
	}
	p := errorPage{Status: http.StatusInternalServerError, RequestID: requestID(w),
		Message: r.t("The server could not handle this request. Its log has the details under the request's ID.")}
	handlers.DescribeRefusal(r.Context(), err)
	if e, ok := errors.AsType[*store.Error](err); ok {
		p.Status, p.Message = handlers.StatusOf(e), show.Sentence(r.explained(e))
		if store.IsMaintenance(e) {
			p.Message = r.t("The server is in maintenance: nothing can be changed until that ends. Try again later.")
		}
		for _, detail := range e.Details {
			p.Details = append(p.Details, option{show.Sentence(detail.Message), r.fieldLabel(detail.Path)})
		}
		handlers.SetRetryAfter(w.Header(), e)
	}
	if err := d.render(w, r, p.Status, "error.html", p.title(r), p); err != nil {
		d.cfg.Log.Error("error page", "request", p.RequestID, "err", err)
		http.Error(w, p.Message, p.Status)
	}
}

// requestID returns the id of the request that w answers.
func requestID(w http.ResponseWriter) string { return w.Header().Get("X-Request-Id") }
