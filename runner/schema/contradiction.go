package schema

import (
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// A clash is a contradiction in a schema: the place and the reason.
type clash struct{ at, why string }

func clashAt(s *jsonschema.Schema, keyword, format string, args ...any) *clash {
	return &clash{fragment(s.Location) + keyword, cut(fmt.Sprintf(format, args...), 2*maxProblem)}
}

// maxClashWork is the maximum number of schemas that are visited in search of a contradiction.
const maxClashWork = 100_000

// contradiction returns a reason why no JSON object meets the schema, nil if it finds none. It
// compares the conditions of the object itself and of its required properties: types, constants,
// limits and the value false. It follows references and allOf, but tries no alternatives such as
// anyOf. So it misses many contradictions, but those that it finds are real.
func (s *Schema) contradiction() *clash {
	defer s.patterns.restart()()
	f := finder{loops: s.loops, left: maxClashWork, entered: map[string]bool{}}
	problem := f.find([]*jsonschema.Schema{s.root}, typesNamed("object"))
	if s.patterns.slow != "" {
		return nil // a pattern took too long, so its property may have another schema
	}
	return problem
}

// A finder finds a contradiction.
type finder struct {
	loops   loops
	left    int             // schemas that may still be visited
	entered map[string]bool // sets of schemas: true while the search is inside their value
}

// find returns a contradiction of a value that must be of one of the types and meet all schemas.
func (f *finder) find(all []*jsonschema.Schema, types jsonschema.Types) *clash {
	if len(all) == 0 {
		return nil
	}
	goal := fmt.Sprint(int(types))
	for _, s := range all {
		goal += fmt.Sprintf(" %p", s)
	}
	if inside, known := f.entered[goal]; inside {
		return clashAt(all[0], "", "a value would have to contain another value of the same kind, endlessly")
	} else if known {
		return nil
	}
	f.entered[goal] = true
	defer func() { f.entered[goal] = false }()
	c := conditions{types: types}
	for _, s := range all {
		if problem := f.add(&c, s); problem != nil {
			return problem
		}
	}
	for _, s := range c.schemas {
		if problem := emptyRange(s, c.types); problem != nil {
			return problem
		}
		if c.types != typesNamed("object") {
			continue // a value of another type needs no properties
		}
		for _, name := range s.Required {
			if problem := f.find(f.property(&c, name), anyType()); problem != nil {
				why := fmt.Sprintf("%s; %s is required by %s", problem.why, quote(name), pointer(fragment(s.Location)))
				return &clash{problem.at, cut(why, 2*maxProblem)}
			}
		}
	}
	return nil
}

// conditions are all conditions for one value.
type conditions struct {
	types   jsonschema.Types
	schemas []*jsonschema.Schema // including the targets of references
}

// add adds the conditions of a schema and of all schemas that it implies.
func (f *finder) add(c *conditions, s *jsonschema.Schema) *clash {
	if s == nil || f.left <= 0 || slices.Contains(c.schemas, s) {
		return nil
	}
	f.left -= 1 + len(c.schemas)/32 // for the search in schemas
	c.schemas = append(c.schemas, s)
	switch {
	case s.Bool != nil && !*s.Bool:
		return clashAt(s, "", "false allows no value")
	case f.loops[s]:
		return clashAt(s, "", "it refers to itself endlessly")
	}
	for _, keyword := range []string{"/type", "/const", "/enum"} {
		before, allowed := c.types, allows(s, keyword)
		if c.types &= allowed; c.types == 0 {
			return clashAt(s, keyword, "allows %s where only %s is possible", list(allowed), list(before))
		}
	}
	for _, part := range append([]*jsonschema.Schema{s.Ref}, s.AllOf...) {
		if problem := f.add(c, part); problem != nil {
			return problem
		}
	}
	return nil
}

// property returns the schemas that a property of that name must meet, none if that would be too
// much work.
func (f *finder) property(c *conditions, name string) (list []*jsonschema.Schema) {
	no := false
	for _, s := range c.schemas {
		if f.left -= 1 + len(s.PatternProperties); f.left <= 0 {
			return nil
		}
		of := propertySchemas(s, name)
		if _, named := s.Properties[name]; len(of) == 0 && !named && s.AdditionalProperties == false {
			of = append(of, &jsonschema.Schema{Bool: &no, Location: s.Location + "/additionalProperties"})
		}
		list = append(list, of...)
	}
	return list
}

// allows returns the types that a keyword of a schema allows.
func allows(s *jsonschema.Schema, keyword string) jsonschema.Types {
	switch {
	case keyword == "/type" && s.Types != nil:
		return typesNamed(s.Types.ToStrings()...)
	case keyword == "/const" && s.Const != nil:
		return typeOf(*s.Const)
	case keyword == "/enum" && s.Enum != nil:
		var types jsonschema.Types
		for _, v := range s.Enum.Values {
			types |= typeOf(v)
		}
		return types
	}
	return anyType()
}

// typesNamed returns a set of types. A number may be an integer, so the set with numbers contains
// both types. Without integers, it contains only the numbers with fractions.
func typesNamed(names ...string) (types jsonschema.Types) {
	for _, name := range names {
		types.Add(name)
		if name == "number" {
			types.Add("integer")
		}
	}
	return types
}

func anyType() jsonschema.Types {
	return typesNamed("null", "boolean", "number", "string", "array", "object")
}

// list returns the names of types for a message.
func list(types jsonschema.Types) string { return strings.Join(types.ToStrings(), " or ") }

// typeOf returns the type of a JSON value.
func typeOf(v any) (t jsonschema.Types) {
	switch v := v.(type) {
	case nil:
		t.Add("null")
	case bool:
		t.Add("boolean")
	case json.Number:
		t.Add("number")
		if r, ok := rational(v); ok && r.IsInt() {
			t = typesNamed("integer")
		}
	case string:
		t.Add("string")
	case []any:
		t.Add("array")
	default:
		t.Add("object")
	}
	return t
}

// emptyRange returns a contradiction if a minimum in s is above the maximum. A limit counts only
// if the value must be of its type.
func emptyRange(s *jsonschema.Schema, types jsonschema.Types) *clash {
	count := func(n *int) *big.Rat {
		if n == nil {
			return nil
		}
		return big.NewRat(int64(*n), 1)
	}
	for _, r := range []struct {
		of, least, most string
		low, high       *big.Rat
		open            bool // excludes one of its ends
	}{
		{"string", "minLength", "maxLength", count(s.MinLength), count(s.MaxLength), false},
		{"array", "minItems", "maxItems", count(s.MinItems), count(s.MaxItems), false},
		{"object", "minProperties", "maxProperties", count(s.MinProperties), count(s.MaxProperties), false},
		{"number", "minimum", "maximum", s.Minimum, s.Maximum, false},
		{"number", "minimum", "exclusiveMaximum", s.Minimum, s.ExclusiveMaximum, true},
		{"number", "exclusiveMinimum", "maximum", s.ExclusiveMinimum, s.Maximum, true},
		{"number", "exclusiveMinimum", "exclusiveMaximum", s.ExclusiveMinimum, s.ExclusiveMaximum, true},
	} {
		if types&^typesNamed(r.of) != 0 || r.low == nil || r.high == nil {
			continue
		}
		order, relation := r.low.Cmp(r.high), "more than"
		if order == 0 {
			relation = "not less than"
		}
		if order > 0 || order == 0 && r.open {
			return clashAt(s, "/"+r.least, "%s is %s the %s of %s", r.low.RatString(), relation, r.most, r.high.RatString())
		}
	}
	return nil
}
