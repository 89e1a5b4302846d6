// Package serve is how the server meets its clients: listeners that limit their connections, trusted proxies,
// certificates, and the limits of reading and writing. It knows no resource and no caller: what a refused client
// reads is given to NewServer. It may import runner/share and the errors of store.
package serve

import (
	"container/list"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"journeyman/runner/share"
	"journeyman/store/db"
)

// A Listener counts its connections, in all and by address. It turns away
// connections beyond the limits: a few at a time get an answer with the reason, the others
// are closed.
type Listener struct {
	net.Listener
	shares  *share.Shares
	proxies Proxies
	noted   *share.Refusals // counts refused connections
	refused chan struct{}   // limits how many refused connections get an answer at once

	mu       sync.Mutex // guards the lists
	idle     *list.List // of *limitedConn: without a request, or answered while the client still sends; longest first
	answered *list.List // of refused ones: answered while the client still sends; longest first
}

const (
	maxRefused = 64              // refused connections that get an answer at once
	refusedFor = 3 * time.Second // how long a refused connection lives at most until its answer
)

// NewListener creates a listener for ln that accepts at most most connections, and half as many from one
// address. Trusted proxies have no limit, because they carry the connections of all clients. It logs the refused
// connections and adds them to refused.
func NewListener(ln net.Listener, most int, proxies Proxies, log *slog.Logger, refused *atomic.Int64) *Listener {
	return &Listener{Listener: ln,
		noted:  &share.Refusals{Listener: "http", Log: log, Count: refused, Now: time.Now},
		shares: share.New("connections", "too_many_connections", share.LimitsOf(most)), proxies: proxies,
		refused: make(chan struct{}, maxRefused), idle: list.New(), answered: list.New()}
}

// Accept returns the next connection. It marks a refused one: see answerMarked.
func (l *Listener) Accept() (net.Conn, error) {
	for {
		raw, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		release, why := l.admit(raw)
		if why == nil {
			return &limitedConn{Conn: raw, listener: l, release: release}, nil
		}
		l.noted.Add(why.Error())
		if l.takeRefused() {
			// A client that sends nothing must not delay the answers to others.
			limit := time.AfterFunc(refusedFor, func() { _ = raw.Close() })
			return &limitedConn{Conn: raw, listener: l, why: why, limit: limit, release: func() { limit.Stop(); <-l.refused }}, nil
		}
		_ = raw.Close()
	}
}

// takeRefused takes the place of a refused connection that gets an answer. An answer needs a goroutine and a
// connection, so only a few get one. If all places are taken, it first closes a connection that has its answer.
func (l *Listener) takeRefused() bool {
	for {
		select {
		case l.refused <- struct{}{}:
			return true
		default:
		}
		if !l.closeFirst(l.answered) {
			return false
		}
	}
}

// admit takes the share of a connection. If all shares are taken, it first closes an idle
// connection.
func (l *Listener) admit(raw net.Conn) (release func(), why error) {
	h := share.Holder{Address: l.holder(raw)}
	release, why = l.shares.Take(h)
	if db.IsKind(why, db.Busy) && l.closeFirst(l.idle) {
		return l.shares.Take(h)
	}
	return release, why
}

// note updates the list of idle connections when the server reports a new state.
func (l *Listener) note(c *limitedConn, state http.ConnState) {
	l.mu.Lock()
	defer l.mu.Unlock()
	in := l.idle
	if c.why != nil {
		in = l.answered
	}
	if c.idle != nil {
		in.Remove(c.idle)
		c.idle = nil
	}
	if state == http.StateIdle {
		c.idle = in.PushBack(c)
	}
}

// closeFirst closes the connection that has been in a list for the longest time. Its client opens
// another one for its next request. It returns false if there is none.
func (l *Listener) closeFirst(in *list.List) bool {
	l.mu.Lock()
	first := in.Front()
	if first == nil {
		l.mu.Unlock()
		return false
	}
	c := first.Value.(*limitedConn)
	in.Remove(first)
	c.idle = nil
	l.mu.Unlock()
	_ = c.Close() // without the lock, which note takes
	return true
}

// holder returns the address that a connection is counted for, "" for a trusted proxy.
func (l *Listener) holder(c net.Conn) string {
	host, _, err := net.SplitHostPort(c.RemoteAddr().String())
	if err != nil {
		return ""
	}
	if ip, err := netip.ParseAddr(host); err == nil && l.proxies.trusted(ip) {
		return ""
	}
	return host
}

// A limitedConn is a connection that releases its share when it is closed.
type limitedConn struct {
	net.Conn
	listener *Listener
	idle     *list.Element // in a list of the listener, whose mu guards it
	why      error         // why it is refused; nil for accepted ones
	limit    *time.Timer   // closes a refused one; nil for accepted ones
	release  func()
	once     sync.Once

	ownDeadline atomic.Bool  // the handler limits its writes itself
	armed       atomic.Int64 // when the deadline was set, in Unix nanoseconds
}

// Close closes the connection and releases its share.
func (c *limitedConn) Close() error {
	defer c.once.Do(c.release)
	return c.Conn.Close()
}

// readsOn makes the connection one that may be closed for another one: its client has the answer and still sends,
// for at most within. done ends this.
func (c *limitedConn) readsOn(within time.Duration) (done func()) {
	if c.limit != nil {
		c.limit.Reset(within)
	}
	c.listener.note(c, http.StateIdle)
	return func() { c.listener.note(c, http.StateActive) }
}

// A client that accepts no byte of writePiece bytes within writeIn is disconnected. The duration of
// a whole answer is not limited.
const (
	writeIn    = time.Minute
	writePiece = 128 << 10
)

// arm sets the deadline of the next piece, unless the handler has set its own. Setting a deadline
// costs as much as a short write, so one deadline serves for a tenth of writeIn.
func (c *limitedConn) arm() {
	now := time.Now()
	if c.ownDeadline.Load() || now.UnixNano()-c.armed.Load() < int64(writeIn/10) {
		return
	}
	c.armed.Store(now.UnixNano())
	_ = c.Conn.SetWriteDeadline(now.Add(writeIn)) // a closed connection fails at the write
}

// SetWriteDeadline sets the handler's own deadline; the zero time ends it.
func (c *limitedConn) SetWriteDeadline(t time.Time) error {
	c.ownDeadline.Store(!t.IsZero())
	c.armed.Store(0)
	return c.Conn.SetWriteDeadline(t)
}

// SetDeadline sets the deadlines of reads and writes.
func (c *limitedConn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

// Write writes b in pieces, each with a deadline.
func (c *limitedConn) Write(b []byte) (n int, err error) {
	for {
		c.arm()
		piece := b[n:min(len(b), n+writePiece)]
		m, err := c.Conn.Write(piece)
		if n += m; err != nil || n == len(b) {
			return n, err
		}
	}
}

// CloseWrite closes the sending half, so that the peer can read the answer to its end.
func (c *limitedConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// connKey is the context key of the limited connection that a request came over.
type connKey struct{}

// limitedConnOf returns the limited connection below c, or nil if there is none.
func limitedConnOf(c net.Conn) *limitedConn {
	if t, ok := c.(interface{ NetConn() net.Conn }); ok { // TLS wraps the limited connection
		c = t.NetConn()
	}
	own, _ := c.(*limitedConn)
	return own
}

// connOf returns the limited connection that a request came over, or nil if there is none.
func connOf(r *http.Request) *limitedConn {
	c, _ := r.Context().Value(connKey{}).(*limitedConn)
	return c
}

// markConn stores the limited connection in the context of its requests.
func markConn(ctx context.Context, c net.Conn) context.Context {
	if own := limitedConnOf(c); own != nil {
		return context.WithValue(ctx, connKey{}, own)
	}
	return ctx
}

// noteState reports the state of a connection to its listener.
func noteState(c net.Conn, state http.ConnState) {
	if own := limitedConnOf(c); own != nil {
		own.listener.note(own, state)
	}
}

// streamBuffer is the memory, in bytes, that the kernel may hold for the connection of an
// event stream. By default it holds megabytes for a client that does not read.
const streamBuffer = 128 << 10

// LimitBuffer limits the kernel's memory for the connection of a stream. It leaves HTTP/2 alone:
// such a connection also carries other responses.
func LimitBuffer(r *http.Request) {
	c := connOf(r)
	if c == nil || r.ProtoMajor != 1 {
		return
	}
	if tcp, ok := c.Conn.(*net.TCPConn); ok {
		_ = tcp.SetWriteBuffer(streamBuffer) // after a failure, the stream only needs more memory
	}
}

// answerMarked refuses requests on refused connections, and passes all others to h. It answers
// health checks on any connection.
func answerMarked(h http.Handler, refuse Refusal) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := connOf(r)
		if c == nil || c.why == nil {
			h.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Connection", "close") // the client's next connection may be accepted
		if r.URL.Path == "/healthz" || r.URL.Path == "/readyz" {
			h.ServeHTTP(w, r)
			return
		}
		refuse(w, c.why)
	})
}
