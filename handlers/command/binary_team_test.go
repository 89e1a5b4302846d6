package command_test

import (
	"encoding/json"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store/ordertest"
	"journeyman/store/storetest"
)

// nestedScript returns a script that runs a worker that runs a worker, and so on. call returns the
// script line for an instruction.
func nestedScript(depth int, call func(input string) string) string {
	input := offlineScript("say bottom")
	for range depth {
		input = offlineScript(call(input), "say {{last}}")
	}
	return input
}

// TestOwnMCP has a worker call itself through the server's own /mcp, with one slot: each call
// releases the slot, and the calls end at the depth limit.
func TestOwnMCP(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	is.NoErr(err)
	addr := ln.Addr().String()
	is.NoErr(ln.Close())
	dir := t.TempDir()
	config, err := json.Marshal(map[string]any{"mcpServers": map[string]any{"self": map[string]any{"workers": "all",
		"url": "http://" + addr + "/mcp", "headers": map[string]string{"Authorization": "Bearer " + testKey}}}})
	is.NoErr(err)
	is.NoErr(os.WriteFile(filepath.Join(dir, "mcp.json"), config, 0o600))
	s := serve(t, dir, "--addr", addr, "--concurrency", "1")
	worker := s.mustPost(t, "/api/workers", map[string]any{"title": "Echo", "instructions": "Say it."})
	call := func(input string) string {
		return toolLine("self__run_worker", map[string]any{"worker": worker.ID, "input": input})
	}
	begun := time.Now()
	v := s.mustPost(t, "/api/tasks", map[string]any{"workerId": worker.ID, "input": nestedScript(3, call)})
	is.True(strings.Contains(v.OutputText, `"status":"completed"`)) // the answer of the called worker
	is.Equal(s.countTasks(t), 1+3)
	v = s.mustPost(t, "/api/tasks", map[string]any{"workerId": worker.ID, "input": nestedScript(6, call)})
	is.True(strings.Contains(v.OutputText, `"status":"completed"`)) // also at the depth limit
	is.Equal(s.countTasks(t), 1+3+1+5)
	ordertest.Below(is, time.Since(begun), 50*time.Second) // no call has reached its time limit
}

// TestKillTeams kills the program at random moments while teams of workers run. Each turn ends
// once, and each call has started one turn.
func TestKillTeams(t *testing.T) {
	storetest.Long(t)
	t.Parallel()
	is := is.New(t)
	dir := t.TempDir()
	s := serve(t, dir, "--concurrency", "8")
	worker := s.mustPost(t, "/api/workers", map[string]any{"title": "Echo", "instructions": "Say it."})
	call := func(input string) string {
		return "wait 20ms\n" + toolLine("run_worker", map[string]any{"worker": "Echo", "input": input})
	}
	random := rand.New(rand.NewPCG(rand.Uint64(), 1))
	for round := range 20 {
		var tasks []seenRun
		for range 8 {
			tasks = append(tasks, s.mustPost(t, "/api/tasks", map[string]any{"workerId": worker.ID,
				"input": nestedScript(4, call)}, "Prefer", "respond-async"))
		}
		select {
		case <-time.After(time.Duration(random.IntN(600)) * time.Millisecond):
		case <-t.Context().Done():
		}
		s.kill()
		s = serve(t, dir, "--concurrency", "8")
		for i, v := range tasks {
			v = s.ended(t, v)
			if !strings.Contains(v.OutputText, `"status":"completed"`) {
				t.Fatalf("round %d, team %d: %s", round, i, v.OutputText)
			}
		}
	}
	is.Equal(s.countTasks(t), 20*8*5) // one for each call
	s.stop(t)
	storetest.Sound(t, dir)
}

// countTasks returns the number of tasks.
func (s *instance) countTasks(t *testing.T) (n int) {
	t.Helper()
	for cursor := ""; ; {
		a, err := s.send(t.Context(), "GET", "/api/tasks?limit=100&cursor="+url.QueryEscape(cursor), nil)
		var page struct {
			Items      []json.RawMessage
			NextCursor *string
		}
		if err == nil {
			err = json.Unmarshal(a.body, &page)
		}
		is.New(t).NoErr(err)
		if n += len(page.Items); page.NextCursor == nil {
			return n
		}
		cursor = *page.NextCursor
	}
}
