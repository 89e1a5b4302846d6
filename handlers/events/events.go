// Package events writes event streams to HTTP clients.
//
// It knows no resource and no caller: a Source gives the events, and a Client says whose share the stream takes and
// whether the client may still read. A client that does not read delays no other client and no turn, and is
// disconnected after Timing.WriteIn.
package events

import (
	"bufio"
	"cmp"
	"context"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/r3labs/sse/v2"

	"journeyman/handlers/serve"
	"journeyman/runner/share"
)

// A Server serves event streams. The library r3labs/sse writes each response, from a private stream
// with one subscriber. So a slow client delays no other.
type Server struct {
	timing  Timing
	open    *share.Shares
	monitor *monitor
	buffers sync.Pool         // of *bufio.Writer
	headers map[string]string // of all responses; constant, as is address
	address *url.URL          // with brokerQuery
}

// Timing holds the time limits of streams.
type Timing struct {
	BeatEvery  time.Duration // between the heartbeats of a stream without events
	CheckEvery time.Duration // between checks whether a client may still read
	WriteIn    time.Duration // for a client to accept a piece of a stream, before it is disconnected
}

// New returns a server of event streams. Each stream takes one share of open.
func New(timing Timing, open *share.Shares) *Server {
	return &Server{timing: timing, monitor: newMonitor(timing), open: open,
		buffers: sync.Pool{New: func() any { return bufio.NewWriterSize(nil, bufferSize) }},
		headers: map[string]string{
			"X-Accel-Buffering":             "no", // proxies must pass each event on at once
			"Cache-Control":                 "no-cache, no-transform",
			"x-vercel-ai-ui-message-stream": "v1", // the AI SDK looks for it
		}, address: &url.URL{RawQuery: brokerQuery}}
}

// A Client is the client of one stream.
type Client struct {
	Holder share.Holder // whose share the stream takes

	// Refused reports whether the client has lost the permission to read. It is called regularly, once for all
	// open streams whose clients have the same Subject.
	Refused func(ctx context.Context) bool
	Subject string

	LastID string          // the id of the last event that the client has received; "" for none
	Failed func(err error) // is called with a panic of the source
}

// Serve writes the events of src until src is done, the client disconnects, or the client may not read any more.
// It returns the errors of share.Shares.Take, before it has written anything. After a panic of src it panics
// with http.ErrAbortHandler.
func (s *Server) Serve(w http.ResponseWriter, r *http.Request, c Client, src Source) error {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	now := time.Now()
	rd := &reader{src: src, client: c, checked: now, ctx: ctx, cancel: cancel,
		ended: make(chan struct{}), out: w, controller: http.NewResponseController(w), http2: r.ProtoMajor >= 2,
		buffers: &s.buffers, within: s.timing.WriteIn, lastID: []byte(cmp.Or(c.LastID, "0"))}
	rd.writtenAt.Store(now.UnixNano())
	if r.Method == http.MethodHead {
		cancel() // the library writes the header only
		rd.broker = s.newBroker(rd)
	} else {
		release, err := s.open.Take(c.Holder)
		if err != nil {
			return err
		}
		defer release()
		serve.LimitBuffer(r)
		rd.broker = s.newBroker(rd) // before the monitor uses it
		s.monitor.add(rd)
		defer s.monitor.remove(rd)
	}
	rd.broker.ServeHTTP(rd, (&http.Request{URL: s.address}).WithContext(ctx)) // without Last-Event-ID, which is for src
	cancel()
	<-rd.ended
	if !rd.http2 { // the deadline of the last write may be over, and the server still writes the end of the body
		_ = rd.controller.SetWriteDeadline(time.Now().Add(rd.within))
	}
	if rd.panicked != nil {
		c.Failed(rd.panicked)
		panic(http.ErrAbortHandler) // the client must not take the stream for complete
	}
	return nil
}

// brokerStream is the name of the one stream of a broker, and brokerQuery asks for it.
const (
	brokerStream = "events"
	brokerQuery  = "stream=" + brokerStream
)

// newBroker returns a server of the library for one response. When rd has subscribed, the broker
// lets it publish its events.
func (s *Server) newBroker(rd *reader) *sse.Server {
	b := sse.New()
	// AutoReplay would rewrite ids. The data of an event is JSON on one line, so nothing is to be split.
	b.AutoReplay, b.AutoStream, b.SplitData, b.BufferSize = false, false, false, publishedAhead
	b.Headers = s.headers
	b.OnSubscribe = func(string, *sse.Subscriber) { rd.publish() }
	// Only a stream without subscribers may be removed: the library leaks a goroutine for each.
	b.OnUnsubscribe = func(stream string, _ *sse.Subscriber) { b.RemoveStream(stream) }
	b.CreateStream(brokerStream)
	return b
}
