package handlers

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"time"
)

// This file takes over the connections of event streams from net/http. A stream that net/http
// serves holds buffers of 10 KB, the request, and a stack that authentication and queries have
// grown: 47 KB in all. A stream without events needs none of them. So its handler writes the
// header, takes the connection over, and returns. From then on the stream has two goroutines with
// small stacks: one writes events, the other waits for the end of the connection. Buffers exist
// only during writes.
//
// Clients get the same bytes as from net/http: header, chunks, and the last chunk. When the
// stream has ended and the client sends its next request, net/http serves the connection again.
//
// The streams of one HTTP/2 connection share it, so net/http keeps that connection.

// takeOver takes over the connection of a request whose header is written. It returns nil if
// net/http must keep it.
func takeOver(w http.ResponseWriter, r *http.Request) *takenConn {
	server, ok := r.Context().Value(serverKey{}).(*Server)
	gated, _ := r.Context().Value(gateConnKey{}).(*gateConn)
	if !ok || gated == nil || r.ProtoMajor != 1 || recordOf(r) == nil || !bodyRead(r) {
		return nil
	}
	// Registered first: during a shutdown, net/http or the server always knows the connection.
	c := &takenConn{gate: gated, server: server, chunked: r.ProtoAtLeast(1, 1), over: make(chan struct{})}
	if !server.taken.use(c, streaming) {
		return nil
	}
	conn, rw, err := http.NewResponseController(w).Hijack() // it also sends the header
	if err != nil {
		server.taken.remove(c)
		return nil
	}
	r.Body = http.NoBody // the body would keep the buffers of net/http
	if t, ok := conn.(*resumedTLS); ok && len(t.early) == 0 {
		conn = t.Conn // otherwise each stream of the connection would add a layer
	}
	early, _ := rw.Reader.Peek(rw.Reader.Buffered())
	c.conn, c.early = conn, bytes.Clone(early)
	c.keep = c.chunked && !r.Close && w.Header().Get("Connection") != "close"
	return c
}

// restOfBody is how much of a body takeOver reads that no handler has read, in bytes.
const restOfBody = 4 << 10

// bodyRead reads the remaining body of a request. It reports whether the next byte of the
// connection belongs to the next request.
func bodyRead(r *http.Request) bool {
	_, err := io.CopyN(io.Discard, r.Body, restOfBody)
	return err == io.EOF
}

// attend waits for the end of the connection, and then calls gone. After the end of the stream it
// waits for the client's next request. It runs in its own goroutine.
func (c *takenConn) attend(gone func()) {
	var err error
	if len(c.early) == 0 { // one byte is enough: the system buffers the others
		if _, err = io.ReadFull(c.conn, c.next[:]); err == nil {
			c.early = c.next[:]
		} else {
			gone()
		}
	}
	<-c.over
	if use := c.server.taken.remove(c); err != nil || use != waiting {
		_ = c.conn.Close()
		noteState(c.conn, http.StateClosed)
		return
	}
	_ = c.conn.SetReadDeadline(time.Time{})
	_ = c.server.Serve(listenOnce(c.resumed())) // during a shutdown it fails, and closes the connection
}

// Write adds to what Flush sends.
func (c *takenConn) Write(b []byte) (int, error) {
	if c.buffers == nil {
		c.buffers = c.server.buffers.Get().(*streamBuffers)
		c.buffers.reset(c.conn, c.chunked)
	}
	n, err := c.buffers.body.Write(b)
	c.failed = c.failed || err != nil
	return n, err
}

// Flush sends the written bytes, and returns the buffers.
func (c *takenConn) Flush() error {
	if c.buffers == nil {
		return nil
	}
	err := errors.Join(c.buffers.body.Flush(), c.buffers.wire.Flush())
	c.failed = c.failed || err != nil
	c.buffers.reset(nil, false)
	c.server.buffers.Put(c.buffers)
	c.buffers = nil
	return err
}

// SetWriteDeadline limits the time of the next writes.
func (c *takenConn) SetWriteDeadline(t time.Time) error { return c.conn.SetWriteDeadline(t) }

// end ends the stream. If whole is set, it writes the last chunk, which the client must accept
// within a time. Clients take a stream without it for broken.
func (c *takenConn) end(within time.Duration, whole bool) {
	_ = c.Flush() // failed stores an error
	c.failed = c.failed || !whole
	if c.chunked && !c.failed {
		_ = c.conn.SetWriteDeadline(time.Now().Add(within))
		_, err := io.WriteString(c.conn, "0\r\n\r\n")
		c.failed = err != nil
	}
	defer close(c.over)
	if !c.keep || c.failed || !c.server.taken.use(c, waiting) {
		_ = c.conn.Close() // attend notices
		return
	}
	_ = c.conn.SetWriteDeadline(time.Time{})
	if d := c.server.IdleTimeout; d > 0 {
		_ = c.conn.SetReadDeadline(time.Now().Add(d))
	}
	noteState(c.conn, http.StateIdle)
}
