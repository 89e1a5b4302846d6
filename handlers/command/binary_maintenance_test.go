//go:build linux

package command_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store/storetest"
)

// maintenance runs the command beside a server, and returns its output and its exit code.
func (s *instance) maintenance(t testing.TB, args ...string) (text string, code int) {
	t.Helper()
	p := invocation{}.start(t, append([]string{"maintenance", "--data", s.data}, args...)...)
	code = p.wait(t)
	return p.stdout.String() + p.stderr.String(), code
}

// refusedChange requires that a request is refused because of the maintenance.
func (s *instance) refusedChange(t testing.TB, method, path, body string) {
	t.Helper()
	a, err := s.send(t.Context(), method, path, strings.NewReader(body), "Content-Type", "application/json")
	var answer struct{ Code, Message string }
	if err != nil || json.Unmarshal(a.body, &answer) != nil || a.status != http.StatusServiceUnavailable ||
		answer.Code != "maintenance" || a.header.Get("Retry-After") != "30" || answer.Message == "" {
		t.Errorf("%s %s: status %d, %v: %s", method, path, a.status, err, a.body)
	}
}

// TestMaintenance begins the maintenance while a turn runs. Every interface refuses changes, reads
// still work, the turn ends, and accepted or due work is done once afterwards.
func TestMaintenance(t *testing.T) {
	storetest.Slow(t)
	t.Parallel()
	is := is.New(t)
	dir := t.TempDir()
	how, release := newHeldModel(t)
	s := how.serve(t, dir, testKey, serveArgs(dir, "--admin-email", "ann@example.com", "--admin-password", "a good password",
		"--concurrency", "1", "--model", "offline")...)
	worker := s.mustPost(t, "/api/workers", map[string]any{"title": "A worker", "model": "openai:m"}).ID
	first := s.begin(t, "/api/tasks", map[string]any{"workerId": worker, "input": "Hello"})
	running := s.awaitTask(t, worker, "running")
	waiting := s.begin(t, "/api/tasks", map[string]any{"input": offlineScript("say second")}) // there is one slot
	storetest.Eventually(t, "the second task", func() bool { return s.countTasks(t) == 2 })
	s.mustPost(t, "/api/workers/"+worker+"/schedules", map[string]any{"input": offlineScript("say due"),
		"when": map[string]any{"type": "delayed", "delayInSeconds": 10}}) // after the maintenance has begun

	text, code := s.maintenance(t, "on", "--wait", "0s")
	is.Equal(code, 1) // a script must not continue yet
	is.True(strings.Contains(text, "is in maintenance, but 1 turns still run"))
	s.refusesAll(t, worker, running.Metadata.TaskID)
	release()
	a := first.wait(t)
	is.Equal(s.must(t, a, nil).OutputText, "all is well") // a running turn ends, and its client gets the answer
	text, code = s.maintenance(t, "on")                   // the command waits
	is.Equal(code, 0)
	is.True(strings.HasPrefix(text, "The server is in maintenance since ") && strings.HasSuffix(text, " 0 turns run.\n"))
	const overdue = `SELECT count(*) FROM schedules WHERE next_run_at < ?`
	storetest.Eventually(t, "the schedule is overdue", func() bool {
		return storetest.Rows(t, dir, overdue, time.Now().Add(-2*time.Second).UnixMilli())[0][0] == "1"
	})
	is.Equal(s.countTasks(t), 2) // the schedule has not fired
	s.worksForOperator(t)

	text, code = s.maintenance(t, "off")
	is.Equal(code, 0)
	is.True(strings.HasPrefix(text, "The server is not in maintenance."))
	a = waiting.wait(t)
	is.Equal(s.must(t, a, nil).OutputText, "second")
	storetest.Eventually(t, "the schedule's task", func() bool { return s.countTasks(t) == 3 })
	s.awaitReady(t, http.StatusOK)
	s.mustPost(t, "/api/tasks", map[string]any{"input": "hello"})
	storetest.Eventually(t, "the schedule's turn has ended", func() bool {
		return storetest.Rows(t, dir, `SELECT count(completed_at) FROM turns`)[0][0] == "4"
	})
	s.stop(t)
	is.Equal(storetest.Rows(t, dir, `SELECT count(*), count(completed_at), sum(claims) FROM turns`)[0], []string{"4", "4", "4"}) // each turn ran once
	storetest.Sound(t, dir)
}

// refusesAll sends changes to every interface.
func (s *instance) refusesAll(t *testing.T, worker, task string) {
	t.Helper()
	is := is.New(t)
	for _, r := range [][3]string{
		{"POST", "/api/tasks", `{"input":"Hello"}`},
		{"POST", "/api/tasks", `{"input":"More","taskId":"` + task + `"}`},
		{"POST", "/api/tasks", `not JSON`}, // the refusal comes before the body is read
		{"POST", "/api/workers", `{"title":"W"}`},
		{"PATCH", "/api/workers/" + worker, `{"title":"W"}`},
		{"DELETE", "/api/workers/" + worker, ``},
		{"PUT", "/api/workers/" + worker + "/webhook", `{"url":"https://example.com/"}`},
		{"PUT", "/api/secrets/KEY", `{"value":"x"}`},
		{"POST", "/api/tasks/" + task + "/cancel", ``},
		{"POST", "/api/inbound-email", `{}`},
	} {
		s.refusedChange(t, r[0], r[1], r[2])
	}
	for _, path := range []string{"/api/workers", "/api/tasks/" + task, "/api/workers/" + worker, "/healthz", "/metrics"} {
		a, err := s.send(t.Context(), http.MethodGet, path, nil)
		is.NoErr(err)
		is.Equal(a.status, http.StatusOK) // reads still work
		is.True(path != "/metrics" || strings.Contains(string(a.body), `journeyman_store_read_only_reason{reason="maintenance"} 1`))
	}
	call := `{"jsonrpc":"2.0","id":1,"method":"tools/%s","params":{"name":"run_worker","arguments":{"worker":"` + worker + `","input":"x"}}}`
	for method, has := range map[string]string{"list": `"run_worker"`, "call": "the server is in maintenance"} {
		a, err := s.send(t.Context(), http.MethodPost, "/mcp", strings.NewReader(fmt.Sprintf(call, method)),
			"Content-Type", "application/json", "Accept", "application/json, text/event-stream")
		is.NoErr(err)
		is.True(strings.Contains(string(a.body), has)) // an MCP client may read, and a run names the reason of the refusal
	}
	is.True(strings.HasPrefix(mailAnswer(t, s), "451 4.3.2 ")) // the sender keeps the mail
	ready, err := s.send(t.Context(), http.MethodGet, "/readyz", nil)
	is.NoErr(err)
	is.Equal(ready.status, http.StatusServiceUnavailable)
	var state struct {
		Reason string
		Checks map[string]string
	}
	is.NoErr(json.Unmarshal(ready.body, &state))
	is.Equal(state.Checks, map[string]string{"database": "ok", "disk": "ok", "runner": "ok", "scheduler": "ok", "server": "maintenance"})
	is.True(strings.Contains(state.Reason, "in maintenance"))

	session := s.signIn(t, "ann@example.com", "a good password")
	is.True(session != "") // people sign in to read
	location, _ := s.form(t, "/account/name", session, url.Values{"name": {"Ann"}})
	is.Equal(location, "") // they cannot change anything
	a, err := s.send(t.Context(), http.MethodGet, "/workers", nil, "Cookie", session, "Accept-Language", "de")
	is.NoErr(err)
	is.True(strings.Contains(string(a.body), `id="maintenance"`)) // every page shows the maintenance
	location, _ = s.form(t, "/sign-out", session, nil)
	is.True(strings.HasPrefix(location, "/sign-in"))
}

// worksForOperator runs the commands that operators need during maintenance.
func (s *instance) worksForOperator(t *testing.T) {
	t.Helper()
	is := is.New(t)
	commands := [][]string{{"key", "create", "--name", "New", "--user", "bob@example.com"}}
	if !storetest.OnServer() { // which does these itself
		commands = append(commands, []string{"backup", filepath.Join(t.TempDir(), "all.tgz")}, []string{"vacuum"})
	}
	for _, args := range commands {
		p := invocation{}.start(t, append(args, "--data", s.data)...)
		is.Equal(p.wait(t), 0) // the operator's commands work
	}
	p := invocation{}.start(t, "health", "--data", s.data)
	is.Equal(p.wait(t), 1)
	is.True(strings.Contains(p.stderr.String(), "server maintenance")) // the error names the reason
	text, code := s.maintenance(t, "status")
	is.Equal(code, 0)
	is.True(strings.HasPrefix(text, "The server is in maintenance since "))
}

// TestStartInMaintenance starts with the flag: no work runs, regular backups are made, and the
// program stops normally. Without the flag it works again.
func TestStartInMaintenance(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	dir, backups := t.TempDir(), t.TempDir()
	c, release := newHeldModel(t)
	s := c.begin(t, dir, "--model", "openai:m", "--grace", "0s")
	v := s.mustPost(t, "/api/tasks", map[string]any{"input": "Hello"}, "Prefer", "respond-async")
	s.stop(t) // the turn is pending again

	c.env = append(c.env, "JOURNEYMAN_MAINTENANCE=true")
	repeat := []string{"--backup-every", "24h", "--backup-to", backups}
	if storetest.OnServer() {
		repeat = nil
	}
	s = c.begin(t, dir, append(repeat, "--model", "openai:m")...)
	s.awaitReady(t, http.StatusServiceUnavailable)
	s.refusedChange(t, "POST", "/api/tasks", `{"input":"Hello"}`)
	storetest.Eventually(t, "a backup", func() bool {
		list, _ := filepath.Glob(filepath.Join(backups, "*.tgz"))
		return len(list) == 1 || storetest.OnServer()
	})
	is.Equal(storetest.Rows(t, dir, `SELECT status FROM turns`)[0][0], "pending")
	s.stop(t)

	s = c.begin(t, dir, "--model", "openai:m")
	_, code := s.maintenance(t, "off") // the command ends the maintenance of the flag
	is.Equal(code, 0)
	release()
	is.Equal(s.ended(t, v).OutputText, "all is well")
	s.stop(t)
	p := invocation{}.start(t, "maintenance", "on", "--data", dir)
	is.Equal(p.wait(t), 1)
	is.True(strings.Contains(p.stderr.String(), "no server answers on the data folder"))
	if !storetest.OnServer() {
		p = invocation{}.start(t, "vacuum", "--data", dir)
		is.Equal(p.wait(t), 0) // it rewrites the database of a stopped folder
	}
	storetest.Sound(t, dir)
}

// TestMaintenanceUnderLoad begins and ends the maintenance repeatedly while clients use every
// interface. Acknowledged work completes once.
func TestMaintenanceUnderLoad(t *testing.T) {
	storetest.Long(t)
	t.Parallel()
	is := is.New(t)
	w := newWorld(t, "maintenance", setting{clients: 4, seed: 7})
	end := w.load()
	for round := range 3 {
		w.answersAgain(2 * len(w.clients))
		_, code := w.now.maintenance(t, "on", "--wait", []string{"0s", "300ms", "0s"}[round])
		is.True(code == 0 || code == 1) // 1: turns still run, such as those that clients would cancel
		w.now.refusedChange(t, "POST", "/api/tasks", `{"input":"Hello"}`)
		w.pause(time.Second)
		_, code = w.now.maintenance(t, "off")
		is.Equal(code, 0)
	}
	w.answersAgain(2 * len(w.clients))
	end()
	w.check()
	w.end()
}
