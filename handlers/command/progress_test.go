package command_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/handlers/command"
	"journeyman/runner"
	"journeyman/runner/model"
	"journeyman/runner/model/offline"
	"journeyman/runner/sandbox"
	"journeyman/runner/stream"
	"journeyman/runner/tool"
	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/people"
	"journeyman/store/storetest"
	"journeyman/store/workers"
)

// newRunner returns a runner with the tools of files. It has not started.
func newRunner(t testing.TB, st *store.Store, m model.Model) *runner.Runner {
	t.Helper()
	prices, err := model.LoadPrices("")
	is.New(t).NoErr(err)
	return runner.New(runner.Config{Store: st, Model: m, Prices: prices, Log: slog.New(slog.DiscardHandler),
		Tools: tool.All(tool.NewDocuments(sandbox.NewFilterPool()))})
}

// startRunner starts a runner, and stops it at the end of the test.
func startRunner(t testing.TB, st *store.Store, m model.Model) *runner.Runner {
	t.Helper()
	rn := newRunner(t, st, m)
	is.New(t).NoErr(rn.Start(t.Context()))
	t.Cleanup(func() {
		if err := rn.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return rn
}

// follow runs an input and returns the shown progress.
func follow(t *testing.T, m model.Model, p *command.Progress, input string) string {
	t.Helper()
	st := storetest.Open(t, store.Options{})
	who, _ := storetest.Caller(t, st, "Acme", "ann@acme.test", people.RoleOwner)
	who.Caller.Trigger = people.TriggerAPI
	rn := startRunner(t, st, m)
	a, err := st.CreateTurn(t.Context(), store.NewTurn{Caller: who.Caller, NewWorker: &workers.NewWorker{Title: "W"},
		Input: input, Budget: store.BudgetLow})
	is.New(t).NoErr(err)
	rn.Wake()
	var out bytes.Buffer
	p.W = &out
	is.New(t).NoErr(p.Follow(t.Context(), rn.Streams.Turn(a.Turn)))
	return out.String()
}

const steps = "```offline\nthink hm\ntool write_file {\"path\":\"a.txt\",\"content\":\"x\"}\ntool read_file {\"path\":\"b.txt\"}\nwait 300ms\nsay done\n```"

func TestPipe(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	is.Equal(follow(t, offline.New(), &command.Progress{}, steps), ` 1  write_file     a.txt
 2  read_file      b.txt
 2  failed: no file or folder "b.txt" in the workspace
`)
}

// TestCallLines checks the line of a call: its most telling argument instead of JSON.
func TestCallLines(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	var parts []model.Part
	for i, input := range []string{`{"command":"ls -la"}`, `{"offset":2,"path":"a.txt"}`, `{"url":"https://example.com/"}`,
		`{"pattern":"x+","glob":"*.go"}`, `{}`, `{"items":[1]}`} {
		parts = append(parts, model.Part{Type: model.PartToolCall, CallID: strconv.Itoa(i), ToolName: "some_tool", Input: json.RawMessage(input)})
	}
	out := regexp.MustCompile(`(?m)^ \d  failed.*\n`).ReplaceAllString(follow(t, &calling{parts: parts}, &command.Progress{}, "go"), "")
	is.Equal(out, ` 1  some_tool      ls -la
 2  some_tool      a.txt
 3  some_tool      https://example.com/
 4  some_tool      x+
 5  some_tool
 6  some_tool      {"items":[1]}
`)
}

func TestTerminal(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	out := follow(t, offline.New(), &command.Progress{Live: true, Color: true}, steps)
	is.True(regexp.MustCompile(`\r\x1b\[36m[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏]\x1b\[0m [a-z_]+ \d+s\x1b\[K`).MatchString(out)) // a spinner
	is.True(strings.Contains(out, "\x1b[31mfailed: "))
	is.True(strings.HasSuffix(out, "\r\x1b[K")) // the spinner is removed
	plain := follow(t, offline.New(), &command.Progress{Live: true}, steps)
	is.True(!strings.Contains(plain, "\x1b[3"))
}

// A model's text cannot control the terminal.
func TestHostileText(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	evil := "\x1b[2J\x07\u009b31m\u202etxt.exe\u2066\r\n\x00\u2028"
	args, err := json.Marshal(map[string]string{"path": evil + strings.Repeat("ä", 100)})
	is.NoErr(err)
	m := &calling{parts: []model.Part{
		{Type: model.PartToolCall, CallID: "a", ToolName: "read_file", Input: args},
		{Type: model.PartToolCall, CallID: "b", ToolName: "no" + evil, Input: json.RawMessage(`{}`)},
		{Type: model.PartToolCall, CallID: "c", ToolName: "read_file", Input: json.RawMessage(`{"path":` + evil)},
	}}
	out := follow(t, m, &command.Progress{}, "go")
	for _, line := range strings.Split(strings.TrimSuffix(out, "\n"), "\n") {
		for _, r := range line {
			if r < ' ' || r >= 0x7f && r < 0xa0 || r == '\u202e' || r == '\u2066' || r == '\u2028' {
				t.Errorf("the line %q holds %q", line, r)
			}
		}
	}
	is.Equal(strings.Count(out, "\n"), 6) // a line for each call and each failure
	is.True(strings.Contains(out, "…"))
	is.Equal(command.Printable("a\tb\nc\x1b[2J\u202e\r"), "a\tb\nc"+`\u001b[2J\u202e\r`)
}

// calling is a model that calls tools once.
type calling struct {
	parts []model.Part
	once  sync.Once
}

func (*calling) Name() string { return "fake" }

func (m *calling) Generate(_ context.Context, _ model.Request, _ func(model.Delta)) (r model.Response, err error) {
	r = model.Response{Finish: model.FinishStop, Parts: []model.Part{{Type: model.PartText, Text: "done"}}}
	m.once.Do(func() { r = model.Response{Finish: model.FinishToolCalls, Parts: m.parts} })
	return r, nil
}

func TestFollowEnds(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	st := storetest.Open(t, store.Options{})
	who, _ := storetest.Caller(t, st, "Acme", "ann@acme.test", people.RoleOwner)
	rn := newRunner(t, st, offline.New())
	who.Caller.Trigger = people.TriggerAPI
	a, err := st.CreateTurn(t.Context(), store.NewTurn{Caller: who.Caller, NewWorker: &workers.NewWorker{Title: "W"},
		Input: "go", Budget: store.BudgetLow})
	is.NoErr(err)
	for _, live := range []bool{false, true} {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		p := command.Progress{W: &bytes.Buffer{}, Live: live}
		is.Equal(p.Follow(ctx, rn.Streams.Turn(a.Turn)), context.DeadlineExceeded)
		cancel()
	}
	rn.Streams.Close()
	p := command.Progress{W: &bytes.Buffer{}, Live: true}
	is.Equal(p.Follow(t.Context(), rn.Streams.Turn(a.Turn)), stream.ErrClosed)
}

func TestPrintKeys(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var out bytes.Buffer
	command.PrintKeys(&out, []people.Key{
		{ID: "key_1", Name: "CI\x1b[2J\tx", Prefix: "jm_live_abcd", Email: "a@b.test", Role: people.RoleOwner, CreatedAt: at},
		{ID: "key_2", Name: "old", Prefix: "jm_live_efgh", Email: "a@b.test", Role: people.RoleMember, CreatedAt: at,
			LastUsedAt: &at, RevokedAt: &at},
		{ID: "key_3", Name: "going", Prefix: "jm_live_ijkl", Email: "a@b.test", Role: people.RoleAdmin, CreatedAt: at,
			ExpiresAt: &at},
	})
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	is.Equal(len(lines), 4)
	is.True(!strings.Contains(out.String(), "\x1b"))
	is.True(strings.HasSuffix(lines[1], "never                 active"))
	is.True(strings.HasSuffix(lines[2], "revoked"))
	is.True(strings.HasSuffix(lines[3], "expires 2026-01-02T03:04:05Z"))
}

// carryOut runs a script as "run" does, for a new worker whose writes need approval. stdin is the
// person's input, nil without a terminal.
func carryOut(t *testing.T, stdin io.Reader, input string) (stdout, stderr string, err error) {
	t.Helper()
	st := storetest.Open(t, store.Options{})
	rn := startRunner(t, st, offline.New())
	var out, progress bytes.Buffer
	task := command.Task{Store: st, Runner: rn, Data: "data", Stdin: stdin, Stdout: &out, Asks: []string{"write_file"}, Progress: command.Progress{W: &progress}}
	err = task.Run(t.Context(), store.NewTurn{Input: input, Budget: store.BudgetLow}, nil)
	return out.String(), progress.String(), err
}

func TestAsk(t *testing.T) {
	t.Parallel()
	const write = "tool write_file {\"path\":\"%s.txt\",\"content\":\"x\\u202e\"}\n"
	script := "```offline\n" + fmt.Sprintf(write, "a") + fmt.Sprintf(write, "b") + "say {{last}}\n```"
	for name, tt := range map[string]struct {
		stdin    io.Reader
		asked    int
		denied   int
		says     string
		progress string
	}{
		"yes":           {strings.NewReader("y\nYES\n"), 2, 0, `"b.txt"`, `write_file wants to run: {"path":"a.txt","content":"x`},
		"no":            {strings.NewReader("n\n\n"), 2, 2, "a person has denied this call", "Run it? Answer y, n, or the reason to deny it: "},
		"why not":       {strings.NewReader("y\n not there \n"), 2, 1, "a person has denied this call: not there", "failed: a person"},
		"the input end": {strings.NewReader("y\n"), 2, 1, "nobody was there to approve it", ""},
		"a long answer": {strings.NewReader(strings.Repeat("é", 2000) + "\n" + strings.Repeat("x", 100<<10)), 2, 2, "nobody was there", ""},
		"a pipe":        {nil, 0, 2, "a person has denied this call: nobody was there to approve it", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			stdout, stderr, err := carryOut(t, tt.stdin, script)
			is.NoErr(err)
			is.True(strings.Contains(stdout, tt.says))
			is.True(strings.Contains(stderr, tt.progress))
			is.Equal([]int{strings.Count(stderr, "wants to run"), strings.Count(stderr, "failed: ")}, []int{tt.asked, tt.denied})
			is.True(!strings.Contains(stderr, "\u202e"))
		})
	}
}

// TestAskOfNoTool checks that an unknown tool is refused.
func TestAskOfNoTool(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	st := storetest.Open(t, store.Options{})
	task := command.Task{Store: st, Progress: command.Progress{W: io.Discard}, Runner: newRunner(t, st, offline.New()),
		Asks: []string{"crm.send", "writefile"}}
	err := task.Run(t.Context(), store.NewTurn{Input: "go", Budget: store.BudgetLow}, nil)
	is.True(err != nil)
	is.True(strings.Contains(err.Error(), `there is no tool "writefile"; there are read_file, write_file, `))
}

func TestAskOfAnotherWorker(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	st := storetest.Open(t, store.Options{})
	task := command.Task{Store: st, Asks: []string{"write_file"}, Progress: command.Progress{W: io.Discard}}
	err := task.Run(t.Context(), store.NewTurn{Input: "go", WorkerID: "wrk_x", Budget: store.BudgetLow}, nil)
	is.True(strings.Contains(err.Error(), "--ask works only with a new worker"))
	task.Asks = []string{"no such/name"}
	err = task.Run(t.Context(), store.NewTurn{Input: "go", Budget: store.BudgetLow}, nil)
	is.True(db.IsKind(err, db.Invalid))
}
