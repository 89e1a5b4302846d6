package runner

import (
	"context"

	"journeyman/runner/model"
	"journeyman/runner/models"
	"journeyman/runner/prompt"
	"journeyman/runner/tool"
	"journeyman/runner/toolset"
	"journeyman/store"
)

// Diagnose asks the models of cfg a short question, and returns findings about them. It uses
// the models, the prices, the tools and the context window of cfg.
func Diagnose(ctx context.Context, cfg Config) []models.Finding {
	cfg.setDefaults()
	return models.New(cfg.directory(nil)).Diagnose(ctx)
}

// fixedTokens returns the approximate tokens of the constant part of each prompt: the preamble and
// the tools.
func fixedTokens(own []tool.Tool, window int64) int64 {
	s, specs := toolset.Set{Own: toolset.Named(own)}, toolset.Specs(own)
	if window < toolset.LeanWindow { // the same condition as in loadToolset
		s.Own, specs = toolset.Lean(store.Claim{}, s.Own), toolset.LeanSpecs(specs)
		s.Remote.Lean = true
	}
	specs = s.Describe(specs)
	preamble := prompt.Preamble(s.Setting(store.Claim{}, specs, nil))
	return prompt.EstimateRequest(model.Request{Preamble: preamble, Tools: specs})
}
