package mcp

import (
	"encoding/json"
	"testing"

	"github.com/matryer/is"
)

// TestOldDrafts checks schemas of older drafts, and plain mistakes, which tools of MCP servers have.
func TestOldDrafts(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ property, want string }{
		"exclusive minimum":        {`{"type":"number","minimum":0,"exclusiveMinimum":true}`, `{"exclusiveMinimum":0,"type":"number"}`},
		"exclusive maximum":        {`{"type":"number","maximum":9,"exclusiveMaximum":true}`, `{"exclusiveMaximum":9,"type":"number"}`},
		"not exclusive":            {`{"type":"number","minimum":0,"exclusiveMinimum":false}`, `{"minimum":0,"type":"number"}`},
		"exclusive of nothing":     {`{"type":"number","exclusiveMinimum":true}`, `{"type":"number"}`},
		"modern exclusive":         {`{"exclusiveMinimum":3,"type":"number"}`, `{"exclusiveMinimum":3,"type":"number"}`},
		"any type":                 {`{"type":"any","description":"x"}`, `{"description":"x"}`},
		"any among types":          {`{"type":["string","any"]}`, `{}`},
		"tuple":                    {`{"type":"array","items":[{"type":"string"},{"type":"any"}]}`, `{"prefixItems":[{"type":"string"},{}],"type":"array"}`},
		"tuple with more":          {`{"type":"array","items":[{"type":"string"}],"additionalItems":{"type":"number"}}`, `{"items":{"type":"number"},"prefixItems":[{"type":"string"}],"type":"array"}`},
		"closed tuple":             {`{"type":"array","items":[{"type":"string"}],"additionalItems":false}`, `{"items":false,"prefixItems":[{"type":"string"}],"type":"array"}`},
		"empty tuple":              {`{"type":"array","items":[]}`, `{"type":"array"}`},
		"required in the property": {`{"type":"string","required":false}`, `{"type":"string"}`},
		"nested required":          {`{"type":"object","properties":{"b":{"type":"string","required":true}}}`, `{"properties":{"b":{"type":"string"}},"required":["b"],"type":"object"}`},
		"required twice":           {`{"type":"object","properties":{"b":{"required":true}},"required":["b"]}`, `{"properties":{"b":{}},"required":["b"],"type":"object"}`},
		"an argument named id":     {`{"type":"object","properties":{"id":{"type":"string"}}}`, `{"properties":{"id":{"type":"string"}},"type":"object"}`},
		"in items":                 {`{"type":"array","items":{"type":"number","minimum":1,"exclusiveMinimum":true}}`, `{"items":{"exclusiveMinimum":1,"type":"number"},"type":"array"}`},
		"in a choice":              {`{"anyOf":[{"type":"any"},{"type":"string"}]}`, `{"anyOf":[{},{"type":"string"}]}`},
		"in a map":                 {`{"type":"object","additionalProperties":{"type":"any"}}`, `{"additionalProperties":{},"type":"object"}`},
		"in definitions":           {`{"definitions":{"x":{"type":"any"}},"type":"string"}`, `{"definitions":{"x":{}},"type":"string"}`},
		"empty enum":               {`{"type":"string","enum":[]}`, `{"type":"string"}`},
		"modern":                   {`{"type":"string"}`, `{"type":"string"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			var fields map[string]any
			is.NoErr(json.Unmarshal([]byte(`{"$schema":"http://json-schema.org/draft-04/schema#","type":"object","id":"http://x/y","properties":{"a":`+tt.property+`}}`), &fields))
			var dropped []string
			raw, err := inputSchema(modernized(fields, 0, &dropped))
			is.NoErr(err) // the tool is usable
			is.Equal(string(raw), `{"properties":{"a":`+tt.want+`},"type":"object"}`)
			is.Equal(len(dropped) > 0, name == "empty enum")
		})
	}
}
