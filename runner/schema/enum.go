package schema

import (
	"encoding/json"
	"errors"
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// distinctEnums removes repeated values from each enum of a schema. Draft-07 allows them, but the
// compiler does not. Values that only look like schemas stay unchanged.
func distinctEnums(schema any) {
	switch schema := schema.(type) {
	case []any: // such as anyOf
		for _, one := range schema {
			distinctEnums(one)
		}
	case map[string]any:
		for keyword, value := range schema {
			distinctEnumsIn(schema, keyword, value)
		}
	}
}

// distinctEnumsIn does so for the value of one keyword of a schema.
func distinctEnumsIn(schema map[string]any, keyword string, value any) {
	switch keyword {
	case "const", "default", "examples":
	case "enum":
		if values, ok := value.([]any); ok {
			schema[keyword] = distinct(values)
		}
	case "properties", "patternProperties", "definitions", "$defs", "dependencies":
		named, _ := value.(map[string]any) // the compiler refuses another type
		for _, one := range named {
			distinctEnums(one)
		}
	default:
		distinctEnums(value)
	}
}

// distinct returns the values without those that equal an earlier one. 1 and 1.0 are equal.
func distinct(values []any) []any {
	seen := map[string]bool{}
	return slices.DeleteFunc(values, func(v any) bool {
		text, err := json.Marshal(exact(v))
		before := seen[string(text)]
		seen[string(text)] = true
		return before && err == nil
	})
}

// exact returns a value in which equal numbers have the same spelling. The first item of a list tells
// numbers from lists.
func exact(v any) any {
	switch v := v.(type) {
	case json.Number:
		if r, ok := rational(v); ok {
			return []any{"number", r.RatString()}
		}
	case []any:
		list := []any{"list"}
		for _, item := range v {
			list = append(list, exact(item))
		}
		return list
	case map[string]any:
		object := make(map[string]any, len(v))
		for name, item := range v {
			object[name] = exact(item)
		}
		return object
	}
	return v
}

// emptyEnum returns the place of an enum without values, which the compiler has refused.
func emptyEnum(err error) (at string, found bool) {
	var invalid *jsonschema.SchemaValidationError
	var problem *jsonschema.ValidationError
	if !errors.As(err, &invalid) || !errors.As(invalid.Err, &problem) {
		return "", false
	}
	for len(problem.Causes) > 0 {
		problem = problem.Causes[0]
	}
	where := problem.InstanceLocation
	_, few := problem.ErrorKind.(*kind.MinItems)
	return join(where), few && where[len(where)-1] == "enum"
}
