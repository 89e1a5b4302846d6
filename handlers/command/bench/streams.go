package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// A reader counts the events of one stream. It is cheap, because all readers of a measure share the
// machine with the server.
type reader struct {
	body   io.ReadCloser
	events atomic.Int64
	ends   atomic.Int64 // of turns
}

// subscribe opens the stream of a worker.
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
		r.events.Add(int64(bytes.Count(b[max(0, kept-1):], []byte("\n\n"))))
		r.ends.Add(int64(bytes.Count(b, end)))
		kept = copy(buf, b[max(0, len(b)-len(end)+1):])
	}
}

// measureFanOut sends the events of one worker to many readers.
func measureFanOut(ctx context.Context, s *session) error {
	for _, n := range s.Readers {
		if err := s.fanOut(ctx, n); err != nil {
			return fmt.Errorf("%d readers: %w", n, err)
		}
	}
	return nil
}

// fanOut measures with n readers: the memory of an idle one, how long a task takes, and
// how fast its events arrive.
func (s *session) fanOut(ctx context.Context, n int) (err error) {
	if s.server != nil { // a used server has free memory, which would hide the memory of the readers
		if err := s.restart(ctx, "server"); err != nil {
			return err
		}
	}
	worker, err := s.newWorker(ctx, fmt.Sprintf("Fan-out to %d", n))
	if err != nil {
		return err
	}
	s.stream = newClient(s.url, s.key)
	s.stream.http.Timeout = 0 // streams stay open
	before, measurable := s.resident()
	var all []*reader
	var wg sync.WaitGroup
	defer func() {
		for _, r := range all {
			err = errors.Join(err, r.body.Close())
		}
		wg.Wait()
		s.stream.http.CloseIdleConnections()
	}()
	for range n {
		r, err := s.subscribe(ctx, worker)
		if err != nil {
			return err
		}
		all = append(all, r)
		wg.Go(r.read)
	}
	if after, ok := s.resident(); ok && measurable && n >= 100 {
		s.add(Figure{Name: fmt.Sprintf("memory of one of %d idle streams", n),
			Value: (after - before) / float64(n) / 1024, Unit: "KiB", Less: true})
	}
	return s.deliver(ctx, worker, all)
}

// deliver runs tasks one after the other until the time is over. Each must reach all readers
// before the next begins.
func (s *session) deliver(ctx context.Context, worker string, all []*reader) error {
	body := taskBody(worker, map[string]string{"input": script("say " + strings.Repeat("word ", 200))})
	done := int64(0)
	r, err := loop{1, s.For, func(ctx context.Context, _ int) error {
		if _, err := s.do(ctx, http.MethodPost, "/api/tasks", body); err != nil {
			return err
		}
		done++
		return eventually(ctx, "all readers", func() (bool, error) {
			return !slices.ContainsFunc(all, func(r *reader) bool { return r.ends.Load() < done }), nil
		})
	}}.run(ctx)
	if err != nil {
		return err
	}
	events := int64(0)
	for _, reader := range all {
		events += reader.events.Load()
	}
	s.add(Figure{Name: fmt.Sprintf("events to %d readers", len(all)), Value: float64(events) / r.elapsed.Seconds(),
		Unit: "/s", Times: r.times()})
	return nil
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
