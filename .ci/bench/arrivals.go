package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/smtp"
	"net/url"
	"sync/atomic"
	"time"
)

// drained waits until no task is queued or running.
func (s *session) drained(ctx context.Context) error {
	return eventually(ctx, "the end of all tasks", func() (bool, error) {
		for _, status := range []string{"pending", "running"} {
			body, err := s.do(ctx, http.MethodGet, "/api/tasks?limit=1&status="+status, "")
			if err != nil {
				return false, err
			}
			var page struct{ Items []json.RawMessage }
			if err := json.Unmarshal(body, &page); err != nil || len(page.Items) > 0 {
				return false, err
			}
		}
		return true, nil
	})
}

// watched subscribes to a worker. ends returns the number of its turns that have ended since then.
func (s *session) watched(ctx context.Context, worker string) (ends func() int64, stop func() error, err error) {
	s.stream = newClient(s.url, s.key)
	s.stream.http.Timeout = 0
	r, err := s.subscribe(ctx, worker)
	if err != nil {
		return nil, nil, err
	}
	done := make(chan struct{})
	go func() { defer close(done); r.read() }()
	return r.ends.Load, func() error {
		err := r.body.Close()
		<-done
		s.stream.http.CloseIdleConnections()
		return err
	}, nil
}

// measureMail sends mails over 8 and 32 connections. A mail counts when its task has ended.
func measureMail(ctx context.Context, s *session) error {
	for _, connections := range []int{8, 32} {
		if err := s.mail(ctx, connections); err != nil {
			return err
		}
	}
	return nil
}

func (s *session) mail(ctx context.Context, connections int) (err error) {
	worker, err := s.newWorker(ctx, "Mail")
	if err != nil {
		return err
	}
	var box struct{ Email string }
	answer, err := s.do(ctx, http.MethodGet, "/api/workers/"+worker+"/email", "")
	if err = errors.Join(err, json.Unmarshal(answer, &box)); err != nil {
		return err
	}
	ends, stop, err := s.watched(ctx, worker)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	senders := make([]*smtp.Client, connections)
	defer func() {
		for _, c := range senders {
			if c != nil {
				_ = c.Close() // the server may have closed it first
			}
		}
	}()
	for i := range senders {
		if senders[i], err = smtp.Dial(s.server.mail); err != nil {
			return err
		}
	}
	var sent atomic.Int64
	r, err := loop{connections, s.For, func(_ context.Context, i int) error {
		n := sent.Add(1)
		// A server accepts a limited number of mails of one person an hour.
		person := fmt.Sprintf("person%d.%d@example.com", i, n/50)
		return sendMail(senders[i], person, box.Email, fmt.Sprintf("%s-%d", worker, n))
	}}.run(ctx)
	if err != nil {
		return err
	}
	drainBegun := time.Now()
	err = eventually(ctx, "the tasks of all mails", func() (bool, error) { return ends() >= sent.Load(), nil })
	if err != nil {
		return err
	}
	s.add(Figure{Name: fmt.Sprintf("mails to completed, %d connections", connections), Unit: "/s",
		Value: float64(sent.Load()) / (r.elapsed + time.Since(drainBegun)).Seconds(), Times: r.times(),
		Machine: s.machine(syncs)})
	return nil
}

// sendMail sends one mail on a connection that is open.
func sendMail(c *smtp.Client, from, to, id string) error {
	if err := errors.Join(c.Mail(from), c.Rcpt(to)); err != nil {
		return err
	}
	w, err := c.Data()
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "From: %s\r\nTo: %s\r\nSubject: Measured\r\n"+
		"Message-ID: <%s@example.com>\r\nDate: %s\r\n\r\n%s\r\n",
		from, to, id, time.Now().Format(time.RFC1123Z), script("say "+answer))
	return errors.Join(err, w.Close())
}

// measureWebhooks runs tasks of 1 and of 10 workers with a webhook each, until a receiver in this
// process has all deliveries.
func measureWebhooks(ctx context.Context, s *session) error {
	for _, n := range []int{1, 10} {
		if err := s.webhooks(ctx, n); err != nil {
			return err
		}
	}
	return nil
}

func (s *session) webhooks(ctx context.Context, receivers int) (err error) {
	var got atomic.Int64
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	web := &http.Server{ReadHeaderTimeout: 10 * time.Second, Handler: http.HandlerFunc(
		func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body) // an incomplete delivery is sent again
			got.Add(1)
			w.WriteHeader(http.StatusNoContent)
		})}
	go func() { _ = web.Serve(ln) }() // until Close
	defer func() { err = errors.Join(err, web.Close()) }()
	workers := make([]string, receivers)
	for i := range workers {
		if workers[i], err = s.newWorker(ctx, "Webhooks"); err != nil {
			return err
		}
		to := (&url.URL{Scheme: "http", Host: ln.Addr().String(), Path: fmt.Sprintf("/%d", i)}).String()
		path := "/api/workers/" + workers[i] + "/webhook"
		if err := s.post(ctx, http.MethodPut, path, map[string]string{"url": to}, nil); err != nil {
			return err
		}
	}
	r, err := loop{64, s.For, func(ctx context.Context, client int) error {
		_, err := s.do(ctx, http.MethodPost, "/api/tasks", taskBody(workers[client%receivers], nil))
		return err
	}}.run(ctx)
	if err != nil {
		return err
	}
	drainBegun := time.Now()
	want := int64(len(r.took))
	if err := eventually(ctx, "all deliveries", func() (bool, error) { return got.Load() >= want, nil }); err != nil {
		return err
	}
	s.add(Figure{Name: fmt.Sprintf("tasks to delivered, %d webhooks", receivers), Unit: "/s",
		Value: float64(want) / (r.elapsed + time.Since(drainBegun)).Seconds(), Machine: s.machine(barePosts)})
	return nil
}

// measureSchedules makes schedules become due in the same second, and measures the time until all
// their turns are accepted.
func measureSchedules(ctx context.Context, s *session) (err error) {
	const workers, each = 100, 100
	begun := time.Now()
	due := begun.Add(time.Minute).Truncate(time.Second)
	ids := make([]string, workers)
	body, _ := json.Marshal(map[string]any{"input": script("say " + answer), // a map of strings marshals
		"when": map[string]string{"type": "scheduled", "date": due.Format(time.RFC3339)}})
	for i := range ids {
		if ids[i], err = s.newWorker(ctx, "Schedules"); err != nil {
			return err
		}
	}
	var next atomic.Int64
	if _, err := (loop{32, time.Minute, func(ctx context.Context, _ int) error {
		n := next.Add(1) - 1
		if n >= workers*each {
			return errEnough
		}
		_, err := s.do(ctx, http.MethodPost, "/api/workers/"+ids[n%workers]+"/schedules", string(body))
		return err
	}}).run(ctx); !errors.Is(err, errEnough) {
		return errors.Join(err, errors.New("the schedules could not be created within a minute"))
	}
	s.progress("%d schedules were created in %v and are due at %s", workers*each,
		time.Since(begun).Round(time.Millisecond), due.Format(time.TimeOnly))
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(time.Until(due)):
	}
	left := ids
	if err := eventually(ctx, "the schedules", func() (_ bool, err error) {
		left, err = s.withSchedules(ctx, left)
		return len(left) == 0, err
	}); err != nil {
		return err
	}
	s.add(Figure{Name: "10,000 schedules due at once: accepted", Value: time.Since(due).Seconds(), Unit: "s",
		Less: true})
	if err := s.drained(ctx); err != nil {
		return err
	}
	s.add(Figure{Name: "10,000 schedules due at once: completed", Value: time.Since(due).Seconds(), Unit: "s",
		Less: true})
	return nil
}

// errEnough ends a loop that has created enough.
var errEnough = errors.New("enough")

// withSchedules returns workers without the leading ones that have no schedules left. A schedule that has
// run is no longer listed. The server is busy, so each worker is asked no more often than necessary.
func (s *session) withSchedules(ctx context.Context, workers []string) ([]string, error) {
	for i, id := range workers {
		body, err := s.do(ctx, http.MethodGet, "/api/workers/"+id+"/schedules", "")
		if err != nil {
			return workers, err
		}
		var list struct{ Schedules []json.RawMessage }
		if err := json.Unmarshal(body, &list); err != nil || len(list.Schedules) > 0 {
			return workers[i:], err
		}
	}
	return nil, nil
}
