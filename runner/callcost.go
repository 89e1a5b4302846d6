package runner

import (
	"cmp"

	"journeyman/runner/model"
	"journeyman/runner/prompt"
)

// A callCost estimates the usage of a model call in progress.
type callCost struct {
	input, output int64 // tokens
	begun         bool  // the model has produced something
	local         bool  // the model runs in this process: only its output is charged
}

// count counts a piece of output.
func (c *callCost) count(d model.Delta) {
	if d.Restart {
		c.output = 0 // the same output follows once more
		return
	}
	c.begun = true
	c.output += prompt.EstimateText(d.Text)
}

// used returns the usage to charge for a failed call. It uses the provider's counts, and estimates
// the missing counts. cut means that the runner interrupted the call. Then the provider may still
// charge for it.
func (c *callCost) used(counted model.Usage, cut bool) model.Usage {
	if !c.begun && (!cut || c.local) {
		return counted
	}
	counted.InputTokens = cmp.Or(counted.InputTokens, c.input)
	counted.OutputTokens = max(counted.OutputTokens, c.output)
	return counted
}
