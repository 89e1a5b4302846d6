package dashboard

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
)

// A frameConfig holds the dependencies and settings of a frame. Every field must be set.
type frameConfig struct {
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

// A frame answers requests for pages: it knows who asks and in which language, calls the handle of the page,
// and draws the page or its error. It is an http.Handler.
type frame struct {
	cfg       frameConfig
	store     *store.Store
	router    *httprouter.Router
	origins   *http.CrossOriginProtection
	languages []*text.Language
	templates map[string]func() (*template.Template, error) // by code of the language
	assets    assets
	icons     map[string]bool // the names of the sprite's symbols
	host      string          // of the base URL
	basePath  string          // path of the base URL, without a slash at the end
	secure    bool            // browsers send cookies over https only
}

// newFrame returns a frame without pages. It returns an error if cfg.BaseURL cannot be parsed.
func newFrame(cfg frameConfig) (*frame, error) {
	f := &frame{cfg: cfg, store: cfg.Store, router: httprouter.New(), origins: http.NewCrossOriginProtection(),
		secure: strings.HasPrefix(cfg.BaseURL, "https://")}
	// A proxy may send another host name than the browser does: forms from the base URL
	// are always accepted.
	base, err := url.Parse(cfg.BaseURL)
	if err != nil {
		return nil, err
	}
	f.host, f.basePath = base.Host, handlers.BasePath(cfg.BaseURL)
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
func (fr *frame) setRouter() {
	fr.router.RedirectTrailingSlash = false // see otherSlash
	fr.router.RedirectFixedPath = false
	fr.router.HandleOPTIONS = false
	nothing := fr.refusal(errNotFound)
	fr.router.NotFound = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !fr.otherSlash(w, r) {
			nothing.ServeHTTP(w, r)
		}
	})
	fr.router.MethodNotAllowed = fr.refusal(
		store.Errorf(store.NotFound, "the page at this address does not accept this method"))
	fr.router.Handler(http.MethodGet, "/assets/*file", fr.assets)
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
func (fr *frame) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("X-Request-Id", store.NewID("req", fr.cfg.Now()))
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
	handlers.Logged(fr.cfg.Log, fr.cfg.Now, w, r, fr.router.ServeHTTP)
}

// A request is an HTTP request and the user who makes it.
type request struct {
	*http.Request
	who       store.Identity // zero if nobody is signed in
	sessionID string
	lang      *text.Language
	basePath  string // of the frame
	params    httprouter.Params
	head      workerHead // of the worker that the page is about; set by ofWorker
	since     string     // the position in the stream of changes at which the page was read
	release   func()     // ends the count among the concurrent requests; further calls do nothing
}

// A handle answers a request. It returns nil once it has begun to write.
type handle func(w http.ResponseWriter, r *request) error

// on registers a page for users who are signed in. Other browsers are redirected to the sign-in
// page, which leads back to the page.
func (fr *frame) on(method, pattern string, h handle) {
	if method == http.MethodGet {
		h = fr.orElsewhere(h)
	}
	fr.open(method, pattern, func(w http.ResponseWriter, r *request) error {
		if r.who.UserID == "" {
			if r.Header.Get("Authorization") != "" && handlers.RefuseProgram(w, r.Request, errNoPage) {
				return nil
			}
			return fr.toSignIn(w, r)
		}
		return h(w, r)
	})
}

// errNoPage is the answer to a program that sends its API key to a page.
var errNoPage = store.Errorf(store.NotFound,
	"this address is a page for people: the addresses of the API begin with /api/")

// may registers a page for users who have the right.
func (fr *frame) may(right store.Right, method, pattern string, h handle) {
	fr.on(method, pattern, func(w http.ResponseWriter, r *request) error {
		if err := r.who.Allow(right); err != nil {
			return err
		}
		return h(w, r)
	})
}

// open registers a page for everybody, signed in or not.
func (fr *frame) open(method, pattern string, h handle) {
	serve := func(w http.ResponseWriter, req *http.Request, ps httprouter.Params) {
		r := &request{Request: req, params: ps, lang: fr.language(req, ""), basePath: fr.basePath}
		err := fr.identify(r)
		if err == nil {
			err = fr.refuseInMaintenance(method, pattern)
		}
		if err == nil {
			err = fr.shared(w, r, h)
		}
		handlers.Describe(r.Context(), pattern, r.who, ps.ByName)
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
func (fr *frame) shared(w http.ResponseWriter, r *request, h handle) error {
	if r.who.UserID != "" {
		release, err := fr.cfg.API.HoldPage(r.who)
		if err != nil {
			return err
		}
		r.release = sync.OnceFunc(release)
		defer r.release()
		// Before the page is read, so that it gets every later change.
		r.since = fr.cfg.Runner.Streams.ChangesNow(r.who.OrganizationID)
	}
	return handlers.Recovered(fr.cfg.Log, "page", requestID(w), func() error { return h(w, r) })
}

// identify stores the signed-in user in r. It returns an error for a request that another site made
// the browser send.
func (fr *frame) identify(r *request) error {
	if err := fr.origins.Check(r.Request); err != nil {
		return store.Errorf(store.Forbidden, "the request was sent by another site: open the page here and try again")
	}
	cookie, err := r.Cookie(handlers.SessionCookie)
	if err != nil {
		return nil //nolint:nilerr // nobody is signed in
	}
	who, sessionID, err := fr.store.SessionIdentity(r.Context(), cookie.Value)
	if store.IsKind(err, store.Unauthorized) {
		return nil // the session ended: the browser is not signed in
	}
	who.RemoteAddr = serve.ClientAddr(r.Request)
	r.who, r.sessionID = who, sessionID
	r.lang = fr.language(r.Request, who.Language)
	return err
}

// refuse writes the error page. No other place turns an error into a page.
func (fr *frame) refuse(w http.ResponseWriter, r *request, err error) {
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
	if err := fr.render(w, r, p.Status, "error.html", p.title(r), p); err != nil {
		fr.cfg.Log.Error("error page", "request", p.RequestID, "err", err)
		http.Error(w, p.Message, p.Status)
	}
}

// requestID returns the id of the request that w answers.
func requestID(w http.ResponseWriter) string { return w.Header().Get("X-Request-Id") }
