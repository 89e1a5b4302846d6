package tool

import (
	"fmt"
	"slices"
	"strings"

	"journeyman/runner/diff"
	"journeyman/runner/workspace"
	"journeyman/store/visible"
)

const (
	maxDiff      = 16 << 10 // bytes of a diff in the result of a tool
	maxDiffLines = 100_000  // lines of both versions that are compared; each takes memory
)

// unifiedDiff returns the difference of two versions of a file in the unified format of diff
// -u. For equal versions it returns "".
func unifiedDiff(path, before, after string) string {
	skipped, before, after := changedPart(before, after)
	if strings.Count(before, "\n")+strings.Count(after, "\n") > maxDiffLines {
		return fmt.Sprintf("[the diff has more than %d lines; read the file to see them]\n", maxDiffLines)
	}
	lines := diff.Lines(slices.Collect(strings.Lines(before)), slices.Collect(strings.Lines(after)))
	if len(lines) == 0 {
		return ""
	}
	var text strings.Builder
	fmt.Fprintf(&text, "--- a/%s\n+++ b/%s\n", visible.Name(path), visible.Name(path))
	a, b := skipped, skipped // lines of both versions before the next hunk
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
			return workspace.Cut(text.String(), maxDiff) + "\n[the diff is longer; read the file to see the rest]\n"
		}
	}
	return text.String()
}

// changedPart returns the parts of two texts between the lines that are equal at the beginning and at the end,
// with some of these lines. skipped is the number of lines before the parts.
func changedPart(before, after string) (skipped int, b, a string) {
	most, head := min(len(before), len(after)), 0
	for head < most && before[head] == after[head] {
		head++
	}
	for range maxContext {
		head = max(strings.LastIndexByte(before[:head], '\n'), 0)
	}
	if head > 0 {
		head++ // behind the line end
	}
	most, tail := most-head, 0
	for tail < most && before[len(before)-1-tail] == after[len(after)-1-tail] {
		tail++
	}
	end := before[len(before)-tail:]
	for range maxContext {
		_, end, _ = strings.Cut(end, "\n")
	}
	skipped = strings.Count(before[:head], "\n")
	return skipped, before[head : len(before)-len(end)], after[head : len(after)-len(end)]
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
