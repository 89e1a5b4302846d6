package offline

import (
	"encoding/json"
	"maps"
	"slices"

	"journeyman/runner/schema"
)

// Bounds of the values that are made for a schema.
const (
	maxFillDepth = 24
	maxFillNodes = 300 // schemas that are visited for one value
	maxItems     = 20  // of an array
	maxBranches  = 4   // alternatives of a schema that are tried
)

// structured returns a JSON object that matches the request's schema, filled from the
// input and from read, the text of the documents. Fields without a value in the text come
// from the schema's example. Each branch takes other alternatives of the schema (anyOf,
// oneOf). The object with the most values from the text wins.
func (t *turn) structured(read string) string {
	compiled, err := schema.Compile(t.req.OutputSchema)
	if err != nil {
		return "{}" // schemas are checked before a worker has one
	}
	root, _ := schema.Parse(t.req.OutputSchema)
	// The search for an example has bounds. Without one the values of the text may still match.
	example, _ := compiled.Example()
	best, most := marshalJSON(example), -1
	// Which alternative fits shows only when it is filled.
	for branch := range maxBranches {
		f := filler{root: root, branch: branch, left: maxFillNodes}
		value, _ := f.value("", root, any(example), newSourceText(t.input, read), 0)
		if out := marshalJSON(value); f.found > most && compiled.CheckObject(out) == nil {
			best, most = out, f.found
		}
	}
	return string(best)
}

// A filler makes a value for a schema from the facts of a text.
type filler struct {
	root   any // the whole schema, for its references
	branch int // the alternative to take where a schema leaves a choice
	left   int // schemas that may still be visited
	found  int // values that the text holds
}

// value makes a value for a field of that name: from the facts, or else from the
// schema's default or the example. found reports that the facts hold it, or a part of
// it.
func (f *filler) value(name string, sub, example any, known sourceText, depth int) (v any, found bool) {
	if f.left--; f.left < 0 || depth > maxFillDepth {
		return example, false
	}
	s := f.resolve(sub, depth)
	types := typesOf(s)
	// An object has no text of its own: its fields have.
	if slices.Contains(types, "object") {
		return f.object(s, example, known, depth)
	}
	list := listOf(s["enum"])
	if c, ok := s["const"]; ok {
		list = []any{c}
	}
	if len(list) > 0 {
		v, found = known.choose(name, list)
	} else {
		v, found = f.plainValue(name, types, s, known, depth)
	}
	switch fallback, ok := s["default"]; {
	case found:
		f.found++
		return v, true
	case ok:
		return fallback, false
	case slices.Contains(types, "null"):
		return nil, false
	case example == "" && checker(s)("unknown"):
		return "unknown", false
	}
	return example, false
}

// plainValue finds a value of one of the types in the facts.
func (f *filler) plainValue(name string, types []string, s map[string]any, known sourceText, depth int) (any, bool) {
	var candidates []any
	for _, typ := range types {
		switch typ {
		case "array":
			return f.array(name, s, known, depth)
		case "boolean":
			return known.boolean(name)
		case "string":
			candidates = append(candidates, known.texts(name, s)...)
		case "integer", "number":
			candidates = append(candidates, known.numbers(name)...)
		}
	}
	fits := checker(s)
	for _, v := range candidates {
		if fits(v) {
			return v, true
		}
	}
	return nil, false
}

// checker returns a func that reports whether a text or a number obeys the rules of its
// schema.
func checker(s map[string]any) func(v any) bool {
	rules := map[string]any{}
	for _, word := range []string{"type", "format", "pattern", "minLength", "maxLength",
		"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"} {
		if rule, ok := s[word]; ok {
			rules[word] = rule
		}
	}
	compiled, err := schema.Compile(marshalJSON(map[string]any{"properties": map[string]any{"value": rules}}))
	return func(v any) bool {
		return err == nil && compiled.CheckObject(marshalJSON(map[string]any{"value": v})) == nil
	}
}

// object makes an object: the required fields, those of the example, and those that the
// facts hold.
func (f *filler) object(s map[string]any, example any, known sourceText, depth int) (any, bool) {
	properties, _ := s["properties"].(map[string]any)
	known.whole, known.sole = false, f.soleText(properties, depth)
	sample, _ := example.(map[string]any)
	object := map[string]any{}
	required := listOf(s["required"])
	for _, key := range required {
		if name, ok := key.(string); ok {
			object[name] = sample[name]
		}
	}
	found := false
	for _, key := range slices.Sorted(maps.Keys(properties)) {
		have, sampled := sample[key]
		v, ok := f.value(key, properties[key], have, known, depth+1)
		found = found || ok
		if _, needed := object[key]; ok || sampled || needed {
			object[key] = v
		}
	}
	return object, found
}

// soleText returns the name of the only field of free text, "" where there are several.
// Such a field may take the whole text, whatever its name is.
func (f *filler) soleText(properties map[string]any, depth int) string {
	sole := ""
	for key, p := range properties {
		s := f.resolve(p, depth)
		bound := slices.ContainsFunc([]string{"enum", "const", "format", "pattern", "default"},
			func(rule string) bool { return s[rule] != nil })
		switch {
		case bound || typesOf(s)[0] != "string":
		case sole != "":
			return ""
		default:
			sole = key
		}
	}
	return sole
}

// array makes an array of the items that the facts list.
func (f *filler) array(name string, s map[string]any, known sourceText, depth int) (any, bool) {
	items := f.resolve(s["items"], depth)
	values := []any{}
	for _, v := range listOf(items["enum"]) {
		if known.mentions(v) {
			values = append(values, v)
		}
	}
	// Values of an enum are mentioned anywhere; other items stand in a list.
	if items["enum"] == nil {
		format, _ := items["format"].(string)
		for _, text := range known.list(name, format) {
			one := newSourceText(text, "")
			one.whole = true
			if v, ok := f.value("", items, nil, one, depth+1); ok {
				values = append(values, v)
			}
		}
	}
	return values[:min(len(values), limitOf(s["maxItems"], maxItems))], len(values) > 0
}

// resolve returns the schema with its references followed, its parts (allOf) merged
// and one of its alternatives (anyOf, oneOf) taken.
func (f *filler) resolve(sub any, depth int) map[string]any {
	s, _ := sub.(map[string]any)
	merged := map[string]any{}
	merge(merged, s)
	parts := listOf(merged["allOf"])
	if ref, ok := merged["$ref"].(string); ok {
		target, _ := schema.Lookup(f.root, ref)
		parts = []any{target} // rules beside a reference do not count in Draft 7
	}
	for _, key := range []string{"anyOf", "oneOf"} {
		if list := listOf(merged[key]); len(list) > 0 {
			parts = append(slices.Clone(parts), list[f.branch%len(list)])
		}
	}
	for _, part := range parts {
		if f.left--; f.left < 0 || depth > maxFillDepth {
			break
		}
		merge(merged, f.resolve(part, depth+1))
	}
	return merged
}

// merge adds the rules of part to s. Properties and required names add up; of other
// rules the part's wins.
func merge(s, part map[string]any) {
	for key, rule := range part {
		have, _ := s[key].(map[string]any)
		rules, _ := rule.(map[string]any)
		switch {
		case key == "properties" && have != nil && rules != nil:
			both := maps.Clone(have)
			maps.Copy(both, rules)
			s[key] = both
		case key == "required":
			s[key] = slices.Concat(listOf(s[key]), listOf(rule))
		default:
			s[key] = rule
		}
	}
}

// typesOf returns the types that a schema allows, at least one. Where the schema does
// not say, its other rules imply one.
func typesOf(s map[string]any) []string {
	var types []string
	for _, typ := range append(listOf(s["type"]), s["type"]) {
		if name, ok := typ.(string); ok {
			types = append(types, name)
		}
	}
	switch {
	case len(types) > 0:
		return types
	case s["properties"] != nil || s["required"] != nil:
		return []string{"object"}
	case s["items"] != nil:
		return []string{"array"}
	case s["minimum"] != nil || s["maximum"] != nil:
		return []string{"number"}
	}
	return []string{"string"}
}

func listOf(v any) []any {
	list, _ := v.([]any)
	return list
}

// limitOf returns the limit that a schema sets, from 0 to most.
func limitOf(rule any, most int) int {
	n, _ := rule.(json.Number)
	if limit, err := n.Int64(); err == nil {
		return int(max(min(limit, int64(most)), 0))
	}
	return most
}
