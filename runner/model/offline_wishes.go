package model

import (
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// wishes is what an input asks for, as far as rules can tell.
type wishes struct {
	urls     []string // to fetch
	paths    []string // to read: attachments first, then files named in the input
	target   string   // file to save the answer to
	literal  string   // the text to save, where the input gives it in full
	previous string   // the previous answer, where the input refers back
	summary  bool     // the input asks for something shorter

	count    int  // sentences or points wanted, 0 if the input does not say
	words    int  // most words wanted, 0 if the input does not say
	bullets  bool // as a list
	question []string
}

func (t *turn) readWishes() *wishes {
	w := &wishes{}
	request := t.input
	if head, text := splitRequest(t.input); len(text) > longInput && asksForLess(head) {
		request = head // the names and addresses in a text that is given are not asked about
	}
	rest := w.findURLs(request)
	for _, f := range t.files {
		w.addPath(f.Path)
		if name := path.Base(f.Path); strings.Contains(name, " ") {
			rest = strings.ReplaceAll(rest, name, strings.Repeat(" ", len(name))) // else its last word is a name
		}
	}
	found := findMentions(rest)
	w.findTarget(request, found)
	for _, m := range found {
		if m.source {
			w.addPath(m.name)
		}
	}
	if len(w.paths) > maxReads {
		w.paths = w.paths[:maxReads]
	}
	asked := ends(unnamed(rest, found))
	w.readAmount(asked)
	if w.count == 0 && w.words == 0 {
		w.readAmount(t.req.Instructions) // "You summarise in two sentences"
	}
	if len(w.urls)+len(w.paths) == 0 && refersBack(asked) {
		answer, files := t.earlier()
		for _, f := range files {
			w.addPath(f.Path)
		}
		w.previous = answer
	}
	w.question = contentWords(asked)
	return w
}

// unnamed takes the files' names out: they are no question about the files.
func unnamed(text string, found []mention) string {
	b := []byte(text)
	for _, m := range found {
		for i := m.start; i < m.end; i++ {
			b[i] = ' '
		}
	}
	return string(b)
}

// ends gives the beginning and the end of a long input, where the request stands;
// what lies between is what it is about.
func ends(input string) string {
	const most = 300
	if len(input) <= 3*most {
		return input
	}
	return cutBytes(input, most) + "\n" + strings.ToValidUTF8(input[len(input)-most:], "")
}

func (w *wishes) addPath(name string) {
	if name = strings.ToValidUTF8(strings.TrimPrefix(name, "./"), "\uFFFD"); name != "" && !slices.Contains(w.paths, name) {
		w.paths = append(w.paths, name)
	}
}

// maxURL bounds a URL, in bytes; a longer one is left alone.
const maxURL = 2048

// findURLs takes the URLs out of the input and gives it with spaces in their
// place, so that the rest stands where it stood.
func (w *wishes) findURLs(input string) string {
	rest := []byte(input)
	for at := 0; ; {
		start := strings.Index(input[at:], "http")
		if start < 0 {
			return string(rest)
		}
		start += at
		at = start + len("http")
		if scheme := strings.TrimPrefix(input[at:], "s"); !strings.HasPrefix(scheme, "://") {
			continue
		}
		url := trimURL(cutBytes(input[start:], maxURL+1))
		at = max(at, start+len(url))
		if len(url) <= len("https://") || len(url) > maxURL {
			continue
		}
		if len(w.urls) < maxFetches && !slices.Contains(w.urls, url) {
			w.urls = append(w.urls, url)
		}
		for i := range len(url) {
			rest[start+i] = ' '
		}
	}
}

// trimURL gives the URL that text begins with, without the punctuation of the
// sentence around it.
func trimURL(text string) string {
	end := strings.IndexFunc(text, func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsControl(r) || strings.ContainsRune("<>\"`{}|\\^“”", r)
	})
	if end >= 0 {
		text = text[:end]
	}
	text, _, _ = strings.Cut(text, "](") // an image within a link
	for text != "" {
		last := text[len(text)-1]
		if last == ')' && strings.Count(text, "(") >= strings.Count(text, ")") {
			break // part of the address, as in Go_(game)
		}
		if !strings.ContainsRune(".,;:!?)]'*_", rune(last)) {
			break
		}
		text = text[:len(text)-1]
	}
	return text
}

// A mention is a file's name in the input.
type mention struct {
	name       string
	start, end int // in the input, quotes included
	source     bool
}

// readable are the extensions by which a word is taken for a file to read. Others
// are not: "example.com" and "e.g." have a dot too.
const readable = " md markdown mdx txt text rst adoc org tex log csv tsv json jsonl ndjson yaml yml toml ini cfg conf env " +
	"xml html htm pdf doc docx odt rtf xls xlsx ods ppt pptx eml msg ics vcf sql go py js mjs ts tsx jsx java kt rb rs " +
	"c h cpp hpp cc cs php swift sh bash zsh ps1 bat css scss " +
	"diff patch proto graphql ipynb png jpg jpeg gif webp svg mp3 wav mp4 zip gz tar "

// maxMentions bounds how many names an input is searched for.
const maxMentions = 100

// findMentions finds the file names in text: quoted ones, which may have spaces,
// and single words.
func findMentions(text string) []mention {
	var found []mention
	for at := 0; at < len(text); {
		if text[at] == ' ' || text[at] == '\n' || text[at] == '\t' || text[at] == '\r' {
			at++
			continue
		}
		m := quotedAt(text, at)
		if m.name == "" {
			m = wordAt(text, at)
		}
		if fileName(m.name) && len(found) < maxMentions {
			m.source = hasWord(readable, extension(m.name))
			found = append(found, m)
		} else if m.end = wordAt(text, at).end; m.end <= at {
			m.end = at + 1
		}
		at = m.end
	}
	return found
}

// quotePairs are the quotation marks that a name or a text may stand in. The
// plain apostrophe is not among them: it stands in "don't".
var quotePairs = [...][2]string{{"`", "`"}, {`"`, `"`}, {"“", "”"}, {"„", "“"}, {"«", "»"}, {"‘", "’"}}

// quotedAt gives the quotation that begins at, if it is a file's name.
func quotedAt(text string, at int) mention {
	for _, q := range quotePairs {
		rest, ok := strings.CutPrefix(text[at:], q[0])
		if !ok {
			continue
		}
		end := strings.Index(cutBytes(rest, 250), q[1])
		if end > 0 && fileName(rest[:end]) {
			return mention{name: rest[:end], start: at, end: at + len(q[0]) + end + len(q[1])}
		}
	}
	return mention{}
}

// wordAt gives the word that begins at, without the punctuation around it.
func wordAt(text string, at int) mention {
	word := text[at:]
	if i := strings.IndexFunc(word, unicode.IsSpace); i >= 0 {
		word = word[:i]
	}
	end := at + len(word)
	name := strings.TrimRight(strings.Trim(word, "`'\"“”„‘’«»()[]{}<>*,;:!?"), ".")
	return mention{name: name, start: at, end: end}
}

// fileName says whether s may be the name of a file with an extension.
func fileName(s string) bool {
	ext := extension(s)
	base := strings.TrimSuffix(path.Base(s), path.Ext(s))
	return len(s) <= 255 && ext != "" && len(ext) <= 8 && base != "" && base != "." && len(base)+len(ext) > 2 &&
		!strings.ContainsAny(s, "@\n\r\x00") && !strings.HasPrefix(s, " ") &&
		!strings.Contains(s, "//") && !strings.Contains(s, "](") &&
		strings.IndexFunc(ext, func(r rune) bool { return !isWordByte(r) }) < 0 &&
		strings.IndexFunc(ext, unicode.IsLetter) >= 0 && strings.IndexFunc(base, unicode.IsPrint) >= 0
}

func isWordByte(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
}

func extension(name string) string {
	return strings.ToLower(strings.TrimPrefix(path.Ext(name), "."))
}

// readAmount reads how much is wanted: "in five sentences", "3 bullet points",
// "one-line", "under 50 words".
func (w *wishes) readAmount(text string) {
	words := lowerWords(text)
	for i, word := range words {
		switch word {
		case "bullet", "bullets", "bulleted", "bullet-point":
			w.bullets = true
		case "summarize", "summarise", "summary", "shorter", "shorten", "condense", "brief", "tldr":
			w.summary = true
		}
		n := number(word)
		if n == 0 || n > 50_000 || word == "a" && (i == 0 || words[i-1] != "in" && words[i-1] != "to" && words[i-1] != "into") {
			continue // any sentence may be "a sentence"; "in a sentence" is a wish
		}
		switch unit := amountUnit(words[i+1:], word == "a"); {
		case unit == "words":
			w.words = n
		case unit != "" && w.count == 0:
			w.count, w.summary = min(n, 20), true
			w.bullets = w.bullets || unit == "points"
		}
	}
}

// amountUnit names the unit that follows a number, at most two adjectives away.
// After "a" only a single sentence is one: "a few sentences" says no number.
func amountUnit(words []string, single bool) string {
	for i, word := range words {
		if i > 2 || single && number(word) > 0 {
			break // "a two-sentence summary": the two counts
		}
		switch word {
		case "sentence", "line":
			return "sentences"
		case "sentences", "lines":
			return unless(single, "sentences")
		case "bullet", "bullets", "point", "points", "takeaways", "takeaway", "highlights", "facts":
			return unless(single, "points")
		case "word", "words":
			return unless(single, "words")
		}
	}
	return ""
}

func unless(not bool, s string) string {
	if not {
		return ""
	}
	return s
}

var numberWords = [...]string{"one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"}

// number reads a count in digits or words, 0 if word is none.
func number(word string) int {
	switch word {
	case "a", "single":
		return 1
	case "couple":
		return 2
	}
	if i := slices.Index(numberWords[:], word); i >= 0 {
		return i + 1
	}
	if n, err := strconv.Atoi(word); err == nil && n > 0 {
		return n
	}
	return 0
}

// asksForLess says whether the text asks for a summary.
func asksForLess(text string) bool {
	var w wishes
	w.readAmount(text)
	return w.summary
}

// refersBack says whether the input is about what came before it.
func refersBack(text string) bool {
	for _, word := range lowerWords(text) {
		switch word {
		case "it", "that", "this", "them", "these", "those", "above", "previous", "again", "shorter", "same", "answer", "summary":
			return true
		}
	}
	return false
}

// lowerWords gives the words of text in lower case, split at everything that is
// not a letter or digit, of its first 64 KiB.
func lowerWords(text string) []string {
	return strings.FieldsFunc(strings.ToLower(cutBytes(text, 64<<10)), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '\''
	})
}
