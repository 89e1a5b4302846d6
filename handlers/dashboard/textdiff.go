package dashboard

import (
	"slices"
	"strings"

	"journeyman/runner/diff"
)

// contextLines is the number of equal lines that a comparison shows around a change.
const contextLines = 3

// A textDiff compares two texts line by line. The template "line-diff" draws it.
type textDiff struct {
	Lines          []diffLine
	Added, Removed int // lines
}

// A diffLine is a line of a comparison. Old and New are its numbers in both texts, or 0 if a text
// does not have it.
type diffLine struct {
	Kind     string // add, del, or "" for an equal line, or gap for equal lines left out
	Old, New int
	Text     string
	Hidden   int // lines that a gap leaves out
}

// compareTexts returns the comparison of two texts.
func compareTexts(before, after string) (d textDiff) {
	a, b := splitLines(before), splitLines(after)
	at := 0
	for _, c := range diff.Lines(a, b) {
		d.equal(a, at, c.A, c.B-c.A, len(d.Lines) > 0, true)
		for i := c.A; i < c.AEnd; i++ {
			d.Lines = append(d.Lines, diffLine{Kind: "del", Old: i + 1, Text: a[i]})
		}
		for i := c.B; i < c.BEnd; i++ {
			d.Lines = append(d.Lines, diffLine{Kind: "add", New: i + 1, Text: b[i]})
		}
		d.Removed, d.Added, at = d.Removed+c.AEnd-c.A, d.Added+c.BEnd-c.B, c.AEnd
	}
	if len(d.Lines) > 0 {
		d.equal(a, at, len(a), len(b)-len(a), true, false)
	}
	return d
}

// equal appends the equal lines from at to end of the old text. A gap replaces lines that are far
// from the changes before and after them.
func (d *textDiff) equal(a []string, at, end, shift int, changeBefore, changeAfter bool) {
	head, tail := 0, 0
	if changeBefore {
		head = contextLines
	}
	if changeAfter {
		tail = contextLines
	}
	hidden := max(0, end-at-head-tail)
	if hidden == 1 {
		hidden = 0 // a gap would take as much room as the line
	}
	for i := at; i < end; i++ {
		if hidden > 0 && i == at+head {
			d.Lines = append(d.Lines, diffLine{Kind: "gap", Hidden: hidden})
			i += hidden
			if i == end {
				return
			}
		}
		d.Lines = append(d.Lines, diffLine{Old: i + 1, New: i + 1 + shift, Text: a[i]})
	}
}

// splitLines returns the lines of a text without their line ends.
func splitLines(text string) []string {
	lines := slices.Collect(strings.Lines(text))
	for i := range lines {
		lines[i] = strings.TrimSuffix(lines[i], "\n")
	}
	return lines
}
