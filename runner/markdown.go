package runner

import "strings"

// The limits that CheapMarkdown checks. Texts that people write stay far below them.
const (
	maxMarkdown      = 32 << 10 // bytes; rendering time can grow with the square of the length
	maxMarkdownCells = 10_000   // cells of all tables, including missing cells
	maxMarkdownDepth = 40       // quotes and lists that start in one line
	maxMarkdownLinks = 1500     // links and pictures; the time for broken ones grows with the square of their number
)

// CheapMarkdown reports whether a text can be rendered with little time and memory. A table of
// 5,000 columns and 5,000 rows fits into 32 KiB, because a row may omit its cells. The rendered
// table would have gigabytes. The function is in this package because pages and mails both render
// the answers of turns.
func CheapMarkdown(text string) bool {
	if len(text) > maxMarkdown || strings.Count(text, "](") > maxMarkdownLinks {
		return false
	}
	rows, columns, cells := 0, 0, 0 // of the paragraph or table so far
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, " \t\r\n")
		content := strings.TrimLeft(line, "> \t*+-0123456789.)")
		// Each marker at the start of a line may open one more nested level.
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
			columns = max(columns, strings.Count(line, "|")+1) // the line below a table header
		}
		// Check at each row, because the text may end without an empty line.
		if rows++; cells+rows*columns > maxMarkdownCells {
			return false
		}
	}
	return true
}
