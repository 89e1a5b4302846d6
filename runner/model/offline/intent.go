package offline

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"journeyman/store/pattern"
)

// An intent is the meaning of an instruction, as far as rules can determine it.
type intent struct {
	sources   []source // to read: URLs, then attachments, then files named in the instruction
	target    string   // file for the answer, "" for none
	text      string   // text to save there unchanged, "" if the instruction contains none
	sentences int      // number of sentences to quote from each text
}

// A source is a page or a file to read for the answer.
type source struct {
	tool string // the tool that reads it: web_fetch or read_file
	name string // URL or path
}

// Limits of the work in one turn without a script.
const (
	maxFetches   = 5
	maxReads     = 10
	maxRequest   = 2000 // bytes of an input that are searched for names; the rest is a text
	maxSentences = 20
)

const (
	// urlPattern matches a URL and trailing punctuation.
	urlPattern pattern.Pattern = "https?://[^\\s\\pC<>\"`{}|\\\\^“”\\[\\]]+"
	// fileName matches the name of a file that can be read. Other words contain a dot, too.
	fileName pattern.Pattern = "(?i)(?:^|[\\s\"'`“„«(\\[])((?:[\\pL\\pN_.-]+/)*[\\pL\\pN_.-]+\\.(?:md|markdown|txt|text|rst|" +
		"log|csv|tsv|json|jsonl|ya?ml|toml|ini|xml|html?|pdf|docx?|odt|rtf|xlsx?|ods|pptx?|eml|ics|vcf|sql|go|py|js|ts|" +
		"java|rb|rs|c|h|cpp|sh|css|diff|ipynb|png|jpe?g|gif|webp|svg|zip))\\b"
	// saving matches "save TEXT to NAME" and "create NAME" within a sentence. Its groups are TEXT
	// and NAME.
	saving pattern.Pattern = `(?i)\b(?:write|save|put|store|export|create|make|turn|convert|copy)\b` +
		`(?:((?:[^.!?;\n]|[.!?;]\S)*)\b(?:to|as|into|in)\b)?(?:\s+(?:the|an?|new|file|called|named))*` +
		"\\s+[\"'`“]?((?:[\\pL\\pN_.-]+/)*[\\pL\\pN_.-]*[\\pL\\pN_-]\\.\\pL[\\pL\\pN]{0,7})\\b"
	quotation pattern.Pattern = "`([^`]+)`|\"([^\"]+)\"|“([^”]+)”|„([^“]+)“|«([^»]+)»"
	// describing matches the beginning of a phrase that is not itself the text to save, such as
	// "the answer".
	describing pattern.Pattern = `(?i)^(?:$|(?:an?|the|its?|this|that|them|these|those|your|my|our|all|every|each|some|any|` +
		`everything|one|two|three|four|five|six|seven|eight|nine|ten|\d\S*)\b)`
	// amount matches "five sentences", "3 key points", "two-sentence".
	amount pattern.Pattern = `(?i)\b(an?|one|single|two|three|four|five|six|seven|eight|nine|ten|\d{1,3})` +
		`[- ](?:(?:short|key|main|bullet)[- ])?(?:sentence|line|bullet|point)`
)

// readIntent returns the intent of the turn's input.
func (t *turn) readIntent() *intent {
	input := cutBytes(strings.TrimSpace(t.input), maxRequest)
	// Names within a text that the request introduces belong to that text.
	if request, _, ok := strings.Cut(input, ":\n"); ok {
		input = request
	}
	w := &intent{sentences: sentenceCount(input)}
	rest := input
	for _, url := range urlPattern.Compiled().FindAllString(input, maxFetches) {
		rest = strings.ReplaceAll(rest, url, " ") // the last part of a URL may look like a file name
		w.add("web_fetch", trimURL(url))
	}
	most := len(w.sources) + maxReads
	for _, f := range t.files {
		w.add("read_file", f.Path)
		rest = strings.ReplaceAll(rest, path.Base(f.Path), " ") // a name with spaces looks like several words
	}
	w.findTarget(input)
	for _, m := range fileName.Compiled().FindAllStringSubmatch(rest, -1) {
		// A file that is named once, as the target, is no source.
		if name := strings.TrimPrefix(m[1], "./"); name != w.target || strings.Count(rest, name) > 1 {
			w.add("read_file", name)
		}
	}
	w.sources = w.sources[:min(len(w.sources), most)]
	return w
}

// add adds a source unless w already contains it.
func (w *intent) add(tool, name string) {
	s := source{tool, strings.ToValidUTF8(name, "\uFFFD")}
	if s.name != "" && !slices.Contains(w.sources, s) {
		w.sources = append(w.sources, s)
	}
}

// trimURL removes the punctuation of the surrounding text from the end of a URL.
func trimURL(url string) string {
	for strings.ContainsRune(".,;:!?)]'*_", rune(url[len(url)-1])) {
		if url[len(url)-1] == ')' && strings.Count(url, "(") >= strings.Count(url, ")") {
			break // part of the URL, as in Go_(game)
		}
		url = url[:len(url)-1]
	}
	return url
}

// findTarget finds the file for the answer, and the text to save in it.
func (w *intent) findTarget(input string) {
	all := saving.Compiled().FindAllStringSubmatchIndex(input, -1)
	if len(all) == 0 {
		return
	}
	at := all[len(all)-1]
	object := ""
	if at[2] >= 0 {
		object = strings.TrimSpace(input[at[2]:at[3]])
	}
	w.target = strings.TrimPrefix(input[at[4]:at[5]], "./")
	before := strings.TrimRight(input[:at[0]], " \t")
	quoted := quotation.Compiled().FindStringSubmatch(object)
	switch {
	case quoted != nil:
		w.text = strings.Join(quoted[1:], "")
	// "TEXT. Save it to NAME": the verb begins its sentence.
	case strings.EqualFold(object, "it") && strings.TrimRight(before, ".!?:\n") != before:
		w.text = strings.TrimSpace(before)
	case !describing.Compiled().MatchString(object):
		w.text = object
	}
}

// sentenceCount returns the number of sentences that an input requests, else the default.
func sentenceCount(input string) int {
	m := amount.Compiled().FindStringSubmatch(input)
	if m == nil {
		return defaultSentences
	}
	n, err := strconv.Atoi(m[1])
	if err != nil {
		numbers := strings.Fields("one two three four five six seven eight nine ten")
		n = slices.Index(numbers, strings.ToLower(m[1])) + 1 // "a" and "single" mean one
	}
	return min(max(n, 1), maxSentences)
}
