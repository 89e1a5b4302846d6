package model

import "strings"

// meanings says what a field is by the last word of its name.
var meanings = map[string]string{
	"email": "email", "mail": "email", "url": "uri", "link": "uri", "website": "uri", "homepage": "uri", "uri": "uri", "href": "uri",
	"phone": "phone", "telephone": "phone", "mobile": "phone", "date": "date", "day": "date", "deadline": "date", "due": "date", "birthday": "date",
	"title": "title", "headline": "title", "subject": "title", "heading": "title",
	"summary": "excerpt", "abstract": "excerpt", "description": "excerpt", "text": "excerpt", "body": "excerpt", "content": "excerpt",
	"answer": "excerpt", "message": "excerpt", "output": "excerpt", "response": "excerpt", "result": "excerpt", "reply": "excerpt",
	"notes": "excerpt", "note": "excerpt", "comment": "excerpt", "explanation": "excerpt", "reason": "excerpt", "conclusion": "excerpt",
	"input": "input", "question": "input", "prompt": "input", "query": "input", "request": "input", "instruction": "input",
	"id": "code", "number": "code", "no": "code", "code": "code", "reference": "code", "ref": "code", "version": "code",
}

// textsFor gives the strings that may be the field's, the likeliest first.
func (f *facts) textsFor(name string, rule textRule) []string {
	var found []string
	if label, ok := f.label(name); ok {
		found = append(found, label)
		found = append(found, newFacts(label, "").formed(rule.format)...) // "due: 3 May 2026"
	}
	found = append(found, f.formed(rule.format)...)
	words := nameWords(name)
	if len(words) > 0 && rule.format == "" {
		found = append(found, f.meant(words, rule.most)...)
	}
	if rule.pattern != nil {
		found = append(found, strings.FieldsFunc(f.all, func(r rune) bool { return strings.ContainsRune(" \t\r\n,;()[]{}\"'`", r) })...)
		for i, word := range found {
			found[i] = strings.TrimRight(word, ".:!?")
		}
		return found
	}
	if f.soleText && !rule.fallback && rule.format == "" && len(words) > 0 {
		found = append(found, f.excerpt(rule.most))
	}
	return found
}

// meant gives what the name of a field usually means.
func (f *facts) meant(words []string, most int) []string {
	last := words[len(words)-1]
	switch meaning := meanings[last]; meaning {
	case "title":
		return []string{headline(f.subject(), min(most, 80))}
	case "excerpt":
		return []string{f.excerpt(most)}
	case "input":
		return []string{shorten(f.input, min(most, 2000))}
	case "code":
		return f.codes(words)
	case "":
	default:
		return f.formed(meaning)
	}
	const persons = " full first last given family person customer author contact client user recipient sender "
	if last == "name" && (len(words) == 1 || hasWord(persons, words[0])) {
		return f.personName(words[0])
	}
	return nil
}

// subject is the text that the request is about: what was read, else the input.
func (f *facts) subject() string {
	if f.read != "" {
		return f.read
	}
	return f.input
}

// excerpt quotes the subject, whole if it is short.
func (f *facts) excerpt(most int) string {
	text := f.subject()
	if len(text) > longInput || strings.Contains(text, "\n\n") {
		if chosen := pickSentences(readText(text, true), defaultCount, nil); len(chosen) > 0 {
			text = strings.Join(chosen, " ")
		}
	}
	return shorten(text, min(most, 2000))
}

// codes gives what stands behind the name and has a digit: "order 4711", "invoice
// no. INV-7". The last word of the name may be left out in the text.
func (f *facts) codes(words []string) []string {
	var found []string
	for _, name := range []string{strings.Join(words, " "), strings.Join(words[:max(1, len(words)-1)], " ")} {
		for _, place := range f.places(name) {
			if match := codePattern.FindStringSubmatch(cutBytes(f.all[place[1]:], 60)); match != nil {
				found = append(found, strings.TrimRight(match[1], ".-/"))
			}
		}
	}
	return found
}

func (f *facts) personName(which string) []string {
	var found []string
	for _, match := range namePattern.FindAllStringSubmatch(f.all, 3) {
		found = append(found, match[1])
	}
	for _, match := range pairPattern.FindAllStringSubmatch(f.all, 3) {
		found = append(found, match[1])
	}
	for i, name := range found {
		parts := strings.Fields(name)
		switch which {
		case "first", "given":
			found[i] = parts[0]
		case "last", "family":
			found[i] = parts[len(parts)-1]
		}
	}
	return found
}

// texts gives the strings for a field that is a list.
func (f *facts) texts(name, format string) []string {
	if label, ok := f.label(name); ok {
		if format != "" {
			return newFacts(label, "").formed(format)
		}
		return splitList(label)
	}
	if format != "" {
		return f.formed(format)
	}
	words := nameWords(name)
	if len(words) == 0 {
		return f.bullets()
	}
	switch last := words[len(words)-1]; last {
	case "keywords", "tags", "topics", "labels", "categories", "terms", "themes":
		return lowerAll(keyWords(f.subject(), 5))
	case "points", "highlights", "bullets", "sentences", "facts", "takeaways", "findings", "insights":
		return pickSentences(readText(f.subject(), true), defaultCount, nil)
	case "names", "people", "persons":
		return f.personName("")
	default:
		if meaning := meanings[singular(last)]; meaning == "email" || meaning == "uri" || meaning == "phone" || meaning == "date" {
			return f.formed(meaning)
		}
	}
	return f.bullets()
}

func lowerAll(words []string) []string {
	for i := range words {
		words[i] = strings.ToLower(words[i])
	}
	return words
}

// splitList cuts "a, b and c" into its items.
func splitList(text string) []string {
	separator := ","
	for _, other := range []string{";", "|"} {
		if !strings.Contains(text, separator) && strings.Contains(text, other) {
			separator = other
		}
	}
	text = strings.ReplaceAll(strings.Trim(text, "[]"), " and ", separator)
	var items []string
	for _, item := range strings.Split(text, separator) {
		if item = strings.Trim(strings.TrimSpace(item), "\"'`."); item != "" && len(items) < maxItems {
			items = append(items, item)
		}
	}
	return items
}

// bullets gives the items of the lists in the text.
func (f *facts) bullets() []string {
	var items []string
	for line := range strings.Lines(f.all) {
		if item, ok := listText(strings.TrimSpace(line)); ok && item != "" && len(items) < maxItems {
			items = append(items, item)
		}
	}
	return items
}
