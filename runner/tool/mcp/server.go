package mcp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"sync"
	"time"

	"journeyman/runner/tool"
)

// A server is a configured server and the connection to it, if there is one.
type server struct {
	Server
	pool *Pool
	log  *slog.Logger

	mu        sync.Mutex
	live      *session
	dialing   *dial
	failures  int       // in a row
	notBefore time.Time // it is not tried before
	lastErr   error     // of the last failure
}

// A dial is an attempt to connect.
type dial struct {
	done chan struct{} // closed when session or err is set
	sess *session
	err  error
}

// maxBackoff is the longest pause between attempts: what fails for ever is tried
// this often.
const maxBackoff = 10 * time.Minute

// address is where the server is, as it may be shown.
func (s *server) address() string {
	if s.stdio() {
		return s.Command
	}
	u, err := url.Parse(s.URL)
	if err != nil { // it was checked
		return "http"
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	return s.without(u.String())
}

// patience is how long a pause between attempts is waited out by who needs the
// server.
const patience = 2 * time.Second

// session gives a live connection, or makes one. While the server is down it fails
// at once, unless the pause after the last failure is short.
func (s *server) session(ctx context.Context) (*session, error) {
	for {
		s.mu.Lock()
		if s.live != nil && !s.live.ended() {
			defer s.mu.Unlock()
			return s.live, nil
		}
		if s.dialing != nil || time.Until(s.notBefore) <= 0 {
			d, err := s.dialed()
			s.mu.Unlock()
			if err != nil {
				return nil, err
			}
			return d.wait(ctx)
		}
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

// dialed is the attempt under way, begun where there is none. s.mu is held.
func (s *server) dialed() (*dial, error) {
	if s.dialing == nil {
		d := &dial{done: make(chan struct{})}
		if !s.pool.begin(func() { s.dial(d) }) {
			return nil, errStopped
		}
		s.dialing = d
	}
	return s.dialing, nil
}

// wait gives what the attempt came to.
func (d *dial) wait(ctx context.Context) (*session, error) {
	select {
	case <-d.done:
		return d.sess, d.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// dial connects and, where that works, waits for the connection's end.
func (s *server) dial(d *dial) {
	ctx, cancel := context.WithTimeout(s.pool.ctx, s.pool.cfg.Timing.Connect)
	begun := time.Now()
	d.sess, d.err = s.connect(ctx)
	if d.err != nil && ctx.Err() != nil && s.pool.ctx.Err() == nil {
		d.err = fmt.Errorf("it did not begin to answer within %s", s.pool.cfg.Timing.Connect)
	}
	cancel()
	s.mu.Lock()
	s.dialing = nil
	if s.live = d.sess; d.err != nil {
		s.failed(d.err)
	}
	s.mu.Unlock()
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
	if time.Since(begun) >= s.pool.cfg.Timing.Stable {
		s.failures = 0
	}
	s.failed(errors.New("it has ended"))
}

// failed notes a failure, after which there is a pause. s.mu is held.
func (s *server) failed(err error) {
	if s.pool.ctx.Err() != nil {
		return
	}
	s.lastErr = err
	pause := min(s.pool.cfg.Timing.Backoff<<min(s.failures, 20), maxBackoff)
	s.failures++
	s.notBefore = time.Now().Add(pause)
	s.log.Warn("the MCP server is not there", "err", err, "failures", s.failures, "pause", pause)
}

// offers says whether a worker may ever have the server's tool of that name.
func (s *server) offers(name string) bool { return s.Tools == nil || slices.Contains(s.Tools, name) }

// tools gives what the server describes and offers.
func (s *server) tools(ctx context.Context) ([]tool.Offered, error) {
	for again := false; ; again = true {
		sess, err := s.session(ctx)
		if err != nil {
			return nil, err
		}
		tools, err := sess.tools(ctx)
		if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
			s.pool.begin(func() { sess.probe(s.pool.ctx) }) // without tools there is no call that would find it dead
		}
		if err == nil || again || ctx.Err() != nil || !lost(err) {
			return tools, err
		}
		sess.end() // a connection that had ended unnoticed
	}
}

// call carries one call out.
func (s *server) call(ctx context.Context, name string, input []byte) (result, error) {
	if !s.offers(name) {
		return result{}, tool.Errorf("the tool %q of the MCP server %q is not allowed any more", name, s.Name)
	}
	timed, cancel := context.WithTimeoutCause(ctx, s.Timeout, errTimeout)
	defer cancel()
	for again := false; ; again = true {
		sess, err := s.session(timed)
		if err != nil && ctx.Err() != nil {
			return result{}, context.Cause(ctx)
		}
		if err != nil {
			return result{}, tool.Errorf("the MCP server %q is not there: %s", s.Name, cut(s.without(err.Error())))
		}
		r, err := sess.call(timed, name, input)
		if err == nil {
			return r, nil
		}
		if missing(err) && !again {
			sess.end() // the server has forgotten the connection, and so has not made the call
			continue
		}
		return result{}, s.callError(ctx, timed, sess, err)
	}
}

// errTimeout ends a call that takes too long.
var errTimeout = errors.New("the call takes too long")

// callError tells the model what became of a call. It is ctx's cause once that has
// ended.
func (s *server) callError(ctx, timed context.Context, sess *session, err error) error {
	var told *tool.Error
	answer := refusal(err)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, &told):
		return told
	case errors.Is(context.Cause(timed), errTimeout):
		s.pool.begin(func() { sess.probe(s.pool.ctx) })
		return tool.Errorf("the MCP server %q did not answer within %s; the call was cancelled and may have taken effect", s.Name, s.Timeout)
	case answer != nil:
		return tool.Errorf("the MCP server %q refused the call: %s", s.Name, cut(s.without(answer.Message)))
	}
	if sess.settle(); lost(err) {
		return tool.Errorf("the MCP server %q ended during the call, which may have taken effect", s.Name)
	}
	return tool.Errorf("the call of the MCP server %q failed, and may have taken effect: %s", s.Name, cut(s.without(err.Error())))
}
