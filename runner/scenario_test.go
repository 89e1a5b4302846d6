package runner_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/runner"
	"journeyman/runner/dial"
	"journeyman/runner/model"
	"journeyman/runner/sandbox"
	"journeyman/runner/tool"
	"journeyman/store"
	"journeyman/store/storetest"
	"journeyman/store/workers"
)

// A scenario is a task for a worker, with the script of its model.
type scenario struct {
	name         string
	title        string // of the worker; Clerk if empty
	instructions string // of the worker
	schema       string // of the output
	asks         []string
	steps        int64              // budget of model calls, 0 for no limit
	files        map[string]string  // attached to the first instruction
	pages        map[string]string  // of the web site, by path; in texts, {site} is its address
	inputs       []string           // the instructions, one for each turn
	says         []reply            // of the model, in order, over all turns
	cast         map[string][]reply // scripts of other workers, by title
	people       []verdict          // on approvals and questions, in order

	published  map[string]string // files at the end
	output     string            // of the last turn
	structured string            // output of the last turn
	end        string            // how the last turn ends: see endOf
}

// A reply is the model's response to one call.
type reply struct {
	think, say string
	does       []act
	count      []string // texts that the request of the call must contain
	images     int      // number of images that the request must contain
}

// An act is a tool call.
type act struct {
	name, args string
	once       bool   // the model does not repeat it after an interruption
	fails      string // text of the error; "" for a call that succeeds
}

// A verdict is a person's decision.
type verdict struct {
	deny   string // reason for the denial
	answer string // to a question; if both fields are empty, the call is approved
}

// say returns a reply with text.
func say(text string) reply { return reply{say: text} }

// does returns a reply with tool calls.
func does(acts ...act) reply { return reply{does: acts} }

// use returns a tool call. Its arguments are pairs of name and value.
func use(name string, pairs ...any) act {
	args := map[string]any{}
	for i := 0; i < len(pairs); i += 2 {
		args[pairs[i].(string)] = pairs[i+1]
	}
	b, err := json.Marshal(args)
	if err != nil {
		panic(err) // the scenario itself is wrong
	}
	return act{name: name, args: string(b)}
}

// The calls that most scenarios make.
func read(path string) act           { return use("read_file", "path", path) }
func write(path, content string) act { return use("write_file", "path", path, "content", content) }
func publish(path string) act        { return use("publish_file", "path", path) }
func edit(path, old, text string) act {
	return use("edit_file", "path", path, "old", old, "new", text)
}
func fetch(path string) act   { return use("web_fetch", "url", "{site}"+path) }
func bash(command string) act { return use("shell", "command", command) }

// failing marks a call that must fail with an error that contains text.
func (a act) failing(text string) act { a.fails = text; return a }

// after adds texts that the request of the call must contain.
func (r reply) after(texts ...string) reply { r.count = append(r.count, texts...); return r }

// and adds text to a reply with tool calls.
func (r reply) and(text string) reply { r.say = text; return r }

// thinking adds reasoning.
func (r reply) thinking(text string) reply { r.think = text; return r }

// seeing sets the number of images that the request of the call must contain.
func (r reply) seeing(n int) reply { r.images = n; return r }

// tokens returns the usage that the reply of a step reports.
func tokens(step int) (in, out, cached int64) {
	in, out = int64(6000+100*step), int64(500+10*step)
	if step > 0 {
		cached = in - 200
	}
	return in, out, cached
}

const scenarioRates = `{"input":3,"output":15,"cacheRead":0.3,"contextWindow":200000,"maxOutput":8000}`

// scenarioPrices returns the table of prices, in which each server has the model s.
func scenarioPrices() string {
	list := []string{"openai", "anthropic", "ollama"}
	for _, q := range personalities() {
		if q.model == "" {
			list = append(list, q.name)
		}
	}
	for i, name := range list {
		list[i] = quoted(name+":s") + ":" + scenarioRates
	}
	return "{" + strings.Join(list, ",") + "}"
}

// wireFormats are the names of the scenarios' providers for wire.openModel.
var wireFormats = []string{"anthropic", "openai", "responses", "ollama"}

// TestMain lets this program also run as the helper processes that read documents and run commands.
func TestMain(m *testing.M) {
	sandbox.BeFilter(os.Args, tool.Filters())
	if sandbox.IsChild(os.Args) {
		sandbox.Child()
	}
	storetest.SideBySide(4)
	os.Exit(m.Run())
}

// scenarioShell is the shell of all scenarios. It is confined if the machine supports that.
var scenarioShell = sync.OnceValues(func() (*sandbox.Shell, error) {
	return sandbox.NewShell(sandbox.Detect(context.Background()), sandbox.ShellConfig{Unsafe: true})
})

// scenarioTools returns all tools that need no configuration.
func scenarioTools(t testing.TB) []tool.Tool {
	t.Helper()
	documents := tool.NewDocuments(sandbox.NewFilterPool())
	sh, err := scenarioShell()
	is.New(t).NoErr(err)
	return append(tool.All(documents), tool.WebFetch(documents, dial.Guard{AllowPrivate: true}, "scenario"), tool.Shell(sh))
}

// A performance is one run of a scenario over one wire format, with at most one fault.
type performance struct {
	scenario
	t        testing.TB
	provider string
	fault    fault
	at       int // number of the request that the fault affects

	site   *httptest.Server
	clock  *clock // nil for the real clock
	deaths chan death
	f      *fixture // of the process that is alive

	mu        sync.Mutex
	requests  int
	struck    bool           // the fault has happened
	downUntil time.Time      // of the outage fault
	server    *personality   // nil for a plain wire
	estimates int64          // calls without counts, for which an estimate was charged
	calls     int64          // that the server has counted
	counted   store.Usage    // by the server
	played    int64          // output tokens of the script
	visits    map[string]int // of pages
}

// newPerformance prepares a run of a scenario.
func newPerformance(t testing.TB, sc scenario, provider string) *performance {
	t.Helper()
	p := &performance{scenario: sc, t: t, provider: provider, deaths: make(chan death, 1), visits: map[string]int{}}
	p.site = httptest.NewServer(http.HandlerFunc(p.visit))
	t.Cleanup(p.site.Close)
	return p
}

// visit handles a request to the web site.
func (p *performance) visit(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	p.visits[r.URL.Path]++
	p.mu.Unlock()
	page, ok := p.pages[r.URL.Path]
	if !ok {
		http.NotFound(w, r)
		return
	}
	kind := "text/plain; charset=utf-8"
	if strings.HasPrefix(page, "<") {
		kind = "text/html; charset=utf-8"
	}
	w.Header().Set("Content-Type", kind)
	_, _ = io.WriteString(w, p.real(page))
}

// real returns text with {site} replaced by the site's address.
func (p *performance) real(text string) string { return strings.ReplaceAll(text, "{site}", p.site.URL) }

// perform runs all turns of the scenario, and returns them.
func (p *performance) perform() (turns []store.Turn) {
	p.t.Helper()
	p.begin(true)
	verdicts := p.people
	for i, input := range p.inputs {
		n := store.NewTurn{Caller: p.f.owner, WorkerID: p.f.worker.ID, Input: p.real(input), Budget: store.BudgetStandard}
		if i > 0 {
			n.TaskID = turns[0].TaskID
		} else {
			p.attach(&n)
		}
		var turn store.Turn
		turn, verdicts = p.watch(p.f.acceptTurn(n), verdicts)
		if turns = append(turns, turn); endOf(turn) != "completed" {
			break // there is no next instruction after a failed turn
		}
	}
	return turns
}

// scenarioSetups returns the setups of a runner for scenarios.
func scenarioSetups(t testing.TB, m model.Model, l runner.Limits) []setup {
	t.Helper()
	return []setup{withModel(m), withPrices(t, scenarioPrices()), withBudget(l), func(c *runner.Config) { c.Tools = scenarioTools(t) }}
}

// begin creates the runner and its worker. If starts is false, another process runs the turns.
func (p *performance) begin(starts bool) *wire { p.t.Helper(); return p.beginWith(starts) }

// beginWith is begin with more setups of the runner.
func (p *performance) beginWith(starts bool, more ...setup) *wire {
	p.t.Helper()
	w := newWire(p.t, p.answer)
	w.speaker = p.speaker
	setups := append(scenarioSetups(p.t, w.openModel(p.t, p.provider+":s"), runner.Limits{Steps: p.steps}), more...)
	p.server = w.as
	switch {
	case p.fault.clocked:
		p.clock = newClock()
		p.f = onClock(p.t, p.clock, setups...)
	case starts:
		p.f = newFixture(p.t, setups...)
	default:
		p.f = fixtureOn(p.t, storetest.Open(p.t, store.Options{}), setups...)
		p.f.found()
	}
	n := workers.NewWorker{
		Title: cmp.Or(p.title, "Clerk"), Instructions: p.instructions, Settings: workers.Settings{ApprovalTools: p.asks},
	}
	if p.schema != "" {
		n.OutputSchema = json.RawMessage(p.schema)
	}
	p.f.worker = p.f.newWorker(n)
	for title := range p.cast {
		p.f.newWorker(workers.NewWorker{Title: title, Instructions: roleOf(title)})
	}
	return w
}

// attach attaches the files of the scenario to an instruction.
func (p *performance) attach(n *store.NewTurn) {
	p.t.Helper()
	var kept []store.File
	for _, name := range slices.Sorted(maps.Keys(p.files)) {
		f, err := p.f.Keep(p.f.ctx(), p.f.owner.OrganizationID, name, strings.NewReader(p.real(p.files[name])), runner.MaxFileSize)
		is.New(p.t).NoErr(err)
		kept = append(kept, f)
	}
	is.New(p.t).NoErr(p.f.Attach(p.f.ctx(), n, kept))
}

// TestScenarios plays every scenario without faults. Without SLOW, it plays a third of them.
func TestScenarios(t *testing.T) {
	t.Parallel()
	list := scenarios()
	if len(list) < 40 {
		t.Errorf("there are only %d scenarios", len(list))
	}
	rnd := rand.New(rand.NewPCG(11, 3)) // the same cases in each run
	for k, sc := range list {
		drawn := rnd.IntN(len(wireFormats))
		if k%3 != 0 && !storetest.Slowly() {
			continue
		}
		for i, provider := range wireFormats {
			if i != drawn && storetest.Rounds(1, 0) == 0 {
				continue // testing all formats takes long
			}
			t.Run(fmt.Sprintf("%s, %s", sc.name, provider), func(t *testing.T) {
				t.Parallel()
				p := newPerformance(t, sc, provider)
				p.check(p.perform())
				if t.Failed() {
					p.report()
				}
			})
		}
	}
}
