package mcp

// Names lists the servers, in the order of their names.
func (p *Pool) Names() []string {
	names := make([]string, len(p.servers))
	for i, s := range p.servers {
		names[i] = s.Name
	}
	return names
}
