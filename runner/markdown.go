package runner

import "strings"

// The bounds that CheapMarkdown checks. The texts of people are far below them.
const (
	maxMarkdown      = 32 << 10 // bytes; rendering time can grow with the square of the length
	maxMarkdownCells = 10_000   // cells of all tables, the empty ones included
	maxMarkdownDepth = 40       // quotes and lists that one line opens
)

// CheapMarkdown reports whether a renderer needs little time and memory for a text. A
// table of 5,000 columns and as many rows fits into 32 KiB, because a row may leave its
// cells out; the rendered table has gigabytes. The function is here because pages and
// mails both render the answers of turns.
func CheapMarkdown(text string) bool {
	if len(text) > maxMarkdown {
		return false
	}
	rows, columns, cells := 0, 0, 0 // of the paragraph or table so far
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, " \t\r\n")
		content := strings.TrimLeft(line, "> \t*+-0123456789.)")
		// Each marker at the beginning of a line may open one more level, and levels nest.
		depth := 0
		for _, marker := range []string{">", "* ", "+ ", "- ", ". ", ") "} {
			depth += strings.Count(line[:len(line)-len(content)], marker)
		}
		if depth > maxMarkdownDepth {
			return false
		}
		if strings.Trim(line, "> \t") == "" { // the end of a table
			cells += rows * columns
			rows, columns = 0, 0
		}
		if strings.Contains(line, "-") && strings.Trim(line, "|-: \t>*+.)0123456789") == "" {
			columns = max(columns, strings.Count(line, "|")+1) // below the head of a table
		}
		// Checked at each row: a text without an empty line at its end must not slip through.
		if rows++; cells+rows*columns > maxMarkdownCells {
			return false
		}
	}
	return true
}
