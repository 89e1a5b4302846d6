package handlers_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"hash/fnv"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/handlers"
	"journeyman/runner/model/offline"
	events "journeyman/runner/stream"
	"journeyman/store/storetest"
)

// TestStuckReaders has some readers that stop reading. The others get every event.
func TestStuckReaders(t *testing.T) {
	t.Parallel()
	stuckReaders(t, 100, 10)
}

// TestManyStuckReaders is TestStuckReaders with as many readers as a busy server has.
func TestManyStuckReaders(t *testing.T) {
	storetest.Long(t)
	stuckReaders(t, 1000, 100)
}

func stuckReaders(t *testing.T, readers, stuck int) {
	is := is.New(t)
	const pieces, size = 16, 64 << 10 // of a turn: less than a ring holds, and more than the system buffers for a reader
	s := newServer(t, withModel(flood{offline.New(), strings.Repeat("x", size), pieces}),
		withTiming(handlers.Timing{WriteIn: time.Hour}), func(set *settings) { set.API.Limits.Streams = 8 * readers })
	srv := s.serveStreams(t, 2*readers, false)
	id := s.newWorker(t, fields{})
	texts := make(chan uint64, readers) // the hash of the events of each reader
	for i := range readers {
		conn := srv.dial(t, s.asks("/api/workers/"+id+"/stream"))
		if i%(readers/stuck) == 0 {
			is.NoErr(conn.(*net.TCPConn).SetReadBuffer(4 << 10))
			_, err := io.ReadFull(conn, make([]byte, 12))
			is.NoErr(err)
			continue
		}
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		is.NoErr(err)
		go func() { texts <- hashed(t, resp.Body, pieces*size) }()
	}
	storetest.Eventually(t, "all streams", func() bool { return s.api.OpenStreams() == int64(readers) })
	s.run(t, fields{"workerId": id, "input": "talk"})
	want := <-texts
	for range readers - stuck - 1 {
		is.Equal(<-texts, want) // the reader's events differ
	}
	is.Equal(s.api.OpenStreams(), int64(readers)) // the stuck readers are still connected
}

// hashed returns the hash of all events of a stream up to the end of a turn. It fails if they hold
// less than n bytes of text.
func hashed(t *testing.T, body io.Reader, n int) uint64 {
	sum, got := fnv.New64a(), 0
	for lines := bufio.NewReaderSize(body, 16<<10); ; {
		line, err := lines.ReadSlice('\n')
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			t.Error(err)
			return 0
		}
		if bytes.HasPrefix(line, []byte(":")) || len(line) == 1 {
			continue // a heartbeat, or the end of it or of an event
		}
		sum.Write(line)
		got += bytes.Count(line, []byte("x"))
		if bytes.Contains(line, []byte(`"type":"finish"`)) {
			if got < n {
				t.Errorf("a reader has %d of %d bytes", got, n)
			}
			return sum.Sum64()
		}
	}
}

// A panickingSource panics.
type panickingSource struct{}

func (panickingSource) Next(context.Context) ([]events.Event, bool, error) { panic("a mistake") }

// TestStreamPanics checks that a panic ends only its stream, and releases its resources.
func TestStreamPanics(t *testing.T) {
	is, s := onServer(t)
	var logged storetest.Log
	log := slog.New(slog.NewTextHandler(&logged, nil))
	srv := s.serveStreams(t, 100, false)
	srv.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handlers.Logged(log, time.Now, w, r, func(w http.ResponseWriter, r *http.Request) {
			_ = s.api.StreamPage(w, r, s.owner, panickingSource{}, func(context.Context) error { return nil })
		})
	})
	in := bufio.NewReader(srv.dial(t, s.asks("/")))
	resp, err := http.ReadResponse(in, nil)
	is.NoErr(err)
	is.Equal(resp.StatusCode, 200)
	_, err = io.ReadAll(resp.Body)
	is.True(errors.Is(err, io.ErrUnexpectedEOF)) // the client sees an incomplete stream
	storetest.Eventually(t, "the end of the stream", func() bool { return s.api.OpenStreams() == 0 })
	storetest.Eventually(t, "the line of the request", func() bool { return strings.Contains(logged.String(), "level=ERROR msg=request ") })
	is.True(strings.Contains(logged.String(), "a mistake"))
}

// TestStreamsOfHTTP2 has a stream over HTTP/2 idle for longer than the write time-out. Then one
// client stops reading: its stream ends, and the others of its connection do not.
func TestStreamsOfHTTP2(t *testing.T) {
	storetest.Slow(t)
	t.Parallel()
	is := is.New(t)
	const within = 3 * time.Second // more than a busy machine needs for a write
	// A turn is larger than the buffers of a client that does not read, and smaller than a ring, so
	// that a slow client misses nothing.
	const pieces, size, kept = 16, 64 << 10, 64 << 10
	s := newServer(t, withModel(flood{offline.New(), strings.Repeat("x", size), pieces}),
		withTiming(handlers.Timing{WriteIn: within, BeatEvery: within + 200*time.Millisecond}))
	srv := s.serveStreams(t, 100, true)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: srv.tls, ForceAttemptHTTP2: true,
		HTTP2: &http.HTTP2Config{MaxReceiveBufferPerStream: kept}}}
	t.Cleanup(client.CloseIdleConnections)
	open := func(path string) *http.Response {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+srv.addr+path, nil)
		is.NoErr(err)
		req.Header.Set("Authorization", "Bearer "+s.key)
		resp, err := client.Do(req)
		is.NoErr(err)
		t.Cleanup(func() { resp.Body.Close() })
		is.Equal(resp.StatusCode, 200)
		is.Equal(resp.ProtoMajor, 2)
		return resp
	}
	busy, quiet := s.newWorker(t, fields{}), s.newWorker(t, fields{})
	stuck, silent := open("/api/workers/"+busy+"/stream"), open("/api/workers/"+quiet+"/stream")
	lines := bufio.NewReader(silent.Body)
	for beats := 0; beats < 2; { // the deadline of the first one has passed before the second
		line, err := lines.ReadString('\n')
		is.NoErr(err) // an idle stream must not end
		beats += strings.Count(line, ": heartbeat")
	}
	s.run(t, fields{"workerId": busy, "input": "talk"})
	storetest.Eventually(t, "the end of the stuck stream", func() bool { return s.api.OpenStreams() == 1 })
	_, err := io.Copy(io.Discard, stuck.Body)
	is.True(err != nil) // the client takes the stream for complete
	var wg sync.WaitGroup
	wg.Go(func() {
		if n, err := io.CopyN(io.Discard, lines, pieces*size); err != nil {
			t.Errorf("the other stream ends after %d bytes: %v", n, err)
		}
	})
	s.run(t, fields{"workerId": quiet, "input": "talk"})
	wg.Wait()
}
