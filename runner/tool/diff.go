package tool

import (
	"fmt"
	"slices"
	"strings"

	"journeyman/runner/diff"
	"journeyman/runner/sandbox"
)

// The limits of a diff.
const (
	maxDiff     = 16 << 10 // bytes in the result of a tool
	diffContext = 3        // equal lines around a change
)

// unifiedDiff returns the difference of two versions of a file in the unified format of diff
// -u. For equal versions it returns "".
func unifiedDiff(path, before, after string) string {
	a, b := slices.Collect(strings.Lines(before)), slices.Collect(strings.Lines(after))
	changes := diff.Lines(a, b)
	if len(changes) == 0 {
		return ""
	}
	var text strings.Builder
	fmt.Fprintf(&text, "--- a/%s\n+++ b/%s\n", path, path)
	for len(changes) > 0 {
		// Changes with adjacent context lines share a hunk, because hunks of a valid diff do
		// not overlap.
		n := 1
		for n < len(changes) && changes[n].A-changes[n-1].AEnd <= 2*diffContext {
			n++
		}
		writeHunk(&text, a, b, changes[:n])
		changes = changes[n:]
		// Further hunks would be cut off anyway.
		if text.Len() > maxDiff {
			return sandbox.Cut(text.String(), maxDiff) + "\n[the diff is longer; read the file to see the rest]\n"
		}
	}
	return text.String()
}

// writeHunk writes adjacent changes with the equal lines around them.
func writeHunk(text *strings.Builder, a, b []string, changes []diff.Change) {
	first, last := changes[0], changes[len(changes)-1]
	before := min(diffContext, first.A)
	after := min(diffContext, len(a)-last.AEnd)
	fmt.Fprintf(text, "@@ -%s +%s @@\n",
		hunkRange(first.A-before, last.AEnd+after), hunkRange(first.B-before, last.BEnd+after))
	at := first.A - before
	for _, c := range changes {
		writeLines(text, " ", a[at:c.A])
		writeLines(text, "-", a[c.A:c.AEnd])
		writeLines(text, "+", b[c.B:c.BEnd])
		at = c.AEnd
	}
	writeLines(text, " ", a[at:last.AEnd+after])
}

// hunkRange returns a range of lines in the notation of hunk headers. from and to count lines
// from 0, while the header counts them from 1.
func hunkRange(from, to int) string {
	// An empty range contains the line before it, or 0 at the beginning of the file.
	if from == to {
		return fmt.Sprintf("%d,0", from)
	}
	return fmt.Sprintf("%d,%d", from+1, to-from)
}

func writeLines(text *strings.Builder, mark string, lines []string) {
	for _, line := range lines {
		text.WriteString(mark + line)
		// Only the last line of a file can lack its line end. diff -u marks it in the same way.
		if !strings.HasSuffix(line, "\n") {
			text.WriteString("\n\\ No newline at end of file\n")
		}
	}
}
