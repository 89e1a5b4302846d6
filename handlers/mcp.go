package handlers

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"journeyman/store"
)

// apiVersion is that of the interface, as openapi.yaml tells it.
const apiVersion = "1.0.0"

// mcpCall is one request to the MCP endpoint, as the handlers of its messages find
// it in their context.
type mcpCall struct {
	*request
	out    *mcpWriter
	worker string // the worker whose own tool is called, "" for others
}

type mcpCallKey struct{}

// newMCP makes the endpoint that serves workers as tools. It keeps nothing from one
// request to the next: whoever has a key may go on anywhere, after a restart too.
func (a *API) newMCP() http.Handler {
	server := sdk.NewServer(&sdk.Implementation{Name: "journeyman", Title: "Journeyman", Version: apiVersion}, &sdk.ServerOptions{
		Instructions: "Each tool hands an instruction to an AI worker, which carries it out with tools of its own and may take minutes. " +
			"What takes longer than you can wait goes on: ask for its result with get_task.",
		Capabilities: &sdk.ServerCapabilities{Tools: &sdk.ToolCapabilities{}}})
	for _, t := range a.mcpTools() {
		server.AddTool(t.Tool, a.mcpRecovered(t.handle))
	}
	server.AddReceivingMiddleware(a.mcpWorkers)
	return sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, &sdk.StreamableHTTPOptions{
		Stateless:           true,
		MaxRequestBodyBytes: maxJSON,
		// What it guards against is a page of another site that speaks with a user's
		// rights. Here rights come with a key that no browser adds by itself; and a
		// proxy on this machine, which names the outside host, would be refused.
		DisableLocalhostProtection: true,
	})
}

// serveMCP takes one message of an MCP client.
func (a *API) serveMCP(w http.ResponseWriter, r *request) error {
	if err := a.checkOrigin(r.Request); err != nil {
		return err
	}
	if err := wantJSON(r.Request); err != nil {
		return err
	}
	body, err := io.ReadAll(newPatientReader(w, r, maxJSON))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return store.Errorf(store.TooLarge, "a message has at most %d bytes", maxJSON)
	case err != nil:
		return store.Errorf(store.Invalid, "the body broke off")
	case bytes.HasPrefix(bytes.TrimSpace(body), []byte("[")):
		// The protocol has given them up; one could hold any number of calls.
		return store.Errorf(store.Invalid, "batches of messages are not taken: send one message a request")
	}
	out := newMCPWriter(w)
	req := r.WithContext(context.WithValue(r.Context(), mcpCallKey{}, &mcpCall{request: r, out: out}))
	req.Body = io.NopCloser(bytes.NewReader(body))
	a.mcp.ServeHTTP(out, req)
	return out.end()
}

// checkOrigin refuses requests of pages that are not this service's own, as the
// protocol wants: a page that reaches a service by a name of its own must not use
// it. Programs send no Origin.
func (a *API) checkOrigin(r *http.Request) error {
	origin := r.Header.Get("Origin")
	if origin == "" {
		return nil
	}
	from, err := url.Parse(origin)
	own, ownErr := url.Parse(a.cfg.BaseURL)
	if err == nil && ownErr == nil && from.Host != "" &&
		(strings.EqualFold(from.Host, own.Host) || isLoopback(from.Hostname()) && isLoopback(own.Hostname())) {
		return nil
	}
	return store.Errorf(store.Forbidden, "pages of other origins may not call this endpoint")
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

// An mcpWriter passes a response on. It keeps an event stream alive while nothing
// is said, and catches what the protocol's handler refuses in words of its own, to
// be answered as all refusals are.
type mcpWriter struct {
	http.ResponseWriter
	mu      sync.Mutex // one event at a time
	said    time.Time
	ended   bool         // the response is over
	refused int          // the status that was caught, 0 for none
	why     bytes.Buffer // with it
}

func newMCPWriter(w http.ResponseWriter) *mcpWriter {
	return &mcpWriter{ResponseWriter: w, said: time.Now()}
}

// Unwrap lets http.ResponseController find what it needs.
func (w *mcpWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Flush sends what is written.
func (w *mcpWriter) Flush() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.refused == 0 {
		_ = http.NewResponseController(w.ResponseWriter).Flush() // the client may have gone
	}
}

// WriteHeader begins the response, unless it is a refusal in plain text.
func (w *mcpWriter) WriteHeader(status int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if status >= 400 && strings.HasPrefix(w.Header().Get("Content-Type"), "text/plain") {
		w.refused = status
		return
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write writes one event, or what a refusal says.
func (w *mcpWriter) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.refused != 0 {
		return w.why.Write(b)
	}
	w.said = time.Now()
	return w.ResponseWriter.Write(b)
}

// keepAlive sends comments on an event stream that is silent for long, until stop
// is called: proxies give up on a connection that says nothing. It is for handlers
// of calls, since only when they begin are the headers set.
func (w *mcpWriter) keepAlive(silent, every time.Duration) (stop func()) {
	quit, done := make(chan struct{}), make(chan struct{})
	go func() { // ends with stop
		defer close(done)
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				w.comment(silent)
			case <-quit:
				return
			}
		}
	}()
	return func() { close(quit); <-done }
}

func (w *mcpWriter) comment(silent time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.ended && w.refused == 0 && time.Since(w.said) >= silent && strings.HasPrefix(w.Header().Get("Content-Type"), "text/event-stream") {
		_, _ = w.ResponseWriter.Write([]byte(": still at work\n\n")) // if the client has gone, its context says so
		_ = http.NewResponseController(w.ResponseWriter).Flush()
	}
}

// end says that the response is over, and gives the refusal that was caught, nil if
// there was none.
func (w *mcpWriter) end() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
	if w.refused == 0 {
		return nil
	}
	code := map[int]string{http.StatusUnsupportedMediaType: "unsupported_media_type", http.StatusRequestEntityTooLarge: "too_large"}[w.refused]
	if code == "" {
		code = "invalid_request"
	}
	w.Header().Del("Content-Type")
	return &problem{Status: w.refused, Code: code, Message: strings.TrimSpace(w.why.String())}
}
