//go:build linux

package command_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/store/storetest"
)

// sleepers returns the number of processes on this machine that sleep for that time.
func sleepers(t *testing.T, seconds string) int {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	is.New(t).NoErr(err)
	n := 0
	for _, p := range all {
		if line, err := os.ReadFile(p); err == nil && string(line) == "sleep\x00"+seconds+"\x00" {
			n++
		}
	}
	return n
}

// shellServer starts a server whose workers have a shell, confined if this machine can confine it.
func shellServer(t *testing.T, dir string) *instance {
	t.Helper()
	return serve(t, dir, "--unsafe-shell")
}

func TestDoctor(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	p := invocation{}.run(t, "doctor", "--addr", "127.0.0.1:0", "--smtp-addr", "")
	is.Equal(p.wait(t), 0)
	is.True(strings.HasPrefix(p.stdout.String(), "Confinement of shell commands: possible") ||
		strings.HasPrefix(p.stdout.String(), "Confinement of shell commands: not possible"))
	is.True(strings.Contains(p.stdout.String(), "namespaces"))
	is.True(strings.Contains(p.stdout.String(), "answers            not asked: it is the stand-in")) // without a key
}

// TestDoctorOfOllama checks a model of an Ollama server, with a small window and then without the
// server.
func TestDoctorOfOllama(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	fake := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/chat" {
			_, _ = io.WriteString(w, `{"model":"m","message":{"content":"ready"},"done":true,"done_reason":"stop","prompt_eval_count":20,"eval_count":2}`)
			return
		}
		_, _ = io.WriteString(w, `{"model_info":{"general.architecture":"llama","llama.context_length":4096},"capabilities":["completion","tools"]}`)
	}))
	defer fake.Close()
	examine := invocation{env: []string{"OLLAMA_HOST=" + fake.URL}}
	p := examine.run(t, "doctor", "--addr", "127.0.0.1:0", "--smtp-addr", "", "--model", "ollama:m")
	is.Equal(p.wait(t), 0)
	for _, words := range []string{"4,096 tokens (by its server)", "abilities          tools", "of 4,096 tokens: too small; set OLLAMA_CONTEXT_LENGTH", "answers            yes"} {
		is.True(strings.Contains(p.stdout.String(), words)) // words
	}
	fake.Close()
	p = examine.run(t, "doctor", "--addr", "127.0.0.1:0", "--smtp-addr", "", "--model", "ollama:m")
	is.Equal(p.wait(t), 1) // without its model the server cannot work
	is.True(strings.Contains(p.stdout.String(), "answers            no: no connection to the model server"))
}

// TestKillDuringShell kills the program while a command runs. A confined command dies, too. It does
// not run again, and the model gets the interruption.
func TestKillDuringShell(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	dir := t.TempDir()
	s := shellServer(t, dir)
	seconds := fmt.Sprintf("1001.%d", os.Getpid())
	v := s.mustPost(t, "/api/tasks", map[string]any{"input": offlineScript(
		toolLine("shell", map[string]any{"command": "echo run >> runs; setsid sleep " + seconds + " & sleep " + seconds}),
		"say it said {{last}}")}, "Prefer", "respond-async")
	storetest.Eventually(t, "the command", func() bool { return sleepers(t, seconds) == 2 })
	s.kill()
	if strings.Contains(invocation{}.run(t, "doctor").stdout.String(), ": possible") {
		storetest.Eventually(t, "the command's end", func() bool { return sleepers(t, seconds) == 0 })
	}
	s = shellServer(t, dir)
	v = s.ended(t, v)
	is.True(strings.Contains(v.OutputText, "may have taken effect"))
	is.Equal(runs(t, dir), "run\n") // the command ran once
}

// TestCancelKillsShell cancels a task whose command does not end.
func TestCancelKillsShell(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	s := shellServer(t, t.TempDir())
	seconds := fmt.Sprintf("1002.%d", os.Getpid())
	v := s.mustPost(t, "/api/tasks", map[string]any{"input": offlineScript(
		toolLine("shell", map[string]any{"command": "trap '' TERM; sleep " + seconds + " & wait; sleep " + seconds}))}, "Prefer", "respond-async")
	storetest.Eventually(t, "the command", func() bool { return sleepers(t, seconds) > 0 })
	a, err := s.post(t.Context(), "/api/tasks/"+v.Metadata.TaskID+"/cancel", nil)
	is.NoErr(err)
	is.Equal(a.status, http.StatusOK)
	is.Equal(sleepers(t, seconds), 0) // the process has ended before the answer
}

// TestFetchedSources fetches a page, which becomes a source in the live stream, in the run view and
// in the messages.
func TestFetchedSources(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "<title>Harbour news</title><p>The harbour opens on Monday, the council said.</p>")
	}))
	defer web.Close()
	s := serve(t, t.TempDir(), "--allow-private-network")
	body, err := json.Marshal(map[string]any{"stream": true, "input": offlineScript(
		toolLine("web_fetch", map[string]any{"url": web.URL + "/news"}), toolLine("web_fetch", map[string]any{"url": web.URL + "/news"}), "say {{last}}")})
	is.NoErr(err)
	a, err := s.send(t.Context(), http.MethodPost, "/api/tasks", bytes.NewReader(body), "Content-Type", "application/json")
	is.NoErr(err)
	is.Equal(bytes.Count(a.body, []byte(`"type":"source-url"`)), 1) // each URL once
	is.True(bytes.Contains(a.body, []byte(`"url":"`+web.URL+`/news","title":"Harbour news"`)))

	list, err := s.send(t.Context(), http.MethodGet, "/api/tasks", nil)
	is.NoErr(err)
	var tasks struct {
		Items []struct{ ID, WorkerID string }
	}
	is.NoErr(json.Unmarshal(list.body, &tasks))
	is.Equal(len(tasks.Items), 1)
	view, err := s.send(t.Context(), http.MethodGet, "/api/workers/"+tasks.Items[0].WorkerID, nil)
	is.NoErr(err)
	var run struct {
		Sources  []struct{ URL, Title string }
		Messages []struct {
			Parts []struct{ Type, URL, Title string }
		}
	}
	is.NoErr(json.Unmarshal(view.body, &run))
	is.Equal(len(run.Sources), 1)
	is.Equal(run.Sources[0].URL, web.URL+"/news")
	is.Equal(run.Sources[0].Title, "Harbour news")
	found := 0
	for _, part := range run.Messages[len(run.Messages)-1].Parts {
		if part.Type == "source-url" && part.Title == "Harbour news" {
			found++
		}
	}
	is.Equal(found, 1)
}

// TestLowPriority runs a command of a worker while the program has a lower priority than commands.
func TestLowPriority(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "nice", "-n", "15", programPath(t), "--data", dir, "--model", "offline", "run",
		offlineScript(toolLine("shell", map[string]any{"command": "nice"}), "say Priority {{last}}"))
	cmd.Env = programEnv()
	out, err := cmd.CombinedOutput()
	is.NoErr(err)
	if !strings.Contains(string(out), "exit status: 0") {
		t.Errorf("no command ran: %s", out)
	}
}
