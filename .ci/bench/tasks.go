package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// maxClients is the largest of clientCounts.
const maxClients = 256

// clientCounts are the numbers of clients that load the server at once.
func clientCounts() []int { return []int{1, 32, maxClients} }

// measureTasks measures tasks of one step from the request to the answer.
func measureTasks(ctx context.Context, s *session) error {
	worker, err := s.newWorker(ctx, "Tasks")
	if err != nil {
		return err
	}
	return s.runTurns(ctx, "tasks", func(int) string { return taskBody(worker, nil) })
}

// followUps is the number of turns of a measured task, the first one included. An answer shows all
// turns of its task, and the model reads them. A task that grows without end would therefore
// measure the length of the load, and a faster server would have longer tasks.
const followUps = 10

// measureFollowUps adds turns to the last task of each client, and begins another task after
// followUps turns.
func measureFollowUps(ctx context.Context, s *session) error {
	worker, err := s.newWorker(ctx, "Follow-ups")
	if err != nil {
		return err
	}
	begun := time.Now().UnixNano() // another run on the same server has other tasks
	var clients [maxClients]int    // turns so far; each client changes only its own
	return s.runTurns(ctx, fmt.Sprintf("turns of %d-turn tasks", followUps), func(client int) string {
		task := clients[client] / followUps
		clients[client]++
		return taskBody(worker, map[string]string{"taskId": fmt.Sprintf("bench-%d-%d-%d", begun, client, task)})
	})
}

// runTurns loads the server with turns and waits for each answer.
func (s *session) runTurns(ctx context.Context, name string, body func(client int) string) error {
	for _, clients := range clientCounts() {
		r, err := loop{clients, s.For, func(ctx context.Context, client int) error {
			got, err := s.do(ctx, "POST", "/api/tasks", body(client))
			if err == nil && !bytes.Contains(got, []byte(answer)) {
				err = fmt.Errorf("a task ended without its answer: %.300s", got)
			}
			return err
		}}.run(ctx)
		if err != nil {
			return err
		}
		s.add(Figure{Name: fmt.Sprintf("%s, %d clients", name, clients), Value: r.rate(), Unit: "/s", Times: r.times(),
			Machine: s.machine(barePosts)})
	}
	return nil
}

// measureFirstEvent measures the time from a request with a stream to its first text.
func measureFirstEvent(ctx context.Context, s *session) error {
	worker, err := s.newWorker(ctx, "First event")
	if err != nil {
		return err
	}
	body := taskBody(worker, nil)
	body = body[:len(body)-1] + `,"stream":true}`
	r, err := loop{1, s.For, func(ctx context.Context, _ int) error {
		resp, err := s.open(ctx, http.MethodPost, "/api/tasks", body)
		if err != nil {
			return err
		}
		err = readUntil(resp.Body, []byte(`"type":"text-delta"`))
		return errors.Join(err, resp.Body.Close())
	}}.run(ctx)
	if err == nil {
		s.add(Figure{Name: "first event", Value: r.times().P50, Unit: "ms", Less: true, Times: r.times()})
	}
	return err
}

// readUntil reads until text has arrived.
func readUntil(r io.Reader, text []byte) error {
	var kept []byte
	buf := make([]byte, 4096)
	for {
		n, err := r.Read(buf)
		kept = append(kept, buf[:n]...)
		if bytes.Contains(kept, text) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("the stream ended without %s: %w", text, err)
		}
		if drop := len(kept) - len(text); drop > 0 {
			kept = append(kept[:0], kept[drop:]...)
		}
	}
}

// eventually polls a condition until it holds.
func eventually(ctx context.Context, what string, holds func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, requestPatience)
	defer cancel()
	for {
		if ok, err := holds(); ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waited too long for %s: %w", what, ctx.Err())
		case <-time.After(5 * time.Millisecond):
		}
	}
}
