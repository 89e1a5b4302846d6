package runner_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/runner/dial"
	"journeyman/runner/model"
	"journeyman/runner/prompt"
	"journeyman/runner/sandbox"
	"journeyman/runner/tool"
	"journeyman/store/ordertest"
	"journeyman/store/workers"
)

// toolTokens returns the approximate number of tokens of tools.
func toolTokens(tools []model.Tool) (n int64) {
	for _, t := range tools {
		n += prompt.EstimateText(t.Name) + prompt.EstimateText(t.Description) + prompt.EstimateText(t.InputSchema)
	}
	return n
}

// TestSmallWindowsGetLeanTools checks the tools for a model with a small window. A resumed turn
// gets the same tools, although the window is no longer known.
func TestSmallWindowsGetLeanTools(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	hang := make(chan struct{}, 1)
	m := &fakeModel{name: "openai:tiny"}
	m.fn = func(ctx context.Context, _ model.Request, emit func(model.Delta)) (model.Response, error) {
		switch len(m.seen()) {
		case 1:
			return calls(emit, 0, "list_files", `{}`), nil
		case 2:
			hang <- struct{}{}
			<-ctx.Done()
			return model.Response{}, ctx.Err()
		}
		return answer(emit, "done"), nil
	}
	src := &servers{offer: tool.Toolset{Tools: []tool.RemoteTool{{Server: "s", Tool: "t", Spec: tool.Spec{Name: "s__t",
		Description: "Adds numbers. " + strings.Repeat("It is wonderful. ", 100),
		InputSchema: json.RawMessage(`{"type":"object","title":"Long","properties":{"title":{"type":"string","description":"` + strings.Repeat("very ", 50) + `long"}},"required":["title"]}`)}}}}}
	f := newFixture(t, withModel(m), withRemote(src), withPrices(t, `{"openai:tiny":{"input":1,"output":2,"contextWindow":8000,"maxOutput":1000}}`))
	f.worker = f.newWorker(workers.NewWorker{Title: "W", Settings: workers.Settings{MCPTools: []string{"s"}}})
	turn := f.accept("go")
	<-hang
	f.stop()
	other := f.successor(withModel(m), withRemote(&servers{}), withPrices(t, `{"openai:tiny":{"input":1,"output":2}}`))
	is.Equal(other.wait(turn).OutputText, "done")
	seen := m.seen()
	is.Equal(len(seen), 3)
	is.Equal(seen[2].Tools, seen[0].Tools) // the resumed turn
	is.Equal(seen[2].Preamble, seen[0].Preamble)

	var names []string
	for _, tl := range seen[0].Tools {
		names = append(names, tl.Name)
		is.True(json.Valid(tl.InputSchema)) // the schema
	}
	for _, omitted := range []string{"update_plan", "search_files", "make_chart"} {
		is.True(!slices.Contains(names, omitted))
	}
	remote := seen[0].Tools[len(seen[0].Tools)-1]
	is.Equal(remote.Description, "Adds numbers")
	is.Equal(string(remote.InputSchema), `{"properties":{"title":{"description":"`+strings.TrimSpace(strings.Repeat("very ", 12))+` …","type":"string"}},"required":["title"],"type":"object"}`)

	// The same worker, with a model that has a large window.
	other.run("go")
	lean, all := seen[0].Tools, m.last().Tools
	ordertest.Above(is, len(all), len(lean)-1) // all tools except the remote one
	t.Log("tokens, about: lean tools", toolTokens(lean), "all tools", toolTokens(all))
	ordertest.Below(is, toolTokens(lean)*10, toolTokens(all)*7) // including the remote tool
	t.Log("tokens of tools, about:", toolTokens(all), "lean:", toolTokens(lean))
}

// TestPromptIsLean limits the constant cost of each call: the preamble and the tools of this
// program.
func TestPromptIsLean(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	specs := func(tools ...tool.Tool) (list []model.Tool) {
		for _, tl := range tools {
			s := tl.Spec()
			list = append(list, model.Tool{Name: s.Name, Description: s.Description, InputSchema: s.InputSchema})
		}
		return list
	}
	search, err := tool.WebSearch(tool.SearchConfig{URL: "http://localhost/search"})
	is.NoErr(err)
	web, shell := tool.WebFetch(tool.Documents{}, dial.Guard{}, "test"), tool.Shell(&sandbox.Shell{})
	tools := specs(append(tool.All(tool.Documents{}), web, search, shell)...)
	setting := prompt.Setting{Programs: []string{"python3", "node", "git", "jq", "pandoc"}}
	for _, tl := range tools {
		setting.Tools = append(setting.Tools, tl.Name)
	}
	preamble := prompt.EstimateText(prompt.Preamble(setting))
	t.Log("tokens, about: preamble", preamble, "tools", toolTokens(tools))
	ordertest.Below(is, preamble, 750)                    // of the preamble
	ordertest.Below(is, preamble+toolTokens(tools), 3750) // of both
}
