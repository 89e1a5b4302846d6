package model

import (
	"encoding/json"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// stopWords are the words that say nothing about what a text is about.
const stopWords = " a about above after again against all also am an and any are as at be because been before being below between both but by can " +
	"could did do does doing down during each either else ever every few for from further get gets got had has have having he her here hers him his how however i if in " +
	"into is it its itself just let like made make makes many may me might more most much must my neither no nor not now of off on once one only or other " +
	"our ours out over own per please put rather same shall she should since so some such take than that the their theirs them then there these they this those " +
	"through thus to too two under until up upon us use used uses using very via was we well were what when where whether which while who whom whose why will with " +
	"within without would yes yet you your yours " +
	"der die das den dem des ein eine einer eines einem einen und oder aber ist sind war waren wird werden wurde mit von zu zum zur im in auf für nicht auch als wie bei aus nach sich es er sie wir ihr ich " +
	"summarize summarise summary write save file sentence sentences point points bullet bullets read tell give following short brief key main "

// contentWords gives the words of a text that say what it is about, in lower case
// and without the commonest English endings, in their order and with repetitions.
func contentWords(text string) []string {
	var words []string
	for _, word := range lowerWords(text) {
		if word = strings.Trim(word, "'"); utf8.RuneCountInString(word) < 2 || isStopWord(word) {
			continue
		}
		words = append(words, stem(word))
	}
	return words
}

func isStopWord(word string) bool { return hasWord(stopWords, word) }

// hasWord says whether list, words between single spaces, has the word.
func hasWord(list, word string) bool { return strings.Contains(list, " "+word+" ") }

// stem cuts the commonest English endings, so that "report" and "reports" count
// as one word.
func stem(word string) string {
	word = strings.TrimSuffix(word, "'s")
	if len(word) > 4 && strings.HasSuffix(word, "ies") {
		return word[:len(word)-3] + "y"
	}
	if len(word) > 3 && strings.HasSuffix(word, "s") && !strings.HasSuffix(word, "ss") && !strings.HasSuffix(word, "us") && !strings.HasSuffix(word, "is") {
		return word[:len(word)-1]
	}
	return word
}

// keyWords gives the n words of a text that it uses most, as first written, those
// that come first before others as frequent.
func keyWords(text string, n int) []string {
	type entry struct {
		word  string
		count int
	}
	var entries []entry
	at := map[string]int{}
	for _, field := range writtenWords(cutBytes(text, 64<<10)) {
		field = strings.Trim(field, "'-")
		lower := strings.ToLower(field)
		if utf8.RuneCountInString(lower) < 3 || isStopWord(lower) || strings.IndexFunc(lower, unicode.IsLetter) < 0 {
			continue
		}
		key := stem(lower)
		if i, ok := at[key]; ok {
			entries[i].count++
			continue
		}
		at[key] = len(entries)
		entries = append(entries, entry{field, 1})
	}
	slices.SortStableFunc(entries, func(a, b entry) int { return b.count - a.count })
	var words []string
	for _, e := range entries[:min(n, len(entries))] {
		words = append(words, e.word)
	}
	return words
}

// writtenWords gives the words of a text as written, hyphens within them kept.
func writtenWords(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return !wordRune(r) && r != '\'' && r != '-' })
}

// headline makes a title of at most n characters out of the first words of a text
// that say what it is about.
func headline(text string, n int) string {
	const skip = " agent bot worker assistant tool someone something helper model want need create act "
	const keep = " write summarize summarise summary read "
	title, count := "", 0
	for _, word := range writtenWords(firstSentence(text)) {
		word = strings.Trim(word, "'-")
		lower := strings.ToLower(word)
		empty := isStopWord(lower) && !hasWord(keep, lower) || hasWord(skip, lower)
		if empty || utf8.RuneCountInString(lower) < 2 {
			continue
		}
		longer := strings.TrimSpace(title + " " + titleCase(word))
		if count++; count > 6 || utf8.RuneCountInString(longer) > n {
			break
		}
		title = longer
	}
	if title == "" {
		title = cutRunes("Worker", n)
	}
	return title
}

func titleCase(word string) string {
	r, size := utf8.DecodeRuneInString(word)
	return string(unicode.ToUpper(r)) + word[size:]
}

// firstSentence gives the first sentence of the first line that has one.
func firstSentence(text string) string {
	if sentences := splitSentences(firstLine(text)); len(sentences) > 0 {
		return sentences[0]
	}
	return ""
}

// describeJSON tells the shape of a JSON document.
func describeJSON(doc *document) (string, bool) {
	name := path.Base(doc.name)
	var fields map[string]json.RawMessage
	if json.Unmarshal([]byte(doc.text), &fields) == nil && fields != nil {
		names := shorten(strings.Join(sortedKeys(fields), ", "), 300)
		return name + " is a JSON object with " + plural(len(fields), "field") + ": " + names + ".", true
	}
	var items []json.RawMessage
	if json.Unmarshal([]byte(doc.text), &items) == nil {
		return name + " is a JSON array with " + plural(len(items), "element") + ".", true
	}
	return "", false
}
