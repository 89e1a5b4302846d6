package runner_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"github.com/matryer/is"

	"journeyman/runner"
	"journeyman/runner/model"
	"journeyman/runner/tool"
	"journeyman/store"
)

// servers is a tool.Source: other people's servers as one process sees them.
type servers struct {
	offer tool.Offer
	tool  fakeTool

	mu     sync.Mutex
	wanted [][]string
}

func (s *servers) Offer(_ context.Context, wanted []string) tool.Offer {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wanted = append(s.wanted, wanted)
	return s.offer
}

func (s *servers) Tool(o tool.Offered) tool.Tool {
	t := s.tool
	t.name, t.repeatable = o.Name, o.Repeatable
	return t
}

func offered(names ...string) tool.Offer {
	var o tool.Offer
	for _, name := range names {
		o.Tools = append(o.Tools, tool.Offered{Server: "s", Tool: name,
			Spec: tool.Spec{Name: "s__" + name, Description: "Does " + name + ".", InputSchema: json.RawMessage(`{"type":"object"}`)}})
	}
	return o
}

func answering(text string) fakeTool {
	return fakeTool{fn: func(context.Context, tool.Host, json.RawMessage) (json.RawMessage, error) { return json.Marshal(text) }}
}

func withRemote(s tool.Source) setup { return func(c *runner.Config) { c.Remote = s } }

func TestToolsOfServers(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	src := &servers{offer: offered("add"), tool: answering("42")}
	src.offer.Note = "The tools of other are not available."
	var seen []model.Request
	inner := model.NewOffline()
	m := &fakeModel{fn: func(ctx context.Context, req model.Request, emit func(model.Delta)) (model.Response, error) {
		seen = append(seen, req)
		return inner.Generate(ctx, req, emit)
	}}
	f := newFixture(t, withModel(m), withRemote(src))
	f.worker = f.newWorker(store.NewWorker{Title: "W", Settings: store.WorkerSettings{MCPTools: []string{"s.add", "other"}}})
	turn := f.wait(f.accept(script("tool s__add {}", "tool s__none {}", "say {{last}}")))
	is.Equal(turn.Status, store.Completed)
	is.Equal(src.wanted, [][]string{{"s.add", "other"}}) // asked once, for what the worker names
	last := seen[0].Tools[len(seen[0].Tools)-1]
	is.Equal(last, model.Tool{Name: "s__add", Description: "Does add.", InputSchema: json.RawMessage(`{"type":"object"}`)})
	is.True(strings.Contains(seen[0].Preamble, src.offer.Note))
	calls := f.journal(turn)
	is.Equal(string(calls[0].Calls[0].Output), `"42"`)
	is.True(strings.Contains(string(calls[1].Calls[0].Output), "no tool")) // only what was offered
}

// TestToolsOfServersThatAskFirst names the same tool in every way that a worker may.
func TestToolsOfServersThatAskFirst(t *testing.T) {
	t.Parallel()
	for named, asks := range map[string]bool{"s__add": true, "s.add": true, "s": true, "s.other": false, "add": false} {
		t.Run(named, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			f := newFixture(t, withRemote(&servers{offer: offered("add"), tool: answering("42")}))
			f.worker = f.newWorker(store.NewWorker{Title: "W", Settings: store.WorkerSettings{MCPTools: []string{"s"}, ApprovalTools: []string{named}}})
			turn := f.accept(script("tool s__add {}", "say {{last}}"))
			if asks {
				f.decide(f.pending(turn, 1)[0], true, "")
			}
			is.Equal(f.wait(turn).OutputText, `"42"`)
		})
	}
}

// TestAToolListOutlivesItsServers kills the process in a turn's first call. The
// next one finds other servers, and the turn is told of none of that.
func TestAToolListOutlivesItsServers(t *testing.T) {
	t.Parallel()
	for name, second := range map[string]setup{
		"other tools": withRemote(&servers{offer: offered("other"), tool: answering("new")}),
		"no servers": withRemote(&servers{tool: fakeTool{fn: func(context.Context, tool.Host, json.RawMessage) (json.RawMessage, error) {
			return nil, tool.Errorf("not configured any more")
		}}}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			var mu sync.Mutex
			var seen []model.Request
			m := &fakeModel{fn: func(_ context.Context, req model.Request, emit func(model.Delta)) (model.Response, error) {
				mu.Lock()
				defer mu.Unlock()
				seen = append(seen, req)
				if stepOf(req) < 2 {
					return calls(emit, stepOf(req), "s__add", `{}`), nil
				}
				return answer(emit, "done"), nil
			}}
			var f *fixture
			copied := make(chan *fixture, 1)
			var once sync.Once
			first := &servers{offer: offered("add", "more")}
			first.offer.Note = "Something is missing."
			first.tool = fakeTool{fn: func(context.Context, tool.Host, json.RawMessage) (json.RawMessage, error) {
				once.Do(func() { copied <- f.crash(withModel(m), second) })
				return json.RawMessage(`"old"`), nil
			}}
			ready := make(chan struct{})
			gate := &fakeModel{fn: func(ctx context.Context, req model.Request, emit func(model.Delta)) (model.Response, error) {
				<-ready
				return m.fn(ctx, req, emit)
			}}
			f = newFixture(t, withModel(gate), withRemote(first))
			close(ready)
			turn := f.accept("go")
			g := until(t, copied, "the process dies")
			g.start()
			turn = g.wait(turn)
			is.Equal(turn.Status, store.Completed)
			mu.Lock()
			defer mu.Unlock()
			for _, req := range seen {
				is.Equal(req.Tools, seen[0].Tools)
				is.Equal(req.Preamble, seen[0].Preamble)
			}
			journal := g.journal(turn)
			is.Equal(journal[0].Calls[0].State, store.CallInterrupted)
			want := map[string]string{"other tools": `"new"`, "no servers": "not configured"}[name] // what a call meets now
			is.True(strings.Contains(string(journal[1].Calls[0].Output), want))
		})
	}
}

// TestCancellingWhileServersAreAwaited cancels a turn before its first call.
func TestCancellingWhileServersAreAwaited(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	asked := make(chan struct{}, 1)
	f := newFixture(t, withRemote(waiting{asked}))
	turn := f.accept("go")
	until(t, asked, "the servers are asked")
	_, err := f.AbortTask(t.Context(), f.owner, turn.TaskID)
	is.NoErr(err)
	turn = f.wait(turn)
	is.Equal(turn.Status, store.Aborted)
	is.Equal(turn.Usage.Steps, int64(0))
}

// waiting is a source whose servers do not answer.
type waiting struct{ asked chan struct{} }

func (w waiting) Offer(ctx context.Context, _ []string) tool.Offer {
	w.asked <- struct{}{}
	<-ctx.Done()
	return tool.Offer{Note: "late"}
}

func (w waiting) Tool(tool.Offered) tool.Tool { return nil }
