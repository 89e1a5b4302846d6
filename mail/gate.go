package mail

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// A gate is a listener that counts its connections, in all and by address, turns
// away those beyond the limits, and watches the time and commands of the others:
// the SMTP library has limits for neither.
type gate struct {
	net.Listener
	limits Limits

	mu     sync.Mutex // guards what is below
	open   map[*conn]struct{}
	byAddr map[string]int
	closed bool // from then on, who is not in the middle of a mail is cut off
}

func newGate(ln net.Listener, limits Limits) *gate {
	return &gate{Listener: ln, limits: limits, open: map[*conn]struct{}{}, byAddr: map[string]int{}}
}

// refuseTime is how long a peer that is turned away may take to hear it.
const refuseTime = time.Second

// Accept gives the next connection within the limits.
func (g *gate) Accept() (net.Conn, error) {
	for {
		raw, err := g.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c := &conn{Conn: raw, gate: g, addr: hostOf(raw.RemoteAddr()), begun: time.Now()}
		if why := g.admit(c); why != "" {
			// What fits into the socket's buffer is sent without waiting for the peer.
			_ = raw.SetWriteDeadline(time.Now().Add(refuseTime))
			_, _ = fmt.Fprintf(raw, "421 4.7.0 %s, try again later\r\n", why)
			_ = raw.Close()
			continue
		}
		return c, nil
	}
}

// admit counts a connection, or says why it is one too many.
func (g *gate) admit(c *conn) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.closed:
		return "closing"
	case len(g.open) >= g.limits.Connections:
		return "too many connections"
	case g.byAddr[c.addr] >= g.limits.PerAddress:
		return "too many connections from your address"
	}
	g.open[c] = struct{}{}
	g.byAddr[c.addr]++
	return ""
}

func (g *gate) leave(c *conn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, ok := g.open[c]; !ok {
		return
	}
	delete(g.open, c)
	if g.byAddr[c.addr]--; g.byAddr[c.addr] == 0 {
		delete(g.byAddr, c.addr)
	}
}

// idle is how long a peer may keep silent: less when others wait for its place.
func (g *gate) idle() time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.open) > g.limits.Connections/2 {
		return min(g.limits.Idle, 30*time.Second)
	}
	return g.limits.Idle
}

// closeIdle takes no more connections and ends those that are not sending a mail.
func (g *gate) closeIdle() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	_ = g.Close() // the library only knows listeners that it has begun to serve
	for c := range g.open {
		if !c.busy.Load() {
			_ = c.SetDeadline(time.Now()) // wakes its reader, which then says goodbye
		}
	}
}

// closeAll ends every connection.
func (g *gate) closeAll() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for c := range g.open {
		_ = c.Conn.Close()
	}
}

func (g *gate) isClosed() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.closed
}

// A conn is a connection with an idle time-out that each read renews, an end, and
// a count of the commands that led to nothing. A read that has failed fails for
// ever: the rest of a mail that broke off must not be read as commands.
//
// Answers go out together when the peer is listened to again: the library writes
// each line by itself, and a peer that says EHLO gets ten.
type conn struct {
	net.Conn
	gate     *gate
	addr     string
	begun    time.Time
	commands atomic.Int64 // answers since the last accepted mail
	busy     atomic.Bool  // a mail is being received
	failed   error        // of the goroutine that reads and writes
	out      []byte       // answers that have not gone out; of the same
	once     sync.Once
}

var errTooMuch = errors.New("too many commands without a mail")

// Read reads within the time-outs.
func (c *conn) Read(b []byte) (int, error) {
	if c.failed != nil {
		return 0, c.failed
	}
	if c.commands.Load() > int64(c.gate.limits.Commands) {
		c.failed = errTooMuch
		return 0, c.failed
	}
	if c.failed = c.flush(); c.failed != nil {
		return 0, c.failed
	}
	end := time.Now().Add(c.gate.idle())
	if last := c.begun.Add(c.gate.limits.Total); last.Before(end) {
		end = last
	}
	if c.gate.isClosed() && !c.busy.Load() {
		end = time.Now()
	}
	if err := c.Conn.SetReadDeadline(end); err != nil {
		return 0, err
	}
	n, err := c.Conn.Read(b)
	c.failed = err
	return n, err
}

// answerTime is how long a peer may take to take answers.
const answerTime = time.Minute

// maxAnswers is how many bytes of answers wait for the next read.
const maxAnswers = 4 << 10

// Write counts an answer.
func (c *conn) Write(b []byte) (int, error) {
	c.commands.Add(1)
	c.out = append(c.out, b...)
	if len(c.out) < maxAnswers {
		return len(b), nil
	}
	return len(b), c.flush()
}

func (c *conn) flush() error {
	if len(c.out) == 0 {
		return nil
	}
	err := c.Conn.SetWriteDeadline(time.Now().Add(answerTime))
	if err == nil {
		_, err = c.Conn.Write(c.out)
	}
	c.out = c.out[:0]
	return err
}

// SetReadDeadline does nothing: Read sets its own, and what the library sets
// covers a whole mail.
func (c *conn) SetReadDeadline(time.Time) error { return nil }

// SetWriteDeadline does nothing either: answers have theirs when they go out.
func (c *conn) SetWriteDeadline(time.Time) error { return nil }

// Close ends the connection and frees its place.
func (c *conn) Close() error {
	c.once.Do(func() { c.gate.leave(c) })
	return errors.Join(c.flush(), c.Conn.Close())
}

// hostOf is an address without its port.
func hostOf(a net.Addr) string {
	host, _, err := net.SplitHostPort(a.String())
	if err != nil {
		return a.String()
	}
	return host
}

// isLoopback reports whether an address is this machine.
func isLoopback(addr string) bool {
	ip := net.ParseIP(addr)
	return ip != nil && ip.IsLoopback()
}
