package mcp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"journeyman/runner/tool"
	"journeyman/runner/workspace"
)

// A server is a configured server with its connection, if there is one.
type server struct {
	Server
	pool *Pool
	log  *slog.Logger

	known  atomic.Pointer[[]tool.RemoteTool] // the last list of tools; nil before the first list
	tasked atomic.Pointer[[]string]          // names of omitted tools that require tasks
	linked atomic.Bool                       // a result contained a resource
	keys   keychain

	tenants tenants // connections with the secrets of workers; unused if wants is empty

	mu        sync.Mutex // guards the fields below
	live      *session   // nil or ended if there is no connection
	dialing   *attempt   // nil unless an attempt is in progress
	failures  int        // consecutive failures
	notBefore time.Time  // earliest time of the next attempt
	lastErr   error      // error of the last failure
}

// An attempt is one try to connect, for which several calls may wait.
type attempt struct {
	done chan struct{} // closed when sess or err is set
	sess *session
	err  error
}

// maxBackoff is the maximum pause between attempts to connect.
const maxBackoff = 10 * time.Minute

// address returns the server's program or address without possible secrets.
func (s *server) address() string {
	if s.stdio() {
		return s.Command
	}
	u, err := url.Parse(s.URL)
	if err != nil { // impossible: checkURL has parsed it
		return "http"
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	return s.redact(u.String())
}

// maxMessage limits a server's error text for models and logs, in bytes.
const maxMessage = 1000

// safe returns the text of an error for models and logs: shortened, and without the server's
// secrets.
func (s *server) safe(text string) string { return shorten(s.redact(text), maxMessage) }

// patience is the maximum pause between attempts for which a call waits. If the pause is
// longer, the call returns the last error.
const patience = 2 * time.Second

// session returns a live connection. If there is none, it connects. During a pause after a
// failure it returns the last error immediately, unless the pause ends soon.
func (s *server) session(ctx context.Context) (*session, error) {
	for {
		s.mu.Lock()
		if s.live != nil && !s.live.ended() {
			defer s.mu.Unlock()
			return s.live, nil
		}
		// All calls that need the server share one attempt to connect.
		if s.dialing != nil || time.Until(s.notBefore) <= 0 {
			d, err := s.dialed()
			s.mu.Unlock()
			if err != nil {
				return nil, err
			}
			return d.wait(ctx)
		}
		// Unlock before waiting, so that other calls are not blocked.
		pause, err := time.Until(s.notBefore), s.lastErr
		s.mu.Unlock()
		if pause > patience {
			return nil, fmt.Errorf("%w (it is tried again in %s)", err, pause.Round(time.Second))
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// dialed returns the attempt in progress. If there is none, it begins one. s.mu is held.
func (s *server) dialed() (*attempt, error) {
	if s.dialing == nil {
		d := &attempt{done: make(chan struct{})}
		if !s.pool.begin(func() { s.dial(d) }) {
			return nil, errStopped
		}
		s.dialing = d
	}
	return s.dialing, nil
}

// wait returns the result of the attempt.
func (d *attempt) wait(ctx context.Context) (*session, error) {
	select {
	case <-d.done:
		return d.sess, d.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// dial makes the attempt d. After a successful attempt, it waits for the end of the connection
// and records it as a failure.
func (s *server) dial(d *attempt) {
	ctx, cancel := context.WithTimeout(s.pool.ctx, s.pool.cfg.Timing.Connect)
	begun := time.Now()
	d.sess, d.err = s.connect(ctx)
	// "context deadline exceeded" would not tell the operator which limit was exceeded.
	if d.err != nil && ctx.Err() != nil && s.pool.ctx.Err() == nil {
		d.err = fmt.Errorf("it did not begin to answer within %s", s.pool.cfg.Timing.Connect)
	}
	cancel() // the time limit is for connecting, not for the connection
	s.mu.Lock()
	s.dialing = nil
	if s.live = d.sess; d.err != nil {
		s.failed(d.err)
	}
	s.mu.Unlock()
	// Closed after live is set, so that a new call does not dial again.
	close(d.done)
	if d.err != nil {
		return
	}
	s.log.Info("connected to the MCP server", "took", time.Since(begun).Round(time.Millisecond))
	select {
	case <-d.sess.gone:
	case <-s.pool.ctx.Done():
		d.sess.end()
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	// Otherwise the pause of a server that always ends soon keeps growing.
	if time.Since(begun) >= s.pool.cfg.Timing.Stable {
		s.failures = 0
	}
	s.failed(errors.New("it has ended"))
}

// failed records a failure, and sets the following pause. s.mu is held.
func (s *server) failed(err error) {
	if s.pool.ctx.Err() != nil { // this program ended the connection
		return
	}
	s.lastErr = err
	pause := min(s.pool.cfg.Timing.Backoff<<min(s.failures, 20), maxBackoff) // a larger shift could overflow
	s.failures++
	s.notBefore = time.Now().Add(pause)
	s.log.Warn("the MCP server is not available", "err", err, "failures", s.failures, "pause", pause)
}

// permits reports whether the operator permits the tool with that name.
func (s *server) permits(name string) bool { return s.Tools == nil || slices.Contains(s.Tools, name) }

// tools returns the server's tools that the operator permits.
func (s *server) tools(ctx context.Context) ([]tool.RemoteTool, error) {
	for retried := false; ; retried = true {
		sess, err := s.session(ctx)
		if err != nil {
			return nil, err
		}
		tools, err := sess.tools(ctx)
		if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
			// The connection may be dead, and no call would notice that if there are no tools.
			s.pool.begin(func() { sess.probe(s.pool.ctx) })
		}
		if err == nil || retried || ctx.Err() != nil || !lost(err) {
			return tools, err
		}
		sess.end() // the connection had already ended: try a new one
	}
}

// call makes one call of a tool. from is the token of the calling tool call.
func (s *server) call(ctx context.Context, name, from string, input []byte) (result, error) {
	return s.ask(ctx, name, func(ctx context.Context, sess *session, moved func()) (result, error) {
		return sess.call(ctx, name, from, input, moved)
	})
}

// ask makes one request for the tool with that name, with a connection and a time limit. f
// makes the request, and calls moved when the server reports progress.
func (s *server) ask(ctx context.Context, name string,
	f func(ctx context.Context, sess *session, moved func()) (result, error)) (result, error) {
	if !s.permits(name) {
		return result{}, tool.Errorf("the tool %q of the MCP server %q is no longer allowed", name, s.Name)
	}
	timed, limit := s.withLimit(ctx)
	defer limit.stop()
	// Repeat a call only if the server has certainly not processed it, and only once. Any other
	// call may have taken effect.
	for retried := false; ; retried = true {
		sess, err := s.session(timed)
		if err != nil && ctx.Err() != nil {
			return result{}, context.Cause(ctx)
		}
		if err != nil {
			return result{}, tool.Errorf("the MCP server %q is not available: %s", s.Name, s.safe(err.Error()))
		}
		r, err := f(timed, sess, limit.extend)
		if err == nil {
			return r, nil
		}
		if missing(err) && !retried {
			sess.end() // the server does not know the session, so it has not processed the call
			continue
		}
		return result{}, s.callError(ctx, timed, sess, err)
	}
}

// callError returns an *Error that tells the model why a call failed, and whether it may have
// taken effect. It returns ctx's cause if ctx has ended.
func (s *server) callError(ctx, timed context.Context, sess *session, err error) error {
	var toolErr *tool.Error
	answer := refusal(err)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, &toolErr):
		return toolErr
	case errors.Is(context.Cause(timed), errTimeout):
		// A slow call alone must not end the connection: other calls may use it.
		s.pool.begin(func() { sess.probe(s.pool.ctx) })
		return tool.Errorf("the MCP server %q did not answer within %s; "+
			"the call was cancelled and may have taken effect", s.Name, s.Timeout)
	case errors.Is(context.Cause(timed), errTooLong):
		return tool.Errorf("the MCP server %q reported progress for %s without an end; "+
			"the call was cancelled and may have taken effect", s.Name, s.pool.cfg.Timing.Longest)
	case s.wantsSignIn():
		return tool.Errorf("the MCP server %q did not make the call: %s", s.Name, errSignIn)
	case answer != nil:
		return tool.Errorf("the MCP server %q refused the call: %s", s.Name, s.safe(answer.Message))
	}
	// The connection may be about to end. After settle, the next call notices that.
	if sess.settle(); lost(err) {
		return tool.Errorf("the MCP server %q ended during the call, which may have taken effect", s.Name)
	}
	return tool.Errorf("the call of the MCP server %q failed, and may have taken effect: %s",
		s.Name, s.safe(err.Error()))
}

// shorten returns a text in valid UTF-8, cut to at most n bytes. It adds an ellipsis to a cut
// text.
func shorten(text string, n int) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) <= n {
		return text
	}
	const ellipsis = "…"
	return workspace.Cut(text, n-len(ellipsis)) + ellipsis
}
