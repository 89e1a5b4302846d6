package handlers

import (
	"net/http"
	"strings"
	"time"

	"journeyman/runner"
)

// Front gives each request to the API or to the pages, which share an address.
func Front(api *API, pages http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch p := r.URL.Path; {
		case strings.HasPrefix(p, "/api/"), p == "/api", p == "/healthz", p == "/readyz", p == "/metrics", p == "/mcp":
			api.ServeHTTP(w, r)
		default:
			pages.ServeHTTP(w, r)
		}
	})
}

// NewServer makes the server of a handler. It has no write timeout: a wait for a
// result may be long. Bodies have read deadlines of their own.
func NewServer(h http.Handler, rn *runner.Runner) *http.Server {
	s := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 32 << 10}
	s.RegisterOnShutdown(rn.CloseStreams) // an open event stream would hold Shutdown for the whole grace
	return s
}
