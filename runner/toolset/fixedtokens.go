package toolset

import (
	"journeyman/runner/model"
	"journeyman/runner/prompt"
	"journeyman/runner/tool"
	"journeyman/store"
)

// FixedTokens returns the approximate tokens of the constant part of each prompt: the preamble and
// the tools.
func FixedTokens(own []tool.Tool, window int64) int64 {
	s, specs := Set{Own: Named(own)}, Specs(own)
	if window < LeanWindow { // the same condition as in the runner
		s.Own, specs = Lean(store.Claim{}, s.Own), LeanSpecs(specs)
		s.Remote.Lean = true
	}
	specs = s.Describe(specs)
	preamble := prompt.Preamble(s.Setting(store.Claim{}, specs, nil))
	return prompt.EstimateRequest(model.Request{Preamble: preamble, Tools: specs})
}
