package model

import (
	"html"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A block is a piece of a document's running text.
type block struct {
	kind blockKind
	text string // in one line, without markup
}

type blockKind int

const (
	paragraph blockKind = iota
	heading
	listItem
)

// maxReadText bounds what is read of a document, in bytes.
const maxReadText = 1 << 20

// readText finds the running text of a document: its paragraphs, list items and
// headings, without code, tables, badges, comments and lists of links. In
// Markdown an indented block is code; in plain text it is only indented.
func readText(text string, markdown bool) []block {
	text = cutBytes(strings.TrimPrefix(text, "\ufeff"), maxReadText)
	r := blockReader{markdown: markdown}
	text = r.skipFrontMatter(strings.TrimLeft(dropComments(text), "\r\n"))
	for at := 0; at < len(text); {
		var ln string
		ln, at = nextLine(text, at)
		r.line(ln)
	}
	r.flush()
	return r.blocks
}

// dropComments takes out HTML comments, scripts and style sheets.
func dropComments(text string) string {
	for _, c := range [...][2]string{{"<!--", "-->"}, {"<script", "</script>"}, {"<style", "</style>"}} {
		var kept strings.Builder
		for {
			before, rest, found := strings.Cut(text, c[0])
			if !found {
				break
			}
			_, after, closed := strings.Cut(rest, c[1])
			if !closed {
				break // not a comment after all
			}
			kept.WriteString(before)
			text = after
		}
		kept.WriteString(text)
		text = kept.String()
	}
	return text
}

type blockReader struct {
	markdown bool
	blocks   []block
	open     fence // the code block that is being skipped
	kind     blockKind
	text     []string // lines of the block in the making
}

// skipFrontMatter leaves out YAML or TOML metadata at the head of a document.
func (r *blockReader) skipFrontMatter(text string) string {
	first, at := nextLine(text, 0)
	if first != "---" && first != "+++" {
		return text
	}
	for at < len(text) {
		ln, next := nextLine(text, at)
		if at = next; ln == first {
			return text[at:]
		}
	}
	return text
}

func (r *blockReader) line(raw string) {
	text := strings.TrimSpace(raw)
	if r.open.size > 0 {
		if r.open.closes(raw) {
			r.open = fence{}
		}
		return
	}
	if open := openFence(raw); open.size > 0 {
		r.flush()
		r.open = open
		return
	}
	indented := strings.HasPrefix(raw, "    ") || strings.HasPrefix(raw, "\t")
	for strings.HasPrefix(text, ">") {
		text = strings.TrimSpace(text[1:])
	}
	item, isItem := listText(text)
	switch {
	case text == "":
		r.flush()
	case r.underline(text):
	case isRule(text) || isTableRow(text) || isDefinition(text):
		r.flush()
	case strings.HasPrefix(text, "#") && strings.HasPrefix(strings.TrimLeft(text, "#"), " "):
		r.flush()
		r.kind, r.text = heading, []string{strings.TrimSpace(strings.Trim(text, "#"))}
		r.flush()
	case isItem:
		r.flush()
		r.kind, r.text = listItem, []string{item}
	case indented && r.markdown && len(r.text) == 0:
	default:
		r.text = append(r.text, text)
	}
}

// underline takes the line under a heading: it makes the one line before it that
// heading.
func (r *blockReader) underline(text string) bool {
	if len(r.text) != 1 || r.kind != paragraph || len(text) < 3 {
		return false
	}
	if strings.Trim(text, "=") != "" && strings.Trim(text, "-") != "" {
		return false
	}
	r.kind = heading
	r.flush()
	return true
}

// flush ends the block in the making. One that is mostly links is navigation and
// not text.
func (r *blockReader) flush() {
	text, linked := plainInline(strings.Join(r.text, " "))
	if text != "" && (linked*2 < utf8.RuneCountInString(text) || r.kind == heading) {
		r.blocks = append(r.blocks, block{r.kind, text})
	}
	r.kind, r.text = paragraph, nil
}

// listText gives the text of a list item, without its mark and its check box.
func listText(text string) (string, bool) {
	mark, rest, ok := strings.Cut(text, " ")
	if !ok {
		return "", false
	}
	digits := strings.TrimRight(mark, ".)")
	numbered := len(digits) == len(mark)-1 && len(digits) <= 9 && digits != "" && strings.Trim(digits, "0123456789") == ""
	if mark != "-" && mark != "*" && mark != "+" && mark != "•" && !numbered {
		return "", false
	}
	rest = strings.TrimSpace(rest)
	for _, box := range []string{"[ ] ", "[x] ", "[X] "} {
		rest = strings.TrimPrefix(rest, box)
	}
	return rest, true
}

func isRule(text string) bool {
	bare := strings.ReplaceAll(text, " ", "")
	return len(bare) >= 3 && strings.Trim(bare, bare[:1]) == "" && strings.Contains("-*_=~", bare[:1])
}

func isTableRow(text string) bool {
	return strings.HasPrefix(text, "|") || strings.Count(text, " | ") >= 2 || strings.Trim(text, "-| :+=") == ""
}

// isDefinition says whether the line defines a link or a footnote.
func isDefinition(text string) bool {
	return text[0] == '[' && strings.Contains(text, "]: ")
}

// plainInline takes the markup out of a line of Markdown: the text of links and
// emphasis stays, images and tags go. linked is how many characters of it are
// the text of links.
func plainInline(s string) (text string, linked int) {
	if !strings.ContainsAny(s, "[]<*_`\\&~") {
		return strings.Join(strings.Fields(s), " "), 0
	}
	var out strings.Builder
	for i := 0; i < len(s); {
		n := 1
		switch c := s[i]; {
		case c == '\\' && i+1 < len(s) && s[i+1] < utf8.RuneSelf && unicode.IsPunct(rune(s[i+1])):
			out.WriteByte(s[i+1])
			n = 2
		case c == '!' && strings.HasPrefix(s[i:], "!["):
			if _, size := linkAt(s[i+1:]); size > 0 {
				n = 1 + size
			}
		case c == '[':
			label, size := linkAt(s[i:])
			if size == 0 {
				out.WriteByte(c)
				break
			}
			inner, _ := plainInline(label)
			out.WriteString(inner)
			linked += utf8.RuneCountInString(inner)
			n = size
		case c == '<':
			if n = tagSize(s[i:]); n == 0 {
				out.WriteByte(c)
				n = 1
			}
		case c == '`', c == '~' && strings.HasPrefix(s[i:], "~~"), (c == '*' || c == '_') && isEmphasis(s, i):
			for i+n < len(s) && s[i+n] == c {
				n++
			}
		default:
			out.WriteByte(c)
		}
		i += n
	}
	return strings.Join(strings.Fields(html.UnescapeString(out.String())), " "), linked
}

// linkAt reads the link that s, beginning with a bracket, is: [label](target) or
// [label][name]. size 0 means that it is none.
func linkAt(s string) (label string, size int) {
	depth, end := 0, -1
	s = cutBytes(s, 2600)
	if !strings.Contains(cutBytes(s, 500), "]") {
		return "", 0 // before the search below: a text may be all brackets
	}
	for i := 0; i < len(s) && i < 500 && end < 0; i++ {
		switch s[i] {
		case '[':
			depth++
		case ']':
			if depth--; depth == 0 {
				end = i
			}
		}
	}
	if end < 0 || depth > 0 || end+1 >= len(s) {
		return "", 0
	}
	closing := map[byte]string{'(': ")", '[': "]"}[s[end+1]]
	if closing == "" || strings.Count(s[:end], "[") > 3 {
		return "", 0
	}
	stop := strings.Index(s[end+1:], closing)
	if stop < 0 {
		return "", 0
	}
	return s[1:end], end + 1 + stop + 1
}

// tagSize is the length of the HTML tag or <address> that s begins with, 0 if it
// is none.
func tagSize(s string) int {
	end := strings.IndexByte(cutBytes(s, 1000), '>')
	if end < 2 || !(unicode.IsLetter(rune(s[1])) || s[1] == '/') {
		return 0
	}
	return end + 1
}

// isEmphasis tells a mark of emphasis from an asterisk or underscore that is
// text: one between spaces, or between letters as in a_name.
func isEmphasis(s string, i int) bool {
	end := i
	for end < len(s) && s[end] == s[i] {
		end++
	}
	before, _ := utf8.DecodeLastRuneInString(s[:i])
	after, _ := utf8.DecodeRuneInString(s[end:])
	open := i == 0 || unicode.IsSpace(before)
	shut := end == len(s) || unicode.IsSpace(after)
	if open && shut {
		return false
	}
	return s[i] == '*' || !wordRune(before) || !wordRune(after) || open || shut
}

func wordRune(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }
