// Package dashboardtest starts the pages for tests: a real server over a real store, runner and API, with the offline
// model, and browsers that sign in, follow links and send forms.
//
// Only tests import this package. It fakes nothing but the model and the resolver of names.
package dashboardtest

import (
	"cmp"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
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

// Main runs the tests of a package. It makes this program work as a document reader, as the real program does. The
// function TestMain of a package with pages calls it.
func Main(m *testing.M) {
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

// Transport is the transport of all clients in these tests. httptest.Server.Close closes the
// idle connections of http.DefaultTransport, so that a concurrent request of another test could
// fail. Nothing closes those of Transport.
var Transport = &http.Transport{MaxIdleConnsPerHost: 16, IdleConnTimeout: 90 * time.Second}

// Client is the client of tests that need no other settings.
var Client = &http.Client{Transport: Transport}

// Password is the password of every user.
const Password = "correct horse battery"

// A Site is the dashboard under test, with a real API, store and runner.
type Site struct {
	T      testing.TB
	URL    string // the base URL
	Direct string // address of the listener
	Store  *store.Store
	Runner *runner.Runner
	API    *handlers.API
	Owner  people.Identity
	Key    string // of the owner
	Drop   func() // breaks all connections
}

// New starts a site of the organization Acme with its owner.
func New(t testing.TB, change ...func(*dashboard.Config)) *Site {
	t.Helper()
	return NewOf(t, storetest.Open(t, store.Options{}), change...)
}

// OnSite starts a site for a test that runs beside others.
func OnSite(t *testing.T, change ...func(*dashboard.Config)) (*is.I, *Site) {
	t.Helper()
	t.Parallel()
	return is.New(t), New(t, change...)
}

// AsOwner starts a site like OnSite. In the browser, its owner is signed in.
func AsOwner(t *testing.T, change ...func(*dashboard.Config)) (*is.I, *Site, *Browser) {
	t.Helper()
	is, s := OnSite(t, change...)
	return is, s, s.SignIn("ann@example.com")
}

// NewOf starts a site on a store that may hold data.
func NewOf(t testing.TB, st *store.Store, change ...func(*dashboard.Config)) *Site {
	t.Helper()
	return NewAt(t, st, "", change...)
}

// NewAt starts a site with a base URL, or with the listener's if base is "".
func NewAt(t testing.TB, st *store.Store, base string, change ...func(*dashboard.Config)) *Site {
	t.Helper()
	is := is.New(t)
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	web := httptest.NewUnstartedServer(nil)
	base = cmp.Or(base, "http://"+web.Listener.Addr().String())
	prices, err := model.LoadPrices("")
	is.NoErr(err)
	rn := runner.New(runner.Config{Store: st, Model: offline.New(),
		Models: model.NewCatalogue(model.Config{Offline: offline.New()}, offline.New(), ""),
		Prices: prices, Tools: tool.All(documents), BaseURL: base, Log: log,
		Retry: func(int) time.Duration { return time.Millisecond }})
	hooks := webhook.New(webhook.Config{Store: st, Log: log, BaseURL: base, UserAgent: "Journeyman/test",
		Dialer: dial.Guard{AllowPrivate: true}})
	manual := webhook.Manual{Store: st, Sender: hooks}
	box := mail.New(mail.Config{Store: st, Runner: rn, Log: log, Domain: "mail.example", Resolver: NoDNS{}})
	workers := mcp.New(mcp.Config{Store: st, Runner: rn, Log: log, Version: "test", BaseURL: base})
	api := handlers.New(handlers.Config{Store: st, Runner: rn, Log: log, BaseURL: base, MailDomain: "mail.example",
		MCP: workers.Serve, Webhooks: manual, Inbox: box, Documents: pool, Timing: handlers.Timing{CheckEvery: 50 * time.Millisecond}})
	cfg := dashboard.Config{ReadDocument: documents.Text, Store: st, Runner: rn, API: api, Webhooks: manual,
		Alerts: hooks, Log: log, BaseURL: base, MailDomain: "mail.example", Inbox: box, ReadMail: box.Preview,
		Version: "test", Servers: remote.New(nil, remote.Config{}), ScheduleChanged: func() {},
		System: func() admin.System {
			return admin.System{Shell: "confined", SchedulerAlive: func() bool { return true }}
		}}
	for _, change := range change {
		change(&cfg)
	}
	pages, err := dashboard.New(cfg)
	is.NoErr(err)
	s := &Site{T: t, URL: base, Direct: "http://" + web.Listener.Addr().String(), Store: st, Runner: rn, API: api,
		Drop: web.CloseClientConnections}
	web.Config.Handler = handlers.Front(api, pages)
	s.Owner, s.Key = storetest.Caller(t, st, "Acme", "ann@example.com", people.RoleOwner)
	is.NoErr(st.People.SetPassword(t.Context(), "ann@example.com", Password))
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

// Join adds a user to the organization and sets the password of all tests for them.
func (s *Site) Join(email string, role people.Role) people.Identity {
	s.T.Helper()
	who, _ := storetest.Caller(s.T, s.Store, "Acme", email, role)
	s.OK(s.Store.People.SetPassword(s.T.Context(), email, Password))
	return who
}

// OK ends the test if err is not nil.
func (s *Site) OK(err error) {
	s.T.Helper()
	if err != nil {
		s.T.Fatal(err)
	}
}

// Request returns a request to this site. header alternates names and values.
func (s *Site) Request(method, path, body string, header ...string) *http.Request {
	s.T.Helper()
	r, err := http.NewRequestWithContext(s.T.Context(), method, s.URL+path, strings.NewReader(body))
	s.OK(err)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	return r
}

// Visitor returns a browser without a session.
func (s *Site) Visitor() *Browser {
	jar, _ := cookiejar.New(nil)
	return &Browser{Site: s, Client: &http.Client{Transport: Transport, Jar: jar,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

// SignIn returns a browser in which the user with that address is signed in.
func (s *Site) SignIn(email string) *Browser {
	s.T.Helper()
	b := s.Visitor()
	if p := b.Post("/sign-in", "email", email, "password", Password); p.Status != http.StatusSeeOther {
		s.T.Fatalf("sign in: %d\n%s", p.Status, p.Body)
	}
	return b
}
