package model

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/store/ordertest"
)

// oddSchemas returns properties of a tool, with what is sent of them. Servers of tools send all of these.
func oddSchemas() map[string][2]string {
	return map[string][2]string{
		"the length that llama.cpp refuses": {`{"type":"string","maxLength":2000}`, `{"type":"string","description":"(at most 2000 characters)"}`},
		"long texts":                        {`{"type":"string","description":"What.","minLength":1,"maxLength":65536}`, `{"type":"string","description":"What. (at most 65536 characters)","minLength":1}`},
		"short texts":                       {`{"type":"string","maxLength":80}`, `{"type":"string","maxLength":80}`},
		"many entries":                      {`{"type":"array","items":{"type":"string"},"minItems":1999,"maxItems":2001}`, `{"type":"array","description":"(at most 2001 entries)","items":{"type":"string"}}`},
		"a length that is no number":        {`{"type":"string","maxLength":"80","minLength":-1}`, `{"type":"string"}`},
		"lengths that exclude each other":   {`{"type":"string","minLength":9,"maxLength":3}`, `{"type":"string"}`},
		"a list that must be empty":         {`{"type":"array","items":{"type":"string"},"maxItems":0}`, `{"type":"array","description":"(at most 0 entries)","items":{"type":"string"}}`},
		"values without a type":             {`{"enum":["a","b","a"]}`, `{"type":"string","enum":["a","b"]}`},
		"values of two types":               {`{"enum":["a",1,null]}`, `{"type":["string","integer","null"],"enum":["a",1,null]}`},
		"values of another type":            {`{"type":"string","enum":[1,2]}`, `{"type":"integer","enum":[1,2]}`},
		"whole values of numbers":           {`{"type":"number","enum":[1,2.5]}`, `{"type":"number","enum":[1,2.5]}`},
		"no value":                          {`{"type":"string","enum":[]}`, `{"type":"string"}`},
		"values that are no list":           {`{"type":"string","enum":"a"}`, `{"type":"string"}`},
		"a constant":                        {`{"const":"a"}`, `{"type":"string","enum":["a"]}`},
		"constants to choose from":          {`{"oneOf":[{"const":"a"},{"const":"b"}]}`, `{"anyOf":[{"type":"string","enum":["a"]},{"type":"string","enum":["b"]}]}`},
		"a list without entries":            {`{"type":"array"}`, `{"type":"array","items":{}}`},
		"a list of anything":                {`{"type":"array","items":true}`, `{"type":"array","items":{}}`},
		"perhaps a list":                    {`{"type":["array","null"]}`, `{"type":["array","null"],"items":{}}`},
		"a tuple":                           {`{"type":"array","items":[{"type":"string"},{"type":"number"}]}`, `{"type":"array","items":{"anyOf":[{"type":"string"},{"type":"number"}]}}`},
		"a tuple of today":                  {`{"type":"array","prefixItems":[{"type":"number"},{"type":"number"}],"items":false}`, `{"type":"array","items":{"type":"number"}}`},
		"required of an older draft":        {`{"type":"object","properties":{"a":{"type":"string","required":true}}}`, `{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}`},
		"required without a property":       {`{"type":"object","properties":{"a":{"type":"string"}},"required":["a","b","a"]}`, `{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}`},
		"only required":                     {`{"type":"object","required":["b"]}`, `{"type":"object"}`},
		"an object without its type":        {`{"properties":{"b":{"type":"string"},"a":{"type":"string"}}}`, `{"type":"object","properties":{"b":{"type":"string"},"a":{"type":"string"}}}`},
		"a type of another language":        {`{"type":"str"}`, `{"type":"string"}`},
		"a type in capitals":                {`{"type":"STRING"}`, `{"type":"string"}`},
		"any type":                          {`{"type":"any","description":"What."}`, `{"description":"What."}`},
		"a type that is an object":          {`{"type":{}}`, `{}`},
		"true":                              {`true`, `{}`},
		"a text":                            {`"string"`, `{}`},
		"a list":                            {`[]`, `{}`},
		"texts that are null":               {`{"type":"string","description":null,"title":null,"default":null,"format":null,"pattern":null}`, `{"type":"string"}`},
		"a pattern":                         {`{"type":"string","pattern":"\\d+(?=x)"}`, `{"type":"string","description":"(pattern \\d+(?=x))"}`},
		"an unknown format":                 {`{"type":"string","format":"int32"}`, `{"type":"string"}`},
		"a known format":                    {`{"type":"string","format":"date"}`, `{"type":"string","format":"date"}`},
		"limits of a language":              {`{"type":"integer","minimum":-9007199254740991,"maximum":9007199254740991}`, `{"type":"integer"}`},
		"limits of a number":                {`{"type":"integer","minimum":0,"maximum":100,"exclusiveMinimum":true,"multipleOf":5}`, `{"type":"integer","minimum":0,"maximum":100}`},
		"perhaps null":                      {`{"anyOf":[{"type":"string"},{"type":"null"}],"default":null}`, `{"anyOf":[{"type":"string"},{"type":"null"}]}`},
		"one alternative":                   {`{"anyOf":[{"type":"string","description":"b"}],"description":"a"}`, `{"type":"string","description":"a"}`},
		"no alternative":                    {`{"anyOf":[],"type":"string"}`, `{"type":"string"}`},
		"anything among the alternatives":   {`{"anyOf":[{"type":"string"},{}]}`, `{}`},
		"alternatives of what is required": {`{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}},"anyOf":[{"required":["a"]},{"required":["b"]}]}`,
			`{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}}}`},
		"several formats": {`{"type":"string","anyOf":[{"format":"date"},{"format":"time"}]}`, `{"anyOf":[{"type":"string","format":"date"},{"type":"string","format":"time"}]}`},
		"parts of one object": {`{"allOf":[{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false},{"properties":{"b":{"type":"string"}}}]}`,
			`{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}},"required":["a"]}`},
		"a reference":             {`{"$ref":"#/$defs/one","description":"here"}`, `{"type":"object","description":"here","properties":{"n":{"type":"integer"}},"required":["n"]}`},
		"a reference to itself":   {`{"$ref":"#/$defs/tree"}`, `{"type":"object","properties":{"left":{}}}`},
		"a reference to nothing":  {`{"$ref":"#/$defs/none"}`, `{}`},
		"a reference to the root": {`{"$ref":"#"}`, ``},
		"a foreign reference":     {`{"$ref":"https://example.com/schema"}`, `{}`},
		"a reference to a sister": {`{"$ref":"#/properties/first"}`, `{"type":"string","description":"First."}`},
		"names of any form":       {`{"type":"object","additionalProperties":{"type":"string"}}`, `{"type":"object","additionalProperties":{"type":"string"}}`},
		"names with a pattern":    {`{"type":"object","patternProperties":{"^x":{"type":"string"}},"additionalProperties":false}`, `{"type":"object"}`},
		"rules for some values":   {`{"type":"string","not":{"enum":["x"]},"if":{"minLength":3},"then":{"maxLength":9},"$comment":"c","examples":["e"],"x-google":1}`, `{"type":"string"}`},
	}
}

// oddTool returns a tool with an odd property.
func oddTool(property string) json.RawMessage {
	return json.RawMessage(`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"first":{"type":"string","description":"First."},"odd":` +
		property + `},"required":["first","gone"],"$defs":{"one":{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]},` +
		`"tree":{"type":"object","properties":{"left":{"$ref":"#/$defs/tree"}}}}}`)
}

func TestPlainTools(t *testing.T) {
	t.Parallel()
	for name, tt := range oddSchemas() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			sent := plainTool(oddTool(tt[0]), false)
			if tt[1] != "" {
				is.Equal(string(sent), `{"type":"object","properties":{"first":{"type":"string","description":"First."},"odd":`+tt[1]+`},"required":["first"]}`)
			}
			checkPlain(t, sent)
			is.Equal(string(plainTool(sent, false)), string(sent)) // stable, so that providers find it in their caches
			bare := plainTool(oddTool(tt[0]), true)
			checkPlain(t, bare)
			for _, bound := range []string{`"max`, `"min`, `"format"`, `"anyOf"`, `"default"`} {
				is.True(!strings.Contains(string(bare), bound))
			}
		})
	}
}

func TestPlainRoots(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	for in, want := range map[string]string{
		``: `{"type":"object","properties":{}}`, `null`: `{"type":"object","properties":{}}`, `{"type":"object"}`: `{"type":"object","properties":{}}`,
		`{"type":"string"}`: `{"type":"object","properties":{}}`, `{"a":`: `{"type":"object","properties":{}}`,
		`{"properties":[]}`: `{"type":"object","properties":{}}`, `{"type":"object","properties":null,"required":null}`: `{"type":"object","properties":{}}`,
		`{"oneOf":[{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]},{"type":"object","properties":{"b":{"type":"string"}}}]}`:             `{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}}}`,
		`{"$ref":"#/definitions/In","definitions":{"In":{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"],"additionalProperties":false}}}`: `{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"],"additionalProperties":false}`,
	} {
		is.Equal(string(plainTool(json.RawMessage(in), false)), want)
	}
	// Deep and wide schemas end.
	deep := strings.Repeat(`{"type":"array","items":`, 5000) + `{}` + strings.Repeat(`}`, 5000)
	ordertest.Below(is, len(plainTool(oddTool(deep), false)), 10_000)
	bomb := `{"type":"object","properties":{"a":{"$ref":"#/$defs/a"}},"$defs":{"a":{"properties":{"x":{"$ref":"#/$defs/b"},"y":{"$ref":"#/$defs/b"}}},` +
		`"b":{"properties":{"x":{"$ref":"#/$defs/c"},"y":{"$ref":"#/$defs/c"}}},"c":{"anyOf":[{"$ref":"#/$defs/a"},{"$ref":"#/$defs/b"}]}}}`
	ordertest.Below(is, len(plainTool(json.RawMessage(bomb), false)), 200_000)
}

// checkPlain checks what providers demand of every schema within a schema.
func checkPlain(t *testing.T, raw json.RawMessage) {
	t.Helper()
	is := is.New(t)
	var s struct {
		Type       any                        `json:"type"`
		Enum       []any                      `json:"enum"`
		Pattern    any                        `json:"pattern"`
		MaxLength  int                        `json:"maxLength"`
		MaxItems   int                        `json:"maxItems"`
		MinLength  int                        `json:"minLength"`
		MinItems   int                        `json:"minItems"`
		Properties map[string]json.RawMessage `json:"properties"`
		Required   []string                   `json:"required"`
		Items      json.RawMessage            `json:"items"`
		AnyOf      []json.RawMessage          `json:"anyOf"`
	}
	is.NoErr(json.Unmarshal(raw, &s))
	is.True(s.Enum == nil || s.Type != nil) // every enum has a type
	is.True(s.Pattern == nil)
	ordertest.AtMost(is, max(s.MaxLength, s.MaxItems, s.MinLength, s.MinItems), mostRepeated)
	if types, _ := s.Type.([]any); s.Type == "array" || slices.Contains(types, any("array")) {
		is.True(s.Items != nil) // every array has items
	}
	for _, name := range s.Required {
		is.True(s.Properties[name] != nil) // every required name is a property
	}
	for _, inner := range slices.Concat(slices.Collect(maps.Values(s.Properties)), s.AnyOf) {
		checkPlain(t, inner)
	}
	if s.Items != nil {
		checkPlain(t, s.Items)
	}
}

// TestSchemaRefusals checks that a call is repeated once without bounds when a server refuses the schemas of tools.
func TestSchemaRefusals(t *testing.T) {
	t.Parallel()
	tools := []Tool{{Name: "f", InputSchema: json.RawMessage(`{"type":"object","properties":{"a":{"type":"string","maxLength":7}}}`)}}
	for wire, w := range wires() {
		for name, refusal := range map[string]http.HandlerFunc{
			"llama.cpp, the sampler": answers(400, "application/json", `{"error":{"code":400,"message":"Failed to initialize samplers: failed to parse grammar","type":"invalid_request_error"}}`),
			"llama.cpp, the parser":  answers(400, "application/json", `{"error":{"code":400,"message":"Unable to generate parser for this template. Automatic parser generation failed: JSON schema conversion failed:\nUnrecognized schema: {}","type":"invalid_request_error"}}`),
			"OpenAI":                 refuses(400, "Invalid schema for function 'f': In context=('properties', 'a'), array schema missing items.", "tools[0].parameters"),
			"Anthropic":              answers(400, "application/json", `{"type":"error","error":{"type":"invalid_request_error","message":"tools.0.custom.input_schema: JSON schema is invalid. It must match JSON Schema draft 2020-12"}}`),
			"Gemini":                 answers(400, "application/json", `[{"error":{"code":400,"message":"* GenerateContentRequest.tools[0].function_declarations[0].parameters.properties[a].enum: only allowed for STRING type","status":"INVALID_ARGUMENT"}}]`),
			"vLLM":                   refuses(400, "The request is invalid: failed to compile grammar with xgrammar", ""),
		} {
			t.Run(wire+" "+name, func(t *testing.T) {
				t.Parallel()
				is := is.New(t)
				p := newProvider(t, refusal, answers(200, w.kind, w.hello+w.end))
				m := w.at(t, p.URL, quick())
				answered(t, m, Request{Messages: []Message{user("hi")}, Tools: tools})
				is.Equal(p.count(), 2)
				is.True(strings.Contains(p.got(t, 0).raw, `"maxLength":7`))
				is.True(!strings.Contains(p.got(t, 1).raw, `"maxLength":7`))
				is.True(strings.Contains(p.got(t, 1).raw, `"a":{"type":"string"}`))
				answered(t, m, Request{Messages: []Message{user("hi")}, Tools: tools}) // remembered
				is.Equal(p.count(), 3)

				stubborn := newProvider(t, refusal) // repeated once, and the refusal is told
				failure(t, w.at(t, stubborn.URL, quick()), Request{Messages: []Message{user("hi")}, Tools: tools})
				is.Equal(stubborn.count(), 2)
			})
		}
	}
}
