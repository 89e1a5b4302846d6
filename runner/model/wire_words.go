package model

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
)

// members are the members of a JSON object in their order.
type members []member

type member struct {
	name  string
	value json.RawMessage
}

// membersOf returns the members of an object, nil for another value. null counts as absent.
func membersOf(raw json.RawMessage) members {
	if raw = bytes.TrimSpace(raw); len(raw) == 0 || raw[0] != '{' {
		return nil
	}
	list := members{}
	dec := json.NewDecoder(bytes.NewReader(raw))
	if _, err := dec.Token(); err != nil {
		return nil
	}
	for dec.More() {
		name, err := dec.Token()
		var one member
		if err != nil || dec.Decode(&one.value) != nil {
			return nil
		}
		if one.name, _ = name.(string); string(one.value) != "null" {
			list = append(list, one)
		}
	}
	return list
}

// get returns the value of a member, nil if there is none.
func (m members) get(name string) json.RawMessage {
	for _, one := range m {
		if one.name == name {
			return one.value
		}
	}
	return nil
}

// textOf returns a JSON string, "" for another value.
func textOf(raw json.RawMessage) string {
	var s string
	_ = json.Unmarshal(raw, &s)
	return s
}

// typeName returns JSON Schema's name of a type, "" if it is unknown or allows everything. Servers that are written by
// hand name types as their languages do.
func typeName(word string) string {
	switch word = strings.ToLower(word); word {
	case "string", "number", "integer", "boolean", "object", "array", "null":
		return word
	case "str", "text", "date", "datetime", "uuid", "file", "bytes":
		return "string"
	case "int", "int32", "int64", "long":
		return "integer"
	case "float", "double", "decimal", "num":
		return "number"
	case "bool":
		return "boolean"
	case "dict", "map", "struct":
		return "object"
	case "list", "tuple", "set":
		return "array"
	case "none", "nil":
		return "null"
	}
	return ""
}

// typesOf returns the types that a schema names. A list with an unknown type names none.
func typesOf(raw json.RawMessage) (types []string) {
	var words []string
	if json.Unmarshal(raw, &words) != nil {
		words = []string{textOf(raw)}
	}
	for _, word := range words {
		t := typeName(word)
		if t == "" {
			return nil
		}
		if !slices.Contains(types, t) {
			types = append(types, t)
		}
	}
	return types
}

// oneOrMany returns the only type, or the list of types.
func oneOrMany(types []string) any {
	if len(types) == 1 {
		return types[0]
	}
	return types
}

// typeOf returns the type of a JSON value.
func typeOf(raw json.RawMessage) string {
	switch raw[0] {
	case '"':
		return "string"
	case '{':
		return "object"
	case '[':
		return "array"
	case 't', 'f':
		return "boolean"
	case 'n':
		return "null"
	}
	if bytes.ContainsAny(raw, ".eE") {
		return "number"
	}
	return "integer"
}

// allows reports whether a schema's types allow a type. A schema without types allows each.
func (s *plainSchema) allows(t string) bool {
	switch types := s.Type.(type) {
	case string:
		return types == t || types == "number" && t == "integer"
	case []string:
		return slices.Contains(types, t) || t == "integer" && slices.Contains(types, "number")
	}
	return true
}

// values converts enum and const. Every enum has the type of its values.
func (s *plainSchema) values(in members) {
	var list []json.RawMessage
	_ = json.Unmarshal(in.get("enum"), &list)
	if one := in.get("const"); one != nil && list == nil {
		list = []json.RawMessage{one}
	}
	seen := map[string]bool{}
	var types []string
	fits := s.Type != nil
	for _, raw := range list {
		var b bytes.Buffer
		if json.Compact(&b, raw) != nil || seen[b.String()] {
			continue
		}
		seen[b.String()] = true
		s.Enum = append(s.Enum, b.Bytes())
		t := typeOf(b.Bytes())
		fits = fits && s.allows(t)
		if !slices.Contains(types, t) {
			types = append(types, t)
		}
	}
	if len(s.Enum) > 0 && !fits {
		s.Type = oneOrMany(types)
	}
	if raw := in.get("default"); raw != nil && len(raw) <= mostHint {
		s.Default = raw
	}
}

// lengths converts limits of texts and lists. Long ones and patterns become words of the description: the grammars of
// servers refuse some of them.
func (s *plainSchema) lengths(in members) {
	if f := textOf(in.get("format")); isWireFormat(f) && s.allows("string") {
		s.Format = f
	}
	if pattern := textOf(in.get("pattern")); pattern != "" && len(pattern) <= mostHint {
		s.hint("pattern " + pattern)
	}
	for _, l := range []struct {
		least, most, what string
		from              *int
		to                **int
	}{
		{"minLength", "maxLength", "characters", &s.MinLength, &s.MaxLength},
		{"minItems", "maxItems", "entries", &s.MinItems, &s.MaxItems},
	} {
		least, _ := lengthOf(in.get(l.least))
		most, limited := lengthOf(in.get(l.most))
		if limited && least > most {
			continue // no value could follow both
		}
		if least <= mostRepeated {
			*l.from = least
		}
		if limited && most > 0 && most <= mostRepeated { // grammars of older servers cannot express an empty list
			*l.to = &most
		} else if limited {
			s.hint(fmt.Sprintf("at most %d %s", most, l.what))
		}
	}
}

// lengthOf returns a length, and whether the JSON value is one.
func lengthOf(raw json.RawMessage) (int, bool) {
	var f float64
	if raw == nil || json.Unmarshal(raw, &f) != nil || f != math.Trunc(f) || f < 0 || f >= mostExact {
		return 0, false
	}
	return int(f), true
}

// numbers converts limits of numbers.
func (s *plainSchema) numbers(in members) {
	limit := func(key string) (raw json.RawMessage, f float64) {
		if raw = in.get(key); raw == nil || json.Unmarshal(raw, &f) != nil || math.Abs(f) >= mostExact-1 {
			return nil, 0
		}
		return raw, f
	}
	least, from := limit("minimum")
	most, to := limit("maximum")
	if least == nil || most == nil || from <= to {
		s.Minimum, s.Maximum = orRaw(least, s.Minimum), orRaw(most, s.Maximum)
	}
	above, from := limit("exclusiveMinimum")
	below, to := limit("exclusiveMaximum")
	if above == nil || below == nil || from < to {
		s.ExclusiveMinimum, s.ExclusiveMaximum = orRaw(above, s.ExclusiveMinimum), orRaw(below, s.ExclusiveMaximum)
	}
}

// orRaw returns a if it is present, else b.
func orRaw(a, b json.RawMessage) json.RawMessage {
	if a != nil {
		return a
	}
	return b
}

// infer names the type that the other words of a schema mean, and removes words of other types. Every array has items.
func (s *plainSchema) infer(in members) {
	switch {
	case s.Type != nil || s.AnyOf != nil:
	case s.Properties != nil || s.Additional != nil:
		s.Type = "object"
	case s.Items != nil || s.MaxItems != nil || s.MinItems > 0:
		s.Type = "array"
	case s.MaxLength != nil || s.MinLength > 0 || s.Format != "" || in.get("pattern") != nil:
		s.Type = "string"
	}
	if !s.allows("object") {
		s.Properties, s.Required, s.Additional = nil, nil, nil
	}
	switch {
	case !s.allows("array") || s.Type == nil:
		s.Items, s.MinItems, s.MaxItems = nil, 0, nil
	case s.Items == nil:
		s.Items = &plainSchema{}
	}
	if !s.allows("string") {
		s.MinLength, s.MaxLength, s.Format = 0, nil, ""
	}
	if len(s.Enum) > 0 { // the values say everything
		s.MinLength, s.MaxLength, s.Format = 0, nil, ""
	}
	if len(s.Enum) > 0 || !s.allows("integer") {
		s.Minimum, s.Maximum, s.ExclusiveMinimum, s.ExclusiveMaximum = nil, nil, nil, nil
	}
}

// hint adds words to the description.
func (s *plainSchema) hint(words string) {
	s.Description = strings.TrimSpace(s.Description + " (" + words + ")")
}
