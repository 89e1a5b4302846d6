package mcp

import (
	"maps"
	"slices"
)

// modernized returns a schema in the words of JSON Schema 2020-12 where it has those of older drafts or plain
// mistakes with one meaning. It adds what it has dropped, in words for the log, to dropped. The server still checks the
// arguments by its own schema. Levels below maxDepth stay as they are.
func modernized(fields map[string]any, depth int, dropped *[]string) map[string]any {
	if fields = maps.Clone(fields); depth > maxDepth {
		return fields
	}
	modernizeWords(fields, depth, dropped)
	for _, name := range []string{"properties", "$defs", "definitions", "patternProperties", "dependentSchemas"} {
		group, ok := fields[name].(map[string]any)
		if !ok {
			continue
		}
		fields[name] = modernizedGroup(group, name == "properties", fields, depth, dropped)
	}
	for _, name := range []string{"items", "additionalProperties", "not", "contains", "propertyNames", "if", "then", "else"} {
		if inner, ok := fields[name].(map[string]any); ok {
			fields[name] = modernized(inner, depth+1, dropped)
		}
	}
	for _, name := range []string{"anyOf", "oneOf", "allOf", "prefixItems"} {
		list, ok := fields[name].([]any)
		if !ok {
			continue
		}
		list = slices.Clone(list)
		for i, v := range list {
			if inner, ok := v.(map[string]any); ok {
				list[i] = modernized(inner, depth+1, dropped)
			}
		}
		fields[name] = list
	}
	return fields
}

// modernizeWords replaces the old words of one level.
func modernizeWords(fields map[string]any, depth int, dropped *[]string) {
	delete(fields, "$schema") // the schema is checked by the words that it has now
	if _, ok := fields["id"].(string); ok && depth == 0 {
		delete(fields, "id") // the address of draft-04
	}
	if _, ok := fields["required"].(bool); ok { // draft-03: the object has the list
		delete(fields, "required")
	}
	for exclusive, bound := range map[string]string{"exclusiveMinimum": "minimum", "exclusiveMaximum": "maximum"} {
		is, ok := fields[exclusive].(bool)
		if !ok {
			continue
		}
		delete(fields, exclusive) // draft-04
		if n, ok := fields[bound]; is && ok {
			delete(fields, bound)
			fields[exclusive] = n
		}
	}
	switch kind := fields["type"].(type) {
	case string:
		if kind == "any" {
			delete(fields, "type")
		}
	case []any:
		if slices.Contains(kind, any("any")) {
			delete(fields, "type")
		}
	}
	if list, ok := fields["items"].([]any); ok { // a tuple of draft-07
		delete(fields, "items")
		if fields["prefixItems"] = list; len(list) == 0 {
			delete(fields, "prefixItems")
		}
		if more, ok := fields["additionalItems"]; ok {
			fields["items"] = more
		}
	}
	delete(fields, "additionalItems")
	if list, ok := fields["enum"].([]any); ok && len(list) == 0 {
		delete(fields, "enum")
		*dropped = append(*dropped, "enum (it is empty)")
	}
}

// modernizedGroup returns named schemas in modern words. The names of properties that say required: true go into the
// list of their object.
func modernizedGroup(group map[string]any, properties bool, fields map[string]any, depth int, dropped *[]string) map[string]any {
	group = maps.Clone(group)
	for _, name := range slices.Sorted(maps.Keys(group)) {
		inner, ok := group[name].(map[string]any)
		if !ok {
			continue
		}
		list, isList := fields["required"].([]any)
		if needed, _ := inner["required"].(bool); properties && needed && (isList || fields["required"] == nil) &&
			!slices.Contains(list, any(name)) {
			fields["required"] = append(slices.Clone(list), name)
		}
		group[name] = modernized(inner, depth+1, dropped)
	}
	return group
}
