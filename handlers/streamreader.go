package handlers

import (
	"context"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"journeyman/runner/stream"
)

// A reader is the client of one stream, whose goroutine calls its methods unless they say
// otherwise. While nothing happens, it holds no timer and no buffer.
type reader struct {
	src     source
	may     func(ctx context.Context) error // says whether the reader still may read
	subject string                          // readers of one subject have one answer from may
	checked time.Time                       // when may was asked last; guarded by the monitor

	ctx  context.Context // ends with the response
	wait context.Context // of the wait for events, which cancel and beat interrupt

	framer *framer
	out    output
	within time.Duration // for the client to accept the written bytes
	armed  time.Time     // when the deadline was set
	http2  bool          // its deadlines end the stream even while nothing is written
	lastID string        // never empty: an empty id would clear the client's
	beaten bool          // the last thing written was a heartbeat

	close func()             // releases the resources of the stream
	end   func(panicked any) // ends a stream that has a goroutine of its own

	writtenAt atomic.Int64 // when anything was written last, in Unix nanoseconds
	due       atomic.Bool  // a heartbeat
	canceled  atomic.Bool
	interrupt atomic.Pointer[context.CancelFunc]
}

// An output is the destination of a reader: a connection that was taken over, or a response of
// net/http. Flush sends what was written.
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
	rd.canceled.Store(true) // before the interrupt, as in beat
	if interrupt := rd.interrupt.Load(); interrupt != nil {
		(*interrupt)()
	}
}

// over reports whether the client has gone, or the stream was canceled.
func (rd *reader) over() bool { return rd.canceled.Load() || rd.ctx.Err() != nil }

// beat has the reader send a heartbeat. Any goroutine may call it.
func (rd *reader) beat() {
	rd.due.Store(true) // before the interrupt: the reader looks at it afterwards
	if interrupt := rd.interrupt.Load(); interrupt != nil {
		(*interrupt)()
	}
}

// lastWrite returns when anything was written. Any goroutine may call it.
func (rd *reader) lastWrite() time.Time { return time.Unix(0, rd.writtenAt.Load()) }

// run writes the stream in a goroutine of its own. The frames of run, step, and the methods of
// sources that wait are small: so a stream that waits needs no more than the smallest stack.
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
		if rd.beaten { // the write has grown the stack, and only a new goroutine has a small one again
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
		return false // it may have come before the interrupt was there
	}
	events, done, err := rd.src.Next(rd.wait)
	return rd.deliver(events, done, err)
}

// renew begins another wait that can be interrupted.
func (rd *reader) renew() {
	wait, interrupt := context.WithCancel(rd.ctx) // ends with rd.ctx at the latest
	rd.wait = wait
	rd.interrupt.Store(&interrupt)
}

// deliver writes the chunks of a source, and reports whether there may be more.
func (rd *reader) deliver(events []stream.Event, done bool, err error) (more bool) {
	for _, e := range events {
		rd.lastID = e.ID
		rd.write(e.Wire(rd.framer.frame))
	}
	switch {
	case rd.over():
		return false
	case err != nil && rd.wait.Err() == nil: // otherwise the wait was interrupted, and nothing has failed
		return false // the client comes back with the last id it has
	case done:
		rd.write(rd.framer.frame(stream.Event{ID: rd.lastID, Data: []byte("[DONE]")}))
	case rd.due.Swap(false) && len(events) == 0:
		rd.write(rd.framer.heartbeat)
		rd.beaten = true
	}
	rd.send()
	return !done && !rd.over()
}

// write adds to what send sends. A client that does not take it in time is cut off. Setting a
// deadline costs as much as the write itself, so one deadline serves for all writes within a
// tenth of it.
func (rd *reader) write(b []byte) {
	if now := time.Now(); now.Sub(rd.armed) > rd.within/10 {
		rd.armed = now
		_ = rd.out.SetWriteDeadline(now.Add(rd.within)) // where it is not supported, TCP has its own
	}
	if _, err := rd.out.Write(b); err != nil {
		rd.cancel()
	}
}

// send sends what is written: one system call for all events that came together.
func (rd *reader) send() {
	rd.writtenAt.Store(time.Now().UnixNano())
	if err := rd.out.Flush(); err != nil {
		rd.cancel()
	}
	if rd.http2 && !rd.armed.IsZero() {
		rd.armed = time.Time{}
		_ = rd.out.SetWriteDeadline(rd.armed) // none, until the next write
	}
}

// A source returns the next events; done means that no more follow.
type source interface {
	Next(ctx context.Context) (events []stream.Event, done bool, err error)
}
