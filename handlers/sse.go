package handlers

import (
	"bufio"
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/r3labs/sse/v2"

	"journeyman/handlers/serve"
	"journeyman/runner/share"
	"journeyman/store"
)

// streams serves event streams. The library r3labs/sse writes each response, from a private stream
// with one subscriber. So a slow client delays no other.
type streams struct {
	timing  Timing
	open    *share.Shares
	monitor *monitor
	buffers sync.Pool         // of *bufio.Writer
	headers map[string]string // of all responses; constant, as is address
	address *url.URL          // with brokerQuery
}

func newStreams(timing Timing, most int) *streams {
	return &streams{timing: timing, monitor: newMonitor(timing),
		open:    share.New("open streams", "too_many_streams", share.LimitsOf(most)),
		buffers: sync.Pool{New: func() any { return bufio.NewWriterSize(nil, bufferSize) }},
		headers: map[string]string{
			"X-Accel-Buffering":             "no", // proxies must pass each event on at once
			"Cache-Control":                 "no-cache, no-transform",
			"x-vercel-ai-ui-message-stream": "v1", // the AI SDK looks for it
		}, address: &url.URL{RawQuery: brokerQuery}}
}

// serve writes the events of src until src is done, the client disconnects, or may returns an
// error.
func (s *streams) serve(w http.ResponseWriter, r *http.Request, who store.Identity, src Source,
	lastID string, may func(ctx context.Context) error) error {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	now := time.Now()
	rd := &reader{src: src, may: may, subject: subjectOf(r, who), checked: now, ctx: ctx, cancel: cancel,
		ended: make(chan struct{}), out: w, controller: http.NewResponseController(w), http2: r.ProtoMajor >= 2,
		buffers: &s.buffers, within: s.timing.WriteIn, lastID: []byte(cmp.Or(lastID, "0"))}
	rd.writtenAt.Store(now.UnixNano())
	if r.Method == http.MethodHead {
		cancel() // the library writes the header only
		rd.broker = s.newBroker(rd)
	} else {
		release, err := s.open.Take(holderOf(who))
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
		if rec := recordOf(r); rec != nil {
			rec.err = rd.panicked
		}
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
func (s *streams) newBroker(rd *reader) *sse.Server {
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

// subjectOf returns a key for the permission check of a reader: a hash of the user, the stream and
// the credentials.
func subjectOf(r *http.Request, who store.Identity) string {
	session, err := r.Cookie(SessionCookie)
	if err != nil {
		session = &http.Cookie{}
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%q", []string{who.KeyID, who.UserID, who.OrganizationID,
		r.Header.Get("Authorization"), session.Value, r.Method, r.URL.Path, r.URL.RawQuery}))
	return string(sum[:])
}
