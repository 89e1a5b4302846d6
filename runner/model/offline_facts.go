package model

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// maxFacts bounds how much text fields are looked for in, in bytes.
const maxFacts = 64 << 10

// facts is a text in which the fields of a schema are looked for.
type facts struct {
	input string // what was asked
	read  string // what was read for it
	all   string // both
	lower string // all in lower case, byte for byte as long

	soleText   bool // the field being filled is the only one of free text
	soleNumber bool // and the only number
}

func newFacts(input, read string) *facts {
	all := cutBytes(strings.TrimSpace(input+"\n"+read), maxFacts)
	return &facts{input: input, read: strings.TrimSpace(read), all: all, lower: lowerASCII(all)}
}

// lowerASCII lowers the letters A to Z, so that places in it are places in s.
func lowerASCII(s string) string {
	b := []byte(s)
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}

// of gives the facts about a part: the line or lines that its label stands
// before, if there is such a label, else all of them.
func (f *facts) of(name string) *facts {
	sub := *f
	if text, ok := f.label(name); ok && strings.ContainsAny(text, ":=") {
		sub = *newFacts(text, "")
	}
	return &sub
}

func (f *facts) alone(texts, numbers int) *facts {
	sub := *f
	sub.soleText, sub.soleNumber = texts == 1, numbers == 1
	return &sub
}

// nameWords cuts a field's name into its words: dueDate, due_date and "Due date"
// are the same two.
func nameWords(name string) []string {
	var spaced strings.Builder
	before := ' '
	for _, r := range cutBytes(name, 100) {
		if unicode.IsUpper(r) && unicode.IsLower(before) {
			spaced.WriteByte(' ')
		}
		spaced.WriteRune(r)
		before = r
	}
	return lowerWords(strings.ReplaceAll(spaced.String(), "_", " "))
}

// places gives where the name stands as words in the text, at most ten times.
// extra is how long the match is.
func (f *facts) places(name string) (ends [][2]int) {
	words := nameWords(name)
	if len(words) == 0 {
		return nil
	}
	for _, glue := range []string{" ", "_", "-", ""} {
		label := strings.Join(words, glue)
		for at := 0; len(ends) < 10; {
			i := strings.Index(f.lower[at:], label)
			if i < 0 {
				break
			}
			start, end := at+i, at+i+len(label)
			if at = end; f.edge(start, end) {
				ends = append(ends, [2]int{start, end})
			}
		}
		if len(words) == 1 {
			break
		}
	}
	return ends
}

// edge says whether neither side of a match goes on with the same word.
func (f *facts) edge(start, end int) bool {
	before, _ := utf8.DecodeLastRuneInString(f.all[:start])
	after, _ := utf8.DecodeRuneInString(f.all[end:])
	return !wordRune(before) && !wordRune(after)
}

// label gives what stands behind "name:", "name =" or "name is".
func (f *facts) label(name string) (string, bool) {
	for _, place := range f.places(name) {
		rest := strings.TrimLeft(cutBytes(f.all[place[1]:], 2000), "\"'`*_)")
		rest = strings.TrimLeft(rest, " \t")
		if len(rest) > 1 && (rest[0] == ':' || rest[0] == '=') && !strings.HasPrefix(rest, "://") {
			if value := labelValue(rest[1:]); value != "" {
				return value, true
			}
			continue
		}
		for _, verb := range []string{"is ", "are ", "was "} {
			if said, ok := strings.CutPrefix(rest, verb); ok {
				return spokenValue(said), true
			}
		}
	}
	return "", false
}

// labelValue cuts a value off at its end: the closing quotation mark, the line,
// the sentence, or the next label.
func labelValue(rest string) string {
	rest = strings.TrimLeft(rest, " \t*_")
	if len(rest) > 1 && strings.ContainsRune("\"'`", rune(rest[0])) {
		if i := strings.IndexByte(rest[1:], rest[0]); i >= 0 {
			return rest[1 : 1+i]
		}
	}
	rest, _ = nextLine(rest, 0)
	rest, _, _ = strings.Cut(rest, ";")
	for at := 0; ; {
		i := strings.Index(rest[at:], ", ")
		if i < 0 {
			break
		}
		at += i
		if next, _, found := strings.Cut(rest[at+2:], ":"); found && len(strings.Fields(next)) <= 3 && !strings.Contains(next, ",") {
			rest = rest[:at]
			break
		}
		at += 2
	}
	if sentences := splitSentences(rest); len(sentences) > 1 {
		rest = sentences[0]
	}
	return strings.TrimRight(strings.TrimSpace(rest), ".,*_}")
}

// spokenValue cuts the value of "the colour is deep red, and ..." off.
func spokenValue(rest string) string {
	rest, _ = nextLine(rest, 0)
	if sentences := splitSentences(rest); len(sentences) > 0 {
		rest = sentences[0]
	}
	for _, stop := range []string{", ", " and ", " but ", " with "} {
		rest, _, _ = strings.Cut(rest, stop)
	}
	rest = strings.TrimRight(strings.TrimSpace(rest), ".!?,")
	for _, article := range []string{"a ", "an ", "the "} {
		rest = strings.TrimPrefix(rest, article)
	}
	return strings.Trim(rest, "\"'`")
}

// find gives where a value of an enum is named, at -1 if it is not.
func (f *facts) find(v any) (at, size int) {
	text, ok := v.(string)
	if !ok || strings.TrimSpace(text) == "" {
		if n, isNumber := v.(json.Number); isNumber {
			text = string(n)
		} else {
			return -1, 0
		}
	}
	for _, form := range []string{lowerASCII(text), strings.Join(nameWords(text), " ")} {
		for from := 0; form != ""; {
			i := strings.Index(f.lower[from:], form)
			if i < 0 {
				break
			}
			if from += i; f.edge(from, from+len(form)) {
				return from, len(form)
			}
			from += len(form)
		}
	}
	return -1, 0
}

func (f *facts) mentions(v any) bool {
	at, _ := f.find(v)
	return at >= 0
}

// boolean says whether the text speaks of the thing, and does not deny it.
func (f *facts) boolean(name string) (any, bool) {
	if label, ok := f.label(name); ok {
		switch word, _, _ := strings.Cut(strings.ToLower(label), " "); strings.Trim(word, ".,!") {
		case "yes", "true", "on", "1":
			return true, true
		case "no", "false", "off", "0", "not":
			return false, true
		}
	}
	words := nameWords(name)
	for len(words) > 1 && hasWord(" is has have can should was are ", words[0]) {
		words = words[1:]
	}
	places := f.places(strings.Join(words, " "))
	if len(places) == 0 {
		return false, false
	}
	start := places[0][0]
	before := lowerWords(f.all[max(0, start-30):start])
	for _, word := range before[max(0, len(before)-3):] {
		if word == "not" || word == "no" || word == "never" || word == "without" || strings.HasSuffix(word, "n't") {
			return false, true
		}
	}
	return true, true
}

// Patterns of things that are recognised by their form.
var (
	emailPattern  = regexp.MustCompile(`[A-Za-z0-9][A-Za-z0-9._%+-]*@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,}`)
	uuidPattern   = regexp.MustCompile(`\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b`)
	ipv4Pattern   = regexp.MustCompile(`\b\d{1,3}(?:\.\d{1,3}){3}\b`)
	phonePattern  = regexp.MustCompile(`(?:\+|\b0)\d[\d ()/-]{5,}\d`)
	timePattern   = regexp.MustCompile(`\b(?:[01]\d|2[0-3]):[0-5]\d(?::[0-5]\d)?\b`)
	momentPattern = regexp.MustCompile(`\b\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:\d{2})?`)
	datePattern   = regexp.MustCompile(`\b(?:\d{4}-\d{2}-\d{2}|\d{1,2}\.\d{1,2}\.\d{4}|\d{1,2}(?:st|nd|rd|th)?\.? (?:of )?[A-Z][a-z]{2,8}\.?,? \d{4}|[A-Z][a-z]{2,8}\.? \d{1,2}(?:st|nd|rd|th)?,? \d{4})\b`)
	namePattern   = regexp.MustCompile(`(?:[Nn]ame is|[Nn]amed|[Cc]alled|I am|I'm|Contact|Dear|Mr\.?|Mrs\.?|Ms\.?|Dr\.?) ((?:\p{Lu}[\p{L}'-]+)(?: \p{Lu}[\p{L}'-]+){0,2})`)
	pairPattern   = regexp.MustCompile(`\b(\p{Lu}\p{Ll}+ \p{Lu}\p{Ll}+)\b`)
	numberPattern = regexp.MustCompile(`[-+]?\d+(?:,\d{3})*(?:\.\d+)?`)
	codePattern   = regexp.MustCompile(`^[\s:#no.]*([A-Za-z]*[-/]?\d[A-Za-z0-9/_.-]*)`)
)

// formed gives the texts of a format, each once, in the format's own notation.
func (f *facts) formed(format string) []string {
	var found []string
	seen := map[string]bool{}
	add := func(text string) {
		if text != "" && !seen[text] && len(found) < maxItems {
			seen[text] = true
			found = append(found, text)
		}
	}
	switch format {
	case "email", "idn-email":
		addAll(emailPattern, f.all, add)
	case "uri", "iri", "uri-reference":
		var w wishes
		w.findURLs(f.all)
		for _, url := range w.urls {
			add(url)
		}
	case "date":
		for _, text := range datePattern.FindAllString(f.all, maxItems) {
			add(isoDate(text))
		}
	case "date-time":
		for _, text := range momentPattern.FindAllString(f.all, maxItems) {
			add(isoMoment(text))
		}
		for _, day := range f.formed("date") {
			add(day + "T00:00:00Z")
		}
	case "time":
		for _, text := range timePattern.FindAllString(f.all, maxItems) {
			add((text + ":00")[:8] + "Z")
		}
	case "uuid":
		addAll(uuidPattern, f.all, add)
	case "ipv4":
		addAll(ipv4Pattern, f.all, add)
	case "phone":
		addAll(phonePattern, f.all, add)
	}
	return found
}

func addAll(pattern *regexp.Regexp, text string, add func(string)) {
	for _, match := range pattern.FindAllString(text, maxItems) {
		add(match)
	}
}

// isoDate turns a date as people write it into YYYY-MM-DD, "" if it is none.
func isoDate(text string) string {
	text = strings.NewReplacer(",", "", "of ", "").Replace(text)
	for _, ending := range []string{"st ", "nd ", "rd ", "th "} {
		if i := strings.Index(text, ending); i > 0 && text[i-1] >= '0' && text[i-1] <= '9' {
			text = text[:i] + text[i+2:]
		}
	}
	for _, layout := range []string{
		time.DateOnly, "2.1.2006", "2 January 2006", "2 Jan 2006", "2. January 2006", "2 Jan. 2006",
		"January 2 2006", "Jan 2 2006", "Jan. 2 2006",
	} {
		if day, err := time.Parse(layout, text); err == nil {
			return day.Format(time.DateOnly)
		}
	}
	return ""
}

// isoMoment turns a date and time into RFC 3339; without a zone it is UTC.
func isoMoment(text string) string {
	text = strings.Replace(text, " ", "T", 1)
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04Z07:00", "2006-01-02T15:04:05", "2006-01-02T15:04"} {
		if at, err := time.Parse(layout, text); err == nil {
			return at.Format(time.RFC3339)
		}
	}
	return ""
}

// numbersFor gives the numbers that may be the field's, the likeliest first: the
// one behind its label, the one next to its name, the only one there is.
func (f *facts) numbersFor(name string) []json.Number {
	var found []json.Number
	if label, ok := f.label(name); ok {
		found = append(found, numbersIn(label)...)
	}
	for _, form := range []string{name, singular(name), name + "s"} {
		for _, place := range f.places(form) {
			after, _ := nextLine(cutBytes(f.all[place[1]:], 40), 0)
			before := f.all[max(0, place[0]-16):place[0]]
			if loc := numberPattern.FindStringIndex(after); loc != nil && len(strings.Fields(after[:loc[0]])) <= 2 {
				found = append(found, numbersIn(after[loc[0]:loc[1]])...)
			}
			if near := strings.Fields(before); len(near) > 0 && strings.HasSuffix(before, " ") {
				found = append(found, numbersIn(near[len(near)-1])...)
			}
		}
	}
	if len(found) > 0 {
		return found
	}
	all := numbersIn(f.input)
	switch strings.ToLower(name) {
	case "quantity", "qty", "count", "amount", "":
		return all // the first is likeliest: "2 apples at 1.50"
	}
	if f.soleNumber && len(all) == 1 {
		return all
	}
	return nil
}

// numbersIn gives the numbers of a text, and small ones written as words.
func numbersIn(text string) []json.Number {
	var found []json.Number
	for _, match := range numberPattern.FindAllString(cutBytes(text, maxFacts), maxItems) {
		n := strings.TrimPrefix(strings.ReplaceAll(match, ",", ""), "+")
		negative := strings.HasPrefix(n, "-")
		n = strings.TrimLeft(strings.TrimPrefix(n, "-"), "0")
		if n == "" || n[0] == '.' {
			n = "0" + n
		}
		if negative {
			n = "-" + n
		}
		found = append(found, json.Number(n))
	}
	if found == nil {
		if word := strings.ToLower(strings.TrimSpace(text)); word != "a" && number(word) > 0 {
			found = append(found, json.Number(fmt.Sprint(number(word))))
		}
	}
	return found
}
