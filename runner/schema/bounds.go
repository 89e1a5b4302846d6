package schema

import (
	"cmp"
	"encoding/json"
	"maps"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Limits of values, and of the work of checking a value against a schema.
const (
	maxAnswerDepth  = 500
	maxSchemaChecks = 10_000  // checks per value: references and combinations multiply them
	maxAnswerChecks = 200_000 // checks of one complete answer
	maxExponent     = 400     // exponent of a number; a float64 has up to 308
	maxNumber       = 1000    // characters of a number
	maxParts        = 5000    // objects and booleans in a schema: the compiler compares each of them with all others
)

// outOfBounds returns the first place in a JSON value that would take long to check, and the
// problem there: too deep nesting, or a number with too many digits. If there is none, the
// problem is "".
func outOfBounds(v any, at string, depth int) (where, problem string) {
	if depth < 0 {
		return at, "is nested too deeply"
	}
	switch v := v.(type) {
	case json.Number:
		if !small(v) {
			return at, "has a number that is out of range"
		}
	case map[string]any:
		for _, name := range sortedKeys(v) { // sorted, so that the result for a value is always the same
			if where, problem = outOfBounds(v[name], at+"/"+escape(name), depth-1); problem != "" {
				return where, problem
			}
		}
	case []any:
		for i, child := range v {
			if where, problem = outOfBounds(child, at+"/"+strconv.Itoa(i), depth-1); problem != "" {
				return where, problem
			}
		}
	}
	return "", ""
}

// parts returns the number of values in a JSON value that can be schemas: objects and booleans.
func parts(v any) (n int) {
	switch v := v.(type) {
	case bool:
		return 1
	case map[string]any:
		n = 1
		for _, child := range v {
			n += parts(child)
		}
	case []any:
		for _, child := range v {
			n += parts(child)
		}
	}
	return n
}

func small(n json.Number) bool {
	_, exponent, _ := strings.Cut(strings.ToLower(n.String()), "e")
	e, err := strconv.Atoi(cmp.Or(exponent, "0"))
	return err == nil && max(e, -e) <= maxExponent && len(n) <= maxNumber
}

// rational returns the exact value of a number. It returns false if the value would take too
// much memory.
func rational(n json.Number) (*big.Rat, bool) {
	if !small(n) {
		return nil, false
	}
	return new(big.Rat).SetString(string(n))
}

// correct corrects two errors in the compiler's result, for a schema and all schemas that it
// uses. A limit such as maxLength that exceeds an int becomes negative. And the compiler keeps
// some keywords beside a reference, which Draft-07 ignores.
func correct(s *jsonschema.Schema, root any, seen map[*jsonschema.Schema]bool) {
	if seen[s] {
		return
	}
	seen[s] = true
	if s.Ref != nil && s.DraftVersion < 2019 {
		s.Const, s.Contains, s.PropertyNames, s.If, s.Then, s.Else = nil, nil, nil, nil, nil, nil
	}
	raw := root
	for _, key := range strings.Split(fragment(s.Location), "/")[1:] {
		raw, _ = child(raw, unescape(key))
	}
	for key, limit := range map[string]*int{"minLength": s.MinLength, "maxLength": s.MaxLength, "minItems": s.MinItems,
		"maxItems": s.MaxItems, "minProperties": s.MinProperties, "maxProperties": s.MaxProperties} {
		v, _ := child(raw, key)
		n, _ := v.(json.Number)
		if r, ok := rational(n); ok && limit != nil && r.Cmp(big.NewRat(math.MaxInt32, 1)) > 0 {
			*limit = math.MaxInt32 // no answer can be that long
		}
	}
	for _, next := range slices.Concat(sameValue(s), within(s)) {
		correct(next, root, seen)
	}
}

// A counter counts the checks that one value can cause. A few levels of doubled references
// multiply them to millions.
type counter struct {
	checks map[*jsonschema.Schema]int
	other  bool // a part uses another draft than Draft-07
}

func (b *counter) count(s *jsonschema.Schema) int {
	if n, ok := b.checks[s]; ok {
		return n
	}
	b.checks[s] = 1 // a recursive reference does not multiply here: its depth depends on the value
	b.other = b.other || s.DraftVersion != 7
	n := 1
	for _, child := range slices.Concat(sameValue(s), within(s)) {
		n = min(n+b.count(child), 2*maxSchemaChecks)
	}
	b.checks[s] = n
	return n
}

// loops records for each schema whether its check would never end. This happens if the check
// returns to the same schema with the same value.
type loops map[*jsonschema.Schema]bool

// find adds s and all schemas that s uses.
func (l loops) find(s *jsonschema.Schema, seen map[*jsonschema.Schema]bool) {
	if seen[s] {
		return
	}
	seen[s] = true
	l.endless(s, map[*jsonschema.Schema]bool{})
	for _, next := range slices.Concat(sameValue(s), within(s)) {
		l.find(next, seen)
	}
}

// endless reports whether s loops. above contains the schemas that lead to s.
func (l loops) endless(s *jsonschema.Schema, above map[*jsonschema.Schema]bool) bool {
	if above[s] {
		return true
	}
	if known, ok := l[s]; ok {
		return known
	}
	above[s] = true
	// Only schemas on the way to s make a loop, not its siblings.
	defer delete(above, s)
	l[s] = slices.ContainsFunc(sameValue(s), func(next *jsonschema.Schema) bool { return l.endless(next, above) })
	return l[s]
}

// sameValue returns the schemas that s applies to its own value.
func sameValue(s *jsonschema.Schema) []*jsonschema.Schema {
	list := slices.Concat(s.AllOf, s.AnyOf, s.OneOf)
	for _, one := range []*jsonschema.Schema{s.Ref, s.Not, s.If, s.Then, s.Else} {
		if one != nil {
			list = append(list, one)
		}
	}
	for _, d := range s.Dependencies {
		list = appendSchema(list, d)
	}
	return list
}

// within returns the schemas that s applies to properties and items of its value.
func within(s *jsonschema.Schema) []*jsonschema.Schema {
	list := slices.Collect(maps.Values(s.Properties))
	list = slices.AppendSeq(list, maps.Values(s.PatternProperties))
	for _, one := range []any{s.AdditionalProperties, s.PropertyNames, s.Items, s.AdditionalItems, s.Contains} {
		list = appendSchema(list, one)
	}
	if items, ok := s.Items.([]*jsonschema.Schema); ok {
		list = append(list, items...)
	}
	return list
}

// appendSchema appends v if it is a schema. Some keywords also allow other values.
func appendSchema(list []*jsonschema.Schema, v any) []*jsonschema.Schema {
	if s, ok := v.(*jsonschema.Schema); ok && s != nil {
		list = append(list, s)
	}
	return list
}

// A workload limits the checks that a value causes. If a schema refers to itself twice, the
// checks double with each level of the value.
type workload struct {
	left  int
	loops loops
}

// fit subtracts the work of checking v against s, and reports whether the limit was sufficient.
// depth is the number of schemas that led to s with the same value.
func (w *workload) fit(s *jsonschema.Schema, v any, depth int) bool {
	w.left--
	if s.Enum != nil {
		w.left -= len(s.Enum.Values) / 16 // the value is compared with each enum value
	}
	if w.left < 0 || depth > maxSchemaChecks || w.loops[s] {
		return false
	}
	for _, same := range sameValue(s) {
		if !w.fit(same, v, depth+1) {
			return false
		}
	}
	switch v := v.(type) {
	case map[string]any:
		for name, child := range v {
			if !w.fitAll(propertySchemas(s, name), child) {
				return false
			}
		}
	case []any:
		for i, child := range v {
			if !w.fitAll(appendSchema(itemSchemas(s, i), s.Contains), child) {
				return false
			}
		}
	}
	return true
}

func (w *workload) fitAll(schemas []*jsonschema.Schema, v any) bool {
	return !slices.ContainsFunc(schemas, func(s *jsonschema.Schema) bool { return !w.fit(s, v, 0) })
}

// propertySchemas returns the schemas that s applies to a property of that name.
func propertySchemas(s *jsonschema.Schema, name string) (list []*jsonschema.Schema) {
	list = appendSchema(list, s.Properties[name])
	for pattern, p := range s.PatternProperties {
		if pattern.MatchString(name) {
			list = append(list, p)
		}
	}
	if len(list) == 0 {
		list = appendSchema(list, s.AdditionalProperties)
	}
	return list
}

// itemSchemas returns the schema for the i-th item, if any. It ignores "contains", which an
// item need not meet.
func itemSchemas(s *jsonschema.Schema, i int) (list []*jsonschema.Schema) {
	switch items := s.Items.(type) {
	case *jsonschema.Schema:
		list = appendSchema(list, items)
	case []*jsonschema.Schema:
		if i < len(items) {
			list = append(list, items[i])
		} else {
			list = appendSchema(list, s.AdditionalItems)
		}
	}
	return list
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
