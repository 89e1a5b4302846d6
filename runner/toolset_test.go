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
	"journeyman/runner/model/offline"
	"journeyman/runner/tool"
	"journeyman/store"
	"journeyman/store/workers"
)

// servers is a tool.Source with the MCP servers of one process.
type servers struct {
	offer tool.Toolset
	tool  fakeTool

	mu     sync.Mutex
	wanted [][]string
}

func (s *servers) Toolset(_ context.Context, wanted []string, _ tool.SecretSource) tool.Toolset {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wanted = append(s.wanted, wanted)
	return s.offer
}

func (s *servers) Known() []string {
	names := []string{"s"}
	for _, o := range s.offer.Tools {
		names = append(names, o.Server+"."+o.Tool)
	}
	return names
}

func (s *servers) Tool(o tool.RemoteTool) tool.Tool {
	t := s.tool
	t.name, t.repeatable = o.Name, o.Repeatable
	return t
}

func offered(names ...string) tool.Toolset {
	var o tool.Toolset
	for _, name := range names {
		o.Tools = append(o.Tools, tool.RemoteTool{Server: "s", Tool: name,
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
	m := &fakeModel{fn: offline.New().Generate}
	f := newFixture(t, withModel(m), withRemote(src))
	f.worker = f.newWorker(workers.NewWorker{Title: "W", Settings: workers.Settings{MCPTools: []string{"s.add", "other"}}})
	turn := f.wait(f.accept(script("tool s__add {}", "tool s__none {}", "say {{last}}")))
	is.Equal(turn.Status, store.Completed)
	// The source is asked once, for the servers that the worker names.
	is.Equal(src.wanted, [][]string{{"s.add", "other"}})
	seen := m.seen()
	last := seen[0].Tools[len(seen[0].Tools)-1]
	is.Equal(last, model.Tool{Name: "s__add", Description: "Does add.", InputSchema: json.RawMessage(`{"type":"object"}`)})
	is.True(strings.Contains(seen[0].Preamble, src.offer.Note))
	calls := f.journal(turn)
	is.Equal(string(calls[0].Calls[0].Output), `"42"`)
	// The model may call only the tools in its list.
	is.True(strings.Contains(string(calls[1].Calls[0].Output), "no tool"))
}

// TestToolsOfServersThatAskFirst names the same tool in every permitted way.
func TestToolsOfServersThatAskFirst(t *testing.T) {
	t.Parallel()
	for named, asks := range map[string]bool{"s__add": true, "s.add": true, "s": true, "s.other": false, "add": false} {
		t.Run(named, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			f := newFixture(t, withRemote(&servers{offer: offered("add"), tool: answering("42")}))
			f.worker = f.newWorker(workers.NewWorker{Title: "W", Settings: workers.Settings{MCPTools: []string{"s"},
				ApprovalTools: []string{named}}})
			turn := f.accept(script("tool s__add {}", "say {{last}}"))
			if asks {
				f.decide(f.pending(turn, 1)[0], true, "")
			}
			is.Equal(f.wait(turn).OutputText, "42")
		})
	}
}

// TestToolListSurvivesServerFailure ends the process in a turn's first call. The next process has
// other servers, but the turn keeps its list of tools.
func TestToolListSurvivesServerFailure(t *testing.T) {
	t.Parallel()
	for name, second := range map[string]setup{
		"other tools": withRemote(&servers{offer: offered("other"), tool: answering("new")}),
		"no servers": withRemote(&servers{tool: fakeTool{fn: func(context.Context, tool.Host, json.RawMessage) (json.RawMessage, error) {
			return nil, tool.Errorf("no longer configured")
		}}}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			m := &fakeModel{fn: func(_ context.Context, req model.Request, emit func(model.Delta)) (model.Response, error) {
				if stepOf(req) < 2 {
					return calls(emit, stepOf(req), "s__add", `{}`), nil
				}
				return answer(emit, "done"), nil
			}}
			var f *fixture
			copied := make(chan death, 1)
			var once sync.Once
			first := &servers{offer: offered("add", "more")}
			first.offer.Note = "Something is missing."
			first.tool = fakeTool{fn: func(context.Context, tool.Host, json.RawMessage) (json.RawMessage, error) {
				once.Do(func() { copied <- f.die() })
				return json.RawMessage(`"old"`), nil
			}}
			ready := make(chan struct{})
			gate := &fakeModel{fn: func(ctx context.Context, req model.Request, emit func(model.Delta)) (model.Response, error) {
				<-ready
				return m.Generate(ctx, req, emit)
			}}
			f = newFixture(t, withModel(gate), withRemote(first))
			close(ready)
			turn := f.accept("go")
			g := f.after(until(t, copied, "the process dies"), withModel(m), second)
			g.start()
			turn = g.wait(turn)
			is.Equal(turn.Status, store.Completed)
			seen := m.seen()
			for _, req := range seen {
				is.Equal(req.Tools, seen[0].Tools)
				is.Equal(req.Preamble, seen[0].Preamble)
			}
			journal := g.journal(turn)
			is.Equal(journal[0].Calls[0].State, store.CallInterrupted)
			want := map[string]string{"other tools": `"new"`, "no servers": "no longer configured"}[name] // of a new call
			is.True(strings.Contains(string(journal[1].Calls[0].Output), want))
		})
	}
}

// TestCancelWhileWaitingForToolServers cancels a turn that waits for the tool lists of its servers.
func TestCancelWhileWaitingForToolServers(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	asked := make(chan struct{}, 1)
	f := newFixture(t, withRemote(waiting{asked}))
	turn := f.accept("go")
	until(t, asked, "the servers are asked")
	f.abort(turn)
	turn = f.wait(turn)
	is.Equal(turn.Status, store.Aborted)
	is.Equal(turn.Usage.Steps, int64(0))
}

// waiting is a tool.Source whose servers do not answer.
type waiting struct{ asked chan struct{} }

func (w waiting) Known() []string { return nil }

func (w waiting) Toolset(ctx context.Context, _ []string, _ tool.SecretSource) tool.Toolset {
	w.asked <- struct{}{}
	<-ctx.Done()
	return tool.Toolset{Note: "late"}
}

func (w waiting) Tool(tool.RemoteTool) tool.Tool { return nil }
