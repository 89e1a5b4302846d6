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

	"journeyman/runner/sandbox"
	"journeyman/runner/tool"
)

// A server is a configured server with its connection, if there is one.
type server struct {
	Server
	pool *Pool
	log  *slog.Logger

	known  atomic.Pointer[[]tool.RemoteTool] // its last list of tools; nil before the first
	tasked atomic.Pointer[[]string]          // names of tools that are left out: they need tasks
	linked atomic.Bool                       // a result has named a resource
	keys   keychain

	tenants tenants // connections with the secrets of workers; empty if wants is

	inUse sync.RWMutex // held for reading during a call; see retire

	mu        sync.Mutex // guards the fields below
	retired   bool       // the configuration does not have it any more: it connects no more
	live      *session   // nil or ended if there is no connection
	dialing   *dial      // nil unless an attempt is under way
	failures  int        // failures in a row
	notBefore time.Time  // earliest time of the next attempt
	lastErr   error      // error of the last failure
}

// A dial is one attempt to connect, which several calls may wait for.
type dial struct {
	done chan struct{} // closed when sess or err is set
	sess *session
	err  error
}

// maxBackoff is the longest pause between attempts to connect.
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
	return s.without(u.String())
}

// maxMessage is the most bytes of a server's error that models and logs see.
const maxMessage = 1000

// safe returns the text of an error in the form that models and logs may see: without the
// server's secrets, and shortened.
func (s *server) safe(text string) string { return shorten(s.without(text), maxMessage) }

// patience is the longest pause between attempts that a call waits for. A call returns the
// last error rather than wait for a longer pause.
const patience = 2 * time.Second

// session returns a live connection, and connects if there is none. During a pause after a
// failure it returns the last error at once, unless the pause ends soon.
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
		// The lock is released before the wait, so that the wait blocks no other call.
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

// dialed returns the attempt that is under way, and begins one if there is none. s.mu is
// held.
func (s *server) dialed() (*dial, error) {
	if s.retired {
		return nil, errRetired
	}
	if s.dialing == nil {
		d := &dial{done: make(chan struct{})}
		if !s.pool.begin(func() { s.dial(d) }) {
			return nil, errStopped
		}
		s.dialing = d
	}
	return s.dialing, nil
}

// wait returns the result of the attempt.
func (d *dial) wait(ctx context.Context) (*session, error) {
	select {
	case <-d.done:
		return d.sess, d.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// dial makes the attempt d. Once connected, it waits for the end of the connection, to record
// that as a failure.
func (s *server) dial(d *dial) {
	ctx, cancel := context.WithTimeout(s.pool.ctx, s.pool.cfg.Timing.Connect)
	begun := time.Now()
	d.sess, d.err = s.connect(ctx)
	// "context deadline exceeded" would not tell the operator which limit was reached.
	if d.err != nil && ctx.Err() != nil && s.pool.ctx.Err() == nil {
		d.err = fmt.Errorf("it did not begin to answer within %s", s.pool.cfg.Timing.Connect)
	}
	cancel() // the time limit is for connecting, not for the connection
	s.mu.Lock()
	s.dialing = nil
	if s.live = d.sess; d.err != nil {
		s.failed(d.err)
	}
	late := d.err == nil && s.retired
	s.mu.Unlock()
	if late {
		d.sess.end()
	}
	// Closed after live is set, so that a call that begins now does not dial again.
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
	// The pause of a server that ends soon after each start keeps growing.
	if time.Since(begun) >= s.pool.cfg.Timing.Stable {
		s.failures = 0
	}
	s.failed(errors.New("it has ended"))
}

// failed records a failure, and sets the pause that follows it. s.mu is held.
func (s *server) failed(err error) {
	if s.pool.ctx.Err() != nil || s.retired { // the connection was ended here
		return
	}
	s.lastErr = err
	pause := min(s.pool.cfg.Timing.Backoff<<min(s.failures, 20), maxBackoff) // a larger shift could overflow
	s.failures++
	s.notBefore = time.Now().Add(pause)
	s.log.Warn("the MCP server is not available", "err", err, "failures", s.failures, "pause", pause)
}

// permits reports whether the operator permits the tool of that name.
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
			// The connection may be dead, and without tools no call will follow that notices it.
			s.pool.begin(func() { sess.probe(s.pool.ctx) })
		}
		if err == nil || retried || ctx.Err() != nil || !lost(err) {
			return tools, err
		}
		sess.end() // the connection had ended unnoticed: try a new one
	}
}

// call makes one call of a tool. from is the token of the calling tool call.
func (s *server) call(ctx context.Context, name, from string, input []byte) (result, error) {
	return s.ask(ctx, name, func(ctx context.Context, sess *session, moved func()) (result, error) {
		return sess.call(ctx, name, from, input, moved)
	})
}

// ask makes one request for the tool of that name, with a connection and a time limit. f
// makes the request, and calls moved when the server reports progress.
func (s *server) ask(ctx context.Context, name string,
	f func(ctx context.Context, sess *session, moved func()) (result, error)) (result, error) {
	if !s.permits(name) {
		return result{}, tool.Errorf("the tool %q of the MCP server %q is no longer allowed", name, s.Name)
	}
	s.inUse.RLock()
	defer s.inUse.RUnlock()
	timed, limit := s.withLimit(ctx)
	defer limit.stop()
	// Only a call that the server has certainly not made is repeated, and only once: any other
	// one may have taken effect.
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
			sess.end() // the server does not know the connection, so it has not made the call
			continue
		}
		return result{}, s.callError(ctx, timed, sess, err)
	}
}

// callError returns an *Error that tells the model how a call failed, and whether it may have
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
		// A slow call alone is no reason to end the connection: other calls may use it.
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

// shorten returns a text in valid UTF-8, cut to at most n bytes. A text that was cut ends
// with an ellipsis.
func shorten(text string, n int) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) <= n {
		return text
	}
	const ellipsis = "…"
	return sandbox.Cut(text, n-len(ellipsis)) + ellipsis
}
