package handlers

import (
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
)

// takenConns are the connections that event streams have taken over from a server.
type takenConns struct {
	mu       sync.Mutex // guards the fields below
	all      map[*takenConn]connUse
	stopping bool
	gone     chan struct{} // closed when all are gone; only after stop
}

// connUse is the current use of a takenConn.
type connUse int

const (
	streaming connUse = iota
	waiting           // for the client's next request
)

// A takenConn is the connection of one stream, taken over from net/http. Its methods belong to
// the goroutine that writes the stream, unless they say otherwise.
type takenConn struct {
	gate    *gateConn
	conn    net.Conn // gate, or TLS above it
	server  *Server
	chunked bool           // false for HTTP/1.0, where the end of the connection ends the stream
	keep    bool           // the client may send another request over the connection
	buffers *streamBuffers // nil while nothing is written
	failed  bool           // a write has failed

	over  chan struct{} // closed when nothing more is written
	early []byte        // the beginning of the next request; belongs to attend
	next  [1]byte
}

// A Server is an HTTP server that also owns the connections of its event streams, which http.Server
// no longer tracks.
type Server struct {
	*http.Server
	taken   *takenConns
	buffers sync.Pool // of *streamBuffers
}

// serverKey is the context key of the Server that a request came to.
type serverKey struct{}

func newTakenConns() *takenConns {
	return &takenConns{all: map[*takenConn]connUse{}, gone: make(chan struct{})}
}

// use stores the current use of a connection. It returns false if the server stops.
func (t *takenConns) use(c *takenConn, use connUse) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.stopping {
		t.all[c] = use
	}
	return !t.stopping
}

// remove removes a connection, and returns its last use.
func (t *takenConns) remove(c *takenConn) connUse {
	t.mu.Lock()
	defer t.mu.Unlock()
	use, known := t.all[c]
	delete(t.all, c)
	if known && t.stopping && len(t.all) == 0 {
		close(t.gone)
	}
	return use
}

// stop closes the connections without a stream. The others close after their stream. The channel
// closes when all have closed.
func (t *takenConns) stop() <-chan struct{} {
	t.mu.Lock()
	if !t.stopping {
		t.stopping = true
		if len(t.all) == 0 {
			close(t.gone)
		}
	}
	t.mu.Unlock()
	t.cut(func(use connUse) bool { return use == waiting })
	return t.gone
}

// cut closes the connections whose use makes which return true.
func (t *takenConns) cut(which func(connUse) bool) {
	t.mu.Lock()
	var list []*takenConn
	for c, use := range t.all {
		if which(use) {
			list = append(list, c)
		}
	}
	t.mu.Unlock()
	for _, c := range list {
		_ = c.gate.Close() // below TLS, whose own Close would write
	}
}

// resumed returns the connection for net/http, from the next request on.
func (c *takenConn) resumed() net.Conn {
	switch conn := c.conn.(type) {
	case *gateConn:
		conn.early = append(c.early, conn.early...)
	case *tls.Conn:
		return &resumedTLS{conn, c.early}
	case *resumedTLS:
		conn.early = append(c.early, conn.early...)
	}
	return c.conn
}

// A resumedTLS is a TLS connection of which a takenConn has read the beginning of a request.
type resumedTLS struct {
	*tls.Conn
	early []byte
}

// Read returns the bytes that were read ahead, and then reads from the connection.
func (c *resumedTLS) Read(b []byte) (int, error) {
	if len(c.early) > 0 {
		n := copy(b, c.early)
		c.early = c.early[n:]
		return n, nil
	}
	return c.Conn.Read(b)
}

// A oneConn is a listener with one connection, which it accepts at once. A server that stops
// closes it from another goroutine.
type oneConn struct{ conn atomic.Pointer[net.Conn] }

func listenOnce(c net.Conn) *oneConn {
	l := &oneConn{}
	l.conn.Store(&c)
	return l
}

// Accept returns the connection. The second call returns an error, which ends the server's loop.
func (l *oneConn) Accept() (net.Conn, error) {
	if c := l.conn.Swap(nil); c != nil {
		return *c, nil
	}
	return nil, net.ErrClosed
}

// Close closes the connection, unless it was accepted.
func (l *oneConn) Close() error {
	if c := l.conn.Swap(nil); c != nil {
		return (*c).Close()
	}
	return nil
}

// Addr returns an empty address: nobody dials the listener.
func (*oneConn) Addr() net.Addr { return &net.TCPAddr{} }
