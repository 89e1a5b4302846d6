//go:build linux

package command_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/textproto"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/matryer/is"

	"journeyman/store/ordertest"
	"journeyman/store/storetest"
)

// canary is in every text of a client, a correspondent, a provider or an endpoint in these tests.
// No line of the log may hold it.
const canary = "cAnArYbIrD"

// A logLine is a JSON line of the log.
type logLine map[string]any

// logged returns the lines of the log so far.
func (s *instance) logged(t *testing.T) (lines []logLine) {
	t.Helper()
	for text := range strings.Lines(s.stderr.String()) {
		var l logLine
		if !strings.HasSuffix(text, "\n") {
			break // the line is incomplete
		}
		if err := json.Unmarshal([]byte(text), &l); err != nil {
			t.Fatalf("a line of the log is not JSON: %s", text)
		}
		if n := strings.Count(text, `"level":`); n != 1 {
			t.Errorf("a line of the log has %d levels: %s", n, text)
		}
		lines = append(lines, l)
	}
	return lines
}

// find waits for a line with that message and those attributes.
func (s *instance) find(t *testing.T, msg string, attrs map[string]any) (found logLine) {
	t.Helper()
	storetest.Eventually(t, fmt.Sprintf("a line %q with %v", msg, attrs), func() bool {
		for _, l := range s.logged(t) {
			same := l["msg"] == msg
			for name, v := range attrs {
				same = same && fmt.Sprint(l[name]) == fmt.Sprint(v)
			}
			if same {
				found = l
				return true
			}
		}
		return false
	})
	return found
}

var (
	idPattern = regexp.MustCompile(`^[a-z]{3}_[0-9a-z]{26}$`)
)

// TestLogsTellEventsAndNoContent causes every event that the log reports, with canaries in all
// texts from outside. Each event has its line with its ids. No line has a canary, even at level
// debug.
func TestLogsTellEventsAndNoContent(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	var asked atomic.Int64
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		switch {
		case r.Method == http.MethodGet:
			_, _ = io.WriteString(w, `{"data":[]}`)
		case asked.Add(1) == 1:
			http.Error(w, `{"error":{"message":"busy with `+canary+`"}}`, http.StatusServiceUnavailable)
		default:
			http.Error(w, `{"error":{"message":"Incorrect key or prompt: `+canary+`","code":"invalid_prompt"}}`, http.StatusBadRequest)
		}
	}))
	t.Cleanup(provider.Close)
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("X-Echo", canary)
		http.Error(w, canary, http.StatusGone)
	}))
	t.Cleanup(hook.Close)
	dir, smtp := t.TempDir(), freePort(t)
	s := invocation{env: []string{"OPENAI_BASE_URL=" + provider.URL + "/v1", "OPENAI_API_KEY=sk-" + canary, "JOURNEYMAN_ADMIN_PASSWORD=" + canary + "-password",
		"JOURNEYMAN_API_KEY=jm_live_" + canary}}.serve(t, dir, "jm_live_"+canary, "--data", dir, "--addr", "127.0.0.1:0", "--rate-limit", "0", "--model", "offline",
		"--allow-private-network", "--smtp-addr", smtp, "--mail-accept", "friends@example.com", "--mail-hold", "--log-level", "debug", "--log-format", "json",
		"--metrics-token", canary)

	// Requests.
	request := func(method, path, body string, header ...string) reply {
		a, err := s.send(t.Context(), method, path, strings.NewReader(body), header...)
		is.NoErr(err)
		return a
	}
	logs := func(status int, a reply) {
		t.Helper()
		is.Equal(a.status, status)
		level := "DEBUG"
		if a.status >= 400 {
			level = "INFO"
		}
		s.find(t, "request", map[string]any{"request": a.header.Get("X-Request-Id"), "status": status, "level": level})
	}
	logs(200, request("GET", "/api/workers?q="+canary, ""))
	logs(404, request("GET", "/api/"+canary+"/"+canary, ""))
	logs(405, request(strings.ToUpper(canary), "/api/workers", ""))
	logs(404, request("GET", "/api/tasks/"+canary, ""))
	logs(400, request("POST", "/api/tasks", `{"input":["`+canary+`"],"`+canary+`":1}`, "Content-Type", "application/json"))
	logs(401, request("GET", "/api/me", "", "Authorization", "Bearer "+canary))
	logs(200, request("GET", "/"+canary, "", "Accept", "text/html"))
	signIn := request("POST", "/sign-in", "email="+canary+"&password="+canary, "Content-Type", "application/x-www-form-urlencoded")
	ordertest.AtLeast(is, signIn.status, 400)
	logs(signIn.status, signIn)
	mine := request("GET", "/api/me", "")
	line := s.find(t, "request", map[string]any{"request": mine.header.Get("X-Request-Id"), "route": "/api/me", "method": "GET"})
	for _, name := range []string{"organization", "user", "key"} {
		is.True(idPattern.MatchString(line[name].(string)))
	}
	ordertest.Above(is, line["took"].(float64), 0)

	// Turns, and a provider's failure.
	made, err := s.post(t.Context(), "/api/workers", map[string]any{"title": canary, "instructions": canary, "summary": canary})
	is.NoErr(err)
	worker := s.must(t, made, nil).ID
	is.Equal(s.setHook(t, worker, hook.URL+"/"+canary+"?token="+canary), http.StatusOK)
	turn := func(worker string, lines ...string) seenRun {
		a, err := s.post(t.Context(), "/api/tasks", map[string]any{"workerId": worker, "input": offlineScript(lines...) + "\n" + canary})
		is.NoErr(err)
		v := s.must(t, a, nil)
		accepted := s.find(t, "turn accepted", map[string]any{"turn": v.Metadata.TurnID, "task": v.Metadata.TaskID, "worker": worker})
		is.Equal(accepted["request"], a.header.Get("X-Request-Id"))
		ended := s.find(t, "turn ended", map[string]any{"turn": v.Metadata.TurnID, "task": v.Metadata.TaskID, "worker": worker, "organization": accepted["organization"]})
		for _, figure := range []string{"steps", "credits", "took"} {
			ordertest.AtLeast(is, ended[figure].(float64), 0)
		}
		return v
	}
	v := turn(worker, "think "+canary, `tool write_file {"path":"`+canary+`.txt","content":"`+canary+`"}`, `tool read_file {"path":"`+canary+`"}`, "say "+canary)
	is.Equal(s.find(t, "turn ended", map[string]any{"turn": v.Metadata.TurnID, "status": "completed"})["steps"], 3.0)
	v = turn(worker, "say "+canary, "fail 400 "+canary)
	s.find(t, "turn ended", map[string]any{"turn": v.Metadata.TurnID, "status": "error", "code": "400"})
	s.find(t, "model call failed", map[string]any{"turn": v.Metadata.TurnID, "worker": worker, "provider": "offline", "code": "400"})
	made, err = s.post(t.Context(), "/api/workers", map[string]any{"title": canary, "model": "openai:m"})
	is.NoErr(err)
	other := s.must(t, made, nil).ID
	v = turn(other, "say it")
	s.find(t, "model call failed, trying again", map[string]any{"turn": v.Metadata.TurnID, "worker": other, "provider": "openai", "model": "m", "code": "503"})
	s.find(t, "model call failed", map[string]any{"turn": v.Metadata.TurnID, "worker": other, "provider": "openai", "model": "m", "code": "400"})
	s.find(t, "turn ended", map[string]any{"turn": v.Metadata.TurnID, "status": "error", "code": "400"})

	// A delivery.
	given := s.find(t, "delivery failed permanently", map[string]any{"worker": worker, "status": http.StatusGone, "attempt": 1})
	is.True(idPattern.MatchString(given["delivery"].(string)))

	// Mails.
	send := func(from, to, subject string) string {
		return handMail(t, smtp, from, to, "From: "+from+"\r\nTo: "+to+"\r\nSubject: "+subject+"\r\nMessage-ID: <"+canary+subject[:1]+"@example.com>\r\n\r\n"+canary+"\r\n")
	}
	is.Equal(send("friends@example.com", worker+"@localhost", "a "+canary)[:3], "250")
	mail := s.find(t, "turn accepted", map[string]any{"by": "email", "worker": worker})
	is.True(idPattern.MatchString(mail["mail"].(string)) && idPattern.MatchString(mail["turn"].(string)))
	s.find(t, "turn ended", map[string]any{"turn": mail["turn"]})
	is.Equal(send(canary+"@example.net", worker+"@localhost", "b "+canary)[:3], "250")
	held := s.find(t, "mail held", map[string]any{"worker": worker})
	is.True(idPattern.MatchString(held["mail"].(string)) && held["why"].(string) != "")
	is.Equal(send(canary+"@example.net", canary+"@localhost", "c "+canary)[:3], "550")
	is.True(s.find(t, "mail refused", map[string]any{"code": 550})["why"].(string) != "")

	s.stop(t)
	for text := range strings.Lines(s.stderr.String()) {
		if strings.Contains(strings.ToLower(text), strings.ToLower(canary)) {
			t.Errorf("the log holds what it must not: %s", text)
		}
		if len(text) > 2000 {
			t.Errorf("a line of the log has %d bytes", len(text))
		}
	}
}

// freePort returns an address on this machine without a listener.
func freePort(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	is.New(t).NoErr(err)
	defer ln.Close()
	return ln.Addr().String()
}

// handMail sends a mail to a server and returns the first answer that refuses it, or the last
// answer.
func handMail(t *testing.T, address, from, to, mail string) (answer string) {
	t.Helper()
	c, err := textproto.Dial("tcp", address)
	is.New(t).NoErr(err)
	defer c.Close()
	for _, step := range []struct{ says, wants string }{
		{"", "220"}, {"HELO test.example", "250"}, {"MAIL FROM:<" + from + ">", "250"}, {"RCPT TO:<" + to + ">", "250"}, {"DATA", "354"}, {mail + ".", "250"},
	} {
		if step.says != "" {
			is.New(t).NoErr(c.PrintfLine("%s", step.says))
		}
		if answer, err = c.ReadLine(); err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(answer, step.wants) {
			break
		}
	}
	return answer
}

// TestLogLevelChanges changes the level in the configuration file of a running server. A wrong level
// changes nothing. The API key is in a FIFO, which can be read only once.
func TestLogLevelChanges(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	dir := t.TempDir()
	config := filepath.Join(dir, "journeyman.yaml")
	write := func(level string) {
		t.Helper()
		is.NoErr(os.WriteFile(config, []byte("log-format: json\nlog-level: "+level+"\n"), 0o600))
	}
	write("warn")
	key := filepath.Join(dir, "key")
	is.NoErr(syscall.Mkfifo(key, 0o600))
	written := make(chan error, 1)
	go func() { written <- os.WriteFile(key, []byte(testKey), 0) }()
	s := invocation{env: []string{"JOURNEYMAN_CONFIG=" + config}}.serve(t, "", testKey,
		"--data", filepath.Join(dir, "data"), "--addr", "127.0.0.1:0", "--api-key-file", key, "--model", "offline")
	is.NoErr(<-written)
	write("loud")
	s.signal(t, syscall.SIGHUP)
	s.await(t, s.stderr, regexp.MustCompile(`"msg":"the log level stays as it was".*line 2: log-level: must be one of`))
	write("debug")
	s.signal(t, syscall.SIGHUP)
	s.await(t, s.stderr, regexp.MustCompile(`"msg":"the log level was read again","now":"DEBUG"`))
	s.mustPost(t, "/api/tasks", map[string]any{"input": offlineScript("say done")})
	s.await(t, s.stderr, regexp.MustCompile(`"level":"DEBUG".*"msg":"request"`))
	s.stop(t)
}
