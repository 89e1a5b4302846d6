package handlers_test

import (
	"sync"
	"testing"

	"journeyman/store/storetest"
)

// TestAnswerBelongsToRequestedTurn checks that a request is answered with its own turn, even if the
// task has later turns. A repetition gets the first result.
func TestAnswerBelongsToRequestedTurn(t *testing.T) {
	t.Parallel()
	for name, header := range map[string]string{"by key": "Idempotency-Key: first", "by retry": "X-Stainless-Retry-Count: 1"} {
		t.Run(name, func(t *testing.T) {
			is, s := onServer(t)
			one := encode(fields{"taskId": "chat", "input": publishing("a.txt", "one") + scripted("say ONE")})
			first := s.must(t, "POST", "/api/tasks", one, header)
			second := s.run(t, fields{"taskId": "chat", "input": scripted("say TWO")})
			is.Equal(second.text("output_text"), "TWO")
			again := s.must(t, "POST", "/api/tasks", one, header)
			is.Equal(again.header.Get("Idempotency-Replayed"), "true")
			is.Equal(again.text("metadata.turnId"), first.text("metadata.turnId"))
			is.Equal(again.text("output_text"), first.text("output_text"))
			is.Equal(again.size("messages"), first.size("messages"))
			now := s.must(t, "GET", "/api/workers/"+first.text("id")+"?taskId=chat", "")
			is.Equal(now.text("output_text"), "TWO") // a read shows the last turn
			is.Equal(now.size("messages"), first.size("messages")+2)
		})
	}
}

func TestWaitingWithATurnQueuedBehind(t *testing.T) {
	is, s := onServer(t)
	var wg sync.WaitGroup
	var first response
	wg.Go(func() { first = s.run(t, fields{"taskId": "q", "input": scripted("wait 300ms", "say A")}) })
	storetest.Eventually(t, "the first turn runs", func() bool { return s.do(t, "GET", "/api/tasks/q", "").status == 200 })
	s.do(t, "POST", "/api/tasks", encode(fields{"taskId": "q", "input": scripted("wait 2s", "say B")}), "Prefer: respond-async")
	wg.Wait()
	is.Equal(first.text("output_text"), "A")
	is.Equal(first.text("status"), "completed")
	is.Equal(first.at("running"), false)
}
