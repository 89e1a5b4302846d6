package model

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// structured answers with a JSON value that meets the request's schema, filled
// from the input and, after it, from text, which is what has been read. It tries
// different choices where the schema leaves one, and gives the first value that
// passes the check; if none does, the first.
func (t *turn) structured(text string) string {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(t.req.OutputSchema))
	root, ok := doc.(map[string]any)
	if err != nil || !ok {
		return "{}"
	}
	input := strings.TrimSpace(t.input)
	if value, ok := workerValue(root, input); ok {
		return string(marshalJSON(value))
	}
	schema, _ := compileSchema(root, len(t.req.OutputSchema)) // nil: unchecked
	first := ""
	known := newFacts(input, text)
	left := known.effort()
	for _, try := range [...]struct {
		facts *facts
		full  bool
	}{{known, false}, {known, true}, {newFacts("", ""), false}, {newFacts("", ""), true}} {
		for branch := range 4 {
			nodes := max(left/4, 50)
			f := filler{root: root, facts: try.facts, branch: branch, full: try.full, nodes: &nodes, path: []string{"#"}}
			value, _ := f.value("", root, 0)
			left -= max(left/4, 50) - nodes
			out := marshalJSON(value)
			if first == "" {
				first = string(out)
			}
			if schema == nil || meets(schema, out) {
				return string(out)
			}
		}
	}
	return first
}

// Bounds of the values made for a schema.
const (
	maxFillDepth = 24
	maxItems     = 20 // of an array, unless the schema asks for more
)

// effort is how many schemas and values may be gone through: the fewer, the longer
// the text that each of them is looked for in.
func (f *facts) effort() int {
	const most, short, least = 8000, 4 << 10, 500
	return max(most*short/max(len(f.all), short), least)
}

// A filler makes a value for a schema out of facts.
type filler struct {
	root   map[string]any
	facts  *facts
	branch int      // which alternative to take where the facts do not say
	full   bool     // also the optional fields that the facts say nothing of
	nodes  *int     // schemas and values that may still be gone through
	path   []string // references that the value lies in
	least  bool     // the value lies in one of its own kind: only what must be
}

// value makes a value for a field of that name. found says that the facts have
// it, or part of it; if not, it is the least that the schema allows.
func (f *filler) value(name string, schema any, depth int) (v any, found bool) {
	if *f.nodes--; *f.nodes < 0 || depth > maxFillDepth {
		return nil, false
	}
	s, refs := f.flatten(name, schema, depth)
	f = f.within(refs)
	if c, ok := s["const"]; ok {
		return c, f.facts.mentions(c)
	}
	if list, ok := s["enum"].([]any); ok && len(list) > 0 {
		return f.choose(name, list)
	}
	types := typesOf(s)
	for _, typ := range types {
		if v, found = f.typed(name, typ, s, depth); found {
			return v, true
		}
	}
	if d, ok := s["default"]; ok {
		return d, false
	}
	if slices.Contains(types, "null") {
		return nil, false
	}
	v, _ = f.typed(name, types[f.branch%len(types)], s, depth)
	return v, false
}

// within gives the filler for a value behind references. One that it lies in
// already leads round and round: from there on it makes the least.
func (f *filler) within(refs []string) *filler {
	if len(refs) == 0 {
		return f
	}
	sub := *f
	for _, ref := range refs {
		sub.least = sub.least || slices.Contains(f.path, ref)
	}
	sub.path = append(slices.Clone(f.path), refs...)
	return &sub
}

// typesOf gives the types a schema allows, in its order. Where it does not say,
// its other words do.
func typesOf(s map[string]any) []string {
	var types []string
	switch typ := s["type"].(type) {
	case string:
		types = []string{typ}
	case []any:
		for _, one := range typ {
			if name, ok := one.(string); ok {
				types = append(types, name)
			}
		}
	}
	if types != nil {
		return types
	}
	for _, hint := range [...][2]string{
		{"properties", "object"}, {"required", "object"}, {"minProperties", "object"}, {"additionalProperties", "object"},
		{"items", "array"}, {"minItems", "array"}, {"minimum", "number"}, {"maximum", "number"},
		{"multipleOf", "number"}, {"exclusiveMinimum", "number"}, {"exclusiveMaximum", "number"},
	} {
		if _, ok := s[hint[0]]; ok {
			return []string{hint[1]}
		}
	}
	return []string{"string"}
}

func (f *filler) typed(name, typ string, s map[string]any, depth int) (any, bool) {
	switch typ {
	case "object":
		return f.object(name, s, depth)
	case "array":
		return f.array(name, s, depth)
	case "string":
		return f.text(name, s)
	case "integer", "number":
		return f.number(name, typ, s)
	case "boolean":
		return f.facts.boolean(name)
	}
	return nil, false
}

// choose takes the value that the field's label names, else the one that the text
// names first, else the first.
func (f *filler) choose(name string, list []any) (any, bool) {
	if label, ok := f.facts.label(name); ok {
		for _, v := range list {
			if s, isText := v.(string); isText && strings.EqualFold(strings.Trim(label, " .!"), s) {
				return v, true
			}
		}
	}
	best, bestAt, bestLen := -1, 0, 0
	for i, v := range list {
		at, size := f.facts.find(v)
		if at >= 0 && (best < 0 || at < bestAt || at == bestAt && size > bestLen) {
			best, bestAt, bestLen = i, at, size
		}
	}
	if best >= 0 {
		return list[best], true
	}
	if slices.Contains(list, nil) {
		return nil, false
	}
	return list[f.branch%len(list)], false
}

func (f *filler) object(name string, s map[string]any, depth int) (any, bool) {
	properties, _ := s["properties"].(map[string]any)
	required := stringsOf(s["required"])
	object := map[string]any{}
	found := false
	sub := *f
	sub.facts = f.facts.of(name).alone(countTypes(f, properties, depth))
	for _, key := range sortedKeys(properties) {
		needed := slices.Contains(required, key)
		if f.least && !needed {
			continue
		}
		v, ok := sub.value(key, properties[key], depth+1)
		found = found || ok
		if ok || f.full || needed {
			object[key] = v
		}
	}
	for _, key := range required {
		if _, ok := object[key]; !ok {
			object[key], _ = sub.value(key, otherProperty(s), depth+1)
		}
	}
	sub.topUp(object, s, properties, depth)
	return object, found
}

// topUp adds fields until there are as many as the schema wants.
func (f *filler) topUp(object, s, properties map[string]any, depth int) {
	least := min(count(s, "minProperties", 0), 100)
	for _, key := range sortedKeys(properties) {
		if _, ok := object[key]; !ok && len(object) < least {
			object[key], _ = f.value(key, properties[key], depth+1)
		}
	}
	for i := 1; len(object) < least; i++ {
		object["field"+strconv.Itoa(i)], _ = f.value("", otherProperty(s), depth+1)
	}
}

// otherProperty is the schema of a property that is not listed.
func otherProperty(s map[string]any) any {
	if other, ok := s["additionalProperties"].(map[string]any); ok {
		return other
	}
	return map[string]any{}
}

// countTypes counts an object's fields of free text and of numbers: the only one
// of its kind may take what the text has of that kind, whatever it is called.
func countTypes(f *filler, properties map[string]any, depth int) (texts, numbers int) {
	for key, p := range properties {
		s, _ := f.flatten(key, p, depth)
		if s["enum"] != nil || s["const"] != nil || s["format"] != nil || s["pattern"] != nil {
			continue
		}
		switch typesOf(s)[0] {
		case "string":
			texts++
		case "integer", "number":
			numbers++
		}
	}
	return texts, numbers
}

func (f *filler) array(name string, s map[string]any, depth int) (any, bool) {
	least, most := count(s, "minItems", 0), count(s, "maxItems", maxItems)
	least = min(least, 1000)
	most = max(min(most, max(maxItems, least)), 0)
	items, tuple := f.tuple(name, s["items"], depth)
	found := false
	if !tuple && !f.least {
		items = f.listed(name, s["items"], depth)
		found = len(items) > 0
	}
	unique := s["uniqueItems"] == true
	if unique {
		items = distinct(items)
	}
	if contains, ok := s["contains"]; ok && len(items) == 0 {
		v, _ := f.value(name, contains, depth+1)
		items = append(items, v)
	}
	for i := 0; len(items) < least && *f.nodes > 0; i++ {
		v := f.further(name, s, i, depth)
		if items = append(items, v); unique {
			items = distinct(items)
		}
		if i > least+20 {
			break // no more different ones to be had
		}
	}
	if len(items) > most {
		items = items[:most]
	}
	if items == nil {
		items = []any{}
	}
	return items, found
}

// tuple makes the items of an array whose places have schemas of their own.
func (f *filler) tuple(name string, items any, depth int) ([]any, bool) {
	places, ok := items.([]any)
	if !ok {
		return nil, false
	}
	var values []any
	for _, place := range places {
		v, _ := f.value(name, place, depth+1)
		values = append(values, v)
	}
	return values, true
}

// further makes an item that nothing in the text speaks for, different from those
// before it where its kind allows that.
func (f *filler) further(name string, s map[string]any, i, depth int) any {
	items := s["items"]
	if places, ok := items.([]any); ok {
		items = map[string]any{}
		if other := s["additionalItems"]; other != nil && i >= 0 && len(places) > 0 {
			items = other
		}
	}
	flat, _ := f.flatten(singular(name), items, depth)
	if list, ok := flat["enum"].([]any); ok && len(list) > 0 {
		return list[i%len(list)]
	}
	v, _ := f.value(singular(name), items, depth+1)
	switch v := v.(type) {
	case string:
		if i > 0 && flat["format"] == nil && flat["pattern"] == nil {
			return v + " " + strconv.Itoa(i+1)
		}
	case json.Number:
		return stepped(v, i, flat)
	case bool:
		return i%2 == 1
	}
	return v
}

// listed makes the items that the text has.
func (f *filler) listed(name string, items any, depth int) []any {
	s, _ := f.flatten(singular(name), items, depth)
	var values []any
	if list, ok := s["enum"].([]any); ok {
		for _, v := range list {
			if at, _ := f.facts.find(v); at >= 0 {
				values = append(values, v)
			}
		}
		return values
	}
	switch typesOf(s)[0] {
	case "string":
		rule := readRule(s)
		for _, text := range f.facts.texts(name, rule.format) {
			if rule.fits(text) {
				values = append(values, text)
			}
		}
	case "integer", "number":
		numbers := f.facts.numbersFor(name)
		if label, ok := f.facts.label(name); ok {
			numbers = numbersIn(label)
		}
		for _, n := range numbers {
			if v, ok := f.fitting(n, typesOf(s)[0], s); ok {
				values = append(values, v)
			}
		}
	case "object":
		for _, text := range f.facts.bullets() {
			sub := *f
			sub.facts = newFacts(text, "")
			v, ok := sub.value("", items, depth+1)
			if ok && len(values) < maxItems {
				values = append(values, v)
			}
		}
		if v, ok := f.value(singular(name), items, depth+1); ok && values == nil {
			values = append(values, v)
		}
	}
	return values
}

func distinct(items []any) []any {
	var kept []any
	seen := map[string]bool{}
	for _, v := range items {
		if key := string(marshalJSON(v)); !seen[key] {
			seen[key] = true
			kept = append(kept, v)
		}
	}
	return kept
}

// count reads a limit of a schema.
func count(s map[string]any, key string, otherwise int) int {
	n, ok := s[key].(json.Number)
	if !ok {
		return otherwise
	}
	f, err := n.Float64()
	if err != nil || f < 0 || f > 1e6 {
		return otherwise
	}
	return int(f)
}

func stringsOf(v any) []string {
	list, _ := v.([]any)
	var out []string
	for _, one := range list {
		if s, ok := one.(string); ok {
			out = append(out, s)
		}
	}
	return out
}
