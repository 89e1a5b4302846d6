package runner

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"journeyman/runner/model"
	"journeyman/runner/tool"
	"journeyman/store"
)

// A model with a window below leanWindow tokens gets few tools, with short descriptions. Each
// request contains all of them, and the work must fit into the rest of the window.
const leanWindow = 16_000

// Bounds of the descriptions in a lean tool, in characters.
const (
	leanDescription = 160
	leanArgument    = 60
)

// leanToolset returns the tools of this program that a lean turn has. It omits tools whose
// work other tools can do, unless the worker has rules: then the worker has made the choice.
func leanToolset(c store.Claim, own []tool.Tool) []tool.Tool {
	if c.Settings.Tools != nil {
		return own
	}
	return slices.DeleteFunc(slices.Clone(own), func(t tool.Tool) bool {
		name := t.Spec().Name
		return name == "update_plan" || name == "search_files"
	})
}

// toolSpecs returns tools as a model sees them.
func toolSpecs(tools []tool.Tool) (specs []model.Tool) {
	for _, t := range tools {
		s := t.Spec()
		specs = append(specs, model.Tool{Name: s.Name, Description: s.Description, InputSchema: s.InputSchema})
	}
	return specs
}

// leanSpecs returns tools as a model with a small window sees them.
func leanSpecs(tools []model.Tool) []model.Tool {
	short := make([]model.Tool, len(tools))
	for i, t := range tools {
		short[i] = lean(t)
	}
	return short
}

// lean returns a tool with a short description, and with a schema whose descriptions are
// short. What a schema demands stays the same.
func lean(t model.Tool) model.Tool {
	t.Description = shortened(t.Description, leanDescription)
	dec := json.NewDecoder(bytes.NewReader(t.InputSchema))
	dec.UseNumber() // a float64 would change large numbers
	var schema any
	if dec.Decode(&schema) != nil { // a long schema is better than none
		return t
	}
	shortenSchema(schema)
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	// Encode sorts the keys. The bytes must be equal in every request, or no provider caches them.
	if enc.Encode(schema) == nil {
		t.InputSchema = bytes.TrimSpace(b.Bytes())
	}
	return t
}

// shortenSchema shortens the descriptions in a JSON schema, and removes keywords that only
// people read. An argument may have the name of such a keyword. Its value is an object and
// not a string, so it stays.
func shortenSchema(v any) {
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			shortenSchema(item)
		}
	case map[string]any:
		if text, ok := v["description"].(string); ok {
			v["description"] = shortened(text, leanArgument)
		}
		for _, key := range []string{"title", "$schema", "$comment"} {
			if _, ok := v[key].(string); ok {
				delete(v, key)
			}
		}
		for key, item := range v {
			if !slices.Contains([]string{"enum", "const", "default"}, key) { // values, not schemas
				shortenSchema(item)
			}
		}
	}
}

// shortened returns the first sentence of a text, cut to a number of characters.
func shortened(text string, most int) string {
	text = strings.Join(strings.Fields(text), " ")
	for _, end := range []string{". ", "; ", ": "} {
		if first, _, found := strings.Cut(text, end); found {
			text = first
		}
	}
	if cut := store.FirstRunes(text, most); cut != text {
		return cut + "…"
	}
	return strings.TrimSuffix(text, ".")
}
