package offline

import (
	"cmp"
	"html"
	"math"
	"path"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// Limits of a summary.
const (
	defaultSentences = 3
	maxReadText      = 256 << 10 // bytes that are read of a document
	maxLine          = 8 << 10   // bytes of one line
	maxBrackets      = 2000      // opening brackets in a text; others are removed
	maxSentences     = 2000      // sentences that are scored
)

// summarize returns the sentences with the highest scores of the documents, verbatim and in
// their order. The input determines their number.
func summarize(w *intent, docs []document) string {
	problem := problems(docs)
	docs = slices.DeleteFunc(slices.Clone(docs), func(d document) bool { return d.text == "" })
	var paragraphs, sources []string
	for _, doc := range docs {
		n := defaultSentences
		if w.sentences > 0 {
			n = max(w.sentences/len(docs), 1) // the number is for all documents together
		}
		text := strings.Join(extract(doc, n), " ")
		if len(docs) > 1 {
			text = doc.name + ": " + text
		}
		paragraphs = append(paragraphs, text)
		if doc.isPage() {
			sources = append(sources, "Source: "+strings.TrimPrefix(shorten(doc.title, 200)+", "+doc.name, ", "))
		}
	}
	paragraphs = append(paragraphs, sources...)
	if problem != "" {
		paragraphs = append(paragraphs, problem)
	}
	return strings.Join(paragraphs, "\n\n")
}

// problems returns the names of the documents that could not be read, with the reasons.
func problems(docs []document) string {
	var lines []string
	for _, doc := range docs {
		verb := "read "
		if doc.isPage() {
			verb = "fetch "
		}
		if doc.problem != "" {
			lines = append(lines, "I could not "+verb+doc.name+": "+doc.problem+".")
		}
	}
	return strings.Join(lines, "\n")
}

// extract returns n sentences of a document. If it contains no sentences, such as data and
// code, extract returns its first lines.
func extract(doc document, n int) []string {
	ext := strings.ToLower(path.Ext(doc.name))
	markdown := !doc.isPage() && ext != ".txt" && ext != ".log"
	if chosen := pickSentences(doc.text, markdown, n); len(chosen) > 0 {
		return chosen
	}
	var lines []string
	for ln := range strings.Lines(cutBytes(doc.text, maxReadText)) {
		if ln = strings.TrimSpace(ln); ln != "" && len(lines) < n {
			lines = append(lines, shorten(ln, 200))
		}
	}
	return lines
}

// A candidate is a sentence that may be chosen for a summary.
type candidate struct {
	text  string
	index int // among all sentences
	words []string
	score float64
}

// pickSentences returns the n best sentences, in their order. Frequent words of the document
// and an early position raise the score of a sentence.
func pickSentences(source string, markdown bool, n int) []string {
	all := candidates(source, markdown)
	uses := map[string]int{} // number of uses of each word in the document
	for _, c := range all {
		for _, word := range c.words {
			uses[word]++
		}
	}
	for i := range all {
		c := &all[i]
		for _, word := range c.words {
			c.score += math.Log2(1 + float64(uses[word]))
		}
		// Divide by the length, because longer sentences contain more words. Reduce the score
		// of later ones.
		c.score *= (1 - 0.3*float64(i)/float64(len(all))) / math.Sqrt(float64(max(len(c.words), 4)))
		if i == 0 {
			c.score *= 1.5 // the first sentence usually names the subject
		}
	}
	// The sort is stable, so that the same text always has the same summary.
	slices.SortStableFunc(all, func(a, b candidate) int { return cmp.Compare(b.score, a.score) })
	all = all[:min(n, len(all))]
	slices.SortFunc(all, func(a, b candidate) int { return a.index - b.index })
	var texts []string
	for _, c := range all {
		texts = append(texts, c.text)
	}
	return texts
}

// candidates returns the sentences of a text that are suitable for a summary, each once.
func candidates(source string, markdown bool) []candidate {
	var all []candidate
	seen := map[string]bool{}
	for _, block := range runningText(source, markdown) {
		for _, s := range splitSentences(block) {
			if len(all) < maxSentences && !seen[s] && isInformative(s) {
				seen[s] = true
				all = append(all, candidate{text: s, index: len(all), words: contentWords(s)})
			}
		}
	}
	return all
}

// isInformative reports whether a sentence is suitable for a summary. Labels, lead-ins to lists
// and very long texts are not.
func isInformative(s string) bool {
	words := len(strings.Fields(s))
	ends := strings.HasSuffix(strings.TrimRight(s, "!?…)”\""), ".") || strings.TrimRight(s, "!?") != s
	return len(s) <= 1200 && !strings.HasSuffix(s, ":") && (words >= 6 || words >= 4 && ends)
}

// quoteMarks matches the marks of nested quotations at the start of a line.
const quoteMarks pattern = `^(?: {0,3}> ?)+`

var markdownParser = sync.OnceValue(func() parser.Parser {
	return goldmark.New(goldmark.WithExtensions(extension.Table)).Parser()
})

// runningText returns the paragraphs and list items of a text, each on one line. It omits code,
// tables, headings, comments and lists of links. In plain text, indented lines are not code.
func runningText(source string, markdown bool) []string {
	source = cutBytes(strings.TrimPrefix(source, "\ufeff"), maxReadText)
	if rest, ok := strings.CutPrefix(source, "---\n"); ok { // metadata at the head of a document
		if _, body, closed := strings.Cut(rest, "\n---\n"); closed {
			source = body
		}
	}
	lines, brackets := strings.Split(source, "\n"), 0
	for i, ln := range lines {
		// Remove quotation marks and cut long lines, because the parser takes very long for
		// thousands of nested blocks.
		ln = ln[len(quoteMarks.compiled().FindString(ln)):]
		// The time for unmatched brackets grows with the square of their number.
		if brackets += strings.Count(ln, "["); brackets > maxBrackets {
			ln = strings.ReplaceAll(ln, "[", "")
		}
		if lines[i] = cutBytes(ln, maxLine); !markdown {
			lines[i] = strings.TrimSpace(lines[i])
		}
	}
	raw := []byte(strings.Join(lines, "\n"))
	var blocks []string
	// The callback returns no error, so Walk returns none.
	_ = ast.Walk(markdownParser().Parse(text.NewReader(raw)), func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		switch n.Kind().String() {
		case "Paragraph", "TextBlock":
			if all, linked := inlineText(n, raw); entering && all != "" && 2*linked < len(all) {
				blocks = append(blocks, all)
			}
			return ast.WalkSkipChildren, nil
		case "Heading", "CodeBlock", "FencedCodeBlock", "HTMLBlock", "Table":
			return ast.WalkSkipChildren, nil
		}
		return ast.WalkContinue, nil
	})
	return blocks
}

// inlineText returns the text of a block on one line, and how many of its bytes are links.
func inlineText(block ast.Node, raw []byte) (all string, linked int) {
	var b strings.Builder
	_ = ast.Walk(block, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Image, *ast.RawHTML:
			return ast.WalkSkipChildren, nil
		case *ast.AutoLink:
			b.Write(n.Label(raw))
			linked += len(n.Label(raw))
		case *ast.Text:
			b.Write(util.UnescapePunctuations(n.Segment.Value(raw)))
			if n.Parent().Kind() == ast.KindLink {
				linked += n.Segment.Len()
			}
			if n.SoftLineBreak() || n.HardLineBreak() {
				b.WriteByte(' ')
			}
		}
		return ast.WalkContinue, nil
	})
	return strings.Join(strings.Fields(html.UnescapeString(b.String())), " "), linked
}

// abbreviations are words whose full stop does not end a sentence.
const abbreviations = " mr mrs ms dr prof st vs etc e.g i.e eg ie fig no vol cf al inc ltd co corp " +
	"approx est u.s u.k a.m p.m z.b d.h bzw usw ca "

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
	return !initial && (word == "" || !hasWord(abbreviations, word))
}

// firstSentence returns the first sentence of the first line that is not empty.
func firstSentence(text string) string {
	if sentences := splitSentences(firstLine(text)); len(sentences) > 0 {
		return sentences[0]
	}
	return ""
}

// stopWords are words that are frequent in all texts.
const stopWords = " a about after again all also am an and any are as at be because been before being both but by " +
	"can could did do does during each either else ever every few for from get got had has have he " +
	"her here him his how however i if in into is it its just let like made make many may me more " +
	"most much must my no nor not now of off on once one only or other our out over own per please " +
	"same she should since so some such than that the their them then there these they this those " +
	"through to too two under until up us use used using very via was we well were what when where " +
	"which while who why will with within without would you your der die das den dem des ein eine " +
	"und oder aber ist sind war mit von zu zum zur im auf nicht auch als wie bei aus nach sich es er " +
	"sie wir "

// contentWords returns the words of a text that are not stop words, in lower case.
func contentWords(s string) []string {
	return slices.DeleteFunc(lowerWords(s), func(word string) bool {
		return utf8.RuneCountInString(word) < 2 || hasWord(stopWords, word)
	})
}
