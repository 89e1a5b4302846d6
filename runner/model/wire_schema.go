package model

import (
	"encoding/json"
	"slices"
)

// A wireSchema is an output schema in the subset of JSON Schema that providers
// compile to a grammar.
type wireSchema struct {
	schema map[string]any
	strict bool // every property is required, as OpenAI's strict mode wants it
}

// maxBadSchemas bounds how many schemas are remembered that a provider refused.
const maxBadSchemas = 1000

// schemaFormats are the string formats that providers know.
var schemaFormats = []string{"date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"}

// toWireSchema puts a schema into that subset. What it has to leave out, such as
// limits of numbers, only makes it more lenient: the answer is checked against
// the whole schema afterwards. Not ok means that the subset cannot say it at all.
func toWireSchema(raw json.RawMessage) (w wireSchema, ok bool) {
	var root map[string]any
	if len(raw) > maxSchemaBytes || json.Unmarshal(raw, &root) != nil || root["type"] != "object" {
		return w, false
	}
	w.strict = true
	w.schema, ok = w.object(root, 0)
	return w, ok
}

// object rewrites one schema.
func (w *wireSchema) object(in map[string]any, depth int) (map[string]any, bool) {
	if depth > maxSchemaDepth {
		return nil, false
	}
	if ref, ok := in["$ref"].(string); ok {
		return map[string]any{"$ref": ref}, true
	}
	out := map[string]any{}
	for _, key := range []string{"type", "enum", "const", "description", "title", "required"} {
		if v, ok := in[key]; ok {
			out[key] = v
		}
	}
	if f, ok := in["format"].(string); ok && slices.Contains(schemaFormats, f) {
		out["format"] = f
	}
	if !w.children(in, out, depth) {
		return nil, false
	}
	if in["type"] == "object" || in["properties"] != nil {
		return out, w.closeObject(in, out)
	}
	said := out["type"] != nil || out["enum"] != nil || out["const"] != nil || out["anyOf"] != nil
	return out, said // a schema that says nothing allows anything, which no grammar can
}

// children rewrites the schemas within a schema.
func (w *wireSchema) children(in, out map[string]any, depth int) bool {
	for _, key := range []string{"properties", "definitions", "$defs"} {
		named, ok := in[key].(map[string]any)
		if !ok {
			continue
		}
		rewritten := map[string]any{}
		for name, child := range named {
			if rewritten[name], ok = w.any(child, depth); !ok {
				return false
			}
		}
		out[key] = rewritten
	}
	if in["allOf"] != nil || in["not"] != nil || in["if"] != nil {
		return false // closed objects do not add up
	}
	for _, key := range []string{"anyOf", "oneOf"} {
		list, ok := in[key].([]any)
		if !ok {
			continue
		}
		if out["anyOf"] != nil {
			return false // both at once
		}
		rewritten := make([]any, len(list))
		for i, child := range list {
			if rewritten[i], ok = w.any(child, depth); !ok {
				return false
			}
		}
		out["anyOf"] = rewritten
	}
	items, ok := in["items"]
	if !ok {
		return in["type"] != "array"
	}
	out["items"], ok = w.any(items, depth)
	return ok
}

func (w *wireSchema) any(v any, depth int) (any, bool) {
	in, ok := v.(map[string]any)
	if !ok {
		return nil, false // true, false, or items one by one
	}
	return w.object(in, depth+1)
}

// closeObject forbids properties that are not named. An object of free names
// cannot be said.
func (w *wireSchema) closeObject(in, out map[string]any) bool {
	properties, _ := out["properties"].(map[string]any)
	if len(properties) == 0 || in["patternProperties"] != nil {
		return false
	}
	if extra, ok := in["additionalProperties"]; ok && extra != false && extra != true {
		return false
	}
	required, _ := in["required"].([]any)
	for name := range properties {
		if !slices.Contains(required, any(name)) {
			w.strict = false
		}
	}
	for _, name := range required {
		if s, ok := name.(string); !ok || properties[s] == nil {
			return false
		}
	}
	out["additionalProperties"] = false
	return true
}
