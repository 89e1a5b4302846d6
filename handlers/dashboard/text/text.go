// Package text holds the texts of the pages in each language.
//
// The English text is the key: a page uses "New task", and a catalogue holds the
// translation. A text that a catalogue does not hold appears in English. Each key is a whole
// sentence or label, with the verbs of package fmt in place of values. en.json holds the English
// texts of ids, such as the code of an error.
//
// The package is pure: it depends on no request, page or store.
package text

import (
	"cmp"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"maps"
	"slices"
	"strings"
	"sync"

	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

//go:embed *.json
var catalogues embed.FS

// A Key is an English text in a table, which is translated later. The type marks the text for
// the test that collects all keys.
type Key string

// A Language translates texts. It is safe for concurrent use.
type Language struct {
	Code  string // of BCP 47, such as "de"
	Name  string // in the language itself
	point string // the character before decimals
	print *message.Printer

	labels    func() (map[string]map[string]Key, error) // reads the English texts of ids, by group, once
	catalogue func() (map[string]string, error)         // reads the texts once; nil for English
}

// English returns the language of the keys.
func English() *Language { return Languages()[0] }

// Languages returns all languages, English first. The first use of a language reads its catalogue.
func Languages() []*Language {
	labels := catalogue[map[string]map[string]Key]("en")
	return []*Language{
		{Code: "en", Name: "English", point: ".", print: message.NewPrinter(language.English), labels: labels},
		{Code: "de", Name: "Deutsch", point: ",", print: message.NewPrinter(language.German), labels: labels,
			catalogue: catalogue[map[string]string]("de")},
	}
}

// catalogue returns a function that reads a file of texts at its first call.
func catalogue[T any](code string) func() (T, error) {
	return sync.OnceValues(func() (texts T, err error) {
		data, err := catalogues.ReadFile(code + ".json")
		if err == nil {
			err = json.Unmarshal(data, &texts)
		}
		if err != nil {
			err = fmt.Errorf("catalogue %s: %w", code, err)
		}
		return texts, err
	})
}

// Check returns an error if a catalogue cannot be read. The other methods then use English, and Label
// returns "".
func (l *Language) Check() error {
	_, err := l.texts()
	_, wrong := l.labels()
	return errors.Join(err, wrong)
}

// Label returns the text of an id, such as the code of an error. en.json holds the ids in groups. It
// returns "" for an unknown id.
func (l *Language) Label(group, id string) string {
	labels, _ := l.labels() // Check returns the error
	return l.text(labels[group][id])
}

func (l *Language) texts() (map[string]string, error) {
	if l.catalogue == nil {
		return nil, nil
	}
	return l.catalogue()
}

// text returns the translation of a key.
func (l *Language) text(key Key) string {
	texts, _ := l.texts() // Check returns the error
	return cmp.Or(texts[string(key)], string(key))
}

// Keys returns the keys that the catalogue translates, sorted.
func (l *Language) Keys() []string {
	texts, _ := l.texts() // Check returns the error
	return slices.Sorted(maps.Keys(texts))
}

// T returns the text of a key with the values in the places of its verbs. The verb %d groups
// the thousands of an integer as the language does.
func (l *Language) T(key Key, values ...any) string {
	pattern := l.text(key)
	// Without values, a percent sign in the text is no verb.
	if len(values) == 0 {
		return pattern
	}
	return l.print.Sprintf(pattern, values...)
}

// N returns the text for n things: one if n is 1, else many. Both keys may name n with %[1]d.
// The further values follow n.
func (l *Language) N(n int64, one, many Key, values ...any) string {
	if n == 1 {
		many = one
	}
	pattern := l.text(many)
	// A text such as "Nothing waits" need not name the number.
	if !strings.Contains(pattern, "%") {
		return pattern
	}
	return l.T(many, append([]any{n}, values...)...)
}

// HTML returns the text of a key that holds elements, such as a link inside a sentence. It
// escapes the values. A value in an attribute must be an address of this server or a
// constant: HTML does not check the scheme of an address.
func (l *Language) HTML(key Key, values ...any) template.HTML {
	escaped := make([]any, len(values))
	for i, v := range values {
		switch v := v.(type) {
		case template.HTML, int, int64:
			escaped[i] = v
		default:
			escaped[i] = template.HTMLEscapeString(fmt.Sprint(v))
		}
	}
	return template.HTML(l.T(key, escaped...)) //nolint:gosec // the text is a constant, the values are escaped
}

// Count returns an integer with groups of thousands.
func (l *Language) Count(n int64) string { return l.print.Sprint(n) }

// Decimal returns a number, which strconv has written, with the decimal point of the language.
func (l *Language) Decimal(number string) string { return strings.Replace(number, ".", l.point, 1) }

// maxAccept is the length of an Accept-Language header, in bytes, up to which it is read. Browsers send a
// few languages.
const maxAccept = 1000

// Choose returns the language of a page. wanted is the code that a user has chosen. Without
// it, accept decides, which is the Accept-Language header of the browser. The first language
// of the list is the last resort.
func Choose(list []*Language, wanted, accept string) *Language {
	if l := find(list, wanted); l != nil {
		return l
	}
	if len(accept) > maxAccept {
		accept = ""
	}
	tags, _, _ := language.ParseAcceptLanguage(accept) // there are no tags in a faulty header
	for _, tag := range tags {
		// Browsers name the language with a region: "de-AT" asks for German.
		base, _ := tag.Base()
		if l := find(list, base.String()); l != nil {
			return l
		}
	}
	return list[0]
}

// find returns the language with that code, or nil.
func find(list []*Language, code string) *Language {
	i := slices.IndexFunc(list, func(l *Language) bool { return strings.EqualFold(l.Code, code) })
	if i < 0 {
		return nil
	}
	return list[i]
}
