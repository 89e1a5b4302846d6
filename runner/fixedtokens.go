package runner

import (
	"journeyman/runner/model"
	"journeyman/runner/prompt"
	"journeyman/runner/tool"
	"journeyman/runner/toolset"
	"journeyman/store"
)

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
