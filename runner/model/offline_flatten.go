package model

import (
	"encoding/json"
	"maps"
	"slices"
)

// maxFlatten bounds how many schemas are merged into one.
const maxFlatten = 64

// flatten gives a schema as one set of words: references followed, allOf merged,
// and of anyOf, oneOf and if one alternative taken. The result is the caller's, refs are the
// references that were followed.
func (f *filler) flatten(name string, schema any, depth int) (words map[string]any, refs []string) {
	m := merger{filler: f, name: name, depth: depth, left: maxFlatten, words: map[string]any{}}
	m.add(schema)
	return m.words, m.refs
}

// A merger puts the schemas that hold for one field together.
type merger struct {
	*filler
	name  string
	depth int
	left  int // schemas that may still be merged
	words map[string]any
	refs  []string
}

func (m *merger) add(schema any) {
	s, ok := schema.(map[string]any)
	m.left--
	*m.nodes--
	if !ok || m.left < 0 || *m.nodes < 0 || m.depth > maxFillDepth {
		return // true, false or too much: it adds nothing
	}
	if ref, ok := s["$ref"].(string); ok {
		target, _ := resolveRef(m.root, ref)
		m.refs = append(m.refs, ref)
		m.add(target)
		return // Draft-07: what stands beside a reference does not count
	}
	for _, key := range sortedKeys(s) {
		mergeWord(m.words, key, s[key])
	}
	for _, part := range listOf(s["allOf"]) {
		m.add(part)
	}
	for _, word := range []string{"anyOf", "oneOf"} {
		if choices := listOf(s[word]); len(choices) > 0 {
			m.add(m.alternative(choices))
		}
	}
	if condition, ok := s["if"]; ok && m.branch%2 == 0 && s["then"] != nil {
		m.add(condition)
		m.add(s["then"])
	} else if ok && s["else"] != nil {
		m.add(s["else"])
	}
}

// alternative takes the choice that the text names by one of its constants, else
// the first that the text has something for, from the one whose turn it is on.
// Failing that it is null where null is allowed, else the one whose turn it is.
func (m *merger) alternative(choices []any) any {
	for turn := range 2 * len(choices) {
		choice := choices[(turn+m.branch)%len(choices)]
		marked, named := m.constants(choice)
		if turn < len(choices) && !named || marked && !named {
			continue
		}
		if named {
			return choice
		}
		sub := *m.filler
		if _, found := sub.value(m.name, choice, m.depth+4); found { // deeper: trying must end sooner than filling
			return choice
		}
	}
	for _, choice := range choices {
		if s, ok := choice.(map[string]any); ok && s["type"] == "null" && m.branch == 0 {
			return choice
		}
	}
	return choices[m.branch%len(choices)]
}

// constants says whether a choice has fields of one fixed value, by which choices
// are told apart, and whether the text names such a value.
func (m *merger) constants(choice any) (marked, named bool) {
	s, _ := choice.(map[string]any)
	if ref, ok := s["$ref"].(string); ok {
		target, _ := resolveRef(m.root, ref)
		s, _ = target.(map[string]any)
	}
	properties, _ := s["properties"].(map[string]any)
	for _, p := range properties {
		field, _ := p.(map[string]any)
		fixed := listOf(field["enum"])
		if c, ok := field["const"]; ok {
			fixed = []any{c}
		}
		if len(fixed) == 1 {
			marked = true
			named = named || m.facts.mentions(fixed[0])
		}
	}
	return marked, named
}

func listOf(v any) []any {
	list, _ := v.([]any)
	return list
}

// mergeWord adds a word of a schema to those that hold already: both must hold.
func mergeWord(to map[string]any, key string, v any) {
	old, ok := to[key]
	if !ok {
		to[key] = v
		return
	}
	switch key {
	case "properties":
		to[key] = mergeProperties(old, v)
	case "required":
		to[key] = append(slices.Clone(listOf(old)), listOf(v)...)
	case "enum":
		to[key] = shared(listOf(old), listOf(v))
	case "type":
		to[key] = commonTypes(old, v)
	case "minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties":
		to[key] = larger(old, v, 1)
	case "maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties":
		to[key] = larger(old, v, -1)
	default:
		to[key] = v
	}
}

func mergeProperties(old, added any) any {
	a, okA := old.(map[string]any)
	b, okB := added.(map[string]any)
	if !okA || !okB {
		return added
	}
	merged := maps.Clone(a)
	for key, schema := range b {
		if before, ok := merged[key]; ok {
			schema = map[string]any{"allOf": []any{before, schema}}
		}
		merged[key] = schema
	}
	return merged
}

func shared(a, b []any) any {
	var both []any
	for _, v := range a {
		if slices.ContainsFunc(b, func(w any) bool { return string(marshalJSON(v)) == string(marshalJSON(w)) }) {
			both = append(both, v)
		}
	}
	return both
}

// commonTypes keeps the types that both allow; an integer is a number too.
func commonTypes(old, added any) any {
	var both []any
	a, b := typesOf(map[string]any{"type": old}), typesOf(map[string]any{"type": added})
	for _, typ := range a {
		switch {
		case slices.Contains(b, typ), typ == "integer" && slices.Contains(b, "number"):
			both = append(both, typ)
		case typ == "number" && slices.Contains(b, "integer"):
			both = append(both, "integer")
		}
	}
	if both == nil {
		return added
	}
	return both
}

// larger gives the larger number, or with sign -1 the smaller.
func larger(a, b any, sign int) any {
	x, okX := a.(json.Number)
	y, okY := b.(json.Number)
	if !okX || !okY {
		return b
	}
	rx, okX := rational(x)
	ry, okY := rational(y)
	if okX && okY && rx.Cmp(ry)*sign > 0 {
		return a
	}
	return b
}
