package offline

import (
	"strings"

	"journeyman/store/pattern"
)

// fenceLine matches a line that may open or close a fenced code block, as CommonMark
// 0.31 defines it (section 4.5): up to three spaces, three or more backticks or tildes,
// and an info string.
const fenceLine pattern.Pattern = "^ {0,3}(`{3,}|~{3,})(.*)$"

// fencedBlock finds the first fenced block whose info string begins with the word info. If info
// is empty, it finds any block. rest is the text without the block, trimmed. Blocks inside
// other blocks are not found: a text about scripts may contain examples. A block without a
// closing fence extends to the end.
func fencedBlock(text, info string) (body, rest string, ok bool) {
	open, ours, blockStart, bodyStart := "", false, 0, 0
	for at, next := 0, 0; at < len(text); at = next {
		var line string
		line, next = nextLine(text, at)
		m := fenceLine.Compiled().FindStringSubmatch(line)
		if m == nil {
			continue
		}
		marks, tail := m[1], strings.TrimSpace(m[2])
		switch {
		case open == "" && (marks[0] != '`' || !strings.Contains(tail, "`")): // otherwise it is a code span
			word, _, _ := strings.Cut(tail, " ")
			open, ours, blockStart, bodyStart = marks, info == "" || word == info, at, next
		// The closing fence has at least as many marks as the opening one, and no info string.
		case open != "" && strings.HasPrefix(marks, open) && tail == "":
			if ours {
				return text[bodyStart:at], strings.TrimSpace(text[:blockStart] + text[next:]), true
			}
			open = ""
		}
	}
	if open != "" && ours {
		return text[bodyStart:], strings.TrimSpace(text[:blockStart]), true
	}
	return "", text, false
}

// cutScript finds the script in text: the first fenced block whose info string begins with
// "offline".
func cutScript(text string) (script, rest string, ok bool) {
	if !strings.Contains(text, Name) {
		return "", text, false // without searching each line
	}
	return fencedBlock(text, Name)
}

// nextLine returns the line at index at, without its LF or CRLF, and the index of the next
// line.
func nextLine(text string, at int) (line string, next int) {
	end := strings.IndexByte(text[at:], '\n')
	if end < 0 {
		return text[at:], len(text)
	}
	return strings.TrimSuffix(text[at:at+end], "\r"), at + end + 1
}
