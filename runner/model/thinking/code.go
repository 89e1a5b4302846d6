package thinking

import (
	"regexp"
	"strings"
)

// A codeFinder finds code in a Markdown text that arrives in pieces. It reads each byte once.
type codeFinder struct {
	fence bool   // within a fenced block
	line  int    // bytes of the line other than spaces and the marks of a fence
	marks int    // marks of a fence that the line begins with
	ticks int    // backticks of the line
	lead  []byte // the first bytes of the line
}

// maxLead limits the indentation and the mark of an item.
const maxLead = 24

// leadPattern matches an indented line, and an item of a list or a quotation, before their text.
var leadPattern = regexp.MustCompile(`^(?: {2,}|[ ]*\t[ \t]*|[ \t]*(?:[-*+>•]|\d{1,3}[.)])[ \t]+)$`)

// inItem reports whether the next byte begins the text of an item or of an indented line.
func (f *codeFinder) inItem() bool { return len(f.lead) <= maxLead && leadPattern.Match(f.lead) }

// read reads the next piece.
func (f *codeFinder) read(text string) {
	for i := range len(text) {
		if len(f.lead) <= maxLead {
			f.lead = append(f.lead, text[i])
		}
		switch c := text[i]; {
		case c == '\n':
			f.line, f.marks, f.ticks, f.lead = 0, 0, 0, f.lead[:0]
		case c == '`' || c == '~':
			if c == '`' {
				f.ticks++
			}
			if f.line == 0 {
				f.mark()
			}
		case c != ' ' && c != '\t' && c != '>':
			f.line++
		}
	}
}

// mark counts a mark at the beginning of a line. Three of them begin or end a fenced block.
func (f *codeFinder) mark() {
	if f.marks++; f.marks == 3 {
		f.fence = !f.fence
	}
}

// inCode reports whether the next byte is within code.
func (f *codeFinder) inCode() bool { return f.fence || f.ticks%2 == 1 }

// quotes are the characters before the name of a mark that a sentence mentions.
const quotes = "\"'“‘«„(`"

// mentions reports whether a sentence only mentions a mark between before and after, as in "it ends with </think>
// and a blank line". known is false if the answer depends on text that follows.
func mentions(before, after string) (yes, known bool) {
	quoted := before != "" && strings.ContainsAny(before[len(before)-1:], "\"'(`") ||
		len(before) >= 3 && strings.Contains(quotes, before[len(before)-3:])
	blank := before != "" && (before[len(before)-1] == ' ' || before[len(before)-1] == '\t')
	if quoted {
		return true, true
	}
	if !blank {
		return false, true // thinking ends where a line or a sentence ends
	}
	rest := strings.TrimLeft(after, " \t")
	switch {
	case rest == "":
		return false, len(after) > maxBlank
	case len(rest) == len(after): // a text follows directly
		return strings.ContainsAny(rest[:1], ",.;:?!)\"'"), true
	}
	return rest[0] >= 'a' && rest[0] <= 'z', true
}
