package show

import (
	"strings"

	"journeyman/runner/diff"
)

// A Comparison compares two texts line by line. The template "line-diff" draws it.
type Comparison struct {
	Lines          []diff.Line
	Added, Removed int // lines
}

// Compare returns the comparison of two texts.
func Compare(before, after string) (d Comparison) {
	d.Lines = diff.Lines(splitLines(before), splitLines(after))
	for i := range d.Lines {
		switch l := &d.Lines[i]; {
		case l.Kind == "add":
			d.Added++
		case l.Kind == "del":
			d.Removed++
		case l.Hidden == 1: // a gap would take as much room as the line
			l.Kind, l.Hidden = "", 0
		case l.Hidden > 1:
			l.Text = ""
		}
	}
	return d
}

// splitLines returns the lines of a text without their line ends.
func splitLines(text string) (lines []string) {
	for line := range strings.Lines(text) {
		lines = append(lines, strings.TrimSuffix(line, "\n"))
	}
	return lines
}
