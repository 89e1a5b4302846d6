package command_test

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store/ordertest"
	"journeyman/store/storetest"
)

// longGrace is a grace period that no test waits for: it is longer than patience.
const longGrace = "10m"

// A pending is a request without an answer.
type pending struct {
	answer chan reply
	failed chan error
}

func (s *instance) begin(t *testing.T, path string, v any) pending {
	p := pending{make(chan reply, 1), make(chan error, 1)}
	go func() {
		a, err := s.post(context.WithoutCancel(t.Context()), path, v) // ends with the program at the latest
		if err != nil {
			p.failed <- err
			return
		}
		p.answer <- a
	}()
	return p
}

func (p pending) wait(t *testing.T) reply {
	t.Helper()
	select {
	case a := <-p.answer:
		return a
	case err := <-p.failed:
		t.Fatal(err)
	case <-time.After(patience):
		t.Fatal("no answer")
	}
	return reply{}
}

// awaitTask waits until the worker has a task in that state.
func (s *instance) awaitTask(t *testing.T, workerID, status string) seenRun {
	t.Helper()
	return s.until(t, seenRun{ID: workerID}, func(v seenRun) bool { return v.Metadata.TaskID != "" && v.Status == status })
}

func (s *instance) newWorker(t *testing.T) string {
	t.Helper()
	return s.mustPost(t, "/api/workers", map[string]any{"title": "A worker"}).ID
}

func TestStopFinishesShortTurns(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	how, release := newHeldModel(t)
	dir := t.TempDir()
	s := how.begin(t, dir, "--model", "openai:m", "--grace", longGrace)
	worker := s.newWorker(t)
	p := s.begin(t, "/api/tasks", map[string]any{"workerId": worker, "input": "Hello"})
	s.awaitTask(t, worker, "running")
	s.signal(t, syscall.SIGTERM)
	s.await(t, s.stderr, stoppingLogged)
	release()
	is.Equal(s.wait(t), 0)
	a := p.wait(t)
	is.Equal(s.must(t, a, nil).OutputText, "all is well") // the client has the answer
}

func TestStopReturnsLongTurns(t *testing.T) {
	storetest.Slow(t)
	t.Parallel()
	is := is.New(t)
	dir := t.TempDir()
	s := serve(t, dir, "--grace", "500ms")
	worker := s.newWorker(t)
	lines := []string{toolLine("write_file", map[string]any{"path": "log", "content": "END"})}
	for i := range 20 {
		lines = append(lines, "wait 100ms", toolLine("edit_file", map[string]any{"path": "log", "old": "END", "new": string(rune('a'+i)) + "END"}))
	}
	lines = append(lines, `tool read_file {"path":"log"}`, "say {{last}}")
	p := s.begin(t, "/api/tasks", map[string]any{"workerId": worker, "input": offlineScript(lines...)})
	v := s.awaitTask(t, worker, "running")
	s.stop(t)
	a := p.wait(t)
	is.Equal(a.status, http.StatusServiceUnavailable) // the waiting client is asked to try again
	is.True(a.header.Get("Retry-After") != "")        // the refusal does not say when to try again
	is.Equal(a.header.Get("Location"), s.url+"/api/tasks/"+v.Metadata.TaskID)

	again := serve(t, dir)
	end := again.ended(t, v)
	is.Equal(end.Error, nil)
	written := regexp.MustCompile(`([a-t]+)END`).FindStringSubmatch(end.OutputText)
	is.True(written != nil)
	ordertest.AtLeast(is, len(written[1]), 19) // the model may see the last call as interrupted
	is.True(slices.IsSorted([]byte(written[1])))
	is.Equal(len(slices.Compact([]byte(written[1]))), len(written[1])) // no step ran twice
	again.stop(t)
	storetest.Sound(t, dir)
}

// TestStopsAreNoInterruptions stops the program more often than a turn may be interrupted: normal
// stops do not count.
func TestStopsAreNoInterruptions(t *testing.T) {
	storetest.Slow(t)
	t.Parallel()
	is := is.New(t)
	dir := t.TempDir()
	how, release := newHeldModel(t)
	serve := func() *instance {
		return how.begin(t, dir, "--model", "openai:m", "--grace", "0s")
	}
	s := serve()
	worker := s.newWorker(t)
	_ = s.begin(t, "/api/tasks", map[string]any{"workerId": worker, "input": "Hello"})
	v := s.awaitTask(t, worker, "running")
	for range 5 {
		s.stop(t)
		s = serve()
		s.awaitTask(t, worker, "running")
	}
	release()
	is.Equal(s.ended(t, v).OutputText, "all is well")
}

func TestStopIsQuick(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	how, release := newHeldModel(t)
	dir := t.TempDir()
	s := how.begin(t, dir, "--model", "openai:m", "--grace", longGrace, "--concurrency", "1")
	worker := s.newWorker(t)
	running := s.begin(t, "/api/tasks", map[string]any{"workerId": worker, "input": "Hello"})
	s.awaitTask(t, worker, "running")
	other := s.newWorker(t)
	queued := s.begin(t, "/api/tasks", map[string]any{"workerId": other, "input": offlineScript("say never now")})
	s.awaitTask(t, other, "pending")
	var streams []*bufio.Reader
	for _, path := range []string{"/api/workers/" + worker + "/stream", "/api/workers/" + worker + "?stream=true", "/api/workers/" + other + "?stream=true"} {
		resp, err := s.open(t.Context(), http.MethodGet, path, nil)
		is.NoErr(err)
		defer resp.Body.Close()
		streams = append(streams, bufio.NewReader(resp.Body))
	}
	s.signal(t, syscall.SIGTERM)
	s.await(t, s.stderr, stoppingLogged)
	for _, r := range streams {
		for {
			line, err := r.ReadString('\n')
			if err != nil {
				break // the connection ends in either way
			}
			is.True(line != "data: [DONE]\n" || r != streams[0]) // a reader of the whole worker reconnects
		}
	}
	release()              // after the end of the streams, no turn begins
	is.Equal(s.wait(t), 0) // only the running turn delays the stop
	is.Equal(s.must(t, running.wait(t), nil).OutputText, "all is well")
	a := queued.wait(t)
	is.Equal(a.status, http.StatusServiceUnavailable)
	var refusal struct{ Code, Error string }
	is.NoErr(json.Unmarshal(a.body, &refusal))
	is.Equal(refusal.Code, "stopping")
}

func TestSecondSignalKills(t *testing.T) {
	t.Parallel()
	for name, sig := range map[string]syscall.Signal{"SIGTERM": syscall.SIGTERM, "SIGINT": syscall.SIGINT} {
		t.Run(name, func(t *testing.T) {
			if sig == syscall.SIGINT {
				storetest.Slow(t)
			}
			t.Parallel()
			is := is.New(t)
			dir := t.TempDir()
			s := serve(t, dir, "--grace", longGrace)
			worker := s.newWorker(t)
			_ = s.begin(t, "/api/tasks", map[string]any{"workerId": worker, "input": offlineScript("wait 1h", "say done")})
			v := s.awaitTask(t, worker, "running")
			s.signal(t, sig)
			s.await(t, s.stderr, secondSignalLogged) // people learn that they need not wait
			s.signal(t, sig)
			is.Equal(s.wait(t), -1) // killed by the signal, long before the end of the grace period
			again := serve(t, dir)
			is.Equal(again.mustGet(t, "/api/workers/"+v.ID).Running, true) // the turn is not lost
		})
	}
}

var secondSignalLogged = regexp.MustCompile(`"msg":"stopping","running":1,.*a second signal stops at once`)

var stoppingLogged = regexp.MustCompile(`"msg":"stopping"`)
