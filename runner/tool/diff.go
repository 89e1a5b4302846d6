package tool

import (
	"fmt"
	"slices"
	"strings"

	"journeyman/runner/diff"
	"journeyman/runner/sandbox"
	"journeyman/store/visible"
)

const maxDiff = 16 << 10 // bytes of a diff in the result of a tool

// unifiedDiff returns the difference of two versions of a file in the unified format of diff
// -u. For equal versions it returns "".
func unifiedDiff(path, before, after string) string {
	lines := diff.Lines(slices.Collect(strings.Lines(before)), slices.Collect(strings.Lines(after)))
	if len(lines) == 0 {
		return ""
	}
	var text strings.Builder
	fmt.Fprintf(&text, "--- a/%s\n+++ b/%s\n", visible.Name(path), visible.Name(path))
	a, b := 0, 0 // lines of both versions before the next hunk
	for len(lines) > 0 {
		if hidden := lines[0].Hidden; hidden > 0 {
			a, b, lines = a+hidden, b+hidden, lines[1:]
			continue
		}
		n := 1
		for n < len(lines) && lines[n].Hidden == 0 {
			n++
		}
		a, b = writeHunk(&text, a, b, lines[:n])
		lines = lines[n:]
		// Further hunks would be cut off anyway.
		if text.Len() > maxDiff {
			return sandbox.Cut(text.String(), maxDiff) + "\n[the diff is longer; read the file to see the rest]\n"
		}
	}
	return text.String()
}

// writeHunk writes adjacent lines. a and b are the numbers of lines before them in both versions. It
// returns these numbers after them.
func writeHunk(text *strings.Builder, a, b int, lines []diff.Line) (aEnd, bEnd int) {
	var body strings.Builder
	aEnd, bEnd = a, b
	for _, l := range lines {
		mark := " "
		switch l.Kind {
		case "add":
			mark = "+"
			bEnd++
		case "del":
			mark = "-"
			aEnd++
		default:
			aEnd, bEnd = aEnd+1, bEnd+1
		}
		body.WriteString(mark + l.Text)
		// Only the last line of a file can lack its line end. diff -u marks it in the same way.
		if !strings.HasSuffix(l.Text, "\n") {
			body.WriteString("\n\\ No newline at end of file\n")
		}
	}
	fmt.Fprintf(text, "@@ -%s +%s @@\n%s", hunkRange(a, aEnd), hunkRange(b, bEnd), body.String())
	return aEnd, bEnd
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
