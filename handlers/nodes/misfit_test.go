package nodes_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store/storetest"
)

// TestRefusedSignature streams tasks and pages through a node whose signatures the owner of the worker refuses.
// The accepted work is streamed from the database, also for a repeated Idempotency-Key. The node names the
// reason once in its log, and in /readyz until the reason is gone.
func TestRefusedSignature(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		secret string
		ahead  time.Duration
		check  string
	}{
		"a fast clock":   {secret, time.Minute, "clock"},
		"a slow clock":   {secret, -time.Minute, "clock"},
		"another secret": {otherSecret, 0, "secret"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			list := newNodesWith(t, []string{secret, tt.secret})
			a, b := list[0], list[1]
			b.ahead.Store(int64(tt.ahead))
			worker := a.newWorker()
			body := task(worker, script(`tool write_file {"path":"a","content":"x"}`, "say two"), true)
			b.stream("POST", "/api/tasks", body, "Idempotency-Key: one").until("two")
			b.stream("POST", "/api/tasks", body, "Idempotency-Key: one").until("two")
			b.stream("GET", "/api/workers/"+worker+"?stream=true", "").until("[DONE]")

			// The messages of an idle node show the reason, too, on both nodes.
			for _, d := range list {
				storetest.Eventually(t, "the node names the reason", func() bool { return d.peersCheck(t) == tt.check })
				is.Equal(d.log.count("level=WARN msg=\"another node refuses"), 1)
			}
			if b.ahead.Swap(0) != 0 {
				storetest.Eventually(t, "the clock fits again", func() bool { return b.peersCheck(t) == "ok" })
			}
		})
	}
}

// peersCheck returns the check of /readyz that is about the other nodes. The node stays ready: it serves every
// request, and two nodes that refuse each other must not end the whole service.
func (d *node) peersCheck(t *testing.T) string {
	t.Helper()
	status, v := d.do("GET", "/readyz", "")
	if status != http.StatusOK {
		t.Fatal(status, v)
	}
	checks := v["checks"].(map[string]any)
	text, _ := checks["peers"].(string)
	if reason, _ := v["reason"].(string); text != "ok" && reason == "" {
		t.Error("the answer has no reason", v)
	}
	return text
}
