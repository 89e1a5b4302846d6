package models

import (
	"cmp"

	"journeyman/runner/model"
	"journeyman/runner/prompt"
)

// A Cost estimates the usage of a model call in progress.
type Cost struct {
	Input, output int64 // tokens
	Begun         bool  // the model has produced something
	Local         bool  // the model runs in this process: only its output is charged
}

// Count counts a piece of output.
func (c *Cost) Count(d model.Delta) {
	if d.Restart {
		c.output = 0 // the same output follows once more
		return
	}
	c.Begun = true
	c.output += prompt.EstimateText(d.Text)
}

// Used returns the usage to charge for a failed call. It uses the provider's counts, and estimates
// the missing counts. cut means that the runner interrupted the call. Then the provider may still
// charge for it.
func (c *Cost) Used(counted model.Usage, cut bool) model.Usage {
	if !c.Begun && (!cut || c.Local) {
		return counted
	}
	counted.InputTokens = cmp.Or(counted.InputTokens, c.Input)
	counted.OutputTokens = max(counted.OutputTokens, c.output)
	return counted
}
