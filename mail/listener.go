package mail

import (
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"journeyman/runner/share"
	"journeyman/store"
	"journeyman/store/db"
)

// A listener limits the number of connections, in total and from one network. It
// also limits the time and the commands of each connection, because the SMTP library limits
// neither.
type listener struct {
	net.Listener
	limits Limits
	shares *share.Shares // of the connections

	refusals *share.Refusals         // counts refused connections; may be nil
	passOf   func(addr string) *pass // of a connection from an address; nil: none needs slots

	mu     sync.Mutex       // guards the fields below
	open   map[*conn]func() // each releases the connection's share
	closed bool             // only connections that send a mail may continue
}

func newListener(ln net.Listener, limits Limits) *listener {
	return &listener{Listener: ln, limits: limits, open: map[*conn]func(){},
		shares: share.New("connections", "", share.Limits{All: limits.Connections, Address: limits.PerAddress})}
}

// refuseTime is how long the server tries to send the reason to a refused peer.
const refuseTime = time.Second

// Accept waits for the next connection within the limits.
func (l *listener) Accept() (net.Conn, error) {
	for {
		raw, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		addr := hostOf(raw.RemoteAddr())
		c := &conn{Conn: raw, listener: l, addr: addr, network: store.NetworkOf(addr), begun: time.Now()}
		if why := l.admit(c); why != "" {
			l.refusals.Add(why)
			// The text fits into the socket's buffer, so this loop does not wait for the peer.
			_ = raw.SetWriteDeadline(time.Now().Add(refuseTime))
			_, _ = fmt.Fprintf(raw, "421 %s, try again later\r\n", why)
			_ = raw.Close()
			continue
		}
		if l.passOf != nil {
			c.pass = l.passOf(addr)
		}
		return c, nil
	}
}

// admit counts a connection. It returns a reason if the connection exceeds a limit.
func (l *listener) admit(c *conn) (why string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return "4.3.2 closing"
	}
	release, err := l.shares.Take(share.Holder{Address: c.addr})
	switch {
	case db.IsKind(err, db.Busy):
		return "4.7.0 too many connections"
	case err != nil:
		return "4.7.0 too many connections from your address"
	}
	l.open[c] = release
	return ""
}

func (l *listener) leave(c *conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if release := l.open[c]; release != nil { // the library closes some connections twice
		release()
		delete(l.open, c)
	}
}

// readDeadline returns the time until which a connection may wait for the next byte.
func (l *listener) readDeadline(c *conn) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if l.closed && !c.busy.Load() {
		return now
	}
	idle := l.limits.Idle
	if len(l.open) > l.limits.Connections/2 {
		idle = min(idle, 30*time.Second) // close silent connections sooner, because other peers need them
	}
	if end := c.begun.Add(l.limits.Total); end.Before(now.Add(idle)) {
		return end
	}
	return now.Add(idle)
}

func (l *listener) isClosed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.closed
}

// closeIdle closes the listener and ends the connections that are not sending a mail.
func (l *listener) closeIdle() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	// Shutdown of the library closes only listeners that it already serves.
	_ = l.Close()
	for c := range l.open {
		if !c.busy.Load() {
			_ = c.SetDeadline(time.Now()) // ends the Read; the session then answers 421
		}
	}
}

// closeAll ends every connection.
func (l *listener) closeAll() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.open {
		_ = c.Conn.Close() // Close would wait for l.mu
	}
}

// A conn is a connection of a listener. Each Read renews the idle time-out. After a failed Read, all
// further ones fail, too: the rest of an interrupted mail must not be read as commands.
type conn struct {
	net.Conn
	listener *listener
	addr     string
	network  string // the one to which addr belongs
	pass     *pass  // nil if it needs no slots
	begun    time.Time
	commands atomic.Int64 // lines answered since the last accepted mail
	busy     atomic.Bool  // a mail is being received
	failed   error        // of the last Read; only the reading goroutine uses it
}

var errTooMuch = errors.New("too many commands without a mail")

// Read reads within the limits of the listener.
func (c *conn) Read(b []byte) (n int, err error) {
	defer c.pass.pause()()
	switch {
	case c.failed != nil:
		return 0, c.failed
	case c.commands.Load() > int64(c.listener.limits.Commands):
		err = errTooMuch
	default:
		if err = c.SetReadDeadline(c.listener.readDeadline(c)); err == nil {
			n, err = c.Conn.Read(b)
		}
	}
	c.failed = err
	return n, err
}

// answerTime is how long a peer may take to receive an answer.
const answerTime = time.Minute

// The library's answer to a peer that is silent for too long, and the answer of a server that
// stops. The library has no other reason for ending a session between two commands.
const (
	idleAnswer     = "421 4.4.2 Idle timeout, bye bye\r\n"
	stoppingAnswer = "421 4.3.2 The server stops, try again later\r\n"
)

// Write sends an answer and counts it.
func (c *conn) Write(b []byte) (int, error) {
	defer c.pass.pause()()
	c.commands.Add(1) // each command has an answer of at least one line
	if err := c.SetWriteDeadline(time.Now().Add(answerTime)); err != nil {
		return 0, err
	}
	if string(b) == idleAnswer && c.listener.isClosed() {
		_, err := io.WriteString(c.Conn, stoppingAnswer)
		return len(b), err
	}
	return c.Conn.Write(b)
}

// Close ends the connection and releases its count.
func (c *conn) Close() error {
	c.listener.leave(c)
	c.pass.close()
	return c.Conn.Close()
}

// hostOf returns an address without its port.
func hostOf(a net.Addr) string {
	host, _, err := net.SplitHostPort(a.String())
	if err != nil {
		return a.String()
	}
	return host
}

// isLoopback reports whether an address belongs to this machine.
func isLoopback(addr string) bool {
	ip := net.ParseIP(addr)
	return ip != nil && ip.IsLoopback()
}
