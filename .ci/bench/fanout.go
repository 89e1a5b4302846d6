package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// stuckReaders is the number of subscribers that read nothing, beside the readers of a large
// fan-out. The server must not wait for them.
const stuckReaders = 100

const (
	manyReaders = 100 // from this number on, a fan-out has stuck readers and shows its CPU time

	// memoryReaders is the number of readers from which their memory is measured. With fewer, the
	// garbage that their requests leave until the next collection is larger than the streams.
	memoryReaders = 2000
)

// measureFanOut sends the events of one worker to many readers.
func measureFanOut(ctx context.Context, s *session) error {
	for _, n := range s.Readers {
		var r refusal
		err := s.fanOut(ctx, n)
		switch {
		case errors.As(err, &r) && n > 1 || errors.Is(err, syscall.EMFILE):
			s.progress("%d readers are not measured: %v", n, err)
			s.progress("one address gets half of a server's connections, which ulimit -n and --max-connections limit")
		case err != nil:
			return fmt.Errorf("%d readers: %w", n, err)
		}
	}
	return nil
}

// A fanOut is a number of streams of one worker.
type fanOut struct {
	readers []*reader
	stuck   []net.Conn
	wg      sync.WaitGroup
}

// close closes all streams and waits for their readers.
func (f *fanOut) close() (err error) {
	for _, r := range f.readers {
		err = errors.Join(err, r.body.Close())
	}
	for _, c := range f.stuck {
		err = errors.Join(err, c.Close())
	}
	f.wg.Wait()
	return err
}

// fanOut measures with n readers: the memory of an idle one, how long a task takes, how fast its
// events arrive, and the CPU time of an event.
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
	keys, err := s.keys(ctx, n)
	if err != nil {
		return err
	}
	s.stream = newClient(s.url, s.key)
	s.stream.http.Timeout = 0 // streams stay open
	defer s.stream.http.CloseIdleConnections()
	before, measurable := s.resident()
	var all fanOut
	defer func() { err = errors.Join(err, all.close()) }()
	for i := range n {
		s.stream.key = keys[i%len(keys)]
		r, err := s.subscribe(ctx, worker)
		if err != nil {
			return fmt.Errorf("after %d streams: %w", i, err)
		}
		all.readers = append(all.readers, r)
		all.wg.Go(r.read)
	}
	if after, ok := s.resident(); ok && measurable && n >= memoryReaders {
		s.add(Figure{Name: fmt.Sprintf("memory of one of %d idle streams", n),
			Value: (after - before) / float64(n) / 1024, Unit: "KiB", Less: true})
	}
	if n >= manyReaders {
		for range stuckReaders {
			c, err := s.openStuck(ctx, worker)
			if err != nil {
				return fmt.Errorf("after %d streams: %w", n+len(all.stuck), err)
			}
			all.stuck = append(all.stuck, c)
		}
	}
	return s.deliver(ctx, worker, all.readers)
}

// keys returns the keys for n readers. A server limits the streams of one key, so the session's own
// server gets several keys.
func (s *session) keys(ctx context.Context, n int) ([]string, error) {
	const readers = 2000 // of one key
	keys := []string{s.key}
	for s.server != nil && len(keys)*readers < n {
		key, err := s.server.createKey(ctx, fmt.Sprintf("Readers %d", len(keys)))
		if err != nil {
			return nil, err
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// openStuck opens a stream of a worker and reads only the beginning of its header.
func (s *session) openStuck(ctx context.Context, worker string) (c net.Conn, err error) {
	req, err := s.stream.request(ctx, http.MethodGet, "/api/workers/"+worker+"/stream", "")
	if err != nil {
		return nil, err
	}
	if c, err = net.Dial("tcp", req.URL.Host); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Close())
		}
	}()
	// The kernel would otherwise take all events of the measure.
	if err := c.(*net.TCPConn).SetReadBuffer(1); err != nil {
		return nil, err
	}
	if err := req.Write(c); err != nil {
		return nil, err
	}
	status := make([]byte, len("HTTP/1.1 200"))
	if _, err := c.Read(status); err != nil {
		return nil, err
	}
	if string(status) != "HTTP/1.1 200" {
		return nil, refusal(fmt.Sprintf("a stream is refused: %s", status))
	}
	return c, nil
}

// deliver runs tasks one after the other until the time is over. Each must reach all readers
// before the next begins.
func (s *session) deliver(ctx context.Context, worker string, all []*reader) error {
	body := taskBody(worker, map[string]string{"input": script("say " + strings.Repeat("word ", 200))})
	done := int64(0)
	before, measurable := s.used()
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
	each := all[0].events.Load()
	for _, reader := range all {
		if got := reader.events.Load(); got != each {
			return fmt.Errorf("one reader has %d events, another one has %d", got, each)
		}
	}
	events := float64(each) * float64(len(all))
	s.add(Figure{Name: fmt.Sprintf("events to %d readers", len(all)), Value: events / r.elapsed.Seconds(),
		Unit: "/s", Times: r.times()})
	after, ok := s.used()
	if !ok || !measurable || len(all) < manyReaders {
		return nil
	}
	bare, err := bareDelivery(min(len(all), 1000), int(all[0].bytes.Load()/each))
	if err == nil {
		s.add(Figure{Name: fmt.Sprintf("CPU of an event to one of %d readers", len(all)), Unit: "µs", Less: true,
			Value: float64((after - before).Nanoseconds()) / 1000 / events, Machine: bare})
	}
	return err
}

// used returns the CPU time that the session's own server has used. It returns false if there is
// none, or if this system does not show the time.
func (s *session) used() (time.Duration, bool) {
	if s.server == nil {
		return 0, false
	}
	t, err := s.server.cpu()
	return t, err == nil
}
