package command_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/runner/sandbox"
	"journeyman/runner/tool"
	"journeyman/store/storetest"
)

// The tests in the binary_ files run the whole program. They test what only a process can show,
// such as a kill.

// patience bounds how long a test waits. Only a program that hangs takes so long, even on a busy machine.
const patience = 2 * time.Minute

// ownTransport is the transport of all clients in these tests. httptest.Server.Close closes the
// idle connections of http.DefaultTransport, so that a concurrent request of another test could
// fail. Nothing closes those of ownTransport.
var ownTransport = &http.Transport{MaxIdleConnsPerHost: 16, IdleConnTimeout: 90 * time.Second}

// ownClient is the client of tests that need no other settings.
var ownClient = &http.Client{Transport: ownTransport}

// scratch is the folder in which this run of the tests builds the program.
var scratch string

func TestMain(m *testing.M) {
	sandbox.BeFilter(os.Args, tool.Filters())
	if seconds := os.Getenv("MCP_SERVER_OF_A_TEST"); seconds != "" {
		os.Exit(serveTools(seconds))
	}
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "journeyman-test-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		scratch = dir
		storetest.SideBySide(6)
		return m.Run()
	}())
}

// builtProgram builds the program as it is released: stripped and without the race detector. Like
// the release, CI builds it without cgo. Elsewhere it has cgo if the tests have it, so that the
// compiled packages can be reused.
var builtProgram = sync.OnceValues(func() (string, error) {
	path := filepath.Join(scratch, "journeyman")
	cmd := exec.Command("go", "build", "-race=false", "-ldflags=-s -w", "-o", path, ".")
	cmd.Dir = "../.."
	cmd.Env = os.Environ()
	if storetest.Race {
		cmd.Env = append(cmd.Env, "CGO_ENABLED=0") // the race detector has turned cgo on
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build the program: %w\n%s", err, out)
	}
	return path, nil
})

func programPath(t testing.TB) string {
	t.Helper()
	path, err := builtProgram()
	is.New(t).NoErr(err)
	return path
}

// programEnv returns an environment in which only the test configures the program.
func programEnv(more ...string) []string {
	return append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "TMPDIR=" + os.TempDir(), "LANG=C.UTF-8", "JOURNEYMAN_SMTP_ADDR=127.0.0.1:0"}, more...)
}

// A printed is the output of a process. It is safe for concurrent use.
type printed struct {
	mu    sync.Mutex
	buf   bytes.Buffer
	grown chan struct{} // closed at the next write
}

func newPrinted() *printed { return &printed{grown: make(chan struct{})} }

// Write adds output.
func (o *printed) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	close(o.grown)
	o.grown = make(chan struct{})
	return o.buf.Write(b)
}

func (o *printed) text() (s string, grown <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String(), o.grown
}

// String returns the output so far.
func (o *printed) String() string { s, _ := o.text(); return s }

// A program is a process of the binary.
type program struct {
	cmd    *exec.Cmd
	stdout *printed
	stderr *printed
	exited chan struct{} // closed when the process has ended
}

// An invocation describes how to start the program. Its zero value is usable.
type invocation struct {
	env   []string // besides programEnv
	dir   string   // the working folder
	stdin io.Reader
	wrap  []string // a command that starts the program
}

// start starts the program. It is killed at the end of the test.
func (c invocation) start(t testing.TB, args ...string) *program {
	t.Helper()
	line := slices.Concat(c.wrap, []string{programPath(t)}, args)
	p := &program{cmd: exec.Command(line[0], line[1:]...), stdout: newPrinted(), stderr: newPrinted(), exited: make(chan struct{})}
	p.cmd.Env, p.cmd.Dir, p.cmd.Stdin = programEnv(slices.Concat(c.database(t, args), c.env)...), c.dir, c.stdin
	p.cmd.Stdout, p.cmd.Stderr = p.stdout, p.stderr
	is.New(t).NoErr(p.cmd.Start())
	go func() {
		defer close(p.exited)
		_ = p.cmd.Wait() // ProcessState has the result
	}()
	t.Cleanup(p.kill)
	return p
}

// database returns the environment that names the database of the data folder in args, if the databases
// of tests are on a server.
func (c invocation) database(t testing.TB, args []string) []string {
	t.Helper()
	data := ""
	if i := slices.Index(args, "--data"); i >= 0 && i+1 < len(args) {
		data = args[i+1]
	} else if len(args) > 0 && args[0] == "run" {
		data = "data" // the default
	}
	if !storetest.OnServer() || data == "" {
		return nil
	}
	if !filepath.IsAbs(data) {
		data = filepath.Join(c.dir, data)
	}
	if _, err := os.Stat(filepath.Join(data, databaseName)); err == nil {
		return nil // the folder has a database file
	}
	return []string{"JOURNEYMAN_DATABASE=" + storetest.NewDatabase(t, data)}
}

// run runs the program to its end.
func (c invocation) run(t testing.TB, args ...string) *program {
	t.Helper()
	p := c.start(t, args...)
	p.wait(t)
	return p
}

// kill kills the process, as a crash would.
func (p *program) kill() {
	_ = p.cmd.Process.Kill() // it may have ended by itself
	<-p.exited
}

func (p *program) signal(t testing.TB, s syscall.Signal) {
	t.Helper()
	is.New(t).NoErr(p.cmd.Process.Signal(s))
}

// wait waits for the process to end and returns its exit code, or -1 if a signal ended it.
func (p *program) wait(t testing.TB) int {
	t.Helper()
	select {
	case <-p.exited:
	case <-time.After(patience):
		p.kill()
		t.Fatalf("the program did not end\nstdout: %s\nstderr: %s", p.stdout, p.stderr)
	}
	return p.cmd.ProcessState.ExitCode()
}

// stop asks the process to end and requires exit code 0.
func (p *program) stop(t testing.TB) {
	t.Helper()
	p.signal(t, syscall.SIGTERM)
	if code := p.wait(t); code != 0 {
		t.Fatalf("exit code %d at a stop\nstderr: %s", code, p.stderr)
	}
}

// await waits until the output matches, and returns the match with its groups.
func (p *program) await(t testing.TB, o *printed, re *regexp.Regexp) []string {
	t.Helper()
	deadline := time.After(patience)
	for ended := false; ; {
		s, grown := o.text()
		if m := re.FindStringSubmatch(s); m != nil {
			return m
		}
		if ended {
			t.Fatalf("the program ended without %v\nstdout: %s\nstderr: %s", re, p.stdout, p.stderr)
		}
		select {
		case <-grown:
		case <-p.exited:
			ended = true
		case <-deadline:
			t.Fatalf("no %v\nstdout: %s\nstderr: %s", re, p.stdout, p.stderr)
		}
	}
}

// An instance is a running server and a client of it.
type instance struct {
	*program
	data string // its folder
	url  string
	key  string
	http *http.Client
}

var (
	addressPrinted = regexp.MustCompile(`serves on (http://\S+)\n`)
	keyPrinted     = regexp.MustCompile(`API key +(jm_live_\S+)`)
)

// testKey is the key of servers that serve starts.
const testKey = "jm_live_the_key_of_the_tests"

// firstDatabase starts the program for the first time, with testKey, and returns the database. It
// runs once, because half the time of a first start is for the tables and the hash of the owner's
// password.
func firstDatabase(t testing.TB) []byte {
	t.Helper()
	storetest.Embedded(t)
	firstStart.Do(func() {
		s := invocation{}.serve(t, "", testKey, serveArgs(filepath.Join(scratch, "first"))...)
		s.stop(t)
	})
	database, err := os.ReadFile(filepath.Join(scratch, "first", databaseName))
	is.New(t).NoErr(err)
	return database
}

var firstStart sync.Once

const databaseName = "journeyman.db"

func serveArgs(data string, more ...string) []string {
	return append([]string{"--data", data, "--addr", "127.0.0.1:0", "--api-key", testKey, "--rate-limit", "0"}, more...)
}

// serve starts the program on a data folder and a free port, without a rate limit. It has testKey.
// Unless args name the owner, an empty folder gets the database of a first start.
func serve(t testing.TB, data string, args ...string) *instance {
	t.Helper()
	if strings.Contains(strings.Join(args, " "), "--admin") {
		return invocation{}.serve(t, data, testKey, serveArgs(data, args...)...)
	}
	return invocation{}.begin(t, data, args...)
}

// begin serves like the function serve, but in the way of c.
func (c invocation) begin(t testing.TB, data string, args ...string) *instance {
	t.Helper()
	beginFolder(t, data)
	return c.serve(t, data, testKey, serveArgs(data, args...)...)
}

// beginFolder writes the database of a first start into an empty folder.
func beginFolder(t testing.TB, data string) {
	t.Helper()
	if list, err := os.ReadDir(data); err != nil || len(list) > 0 {
		return // the program creates the folder, or has used it
	}
	if storetest.OnServer() {
		return // the copy of a database takes as long as a first start
	}
	is.New(t).NoErr(os.WriteFile(filepath.Join(data, databaseName), firstDatabase(t), 0o600))
}

func (c invocation) serve(t testing.TB, data, key string, args ...string) *instance {
	t.Helper()
	s := &instance{program: c.start(t, args...), data: data, key: key}
	s.url = s.await(t, s.stdout, addressPrinted)[1]
	if key == "" {
		s.key = s.await(t, s.stdout, keyPrinted)[1]
	}
	transport := &http.Transport{MaxIdleConnsPerHost: 512}
	t.Cleanup(transport.CloseIdleConnections)
	s.http = &http.Client{Transport: transport, Timeout: patience}
	return s
}

// A reply is a complete response.
type reply struct {
	status int
	header http.Header
	body   []byte
}

// post sends v as JSON. header alternates names and values.
func (s *instance) post(ctx context.Context, path string, v any, header ...string) (reply, error) {
	body, err := json.Marshal(v)
	if err != nil {
		return reply{}, err
	}
	return s.send(ctx, http.MethodPost, path, bytes.NewReader(body), append([]string{"Content-Type", "application/json"}, header...)...)
}

func (s *instance) send(ctx context.Context, method, path string, body io.Reader, header ...string) (a reply, err error) {
	resp, err := s.open(ctx, method, path, body, header...)
	if err != nil {
		return a, err
	}
	defer resp.Body.Close()
	a.status, a.header = resp.StatusCode, resp.Header
	a.body, err = io.ReadAll(resp.Body)
	return a, err
}

func (s *instance) open(ctx context.Context, method, path string, body io.Reader, header ...string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, s.url+path, body)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+s.key)
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	return s.http.Do(req)
}

// must decodes an answer of status 200 or 202.
func (s *instance) must(t testing.TB, a reply, err error) seenRun {
	t.Helper()
	if err != nil {
		t.Fatalf("%v\nstderr: %s", err, s.stderr)
	}
	var v seenRun
	if err := json.Unmarshal(a.body, &v); err != nil || a.status/100 != 2 {
		t.Fatalf("status %d, %v: %s", a.status, err, a.body)
	}
	return v
}

func (s *instance) mustPost(t testing.TB, path string, v any, header ...string) seenRun {
	t.Helper()
	a, err := s.post(t.Context(), path, v, header...)
	return s.must(t, a, err)
}

func (s *instance) mustGet(t testing.TB, path string) seenRun {
	t.Helper()
	a, err := s.send(t.Context(), http.MethodGet, path, nil)
	return s.must(t, a, err)
}

// A seenRun holds the fields of a run view that the tests read.
type seenRun struct {
	ID         string `json:"id"`
	Status     string `json:"status"`
	Running    bool   `json:"running"`
	OutputText string `json:"output_text"`
	Error      *struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
	Metadata struct {
		TaskID     string `json:"taskId"`
		TurnID     string `json:"turnId"`
		TaskStatus string `json:"taskStatus"`
	} `json:"metadata"`
	Task struct { // of an answer about a task
		WorkerID   string    `json:"workerId"`
		Status     string    `json:"status"`
		WaitingFor *struct{} `json:"waitingFor"`
	} `json:"task"`
	Files []struct {
		Filename string `json:"filename"`
		URL      string `json:"url"`
	} `json:"files"`
}

// ended waits until the task of v has ended.
func (s *instance) ended(t testing.TB, v seenRun) seenRun {
	t.Helper()
	return s.until(t, v, func(v seenRun) bool { return v.Status == "completed" })
}

// until polls a task until right returns true.
func (s *instance) until(t testing.TB, v seenRun, right func(seenRun) bool) seenRun {
	t.Helper()
	path := "/api/workers/" + v.ID + "?taskId=" + v.Metadata.TaskID
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(patience)
	for {
		if v = s.mustGet(t, path); right(v) {
			return v
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("task %s is still %s\nstderr: %s", v.Metadata.TaskID, v.Status, s.stderr)
		}
	}
}

// offlineScript returns an input that the offline model carries out line by line.
func offlineScript(lines ...string) string {
	return "```offline\n" + strings.Join(lines, "\n") + "\n```"
}

// toolLine returns a script line that calls a tool.
func toolLine(name string, args map[string]any) string {
	body, err := json.Marshal(args)
	if err != nil {
		panic(err) // maps of strings marshal
	}
	return "tool " + name + " " + string(body)
}

// decodeReply reads the JSON of an answer.
func decodeReply(t testing.TB, a reply, v any) {
	t.Helper()
	if err := json.Unmarshal(a.body, v); err != nil || a.status != http.StatusOK {
		t.Fatalf("status %d, %v: %s", a.status, err, a.body)
	}
}

// readEvents reads the data of server-sent events until the stream ends.
func readEvents(body io.Reader, each func(data string) bool) error {
	sc := bufio.NewScanner(body)
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		if data, ok := strings.CutPrefix(sc.Text(), "data: "); ok && !each(data) {
			return nil
		}
	}
	return sc.Err()
}

// exitedWith fails the test unless the program ended with that code and printed one line, an error
// that matches says.
func (p *program) exitedWith(t testing.TB, code int, says string) {
	t.Helper()
	got := p.wait(t)
	line := strings.TrimSuffix(p.stderr.String(), "\n")
	if got != code || !regexp.MustCompile(says).MatchString(line) || strings.Contains(line, "\n") {
		t.Errorf("%v: exit code %d, want %d and one line that says %q\nstdout: %s\nstderr: %s",
			p.cmd.Args[1:], got, code, says, p.stdout, p.stderr)
	}
}
