package offline

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"journeyman/store/pattern"
)

// Limits of the sentences that are quoted from a text.
const (
	defaultSentences = 3
	maxReadText      = 256 << 10 // bytes that are read of a text
	maxSentence      = 1200      // bytes
)

const (
	// notText matches comments, tags and images.
	notText pattern.Pattern = `(?s)<!--.*?-->|</?[a-zA-Z][^>\n]*>|!\[[^\]\n]*\]\([^)\n]*\)`
	// markup matches a link and an emphasis. Its groups are their texts.
	markup pattern.Pattern = `\[([^\]\n]*)\]\([^)\n]*\)|\*{1,2}([^*\s][^*\n]*)\*{1,2}` + "|`([^`\n]+)`"
	// blockMarks matches the marks of quotations and list items at the start of a line.
	blockMarks pattern.Pattern = `^\s*(?:>\s?|[-*+•]\s+|\d{1,9}[.)]\s+)+`
	fenceMarks pattern.Pattern = "^\\s*(?:```|~~~)"
)

// maxSummarized is how much of a text is searched for sentences, in bytes. A mark that is never closed
// makes each search for the next one read up to the end of the text.
const maxSummarized = 16 << 10

// pickSentences returns the first n sentences of a text that say something, verbatim except for
// the marks of Markdown. A text without sentences, such as data, has its first lines instead.
func pickSentences(source string, n int) []string {
	source = cutBytes(strings.TrimPrefix(source, "\ufeff"), maxSummarized)
	var found []string
	for _, block := range paragraphs(source) {
		for _, s := range splitSentences(block) {
			if len(found) < n && isInformative(s) && !slices.Contains(found, s) {
				found = append(found, s)
			}
		}
	}
	if len(found) > 0 {
		return found
	}
	for ln := range strings.Lines(source) {
		if ln = strings.TrimSpace(ln); ln != "" && len(found) < n {
			found = append(found, shorten(ln, 200))
		}
	}
	return found
}

// isInformative reports whether a sentence is worth quoting. Headings, labels, lead-ins to lists
// and very long texts are not.
func isInformative(s string) bool {
	words := len(strings.Fields(s))
	ends := strings.ContainsAny(s[max(len(s)-4, 0):], ".!?…")
	return len(s) <= maxSentence && !strings.HasSuffix(s, ":") && (words >= 6 || words >= 4 && ends)
}

// paragraphs returns the paragraphs and list items of a text, each on one line. It omits code,
// tables, headings and metadata.
func paragraphs(source string) (blocks []string) {
	if rest, ok := strings.CutPrefix(source, "---\n"); ok { // metadata at the head of a document
		if _, body, closed := strings.Cut(rest, "\n---\n"); closed {
			source = body
		}
	}
	source = markup.Compiled().ReplaceAllString(notText.Compiled().ReplaceAllString(source, ""), "$1$2$3")
	var block []string
	flush := func() {
		if text := strings.Join(strings.Fields(strings.Join(block, " ")), " "); text != "" {
			blocks = append(blocks, text)
		}
		block = nil
	}
	code := false
	for ln := range strings.Lines(source) {
		if fenceMarks.Compiled().MatchString(ln) {
			code = !code
			flush()
			continue
		}
		ln = strings.TrimSpace(ln)
		switch marks := blockMarks.Compiled().FindString(ln); {
		case code:
		case ln == "" || ln[0] == '#' || ln[0] == '|':
			flush()
		case strings.Trim(ln, "=-") == "": // the line above is a heading
			block = nil
		case marks != "" && marks[0] != '>':
			flush()
			block = append(block, ln[len(marks):])
		default:
			block = append(block, ln[len(marks):])
		}
	}
	flush()
	return blocks
}

// abbreviations are words whose full stop does not end a sentence.
const abbreviations = " mr mrs ms dr prof st vs etc e.g i.e fig no vol cf al inc ltd co approx u.s u.k a.m p.m " +
	"z.b d.h bzw ca "

// splitSentences splits a text into sentences. The results are substrings of the text.
func splitSentences(s string) []string {
	var out []string
	start := 0
	for i, r := range s {
		if i < start || !strings.ContainsRune(".!?…。！？", r) {
			continue
		}
		end := i + utf8.RuneLen(r)
		// Closing quotation marks and brackets belong to the sentence.
		end += len(s[end:]) - len(strings.TrimLeft(s[end:], ".!?…\"'”’)]»"))
		if endsSentence(s[start:i], r, s[end:]) {
			out = append(out, strings.TrimSpace(s[start:end]))
			start = end
		}
	}
	if rest := strings.TrimSpace(s[start:]); rest != "" {
		out = append(out, rest)
	}
	return out
}

// endsSentence reports whether the mark between before and after ends a sentence.
func endsSentence(before string, mark rune, after string) bool {
	next, _ := utf8.DecodeRuneInString(strings.TrimLeft(after, " \"'“‘(["))
	switch {
	case after == "", strings.ContainsRune("。！？", mark): // no space follows these
		return true
	case after[0] != ' ', unicode.IsLower(next):
		return false // inside a number, a name or an address
	case mark != '.':
		return true
	}
	word := strings.ToLower(strings.TrimLeft(before[strings.LastIndexByte(before, ' ')+1:], "(\"'“["))
	initial := utf8.RuneCountInString(word) == 1 && word != "i" && strings.ContainsFunc(word, unicode.IsLetter)
	return !initial && (word == "" || !strings.Contains(abbreviations, " "+word+" "))
}
