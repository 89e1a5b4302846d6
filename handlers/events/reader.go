package events

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net/http"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/r3labs/sse/v2"

	"journeyman/runner/stream"
)

// A reader is one response with an event stream. Its goroutine publishes the events of a source.
// The library writes them, in the goroutine of the request, to the reader as its ResponseWriter.
type reader struct {
	src     Source
	client  Client
	checked time.Time // when client.Refused was last called; guarded by the monitor

	ctx    context.Context // ends with the response
	cancel context.CancelFunc
	broker *sse.Server

	lastID    []byte        // never empty: an empty id would clear the client's id; belongs to publish
	published atomic.Int64  // number of events that publish has given to the library, or is about to
	ended     chan struct{} // closed when publish has returned
	panicked  error         // the panic of the source; read after ended is closed

	out        http.ResponseWriter
	buffers    *sync.Pool    // of *bufio.Writer, shared by all streams
	buffer     *bufio.Writer // nil while nothing is written
	controller *http.ResponseController
	within     time.Duration // how long the client may take to accept written bytes
	armed      time.Time     // when the deadline was set
	http2      bool          // a deadline of HTTP/2 ends the stream even while nothing is written
	begun      int64         // number of events that the library has begun to write
	writtenAt  atomic.Int64  // when anything was last sent, in Unix nanoseconds
}

const (
	publishedAhead = 32       // how many events wait in the library's queue
	bufferSize     = 32 << 10 // length of the writes while many events wait, in bytes
)

// A Source returns the next events of a stream. done means that no more follow. Events and
// an error never come together.
type Source interface {
	Next(ctx context.Context) (events []stream.Event, done bool, err error)
}

// publish publishes all events of the source, and then ends the response. It runs in a goroutine of
// its own, so a panic must not pass it.
func (rd *reader) publish() {
	defer close(rd.ended)
	defer func() {
		if p := recover(); p != nil {
			rd.panicked = fmt.Errorf("stream panicked: %v\n%s", p, debug.Stack())
			rd.cancel()
		}
	}()
	for more := true; more && rd.ctx.Err() == nil; {
		more = rd.publishNext()
	}
	rd.broker.Publish(brokerStream, &sse.Event{}) // it ends the response
}

// publishNext publishes the next events, and reports whether there may be more.
func (rd *reader) publishNext() (more bool) {
	events, done, err := rd.src.Next(rd.ctx)
	if err != nil {
		return false // the client reconnects with its last id
	}
	n := len(events)
	if done {
		n++
	}
	rd.published.Add(int64(n))
	for _, e := range events {
		if rd.ctx.Err() != nil {
			return false
		}
		rd.lastID = e.ID
		if !rd.broker.TryPublish(brokerStream, e.Event) { // it costs less than Publish
			rd.broker.Publish(brokerStream, e.Event)
		}
	}
	if done {
		rd.broker.Publish(brokerStream, &sse.Event{ID: rd.lastID, Data: []byte("[DONE]")})
	}
	return !done
}

// beat sends a heartbeat, unless events wait to be sent. Any goroutine may call it.
func (rd *reader) beat() {
	rd.broker.TryPublish(brokerStream, &sse.Event{Comment: []byte("heartbeat")})
}

// lastWrite returns the time of the last write. Any goroutine may call it.
func (rd *reader) lastWrite() time.Time { return time.Unix(0, rd.writtenAt.Load()) }

// Header is part of http.ResponseWriter, as are the next two methods, which the library calls.
func (rd *reader) Header() http.Header { return rd.out.Header() }

// WriteHeader writes the header.
func (rd *reader) WriteHeader(status int) { rd.out.WriteHeader(status) }

// Write adds bytes for Flush. A stream holds a buffer only between its first write and Flush.
func (rd *reader) Write(b []byte) (int, error) {
	if bytes.HasPrefix(b, []byte("id: ")) { // the beginning of an event, and not of a comment
		rd.begun++
	}
	if rd.buffer == nil {
		rd.buffer = rd.buffers.Get().(*bufio.Writer)
		rd.buffer.Reset(timedWriter{rd})
	}
	return rd.buffer.Write(b)
}

// Flush sends the written bytes, unless more events wait: one system call sends all events that
// arrived together.
func (rd *reader) Flush() {
	if rd.published.Load() > rd.begun && rd.ctx.Err() == nil {
		return
	}
	if rd.buffer != nil {
		_ = rd.buffer.Flush() // the timedWriter has ended the stream
		rd.buffer.Reset(nil)
		rd.buffers.Put(rd.buffer)
		rd.buffer = nil
	}
	if rd.ctx.Err() != nil {
		return
	}
	rd.writtenAt.Store(time.Now().UnixNano())
	if err := rd.controller.Flush(); err != nil {
		rd.cancel()
	}
	if rd.http2 && !rd.armed.IsZero() {
		rd.armed = time.Time{}
		_ = rd.controller.SetWriteDeadline(rd.armed) // no deadline until the next write
	}
}

// A timedWriter writes to the client of a reader. It ends the stream if the client does not accept
// the bytes in time: the library ignores errors.
type timedWriter struct{ *reader }

// Write writes b. Setting a deadline costs as much as the write, so one deadline serves for a tenth
// of its time.
func (w timedWriter) Write(b []byte) (int, error) {
	if err := w.ctx.Err(); err != nil {
		return 0, err // nothing is sent after the end
	}
	if now := time.Now(); now.Sub(w.armed) > w.within/10 {
		w.armed = now
		_ = w.controller.SetWriteDeadline(now.Add(w.within)) // without support for deadlines, the time-outs of TCP apply
	}
	n, err := w.out.Write(b)
	if err != nil {
		w.cancel()
	}
	return n, err
}
