package handlers

import (
	"context"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"journeyman/runner/stream"
)

// A reader writes one stream to its client. One goroutine calls its methods, unless they say
// otherwise. A waiting reader holds no timer and no buffer.
type reader struct {
	src     source
	may     func(ctx context.Context) error // returns an error if the client may not read any more
	subject string                          // readers of one subject share one permission check
	checked time.Time                       // when may was last called; guarded by the monitor

	ctx  context.Context // ends with the response
	wait context.Context // ends with ctx, cancel or beat; for the wait for events

	framer *framer
	out    output
	within time.Duration // how long the client may take to accept written bytes
	armed  time.Time     // when the deadline was set
	http2  bool          // a deadline of HTTP/2 ends the stream even while nothing is written
	lastID string        // never empty: an empty id would clear the client's id
	beaten bool          // the last thing written was a heartbeat

	close func()             // releases the resources of the stream
	end   func(panicked any) // ends a stream that has a goroutine of its own

	writtenAt atomic.Int64 // when anything was last written, in Unix nanoseconds
	due       atomic.Bool  // a heartbeat is due
	canceled  atomic.Bool
	interrupt atomic.Pointer[context.CancelFunc]
}

// An output is the destination of a reader: a connection that was taken over, or a response of
// net/http. Flush sends the written bytes.
type output interface {
	io.Writer
	Flush() error
	SetWriteDeadline(t time.Time) error
}

// A response is an answer of net/http.
type response struct {
	io.Writer
	*http.ResponseController
}

// cancel ends the stream. Any goroutine may call it.
func (rd *reader) cancel() {
	rd.canceled.Store(true) // before the interrupt, so that the reader sees it
	if interrupt := rd.interrupt.Load(); interrupt != nil {
		(*interrupt)()
	}
}

// over reports whether the client has disconnected, or the stream was canceled.
func (rd *reader) over() bool { return rd.canceled.Load() || rd.ctx.Err() != nil }

// beat makes the reader send a heartbeat. Any goroutine may call it.
func (rd *reader) beat() {
	rd.due.Store(true) // before the interrupt, so that the reader sees it
	if interrupt := rd.interrupt.Load(); interrupt != nil {
		(*interrupt)()
	}
}

// lastWrite returns the time of the last write. Any goroutine may call it.
func (rd *reader) lastWrite() time.Time { return time.Unix(0, rd.writtenAt.Load()) }

// run writes the stream in its own goroutine. A waiting stream needs only the smallest
// stack. So the stack frames of run, step and the waiting methods of the sources must be small.
func (rd *reader) run() {
	more := false
	defer func() {
		if more {
			go rd.run()
			return
		}
		rd.end(recover())
	}()
	for rd.step() {
		if rd.beaten { // the write has grown the stack, and only a new goroutine has a small one
			rd.beaten, more = false, true
			return
		}
	}
}

// step writes the next events and reports whether there may be more.
func (rd *reader) step() (more bool) {
	if rd.wait == nil || rd.wait.Err() != nil {
		rd.renew()
	}
	if rd.over() {
		return false // it may have ended before renew stored the interrupt
	}
	events, done, err := rd.src.Next(rd.wait)
	return rd.deliver(events, done, err)
}

// renew creates a context for the next wait.
func (rd *reader) renew() {
	wait, interrupt := context.WithCancel(rd.ctx) // released with rd.ctx at the latest
	rd.wait = wait
	rd.interrupt.Store(&interrupt)
}

// deliver writes events, and reports whether there may be more.
func (rd *reader) deliver(events []stream.Event, done bool, err error) (more bool) {
	for _, e := range events {
		rd.lastID = e.ID
		rd.write(e.Wire(rd.framer.frame))
	}
	switch {
	case rd.over():
		return false
	case err != nil && rd.wait.Err() == nil: // otherwise only the wait was interrupted
		return false // the client reconnects with its last id
	case done:
		rd.write(rd.framer.frame(stream.Event{ID: rd.lastID, Data: []byte("[DONE]")}))
	case rd.due.Swap(false) && len(events) == 0:
		rd.write(rd.framer.heartbeat)
		rd.beaten = true
	}
	rd.send()
	return !done && !rd.over()
}

// write adds bytes for send. It ends the stream of a client that does not accept them in time.
// Setting a deadline costs as much as the write, so one deadline serves for a tenth of its time.
func (rd *reader) write(b []byte) {
	if now := time.Now(); now.Sub(rd.armed) > rd.within/10 {
		rd.armed = now
		_ = rd.out.SetWriteDeadline(now.Add(rd.within)) // without support for deadlines, the time-outs of TCP apply
	}
	if _, err := rd.out.Write(b); err != nil {
		rd.cancel()
	}
}

// send sends the written bytes: one system call for all events that arrived together.
func (rd *reader) send() {
	rd.writtenAt.Store(time.Now().UnixNano())
	if err := rd.out.Flush(); err != nil {
		rd.cancel()
	}
	if rd.http2 && !rd.armed.IsZero() {
		rd.armed = time.Time{}
		_ = rd.out.SetWriteDeadline(rd.armed) // no deadline until the next write
	}
}

// A source returns the next events. done means that no more follow.
type source interface {
	Next(ctx context.Context) (events []stream.Event, done bool, err error)
}
