package nodes_test

import (
	"net/http"
	"testing"

	"journeyman/store/storetest"
)

// turns returns the number of turns in the database.
func (d *node) turns() int {
	d.t.Helper()
	return len(storetest.Rows(d.t, d.store.Dir(), `SELECT id FROM turns`))
}

// TestTurnOfAnotherNodesWorker sends instructions to a node on which the worker is not placed. The other node accepts
// and claims them, and both answer as they would for their own workers.
func TestTurnOfAnotherNodesWorker(t *testing.T) {
	is, a, b := newPair(t)
	worker := a.newWorker()
	before := a.asked.Load()
	status, v := b.run(worker, script("say one"))
	is.Equal(status, http.StatusOK)
	is.Equal(v["output_text"], "one")
	is.Equal(a.asked.Load(), before+1) // it has answered
	status, v = b.do("POST", "/api/workers/"+worker, `{"input":"`+"```offline\\nsay two\\n```"+`"}`, "Prefer: wait=30")
	is.Equal(status, http.StatusOK)
	is.Equal(v["output_text"], "two")
	is.Equal(a.asked.Load(), before+2)
	status, _ = b.do("POST", "/api/tasks", `{"workerId":"`+worker+`"}`) // this node checks it
	is.Equal(status, http.StatusBadRequest)
	is.Equal(a.asked.Load(), before+2)
	// A repeated request has the same result on each node.
	body := task(worker, script("say three"), false)
	_, first := b.do("POST", "/api/tasks", body, "Idempotency-Key: k1")
	is.Equal(a.asked.Load(), before+3)
	count := a.turns()
	_, again := a.do("POST", "/api/tasks", body, "Idempotency-Key: k1")
	is.Equal(first["metadata"].(map[string]any)["turnId"], again["metadata"].(map[string]any)["turnId"])
	is.Equal(a.turns(), count)
}

// TestTurnOfASilentNode sends instructions to a node whose worker is placed on a node that does not answer: before it
// accepts the turn, or after that. Each turn is accepted once, and this node answers.
func TestTurnOfASilentNode(t *testing.T) {
	t.Run("before", func(t *testing.T) {
		is, a, b := newPair(t)
		worker := a.newWorker()
		a.full.Store(true)
		status, v := b.run(worker, script("say one"))
		is.Equal(status, http.StatusOK)
		is.Equal(v["output_text"], "one")
		is.Equal(a.turns(), 2) // with the one of newWorker
	})
	t.Run("after", func(t *testing.T) {
		is, a, b := newPair(t)
		worker := a.newWorker()
		a.mute.Store(true)
		status, v := b.run(worker, script("say one"))
		is.Equal(status, http.StatusOK)
		is.Equal(v["output_text"], "one")
		is.Equal(a.turns(), 2)
	})
	t.Run("gone", func(t *testing.T) {
		is, a, b := newPair(t)
		worker := a.newWorker()
		a.disappear()
		status, v := b.run(worker, script("say one"))
		is.Equal(status, http.StatusOK)
		is.Equal(v["output_text"], "one")
	})
}

// TestForgedTurn sends a request that claims to be forwarded with the id of a turn. Without a signature, the turn gets
// an id of the server.
func TestForgedTurn(t *testing.T) {
	is, a, _ := newPair(t)
	worker := a.newWorker()
	const forged = "trn_01hzzzzzzzzzzzzzzzzzzzzzzz"
	req := a.request("POST", "/api/tasks", task(worker, script("say one"), false), "Journeyman-Node: 1 2 3")
	req.Header["Journeyman-Client"] = []string{"192.0.2.1", forged}
	resp, err := http.DefaultClient.Do(req)
	is.NoErr(err)
	is.NoErr(resp.Body.Close())
	is.Equal(resp.StatusCode, http.StatusOK)
	is.Equal(len(storetest.Rows(t, a.store.Dir(), `SELECT id FROM turns WHERE id = '`+forged+`'`)), 0)
}
