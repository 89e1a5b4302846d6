package runner_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/runner"
	"journeyman/runner/model"
	"journeyman/runner/models"
	"journeyman/store"
	"journeyman/store/storetest"
)

// counting returns a model that reports the given token count for every prompt.
func counting(name string, tokens int64) *fakeModel {
	return &fakeModel{name: name, fn: func(_ context.Context, _ model.Request, emit func(model.Delta)) (model.Response, error) {
		r := answer(emit, "ready")
		r.Usage = model.Usage{InputTokens: tokens, OutputTokens: 3}
		return r, nil
	}}
}

// spellFindings returns a line for each finding, with a mark for bad findings.
func spellFindings(found []models.Finding) string {
	var b strings.Builder
	for _, f := range found {
		fmt.Fprintf(&b, "%s: %s", f.About, f.Detail)
		if f.Bad {
			b.WriteString(" (!)")
		}
		b.WriteString("\n")
	}
	return b.String()
}

func TestDiagnose(t *testing.T) {
	t.Parallel()
	down := &fakeModel{name: "openai:gpt-5", fn: func(context.Context, model.Request, func(model.Delta)) (model.Response, error) {
		return model.Response{}, &model.Error{Code: "401", Message: "bad key"}
	}}
	is := is.New(t)
	small := func(can model.Capabilities, err error) model.Model {
		return &describing{fakeModel: counting("ollama:m", 5000),
			describe: func(context.Context) (model.Capabilities, error) { return can, err }}
	}
	f := fixtureOn(t, storetest.Open(t, store.Options{})) // for its tools
	for name, tt := range map[string]struct {
		model model.Model
		says  []string
		not   string
	}{
		"a small window": {small(model.Capabilities{ContextWindow: 2048, Tools: true, Thinking: true}, nil), []string{
			"context window: 2,048 tokens (by its server)", "abilities: tools, reasoning\n", " of 2,048 tokens: too small; set OLLAMA_CONTEXT_LENGTH",
			"(num_ctx), or choose a model with a larger window (!)", "answers: yes, after "}, "counts"},
		"a large window":     {small(model.Capabilities{ContextWindow: 40_000, Tools: true}, nil), []string{" of 40,000 tokens, before instructions"}, "(!)"},
		"no tools":           {small(model.Capabilities{ContextWindow: 40_000}, nil), []string{"abilities: no tools: workers that have tools fail"}, "reasoning"},
		"no description":     {small(model.Capabilities{}, errors.New("down")), []string{"32,768 tokens (assumed; --context-window sets it)"}, "abilities"},
		"a known model":      {counting("openai:gpt-5", 12), []string{"by the price table", "answers: yes"}, "(!)"},
		"a server that cuts": {counting("openai:qwen3", 4096), []string{"counts: the provider counts 4,096 tokens", "use ollama:qwen3 in place of openai:qwen3 (!)"}, "too small"},
		"a server that half cuts": {counting("openai:qwen3", 2051), []string{"counts: the provider counts 2,051 tokens"},
			"too small"},
		"no answer": {down, []string{"answers: no: bad key (!)"}, "counts"},
	} {
		builtin, err := model.LoadPrices("")
		is.NoErr(err)
		prices, err := builtin.WithDefault("1,1") // a model without a price would be a finding of its own
		is.NoErr(err)
		found := spellFindings(runner.Diagnose(t.Context(), runner.Config{Model: tt.model, Prices: prices, Tools: f.cfg.Tools}))
		for _, words := range tt.says {
			if !strings.Contains(found, words) {
				t.Errorf("%s: %q is not in:\n%s", name, words, found)
			}
		}
		is.True(!strings.Contains(found, tt.not)) // the text that must be absent
	}
}

// TestCutPromptsAreReported uses a provider that reports the same count for longer and longer
// prompts. The log gets one warning, and the findings keep it.
func TestCutPromptsAreReported(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	log := &storetest.Log{}
	f := newFixture(t, withModel(counting("openai:qwen3", 2051)),
		func(c *runner.Config) { c.Log = slog.New(slog.NewTextHandler(log, nil)) })
	is.True(!strings.Contains(spellFindings(f.Models.Findings(t.Context(), f.owner.OrganizationID)), "counts"))
	first := f.wait(f.accept(strings.Repeat("a long text ", 2000)))
	f.wait(f.accept(strings.Repeat("more of it ", 500), first.TaskID))
	is.Equal(strings.Count(log.String(), "it may cut prompts silently; if it is an Ollama server, use ollama:qwen3"), 1)
	is.True(strings.Contains(spellFindings(f.Models.Findings(t.Context(), f.owner.OrganizationID)),
		"counts: the provider counts 2,051 tokens"))
}
