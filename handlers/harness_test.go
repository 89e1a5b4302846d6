package handlers_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/handlers"
	"journeyman/handlers/handlerstest"
	"journeyman/mail"
	"journeyman/runner"
	"journeyman/runner/model"
	"journeyman/runner/sandbox"
	"journeyman/runner/tool"
	"journeyman/runner/view"
	"journeyman/runner/webhook"
	"journeyman/store"
	"journeyman/store/people"
	"journeyman/store/storetest"
)

// A site is the API under test: a real server, store and runner, with the offline model.
type site struct {
	url       string
	store     *store.Store
	runner    *runner.Runner
	validator *validator
	web       *httptest.Server
	api       *handlers.API
	mail      *mail.Server // nil if the site receives no mail
	owner     people.Identity
	key       string // the key of do and open; "" for none
	server    *handlerstest.Server
}

// settings are the values that an option may change before a site is built.
type settings struct {
	*handlerstest.Settings
	sender sender       // of webhooks
	mail   *mail.Config // receives mail, over the API; nil for none
}

// patience bounds how long a test waits: the machine may be busy.
const patience = 2 * time.Minute

// A sender sends webhook deliveries.
type sender interface {
	CheckURL(url string) error
	Send(ctx context.Context, d store.Delivery) (store.Execution, error)
}

type option func(*settings)

func idle(s *settings) { s.Idle = true }

// withModel replaces the offline model.
func withModel(m model.Model) option { return func(s *settings) { s.Runner.Model = m } }

// impatient ends a turn whose model fails, instead of a wait for the model.
func impatient(s *settings) { s.Runner.ModelPatience = time.Millisecond }

// withTiming shortens the server's waits.
func withTiming(t handlers.Timing) option { return func(s *settings) { s.API.Timing = t } }

// onServer starts a site for a test that runs beside others.
func onServer(t *testing.T, opts ...option) (*is.I, *site) {
	t.Helper()
	t.Parallel()
	return is.New(t), newServer(t, opts...)
}

// TestMain makes this program work as a document reader, as the real program does.
func TestMain(m *testing.M) {
	filters := tool.Filters()
	filters[handlers.YAMLFilter] = handlers.ReadYAML
	sandbox.BeFilter(os.Args, filters)
	os.Exit(m.Run())
}

// newServer starts a site. Its key belongs to an owner.
func newServer(t testing.TB, opts ...option) *site {
	t.Helper()
	var box *mail.Server
	srv := handlerstest.Start(t, func(base *handlerstest.Settings) {
		set := settings{Settings: base, sender: &outside{}}
		for _, o := range opts {
			o(&set)
		}
		base.Connect = func(st *store.Store, rn *runner.Runner) {
			set.API.Webhooks = webhook.Manual{Store: st, Sender: set.sender}
			if set.mail == nil {
				return
			}
			set.mail.Store, set.mail.Runner, set.mail.Log = st, rn, set.Runner.Log
			box = mail.New(*set.mail)
			box.Start()
			t.Cleanup(func() { _ = box.Shutdown(t.Context()) }) // a test with a listener has shut it down
			set.API.Inbox, set.API.MailDomain = box, set.mail.Domain
		}
	})
	s := &site{mail: box, url: srv.URL, store: srv.Store, runner: srv.Runner, validator: newValidator(t), web: srv.Web,
		api: srv.API, owner: srv.Owner, key: srv.Key, server: srv}
	srv.Validate = s.validator.check
	return s
}

// views returns the builder of webhook bodies.
func (s *site) views() view.Builder { return view.New(s.store, s.url) }

// as returns the site with another key.
func (s *site) as(key string) *site {
	other := *s
	other.key, other.server = key, s.server.As(key)
	return &other
}

// member returns the site with a member's key.
func (s *site) member(t testing.TB, email string) (*site, people.Identity) {
	t.Helper()
	who, key := storetest.Caller(t, s.store, "Acme", email, people.RoleMember)
	return s.as(key), who
}

// stranger returns the site with the key of another organization's owner.
func (s *site) stranger(t testing.TB) *site {
	t.Helper()
	_, key := storetest.Caller(t, s.store, "Rival", "eve@example.net", people.RoleOwner)
	return s.as(key)
}

// A response is an answer that was checked against openapi.yaml.
type response struct {
	status int
	header http.Header
	body   []byte
	value  any // of a JSON body
}

// do sends a request and checks the answer. Headers are "Name: value". A body that begins like JSON
// is sent as JSON.
func (s *site) do(t testing.TB, method, path, body string, headers ...string) response {
	t.Helper()
	return s.begin(t, method, path, body, headers...)()
}

// begin sends a request like do, but does not wait. The returned function waits for the answer and
// checks it in the test's own goroutine.
func (s *site) begin(t testing.TB, method, path, body string, headers ...string) func() response {
	t.Helper()
	req := s.request(t, method, path, body, headers...)
	var resp *http.Response
	var raw []byte
	done := make(chan error, 1)
	go func() {
		var err error
		if resp, err = handlerstest.Client.Do(req); err == nil {
			raw, err = io.ReadAll(resp.Body)
			resp.Body.Close()
		}
		done <- err
	}()
	return func() response {
		t.Helper()
		is.New(t).NoErr(<-done)
		if method != http.MethodOptions {
			s.validator.check(t, req, resp, raw)
		}
		r := response{status: resp.StatusCode, header: resp.Header, body: raw}
		if strings.HasPrefix(resp.Header.Get("Content-Type"), "application/json") && len(raw) > 0 {
			if err := json.Unmarshal(raw, &r.value); err != nil {
				t.Fatalf("%s %s: %v\n%s", method, path, err, raw)
			}
		}
		return r
	}
}

// request returns a request with the site's key: see handlerstest.Server.Request.
func (s *site) request(t testing.TB, method, path, body string, headers ...string) *http.Request {
	t.Helper()
	return s.server.Request(t, method, path, body, headers...)
}

// must calls do and fails the test unless the request succeeds.
func (s *site) must(t testing.TB, method, path, body string, headers ...string) response {
	t.Helper()
	r := s.do(t, method, path, body, headers...)
	if r.status != http.StatusOK {
		t.Fatalf("%s %s answered %d: %.500s", method, path, r.status, r.body)
	}
	return r
}

// at returns the value at a path of field names and indexes such as "a.0.b", or nil.
func (r response) at(path string) any {
	v := r.value
	for _, step := range strings.Split(path, ".") {
		switch node := v.(type) {
		case map[string]any:
			v = node[step]
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(node) {
				return nil
			}
			v = node[i]
		default:
			return nil
		}
	}
	return v
}

// text returns the string at a path.
func (r response) text(path string) string {
	v, _ := r.at(path).(string)
	return v
}

// size returns the length of the list at a path.
func (r response) size(path string) int {
	v, _ := r.at(path).([]any)
	return len(v)
}

// refused returns the status, the code and the paths of the details, which client programs use.
func (r response) refused() string {
	out := strconv.Itoa(r.status) + " " + r.text("code")
	details, _ := r.at("details").([]any)
	for i := range details {
		out += " " + r.text(fmt.Sprintf("details.%d.path", i))
	}
	return out
}

// encode returns v as JSON.
func encode(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // the values of tests always marshal
	}
	return string(b)
}

// fields is a JSON object.
type fields map[string]any

// run runs a task to its end, of the worker in f if there is one.
func (s *site) run(t testing.TB, f fields) response {
	t.Helper()
	return s.must(t, "POST", "/api/tasks", encode(f))
}

// newWorker creates a worker template and returns its id.
func (s *site) newWorker(t testing.TB, f fields) string {
	t.Helper()
	return s.must(t, "POST", "/api/workers", encode(f)).text("id")
}

// A clock is a clock that a test sets.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: time.Now().Truncate(time.Second)} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// chars returns n characters of two bytes each.
func chars(n int) string { return strings.Repeat("é", n) }

// sameJSON reports whether two values have the same JSON.
func sameJSON(a, b any) bool { return bytes.Equal([]byte(encode(a)), []byte(encode(b))) }

// scripted returns an input that the offline model carries out line by line.
func scripted(lines ...string) string {
	return "```offline\n" + strings.Join(lines, "\n") + "\n```"
}

// calling returns a script line that calls a tool. arguments alternates names and values.
func calling(name string, arguments ...string) string {
	input := fields{}
	for i := 0; i+1 < len(arguments); i += 2 {
		input[arguments[i]] = arguments[i+1]
	}
	return "tool " + name + " " + encode(input)
}

// publishing returns two script lines that write and publish a file.
func publishing(path, content string) string {
	return calling("write_file", "path", path, "content", content) + "\n" + calling("publish_file", "path", path)
}

// pause returns a condition that becomes true after d, for tests that need real time.
func pause(d time.Duration) func() bool {
	end := time.Now().Add(d)
	return func() bool { return time.Now().After(end) }
}

// A stream is an event stream that a test reads. Its events are checked against openapi.yaml.
type stream struct {
	resp      *http.Response
	lines     *bufio.Reader
	validator *validator
	operation string
	cancel    context.CancelFunc
	id        string   // of the last event
	data      []string // of all events so far
	beats     int      // comments so far
}

// open opens a stream and checks the beginning of the answer.
func (s *site) open(t testing.TB, method, path, body string, headers ...string) *stream {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	req := s.request(t, method, path, body, headers...).WithContext(ctx)
	resp, err := handlerstest.Client.Do(req)
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	t.Cleanup(func() { cancel(); resp.Body.Close() })
	if resp.StatusCode != http.StatusOK {
		raw, _ := io.ReadAll(resp.Body)
		t.Fatalf("%s %s answered %d: %s", method, path, resp.StatusCode, raw)
	}
	s.validator.check(t, req, resp, nil)
	st := &stream{resp: resp, lines: bufio.NewReader(resp.Body), validator: s.validator, cancel: cancel}
	if strings.HasSuffix(req.URL.Path, "/stream") {
		st.operation = "streamWorker"
	}
	return st
}

// read returns the data of the next event. ok is false at the end of the stream.
func (s *stream) read(t testing.TB) (data string, ok bool) {
	t.Helper()
	id := ""
	for {
		line, err := s.lines.ReadString('\n')
		if err != nil {
			if errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("no event came after %q", s.data)
			}
			return "", false
		}
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case line == "\n" && data != "":
			s.id = id
			s.data = append(s.data, data)
			if err := s.validator.events(s.operation, []byte("data: "+data+"\n")); err != nil {
				t.Errorf("not as openapi.yaml says: %v", err)
			}
			return data, true
		case line == "\n":
		case name == "":
			s.beats++
		case name == "id" && value != "" && id == "":
			id = value
		case name == "data" && id != "" && data == "":
			data = value
		default:
			t.Fatalf("%q has no place in an event: it is one id and one line of data", line)
		}
	}
}

// next returns the data of the next event, which must exist.
func (s *stream) next(t testing.TB) string {
	t.Helper()
	data, ok := s.read(t)
	if !ok {
		t.Fatalf("the stream has ended after %q", s.data)
	}
	return data
}

// until reads up to an event that contains text.
func (s *stream) until(t testing.TB, text string) string {
	t.Helper()
	for {
		if data := s.next(t); strings.Contains(data, text) {
			return data
		}
	}
}

// ended reads the remaining events and reports whether the last one is [DONE].
func (s *stream) ended(t testing.TB) bool {
	t.Helper()
	for {
		if _, ok := s.read(t); !ok {
			return len(s.data) > 0 && s.data[len(s.data)-1] == "[DONE]"
		}
	}
}

// types returns the types of the chunks so far.
func (s *stream) types() string {
	var out []string
	for _, data := range s.data {
		var chunk struct{ Type string }
		if json.Unmarshal([]byte(data), &chunk) != nil {
			chunk.Type = data // [DONE]
		}
		out = append(out, chunk.Type)
	}
	return strings.Join(out, " ")
}
