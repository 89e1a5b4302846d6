package handlers

import (
	"bytes"
	"context"
	"net/http"
	"net/url"
	"sync"

	"github.com/r3labs/sse/v2"

	"journeyman/runner/stream"
)

// A framer turns events into bytes for all their readers. The library frames an event for each
// subscriber; the framer is its only one, so an event is framed once for thousands of readers. The
// library's own fan-out takes three goroutines for each reader, and waits for the slowest one.
type framer struct {
	broker *sse.Server
	ready  chan struct{} // the subscriber is registered
	frames chan []byte   // each flush is one event
	cancel context.CancelFunc
	ended  chan struct{}

	header http.Header  // set by the library; constant after ready
	begun  bool         // the first flush is over; only the library's goroutine uses it
	buffer bytes.Buffer // the event that the library writes

	mu        sync.Mutex // held while an event is framed
	heartbeat []byte
}

// framerStream is the name of the library's one stream.
const framerStream = "events"

// newFramer creates a framer. The caller closes it.
func newFramer() *framer {
	f := &framer{broker: sse.New(), ready: make(chan struct{}), frames: make(chan []byte, 1),
		ended: make(chan struct{}), header: http.Header{}}
	// AutoReplay would rewrite ids, and an unsplit newline would break a frame.
	f.broker.AutoReplay, f.broker.AutoStream, f.broker.SplitData, f.broker.BufferSize = false, false, true, 1
	f.broker.Headers = map[string]string{
		"X-Accel-Buffering":             "no", // proxies must pass each event on at once
		"Cache-Control":                 "no-cache, no-transform",
		"x-vercel-ai-ui-message-stream": "v1", // the AI SDK looks for it
	}
	f.broker.CreateStream(framerStream)
	ctx, cancel := context.WithCancel(context.Background())
	f.cancel = cancel
	r := (&http.Request{URL: &url.URL{RawQuery: "stream=" + framerStream}, Header: http.Header{}}).WithContext(ctx)
	go func() {
		defer close(f.ended)
		f.broker.ServeHTTP(f, r)
	}()
	<-f.ready
	f.heartbeat = f.publish(&sse.Event{Comment: []byte("heartbeat")})
	return f
}

// close ends the library's goroutines.
func (f *framer) close() {
	f.cancel()
	<-f.ended // wait for the subscriber: otherwise the library leaks it
	f.broker.Close()
}

// frame returns the bytes of an event.
func (f *framer) frame(e stream.Event) []byte {
	return f.publish(&sse.Event{ID: []byte(e.ID), Data: e.Data})
}

func (f *framer) publish(e *sse.Event) []byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.broker.Publish(framerStream, e)
	return <-f.frames
}

// Header is part of http.ResponseWriter, as are the next two methods, which the library calls.
func (f *framer) Header() http.Header { return f.header }

// WriteHeader does nothing: the framer has no status.
func (f *framer) WriteHeader(int) {}

// Write adds to the event.
func (f *framer) Write(b []byte) (int, error) { return f.buffer.Write(b) }

// Flush ends an event. Before the first one, the library flushes the headers.
func (f *framer) Flush() {
	if !f.begun {
		f.begun = true
		close(f.ready)
		return
	}
	f.frames <- bytes.Clone(f.buffer.Bytes())
	f.buffer.Reset()
}

// A sharedFramer is a framer that exists while it has users.
type sharedFramer struct {
	mu    sync.Mutex
	users int
	*framer
}

// use returns the framer, until the caller calls leave.
func (s *sharedFramer) use() (f *framer, leave func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.users++; s.users == 1 {
		s.framer = newFramer()
	}
	return s.framer, s.leave
}

func (s *sharedFramer) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.users--; s.users == 0 {
		s.framer.close()
		s.framer = nil
	}
}
