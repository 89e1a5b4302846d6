package schema

import (
	"maps"
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// maxFieldParts limits the references that are followed for the fields of one value.
const maxFieldParts = 100

// A Field is a property that a schema names.
type Field struct {
	Name     string
	Required bool
	Schema   *Schema
}

// Fields returns the properties that the schema names, by their names.
func (s *Schema) Fields() []Field {
	named, required := map[string]*jsonschema.Schema{}, map[string]bool{}
	for _, part := range s.parts() {
		maps.Copy(named, part.Properties)
		for _, name := range part.Required {
			required[name] = true
		}
	}
	fields := make([]Field, 0, len(named))
	for _, name := range sortedKeys(named) {
		fields = append(fields, Field{name, required[name], s.sub(named[name])})
	}
	return fields
}

// Items returns the schema of the items of an array, nil if there is none for all of them.
func (s *Schema) Items() *Schema {
	for _, part := range s.parts() {
		if items, ok := part.Items.(*jsonschema.Schema); ok {
			return s.sub(items)
		}
	}
	return nil
}

// Choices returns the values that the schema lists (const and enum), and its defaults.
func (s *Schema) Choices() (list, defaults []any) {
	for _, part := range s.parts() {
		if part.Const != nil {
			list = append(list, *part.Const)
		}
		if part.Enum != nil {
			list = append(list, part.Enum.Values...)
		}
		if part.Default != nil {
			defaults = append(defaults, *part.Default)
		}
	}
	return list, defaults
}

// sub returns a part of the schema as a schema of its own.
func (s *Schema) sub(part *jsonschema.Schema) *Schema {
	return &Schema{root: part, loops: s.loops, patterns: s.patterns}
}

// parts returns the schema, the targets of its references, its allOf, and the first alternative of
// each anyOf and oneOf.
func (s *Schema) parts() (list []*jsonschema.Schema) {
	var add func(one *jsonschema.Schema)
	add = func(one *jsonschema.Schema) {
		if one == nil || len(list) == maxFieldParts || slices.Contains(list, one) {
			return
		}
		list = append(list, one)
		add(one.Ref)
		for _, next := range slices.Concat(one.AllOf, first(one.AnyOf), first(one.OneOf)) {
			add(next)
		}
	}
	add(s.root)
	return list
}

func first(list []*jsonschema.Schema) []*jsonschema.Schema { return list[:min(len(list), 1)] }
