package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"sync/atomic"
	"time"
)

// A reader counts the events of one stream. It is cheap, because all readers of a measure share the
// machine with the server.
type reader struct {
	body   io.ReadCloser
	events atomic.Int64
	bytes  atomic.Int64
	ends   atomic.Int64 // of turns
}

// subscribe opens the stream of a worker. The caller reads it.
func (s *session) subscribe(ctx context.Context, worker string) (*reader, error) {
	resp, err := s.stream.open(ctx, http.MethodGet, "/api/workers/"+worker+"/stream", "")
	if err != nil {
		return nil, err
	}
	return &reader{body: resp.Body}, nil
}

// read counts events until the connection ends.
func (r *reader) read() {
	end := []byte(`"type":"finish",`)
	buf := make([]byte, 8<<10)
	kept := 0 // bytes of the last read that may be the beginning of end
	for {
		n, err := r.body.Read(buf[kept:])
		if err != nil {
			return
		}
		b := buf[:kept+n]
		r.bytes.Add(int64(n))
		r.events.Add(int64(bytes.Count(b[max(0, kept-2):], []byte("}\n\n")))) // a heartbeat has no JSON
		r.ends.Add(int64(bytes.Count(b, end)))
		kept = copy(buf, b[max(0, len(b)-len(end)+1):])
	}
}

// resident returns the memory of the session's own server. It returns false if there is none, or if
// this system does not show the memory.
func (s *session) resident() (float64, bool) {
	if s.server == nil {
		return 0, false
	}
	time.Sleep(time.Second) // until work in the background has ended
	bytes, err := s.server.memory()
	return bytes, err == nil
}

// measureIdle measures a server after a restart, and one with running turns.
func measureIdle(ctx context.Context, s *session) error {
	const turns = 32
	s.add(Figure{Name: "first start: ready", Value: milliseconds(s.server.ready), Unit: "ms", Less: true})
	// The first start creates tables and hashes a password, which takes memory once.
	if err := s.restart(ctx, "server"); err != nil {
		return err
	}
	s.add(Figure{Name: "start: listening", Value: milliseconds(s.server.listening), Unit: "ms", Less: true})
	s.add(Figure{Name: "start: ready", Value: milliseconds(s.server.ready), Unit: "ms", Less: true})
	// One second after its start a server releases the memory that only the start needed.
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(3 * time.Second):
	}
	idle, ok := s.resident()
	if !ok {
		s.progress("this system does not show the memory of a process")
		return nil
	}
	s.add(Figure{Name: "memory idle", Value: idle / (1 << 20), Unit: "MiB", Less: true})
	worker, err := s.newWorker(ctx, "Memory")
	if err != nil {
		return err
	}
	body := taskBody(worker, map[string]string{"input": script("wait 2s", "say "+answer)})
	// The first turn alone maps the code that all turns share.
	if err := errors.Join(s.queue(ctx, body), s.drained(ctx)); err != nil {
		return err
	}
	idle, _ = s.resident()
	for range turns {
		if err := s.queue(ctx, body); err != nil {
			return err
		}
	}
	busy, _ := s.resident()
	s.add(Figure{Name: "memory of a running turn", Value: max(0, busy-idle) / turns / 1024, Unit: "KiB", Less: true})
	return s.drained(ctx)
}

// milliseconds returns a time as the table shows it.
func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
