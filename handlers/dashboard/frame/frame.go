// Package frame is what every page stands on: who asks and in which language, the forms and their faults, the
// templates, the icons, and the error page. A package of pages registers its handles with On, May or Open, and
// answers with Page, Render or Redirect.
//
// It imports handlers, runner, store and rooms below them, and draws with show and text. It knows no page but those
// that any request may get: the error page and the one that offers another organization. It holds no rule about
// rights: the store decides. No page writes HTML past Render and Send, which show hidden characters and add the path
// of the base URL.
package frame

import (
	"errors"
	"html/template"
	"io/fs"
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
	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/people"
)

// A Config holds the dependencies and settings of a frame. Every field must be set.
type Config struct {
	Files     fs.FS // the folders templates and assets
	Store     *store.Store
	Runner    *runner.Runner
	API       *handlers.API
	Log       *slog.Logger
	BaseURL   string // ends without a slash
	Version   string
	Now       func() time.Time
	FormTime  time.Duration    // in which a form without files must arrive
	Functions template.FuncMap // that templates may call beside those of the frame
}

// A Frame answers requests for pages: it knows who asks and in which language, calls the handle of the page,
// and draws the page or its error. It is an http.Handler.
type Frame struct {
	Store     *store.Store
	Runner    *runner.Runner
	API       *handlers.API
	Log       *slog.Logger
	Now       func() time.Time
	BaseURL   string // ends without a slash
	Version   string // of the program
	cfg       Config
	router    *httprouter.Router
	origins   *http.CrossOriginProtection
	Languages []*text.Language
	templates map[string]func() (*template.Template, error) // by code of the language
	assets    assets
	icons     map[string]bool // the names of the sprite's symbols
	host      string          // of the base URL
	BasePath  string          // path of the base URL, without a slash at the end
	Secure    bool            // browsers send cookies over https only
}

// New returns a frame without pages. It returns an error if cfg.BaseURL cannot be parsed.
func New(cfg Config) (*Frame, error) {
	f := &Frame{Store: cfg.Store, Runner: cfg.Runner, API: cfg.API, Log: cfg.Log, Now: cfg.Now, BaseURL: cfg.BaseURL,
		Version: cfg.Version, cfg: cfg, router: httprouter.New(), origins: http.NewCrossOriginProtection(),
		Secure: strings.HasPrefix(cfg.BaseURL, "https://")}
	// A proxy may send another host name than the browser does: forms from the base URL
	// are always accepted.
	base, err := url.Parse(cfg.BaseURL)
	if err != nil {
		return nil, err
	}
	f.host, f.BasePath = base.Host, handlers.BasePath(cfg.BaseURL)
	if err := f.origins.AddTrustedOrigin(base.Scheme + "://" + base.Host); err != nil {
		return nil, err
	}
	if f.assets, err = loadAssets(cfg.Files); err != nil {
		return nil, err
	}
	f.icons = iconNames(f.assets["icons.svg"].data)
	f.setTemplates()
	f.setRouter()
	return f, nil
}

// setRouter sets what is answered at addresses without a page, and at those of the assets.
func (fr *Frame) setRouter() {
	fr.router.RedirectTrailingSlash = false // see otherSlash
	fr.router.RedirectFixedPath = false
	fr.router.HandleOPTIONS = false
	nothing := fr.refusal(ErrNotFound)
	fr.router.NotFound = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !fr.otherSlash(w, r) {
			nothing.ServeHTTP(w, r)
		}
	})
	fr.router.MethodNotAllowed = fr.refusal(
		db.Errorf(db.NotFound, "the page at this address does not accept this method"))
	fr.router.Handler(http.MethodGet, "/assets/*file", fr.assets)
}

// policy is the Content-Security-Policy of the pages. A page may load only files of this
// server. It permits no inline script or style. So a browser does not run a script that an
// attacker puts into a page.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"frame-src 'self'; object-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"

// PolicyFor returns the policy of a page whose form is answered with a redirect to target.
func PolicyFor(target string) string {
	return strings.Replace(policy, "form-action 'self'", "form-action 'self' "+target, 1)
}

// ServeHTTP answers a request.
func (fr *Frame) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("X-Request-Id", db.NewID("req", fr.Now()))
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
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(fr.cfg.FormTime))
	}
	handlers.Logged(fr.Log, fr.Now, w, r, fr.router.ServeHTTP)
}

// A Request is an HTTP request and the user who makes it.
type Request struct {
	*http.Request
	Who       people.Identity // zero if nobody is signed in
	SessionID string
	Lang      *text.Language
	basePath  string // of the frame
	Params    httprouter.Params
	Head      WorkerHead // of the worker that the page is about; set by OfWorker
	since     string     // the position in the stream of changes at which the page was read
	Release   func()     // ends the count among the concurrent requests; further calls do nothing
}

// A Handle answers a request. It returns nil once it has begun to write.
type Handle func(w http.ResponseWriter, r *Request) error

// On registers a page for users who are signed in. Other browsers are redirected to the sign-in
// page, which leads back to the page.
func (fr *Frame) On(method, pattern string, h Handle) {
	if method == http.MethodGet {
		h = fr.orElsewhere(h)
	}
	fr.Open(method, pattern, func(w http.ResponseWriter, r *Request) error {
		if r.Who.UserID == "" {
			if r.Header.Get("Authorization") != "" && handlers.RefuseProgram(w, r.Request, errNoPage) {
				return nil
			}
			return fr.toSignIn(w, r)
		}
		return h(w, r)
	})
}

// errNoPage is the answer to a program that sends its API key to a page.
var errNoPage = db.Errorf(db.NotFound,
	"this address is a page for people: the addresses of the API begin with /api/")

// May registers a page for users who have the right.
func (fr *Frame) May(right people.Right, method, pattern string, h Handle) {
	fr.On(method, pattern, func(w http.ResponseWriter, r *Request) error {
		if err := r.Who.Allow(right); err != nil {
			return err
		}
		return h(w, r)
	})
}

// Open registers a page for everybody, signed in or not.
func (fr *Frame) Open(method, pattern string, h Handle) {
	serve := func(w http.ResponseWriter, req *http.Request, ps httprouter.Params) {
		r := &Request{Request: req, Params: ps, Lang: fr.language(req, ""), basePath: fr.BasePath}
		err := fr.identify(r)
		if err == nil {
			err = fr.refuseInMaintenance(method, pattern)
		}
		if err == nil {
			err = fr.shared(w, r, h)
		}
		handlers.Describe(r.Context(), pattern, r.Who, ps.ByName)
		if err != nil {
			fr.refuse(w, r, err)
		}
	}
	fr.router.Handle(method, pattern, serve)
	// httprouter does not answer HEAD by itself.
	if method == http.MethodGet {
		fr.router.Handle(http.MethodHead, pattern, serve)
	}
}

// shared runs h. It returns an error if the user has too many concurrent requests.
func (fr *Frame) shared(w http.ResponseWriter, r *Request, h Handle) error {
	if r.Who.UserID != "" {
		release, err := fr.API.HoldPage(r.Who)
		if err != nil {
			return err
		}
		r.Release = sync.OnceFunc(release)
		defer r.Release()
		// Before the page is read, so that it gets every later change.
		r.since = fr.Runner.Streams.ChangesNow(r.Who.OrganizationID)
	}
	return handlers.Recovered(fr.Log, "page", RequestID(w), func() error { return h(w, r) })
}

// identify stores the signed-in user in r. It returns an error for a request that another site made
// the browser send.
func (fr *Frame) identify(r *Request) error {
	if err := fr.origins.Check(r.Request); err != nil {
		return db.Errorf(db.Forbidden, "the request was sent by another site: open the page here and try again")
	}
	cookie, err := r.Cookie(handlers.SessionCookie)
	if err != nil {
		return nil //nolint:nilerr // nobody is signed in
	}
	who, sessionID, err := fr.Store.People.SessionIdentity(r.Context(), cookie.Value)
	if db.IsKind(err, db.Unauthorized) {
		return nil // the session ended: the browser is not signed in
	}
	who.RemoteAddr = serve.ClientAddr(r.Request)
	r.Who, r.SessionID = who, sessionID
	r.Lang = fr.language(r.Request, who.Language)
	return err
}

// refuse writes the error page. No other place turns an error into a page.
func (fr *Frame) refuse(w http.ResponseWriter, r *Request, err error) {
	if handlers.Left(r.Context(), err) {
		return // the browser closed the connection
	}
	p := errorPage{Status: http.StatusInternalServerError, RequestID: RequestID(w),
		Message: r.T("The server could not handle this request. Its log has the details under the request's ID.")}
	handlers.DescribeRefusal(r.Context(), err)
	if e, ok := errors.AsType[*db.Error](err); ok {
		p.Status, p.Message = handlers.StatusOf(e), show.Sentence(r.Explained(e))
		if db.IsMaintenance(e) {
			p.Message = r.T("The server is in maintenance: nothing can be changed until that ends. Try again later.")
		}
		for _, detail := range e.Details {
			p.Details = append(p.Details, Option{show.Sentence(detail.Message), r.fieldLabel(detail.Path)})
		}
		handlers.SetRetryAfter(w.Header(), e)
	}
	if err := fr.Render(w, r, p.Status, "error.html", p.title(r), p); err != nil {
		fr.Log.Error("error page", "request", p.RequestID, "err", err)
		http.Error(w, p.Message, p.Status)
	}
}

// RequestID returns the id of the request that w answers.
func RequestID(w http.ResponseWriter) string { return w.Header().Get("X-Request-Id") }
