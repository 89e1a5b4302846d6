package offline

import (
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// An intent is the meaning of an instruction, as far as rules can determine it.
type intent struct {
	sources   []source // to read: URLs, then attachments, then files named in the instruction
	target    string   // file for the answer, "" for none
	text      string   // text to save there unchanged, "" if the instruction contains none
	sentences int      // requested number of sentences in a summary, 0 for none
	summary   bool     // the instruction requests a shorter text
}

// A source is a page or a file to read for the answer.
type source struct {
	tool string // the tool that reads it: web_fetch or read_file
	name string // URL or path
}

// Limits of the work in one turn without a script.
const (
	maxFetches  = 5
	maxReads    = 10
	maxMentions = 100  // file names that are checked
	maxURL      = 2048 // bytes; a longer URL is ignored
)

// readIntent returns the intent of the turn's input.
func (t *turn) readIntent() *intent {
	w := &intent{}
	request, text := splitRequest(t.input)
	// URLs and file names within a text to summarize are part of that text, not of the request.
	if w.readAmount(request); !w.summary || len(text) <= longInput {
		request = t.input
		w.readAmount(request)
	}
	rest := request
	for i, url := range formed(request, "uri") {
		rest = blank(rest, url) // the last part of a URL may look like a file name
		if i < maxFetches {
			w.add("web_fetch", url)
		}
	}
	// Attachments come before file names in the text, so that the limit drops file names first.
	most := len(w.sources) + maxReads
	for _, f := range t.files {
		w.add("read_file", f.Path)
		rest = blank(rest, path.Base(f.Path)) // a name with spaces would look like several words
	}
	found := findMentions(rest)
	w.findTarget(request, found)
	for _, m := range found {
		if m.source {
			w.add("read_file", m.name)
		}
	}
	w.sources = w.sources[:min(len(w.sources), most)]
	return w
}

// blank replaces name in text by spaces, so that all positions stay the same.
func blank(text, name string) string {
	if name == "" {
		return text
	}
	return strings.ReplaceAll(text, name, strings.Repeat(" ", len(name)))
}

// add adds a source unless w already contains it.
func (w *intent) add(tool, name string) {
	s := source{tool, strings.ToValidUTF8(strings.TrimPrefix(name, "./"), "\uFFFD")}
	if s.name != "" && !slices.Contains(w.sources, s) {
		w.sources = append(w.sources, s)
	}
}

// urlPattern matches a URL and trailing punctuation.
const urlPattern pattern = "https?://[^\\s\\pC<>\"`{}|\\\\^“”\\[\\]]+"

// trimURL removes the punctuation of the surrounding text from the end of a URL. It returns
// "" if nothing is left or if the URL is too long.
func trimURL(url string) string {
	for url != "" && strings.ContainsRune(".,;:!?)]'*_", rune(url[len(url)-1])) {
		if url[len(url)-1] == ')' && strings.Count(url, "(") >= strings.Count(url, ")") {
			break // part of the URL, as in Go_(game)
		}
		url = url[:len(url)-1]
	}
	if len(url) <= len("https://") || len(url) > maxURL {
		return ""
	}
	return url
}

// A mention is a file name in the input.
type mention struct {
	name   string
	start  int  // position in the input, including its quotation mark
	source bool // the file may be read
}

// readable lists the extensions of files that may be read. Other words contain a dot, too:
// "example.com" and "e.g.".
const readable = " md markdown txt text rst adoc org tex log csv tsv json jsonl ndjson yaml yml toml ini cfg conf " +
	"env xml html htm pdf doc docx odt rtf xls xlsx ods ppt pptx eml msg ics vcf sql go py js mjs ts tsx jsx java kt rb " +
	"rs c h cpp hpp cc cs php swift sh bash ps1 css scss diff patch proto ipynb png jpg jpeg gif webp svg " +
	"mp3 wav mp4 zip gz tar "

// quotedName matches a quotation at the beginning of a text. The plain apostrophe is not
// treated as a quotation mark, because of words like "don't".
const quotedName pattern = "^(?:`[^`\n]{1,250}`|\"[^\"\n]{1,250}\"|" +
	"[“„][^”“\n]{1,250}[”“]|«[^»\n]{1,250}»|‘[^’\n]{1,250}’)"

// findMentions finds file names in text: quoted names, which may contain spaces, and single
// words.
func findMentions(text string) []mention {
	const space = " \t\n\f\r"
	unquoted := func(word string) string {
		return strings.TrimRight(strings.Trim(word, "`'\"“”„‘’«»()[]{}<>*,;:!?"), ".")
	}
	var found []mention
	rest := strings.TrimLeft(text, space)
	for ; rest != "" && len(found) < maxMentions; rest = strings.TrimLeft(rest, space) {
		word := rest
		if end := strings.IndexAny(rest, space); end >= 0 {
			word = rest[:end]
		}
		// The pattern is slow, so check the first characters before.
		if strings.ContainsAny(word[:min(len(word), 4)], "`\"“„«‘") {
			if quoted := quotedName.compiled().FindString(rest[:min(len(rest), 1024)]); isFileName(unquoted(quoted)) {
				word = quoted
			}
		}
		// A name that is not readable may still be the target.
		if name := unquoted(word); isFileName(name) {
			ext := strings.ToLower(strings.TrimPrefix(path.Ext(name), "."))
			found = append(found, mention{name, len(text) - len(rest), hasWord(readable, ext)})
		}
		rest = rest[len(word):]
	}
	return found
}

// isFileName reports whether a text looks like a file name: it has an extension of letters and
// digits, and no character that is unusual in names.
func isFileName(name string) bool {
	base := path.Base(name)
	ext := strings.TrimPrefix(path.Ext(base), ".")
	other := func(r rune) bool { return r >= utf8.RuneSelf || !unicode.IsLetter(r) && !unicode.IsDigit(r) }
	return len(ext) > 0 && len(ext) <= 8 && len(base) > len(ext)+1 && len(name) <= 250 &&
		strings.Trim(name, " ") == name && !strings.ContainsAny(name, "@\n\r\t\"`<>|*?") &&
		!strings.Contains(name, "](") && // between the two parts of a link in Markdown
		!strings.ContainsFunc(ext, other) && strings.ContainsFunc(ext, unicode.IsLetter)
}

const (
	// targetLead matches the words before a file name that make the file the target: "save TEXT
	// to", "create a file called". Its group is TEXT.
	targetLead pattern = `(?i)\b(?:write|save|put|store|export|create|produce|generate|make|copy|` +
		`convert|turn|draft)\b(?:(.*)\b(?:to|as|into|in))?` +
		`(?:\s+(?:the|an?|new|file|text|markdown|document|called|named))*` + "[\\s`\"“„«‘:]*$"
	sentenceEnd pattern = `[.!?;]\s|\n`
)

// findTarget finds the file for the answer: the last one after words such as "save it to". A
// file that is only the target is not a source.
func (w *intent) findTarget(input string, found []mention) {
	for i := len(found) - 1; i >= 0; i-- {
		start := max(found[i].start-2000, 0) // the verb is never farther away
		before := input[start:found[i].start]
		// A verb in an earlier sentence belongs to another file.
		if ends := sentenceEnd.compiled().FindAllStringIndex(before, -1); len(ends) > 0 {
			before = before[ends[len(ends)-1][1]:]
		}
		lead := targetLead.compiled().FindStringSubmatch(before)
		if lead == nil {
			continue
		}
		// An earlier mention of the same file remains a source: the file is read, then
		// replaced.
		for k := i; k < len(found); k++ {
			found[k].source = found[k].source && found[k].name != found[i].name
		}
		w.target = strings.TrimPrefix(found[i].name, "./")
		w.text = literalText(strings.TrimSpace(lead[1]), input[found[i].start:])
		// "TEXT. Save it to NAME": a request for more than that is about another text.
		points := pointing.compiled().MatchString(strings.TrimSpace(lead[1]))
		if strings.TrimSuffix(before, lead[0]) == "" && points && !w.summary {
			w.text = strings.TrimSpace(input[:found[i].start-len(before)])
		}
		return
	}
}

const (
	quotation  pattern = "`([^`]+)`|\"([^\"]+)\"|“([^”]+)”|„([^“]+)“|«([^»]+)»|‘([^’]+)’"
	containing pattern = `(?i)\s(?:with the (?:content|text)|containing|that says|saying)\s+(.+)`
	pointing   pattern = `(?i)^(?:it|this|that)$`
	// describing matches the beginning of a phrase that refers to another text, such as "the
	// answer".
	describing pattern = `(?i)^(?:an?|the|it|its|this|that|them|these|those|your|my|our|his|her|their|all|` +
		`every|each|some|any|down|up|out|me|us|answers?|results?|summary|report|output|data|everything|what|which|` +
		`how|one|two|three|four|five|six|seven|eight|nine|ten|\d\S*)\b`
)

// literalText returns the text that an instruction contains for saving, "" for none: "write
// TEXT to NAME", "create NAME containing TEXT". object is the text between the verb and the
// name, and after begins with the name.
func literalText(object, after string) string {
	line, _, _ := strings.Cut(after, "\n")
	// A text after the name is explicit, so it has priority over a text before the name.
	if m := containing.compiled().FindStringSubmatch(line); m != nil {
		if quoted := quotedText(m[1]); quoted != "" {
			return quoted
		}
		return strings.TrimRight(m[1], ".")
	}
	if quoted := quotedText(object); quoted != "" {
		return quoted
	}
	words := strings.Fields(object)
	named := func(word string) bool { return isFileName(strings.Trim(word, ",.`\"")) }
	// A long phrase describes a task, and is not the text to save.
	if len(words) > 12 || describing.compiled().MatchString(object) || slices.ContainsFunc(words, named) {
		return ""
	}
	return strings.Join(words, " ")
}

// quotedText returns the first text in quotation marks that is not a file name.
func quotedText(text string) string {
	for _, m := range quotation.compiled().FindAllStringSubmatch(text, 20) {
		if inside := strings.Join(m[1:], ""); strings.TrimSpace(inside) != "" && !isFileName(inside) {
			return inside
		}
	}
	return ""
}

const (
	// amountPattern matches "five sentences", "3 key points", "two-sentence".
	amountPattern pattern = `(?i)\b(in a|one|single|two|three|four|five|six|seven|eight|nine|ten|\d{1,3})` +
		`(?:[- ](?:key|main|short|bullet|brief|clear))*[- ](?:sentence|line|bullet|point|takeaway)`
	lessPattern pattern = `(?i)\b(?:summari[sz]e|summary|shorter|shorten|condense|brief|` +
		`tl;?dr|sum (?:it|this|that|up))\b`
)

// A text that matches amountPattern or lessPattern contains one of these words. A text may have
// a megabyte, and searching for words is much faster than matching a pattern.
const (
	amountWords = "sentence line bullet point takeaway"
	lessWords   = "sum shorte condense brief tldr tl;dr"
)

// mayMatch reports whether lower, a text in lower case, contains one of the words that a
// pattern needs.
func mayMatch(lower, words string) bool {
	return slices.ContainsFunc(strings.Fields(words), func(word string) bool { return strings.Contains(lower, word) })
}

// readAmount sets the requested length: "a summary", "in five sentences".
func (w *intent) readAmount(text string) {
	// Case-insensitive regular expressions match the long s with an s; ToLower does not convert
	// it.
	lower := strings.ReplaceAll(strings.ToLower(text), "ſ", "s")
	w.summary = w.summary || mayMatch(lower, lessWords) && lessPattern.compiled().MatchString(text)
	if w.sentences > 0 || !mayMatch(lower, amountWords) {
		return
	}
	m := amountPattern.compiled().FindStringSubmatch(text)
	if m == nil {
		return
	}
	n, err := strconv.Atoi(m[1])
	if err != nil {
		numbers := strings.Fields("one two three four five six seven eight nine ten")
		n = max(slices.Index(numbers, strings.ToLower(m[1]))+1, 1) // "in a" and "single" mean one
	}
	if n > 0 {
		w.sentences, w.summary = min(n, 20), true
	}
}
