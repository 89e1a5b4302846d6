package model

import "slices"

// Names lists the models that have a line of their own in the table, in the order of
// their names.
func (p *Prices) Names() []string {
	var names []string
	for _, line := range p.lines {
		if !line.open {
			names = append(names, line.pattern)
		}
	}
	slices.Sort(names)
	return names
}
