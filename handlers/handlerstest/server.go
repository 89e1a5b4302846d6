// Package handlerstest starts the HTTP API for tests: a real server over a real store and runner, with the offline
// model and the endpoint of MCP clients. A Scenario is one request to it, with what its answer must be.
//
// Only tests import this package. It fakes nothing but the model.
package handlerstest

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/handlers"
	"journeyman/handlers/mcp"
	"journeyman/handlers/serve"
	"journeyman/runner"
	"journeyman/runner/model"
	"journeyman/runner/model/offline"
	"journeyman/runner/sandbox"
	"journeyman/runner/tool"
	"journeyman/store"
	"journeyman/store/people"
	"journeyman/store/storetest"
)

// Client is the client of tests that need no other settings. httptest.Server.Close closes the idle connections of
// http.DefaultTransport, so that a concurrent request of another test could fail. Nothing closes those of Client.
var Client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 16, IdleConnTimeout: 90 * time.Second}}

// A Server is the API under test.
type Server struct {
	URL    string // of the listener, without a slash at the end
	Store  *store.Store
	Runner *runner.Runner
	API    *handlers.API
	Web    *httptest.Server
	Owner  people.Identity
	Key    string // the key of Request; "" for none

	// Validate checks each answer to a Scenario; nil if there is nothing else to check.
	Validate func(t testing.TB, req *http.Request, resp *http.Response, body []byte)

	idle bool
}

// Settings are the values that a test may change before its server is built.
type Settings struct {
	Store   store.Options
	Runner  runner.Config
	API     handlers.Config
	MCP     mcp.Config
	Proxies serve.Proxies // that are trusted
	Idle    bool          // the runner does not start: turns stay pending

	// Connect completes API with what needs the store and the runner. It may be nil.
	Connect func(st *store.Store, rn *runner.Runner)
}

// Start starts a server, and stops it when the test ends. Its Key belongs to an owner.
func Start(t testing.TB, changes ...func(*Settings)) *Server {
	t.Helper()
	web := httptest.NewUnstartedServer(nil)
	s := &Server{URL: "http://" + web.Listener.Addr().String(), Web: web}
	set := Defaults(t, s.URL)
	for _, change := range changes {
		change(&set)
	}
	s.idle, s.Store = set.Idle, storetest.Open(t, set.Store)
	set.Runner.Store = s.Store
	s.Runner = runner.New(set.Runner)
	set.API.Store, set.API.Runner, set.MCP.Store, set.MCP.Runner = s.Store, s.Runner, s.Store, s.Runner
	if set.Connect != nil {
		set.Connect(s.Store, s.Runner)
	}
	s.Owner, s.Key = storetest.Caller(t, s.Store, "Acme", "ann@example.com", people.RoleOwner)
	set.API.MCP = mcp.New(set.MCP).Serve
	s.API = handlers.New(set.API)
	log := set.Runner.Log
	web.Config = serve.NewServer(set.Proxies.Behind(s.API), handlers.Refuse, s.Runner.Streams.Close)
	web.Listener = serve.NewListener(web.Listener, 10_000, set.Proxies, log, &s.Store.Counters().ConnectionsRefused)
	web.Config.ErrorLog = slog.NewLogLogger(log.Handler(), slog.LevelError)
	if !set.Idle {
		is.New(t).NoErr(s.Runner.Start(t.Context()))
	}
	web.Start()
	t.Cleanup(func() { s.close(t) })
	return s
}

// Defaults returns the settings of a server with that URL, without its store.
func Defaults(t testing.TB, url string) Settings {
	t.Helper()
	prices, err := model.LoadPrices("")
	is.New(t).NoErr(err)
	log := slog.New(slog.DiscardHandler)
	if testing.Verbose() && os.Getenv("HANDLERS_LOG") != "" {
		log = slog.New(slog.NewTextHandler(os.Stderr, nil))
	}
	return Settings{
		Runner: runner.Config{Model: offline.New(), Models: model.NewCatalogue(model.Config{Offline: offline.New()}, offline.New(), ""),
			Prices: prices, Tools: tool.All(tool.NewDocuments(sandbox.NewFilterPool())), BaseURL: url, Log: log,
			Retry: func(int) time.Duration { return time.Millisecond }},
		API: handlers.Config{Version: "1.2.3", BaseURL: url, MailDomain: "mail.example", Log: log,
			Documents: sandbox.NewFilterPool()},
		MCP: mcp.Config{Log: log, Version: "1.2.3", BaseURL: url},
	}
}

func (s *Server) close(t testing.TB) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // no grace period: running turns go back to the queue
	s.Runner.Streams.Close()
	if !s.idle {
		if err := s.Runner.Stop(ctx); err != nil {
			t.Error(err)
		}
	}
	s.Web.CloseClientConnections()
	s.Web.Close()
}

// As returns the server with another key for its requests; "" for none.
func (s *Server) As(key string) *Server {
	other := *s
	other.Key = key
	return &other
}

// Request returns a request with the server's key, and with a JSON body unless body is "". Each header is
// "Name: value"; "" is left out. The last Accept, Authorization and Content-Type count.
func (s *Server) Request(t testing.TB, method, path, body string, headers ...string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, strings.NewReader(body))
	is.New(t).NoErr(err)
	if s.Key != "" {
		req.Header.Set("Authorization", "Bearer "+s.Key)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for _, h := range headers {
		if h == "" {
			continue
		}
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Add(name, value)
		if name == "Accept" || name == "Authorization" || name == "Content-Type" {
			req.Header.Set(name, value)
		}
	}
	return req
}
