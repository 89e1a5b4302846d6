package runner

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// What an output schema may be, and an answer to it, so that neither compiling nor
// checking can be made to take long.
const (
	maxSchemaSize   = 64 << 10 // bytes
	maxSchemaDepth  = 32
	maxAnswerDepth  = 500
	maxSchemaChecks = 10_000  // that one value may take: references and combinations multiply
	maxAnswerChecks = 200_000 // that an answer may take
	maxExponent     = 400     // of a number; a float64 reaches 308
	maxNumber       = 1000    // characters of one
	maxProblems     = 10      // told of one answer
	maxProblem      = 300     // characters of one
)

// boundValue says what about a JSON value would make it take long to check, ” if
// nothing does: depth, and numbers with so many digits that they take seconds each.
func boundValue(v any, depth int) string {
	if depth < 0 {
		return "is nested too deep"
	}
	switch v := v.(type) {
	case json.Number:
		_, exponent, _ := strings.Cut(strings.ToLower(v.String()), "e")
		if n, err := strconv.Atoi(cmp.Or(exponent, "0")); err != nil || max(n, -n) > maxExponent || len(v) > maxNumber {
			return "has a number that is out of range"
		}
	case map[string]any:
		for _, child := range v {
			if problem := boundValue(child, depth-1); problem != "" {
				return problem
			}
		}
	case []any:
		for _, child := range v {
			if problem := boundValue(child, depth-1); problem != "" {
				return problem
			}
		}
	}
	return ""
}

// schemaBounds counts the checks that a value can take: a few levels of doubled
// references multiply to millions.
type schemaBounds struct {
	checks map[*jsonschema.Schema]int
	other  bool // a part is not of Draft-07
}

func (b *schemaBounds) count(s *jsonschema.Schema) int {
	if n, ok := b.checks[s]; ok {
		return n
	}
	b.checks[s] = 1 // a reference inside itself does not multiply here: it follows the answer
	b.other = b.other || s.DraftVersion != 7
	n := 1
	for _, child := range slices.Concat(sameValue(s), within(s)) {
		n = min(n+b.count(child), 2*maxSchemaChecks)
	}
	b.checks[s] = n
	return n
}

// sameValue are the schemas that s applies to the value it is itself applied to.
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

// within are the schemas that s applies to what is in the value.
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

// appendSchema appends v if it is a schema: some keywords take other things too.
func appendSchema(list []*jsonschema.Schema, v any) []*jsonschema.Schema {
	if s, ok := v.(*jsonschema.Schema); ok && s != nil {
		list = append(list, s)
	}
	return list
}

// answerChecks counts the checks that an answer takes: where a schema refers to
// itself twice, they double with each level of the answer.
type answerChecks struct{ n int }

// fit reports whether checking v against s is no more work than an answer may make.
// depth counts the schemas applied to the same value.
func (c *answerChecks) fit(s *jsonschema.Schema, v any, depth int) bool {
	if c.n++; c.n > maxAnswerChecks || depth > maxSchemaChecks {
		return false
	}
	for _, same := range sameValue(s) {
		if !c.fit(same, v, depth+1) {
			return false
		}
	}
	switch v := v.(type) {
	case map[string]any:
		for name, child := range v {
			if !c.fitAll(propertySchemas(s, name), child) {
				return false
			}
		}
	case []any:
		for i, child := range v {
			if !c.fitAll(itemSchemas(s, i), child) {
				return false
			}
		}
	}
	return true
}

func (c *answerChecks) fitAll(schemas []*jsonschema.Schema, v any) bool {
	for _, s := range schemas {
		if !c.fit(s, v, 0) {
			return false
		}
	}
	return true
}

// propertySchemas are those that s applies to a property of that name.
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

// itemSchemas are those that s applies to the i-th item.
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
	return appendSchema(list, s.Contains)
}
