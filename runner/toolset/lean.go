package toolset

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"journeyman/runner/model"
	"journeyman/runner/tool"
	"journeyman/runner/view"
	"journeyman/store"
	"journeyman/store/db"
)

// LeanWindow is a window size, in tokens. Turns of a model with a smaller window get fewer tools, with
// short descriptions. Each request contains all tools, and the conversation needs the rest of the window.
const LeanWindow = 16_000

// Limits of the descriptions in a lean tool, in characters.
const (
	leanDescription = 160
	leanArgument    = 60
)

// Lean returns this program's tools for a lean turn. It omits tools that other tools can
// replace, and charts. If the worker has tool rules, it omits nothing, because the worker has already chosen.
func Lean(c store.Claim, own []Tool) []Tool {
	if c.Settings.Tools != nil {
		return own
	}
	return Without(own, "update_plan", "search_files", "make_chart")
}

// Specs returns the specs of tools for model requests.
func Specs(tools []tool.Tool) (specs []model.Tool) {
	for _, t := range tools {
		s := t.Spec()
		specs = append(specs, model.Tool{Name: s.Name, Description: s.Description, InputSchema: s.InputSchema})
	}
	return specs
}

// LeanSpecs returns tools in the form for models with a small window.
func LeanSpecs(tools []model.Tool) []model.Tool {
	short := make([]model.Tool, len(tools))
	for i, t := range tools {
		short[i] = lean(t)
	}
	return short
}

// lean returns a tool with shortened descriptions, also in its schema. The constraints of the
// schema do not change.
func lean(t model.Tool) model.Tool {
	t.Description = shortened(t.Description, leanDescription)
	dec := json.NewDecoder(bytes.NewReader(t.InputSchema))
	dec.UseNumber() // a float64 would change large numbers
	var schema any
	if dec.Decode(&schema) != nil { // a long schema is better than none
		return t
	}
	shortenSchema(schema)
	// Marshal sorts the keys. Providers cache prompts only if the bytes are equal in every request.
	if raw, err := view.Marshal(schema); err == nil {
		t.InputSchema = bytes.TrimSpace(raw)
	}
	return t
}

// shortenSchema shortens the descriptions in a JSON schema and removes keywords that do not
// constrain values. An argument may have the same name as such a keyword. It is kept, because its
// value is an object, not a string.
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

// shortened returns the first sentence of text, truncated to most characters.
func shortened(text string, most int) string {
	text = strings.Join(strings.Fields(text), " ")
	for _, end := range []string{". ", "; ", ": "} {
		if first, _, found := strings.Cut(text, end); found {
			text = first
		}
	}
	if cut := db.FirstRunes(text, most); cut != text {
		return cut + "…"
	}
	return strings.TrimSuffix(text, ".")
}
