package offline

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// maxSourceText is the maximum length of a text that is searched for fields, in bytes.
const maxSourceText = 16 << 10

// sourceText is a text that is searched for the values of a schema's fields.
type sourceText struct {
	input string // the instruction
	read  string // the documents that were read for the instruction
	all   string // both
	sole  string // name of the only free text field
	whole bool   // the text is one item of a list: the whole text may be the value
}

func newSourceText(input, read string) sourceText {
	input, read = strings.TrimSpace(input), strings.TrimSpace(read)
	return sourceText{input: input, read: read, all: cutBytes(strings.TrimSpace(input+"\n"+read), maxSourceText)}
}

// innerCapital matches the position where a word begins within a name such as dueDate.
const innerCapital pattern = `(\p{Ll})(\p{Lu})`

// nameWords returns the words of a field's name: dueDate, due_date and "Due date" have the same
// two words.
func nameWords(name string) []string {
	return lowerWords(innerCapital.compiled().ReplaceAllString(cutBytes(name, 100), "$1 $2"))
}

// match finds the words of a field's name in the text, followed by the pattern after. It
// returns the text of the pattern's group, or the whole match if the pattern has no group. A
// match with an empty group does not count.
func (f sourceText) match(name, after string) (group string, ok bool) {
	words := nameWords(name)
	if len(words) == 0 || !strings.Contains(strings.ToLower(f.all), words[0]) {
		return "", false // avoids the slow search
	}
	for i, word := range words {
		// The schema's author chooses the names, which may contain special characters.
		words[i] = regexp.QuoteMeta(word)
	}
	label := regexp.MustCompile(`(?im)(?:^|[^\pL\pN_])` + strings.Join(words, `[ _-]?`) + after)
	for _, m := range label.FindAllStringSubmatch(f.all, 10) {
		if group = strings.TrimSpace(m[len(m)-1]); group != "" {
			return group, true
		}
	}
	return "", false
}

// label returns the value after "name:" or "name =". A slash after the colon is part of a URL.
func (f sourceText) label(name string) (string, bool) {
	value, ok := f.match(name, "[\"'`*_)]*[ \\t]*[:=][ \\t*_]*([^ \\t/].*)")
	return labelValue(value), ok
}

// nextLabel matches the label that follows a value on the same line: ", city:".
const nextLabel pattern = `, [^,:]{1,40}:`

// labelValue cuts a value at its end: the closing quotation mark, the next label or the end of
// the sentence.
func labelValue(rest string) string {
	if rest != "" && strings.ContainsRune("\"'`", rune(rest[0])) {
		if i := strings.IndexByte(rest[1:], rest[0]); i >= 0 {
			return rest[1 : 1+i]
		}
	}
	rest, _, _ = strings.Cut(rest, ";")
	if loc := nextLabel.compiled().FindStringIndex(rest); loc != nil {
		rest = rest[:loc[0]]
	}
	return strings.TrimRight(firstSentence(rest), ".,*_} ")
}

// mentions reports whether the text contains a value of an enum.
func (f sourceText) mentions(v any) bool {
	_, ok := f.match(fmt.Sprint(v), `(?:$|[^\pL\pN_])`) // to the end of its last word
	return ok
}

// choose returns the enum value after the field's label, else the first one that the text
// mentions.
func (f sourceText) choose(name string, list []any) (any, bool) {
	label, _ := f.label(name)
	i := slices.IndexFunc(list, func(v any) bool { return strings.EqualFold(label, fmt.Sprint(v)) })
	if i < 0 {
		i = slices.IndexFunc(list, f.mentions)
	}
	if i < 0 {
		return nil, false
	}
	return list[i], true
}

// boolean returns the value after the field's label. Without a label, it returns true if the
// text mentions the field.
func (f sourceText) boolean(name string) (v any, found bool) {
	label, _ := f.label(name)
	switch word := strings.ToLower(label); word {
	case "yes", "true", "no", "false":
		return word == "yes" || word == "true", true
	}
	found = f.mentions(strings.TrimPrefix(name, "is"))
	return found, found
}

// formOf returns the pattern for values of a format that can be recognized by their form, else
// "".
func formOf(format string) pattern {
	switch format {
	case "email":
		return `[A-Za-z0-9][A-Za-z0-9._%+-]*@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,}`
	case "uuid":
		return `\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b`
	case "ipv4":
		return `\b\d{1,3}(?:\.\d{1,3}){3}\b`
	case "uri":
		return urlPattern
	case "date-time":
		return `\b\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(?::\d{2})?(?:Z|[+-]\d{2}:\d{2})?`
	case "date":
		return `\b(?:\d{4}-\d{2}-\d{2}|\d{1,2}\.\d{1,2}\.\d{4}|` +
			`\d{1,2} [A-Z][a-z]{2,8} \d{4}|[A-Z][a-z]{2,8} \d{1,2}(?:st|nd|rd|th)?, \d{4})\b`
	case "number":
		return `[-+]?\d+(?:,\d{3})*(?:\.\d+)?`
	}
	return ""
}

// ordinal matches the day in "May 3rd".
const ordinal pattern = `(\d)(?:st|nd|rd|th)\b`

// formed returns the values of a format in a text, each once, in the format's notation.
func formed(text, format string) []string {
	form := formOf(format)
	if form == "" {
		return nil
	}
	var found []string
	for _, value := range form.compiled().FindAllString(text, maxItems) {
		switch {
		case format == "uri":
			value = trimURL(value)
		case format == "number":
			value = strings.TrimPrefix(strings.ReplaceAll(value, ",", ""), "+")
		case format == "date":
			value = dateIn(ordinal.compiled().ReplaceAllString(value, "$1"),
				time.DateOnly, "2.1.2006", "2 January 2006", "2 Jan 2006", "January 2, 2006", "Jan 2, 2006")
		case format == "date-time":
			value = dateIn(strings.Replace(value, " ", "T", 1),
				time.RFC3339, "2006-01-02T15:04Z07:00", "2006-01-02T15:04:05", "2006-01-02T15:04")
		}
		if value != "" && !slices.Contains(found, value) {
			found = append(found, value)
		}
	}
	return found
}

// dateIn parses a date or time by the first matching layout, and returns "" if none matches. A
// time without a zone is UTC.
func dateIn(text string, layouts ...string) string {
	for _, layout := range layouts {
		if at, err := time.Parse(layout, text); err == nil {
			return at.Format(layouts[0])
		}
	}
	return ""
}

// numbers returns possible values of a numeric field: those after its label, or the only number
// of the input.
func (f sourceText) numbers(name string) []any {
	label, _ := f.label(name)
	found := formed(label, "number")
	if all := formed(f.input, "number"); len(found) == 0 && len(all) == 1 {
		found = all
	}
	var values []any
	for _, n := range found {
		values = append(values, json.Number(n))
	}
	return values
}

// kindOf returns the kind of a field's content, from the last word of its name. It is used if
// the schema has no format.
func kindOf(name string) string {
	words := nameWords(name)
	if len(words) == 0 {
		return ""
	}
	switch strings.TrimSuffix(words[len(words)-1], "s") {
	case "email", "mail":
		return "email"
	case "url", "link", "website":
		return "uri"
	case "date", "deadline", "due":
		return "date"
	case "title", "headline", "subject":
		return "title"
	case "point", "highlight", "sentence", "finding":
		return "sentences"
	case "instruction":
		return "instructions"
	case "summary", "description", "text", "content", "answer", "message", "output", "result", "reply",
		"note", "reason":
		return "excerpt"
	}
	return ""
}

// texts returns possible values of a string field, the most probable first.
func (f sourceText) texts(name string, s map[string]any) []any {
	most := limitOf(s["maxLength"], 2000)
	format, _ := s["format"].(string)
	var found []string
	if label, ok := f.label(name); ok {
		found = append(formed(label, format), label)
	}
	switch kind := cmp.Or(format, kindOf(name)); {
	case s["pattern"] != nil:
		words := strings.FieldsFunc(f.all, func(r rune) bool { return strings.ContainsRune(" \t\r\n,;()[]{}\"'`", r) })
		for _, word := range words[:min(len(words), 200)] {
			found = append(found, strings.TrimRight(word, ".:!?"))
		}
	case kind == "title":
		found = append(found, headline(f.text(), min(most, 80)))
	case kind == "instructions":
		found = append(found, cutRunes(instructionsFor(f.input), max(most, 1)))
	case kind == "excerpt":
		found = append(found, f.excerpt(most))
	default:
		found = append(found, formed(f.all, kind)...)
	}
	if f.whole || name != "" && name == f.sole {
		found = append(found, f.excerpt(most))
	}
	var values []any
	for _, text := range found {
		values = append(values, text)
	}
	return values
}

// text returns the documents, or the input if no document was read.
func (f sourceText) text() string { return cmp.Or(f.read, f.input) }

// excerpt quotes the documents, or else the input. A short text is quoted completely.
func (f sourceText) excerpt(most int) string {
	text := f.text()
	if len(text) > longInput || strings.Contains(text, "\n\n") {
		if chosen := pickSentences(text, true, defaultSentences); len(chosen) > 0 {
			text = strings.Join(chosen, " ")
		}
	}
	return shorten(text, most)
}

const listMark pattern = `(?m)^\s*(?:[-*+•]|\d{1,9}[.)])\s+(.+?)\s*$`

// list returns the items for a field that is a list: those after its label, the values of its
// format, or the items of lists in the text.
func (f sourceText) list(name, format string) []string {
	var items []string
	label, labelled := f.label(name)
	kind := cmp.Or(format, kindOf(name))
	switch {
	case labelled:
		parts := strings.NewReplacer(" and ", ",", ";", ",", "|", ",", "[", "", "]", "").Replace(label)
		for part := range strings.SplitSeq(parts, ",") {
			items = append(items, strings.Trim(part, " \t\"'`."))
		}
	case kind == "sentences":
		items = pickSentences(f.text(), true, defaultSentences)
	case formOf(kind) != "":
		items = formed(f.all, kind)
	default:
		for _, m := range listMark.compiled().FindAllStringSubmatch(f.all, maxItems) {
			items = append(items, m[1])
		}
	}
	var once []string // many schemas require unique items
	for _, item := range items[:min(len(items), maxItems)] {
		if item != "" && !slices.Contains(once, item) {
			once = append(once, item)
		}
	}
	return once
}

// headline returns a title of at most n characters: the first content words of a text.
func headline(text string, n int) string {
	words := contentWords(firstSentence(text))
	words = words[:min(len(words), 6)]
	for i, word := range words {
		_, size := utf8.DecodeRuneInString(word)
		words[i] = strings.ToUpper(word[:size]) + word[size:]
	}
	title := strings.TrimSuffix(shorten(strings.Join(words, " "), n), "…")
	return cmp.Or(title, cutRunes("Worker", n))
}

// instructionsFor converts the description of a worker into instructions.
func instructionsFor(description string) string {
	text := strings.TrimRight(strings.TrimSpace(description), " .!") + "."
	switch first, _, _ := strings.Cut(strings.ToLower(text), " "); first {
	case "you":
	case "a", "an", "the":
		text = "You are " + strings.ToLower(text[:1]) + text[1:]
	default:
		text = "You are a worker with this task: " + text
	}
	return text + "\n\nWork only from what you are given or find with your tools. " +
		"Say plainly what is missing or uncertain. Keep the answer short and to the point."
}
