package terminal

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"journeyman/runner/tool/mcp"
)

// PrintServers prints each tool server and the tools it has: what a worker's
// mcpTools calls them, what models do, and what the server says of them. It fails
// where a server is not there.
func PrintServers(w io.Writer, servers []mcp.Status) error {
	missing := 0
	for _, s := range servers {
		if s.Err != nil {
			missing++
			fmt.Fprintf(w, "%s  %s  not there: %s\n", s.Server, printable(s.Address), printable(s.Err.Error()))
			continue
		}
		fmt.Fprintf(w, "%s  %s  %d tools\n", s.Server, printable(s.Address), len(s.Tools))
		t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
		for _, o := range s.Tools {
			fmt.Fprintf(t, "  %s.%s\t%s\t%s\n", o.Server, printable(o.Tool), o.Name, firstLine(o.Description))
		}
		_ = t.Flush() // writing to a terminal or pipe that is gone
	}
	switch {
	case len(servers) == 0:
		fmt.Fprintln(w, "no MCP servers are configured")
	case missing > 0:
		return fmt.Errorf("%d of %d MCP servers are not there", missing, len(servers))
	}
	return nil
}

// firstLine is what of a description fits a line.
func firstLine(text string) string {
	text, _, _ = strings.Cut(strings.TrimSpace(text), "\n")
	const most = 70
	if runes := []rune(printable(text)); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return printable(text)
}
