package nodes_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/handlers"
	"journeyman/runner/stream"
	"journeyman/store/db"
	"journeyman/store/ordertest"
	"journeyman/store/people"
	"journeyman/store/storetest"
)

// TestAnswersOfAnotherNode sends requests to one node about turns that another node executes. It runs,
// repeats and cancels tasks.
func TestAnswersOfAnotherNode(t *testing.T) {
	is, a, b := newPair(t)
	worker := a.newWorker()

	status, v := b.run(worker, script("say done"))
	is.Equal(status, http.StatusOK)
	is.Equal(v["output_text"], "done")
	place, err := b.store.PlaceOf(t.Context(), worker, b.runner.ID())
	is.NoErr(err)
	is.Equal(place.URL, a.url) // the other node has executed the turn

	_, first := b.run(worker, script("say once"), "Idempotency-Key: one")
	_, again := a.run(worker, script("say once"), "Idempotency-Key: one")
	is.Equal(first["metadata"].(map[string]any)["turnId"], again["metadata"].(map[string]any)["turnId"])

	status, v = b.do("POST", "/api/tasks", task(worker, script("wait 1h", "say late"), false), "Prefer: respond-async")
	is.Equal(status, http.StatusAccepted)
	taskID := v["metadata"].(map[string]any)["taskId"].(string)
	storetest.Eventually(t, "the turn runs", func() bool { return a.runner.Running() == 1 })
	status, v = b.do("POST", "/api/tasks/"+taskID+"/cancel", "")
	is.Equal(status, http.StatusOK)
	is.Equal(v["task"].(map[string]any)["status"], "aborted")
}

// TestLostMessages loses all messages. The nodes find the changes in the database.
func TestLostMessages(t *testing.T) {
	is, a, b := newPair(t)
	worker := a.newWorker()
	a.deaf.Store(true)
	b.deaf.Store(true)
	status, v := b.run(worker, script("say done"))
	is.Equal(status, http.StatusOK)
	is.Equal(v["output_text"], "done")

	// The first message after that reports that everything may have changed.
	changes := b.runner.Streams.Changes(a.owner.OrganizationID, b.runner.Streams.ChangesNow(a.owner.OrganizationID))
	a.run(worker, script("say more"))
	b.deaf.Store(false)
	kinds := nextChanges(t, changes)
	for _, kind := range db.Changes() {
		is.True(strings.Contains(kinds, string(kind)))
	}
}

// TestNewNode gives a node another id, so that it is new to the other node. It may have missed changes of the
// other node.
func TestNewNode(t *testing.T) {
	_, a, b := newPair(t)
	// log returns the part of a position that changes when all positions become unknown.
	log := func() string {
		name, _, _ := strings.Cut(b.runner.Streams.ChangesNow(a.owner.OrganizationID), ".")
		return name
	}
	storetest.Eventually(t, "the first message", func() bool { return b.heard.Load() > 0 })
	first := log()
	storetest.Exec(t, a.store, `UPDATE runners SET id = 'run_again' WHERE id = ?`, b.runner.ID())
	storetest.Eventually(t, "all positions to be unknown", func() bool { return log() != first })
}

// nextChanges returns the next event of a stream of changes.
func nextChanges(t *testing.T, changes *stream.ChangeStream) string {
	t.Helper()
	events, _, err := changes.Next(t.Context())
	is.New(t).NoErr(err)
	return string(events[0].Data)
}

// TestPagesOfAnotherNode changes records on one node. The open pages of another node are notified.
func TestPagesOfAnotherNode(t *testing.T) {
	is, a, b := newPair(t)
	org := a.owner.OrganizationID
	position := a.runner.Streams.ChangesNow(org) // of a page that this node has sent
	changes := b.runner.Streams.Changes(org, b.runner.Streams.ChangesNow(org))
	a.do("POST", "/api/workers", `{"title":"New"}`)
	begun := time.Now()
	is.True(strings.Contains(nextChanges(t, changes), `"workers"`)) // the first message of a node may list all kinds
	ordertest.Below(is, time.Since(begun), 30*time.Second)          // soon; the machine may be busy
	// The page connects to the other node, which knows the changes since the position.
	data := nextChanges(t, b.runner.Streams.Changes(org, position))
	is.True(strings.Contains(data, "workers"))
}

// TestNodesShareRates stops a node. The other node then allows the whole rate of requests.
func TestNodesShareRates(t *testing.T) {
	is, a, b := newPair(t, func(c *handlers.Config) { c.RateLimit = 600 })
	remaining := func(email string) string {
		_, key := storetest.Caller(t, a.store, "Acme", email, people.RoleMember)
		return a.open("GET", "/api/me", "", "Authorization: Bearer "+key).Header.Get("RateLimit-Remaining")
	}
	is.Equal(remaining("bob@acme.test"), "29") // half of the burst of 60, less this request
	b.stop()
	storetest.Eventually(t, "the other node is gone", func() bool { return a.nodes.Live() == 1 })
	is.Equal(remaining("eve@acme.test"), "59")
}

// TestStateOfNodes checks the health and the metrics of a node.
func TestStateOfNodes(t *testing.T) {
	is, a, _ := newPair(t)
	a.newWorker()
	status, v := a.do("GET", "/readyz", "")
	is.Equal(status, http.StatusOK)
	is.Equal(v["checks"].(map[string]any)["node"], "ok")
	resp := a.open("GET", "/metrics", "")
	is.Equal(resp.StatusCode, http.StatusOK)
	text, err := io.ReadAll(resp.Body)
	is.NoErr(err)
	for _, line := range []string{"journeyman_nodes 2\n", "journeyman_node_leader 1\n", "journeyman_node_workers 1\n",
		"journeyman_node_lease_lost 0\n", "journeyman_node_lease_age_seconds ", "journeyman_node_clock_ahead_seconds "} {
		if !strings.Contains(string(text), line) {
			t.Errorf("no %q in\n%s", line, text)
		}
	}
	is.True(!strings.Contains(string(text), a.url)) // metrics hold no addresses
}
