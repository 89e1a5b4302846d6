package nodes_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/handlers"
	"journeyman/store/storetest"
)

// TestStreamsOfAnotherNode opens each kind of stream on a node that does not execute the turn. Each stream
// contains the step in progress, which is only in the memory of the other node.
func TestStreamsOfAnotherNode(t *testing.T) {
	_, a, b := newPair(t)
	worker := a.newWorker()
	input := script("say one", "wait 1h", "say two")
	t.Run("of an instruction", func(t *testing.T) {
		is := is.New(t)
		r := b.stream("POST", "/api/tasks", task(worker, input, true))
		is.True(strings.Contains(r.until(`"delta":"one`), `"start-step"`))
	})
	t.Run("of a continued worker", func(t *testing.T) {
		other := a.newWorker()
		b.stream("POST", "/api/workers/"+other, `{"stream":true,"input":"`+"```offline\\nsay one\\nwait 1h\\n```"+`"}`).until(`"delta":"one`)
	})
	t.Run("of a task", func(t *testing.T) {
		_, v := b.do("POST", "/api/tasks", task(worker, input, false), "Prefer: respond-async")
		taskID := v["metadata"].(map[string]any)["taskId"].(string)
		b.stream("GET", "/api/workers/"+worker+"?stream=true&taskId="+taskID, "").until(`"delta":"one`)
	})
	t.Run("of a worker", func(t *testing.T) {
		r := b.stream("GET", "/api/workers/"+worker+"/stream", "")
		a.do("POST", "/api/tasks", task(worker, script("say three"), false))
		r.until("three")
	})
}

// TestWatchedWorker opens the stream of a worker that is not placed yet. The turns of the worker then run
// on the node of the stream, although another node accepts them.
func TestWatchedWorker(t *testing.T) {
	is, a, b := newPair(t)
	_, v := a.do("POST", "/api/workers", `{"title":"Scribe"}`)
	worker := v["id"].(string)
	r := b.stream("GET", "/api/workers/"+worker+"/stream", "")
	status, _ := a.run(worker, script("say watched"))
	is.Equal(status, http.StatusOK)
	r.until("watched")
	place, err := a.store.PlaceOf(t.Context(), worker, a.runner.ID())
	is.NoErr(err)
	is.Equal(place.URL, b.url)
}

// TestNodeEndsStream ends the node that executes a turn in the middle of a forwarded stream. The client
// connects again with the id of its last event, and gets the missing events from the other node.
func TestNodeEndsStream(t *testing.T) {
	is, a, b := newPair(t)
	worker := a.newWorker()
	r := b.stream("POST", "/api/tasks", task(worker, script(`tool write_file {"path":"a","content":"x"}`, "say one", "wait 3s",
		"say two"), true))
	r.until(`"delta":"one`)
	a.disappear()
	for ok := true; ok; { // the stream breaks off
		_, ok = r.next()
	}
	is.True(r.in.Err() != nil) // the end is not that of a complete stream
	storetest.Exec(t, b.store, `DELETE FROM runners WHERE id = ?`, a.runner.ID())
	again := b.stream("GET", "/api/workers/"+worker+"?stream=true", "", "Last-Event-ID: "+r.last)
	rest := again.until("[DONE]")
	is.True(strings.Contains(rest, "two"))
	is.True(!strings.Contains(rest, `"type":"start"`)) // it continues the message and does not repeat it
}

// TestNodeIsGone opens streams of a worker whose node does not answer. They are read from the database.
func TestNodeIsGone(t *testing.T) {
	is, a, b := newPair(t)
	worker := a.newWorker()
	a.disappear()
	is.True(strings.Contains(b.stream("GET", "/api/workers/"+worker+"?stream=true", "").until("[DONE]"), "Hello"))
	resp := b.open("GET", "/api/workers/"+worker+"/stream", "")
	is.Equal(resp.StatusCode, http.StatusOK)
	// The failed attempt to forward has not repeated a header.
	is.Equal(len(resp.Header.Values("X-Content-Type-Options")), 1)
	status, v := b.do("GET", "/api/workers/"+worker+"?stream=true&taskId=missing", "")
	is.Equal(status, http.StatusNotFound)
	is.Equal(v["code"], "not_found")
	is.True(strings.HasPrefix(v["requestId"].(string), "req_"))
}

// TestFullNode opens a stream of a worker whose node refuses it. The stream is read from the database.
func TestFullNode(t *testing.T) {
	is, a, b := newPair(t)
	worker := a.newWorker()
	a.full.Store(true)
	is.True(strings.Contains(b.stream("GET", "/api/workers/"+worker+"?stream=true", "").until("[DONE]"), "Hello"))
}

// TestStopEndsForwardedStream stops the node to which a client is connected. The forwarded stream has a
// regular end.
func TestStopEndsForwardedStream(t *testing.T) {
	is, a, b := newPair(t)
	r := b.stream("POST", "/api/tasks", task(a.newWorker(), script("say one", "wait 1h"), true))
	r.until(`"delta":"one`)
	b.runner.Streams.Close()
	for ok := true; ok; {
		_, ok = r.next()
	}
	is.NoErr(r.in.Err())
}

// TestNoCircles moves a worker to another node. A request for the worker is forwarded once.
func TestNoCircles(t *testing.T) {
	is, a, b := newPair(t)
	worker := a.newWorker()
	asked := a.asked.Load() + b.asked.Load()
	storetest.Exec(t, a.store, `UPDATE placements SET runner_id = ?`, b.runner.ID())
	a.stream("GET", "/api/workers/"+worker+"?stream=true", "").until("[DONE]")
	is.Equal(a.asked.Load()+b.asked.Load(), asked+2) // one request to each node

	// A request that claims to be forwarded is answered where it arrives.
	asked = b.asked.Load()
	a.stream("GET", "/api/workers/"+worker+"?stream=true", "", "Journeyman-Node: 1 2 3").until("[DONE]")
	is.Equal(b.asked.Load(), asked)
}

// TestClientOfForwardedRequest forwards a request with forged headers. The other node gets the client's
// real address, and does not count the request towards the rate limit again.
func TestClientOfForwardedRequest(t *testing.T) {
	is, a, b := newPair(t, func(c *handlers.Config) { c.RateLimit = 600 })
	worker := a.newWorker()
	a.seen.Store("")
	resp := b.open("GET", "/api/workers/"+worker+"?stream=true", "", "X-Forwarded-For: 203.0.113.9",
		"Connection: Journeyman-Client, Journeyman-Node")
	is.Equal(resp.StatusCode, http.StatusOK)
	is.Equal(a.seen.Load(), "127.0.0.1")
	is.Equal(len(resp.Header.Values("RateLimit-Limit")), 1)
	// A node ignores the claim of a client to be a node, and does not forward the claim.
	a.seen.Store("")
	resp = b.open("GET", "/api/workers/"+worker+"?stream=true", "", "Journeyman-Client: 203.0.113.9")
	is.Equal(resp.StatusCode, http.StatusOK)
	is.Equal([]any{a.seen.Load(), b.seen.Load()}, []any{"", "127.0.0.1"})
	// Clients get no internal path, not even of a turn that they may read.
	status, v := a.do("GET", "/api/tasks", "")
	is.Equal(status, http.StatusOK)
	taskID := v["items"].([]any)[0].(map[string]any)["id"].(string)
	_, turns, err := a.store.TaskTurns(t.Context(), a.owner.Caller, taskID)
	is.NoErr(err)
	status, v = a.do("GET", "/internal/turns/"+turns[0].ID, "")
	is.Equal(status, http.StatusNotFound)
	is.Equal(v["code"], "not_found")
}
