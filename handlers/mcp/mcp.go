// Package mcp serves workers as tools to clients of the Model Context Protocol. A tool call sends
// an instruction to a worker, waits for its turn and returns the answer.
//
// The endpoint keeps no state between requests, so a client may continue at any time, also after a
// restart. Package handlers authenticates each request and limits its body. This package never runs
// a turn and holds no SQL.
package mcp

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"journeyman/handlers"
	"journeyman/runner"
	"journeyman/runner/view"
	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/people"
)

// Config holds the dependencies and settings of a Server. Every field without a stated default is
// required.
type Config struct {
	Store     *store.Store
	Runner    *runner.Runner
	Log       *slog.Logger
	Version   string        // of the program
	BaseURL   string        // without a slash at the end
	SilentFor time.Duration // silence after which an event stream gets a comment; 25 s if 0
	LookEvery time.Duration // between checks whether a stream is silent; 10 s if 0
}

// A Server answers the messages of clients.
type Server struct {
	cfg   Config
	views view.Builder
	sdk   http.Handler
}

// A call is one request to the endpoint. The handlers of its message get it from their context.
type call struct {
	request   *http.Request
	requestID string
	who       people.Identity
	out       *writer
	worker    string // the worker whose own tool is called; "" for the other tools

	tool *sdk.CallToolRequest // nil until a tool is called
	args *handlers.Body       // of that tool
}

// callKey is the context key of the *call.
type callKey struct{}

// New returns a server of all workers.
func New(cfg Config) *Server {
	cfg.SilentFor, cfg.LookEvery = cmp.Or(cfg.SilentFor, 25*time.Second), cmp.Or(cfg.LookEvery, 10*time.Second)
	s := &Server{cfg: cfg, views: view.New(cfg.Store, cfg.BaseURL)}
	program := &sdk.Implementation{Name: "journeyman", Title: "Journeyman", Version: cfg.Version}
	server := sdk.NewServer(program, &sdk.ServerOptions{
		Instructions: "Each tool sends an instruction to an AI worker, which carries it out with its own tools " +
			"and may take minutes. A task continues if you stop waiting: get its result with get_task.",
		Capabilities: &sdk.ServerCapabilities{Tools: &sdk.ToolCapabilities{}}})
	for _, t := range s.tools() {
		server.AddTool(t.Tool, s.sdkHandler(t.handle))
	}
	server.AddReceivingMiddleware(s.withWorkers)
	s.sdk = sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, &sdk.StreamableHTTPOptions{
		Stateless: true,
		// The protection stops pages of other sites that act with a user's rights. Here rights come
		// with a key, which browsers do not add by themselves. The protection would also refuse a
		// proxy on this machine, which sends the external host name.
		DisableLocalhostProtection: true,
	})
	return s
}

// Serve answers one message of a client. body is the request's body.
func (s *Server) Serve(w http.ResponseWriter, r *http.Request, who people.Identity, requestID string,
	body []byte) error {
	if err := s.checkOrigin(r); err != nil {
		return err
	}
	if bytes.HasPrefix(bytes.TrimSpace(body), []byte("[")) {
		// The protocol no longer has batches, and a batch could hold any number of calls.
		return db.Errorf(db.Invalid, "batches of messages are not accepted: send one message in a request")
	}
	out := &writer{ResponseWriter: w, wroteAt: time.Now()}
	c := &call{request: r, requestID: requestID, who: who, out: out}
	req := r.WithContext(context.WithValue(r.Context(), callKey{}, c))
	// The body was read to bound its size. The SDK reads it again.
	req.Body = io.NopCloser(bytes.NewReader(body))
	s.sdk.ServeHTTP(out, req)
	return out.end()
}

// checkOrigin refuses requests of pages of other origins, as the protocol requires: another site's
// page must not use the endpoint under its own host name. Programs send no Origin.
func (s *Server) checkOrigin(r *http.Request) error {
	origin := r.Header.Get("Origin")
	if origin == "" {
		return nil
	}
	from, err := url.Parse(origin)
	own, ownErr := url.Parse(s.cfg.BaseURL)
	if err == nil && ownErr == nil && from.Host != "" &&
		(strings.EqualFold(from.Host, own.Host) || isLoopback(from.Hostname()) && isLoopback(own.Hostname())) {
		return nil
	}
	return db.Errorf(db.Forbidden, "pages of other origins may not call this endpoint")
}

// isLoopback reports whether a host name means this machine.
func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}
