package store

import (
	"strings"
)

// TitleOf returns a title for an input: its first line with words in it, cut at 80
// characters.
func TitleOf(input string) string {
	title := "Untitled task"
	for line := range strings.Lines(input) {
		if strings.HasPrefix(line, "```") || strings.HasPrefix(line, "~~~") {
			continue // the fence of a code block names a language, not the subject
		}
		if line = strings.Join(strings.Fields(strings.Trim(line, "#*`~> \t\r\n")), " "); line != "" {
			title = line
			break
		}
	}
	if r := []rune(title); len(r) > 80 {
		title = strings.TrimSpace(string(r[:79])) + "…"
	}
	return title
}
