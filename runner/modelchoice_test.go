package runner_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/runner"
	"journeyman/runner/model"
	"journeyman/runner/model/offline"
	"journeyman/runner/sandbox"
	"journeyman/runner/tool"
	"journeyman/store"
	"journeyman/store/people"
	"journeyman/store/storetest"
	"journeyman/store/workers"
)

func TestChoices(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	prices, err := model.LoadPrices("")
	is.NoErr(err)
	st := storetest.Open(t, store.Options{})
	who, _ := storetest.Caller(t, st, "Acme", "ann@acme.test", people.RoleOwner)
	cfg := runner.Config{Store: st, Model: offline.New(), Prices: prices, Tools: tool.All(tool.NewDocuments(sandbox.NewFilterPool()))}
	v, err := runner.New(cfg).Models.Choices(t.Context(), who.OrganizationID)
	is.NoErr(err)
	is.Equal(len(v.Groups), 0) // without a catalogue, only the server's default model exists
	env := map[string]string{"ANTHROPIC_API_KEY": "x"}
	cfg.Models = model.NewCatalogue(model.Config{Offline: offline.New(), Getenv: func(name string) string { return env[name] }}, offline.New(), "")
	rn := runner.New(cfg)
	v, err = rn.Models.Choices(t.Context(), who.OrganizationID)
	is.NoErr(err)
	var names []string
	for _, m := range v.Groups[0].Models {
		names = append(names, m.Name)
	}
	is.True(v.Offline && !v.Own) // the server's stand-in is the default
	is.True(slices.Contains(names, "offline") && slices.Contains(names, "anthropic:claude-fable-5"))
	is.True(slices.IsSorted(names))
	for _, name := range names {
		is.NoErr(rn.Models.Check(t.Context(), who.OrganizationID, name)) // no model of a provider without a key
	}
	for chain, says := range map[string]string{
		"offline,anthropic:claude-fable-5":   "",
		" anthropic:a , anthropic:b,offline": "",
		"offline,openai:x":                   `model 2 of the chain, "openai:x": this server has no key for openai`,
		"anthropic:a,,offline":               `model 2 of the chain, "": must be one of`,
		"anthropic:a,anthropic:a":            "names anthropic:a twice",
		"anthropic:1,anthropic:2,anthropic:3,anthropic:4,anthropic:5,anthropic:6,anthropic:7,anthropic:8,anthropic:9": "must name at most 8 models, not 9",
	} {
		err := rn.Models.Check(t.Context(), who.OrganizationID, chain)
		is.Equal(err != nil, says != "")
		if err != nil {
			is.True(strings.Contains(err.Error(), says)) // the error names the bad model
		}
	}
	is.True(slices.Contains(rn.ToolNames(), "publish_file"))
	is.Equal(len(rn.ToolNames()), len(tool.All(tool.NewDocuments(sandbox.NewFilterPool()))))
}

// TestEffortReachesTheModel checks that every step of a turn is asked with the effort and the temperature
// of the worker's version.
func TestEffortReachesTheModel(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	m := &fakeModel{fn: func(_ context.Context, req model.Request, emit func(model.Delta)) (model.Response, error) {
		if stepOf(req) == 0 {
			return calls(emit, 0, "it", `{}`), nil
		}
		return answer(emit, "done"), nil
	}}
	f := newFixture(t, withModel(m), withTools(gives("it", `1`)))
	f.run("plain")
	is.Equal(m.last().Effort, "")
	is.True(m.last().Temperature == nil)
	f.worker = f.newWorker(workers.NewWorker{Title: "W", Settings: workers.Settings{Effort: "high",
		Temperature: new(0.5)}})
	f.run("with effort")
	for _, req := range m.seen()[2:] {
		is.Equal(req.Effort, "high")
		is.Equal(*req.Temperature, 0.5)
	}
}
