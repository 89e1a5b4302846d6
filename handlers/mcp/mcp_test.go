package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/matryer/is"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"journeyman/handlers/handlerstest"
	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/ordertest"
	"journeyman/store/people"
	"journeyman/store/storetest"
	"journeyman/store/workers"
)

// withKey adds a key to a client's requests.
type withKey struct{ key string }

func (k withKey) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+k.key)
	return handlerstest.Client.Transport.RoundTrip(r)
}

// client connects a client of the official SDK, with one version of the protocol or the newest.
func (s *site) client(t testing.TB, version string, opt *sdk.ClientOptions) *sdk.ClientSession {
	t.Helper()
	c, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, opt).Connect(t.Context(),
		&sdk.StreamableClientTransport{Endpoint: s.URL + "/mcp", HTTPClient: &http.Client{Transport: withKey{s.Key}}, MaxRetries: -1},
		&sdk.ClientSessionOptions{ProtocolVersion: version})
	is.New(t).NoErr(err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// callTool calls a tool and returns its texts, one a line, and its structured content.
func callTool(t testing.TB, c *sdk.ClientSession, name string, args any) (string, map[string]any, *sdk.CallToolResult) {
	t.Helper()
	res, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: name, Arguments: args})
	is.New(t).NoErr(err)
	var texts []string
	for _, part := range res.Content {
		switch part := part.(type) {
		case *sdk.TextContent:
			texts = append(texts, part.Text)
		case *sdk.ResourceLink:
			texts = append(texts, "link "+part.URI)
		}
	}
	structured, _ := res.StructuredContent.(map[string]any)
	return strings.Join(texts, "\n"), structured, res
}

func toolNames(t testing.TB, c *sdk.ClientSession) []string {
	t.Helper()
	var names []string
	for tool, err := range c.Tools(t.Context(), nil) {
		is.New(t).NoErr(err)
		names = append(names, tool.Name)
	}
	return names
}

// newWorker creates a worker in the store.
func newWorker(t testing.TB, s *site, title string, v workers.Visibility) workers.Worker {
	t.Helper()
	w, _, err := s.Store.Workers.CreateWorker(t.Context(), s.Owner.Caller, workers.NewWorker{Title: title,
		Summary:    "Says it.",
		Visibility: v}, db.IdempotencyKey{})
	is.New(t).NoErr(err)
	return w
}

func TestMCPRunsWorkers(t *testing.T) {
	_, s := onServer(t)
	w := newWorker(t, s, "Weekly Report — Ünïcode!", workers.Public)
	for _, version := range []string{"2025-03-26", "2025-06-18", "2025-11-25", ""} {
		t.Run("version "+version, func(t *testing.T) {
			is := is.New(t)
			c := s.client(t, version, nil)
			is.Equal(c.InitializeResult().ServerInfo.Version, "1.2.3") // the version of the program
			names := toolNames(t, c)
			own := "weekly_report_n_code_" + strings.TrimPrefix(w.ID, "wrk_")
			is.Equal(names, []string{"get_task", "list_workers", "run_worker", own})
			script := "```offline\ntool write_file {\"path\": \"a.txt\", \"content\": \"hi\"}\ntool publish_file {\"path\": \"a.txt\"}\nsay Done.\n```"
			text, run, res := callTool(t, c, "run_worker", map[string]any{"worker": w.ID, "input": script, "budget": "low"})
			is.True(!res.IsError)
			is.True(strings.HasPrefix(text, "Done.\n"))
			is.True(strings.Contains(text, "link "+s.URL+"/api/workers/"+w.ID+"/files/a.txt"))
			is.Equal(run["status"], "completed")
			is.Equal(run["output"], "Done.")
			task := run["taskId"].(string)
			_, again, _ := callTool(t, c, "run_worker", map[string]any{"worker": w.ID, "input": "more", "task": task})
			is.Equal(again["taskId"], task)
			_, got, _ := callTool(t, c, "get_task", map[string]any{"task": task})
			is.Equal(got["turnId"], again["turnId"])
			text, _, _ = callTool(t, c, own, map[string]any{"input": "```offline\nsay From its own tool.\n```"})
			is.True(strings.HasPrefix(text, "From its own tool."))
			_, list, _ := callTool(t, c, "list_workers", map[string]any{"q": "weekly"})
			is.Equal(list["items"].([]any)[0].(map[string]any)["tool"], own)
		})
	}
}

// TestMCPHidesWorkersOfTasks checks that a worker of a task is in no list until somebody keeps it. A
// client that knows its id may run it.
func TestMCPHidesWorkersOfTasks(t *testing.T) {
	is, s := onServer(t)
	made, _, err := s.Store.Workers.CreateWorker(t.Context(), s.Owner.Caller,
		workers.NewWorker{Title: "Once", Origin: workers.TaskOrigin}, db.IdempotencyKey{})
	is.NoErr(err)
	c := s.client(t, "", nil)
	is.Equal(len(toolNames(t, c)), 3)
	_, list, _ := callTool(t, c, "list_workers", map[string]any{})
	is.Equal(len(list["items"].([]any)), 0)
	_, run, _ := callTool(t, c, "run_worker", map[string]any{"worker": made.ID, "input": "Go"})
	is.Equal(run["status"], "completed")

	kept := workers.CreatedOrigin
	_, err = s.Store.Workers.UpdateWorker(t.Context(), s.Owner.Caller, made.ID, workers.Patch{Origin: &kept})
	is.NoErr(err)
	is.Equal(len(toolNames(t, c)), 4)
	_, list, _ = callTool(t, c, "list_workers", map[string]any{})
	is.Equal(len(list["items"].([]any)), 1)
}

func TestMCPNameOfAToolSurvivesItsTitle(t *testing.T) {
	is, s := onServer(t)
	w := newWorker(t, s, "Before", workers.Public)
	c := s.client(t, "", nil)
	old := toolNames(t, c)[3]
	title := strings.Repeat("After ", 30)
	_, err := s.Store.Workers.UpdateWorker(t.Context(), s.Owner.Caller, w.ID, workers.Patch{Title: &title})
	is.NoErr(err)
	text, _, _ := callTool(t, c, old, map[string]any{"input": "```offline\nsay Still here.\n```"})
	is.True(strings.HasPrefix(text, "Still here."))
	name := toolNames(t, c)[3]
	is.True(name != old)
	ordertest.AtMost(is, len(name), 64)
}

func TestMCPFailuresAreReported(t *testing.T) {
	_, s := onServer(t)
	w := newWorker(t, s, "One", workers.Public)
	hidden := newWorker(t, s, "Hidden", workers.Private)
	_, key := storetest.Caller(t, s.Store, "Acme", "mo@example.com", people.RoleMember)
	member := s.as(key)
	c := member.client(t, "2025-11-25", nil)
	is.New(t).Equal(len(toolNames(t, c)), 4) // the hidden worker has no tool
	for _, tt := range []struct {
		tool string
		args any
		says string
	}{
		{"run_worker", map[string]any{"worker": w.ID}, "input: is required"},
		{"run_worker", map[string]any{"input": "x"}, "worker: is required"},
		{"run_worker", map[string]any{"worker": w.ID, "input": 1, "budget": "huge"}, "budget: must be low, standard"},
		{"run_worker", map[string]any{"worker": w.ID, "input": "x", "waitSeconds": -1}, "waitSeconds: must be"},
		{"run_worker", map[string]any{"worker": 1, "input": 2, "task": 3, "budget": 4, "waitSeconds": "5"},
			"\ntask: must be a string\ninput: must be a string\nbudget: must be a string\nworker: must be a string\n" +
				"worker: is required\nwaitSeconds: must be an integer from 0 to 86400"},
		{"list_workers", map[string]any{"q": 1, "cursor": 2}, "\nq: must be a string\ncursor: must be a string"},
		{"run_worker", map[string]any{"worker": w.ID, "input": "x", "task": "a b"}, "task: must have"},
		{"run_worker", map[string]any{"worker": "wrk_none", "input": "x"}, "worker"},
		{"run_worker", map[string]any{"worker": hidden.ID, "input": "x"}, "private"},
		{"hidden_" + strings.TrimPrefix(hidden.ID, "wrk_"), map[string]any{"input": "x"}, "private"},
		{"x_00000000000000000000000000", map[string]any{"input": "x"}, "worker"},
		{"get_task", map[string]any{"task": "none"}, "task"},
		{"get_task", map[string]any{}, "task: is required"},
		{"list_workers", map[string]any{"cursor": "junk"}, "cursor"},
		{"run_worker", map[string]any{"worker": w.ID, "input": "```offline\nfail 400 no such thing\n```"}, "no such thing (400)"},
	} {
		text, _, res := callTool(t, c, tt.tool, tt.args)
		is := is.New(t)
		is.True(res.IsError)
		if !strings.Contains(text, tt.says) {
			t.Errorf("%s %v: want %q, got %q", tt.tool, tt.args, tt.says, text)
		}
		lines := strings.Split(text, "\n")
		is.True(lines[0] != lines[1]) // no fault is named twice; the last line names the request
	}
	_, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: "none"})
	is.New(t).True(err != nil && strings.Contains(err.Error(), "unknown tool"))
	_, err = c.ListTools(t.Context(), &sdk.ListToolsParams{Cursor: "junk"})
	is.New(t).True(err != nil && strings.Contains(err.Error(), "cursor"))
}

func TestMCPListIsBounded(t *testing.T) {
	is, s := onServer(t, func(s *handlerstest.Settings) { s.Idle = true })
	for i := range 230 {
		newWorker(t, s, fmt.Sprintf("W %d", i), workers.Public)
	}
	c := s.client(t, "", nil)
	names := toolNames(t, c)
	is.Equal(len(names), 3+200)
	seen := map[string]bool{}
	for _, name := range names {
		seen[name] = true
	}
	is.Equal(len(seen), len(names))
	is.True(strings.HasPrefix(names[3], "w_229_")) // the newest first
}

func TestMCPProgressAndPatience(t *testing.T) {
	is, s := onServer(t)
	w := newWorker(t, s, "Slow", workers.Public)
	var mu sync.Mutex
	var told []string
	first := make(chan struct{})
	c := s.client(t, "2025-11-25", &sdk.ClientOptions{ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) {
		mu.Lock()
		defer mu.Unlock()
		if told = append(told, r.Params.Message); len(told) == 1 {
			close(first)
		}
	}})
	ctx, cancel := context.WithCancel(t.Context())
	params := &sdk.CallToolParams{Name: "run_worker", Arguments: map[string]any{"worker": w.ID, "task": "tsk-mine", "input": "```offline\nwait 1h\nsay Never.\n```"}}
	params.SetProgressToken("p")
	go func() { <-first; cancel() }()
	_, err := c.CallTool(ctx, params)
	is.True(err != nil)
	mu.Lock()
	is.True(strings.Contains(told[0], "tsk-mine"))
	mu.Unlock()

	text, run, res := callTool(t, c, "get_task", map[string]any{"task": "tsk-mine", "waitSeconds": 0}) // nobody has cancelled the task
	is.True(!res.IsError)
	is.True(run["status"] == "running" || run["status"] == "pending")
	is.True(strings.Contains(text, "It goes on"))
	other := newWorker(t, s, "Quick", workers.Public)
	_, run, _ = callTool(t, c, "run_worker", map[string]any{"worker": other.ID, "input": "```offline\nwait 1h\n```", "waitSeconds": 0})
	is.True(run["status"] != "completed")
}

func TestMCPReportsApprovals(t *testing.T) {
	is, s := onServer(t)
	w, _, err := s.Store.Workers.CreateWorker(t.Context(), s.Owner.Caller, workers.NewWorker{Title: "Careful",
		Settings: workers.Settings{ApprovalTools: []string{"list_files"}}}, db.IdempotencyKey{})
	is.NoErr(err)
	c := s.client(t, "2025-11-25", nil)
	_, run, _ := callTool(t, c, "run_worker", map[string]any{"worker": w.ID, "input": "```offline\ntool list_files {}\n```", "waitSeconds": 0})
	for end := time.Now().Add(time.Minute); ; {
		text, got, _ := callTool(t, c, "get_task", map[string]any{"task": run["taskId"], "waitSeconds": 1})
		if got["pendingApprovals"] != nil {
			is.True(strings.Contains(text, "approve the call of list_files"))
			return
		}
		is.True(time.Now().Before(end)) // the answer asks for the approval
	}
}

func TestMCPCallMadeAgain(t *testing.T) {
	is, s := onServer(t)
	w := newWorker(t, s, "Once", workers.Public)
	c := s.client(t, "2025-11-25", nil)
	call := func(input, key string) (string, bool) {
		p := &sdk.CallToolParams{Name: "run_worker", Arguments: map[string]any{"worker": w.ID, "input": input}}
		if key != "" {
			p.Meta = sdk.Meta{"idempotencyKey": key}
		}
		res, err := c.CallTool(t.Context(), p)
		is.NoErr(err)
		run, _ := res.StructuredContent.(map[string]any)
		id, _ := run["turnId"].(string)
		return id, res.IsError
	}
	first, _ := call("hello", "k")
	again, _ := call("hello", "k")
	is.Equal(again, first)
	_, failed := call("other", "k")
	is.True(failed) // another call with the same key
	plain, _ := call("hello", "")
	is.True(plain != first) // each call is a new turn
}

// message returns the scenario of a message that a client sends, and that the server accepts. A further header
// replaces the usual one of its name.
func message(body string, headers ...string) handlerstest.Scenario {
	return handlerstest.Scenario{Method: "POST", URL: "/mcp", Body: body, Status: http.StatusOK,
		Headers: append([]string{"Content-Type: application/json", "Accept: application/json, text/event-stream"}, headers...)}
}

// refused returns the scenario of a message that the server refuses.
func refused(status int, code, body string, headers ...string) handlerstest.Scenario {
	sc := message(body, headers...)
	sc.Status, sc.Code = status, code
	return sc
}

// toolCall returns a message that calls a tool. arguments is a member of the parameters, in JSON, or "".
func toolCall(name, arguments string) string {
	return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + name + `"` + arguments + `}}`
}

const pingMessage = `{"jsonrpc":"2.0","id":1,"method":"ping"}`

func TestMCPRefusals(t *testing.T) {
	_, s := onServer(t, func(s *handlerstest.Settings) { s.Idle = true })
	handlerstest.Run(t, s.Server, map[string]handlerstest.Scenario{
		"fine":             message(pingMessage),
		"own origin":       message(pingMessage, "Origin: "+s.URL),
		"loopback origin":  message(pingMessage, "Origin: http://localhost:6274"),
		"another origin":   refused(403, "forbidden", pingMessage, "Origin: http://evil.test"),
		"no origin at all": refused(403, "forbidden", pingMessage, "Origin: null"),
		"behind a proxy":   message(pingMessage, "Host: agents.test"),
		"a wrong key":      refused(401, "unauthorized", pingMessage, "Authorization: Bearer jm_live_wrong_wrong_wrong"),
		"a form":           refused(415, "unsupported_media_type", pingMessage, "Content-Type: text/plain"),
		"empty":            refused(400, "invalid_request", ``),
		"no JSON":          refused(400, "invalid_request", `{`),
		"a batch":          refused(400, "invalid_request", ` [`+pingMessage+`]`),
		"too large": refused(413, "too_large", `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":"`+
			strings.Repeat("x", 1<<20)+`"}}`),
		"no event stream": refused(400, "invalid_request", pingMessage, "Accept: application/json"),
		"an old version":  refused(400, "invalid_request", pingMessage, "Mcp-Protocol-Version: 1999-01-01"),
		"no such method":  refused(400, "invalid_request", `{"jsonrpc":"2.0","id":1,"method":"nothing"}`),
		"a notification": {Method: "POST", URL: "/mcp", Body: `{"jsonrpc":"2.0","method":"notifications/initialized"}`,
			Headers: message("").Headers, Status: http.StatusAccepted},
		// There are no sessions.
		"GET":    {Method: "GET", URL: "/mcp", Status: http.StatusMethodNotAllowed, Answers: []string{"Allow: POST"}},
		"DELETE": {Method: "DELETE", URL: "/mcp", Status: http.StatusMethodNotAllowed, Answers: []string{"Allow: POST"}},
	})
	handlerstest.Run(t, s.As(""), map[string]handlerstest.Scenario{"no key": refused(401, "unauthorized", pingMessage)})
}

// TestMCPWithoutArguments checks the forms in which clients send no arguments.
func TestMCPWithoutArguments(t *testing.T) {
	_, s := onServer(t)
	for _, none := range []string{"", `,"arguments":null`, `,"arguments":{}`} {
		sc := message(toolCall("list_workers", none))
		sc.Contents, sc.Absent = []string{`"structuredContent":{"items":[]`}, []string{`"isError":true`}
		sc.Run(t, s.Server)
	}
}

func TestMCPKeepsASilentStreamAlive(t *testing.T) {
	is, s := onServer(t, func(s *handlerstest.Settings) {
		s.MCP.SilentFor, s.MCP.LookEvery = time.Millisecond, 5*time.Millisecond
	})
	w := newWorker(t, s, "Slow", workers.Public)
	input, err := json.Marshal("```offline\nwait 300ms\nsay Done.\n```")
	is.NoErr(err)
	sc := message(toolCall("run_worker", `,"arguments":{"worker":"`+w.ID+`","input":`+string(input)+`}`))
	sc.Events = []string{"{"}
	sc.Contents = []string{"Done."}
	_, body := sc.Run(t, s.Server)
	is.True(strings.HasPrefix(body, ": still at work\n\n"))
}

// TestMCPClientsThatLeave disconnects many clients during calls: their requests end, and their
// tasks continue.
func TestMCPClientsThatLeave(t *testing.T) {
	is, s := onServer(t)
	w := newWorker(t, s, "Slow", workers.Public)
	input, err := json.Marshal("```offline\nwait 1h\n```")
	is.NoErr(err)
	ctx, leave := context.WithCancel(t.Context())
	var left sync.WaitGroup
	for i := range 20 {
		left.Go(func() {
			sc := message(toolCall("run_worker", fmt.Sprintf(`,"arguments":{"worker":%q,"task":"t%d","input":%s}`, w.ID, i, input)))
			req := s.Request(t, sc.Method, sc.URL, sc.Body, sc.Headers...).WithContext(ctx)
			if res, err := handlerstest.Client.Do(req); err == nil {
				_, _ = io.ReadAll(res.Body) // until the client leaves
				_ = res.Body.Close()
			}
		})
	}
	storetest.Eventually(t, "all tasks", func() bool {
		tasks, _, err := s.Store.Tasks(t.Context(), s.Owner.Caller, store.TaskQuery{WorkerID: w.ID, Limit: 100})
		is.NoErr(err)
		return len(tasks) == 20
	})
	leave()
	left.Wait()
	done := make(chan struct{})
	go func() { s.Web.Close(); close(done) }() // Close waits for every request
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Fatal("calls of clients that have left go on")
	}
}
