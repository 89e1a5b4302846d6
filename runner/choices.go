package runner

import "slices"

// What people may choose from when they define a worker.

// ToolNames lists the tools that every worker has, in the order in which the model is
// shown them.
func (r *Runner) ToolNames() []string {
	names := make([]string, len(r.tools))
	for i, t := range r.tools {
		names[i] = t.Name
	}
	return names
}

// ModelNames lists models that a worker may choose, as far as the price table knows
// them; there may be others.
func (r *Runner) ModelNames() []string {
	return slices.DeleteFunc(r.cfg.Prices.Names(), func(name string) bool { return r.CheckModel(name) != nil })
}
