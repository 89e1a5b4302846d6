package command

import (
	"fmt"
	"strings"
	"text/tabwriter"
)

// Servers connects to the MCP servers and lists their tools.
type Servers struct{}

// Run prints each tool server with its tools: the name that a worker's mcpTools
// uses, the name that models use, and the server's description. Run returns an error
// when a server does not answer.
func (Servers) Run(p *Program) error {
	pool, err := p.OpenMCP(nil, "", "")
	if err != nil {
		return err
	}
	defer pool.Stop()
	servers := pool.Status(p.Context)
	missing := 0
	for _, s := range servers {
		if s.Err != nil {
			missing++ // the others are still listed
			fmt.Fprintf(p.Stdout, "%s  %s  not available: %s\n", s.Server, printable(s.Address), printable(s.Err.Error()))
			continue
		}
		fmt.Fprintf(p.Stdout, "%s  %s  %d tools\n", s.Server, printable(s.Address), len(s.Tools))
		t := tabwriter.NewWriter(p.Stdout, 0, 4, 2, ' ', 0)
		for _, o := range s.Tools {
			fmt.Fprintf(t, "  %s.%s\t%s\t%s\n", o.Server, printable(o.Tool), o.Name, firstLine(o.Description))
		}
		_ = t.Flush() // it fails only if the reader has closed the output
	}
	switch {
	case len(servers) == 0:
		fmt.Fprintln(p.Stdout, "no MCP servers are configured")
	case missing > 0:
		return fmt.Errorf("%d of %d MCP servers are not available", missing, len(servers))
	}
	return nil
}

// firstLine returns the first line of a description, shortened to 70 characters.
func firstLine(text string) string {
	text, _, _ = strings.Cut(strings.TrimSpace(text), "\n")
	return shorten(printable(text), 70)
}
