package mcp_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/handlers"
	"journeyman/handlers/mcp"
	"journeyman/runner"
	"journeyman/runner/model"
	"journeyman/runner/model/offline"
	"journeyman/runner/sandbox"
	"journeyman/runner/tool"
	"journeyman/store"
	"journeyman/store/storetest"
)

// ownTransport is the transport of all clients in these tests. httptest.Server.Close closes the
// idle connections of http.DefaultTransport, so that a concurrent request of another test could
// fail. Nothing closes those of ownTransport.
var ownTransport = &http.Transport{MaxIdleConnsPerHost: 16, IdleConnTimeout: 90 * time.Second}

// ownClient is the client of tests that need no other settings.
var ownClient = &http.Client{Transport: ownTransport}

// A site is an API that mounts the endpoint, over a real store and runner with the
// offline model.
type site struct {
	url   string
	store *store.Store
	web   *httptest.Server
	owner store.Identity
	key   string // sent with requests; "" for none
}

// settings are the values that a test may change before a site is built.
type settings struct {
	mcp  mcp.Config
	idle bool // the runner does not start: turns stay pending
}

// onServer starts a site for a test that runs beside others. Its key belongs to an owner.
func onServer(t *testing.T, options ...func(*settings)) (*is.I, *site) {
	t.Helper()
	t.Parallel()
	is := is.New(t)
	prices, err := model.LoadPrices("")
	is.NoErr(err)
	log := slog.New(slog.DiscardHandler)
	web := httptest.NewUnstartedServer(nil)
	base := "http://" + web.Listener.Addr().String()
	st := storetest.Open(t, store.Options{})
	rn := runner.New(runner.Config{Store: st, Model: offline.New(), Prices: prices, BaseURL: base, Log: log,
		Tools: tool.All(tool.NewDocuments(sandbox.NewFilterPool())), Retry: func(int) time.Duration { return time.Millisecond }})
	set := settings{mcp: mcp.Config{Store: st, Runner: rn, Log: log, Version: "1.2.3", BaseURL: base}}
	for _, o := range options {
		o(&set)
	}
	s := &site{url: base, store: st, web: web}
	s.owner, s.key = storetest.Caller(t, st, "Acme", "ann@example.com", store.RoleOwner)
	web.Config.Handler = handlers.New(handlers.Config{Store: st, Runner: rn, Log: log, Version: "1.2.3", BaseURL: base, MCP: mcp.New(set.mcp).Serve})
	if !set.idle {
		is.NoErr(rn.Start(t.Context()))
	}
	web.Start()
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel() // no grace period: running turns go back to the queue
		rn.Streams.Close()
		if !set.idle {
			if err := rn.Stop(ctx); err != nil {
				t.Error(err)
			}
		}
		web.CloseClientConnections()
		web.Close()
	})
	return is, s
}

// as returns the site with another key.
func (s *site) as(key string) *site {
	other := *s
	other.key = key
	return &other
}
