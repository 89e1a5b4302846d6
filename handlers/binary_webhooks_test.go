package handlers_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/matryer/is"
)

// A hook is an endpoint that counts the deliveries of each turn.
type hook struct {
	*httptest.Server
	mu     sync.Mutex
	turns  map[string]map[string]bool // delivery ids by turn
	status int
}

func newHook(t *testing.T) *hook {
	t.Helper()
	h := &hook{turns: map[string]map[string]bool{}, status: http.StatusOK}
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var v struct {
			ID   string
			Turn struct{ ID string }
		}
		if err != nil || json.Unmarshal(body, &v) != nil {
			return // cut off by a kill
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.turns[v.Turn.ID] == nil {
			h.turns[v.Turn.ID] = map[string]bool{}
		}
		h.turns[v.Turn.ID][v.ID] = true
		w.WriteHeader(h.status)
	}))
	t.Cleanup(h.Close)
	return h
}

func (h *hook) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.turns)
}

// TestKillNineAroundDeliveries kills the program while turns end and webhooks are
// told. Every turn is told of, under one id however often.
func TestKillNineAroundDeliveries(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	h := newHook(t)
	dir := t.TempDir()
	const private = "--allow-private-network"
	s := serve(t, dir, private)
	worker := s.mustPost(t, "/api/workers", map[string]any{}).ID
	is.Equal(s.setHook(t, worker, h.URL), http.StatusOK)
	want := map[string]bool{}
	for round := range 5 {
		before := h.count()
		for i := range 30 {
			run := s.mustPost(t, "/api/tasks", map[string]any{"workerId": worker, "input": offlineScript(fmt.Sprintf("say %d %d", round, i))},
				"Prefer", "respond-async")
			want[run.Metadata.TurnID] = true
		}
		eventually(t, "a delivery", func() bool { return h.count() > before })
		s.kill()
		s = serve(t, dir, private)
	}
	eventually(t, "all deliveries", func() bool { return h.count() >= len(want) })
	s.stop(t)
	h.mu.Lock()
	defer h.mu.Unlock()
	for turn, ids := range h.turns {
		is.True(want[turn])
		is.Equal(len(ids), 1) // the same id on every attempt
	}
	is.Equal(len(h.turns), 150)
}

// setHook configures a worker's webhook and gives the status of the answer.
func (s *instance) setHook(t *testing.T, worker, url string) int {
	t.Helper()
	a, err := s.send(t.Context(), http.MethodPut, "/api/workers/"+worker+"/webhook", strings.NewReader(encode(fields{"url": url})),
		"Content-Type", "application/json")
	if err != nil {
		t.Fatal(err)
	}
	return a.status
}

// TestWebhookNeedsLeaveForThisMachine is the guard, in the whole program.
func TestWebhookNeedsLeaveForThisMachine(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	h := newHook(t)
	s := serve(t, t.TempDir())
	worker := s.mustPost(t, "/api/workers", map[string]any{}).ID
	for _, url := range []string{h.URL, "https://127.0.0.1/", "https://localhost/", "https://0x7f.1/"} {
		is.Equal(s.setHook(t, worker, url), http.StatusBadRequest)
	}
	s.stop(t)
}

// TestStopsWithAHangingWebhook has the program asked to end while an endpoint does
// not answer.
func TestStopsWithAHangingWebhook(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	arrived := make(chan struct{}, 8)
	hanging := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		arrived <- struct{}{}
		<-r.Context().Done()
	}))
	t.Cleanup(hanging.Close)
	s := serve(t, t.TempDir(), "--allow-private-network")
	worker := s.mustPost(t, "/api/workers", map[string]any{}).ID
	is.Equal(s.setHook(t, worker, hanging.URL), http.StatusOK)
	s.mustPost(t, "/api/tasks", map[string]any{"workerId": worker, "input": "Hello"})
	<-arrived
	begun := time.Now()
	s.stop(t)
	is.True(time.Since(begun) < 9*time.Second)
}
