package nodes_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/handlers"
	"journeyman/handlers/handlerstest"
	"journeyman/handlers/nodes"
	"journeyman/handlers/serve"
	"journeyman/runner"
	"journeyman/store"
	"journeyman/store/people"
	"journeyman/store/storetest"
)

const (
	secret      = "a secret of all nodes that is long enough"
	otherSecret = "another secret that is long enough, too"
)

// A node is a server that shares its database with others.
type node struct {
	t       *testing.T
	url     string
	secret  string // of the cluster, as this node knows it
	key     string // of an owner
	owner   people.Identity
	store   *store.Store
	runner  *runner.Runner
	nodes   *nodes.Nodes
	web     *httptest.Server
	asked   atomic.Int64 // number of requests that arrived, except messages
	seen    atomic.Value // a string, the address of the client of the last request
	heard   atomic.Int64 // number of messages that arrived
	stopped atomic.Bool
	deaf    atomic.Bool  // it refuses all messages
	full    atomic.Bool  // it refuses all requests except messages
	ahead   atomic.Int64 // by how much the clock of its signatures is ahead, in nanoseconds
	log     logBuffer
}

// A logBuffer holds the log of a node.
type logBuffer struct {
	mu   sync.Mutex // guards text
	text strings.Builder
}

func (l *logBuffer) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

// count returns how often the log contains text.
func (l *logBuffer) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), text)
}

// option changes the API of a node.
type option func(*handlers.Config)

// newPair starts two servers on one database, for a test that runs beside others.
func newPair(t *testing.T, options ...option) (*is.I, *node, *node) {
	t.Helper()
	t.Parallel()
	list := newNodes(t, 2, options...)
	return is.New(t), list[0], list[1]
}

// newNodes starts n servers on one database.
func newNodes(t *testing.T, n int, options ...option) []*node {
	t.Helper()
	return newNodesWith(t, slices.Repeat([]string{secret}, n), options...)
}

// newNodesWith starts a server for each secret, on one database.
func newNodesWith(t *testing.T, secrets []string, options ...option) []*node {
	t.Helper()
	if !storetest.OnServer() {
		t.Skip("several nodes need a database on a server: .ci/postgres runs a command with one")
	}
	var list []*node
	for i, secret := range secrets {
		if i == 0 {
			list = append(list, newNode(t, nil, secret, "", options...))
		} else {
			list = append(list, newNode(t, list[0], secret, "", options...))
		}
	}
	for _, d := range list {
		storetest.Eventually(t, "all nodes know each other", func() bool { return d.nodes.Live() == len(secrets) })
	}
	return list
}

// newNode starts a server on the database of first, or on a new one if first is nil. It reaches the database at
// that URL, if it is not "".
func newNode(t *testing.T, first *node, secret, database string, options ...option) *node {
	t.Helper()
	d := &node{t: t, secret: secret, web: httptest.NewUnstartedServer(nil)}
	d.url = "http://" + d.web.Listener.Addr().String()
	opt := store.Options{Database: database, Node: &store.Node{URL: d.url, Version: "test"}}
	if first == nil {
		d.store = storetest.Open(t, opt)
		d.owner, d.key = storetest.Caller(t, d.store, "Acme", "ann@acme.test", people.RoleOwner)
	} else {
		d.store = storetest.Reopen(t, first.store.Dir(), opt)
		d.owner, d.key = first.owner, first.key
	}
	d.start(options...)
	return d
}

// start starts the server of a node.
func (d *node) start(options ...option) {
	d.t.Helper()
	set := handlerstest.Defaults(d.t, "http://jm.test")
	set.Runner.Store = d.store
	d.runner = runner.New(set.Runner)
	d.nodes = nodes.New(nodes.Config{Store: d.store, Runner: d.runner, Secret: d.secret,
		Log: slog.New(slog.NewTextHandler(&d.log, nil)),
		Now: func() time.Time { return time.Now().Add(time.Duration(d.ahead.Load())) }})
	cfg := set.API
	cfg.Store, cfg.Runner, cfg.MailDomain, cfg.Peers = d.store, d.runner, "mail.test", d.nodes
	for _, o := range options {
		o(&cfg)
	}
	api := handlers.Front(handlers.New(cfg), http.NotFoundHandler())
	counted := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d.asked.Add(1)
		d.seen.Store(serve.ClientAddr(r))
		api.ServeHTTP(w, r)
	})
	front := d.nodes.Front(counted)
	d.web.Config = serve.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if message := r.URL.Path == "/internal/changes"; message && d.deaf.Load() || !message && d.full.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		front.ServeHTTP(w, r)
		if r.URL.Path == "/internal/changes" {
			d.heard.Add(1)
		}
	}), handlers.Refuse, d.runner.Streams.Close)
	d.web.Start()
	is.New(d.t).NoErr(d.runner.Start(d.t.Context()))
	is.New(d.t).NoErr(d.nodes.Start(d.t.Context()))
	d.t.Cleanup(d.stop)
}

func (d *node) stop() {
	if d.stopped.Swap(true) {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // running turns get no grace
	d.runner.Streams.Close()
	if err := d.nodes.Stop(); err != nil {
		d.t.Error(err)
	}
	if err := d.runner.Stop(ctx); err != nil && !strings.Contains(err.Error(), "closed") {
		d.t.Error(err)
	}
	d.web.CloseClientConnections()
	d.web.Close()
}

// disappear closes the listener and all connections, as the end of the process does.
func (d *node) disappear() {
	_ = d.web.Listener.Close()
	d.web.CloseClientConnections()
}

// request returns a request with the owner's key. Headers are "Name: value".
func (d *node) request(method, path, body string, headers ...string) *http.Request {
	d.t.Helper()
	req, err := http.NewRequestWithContext(d.t.Context(), method, d.url+path, strings.NewReader(body))
	is.New(d.t).NoErr(err)
	req.Header.Set("Authorization", "Bearer "+d.key)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Set(name, value)
	}
	return req
}

// open sends a request and returns the response, which the caller reads.
func (d *node) open(method, path, body string, headers ...string) *http.Response {
	d.t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(d.request(method, path, body, headers...))
	is.New(d.t).NoErr(err)
	d.t.Cleanup(func() { _ = resp.Body.Close() })
	return resp
}

// do sends a request and returns the status and the decoded answer.
func (d *node) do(method, path, body string, headers ...string) (status int, value map[string]any) {
	d.t.Helper()
	resp := d.open(method, path, body, headers...)
	raw, err := io.ReadAll(resp.Body)
	is.New(d.t).NoErr(err)
	if err := json.Unmarshal(raw, &value); err != nil {
		d.t.Fatalf("%s %s: status %d, %q: %v", method, path, resp.StatusCode, raw, err)
	}
	return resp.StatusCode, value
}

// newWorker creates a worker and places it on this node by a turn.
func (d *node) newWorker() string {
	d.t.Helper()
	status, v := d.do("POST", "/api/workers", `{"title":"Scribe"}`)
	if status != http.StatusOK {
		d.t.Fatal(status, v)
	}
	id := v["id"].(string)
	if _, v = d.run(id, "Hello"); v["status"] != "completed" {
		d.t.Fatal(v)
	}
	return id
}

// run runs a task and waits for its result.
func (d *node) run(workerID, input string, headers ...string) (status int, value map[string]any) {
	d.t.Helper()
	return d.do("POST", "/api/tasks", task(workerID, input, false), headers...)
}

// task returns the body of a request for a task.
func task(workerID, input string, stream bool) string {
	body, err := json.Marshal(map[string]any{"workerId": workerID, "input": input, "stream": stream})
	if err != nil {
		panic(err)
	}
	return string(body)
}

// script returns an input for the offline model.
func script(lines ...string) string { return "```offline\n" + strings.Join(lines, "\n") + "\n```" }

// A reader reads the events of a stream.
type reader struct {
	t    *testing.T
	in   *bufio.Scanner
	last string // id of the last event
}

func (d *node) stream(method, path, body string, headers ...string) *reader {
	d.t.Helper()
	resp := d.open(method, path, body, headers...)
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "text/event-stream" {
		raw, _ := io.ReadAll(resp.Body)
		d.t.Fatalf("%s %s: status %d: %s", method, path, resp.StatusCode, raw)
	}
	if ids := resp.Header.Values("X-Request-Id"); len(ids) != 1 {
		d.t.Fatalf("request ids: %q", ids)
	}
	in := bufio.NewScanner(resp.Body)
	in.Buffer(nil, 1<<20)
	return &reader{t: d.t, in: in}
}

// next returns the data of the next event; ok is false at the end of the stream.
func (r *reader) next() (data string, ok bool) {
	for r.in.Scan() {
		if id, found := strings.CutPrefix(r.in.Text(), "id: "); found {
			r.last = id
		}
		if data, found := strings.CutPrefix(r.in.Text(), "data: "); found {
			return data, true
		}
	}
	return "", false
}

// until reads events until one contains text, and returns all data.
func (r *reader) until(text string) string {
	r.t.Helper()
	var all strings.Builder
	for {
		data, ok := r.next()
		if !ok {
			r.t.Fatalf("the stream ended before %q:\n%s", text, all.String())
		}
		if fmt.Fprintln(&all, data); strings.Contains(data, text) {
			return all.String()
		}
	}
}
