package runner_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/runner/model"
	"journeyman/runner/stream"
	"journeyman/runner/tool"
	"journeyman/store"
	"journeyman/store/ordertest"
)

// asksOnce returns a model that makes these calls in its first step, and then answers.
func asksOnce(pairs ...string) *fakeModel {
	return asksThen(func(model.Request) string { return "done" }, pairs...)
}

// asksThen is like asksOnce, but a function returns the answer.
func asksThen(then func(model.Request) string, pairs ...string) *fakeModel {
	return &fakeModel{fn: func(_ context.Context, req model.Request, emit func(model.Delta)) (model.Response, error) {
		if stepOf(req) == 0 {
			return calls(emit, 0, pairs...), nil
		}
		return answer(emit, then(req)), nil
	}}
}

// resultsIn returns the results of the turn's calls.
func resultsIn(req model.Request) string {
	var list []string
	for _, m := range req.Messages[req.TurnStart:] {
		for _, p := range m.Parts {
			if p.Type == model.PartToolResult {
				list = append(list, p.ToolName+": "+p.Text)
			}
		}
	}
	return strings.Join(list, "; ")
}

// A gate is a tool whose calls wait until a test opens them. The name in a call's arguments
// identifies the call.
type gate struct {
	name     string
	parallel bool
	repeat   bool
	begun    chan string

	mu   sync.Mutex
	open map[string]chan struct{}
}

func newGate(name string, parallel bool) *gate {
	return &gate{name: name, parallel: parallel, begun: make(chan string, 100), open: map[string]chan struct{}{}}
}

func (g *gate) Spec() tool.Spec {
	return tool.Spec{Name: g.name, Description: "A gate.", InputSchema: json.RawMessage(`{"type":"object"}`),
		Parallel: g.parallel, Repeatable: g.repeat}
}

func (g *gate) of(name string) chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open[name] == nil {
		g.open[name] = make(chan struct{})
	}
	return g.open[name]
}

func (g *gate) Run(ctx context.Context, host tool.Host, input json.RawMessage) (json.RawMessage, error) {
	var a struct{ Name string }
	if err := json.Unmarshal(input, &a); err != nil {
		return nil, err
	}
	g.begun <- a.Name
	select {
	case <-g.of(a.Name):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	host.AddSource("https://"+a.Name+".test/", a.Name)
	return json.Marshal("result of " + a.Name)
}

func called(name string) string { return fmt.Sprintf(`{"name":%q}`, name) }

// outputs returns the results in the last request to a model, in order.
func outputs(m *fakeModel) (list []string) {
	for _, msg := range m.last().Messages {
		for _, p := range msg.Parts {
			if p.Type == model.PartToolResult {
				list = append(list, p.Text)
			}
		}
	}
	return list
}

// TestReadsRunSideBySide ends the calls of a step in reverse order. Watchers get each end at once,
// even if they reconnect after any event. The model gets the results in the order of its calls.
func TestReadsRunSideBySide(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	g, names := newGate("look", true), []string{"a", "b", "c"}
	m := asksOnce("look", called("a"), "look", called("b"), "look", called("c"))
	f := newFixture(t, withModel(m), withTools(g))
	turn := f.accept("go")
	for range names {
		until(t, g.begun, "all calls run")
	}
	watcher := f.Streams.Turn(turn)
	var seen []stream.Event
	for _, name := range []string{"c", "b", "a"} {
		close(g.of(name))
		seen = append(seen, f.watchUntil(watcher, "result of "+name)...) // the other calls still run
	}
	f.wait(turn)
	is.Equal(outputs(m), []string{"result of a", "result of b", "result of c"})
	for done := false; !done; {
		events, end, err := watcher.Next(f.ctx())
		is.NoErr(err)
		seen, done = append(seen, events...), end
	}
	sources, err := f.store.SourcesByTurn(f.ctx(), turn)
	is.NoErr(err)
	is.Equal(len(sources), 3)
	is.Equal(sources[0].Title, "a") // the order of the calls, not of their ends
	is.Equal(sources[2].Title, "c")

	// Read from the journal alone: after every id, exactly the following events are sent.
	for i, e := range seen {
		s := f.taskStream(turn, string(e.ID))
		var rest []stream.Event
		for done := false; !done; {
			var events []stream.Event
			events, done, err = s.Next(f.ctx())
			is.NoErr(err)
			rest = append(rest, events...)
		}
		want := slices.DeleteFunc(types(seen[i+1:]), func(s string) bool { return strings.HasPrefix(s, "text-delta") })
		got := slices.DeleteFunc(types(rest), func(s string) bool { return strings.HasPrefix(s, "text-delta") })
		is.Equal(got, want)
	}
}

// watchUntil returns the events of a stream up to and including one that contains text.
func (f *fixture) watchUntil(s source, text string) (seen []stream.Event) {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.ctx(), patience)
	defer cancel()
	for {
		events, done, err := s.Next(ctx)
		if err != nil || done {
			f.t.Fatalf("the stream ended before %q: %v", text, err)
		}
		seen = append(seen, events...)
		if slices.ContainsFunc(events, func(e stream.Event) bool { return strings.Contains(string(e.Data), text) }) {
			return seen
		}
	}
}

// types returns the type and the tool call of each event.
func types(events []stream.Event) []string {
	list := []string{}
	for _, e := range events {
		var c struct{ Type, ToolCallID string }
		_ = json.Unmarshal(e.Data, &c) // the hub has encoded it
		list = append(list, c.Type+" "+c.ToolCallID)
	}
	return list
}

// TestWritesAreBarriers checks that a call that may write runs alone and in order. It also checks
// that at most 8 calls run at once.
func TestWritesAreBarriers(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	look, act := newGate("look", true), newGate("act", false)
	pairs := []string{}
	for i := range 10 {
		pairs = append(pairs, "look", called(fmt.Sprint("r", i)))
	}
	pairs = append(pairs, "nothing", `{}`, "act", called("w"), "look", called("last"))
	f := newFixture(t, withModel(asksOnce(pairs...)), withTools(look, act))
	turn := f.accept("go")
	for i := range 8 {
		is.Equal(len(until(t, look.begun, "8 calls run")), 2)
		close(look.of(fmt.Sprint("r", i)))
	}
	for i := range 2 {
		until(t, look.begun, "the other reads run")
		select {
		case name := <-act.begun:
			t.Fatalf("%s runs beside reads", name)
		default:
		}
		close(look.of(fmt.Sprint("r", 8+i)))
	}
	until(t, act.begun, "the write runs")
	select {
	case name := <-look.begun:
		t.Fatalf("%s runs beside a write", name)
	default:
	}
	close(act.of("w"))
	is.Equal(until(t, look.begun, "the last read runs"), "last")
	close(look.of("last"))
	is.Equal(f.wait(turn).Status, store.Completed)
}

// TestAtMostEight checks that a ninth call waits until one of eight calls has ended.
func TestAtMostEight(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	look := newGate("look", true)
	var pairs []string
	for i := range 9 {
		pairs = append(pairs, "look", called(fmt.Sprint("r", i)))
	}
	f := newFixture(t, withModel(asksOnce(pairs...)), withTools(look))
	turn := f.accept("go")
	for range 8 {
		until(t, look.begun, "8 calls run")
	}
	is.Equal(len(look.begun), 0) // the ninth has not begun
	close(look.of("r3"))
	is.Equal(until(t, look.begun, "the ninth runs"), "r8")
	for i := range 9 {
		if i != 3 {
			close(look.of(fmt.Sprint("r", i)))
		}
	}
	is.Equal(f.wait(turn).Status, store.Completed)
}

// TestCancelStopsAllCalls cancels a task during parallel calls. The call that has ended is in the
// journal, and the others are reported as interrupted.
func TestCancelStopsAllCalls(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	look := newGate("look", true)
	f := newFixture(t, withModel(asksOnce("look", called("a"), "look", called("b"), "look", called("c"))), withTools(look))
	turn := f.accept("go")
	for range 3 {
		until(t, look.begun, "all calls run")
	}
	close(look.of("b"))
	f.watchUntil(f.Streams.Turn(turn), "result of b") // then the end of b is in the journal
	f.abort(turn)
	is.Equal(f.wait(turn).Status, store.Aborted)
	states := map[int64]store.CallState{}
	for _, c := range f.journal(turn)[0].Calls {
		states[c.Seq] = c.State
	}
	is.Equal(states, map[int64]store.CallState{0: store.CallInterrupted, 1: store.CallCompleted, 2: store.CallInterrupted})
}

// TestKillWithParallelCalls kills the process during parallel calls. Repeatable calls run again.
// For the other calls, the model gets an error.
func TestKillWithParallelCalls(t *testing.T) {
	t.Parallel()
	for name, repeat := range map[string]bool{"repeatable": true, "not repeatable": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			look := newGate("look", true)
			look.repeat = repeat
			var pairs []string
			for i := range 10 {
				pairs = append(pairs, "look", called(fmt.Sprint("r", i)))
			}
			m := asksOnce(pairs...)
			f := newFixture(t, withModel(m), withTools(look))
			turn := f.accept("go")
			for range 8 {
				until(t, look.begun, "8 calls run")
			}
			close(look.of("r1"))
			is.Equal(until(t, look.begun, "the ninth runs"), "r8") // r1 is in the journal
			g := f.crash()
			for i := range 10 {
				if i != 1 {
					close(look.of(fmt.Sprint("r", i)))
				}
			}
			g.start()
			is.Equal(g.wait(turn).Status, store.Completed)
			for _, c := range g.journal(turn)[0].Calls {
				want := store.CallCompleted
				if !repeat && c.Seq != 1 && c.Seq != 9 { // 0 and 2 to 8 were running
					want = store.CallInterrupted
				}
				is.Equal(c.State, want)
			}
		})
	}
}

// TestParallelCallsTakeTheTimeOfOne measures parallel calls of 200 ms each. Together they take about
// as long as one call, also in the turn's duration.
func TestParallelCallsTakeTheTimeOfOne(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	c, begun, all := newClock(), atomic.Int32{}, make(chan struct{})
	slow := parallelTool{fakeTool{name: "slow", fn: func(ctx context.Context, _ tool.Host, _ json.RawMessage) (
		json.RawMessage, error) {
		if begun.Add(1) == 3 {
			c.advance(time.Minute)
			close(all)
		}
		select {
		case <-all:
		case <-ctx.Done():
		}
		return json.RawMessage(`"ok"`), ctx.Err()
	}}}
	f := newFixture(t, withModel(asksOnce("slow", `{}`, "slow", `{}`, "slow", `{}`)), withTools(slow), withClock(c.now))
	turn := f.run("go")
	is.Equal(turn.Duration, time.Minute)
	ordertest.Below(is, store.Worked(f.journal(turn)), 2*time.Minute) // the same result after a restart
}

// A parallelTool is a fakeTool whose calls run in parallel.
type parallelTool struct{ fakeTool }

func (t parallelTool) Spec() tool.Spec {
	s := t.fakeTool.Spec()
	s.Parallel = true
	return s
}
