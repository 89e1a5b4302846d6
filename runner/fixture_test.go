package runner_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/runner"
	"journeyman/runner/model"
	"journeyman/runner/model/offline"
	"journeyman/runner/sandbox"
	"journeyman/runner/tool"
	"journeyman/runner/view"
	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/people"
	"journeyman/store/storetest"
	"journeyman/store/workers"
)

// A fixture is a running runner over a real store, with one worker.
type fixture struct {
	*runner.Runner
	t      testing.TB
	cfg    runner.Config
	store  *store.Store
	owner  people.Caller
	worker workers.Worker
}

// setup changes the config of a fixture.
type setup func(*runner.Config)

func withModel(m model.Model) setup { return func(c *runner.Config) { c.Model = m } }
func withTools(tools ...tool.Tool) setup {
	return func(c *runner.Config) { c.Tools = append(c.Tools, tools...) }
}
func withClock(now func() time.Time) setup { return func(c *runner.Config) { c.Now = now } }
func withBudget(l runner.Limits) setup {
	return func(c *runner.Config) { c.Budgets = map[store.Budget]runner.Limits{store.BudgetStandard: l} }
}
func withPatience(d time.Duration) setup {
	return func(c *runner.Config) { c.ModelPatience = d }
}
func withPrices(t testing.TB, json string) setup {
	path := filepath.Join(t.TempDir(), "prices.json")
	is.New(t).NoErr(os.WriteFile(path, []byte(json), 0o600))
	p, err := model.LoadPrices(path)
	is.New(t).NoErr(err)
	return func(c *runner.Config) { c.Prices = p }
}

// newFixture starts a runner with the offline model and the workspace tools.
func newFixture(t testing.TB, setups ...setup) *fixture {
	t.Helper()
	return startedOn(t, storetest.Open(t, store.Options{}), setups...)
}

// startedOn starts a runner over a store, which gets an organization with one worker.
func startedOn(t testing.TB, st *store.Store, setups ...setup) *fixture {
	t.Helper()
	f := fixtureOn(t, st, setups...)
	f.found()
	f.start()
	return f
}

// found creates the organization and its worker.
func (f *fixture) found() {
	f.t.Helper()
	who, _ := storetest.Caller(f.t, f.store, "Acme", "ann@acme.test", people.RoleOwner)
	f.owner = who.Caller
	f.owner.Trigger = "api"
	f.worker = f.newWorker(workers.NewWorker{Title: "Scribe", Instructions: "Help."})
}

// fixtureOn returns a fixture over a store. Its runner is not started.
func fixtureOn(t testing.TB, st *store.Store, setups ...setup) *fixture {
	t.Helper()
	prices, err := model.LoadPrices("")
	is.New(t).NoErr(err)
	f := &fixture{t: t, store: st}
	f.cfg = runner.Config{Store: st, Model: offline.New(), Prices: prices, Tools: tool.All(tool.NewDocuments(sandbox.NewFilterPool())), BaseURL: "http://jm.test",
		Log: slog.New(slog.DiscardHandler), Retry: func(int) time.Duration { return 0 }}
	for _, s := range setups {
		s(&f.cfg)
	}
	f.Runner = runner.New(f.cfg)
	return f
}

func (f *fixture) start() {
	f.t.Helper()
	is.New(f.t).NoErr(f.Start(f.t.Context()))
	f.t.Cleanup(f.stop)
}

// stop stops the runner without a grace period for running turns.
func (f *fixture) stop() {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := f.Stop(ctx); err != nil && !strings.Contains(err.Error(), "closed") {
		f.t.Error(err)
	}
}

func (f *fixture) ctx() context.Context { return f.t.Context() }

func (f *fixture) newWorker(n workers.NewWorker) workers.Worker {
	f.t.Helper()
	w, _, err := f.store.Workers.CreateWorker(f.ctx(), f.owner, n, db.IdempotencyKey{})
	is.New(f.t).NoErr(err)
	return w
}

// script returns an input for the offline model with the given script lines.
func script(lines ...string) string { return "```offline\n" + strings.Join(lines, "\n") + "\n```" }

// accept accepts an instruction as a new task, or with task as its next turn.
func (f *fixture) accept(input string, task ...string) store.Turn {
	f.t.Helper()
	n := store.NewTurn{Caller: f.owner, WorkerID: f.worker.ID, Input: input, Budget: store.BudgetStandard}
	if len(task) > 0 {
		n.TaskID = task[0]
	}
	return f.acceptTurn(n)
}

func (f *fixture) acceptTurn(n store.NewTurn) store.Turn {
	f.t.Helper()
	a, err := f.store.CreateTurn(f.ctx(), n)
	is.New(f.t).NoErr(err)
	f.Wake()
	return a.Turn
}

// patience is the longest time that a test waits.
const patience = 2 * time.Minute

// wait waits for the end of a turn and returns it.
func (f *fixture) wait(t store.Turn) store.Turn {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.ctx(), patience)
	defer cancel()
	if err := f.Wait(ctx, t.ID); err != nil {
		f.t.Fatalf("wait for %s: %v", t.ID, err)
	}
	return f.reload(t.ID)
}

// reload returns a turn as it is stored now.
func (f *fixture) reload(id string) store.Turn {
	f.t.Helper()
	t, err := f.store.Turn(f.ctx(), id)
	is.New(f.t).NoErr(err)
	return t
}

// conversation returns what the turns of a task have said.
func (f *fixture) conversation(t store.Turn) store.Conversation {
	f.t.Helper()
	conv, err := f.store.Conversation(f.ctx(), t)
	is.New(f.t).NoErr(err)
	return conv
}

func (f *fixture) run(input string, task ...string) store.Turn {
	f.t.Helper()
	return f.wait(f.accept(input, task...))
}

func (f *fixture) journal(t store.Turn) []store.Step {
	f.t.Helper()
	steps, err := f.store.Journal(f.ctx(), t)
	is.New(f.t).NoErr(err)
	return steps
}

// messages returns the UI messages of a task as decoded JSON.
func (f *fixture) messages(t store.Turn) []any {
	f.t.Helper()
	return plain(f.t, f.views().Messages(f.conversation(t), view.SDK5)).([]any)
}

// views returns the builder of the messages that clients see.
func (f *fixture) views() view.Builder { return view.New(f.store, f.cfg.BaseURL) }

// plain returns a value as encoded and decoded JSON.
func plain(t testing.TB, v any) any {
	t.Helper()
	b, err := json.Marshal(v)
	is.New(t).NoErr(err)
	var out any
	is.New(t).NoErr(json.Unmarshal(b, &out))
	return out
}

// successor returns a fixture with a new runner over the same store, and starts it.
func (f *fixture) successor(setups ...setup) *fixture {
	f.t.Helper()
	g := fixtureOn(f.t, f.store, setups...)
	g.owner, g.worker = f.owner, f.worker
	g.start()
	return g
}

// crash returns a fixture in the state after kill -9 at this moment. It uses a copy of the data
// folder, and is not started. The first runner continues, but the copy does not change.
func (f *fixture) crash(setups ...setup) *fixture {
	f.t.Helper()
	return f.after(f.die(), setups...)
}

// A death is a copy of a data folder at the moment when a process dies.
type death struct {
	dir string
	err error // of the copying
}

// die copies the data folder. Unlike crash, it makes no assertion. So a fake model or tool can call
// it in the middle of a turn.
func (f *fixture) die() death {
	d := death{dir: f.t.TempDir()}
	d.err = storetest.Copy(f.t, f.store.Dir(), d.dir)
	return d
}

// after returns a fixture on the data folder of a death.
func (f *fixture) after(d death, setups ...setup) *fixture {
	f.t.Helper()
	if d.err != nil {
		f.t.Fatal(d.err)
	}
	st, err := store.Open(context.Background(), d.dir, storetest.Schema(f.t),
		store.Options{Now: f.cfg.Now, Database: storetest.DatabaseOf(d.dir)})
	is.New(f.t).NoErr(err)
	f.t.Cleanup(func() { _ = st.Close() })
	g := fixtureOn(f.t, st, append([]setup{func(c *runner.Config) {
		keep := c.Store
		*c = f.cfg
		c.Store = keep
	}}, setups...)...)
	g.owner, g.worker = f.owner, f.worker
	return g
}

// A fakeModel is a provider whose responses a test defines.
type fakeModel struct {
	name string
	fn   func(ctx context.Context, req model.Request, emit func(model.Delta)) (model.Response, error)

	mu       sync.Mutex
	requests []model.Request
}

func (m *fakeModel) Name() string {
	return cmp.Or(m.name, "fake")
}

func (m *fakeModel) Generate(ctx context.Context, req model.Request, emit func(model.Delta)) (model.Response, error) {
	m.mu.Lock()
	m.requests = append(m.requests, req)
	m.mu.Unlock()
	return m.fn(ctx, req, emit)
}

func (m *fakeModel) seen() []model.Request {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.requests)
}

// last returns the newest request.
func (m *fakeModel) last() model.Request {
	seen := m.seen()
	return seen[len(seen)-1]
}

// says returns a model with one answer for each call. The last answer is repeated.
func says(answers ...string) *fakeModel {
	var n atomic.Int64
	return &fakeModel{fn: func(_ context.Context, _ model.Request, emit func(model.Delta)) (model.Response, error) {
		i := min(int(n.Add(1)), len(answers)) - 1
		return answer(emit, answers[i]), nil
	}}
}

// textOf returns the first text of a message that was not added by the service itself.
func textOf(m model.Message) string {
	for _, p := range m.Parts {
		if !p.Aside {
			return p.Text
		}
	}
	return ""
}

// answer returns a response of text.
func answer(emit func(model.Delta), text string) model.Response {
	if emit != nil && text != "" {
		emit(model.Delta{Type: model.PartText, Text: text})
	}
	return model.Response{Model: "fake", Finish: model.FinishStop, Parts: []model.Part{{Type: model.PartText, Text: text}},
		Usage: model.Usage{InputTokens: 10, OutputTokens: 5}}
}

// calls returns a response with tool calls, given as pairs of name and arguments.
func calls(emit func(model.Delta), step int, pairs ...string) model.Response {
	r := model.Response{Model: "fake", Finish: model.FinishToolCalls, Usage: model.Usage{InputTokens: 10, OutputTokens: 5}}
	for i := 0; i < len(pairs); i += 2 {
		p := model.Part{Type: model.PartToolCall, CallID: "c" + string(rune('a'+step)) + string(rune('a'+i)), ToolName: pairs[i], Input: json.RawMessage(pairs[i+1])}
		emit(model.Delta{Part: i / 2, Type: p.Type, CallID: p.CallID, ToolName: p.ToolName, Text: pairs[i+1]})
		r.Parts = append(r.Parts, p)
	}
	return r
}

// stepOf returns how many steps of the turn a request contains.
func stepOf(req model.Request) int {
	n := 0
	for _, m := range req.Messages[req.TurnStart:] {
		if m.Role == model.RoleAssistant {
			n++
		}
	}
	return n
}

// A fakeTool is a tool whose run function a test defines.
type fakeTool struct {
	name       string
	repeatable bool
	fn         func(ctx context.Context, host tool.Host, input json.RawMessage) (json.RawMessage, error)
}

func (t fakeTool) Spec() tool.Spec {
	return tool.Spec{Name: t.name, Description: "A tool of a test.", InputSchema: json.RawMessage(`{"type":"object"}`), Repeatable: t.repeatable}
}

func (t fakeTool) Run(ctx context.Context, host tool.Host, input json.RawMessage) (json.RawMessage, error) {
	return t.fn(ctx, host, input)
}

// gives returns a tool that always returns this result.
func gives(name, result string) fakeTool {
	return fakeTool{name: name, fn: func(context.Context, tool.Host, json.RawMessage) (json.RawMessage, error) {
		return json.RawMessage(result), nil
	}}
}

var errOutside = errors.New("the outside world fails")

// until receives from a channel, and fails the test after patience.
func until[T any](t testing.TB, c <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(patience):
		t.Fatalf("waited too long until %s", what)
		panic("unreachable")
	}
}
