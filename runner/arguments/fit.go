package arguments

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

// Fit returns an object of arguments with values of the types that a JSON Schema wants, where the model wrote them in
// another form: "1" for 1, "true" for true, 1 for "1", the text of an object or a list for itself, one entry for a
// list of it, and null or an empty text for an optional argument that is left out. Everything else stays as it is.
func Fit(schema, input json.RawMessage) json.RawMessage {
	if fitted, changed := fit(schema, input, 0); changed {
		return fitted
	}
	return input
}

// deepest is the depth to which values are compared with their schema.
const deepest = 10

// A wanted is what Fit reads of a schema.
type wanted struct {
	Type       json.RawMessage            `json:"type"`
	Properties map[string]json.RawMessage `json:"properties"`
	Required   []string                   `json:"required"`
	Items      json.RawMessage            `json:"items"`
}

// types returns the types that are wanted.
func (w *wanted) types() (types []string) {
	var one string
	if json.Unmarshal(w.Type, &one) == nil && one != "" {
		return []string{one}
	}
	_ = json.Unmarshal(w.Type, &types) // without a type, every value fits
	return types
}

// fit returns the value in the wanted form, and whether it is another one.
func fit(schema, value json.RawMessage, depth int) (json.RawMessage, bool) {
	var w wanted
	value = bytes.TrimSpace(value)
	if depth > deepest || len(value) == 0 || json.Unmarshal(schema, &w) != nil {
		return value, false
	}
	types, changed := w.types(), false
	if len(types) > 0 && !slices.ContainsFunc(types, func(t string) bool { return isType(value, t) }) {
		for _, t := range types {
			if as, ok := converted(value, t, w.Items); ok {
				value, changed = as, true
				break
			}
		}
	}
	var inner json.RawMessage
	within := false
	switch value[0] {
	case '{':
		inner, within = fitObject(&w, value, depth)
	case '[':
		inner, within = fitList(&w, value, depth)
	}
	if within {
		return inner, true
	}
	return value, changed
}

// fitObject fits the members of an object.
func fitObject(w *wanted, value json.RawMessage, depth int) (json.RawMessage, bool) {
	var members map[string]json.RawMessage
	if len(w.Properties) == 0 || json.Unmarshal(value, &members) != nil {
		return nil, false
	}
	changed := false
	for name, raw := range members {
		schema, known := w.Properties[name]
		switch {
		case !known:
		case leftOut(schema, raw) && !slices.Contains(w.Required, name):
			delete(members, name)
			changed = true
		default:
			if as, other := fit(schema, raw, depth+1); other {
				members[name], changed = as, true
			}
		}
	}
	if !changed {
		return nil, false
	}
	out, err := marshal(members)
	return out, err == nil
}

// fitList fits the entries of a list.
func fitList(w *wanted, value json.RawMessage, depth int) (json.RawMessage, bool) {
	var list []json.RawMessage
	if len(w.Items) == 0 || w.Items[0] != '{' || json.Unmarshal(value, &list) != nil {
		return nil, false
	}
	changed := false
	for i, raw := range list {
		if as, other := fit(w.Items, raw, depth+1); other {
			list[i], changed = as, true
		}
	}
	if !changed {
		return nil, false
	}
	out, err := marshal(list)
	return out, err == nil
}

// leftOut reports whether a value means that an optional argument is absent.
func leftOut(schema, value json.RawMessage) bool {
	var w wanted
	if json.Unmarshal(schema, &w) != nil {
		return false
	}
	types := w.types()
	switch strings.ToLower(string(value)) {
	case `null`:
		return len(types) > 0 && !slices.Contains(types, "null")
	case `""`, `"null"`, `"none"`:
		return len(types) > 0 && !slices.Contains(types, "string") && !slices.Contains(types, "null")
	}
	return false
}

// isType reports whether a JSON value has a type.
func isType(value json.RawMessage, t string) bool {
	switch t {
	case "string":
		return value[0] == '"'
	case "object":
		return value[0] == '{'
	case "array":
		return value[0] == '['
	case "boolean":
		return value[0] == 't' || value[0] == 'f'
	case "null":
		return value[0] == 'n'
	case "number", "integer":
		return value[0] == '-' || value[0] >= '0' && value[0] <= '9'
	}
	return true // an unknown type
}

// converted returns a value as one of another type. ok is false if it could mean something else.
func converted(value json.RawMessage, t string, items json.RawMessage) (_ json.RawMessage, ok bool) {
	var text string
	isText := value[0] == '"' && json.Unmarshal(value, &text) == nil
	text = strings.TrimSpace(text)
	if isText && means(t, text) {
		if t == "boolean" {
			text = strings.ToLower(text)
		}
		return json.RawMessage(text), true
	}
	switch {
	// The text of a number or of true. An object could have been meant for another argument.
	case t == "string" && !isType(value, "object") && !isType(value, "array") && !isType(value, "null"):
		return json.RawMessage(strconv.Quote(string(value))), true
	case t == "array" && !isType(value, "null") && isEntry(value, items):
		return slices.Concat(json.RawMessage("["), value, json.RawMessage("]")), true
	}
	return nil, false
}

// means reports whether a text is the JSON of a value of a type.
func means(t, text string) bool {
	switch t {
	case "number", "integer":
		_, err := strconv.ParseFloat(text, 64)
		return err == nil && json.Valid([]byte(text))
	case "boolean":
		return strings.EqualFold(text, "true") || strings.EqualFold(text, "false")
	case "object":
		return strings.HasPrefix(text, "{") && json.Valid([]byte(text))
	case "array":
		return strings.HasPrefix(text, "[") && json.Valid([]byte(text))
	}
	return false
}

// isEntry reports whether a value is one entry of a list, which the model wrote without its list.
func isEntry(value, items json.RawMessage) bool {
	var w wanted
	if json.Unmarshal(items, &w) != nil {
		return false
	}
	types := w.types()
	return len(types) == 1 && isType(value, types[0])
}

// marshal returns v as JSON. It does not escape < and >, which the model did not write.
func marshal(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}
