package textcall

import "strings"

// A Keeper decides how much of a growing text is shown before the text is complete. It keeps back what may be a call:
// from a mark outside of code on, from JSON with the members of a call at the beginning of a line until it turns out to
// have no arguments, and from a code fence for calls. When the text is complete, Find decides what it is. Forms without
// a mark are not kept back.
type Keeper struct {
	Data bool // the answer is JSON, so that JSON is no sign of a call

	at      int          // bytes that are shown
	opened  int          // bytes after at up to the end of the line of a code fence whose inner text is judged
	white   int          // bytes of white space after at, or after the line of that fence
	members memberReader // of the JSON after the white space

	head  bool // the line at at was begun: its first mark was judged
	begun bool // more than white space was read
	fence bool // at is in a code fence
	ticks int  // backquotes in the line so far
	kept  bool // what may be a call begins at at
}

// Shown returns the number of bytes of a text that are shown. The text begins with the text of the call before.
func (k *Keeper) Shown(text string) int {
	for !k.kept && k.at < len(text) && k.next(text) {
	}
	return k.at
}

// Kept reports whether the rest of the text is kept back until it is complete.
func (k *Keeper) Kept() bool { return k.kept }

// next reads the beginning of a line, or the line up to the next mark. It returns false if it needs more text.
func (k *Keeper) next(text string) bool {
	if !k.head {
		return k.begin(text)
	}
	stops := "\n`<["
	if k.fence {
		stops = "\n"
	}
	n := strings.IndexAny(text[k.at:], stops)
	if n < 0 {
		k.at = len(text)
		return false
	}
	k.at += n
	switch text[k.at] {
	case '\n':
		k.head, k.ticks = false, 0
	case '`':
		k.ticks++
	default:
		if k.ticks%2 == 0 && !k.judge(markAt(text[k.at:])) {
			return false
		}
	}
	k.at++
	return true
}

// judge keeps the text at at back if it is a call, and reports whether it is known to be none.
func (k *Keeper) judge(call, known bool) bool {
	k.kept = call && known
	return known && !call
}

// begin reads the beginning of a line.
func (k *Keeper) begin(text string) bool {
	white := " \t\r"
	if !k.begun {
		white += "\n"
	}
	rest := strings.TrimLeft(text[k.at+k.opened+k.white:], white)
	k.white = len(text) - len(rest) - k.at - k.opened
	switch {
	case rest == "" || k.opened == 0 && strings.HasPrefix("```", rest):
		return false
	case k.opened == 0 && strings.HasPrefix(rest, "```"):
		return k.fenceLine(rest)
	case (!k.fence || k.opened > 0) && !k.judge(k.looks(rest)):
		return false
	}
	if k.opened > 0 {
		k.white = 0 // the code begins after the line of its fence
	}
	k.show(k.opened + k.white)
	return true
}

// show shows the next n bytes, which are the beginning of a line.
func (k *Keeper) show(n int) {
	k.at += n
	k.head, k.begun, k.white, k.opened, k.members = true, true, 0, 0, memberReader{}
}

// looks reports whether a text at the beginning of a line looks like a call.
func (k *Keeper) looks(rest string) (call, known bool) {
	if call, known = markAt(rest); call || !known {
		return call, known
	}
	if !k.begun {
		for _, m := range wordMarks() {
			if strings.HasPrefix(m, rest) || strings.HasPrefix(rest, m) {
				return strings.HasPrefix(rest, m), len(rest) >= len(m)
			}
		}
	}
	if !k.Data && (rest[0] == '{' || rest[0] == '[' && !k.begun) {
		return k.members.call(rest)
	}
	return false, true
}

// fenceLine reads the line of a code fence. A fence at the beginning of a text may contain a call.
func (k *Keeper) fenceLine(rest string) bool {
	line, _, complete := strings.Cut(rest, "\n")
	if !complete && len(line) < maxMark {
		return false
	}
	if !k.fence && isCallFence(strings.TrimSpace(line)) {
		return k.judge(true, true)
	}
	k.fence = !k.fence
	if complete && !k.begun {
		k.white, k.opened = 0, k.white+len(line)
		return true
	}
	k.show(k.white + len(line))
	return true
}

// markAt reports whether a text begins with the mark of a form. known is false for the beginning of one.
func markAt(text string) (mark, known bool) {
	if text[0] != '<' && text[0] != '[' {
		return false, true
	}
	whole := len(text) >= maxMark
	text = text[:min(len(text), maxMark)]
	if isMark(text) || openPattern.MatchString(text) {
		return true, true
	}
	for _, m := range longMarks() {
		if strings.HasPrefix(m, text) {
			return false, false
		}
	}
	return false, whole || !tagPattern.MatchString(text)
}
