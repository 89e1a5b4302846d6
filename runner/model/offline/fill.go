package offline

import (
	"encoding/json"
	"maps"
	"slices"

	"journeyman/runner/schema"
)

// Limits of values that are built for a schema.
const (
	maxFillDepth = 24
	maxFillNodes = 300 // schemas that are visited per value
	maxItems     = 20  // items of an array
	maxBranches  = 4   // alternatives of a schema that are tried
)

// structured returns a JSON object for the request's schema, filled from the input and the
// documents' text in read. Other fields come from the schema's example. Each branch tries other
// alternatives of the schema (anyOf, oneOf). The object with the most values from the text is
// returned.
func (t *turn) structured(read string) string {
	compiled, err := schema.Compile(t.req.OutputSchema)
	if err != nil {
		return "{}" // impossible: schemas are checked when a worker is saved
	}
	root, _ := schema.Parse(t.req.OutputSchema)
	// The search for an example is limited. Without an example, the values of the text may
	// still match.
	example, _ := compiled.Example()
	best, most := marshalJSON(example), -1
	// Only a filled object shows whether an alternative fits.
	for branch := range maxBranches {
		f := filler{root: root, branch: branch, left: maxFillNodes}
		value, _ := f.value("", root, any(example), newSourceText(t.input, read), 0)
		if out := marshalJSON(value); f.found > most && compiled.CheckObject(out) == nil {
			best, most = out, f.found
		}
	}
	return string(best)
}

// A filler builds a value for a schema from a text.
type filler struct {
	root   any // the complete schema, for its references
	branch int // index of the alternative to choose in each choice of a schema
	left   int // remaining schemas that may be visited
	found  int // number of values found in the text
}

// value builds a value for a field with that name: from the text, else from the schema's
// default or the example. found means that the text contains the value or a part of it.
func (f *filler) value(name string, sub, example any, known sourceText, depth int) (v any, found bool) {
	if f.left--; f.left < 0 || depth > maxFillDepth {
		return example, false
	}
	s := f.resolve(sub, depth)
	types := typesOf(s)
	// An object has no text of its own, only its fields have.
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

// plainValue finds a value of one of the types in the text.
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

// checker returns a func that reports whether a string or a number meets its schema.
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

// object builds an object with the required fields, the fields of the example, and the fields
// in the text.
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

// soleText returns the name of the only free text field, "" if there are none or several. Such
// a field may get the whole text, whatever its name is.
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

// array builds an array of the items that the text lists.
func (f *filler) array(name string, s map[string]any, known sourceText, depth int) (any, bool) {
	items := f.resolve(s["items"], depth)
	values := []any{}
	for _, v := range listOf(items["enum"]) {
		if known.mentions(v) {
			values = append(values, v)
		}
	}
	// Enum values are found anywhere in the text, other items only in lists.
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

// resolve returns the schema after following its references, merging its parts (allOf) and
// choosing one of its alternatives (anyOf, oneOf).
func (f *filler) resolve(sub any, depth int) map[string]any {
	s, _ := sub.(map[string]any)
	merged := map[string]any{}
	merge(merged, s)
	parts := listOf(merged["allOf"])
	if ref, ok := merged["$ref"].(string); ok {
		target, _ := schema.Lookup(f.root, ref)
		parts = []any{target} // Draft-07 ignores rules beside a reference
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

// merge adds the rules of part to s. It combines properties and required names. It replaces
// other rules.
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

// typesOf returns the types that a schema allows, at least one. If the schema has no type, its
// other rules imply one.
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

// limitOf returns the limit in a schema, from 0 to most.
func limitOf(rule any, most int) int {
	n, _ := rule.(json.Number)
	if limit, err := n.Int64(); err == nil {
		return int(max(min(limit, int64(most)), 0))
	}
	return most
}
