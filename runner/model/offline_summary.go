package model

import (
	"math"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// summarize answers with the most telling sentences of the documents, word for
// word and in their order, as many as the input asks for.
func summarize(w *wishes, docs []document) string {
	read := 0
	for i := range docs {
		if docs[i].text != "" {
			read++
		}
	}
	var paragraphs, sources []string
	left, several := w.count, read > 1
	for i := range docs {
		doc := &docs[i]
		if doc.text == "" {
			continue
		}
		want := defaultCount
		if w.count > 0 {
			want = max(left/read, 1) // a given number is for all of them together
		}
		left, read = left-want, read-1
		chosen := limitWords(digest(doc, want, w.question), w.words)
		paragraphs = append(paragraphs, layOut(doc, chosen, w.bullets, several))
		if doc.web {
			sources = append(sources, "Source: "+sourceName(doc))
		}
	}
	paragraphs = append(paragraphs, sources...)
	if missing := problems(docs); missing != "" {
		paragraphs = append(paragraphs, missing)
	}
	return strings.Join(paragraphs, "\n\n")
}

func sourceName(doc *document) string {
	if doc.title == "" {
		return doc.name
	}
	return shorten(doc.title, 200) + ", " + doc.name
}

// layOut writes the sentences as a paragraph or a list, under the document's name
// if there are several documents.
func layOut(doc *document, sentences []string, bullets, named bool) string {
	head := ""
	if named {
		head = doc.name + ": "
	}
	if !bullets {
		return head + strings.Join(sentences, " ")
	}
	return strings.TrimPrefix(strings.TrimSpace(head)+"\n- "+strings.Join(sentences, "\n- "), "\n")
}

// problems says what could not be read, and why.
func problems(docs []document) string {
	var lines []string
	for _, doc := range docs {
		if doc.problem == "" {
			continue
		}
		verb := "I could not read "
		if doc.web {
			verb = "I could not fetch "
		}
		lines = append(lines, verb+doc.name+": "+doc.problem+".")
	}
	return strings.Join(lines, "\n")
}

// limitWords keeps as many sentences as have most words together, at least one.
// most 0 keeps them all.
func limitWords(sentences []string, most int) []string {
	n := 0
	for i, s := range sentences {
		if n += len(strings.Fields(s)); most > 0 && n > most && i > 0 {
			return sentences[:i]
		}
	}
	return sentences
}

// digest gives n sentences about the document. What has no sentences is told by
// its shape or by its first lines.
func digest(doc *document, n int, question []string) []string {
	ext := extension(doc.name)
	switch ext {
	case "csv", "tsv":
		return []string{describeTable(doc, ext)}
	case "json":
		if text, ok := describeJSON(doc); ok {
			return []string{text}
		}
	}
	plainText := ext == "txt" || ext == "text" || ext == "log" || doc.web
	if chosen := pickSentences(readText(doc.text, !plainText), n, question); len(chosen) > 0 {
		return chosen
	}
	var lines []string
	for ln := range strings.Lines(cutBytes(doc.text, maxReadText)) {
		if ln = strings.TrimSpace(ln); ln != "" {
			lines = append(lines, shorten(ln, 200))
		}
		if len(lines) == n {
			break
		}
	}
	return lines
}

// A sentence is a candidate for a summary.
type sentence struct {
	text  string
	words []int // its different content words, as indexes into the word weights
	size  int   // words in all
	score float64
}

// maxSentences bounds how much of a document competes for a place in its summary.
const maxSentences = 4000

// pickSentences chooses n sentences. A sentence tells much if its words are those
// that the document uses often, if it stands early, and if it has words of the
// headings or the question; once it is chosen its words count for less, so that
// the next one says something else.
func pickSentences(blocks []block, n int, question []string) []string {
	p := picker{ids: map[string]int{}}
	for _, b := range blocks {
		p.read(b)
	}
	p.weigh()
	asked, headed := p.idsOf(question), p.idsOf(p.headings)
	for i := range p.sentences {
		s := &p.sentences[i]
		s.score *= 1 + 1.2*float64(min(common(s.words, asked), 3)) + 0.1*float64(min(common(s.words, headed), 3))
	}
	return p.pick(n)
}

type picker struct {
	ids       map[string]int
	weights   []float64 // of the word with that id
	headings  []string
	sentences []sentence
	seen      map[string]bool
	body      bool // a paragraph has been read
}

func (p *picker) read(b block) {
	if b.kind == heading {
		p.headings = append(p.headings, contentWords(b.text)...)
		return
	}
	if p.seen == nil {
		p.seen = map[string]bool{}
	}
	for i, text := range splitSentences(b.text) {
		if len(p.sentences) == maxSentences {
			return
		}
		size := len(strings.Fields(text))
		if p.seen[text] || !telling(text, size, b.kind) {
			continue
		}
		p.seen[text] = true
		s := sentence{text: text, size: size, score: shape(text, size)}
		for _, word := range contentWords(text) {
			if id := p.count(word); !slices.Contains(s.words, id) {
				s.words = append(s.words, id)
			}
		}
		switch {
		case !p.body:
			s.score *= 1.5 // the document's first sentence
		case i == 0:
			s.score *= 1.15
		}
		if b.kind == listItem {
			s.score *= 0.8
		} else {
			p.body = true
		}
		p.sentences = append(p.sentences, s)
	}
}

func (p *picker) count(word string) int {
	id, ok := p.ids[word]
	if !ok {
		id = len(p.weights)
		p.ids[word] = id
		p.weights = append(p.weights, 0)
	}
	p.weights[id]++
	return id
}

// weigh turns counts into weights and lets earlier sentences weigh more.
func (p *picker) weigh() {
	for i, n := range p.weights {
		p.weights[i] = math.Log2(1 + n)
	}
	for i := range p.sentences {
		p.sentences[i].score *= 1 + 0.3*(1-float64(i)/float64(len(p.sentences)))
	}
}

func (p *picker) idsOf(words []string) map[int]bool {
	ids := map[int]bool{}
	for _, word := range words {
		if id, ok := p.ids[word]; ok {
			ids[id] = true
		}
	}
	return ids
}

func common(words []int, set map[int]bool) int {
	n := 0
	for _, id := range words {
		if set[id] {
			n++
		}
	}
	return n
}

func (p *picker) pick(n int) []string {
	var chosen []int
	for len(chosen) < min(n, len(p.sentences)) {
		best, bestScore := -1, -1.0
		for i := range p.sentences {
			if score := p.value(&p.sentences[i]); score > bestScore && !slices.Contains(chosen, i) {
				best, bestScore = i, score
			}
		}
		chosen = append(chosen, best)
		for _, id := range p.sentences[best].words {
			p.weights[id] *= 0.35
		}
	}
	slices.Sort(chosen)
	var texts []string
	for _, i := range chosen {
		texts = append(texts, p.sentences[i].text)
	}
	return texts
}

func (p *picker) value(s *sentence) float64 {
	sum := 0.0
	for _, id := range s.words {
		sum += p.weights[id]
	}
	return s.score * sum / math.Pow(float64(max(len(s.words), 4)), 0.7)
}

// telling says whether a sentence can stand in a summary: a label, a lead-in to a
// list or a wall of text cannot.
func telling(text string, size int, kind blockKind) bool {
	if size < 4 && !wide(text) || len(text) > 1200 || strings.HasSuffix(text, ":") {
		return false
	}
	letters, others := 0, 0
	for _, r := range text {
		switch {
		case unicode.IsLetter(r):
			letters++
		case !unicode.IsSpace(r):
			others++
		}
	}
	ended := strings.ContainsAny(lastRune(text), ".!?…。！？)”\"")
	return letters > 2*others && (ended || size >= 6 || kind == listItem && size >= 5)
}

// wide says whether the text is in a script that does not part words by spaces.
func wide(text string) bool {
	r, _ := utf8.DecodeRuneInString(text)
	return utf8.RuneCountInString(text) >= 8 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai)
}

func lastRune(s string) string {
	_, n := utf8.DecodeLastRuneInString(s)
	return s[len(s)-n:]
}

// shape rates a sentence by how it is built, whatever it is about.
func shape(text string, size int) float64 {
	score := 1.0
	switch {
	case size < 7:
		score *= 0.6
	case size > 45:
		score *= 0.6
	case size > 32:
		score *= 0.85
	}
	first, _, _ := strings.Cut(strings.ToLower(text), " ")
	const hanging = " this that these those it its they he she however but and or so also then thus therefore " +
		"such here there yet otherwise instead "
	if hasWord(hanging, strings.Trim(first, ",.")) || strings.HasPrefix(text, "For example") {
		score *= 0.7
	}
	if strings.HasSuffix(text, "?") {
		score *= 0.5
	}
	if r, _ := utf8.DecodeRuneInString(text); unicode.IsLower(r) {
		score *= 0.7
	}
	return score
}

// splitSentences cuts a block at the ends of its sentences. The pieces are
// substrings of it.
func splitSentences(text string) []string {
	var out []string
	start := 0
	for i, r := range text {
		if !strings.ContainsRune(".!?…。！？", r) || i < start {
			continue
		}
		end := i + utf8.RuneLen(r)
		for end < len(text) {
			closing, n := utf8.DecodeRuneInString(text[end:])
			if !strings.ContainsRune(".!?…\"'”’)]»", closing) {
				break
			}
			end += n
		}
		if endsSentence(text[start:i], r, text[end:]) {
			out = append(out, strings.TrimSpace(text[start:end]))
			start = end
		}
	}
	if rest := strings.TrimSpace(text[start:]); rest != "" {
		out = append(out, rest)
	}
	return out
}

// abbreviations are the words whose full stop ends no sentence.
const abbreviations = " mr mrs ms dr prof st vs etc e.g i.e eg ie fig no nr vol pp cf al inc ltd co corp dept approx est " +
	"jan feb mar apr jun jul aug sep sept oct nov dec u.s u.k a.m p.m z.b d.h bzw usw ca "

// endsSentence says whether the mark between before and after ends a sentence.
func endsSentence(before string, mark rune, after string) bool {
	if mark > utf8.RuneSelf && mark != '…' {
		return true // no space follows these
	}
	if after != "" && after[0] != ' ' {
		return false // inside a number, a name, an address
	}
	next, _ := utf8.DecodeRuneInString(strings.TrimLeft(after, " \"'“‘(["))
	if after != "" && unicode.IsLower(next) {
		return false
	}
	if mark != '.' {
		return true
	}
	word := before[strings.LastIndexByte(before, ' ')+1:]
	word = strings.ToLower(strings.TrimLeft(word, "(\"'“["))
	if utf8.RuneCountInString(word) == 1 && unicode.IsLetter([]rune(word)[0]) && word != "i" {
		return false // an initial
	}
	return word == "" || after == "" || !hasWord(abbreviations, word)
}

// describeTable tells the shape of a table of values.
func describeTable(doc *document, ext string) string {
	separator := ","
	if ext == "tsv" {
		separator = "\t"
	}
	head := firstLine(doc.text)
	if ext == "csv" && strings.Count(head, ";") > strings.Count(head, ",") {
		separator = ";"
	}
	rows := -1
	for ln := range strings.Lines(doc.text) {
		if strings.TrimSpace(ln) != "" {
			rows++
		}
	}
	columns := strings.Split(head, separator)
	for i := range columns {
		columns[i] = strings.Trim(strings.TrimSpace(columns[i]), `"`)
	}
	return path.Base(doc.name) + " has " + plural(max(rows, 0), "row") + " below its heading and " +
		plural(len(columns), "column") + ": " + shorten(strings.Join(columns, ", "), 300) + "."
}
