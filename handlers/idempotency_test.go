package handlers_test

import (
	"strings"
	"sync"
	"testing"
	"time"
)

// TestOneTaskForManyRequests sends twenty equal requests at once, with each way to mark
// repetitions.
func TestOneTaskForManyRequests(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ header, path string }{
		"a task":               {"Idempotency-Key: k", "/api/tasks"},
		"a worker and its run": {"Idempotency-Key: k", "/api/workers"},
		"retries":              {"X-Stainless-Retry-Count: 1", "/api/tasks"},
	} {
		t.Run(name, func(t *testing.T) {
			is, s := onServer(t)
			body := encode(fields{"input": scripted("wait 50ms", "say once")})
			var wg sync.WaitGroup
			got := make([]response, 20)
			for i := range got {
				wg.Go(func() { got[i] = s.must(t, "POST", tt.path, body, tt.header, "Prefer: wait=30") })
			}
			wg.Wait()
			first := 0
			for _, r := range got {
				is.Equal(r.text("metadata.turnId"), got[0].text("metadata.turnId"))
				is.Equal(r.text("output_text"), "once") // all clients wait for the result
				if r.header.Get("Idempotency-Replayed") == "" {
					first++
				}
			}
			is.Equal(first, 1)
			is.Equal(s.must(t, "GET", "/api/tasks", "").size("items"), 1)
			is.Equal(s.must(t, "GET", "/api/workers", "").size("items"), 1)
		})
	}
}

// TestIdempotencyKey checks which requests count as repetitions.
func TestIdempotencyKey(t *testing.T) {
	now := newClock()
	is, s := onServer(t, func(set *settings) { set.Store.Now = now.Now })
	guest, _ := s.member(t, "bob@example.com")
	id := s.newWorker(t, fields{})
	const key = "Idempotency-Key: k"
	body := `{"input":"hello","workerId":"` + id + `"}`
	first := s.must(t, "POST", "/api/tasks", body, key)
	turn := first.text("metadata.turnId")
	is.Equal(first.header.Get("Idempotency-Replayed"), "")

	for _, same := range []string{body, ` { "workerId" : "` + id + `", "input":"\u0068ello" } `} {
		again := s.must(t, "POST", "/api/tasks", same, key)
		is.Equal(again.text("metadata.turnId"), turn)
		is.Equal(again.header.Get("Idempotency-Replayed"), "true")
	}
	is.Equal(s.do(t, "POST", "/api/tasks", body, key, "Prefer: respond-async").status, 202)
	for _, call := range [][2]string{
		{"/api/tasks", `{"input":"hello!","workerId":"` + id + `"}`}, {"/api/tasks", `{"input":"hello","workerId":"` + id + `","budget":"low"}`},
		{"/api/workers", body}, {"/api/workers", `{}`}, {"/api/workers/" + id, body}, {"/api/tasks/" + first.text("metadata.taskId") + "/cancel", ""},
	} {
		is.Equal(s.do(t, "POST", call[0], call[1], key).refused(), "422 idempotency_mismatch")
	}
	is.True(guest.must(t, "POST", "/api/tasks", body, key).text("metadata.turnId") != turn) // another key has its own requests
	is.True(s.must(t, "POST", "/api/tasks", body, "Idempotency-Key: K").text("metadata.turnId") != turn)
	is.True(s.must(t, "POST", "/api/tasks", body).text("metadata.turnId") != turn)

	st := s.open(t, "POST", "/api/tasks", `{"input":"hello","workerId":"`+id+`","stream":true}`, "Idempotency-Key: streamed")
	is.True(st.ended(t))
	replay := s.open(t, "POST", "/api/tasks", `{"input":"hello","workerId":"`+id+`","stream":true}`, "Idempotency-Key: streamed")
	is.True(replay.ended(t))
	is.Equal(replay.resp.Header.Get("Idempotency-Replayed"), "true")
	is.True(strings.Contains(replay.types(), "finish"))

	s.must(t, "DELETE", "/api/workers/"+id, "")
	is.Equal(s.must(t, "POST", "/api/tasks", body, key).text("metadata.turnId"), turn) // the result stays the same
	now.advance(24*time.Hour + time.Second)
	is.Equal(s.do(t, "POST", "/api/tasks", body, key).refused(), "404 not_found") // the key has expired, so this is a new request
}

// TestRefusalsAreNotRemembered uses a key again after correcting the request.
func TestRefusalsAreNotRemembered(t *testing.T) {
	is, s := onServer(t, idle)
	const key = "Idempotency-Key: k"
	is.Equal(s.do(t, "POST", "/api/workers", `{"title":""}`, key).status, 400)
	made := s.must(t, "POST", "/api/workers", `{"title":"T"}`, key)
	again := s.must(t, "POST", "/api/workers", `{"title":"T"}`, key)
	is.Equal(again.text("id"), made.text("id"))
	is.Equal(again.header.Get("Idempotency-Replayed"), "true")
	is.Equal(s.do(t, "POST", "/api/workers", `{"title":"U"}`, key).refused(), "422 idempotency_mismatch")
	is.Equal(s.must(t, "GET", "/api/workers", "").size("items"), 1)
}

// TestRetryCount checks which earlier request a generated client's retry joins.
func TestRetryCount(t *testing.T) {
	now := newClock()
	is, s := onServer(t, func(set *settings) { set.Store.Now = now.Now })
	guest, _ := s.member(t, "bob@example.com")
	const body, retry = `{"input":"hello"}`, "X-Stainless-Retry-Count: 1"
	turn := func(s *site, headers ...string) string {
		return s.must(t, "POST", "/api/tasks", body, headers...).text("metadata.turnId")
	}
	first := turn(s, "X-Stainless-Retry-Count: 0")
	is.Equal(turn(s, retry), first)
	second := turn(s)                                       // the same request without a retry count is new
	is.True(second != first)                                // another key made the same turn
	is.Equal(turn(s, "X-Stainless-Retry-Count: 2"), second) // the newest request
	is.True(turn(guest, retry) != second)                   // another caller got the same turn
	is.True(turn(s, "X-Stainless-Retry-Count: -1") != second)
	third := turn(s, "X-Stainless-Retry-Count: x")
	is.True(s.must(t, "POST", "/api/workers", body, retry).text("metadata.turnId") != third) // another path
	now.advance(10*time.Minute + time.Second)
	is.True(turn(s, retry) != third) // too long ago

	made := s.must(t, "POST", "/api/workers", `{"title":"T"}`)
	is.Equal(s.must(t, "POST", "/api/workers", `{"title":"T"}`, retry).text("id"), made.text("id"))
}

// TestCancelOnce repeats a cancellation after the task has got new turns.
func TestCancelOnce(t *testing.T) {
	is, s := onServer(t)
	add := func() {
		s.do(t, "POST", "/api/tasks", encode(fields{"taskId": "t", "input": scripted("wait 1h")}), "Prefer: respond-async")
	}
	add()
	is.Equal(s.must(t, "POST", "/api/tasks/t/cancel", "", "Idempotency-Key: k").text("task.status"), "aborted")
	add()
	again := s.must(t, "POST", "/api/tasks/t/cancel", "", "Idempotency-Key: k")
	is.Equal(again.header.Get("Idempotency-Replayed"), "true")
	is.True(again.text("task.status") != "aborted") // the newer turns are not aborted
	for range 2 {                                   // without a key, each request aborts all present turns
		is.Equal(s.must(t, "POST", "/api/tasks/t/cancel", "", "X-Stainless-Retry-Count: 1").text("task.status"), "aborted")
		add()
	}
	is.Equal(s.must(t, "POST", "/api/tasks/t/cancel", "").text("task.status"), "aborted") // nothing is left to abort
}

// TestReplayShowsThePresentState repeats a request after its turn has ended and a later turn has followed.
// The answer is about the turn of the request, as it is now.
func TestReplayShowsThePresentState(t *testing.T) {
	is, s := onServer(t)
	body := encode(fields{"taskId": "t", "input": scripted("wait 100ms", "say one")})
	first := s.do(t, "POST", "/api/tasks", body, "Idempotency-Key: k", "Prefer: respond-async")
	is.Equal([]any{first.status, first.at("running")}, []any{202, true})
	is.Equal(s.must(t, "POST", "/api/tasks", encode(fields{"taskId": "t", "input": scripted("say two")})).text("output_text"), "two")
	again := s.must(t, "POST", "/api/tasks", body, "Idempotency-Key: k")
	is.Equal([]any{again.text("metadata.turnId"), again.at("running"), again.text("output_text"), again.header.Get("Idempotency-Replayed")},
		[]any{first.text("metadata.turnId"), false, "one", "true"})
}
