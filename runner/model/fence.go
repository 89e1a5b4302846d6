package model

import "strings"

// A fence is the opening line of a fenced code block, as CommonMark 0.31 defines
// it (4.5): up to three spaces, three or more backticks or tildes, an info string.
type fence struct {
	char byte
	size int
	info string
}

// openFence reads an opening fence. The zero fence means that line is none.
func openFence(line string) fence {
	mark, char, size := fenceRun(line)
	if size < 3 {
		return fence{}
	}
	info := strings.TrimSpace(mark[size:])
	if char == '`' && strings.Contains(info, "`") {
		return fence{} // a code span
	}
	return fence{char, size, info}
}

// closes says whether line ends the block that f began.
func (f fence) closes(line string) bool {
	mark, char, size := fenceRun(line)
	return char == f.char && size >= f.size && strings.TrimSpace(mark[size:]) == ""
}

// fenceRun finds the run of one fence character that line begins with; mark is
// line from there on.
func fenceRun(line string) (mark string, char byte, size int) {
	indent := 0
	for indent < len(line) && line[indent] == ' ' {
		indent++
	}
	if mark = line[indent:]; indent > 3 || mark == "" || (mark[0] != '`' && mark[0] != '~') {
		return "", 0, 0
	}
	for size < len(mark) && mark[size] == mark[0] {
		size++
	}
	return mark, mark[0], size
}

// cutScript finds the first fenced block with the info string "offline". rest is
// the text without that block, trimmed. A block within another, as in a text
// about scripts, is not one; a block that is never closed runs to the end.
func cutScript(text string) (script, rest string, ok bool) {
	if !strings.Contains(text, "offline") {
		return "", text, false
	}
	var open fence
	ours, blockStart, bodyStart := false, 0, 0
	for at := 0; at < len(text); {
		line, next := nextLine(text, at)
		switch {
		case open.size == 0:
			if open = openFence(line); open.size > 0 {
				word, _, _ := strings.Cut(open.info, " ")
				ours, blockStart, bodyStart = word == "offline", at, next
			}
		case open.closes(line):
			if ours {
				return text[bodyStart:at], strings.TrimSpace(text[:blockStart] + text[next:]), true
			}
			open = fence{}
		}
		at = next
	}
	if open.size > 0 && ours {
		return text[bodyStart:], strings.TrimSpace(text[:blockStart]), true
	}
	return "", text, false
}

// nextLine gives the line that begins at, without its LF or CRLF, and where the
// one after it begins.
func nextLine(text string, at int) (line string, next int) {
	end := strings.IndexByte(text[at:], '\n')
	if end < 0 {
		return text[at:], len(text)
	}
	return strings.TrimSuffix(text[at:at+end], "\r"), at + end + 1
}
