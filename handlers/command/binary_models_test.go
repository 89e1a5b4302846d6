package command_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store/ordertest"
	"journeyman/store/storetest"
)

// A provider is a fake OpenAI-compatible model server that counts requests. It plays a list of
// steps, each an answer or a tool call. The number of tool results in the request selects the step.
type provider struct {
	*httptest.Server
	steps []string // "NAME {ARGUMENTS}" calls a tool, "say TEXT" answers
	held  chan int // steps whose answer stops in the middle; nil for none

	mu       sync.Mutex
	begun    map[int]int // requests, by step
	finished map[int]int // complete answers, by step
	lost     int         // requests with a call that has no result
}

func newModelServer(t *testing.T, held chan int, steps ...string) *provider {
	t.Helper()
	p := &provider{steps: steps, held: held, begun: map[int]int{}, finished: map[int]int{}}
	p.Server = httptest.NewServer(p)
	t.Cleanup(p.Close)
	return p
}

// ServeHTTP answers a request. The first answer of each step stops in the middle.
func (p *provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Messages []struct{ Role string }
	}
	if raw, err := io.ReadAll(r.Body); err != nil || json.Unmarshal(raw, &body) != nil {
		return // a list of models, or a request that a kill has truncated
	}
	step, outcomes := 0, 0
	for _, m := range body.Messages {
		switch m.Role {
		case "assistant":
			step++
		case "tool":
			outcomes++
		}
	}
	p.mu.Lock()
	p.begun[step]++
	first := p.begun[step] == 1
	if outcomes != step { // each step except the last makes one call
		p.lost++
	}
	p.mu.Unlock()
	w.Header().Set("Content-Type", "text/event-stream")
	flush := w.(http.Flusher).Flush
	chunk := func(delta, finish string) {
		_, _ = fmt.Fprintf(w, "data: {\"model\":\"counted\",\"choices\":[{\"index\":0,\"delta\":%s,\"finish_reason\":%s}]}\n\n", delta, finish)
		flush()
	}
	chunk(`{"role":"assistant","content":"Thinking of it: "}`, "null")
	if first && p.held != nil {
		p.held <- step
		<-r.Context().Done() // until the program has ended
		return
	}
	said, isAnswer := strings.CutPrefix(p.steps[step], "say ")
	if isAnswer {
		chunk(fmt.Sprintf(`{"content":%q}`, said), "null")
		chunk(`{}`, `"stop"`)
	} else {
		name, args, _ := strings.Cut(p.steps[step], " ")
		chunk(fmt.Sprintf(`{"tool_calls":[{"index":0,"id":"call_%d","type":"function","function":{"name":%q,"arguments":%q}}]}`, step, name, args), "null")
		chunk(`{}`, `"tool_calls"`)
	}
	_, _ = io.WriteString(w, "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":1000,\"completion_tokens\":10}}\n\ndata: [DONE]\n\n")
	p.mu.Lock()
	p.finished[step]++
	p.mu.Unlock()
}

// serve serves with a model server in the environment.
func (p *provider) serve(t *testing.T, dir string, args ...string) *instance {
	t.Helper()
	return invocation{env: []string{"OPENAI_BASE_URL=" + p.URL + "/v1"}}.begin(t, dir, args...)
}

// TestKillDuringModelStream kills the program in the middle of each model call of a turn. A
// finished call is never repeated, and none is skipped.
func TestKillDuringModelStream(t *testing.T) {
	storetest.Slow(t)
	t.Parallel()
	is := is.New(t)
	dir := t.TempDir()
	held := make(chan int)
	p := newModelServer(t, held,
		`write_file {"path":"log","content":"a"}`, `edit_file {"path":"log","old":"a","new":"ab"}`, `edit_file {"path":"log","old":"b","new":"bc"}`, "say all done")
	s := p.serve(t, dir, "--model", "openai:counted")
	v := s.mustPost(t, "/api/tasks", map[string]any{"input": "Write the log."}, "Prefer", "respond-async")
	for step := range p.steps {
		select {
		case at := <-held:
			is.Equal(at, step)
		case <-time.After(patience):
			t.Fatalf("step %d is not asked for\nstderr: %s", step, s.stderr)
		}
		s.kill()
		s = p.serve(t, dir, "--model", "openai:counted")
	}
	v = s.ended(t, v)
	is.Equal(v.Error, nil)
	is.Equal(v.OutputText, "Thinking of it: all done")
	p.mu.Lock()
	defer p.mu.Unlock()
	is.Equal(p.lost, 0)
	for step := range p.steps {
		is.Equal(p.begun[step], 2)    // the interrupted call and one more
		is.Equal(p.finished[step], 1) // paid once
	}
	logs, err := filepath.Glob(filepath.Join(dir, "workspaces", "*", "log"))
	is.NoErr(err)
	is.Equal(len(logs), 1)
	content, err := os.ReadFile(logs[0])
	is.NoErr(err)
	is.Equal(string(content), "abc") // each tool call ran once
	a, err := s.send(t.Context(), http.MethodGet, "/api/tasks/"+v.Metadata.TaskID, nil)
	is.NoErr(err)
	var charged struct {
		Turns []struct{ InputTokens, OutputTokens int64 }
	}
	is.NoErr(json.Unmarshal(a.body, &charged))
	u := charged.Turns[0]
	is.Equal(u.OutputTokens, int64(40))             // of the four answered calls
	ordertest.Above(is, u.InputTokens, 4000+4*200)  // and about the input of the four interrupted calls
	ordertest.Below(is, u.InputTokens, 4000+4*5000) // and about the input of the four interrupted calls
}

// TestModelOfAWorker runs a worker whose model differs from the server's, and then starts the
// server without that model.
func TestModelOfAWorker(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	dir := t.TempDir()
	p := newModelServer(t, nil, "say I am another")
	s := p.serve(t, dir, "--model", "offline")
	v := s.mustPost(t, "/api/workers", map[string]any{"input": "You are the Owner of the new organization.", "model": "openai:counted"}, "Prefer", "wait=20")
	is.Equal(v.OutputText, "Thinking of it: I am another")
	own := s.mustPost(t, "/api/tasks", map[string]any{"input": offlineScript("say I am the own")})
	is.Equal(own.OutputText, "I am the own")
	is.Equal(len(p.begun), 1)
	s.stop(t)

	s = serve(t, dir, "--model", "offline")
	again := s.mustPost(t, "/api/workers/"+v.ID, map[string]any{"input": "And now?"}, "Prefer", "wait=20")
	is.True(again.Error != nil)
	is.Equal(again.Error.Code, "model_unavailable")
	is.True(strings.Contains(again.Error.Message, "no key for openai"))
	refused, err := s.post(t.Context(), "/api/workers", map[string]any{"title": "Another", "model": "openai:counted"})
	is.NoErr(err)
	is.Equal(refused.status, http.StatusBadRequest)
	is.True(bytes.Contains(refused.body, []byte(`"path":"model"`)))
}

// TestKillWhileTheProviderIsDown kills the program while a turn waits for its model. The next start
// keeps the time that the provider has requested.
func TestKillWhileTheProviderIsDown(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	var calls atomic.Int64
	answers := newModelServer(t, nil, "say all done")
	p := &provider{Server: httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost && calls.Add(1) == 1 {
			w.Header().Set("Retry-After", "31")
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		answers.ServeHTTP(w, r)
	}))}
	t.Cleanup(p.Close)
	dir := t.TempDir()
	s := p.serve(t, dir, "--model", "openai:counted")
	v := s.mustPost(t, "/api/tasks", map[string]any{"input": "Go."}, "Prefer", "respond-async")
	waiting := func() (at time.Time) {
		t.Helper()
		storetest.Eventually(t, "the turn to wait for its model", func() bool {
			a, err := s.send(t.Context(), http.MethodGet, "/api/tasks/"+v.Metadata.TaskID, nil)
			is.NoErr(err)
			var got struct {
				Task struct {
					WaitingFor *struct {
						For, Reason string
						RetryAt     time.Time
					}
				}
			}
			is.NoErr(json.Unmarshal(a.body, &got))
			if w := got.Task.WaitingFor; w != nil {
				is.Equal([]string{w.For, w.Reason}, []string{"model", "503: the model server answered 503 Service Unavailable"})
				at = w.RetryAt
			}
			return !at.IsZero()
		})
		return at
	}
	at := waiting()
	s.kill()
	s = p.serve(t, dir, "--model", "openai:counted")
	is.True(waiting().Equal(at)) // exactly the same time
	is.Equal(calls.Load(), int64(1))
	if storetest.Rounds(2, 1) == 1 { // half a minute is too long for every run
		return
	}
	<-time.After(time.Until(at))
	is.Equal(calls.Load(), int64(1)) // the provider got no further request
	v = s.ended(t, v)
	is.Equal(v.Error, nil)
	is.Equal(calls.Load(), int64(2))
}
