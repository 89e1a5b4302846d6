package runner_test

import (
	"slices"
	"testing"

	"github.com/matryer/is"

	"journeyman/runner"
	"journeyman/runner/model"
	"journeyman/runner/tool"
)

func TestChoices(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	prices, err := model.LoadPrices("")
	is.NoErr(err)
	cfg := runner.Config{Model: model.NewOffline(), Prices: prices, Tools: tool.All()}
	is.Equal(len(runner.New(cfg).ModelNames()), 0) // no catalogue: the server's own alone
	env := map[string]string{"ANTHROPIC_API_KEY": "x"}
	cfg.Models = model.NewCatalogue(model.Config{Getenv: func(name string) string { return env[name] }}, model.NewOffline(), "")
	rn := runner.New(cfg)
	names := rn.ModelNames()
	is.True(slices.Contains(names, "offline") && slices.Contains(names, "anthropic:claude-fable-5"))
	is.True(slices.IsSorted(names))
	for _, name := range names {
		is.NoErr(rn.CheckModel(name)) // none of a provider without a key
	}
	is.True(slices.Contains(rn.ToolNames(), "publish_file"))
	is.Equal(len(rn.ToolNames()), len(tool.All()))
}
