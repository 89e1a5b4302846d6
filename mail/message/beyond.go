package message

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits of the comparison of a history with mails that are known.
const (
	maxKnown    = 256 << 10 // bytes of known text
	maxCompared = 2000      // lines of a history; a longer one is not known
)

// Beyond returns the beginning of the history, up to the last line that none of the known mails has. It returns
// "" if they have all of it. Programs wrap, quote and mark the lines of a mail in their own way, so only letters,
// digits and emoji are compared. What programs add to a quoted mail does not count: the sentence or the header
// above it, and the line of a program below it.
func (b Body) Beyond(known []string) string {
	lines := strings.Split(b.History, "\n")
	if len(lines) > maxCompared {
		return b.History
	}
	k := newKnownText(known)
	added := addedLines(lines)
	compared := make([]string, len(lines)) // "" for blank lines and those of programs
	for i, line := range lines {
		if text := unquoted(line); !added[i] && letters(text) != "" {
			compared[i] = text
		}
	}
	end := 0       // of the lines that are not known
	previous := "" // the last known line of the same mail
	for i, line := range lines {
		if added[i] {
			previous = ""
		}
		if compared[i] == "" {
			continue
		}
		above, below := before(compared, added, i), after(compared, added, i)
		is := k.has
		if above != "" && !strings.HasPrefix(line, ">") { // the author of an answer between the lines sets no mark
			above, is = previous, k.hasInPlace
		}
		if is(above, compared[i], below) {
			previous = compared[i]
		} else {
			end = i + 1
		}
	}
	return strings.Join(lines[:end], "\n")
}

// before returns the line of the same mail before line i, "" if there is none.
func before(lines []string, added []bool, i int) string {
	for i--; i >= 0 && !added[i]; i-- {
		if lines[i] != "" {
			return lines[i]
		}
	}
	return ""
}

// after returns the line of the same mail after line i, "" if there is none.
func after(lines []string, added []bool, i int) string {
	for i++; i < len(lines) && !added[i]; i++ {
		if lines[i] != "" {
			return lines[i]
		}
	}
	return ""
}

// A knownText is the text of the mails that a task has.
type knownText struct {
	letters string          // of all of it
	words   string          // with a space around each
	lines   map[string]bool // letters of each line
}

func newKnownText(texts []string) knownText {
	k := knownText{lines: map[string]bool{}}
	var all, words strings.Builder
	for _, text := range texts {
		if all.Len() >= maxKnown {
			break
		}
		text = text[:min(len(text), maxKnown)]
		all.WriteString(letters(text) + " ")
		words.WriteString(wordsOf(text) + " ")
		for line := range strings.SplitSeq(text, "\n") {
			k.lines[letters(withoutNumber(unquoted(line)))] = true
		}
	}
	k.letters, k.words = all.String(), words.String()
	return k
}

// sureLetters is how many letters a line needs to be recognized without the lines around it. Many texts have
// the letters of a short answer, such as "No", in other words.
const sureLetters = 20

// has reports whether the text has a line, in its place between two others.
func (k knownText) has(before, line, after string) bool {
	own := letters(withoutNumber(line))
	switch {
	case !strings.Contains(k.letters, own):
		return false
	case utf8.RuneCountInString(own) >= sureLetters, k.lines[own]:
		return true
	}
	return k.adjacent(before, line) || k.adjacent(line, after)
}

// hasInPlace reports whether the text has a line directly below the last known line of the same mail. Where the
// program has changed what is between them, such as a picture, a long line is known by the line below it.
func (k knownText) hasInPlace(previous, line, after string) bool {
	return k.adjacent(previous, line) ||
		utf8.RuneCountInString(letters(withoutNumber(line))) >= sureLetters && k.adjacent(line, after)
}

// adjacent reports whether one of the mails has two lines, one directly below the other.
func (k knownText) adjacent(above, below string) bool {
	in, form := k.words, wordsOf
	if strings.ContainsFunc(above+below, isWrittenWithoutSpaces) {
		in, form = k.letters, letters
	}
	first, second := form(withoutNumber(above)), form(withoutNumber(below))
	if strings.TrimSpace(first) == "" || strings.TrimSpace(second) == "" {
		return false
	}
	// The text of a page has no numbers of lists.
	return strings.Contains(in, joinForms(first, second)) || strings.Contains(in, joinForms(first, form(below)))
}

// joinForms joins two forms of lines. Words have one space between them.
func joinForms(above, below string) string { return strings.ReplaceAll(above+below, "  ", " ") }

// isWrittenWithoutSpaces reports whether a character belongs to a script without spaces between words.
func isWrittenWithoutSpaces(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer,
		unicode.Myanmar)
}

// wordsOf returns the words of a text in the form of letters, with a space around each.
func wordsOf(text string) string {
	var b strings.Builder
	b.WriteByte(' ')
	for word := range strings.FieldsSeq(withoutLinks(text)) {
		if word = letters(word); word != "" {
			b.WriteString(word + " ")
		}
	}
	return b.String()
}

// unquoted returns a line without its quote marks.
func unquoted(line string) string { return strings.TrimLeft(line, "> ") }

// withoutNumber returns a line without the number of an item of a list, which HTML does not contain.
func withoutNumber(line string) string {
	rest := strings.TrimLeft(line, "0123456789")
	if len(rest) < len(line) && (strings.HasPrefix(rest, ". ") || strings.HasPrefix(rest, ") ")) {
		return rest
	}
	return line
}

// letters returns the letters, digits and emoji of a text, in lower case, without links.
func letters(text string) string {
	return strings.Map(func(r rune) rune {
		if r != utf8.RuneError && unicode.In(r, unicode.L, unicode.M, unicode.N, unicode.So) {
			return unicode.ToLower(r)
		}
		return -1
	}, withoutLinks(text))
}

// addedLines reports which lines of a history were added by the programs that quoted it.
func addedLines(quoted []string) []bool {
	lines := make([]string, len(quoted))
	for i, line := range quoted {
		lines[i] = unquoted(line)
	}
	added := make([]bool, len(lines))
	mark := func(i, n int) int {
		for j := range n {
			added[i+j] = true
		}
		return max(n, 1)
	}
	for i := 0; i < len(lines); {
		switch fields, length := fieldsAt(lines[i:]); {
		case isAddedRule(lines[i]), isMobileLine(lines[i]):
			i += mark(i, 1)
		case len(fields) > 2 && isHeader(fields) && (i == 0 || lines[i-1] == "" || ruleAt(lines[i-1]) > 0):
			i += mark(i, length)
		default:
			i += mark(i, sentenceAt(lines[i:]))
		}
	}
	return added
}

// isAddedRule reports whether a line is a rule without words, or the mark above an older mail. An author may write
// other words between dashes.
func isAddedRule(line string) bool {
	if len(line) > maxLine {
		return false
	}
	return ruleAt(line) > 0 && (letters(line) == "" || originalMark.Compiled().MatchString(line) || isForwardMark(line) ||
		namesAuthor(line))
}

// isHeader reports whether fields of a history are the header of a mail: it has an author, a date or a
// recipient, and an address or a time, which the lists of an author seldom have.
func isHeader(fields []field) bool {
	named, evident := 0, false
	for _, f := range fields {
		if f.meaning != "" {
			named++
		}
		evident = evident || hasAddress(f.value) || hasTime(f.value)
	}
	return evident && named > 1 || hasAddress(fields[0].value)
}

// sentenceAt returns the number of lines of the sentence with which lines begin, if it is one above a quote.
func sentenceAt(lines []string) int {
	for _, is := range []func(string) bool{isSentence, isSentenceEnd, namesAuthor} {
		if n := attribution(lines, is); n > 0 {
			return n
		}
	}
	return 0
}

// Words returns all text of a mail, for the comparison with a quote of it. The mail may be truncated.
func Words(raw []byte) string {
	h := ReadHeader(raw)
	b := bodyReader{broken: h.broken,
		convert: func([]string) ([]string, error) { return nil, nil }, // the words of HTML are enough
		keep:    func(Attachment) error { return nil }}
	texts, _ := b.read(h, raw) // no error, because neither convert nor keep returns one
	return strings.Join(texts, "\n")
}
