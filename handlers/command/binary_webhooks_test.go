//go:build linux

package command_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store/ordertest"
)

// setHook configures a worker's webhook and returns the status of the answer.
func (s *instance) setHook(t testing.TB, worker, url string) int {
	t.Helper()
	a, err := s.send(t.Context(), http.MethodPut, "/api/workers/"+worker+"/webhook", strings.NewReader(fmt.Sprintf(`{"url": %q}`, url)),
		"Content-Type", "application/json")
	is.New(t).NoErr(err)
	return a.status
}

// TestWebhookNeedsLeaveForThisMachine checks in the whole program that webhooks must not reach this
// machine.
func TestWebhookNeedsLeaveForThisMachine(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	h := newReceiver(t)
	s := serve(t, t.TempDir())
	worker := s.mustPost(t, "/api/workers", map[string]any{}).ID
	for _, url := range []string{h.URL, "https://127.0.0.1/", "https://localhost/", "https://0x7f.1/"} {
		is.Equal(s.setHook(t, worker, url), http.StatusBadRequest)
	}
	s.stop(t)
}

// TestStopsWithAHangingWebhook stops the program while an endpoint does not answer.
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
	ordertest.Below(is, time.Since(begun), 20*time.Second) // the stop waited for the webhook
}
