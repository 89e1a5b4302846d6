package offline

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"journeyman/runner/schema"
	"journeyman/store/pattern"
)

// Limits of values that are built for a schema.
const (
	maxFillDepth  = 24
	maxFillNodes  = 300      // fields that are filled per value
	maxSourceText = 16 << 10 // bytes of the text that are searched for values
	maxWords      = 200      // words that are tried for a field
	// maxFillTime ends the search of a schema whose patterns or choices take long: each has a limit of its
	// own, but there may be many.
	maxFillTime = 3 * time.Second
)

const (
	noValue = "The offline model found no values in the text that fit the schema." // beside {}
	// generalNames are the names of fields that the whole text may fill.
	generalNames = "title summary description instructions text content answer message reply output"
)

// structured returns a JSON object for the request's schema, filled from the input and the text of
// the documents, and "". If the object does not meet the schema, it returns {} and a note.
func (t *turn) structured(read string) (value, note string) {
	compiled, err := schema.Compile(t.req.OutputSchema)
	if err != nil {
		return "{}", noValue // impossible: schemas are checked when a worker is saved
	}
	f := filler{left: maxFillNodes, until: time.Now().Add(maxFillTime), text: cutBytes(strings.TrimSpace(t.input+"\n"+read), maxSourceText)}
	f.excerpt = cmp.Or(strings.TrimSpace(read), strings.TrimSpace(t.input))
	if len(f.excerpt) > longInput {
		f.excerpt = strings.Join(pickSentences(f.excerpt, defaultSentences), " ")
	}
	object, _ := f.object(compiled, 0)
	if out := marshalJSON(object); compiled.CheckObject(out) == nil {
		return string(out), ""
	}
	return "{}", noValue
}

// A filler builds a value for a schema from a text.
type filler struct {
	left    int       // fields that may still be filled
	until   time.Time // the end of the search
	text    string    // searched for values
	excerpt string    // the value of fields for the whole text
}

// fits reports whether a value meets a schema, as far as there is time to check it.
func (f *filler) fits(s *schema.Schema, v any) bool { return !f.late() && s.Check(v) == nil }

func (f *filler) late() bool { return time.Now().After(f.until) }

// object builds an object of the fields that the text contains, and of the required ones. found
// means that the text contains one of them.
func (f *filler) object(s *schema.Schema, depth int) (object map[string]any, found bool) {
	object = map[string]any{}
	for _, field := range s.Fields() {
		v, ok := f.value(field.Name, field.Schema, depth+1)
		if found = found || ok; ok || field.Required {
			object[field.Name] = v
		}
	}
	return object, found
}

// value returns the value of a field: the first one in the text that meets its schema, else its
// default or an empty value.
func (f *filler) value(name string, s *schema.Schema, depth int) (v any, found bool) {
	if f.left--; f.left < 0 || depth > maxFillDepth {
		return nil, false
	}
	if len(s.Fields()) > 0 {
		return f.object(s, depth)
	}
	fits := func(v any) bool { return f.fits(s, v) }
	candidates := f.candidates(name, s)
	if i := slices.IndexFunc(candidates, fits); i >= 0 {
		return candidates[i], true
	}
	choices, empty := s.Choices()
	empty = append(empty, nil, "unknown", json.Number("0"), false, []any{}, map[string]any{})
	empty = append(empty, choices...)
	if i := slices.IndexFunc(empty, fits); i >= 0 {
		return empty[i], false
	}
	return nil, false
}

const numberPattern pattern.Pattern = `-?(?:0|[1-9]\d*)(?:,\d{3})*(?:\.\d+)?`

// candidates returns values that the text contains for a field, the most probable first. Choices
// may be anywhere. Words of a format or pattern are after the label, or anywhere without a label.
func (f *filler) candidates(name string, s *schema.Schema) (list []any) {
	label := f.label(name)
	choices, _ := s.Choices()
	for _, c := range choices {
		if strings.EqualFold(label, fmt.Sprint(c)) {
			list = append(list, c)
		}
	}
	list = append(list, f.mentioned(choices)...)
	if items := s.Items(); items != nil {
		return append(list, f.items(label, items)...)
	}
	if label != "" {
		number := json.Number(strings.ReplaceAll(numberPattern.Compiled().FindString(label), ",", ""))
		word := strings.ToLower(label)
		if number != "" {
			list = append(list, number)
		}
		if word == "yes" || word == "no" || word == "true" || word == "false" {
			list = append(list, word == "yes" || word == "true")
		}
		list = append(list, label)
	}
	if slices.Contains(strings.Fields(generalNames), strings.ToLower(name)) {
		list = append(list, f.excerpt, shorten(f.excerpt, 200), shorten(f.excerpt, 80))
	}
	if f.late() || s.Check("unknown") == nil {
		return list // any word fits
	}
	between := func(r rune) bool { return strings.ContainsRune(" \t\r\n,;()[]{}<>\"'`", r) }
	words := strings.FieldsFunc(cmp.Or(label, f.text), between)
	for _, word := range words[:min(len(words), maxWords)] {
		list = append(list, strings.TrimRight(word, ".:!?"))
	}
	return list
}

// items returns a list of the items after a label or of the choices in the text, none if there are
// no items.
func (f *filler) items(label string, of *schema.Schema) []any {
	choices, _ := of.Choices()
	values := f.mentioned(choices)
	for part := range strings.SplitSeq(strings.ReplaceAll(label, " and ", ","), ",") {
		part = strings.TrimSpace(part)
		number := json.Number(numberPattern.Compiled().FindString(part))
		switch {
		case part == "" || len(choices) > 0 || slices.Contains(values, any(part)):
		case f.fits(of, part):
			values = append(values, part)
		case number != "" && f.fits(of, number):
			values = append(values, number)
		}
	}
	if len(values) == 0 {
		return nil
	}
	return []any{values}
}

// mentioned returns the choices that the text contains as words.
func (f *filler) mentioned(choices []any) (list []any) {
	for _, c := range choices {
		if f.match(fmt.Sprint(c), `(?:$|[^\pL\pN_])`) != nil {
			list = append(list, c)
		}
	}
	return list
}

// innerCapital matches the position where a word begins within a name such as dueDate.
const innerCapital pattern.Pattern = `(\p{Ll})(\p{Lu})`

// match finds the words of a name in the text, followed by a pattern. dueDate, due_date and "Due
// date" have the same words.
func (f *filler) match(name, after string) []string {
	name = innerCapital.Compiled().ReplaceAllString(strings.ToValidUTF8(cutBytes(name, 100), ""), "$1 $2")
	words := strings.FieldsFunc(name, func(r rune) bool { return strings.ContainsRune(" _-", r) })
	if len(words) == 0 || f.late() {
		return nil
	}
	for i, word := range words {
		words[i] = regexp.QuoteMeta(word) // the schema's author chooses the names
	}
	re := regexp.MustCompile(`(?im)(?:^|[^\pL\pN_])` + strings.Join(words, `[ _-]?`) + after)
	return re.FindStringSubmatch(f.text)
}

// nextLabel matches the label that follows a value on the same line: ", city:".
const nextLabel pattern.Pattern = `;|, [^,:]{1,40}(?::| is )`

// label returns the value after "name:", "name =" or "name is", without its quotation marks. A
// slash after the colon is part of a URL.
func (f *filler) label(name string) string {
	m := f.match(name, "[\"'`*_)]*(?:[ \\t]*[:=]|[ \\t]+(?:is|are)\\b)[ \\t*_]*([^ \\t\\r\\n/].*)")
	if m == nil {
		return ""
	}
	value := strings.TrimSpace(m[1])
	if quoted := quotation.Compiled().FindStringSubmatch(value); quoted != nil && strings.HasPrefix(value, quoted[0]) {
		return strings.Join(quoted[1:], "")
	}
	if loc := nextLabel.Compiled().FindStringIndex(value); loc != nil {
		value = value[:loc[0]]
	}
	if sentences := splitSentences(value); len(sentences) > 0 {
		value = sentences[0]
	}
	return strings.TrimRight(value, ".,*_} ")
}
