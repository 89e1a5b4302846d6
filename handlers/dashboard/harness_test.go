package dashboard_test

import (
	"cmp"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/handlers"
	"journeyman/handlers/dashboard"
	"journeyman/handlers/dashboard/admin"
	"journeyman/handlers/mcp"
	"journeyman/mail"
	"journeyman/runner"
	"journeyman/runner/dial"
	"journeyman/runner/model"
	"journeyman/runner/model/offline"
	"journeyman/runner/sandbox"
	"journeyman/runner/tool"
	remote "journeyman/runner/tool/mcp"
	"journeyman/runner/webhook"
	"journeyman/store"
	"journeyman/store/people"
	"journeyman/store/storetest"
)

// TestMain makes this program work as a document reader, as the real program does.
func TestMain(m *testing.M) {
	filters := tool.Filters()
	filters[handlers.YAMLFilter] = handlers.ReadYAML
	sandbox.BeFilter(os.Args, filters)
	storetest.SideBySide(4)
	os.Exit(m.Run())
}

// documents reads documents for all tests, in separate processes.
var (
	pool      = sandbox.NewFilterPool()
	documents = tool.NewDocuments(pool)
)

// ownTransport is the transport of all clients in these tests. httptest.Server.Close closes the
// idle connections of http.DefaultTransport, so that a concurrent request of another test could
// fail. Nothing closes those of ownTransport.
var ownTransport = &http.Transport{MaxIdleConnsPerHost: 16, IdleConnTimeout: 90 * time.Second}

// ownClient is the client of tests that need no other settings.
var ownClient = &http.Client{Transport: ownTransport}

// password is the password of every user.
const password = "correct horse battery"

// A site is the dashboard under test, with a real API, store and runner.
type site struct {
	t      testing.TB
	url    string // the base URL
	direct string // address of the listener
	store  *store.Store
	runner *runner.Runner
	api    *handlers.API
	hooks  *webhook.Dispatcher // not started: it sends only on request
	owner  people.Identity
	key    string // of the owner
	drop   func() // breaks all connections
	front  http.Handler
}

// newSite starts a site of the organization Acme with its owner.
func newSite(t testing.TB, change ...func(*dashboard.Config)) *site {
	t.Helper()
	return newSiteOf(t, storetest.Open(t, store.Options{}), change...)
}

// onSite starts a site for a test that runs beside others.
func onSite(t *testing.T, change ...func(*dashboard.Config)) (*is.I, *site) {
	t.Helper()
	t.Parallel()
	return is.New(t), newSite(t, change...)
}

// asOwner starts a site like onSite. In the browser, its owner is signed in.
func asOwner(t *testing.T, change ...func(*dashboard.Config)) (*is.I, *site, *browser) {
	t.Helper()
	is, s := onSite(t, change...)
	return is, s, s.signIn("ann@example.com")
}

// newSiteOf starts a site on a store that may hold data.
func newSiteOf(t testing.TB, st *store.Store, change ...func(*dashboard.Config)) *site {
	t.Helper()
	return newSiteAt(t, st, "", change...)
}

// newSiteAt starts a site with a base URL, or with the listener's if base is "".
func newSiteAt(t testing.TB, st *store.Store, base string, change ...func(*dashboard.Config)) *site {
	t.Helper()
	is := is.New(t)
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	web := httptest.NewUnstartedServer(nil)
	base = cmp.Or(base, "http://"+web.Listener.Addr().String())
	prices, err := model.LoadPrices("")
	is.NoErr(err)
	rn := runner.New(runner.Config{Store: st, Model: offline.New(), Models: model.NewCatalogue(model.Config{Offline: offline.New()}, offline.New(), ""),
		Prices: prices, Tools: tool.All(documents), BaseURL: base, Log: log,
		Retry: func(int) time.Duration { return time.Millisecond }})
	hooks := webhook.New(webhook.Config{Store: st, Log: log, BaseURL: base, UserAgent: "Journeyman/test", Dialer: dial.Guard{AllowPrivate: true}})
	manual := webhook.Manual{Store: st, Sender: hooks}
	box := mail.New(mail.Config{Store: st, Runner: rn, Log: log, Domain: "mail.example", Resolver: noDNS{}})
	workers := mcp.New(mcp.Config{Store: st, Runner: rn, Log: log, Version: "test", BaseURL: base})
	api := handlers.New(handlers.Config{Store: st, Runner: rn, Log: log, BaseURL: base, MailDomain: "mail.example",
		MCP: workers.Serve, Webhooks: manual, Inbox: box, Documents: pool, Timing: handlers.Timing{CheckEvery: 50 * time.Millisecond}})
	cfg := dashboard.Config{ReadDocument: documents.Text, Store: st, Runner: rn, API: api, Webhooks: manual, Alerts: hooks, Log: log, BaseURL: base, MailDomain: "mail.example", Inbox: box, ReadMail: box.Preview,
		Version: "test", Servers: remote.New(nil, remote.Config{}), ScheduleChanged: func() {},
		System: func() admin.System {
			return admin.System{Shell: "confined", SchedulerAlive: func() bool { return true }}
		}}
	for _, change := range change {
		change(&cfg)
	}
	pages, err := dashboard.New(cfg)
	is.NoErr(err)
	s := &site{t: t, url: base, direct: "http://" + web.Listener.Addr().String(), store: st, runner: rn, api: api, hooks: hooks, drop: web.CloseClientConnections}
	s.front = handlers.Front(api, pages)
	web.Config.Handler = s.front
	s.owner, s.key = storetest.Caller(t, st, "Acme", "ann@example.com", people.RoleOwner)
	is.NoErr(st.People.SetPassword(t.Context(), "ann@example.com", password))
	is.NoErr(rn.Start(t.Context()))
	web.Start()
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel() // no grace period: running turns go back to the queue
		rn.Streams.Close()
		if err := rn.Stop(ctx); err != nil {
			t.Error(err)
		}
		web.CloseClientConnections()
		web.Close()
	})
	return s
}

// join adds a user to the organization and sets the password of all tests for them.
func (s *site) join(email string, role people.Role) people.Identity {
	s.t.Helper()
	who, _ := storetest.Caller(s.t, s.store, "Acme", email, role)
	s.ok(s.store.People.SetPassword(s.t.Context(), email, password))
	return who
}

// ok ends the test if err is not nil.
func (s *site) ok(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// request returns a request to this site. header alternates names and values.
func (s *site) request(method, path, body string, header ...string) *http.Request {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, strings.NewReader(body))
	s.ok(err)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	return r
}

// A browser keeps cookies and does not follow redirects by itself.
type browser struct {
	*site
	client *http.Client
	agent  string // its user agent; "" for the default
}

// visitor returns a browser without a session.
func (s *site) visitor() *browser {
	jar, _ := cookiejar.New(nil)
	return &browser{site: s, client: &http.Client{Transport: ownTransport, Jar: jar,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

// signIn returns a browser in which the user with that address is signed in.
func (s *site) signIn(email string) *browser {
	s.t.Helper()
	b := s.visitor()
	if p := b.post("/sign-in", "email", email, "password", password); p.status != http.StatusSeeOther {
		s.t.Fatalf("sign in: %d\n%s", p.status, p.body)
	}
	return b
}

// A page is an answer to a browser.
type page struct {
	t      testing.TB
	status int
	header http.Header
	body   string
}

// location returns the address of a redirect.
func (p page) location() string { return p.header.Get("Location") }

// answers requires that the answer has the status.
func (p page) answers(status int) page {
	p.t.Helper()
	if p.status != status {
		p.t.Errorf("the answer has the status %d, not %d", p.status, status)
	}
	return p
}

// smallerThan requires that the page has fewer bytes than limit.
func (p page) smallerThan(limit int) {
	p.t.Helper()
	if len(p.body) >= limit {
		p.t.Errorf("the page has %d bytes, not less than %d", len(p.body), limit)
	}
}

// shows requires that the page holds every text.
func (p page) shows(texts ...string) {
	p.t.Helper()
	for _, text := range texts {
		if !p.has(text) {
			p.t.Errorf("the page with status %d does not hold %q", p.status, text)
		}
	}
}

// lacks requires that the page holds none of the texts.
func (p page) lacks(texts ...string) {
	p.t.Helper()
	for _, text := range texts {
		if p.has(text) {
			p.t.Errorf("the page with status %d holds %q", p.status, text)
		}
	}
}

// has reports whether the page holds every text.
func (p page) has(texts ...string) bool {
	for _, text := range texts {
		if !strings.Contains(p.body, text) {
			return false
		}
	}
	return true
}

func (b *browser) get(path string) page {
	b.t.Helper()
	return b.send(b.request(http.MethodGet, path, ""))
}

// post sends a form as the pages of this site do. form alternates names and values.
func (b *browser) post(path string, form ...string) page {
	b.t.Helper()
	values := url.Values{}
	for i := 0; i+1 < len(form); i += 2 {
		values.Add(form[i], form[i+1])
	}
	return b.send(b.request(http.MethodPost, path, values.Encode(), "Content-Type", "application/x-www-form-urlencoded",
		"Sec-Fetch-Site", "same-origin"))
}

func (b *browser) send(r *http.Request) page {
	b.t.Helper()
	if b.agent != "" {
		r.Header.Set("User-Agent", b.agent)
	}
	if r.Header.Get("Accept") == "" {
		r.Header.Set("Accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8")
	}
	res, err := b.client.Do(r)
	b.ok(err)
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	b.ok(err)
	return page{b.t, res.StatusCode, res.Header, string(body)}
}
