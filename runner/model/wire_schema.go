package model

import (
	"encoding/json"
	"slices"

	"journeyman/runner/schema"
)

// A wireSchema is an output schema in the subset of JSON Schema that providers accept and
// compile to a grammar.
type wireSchema struct {
	schema map[string]any
	strict bool // every property is required, as in OpenAI's strict mode
}

// badSchemas are output schemas that a provider rejected. Later requests only describe them in
// the prompt.
type badSchemas map[string]bool

// maxBadSchemas limits the rejected schemas that are kept, because users write them.
const maxBadSchemas = 1000

func (b badSchemas) add(raw json.RawMessage) {
	if len(b) < maxBadSchemas {
		b[string(raw)] = true
	}
}

// isWireFormat reports whether providers support a string format.
func isWireFormat(format string) bool {
	switch format {
	case "date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid":
		return true
	}
	return false
}

// toWireSchema converts a schema to that subset. It drops rules such as limits of numbers. This
// is safe, because the answer is checked against the complete schema afterwards. It returns
// false for schemas that the subset cannot express.
func toWireSchema(raw json.RawMessage) (w wireSchema, ok bool) {
	var root map[string]any
	if len(raw) > schema.MaxSize || json.Unmarshal(raw, &root) != nil || root["type"] != "object" {
		return w, false
	}
	w.strict = true
	w.schema, ok = w.object(root, 0)
	return w, ok
}

// object converts one schema.
func (w *wireSchema) object(in map[string]any, depth int) (map[string]any, bool) {
	if depth > schema.MaxDepth {
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
	if f, ok := in["format"].(string); ok && isWireFormat(f) {
		out["format"] = f
	}
	if values, ok := in["enum"].([]any); ok && out["type"] == nil {
		s := &plainSchema{}
		s.values(members{{"enum", rawJSON(values)}})
		out["type"] = s.Type
	}
	if !w.children(in, out, depth) {
		return nil, false
	}
	if in["type"] == "object" || in["properties"] != nil {
		return out, w.closeObject(in, out)
	}
	restricts := out["type"] != nil || out["enum"] != nil || out["const"] != nil || out["anyOf"] != nil
	return out, restricts // a schema without rules allows every value, which no grammar can express
}

// children converts the schemas within a schema.
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
		return false // closed objects cannot be combined
	}
	for _, key := range []string{"anyOf", "oneOf"} {
		list, ok := in[key].([]any)
		if !ok {
			continue
		}
		if out["anyOf"] != nil {
			return false // anyOf and oneOf together
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
		return nil, false // true, false, or a tuple
	}
	return w.object(in, depth+1)
}

// closeObject forbids properties without a schema. It returns false for objects with arbitrary
// property names, which the subset cannot express.
func (w *wireSchema) closeObject(in, out map[string]any) bool {
	properties, _ := out["properties"].(map[string]any)
	if len(properties) == 0 || in["patternProperties"] != nil {
		return false
	}
	if extra, ok := in["additionalProperties"]; ok && extra != false && extra != true {
		return false
	}
	required, _ := in["required"].([]any)
	// Strict mode requires that every property is required.
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
